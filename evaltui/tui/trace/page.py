"""The trace: the time axis, a row per span, and a summary of the time spent."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from evaltui.core.statistics import quantile
from evaltui.core.trace.span_lines import (
    KIND_ROLES,
    TIMED_KINDS,
    Scale,
    model_of,
    span_body_line,
    span_tokens,
    time_facts,
    turn_message,
    turn_title,
)
from evaltui.core.trace.spans import Span, SpanKind, SpanTree, TimeSpent
from evaltui.text.figures import UNKNOWN, counted, show_duration
from evaltui.text.lines import Line, cells, fill_line, join_ends, pad
from evaltui.text.lines import Span as Text
from evaltui.text.outcomes import GLYPHS, ROLES
from evaltui.text.plots import bar, column_plot, waterfall_bar
from evaltui.tui.widgets.lines import plain_text
from evaltui.tui.widgets.writer import Page

if TYPE_CHECKING:
    from evaltui.runs.history import CaseHistory

_GUTTER_WIDTH = 3
_LABEL_WIDTH = 6
_DURATION_WIDTH, _GAP = 7, 2
# Times are a picture where there is room for it.
MIN_WIDTH_WITH_BARS = 90
# Cells of the shortest bar that says something, and the spans of a long trace that its columns are made for.
_MIN_BAR, _MAX_MEASURED = 12, 1_000
# Seconds: of a span that is long, and of a case whose quarters can be told apart.
_LONG_SHARE, _MIN_SCALE = 0.5, 0.004
_MAX_INDENT = 6
# Cells that no row has.
_UNCUT_WIDTH = 10_000
_MARKS: Mapping[str, Text] = {
    "changed": ("≠", "error"),
    "moved": ("↕", "error"),
    "extra": ("+", "error"),
}


@dataclass(frozen=True)
class Columns:
    """The columns of the rows of a trace; all widths are in cells."""

    scale: Scale
    measured: Sequence[Span]
    """The spans that the columns are made for."""
    tokens: int
    """Width of the column of tokens; 0 where they are unknown."""

    @classmethod
    def of(cls, tree: SpanTree) -> Columns:
        measured = tree.spans[:_MAX_MEASURED]
        tokens = max((len(span_tokens(span)) for span in measured), default=0)
        return cls(Scale.of(tree.spans, tree.turns), measured, max(tokens, len("tokens")) if tokens else 0)

    @cached_property
    def left(self) -> int:
        """Width of the longest call with its arguments, model or agent. Narrow rows do not need it, and it is
        most of what a growing trace costs."""
        timed = (span for span in self.measured if span.kind in TIMED_KINDS)
        return max((cells(_left_line(span, "", 0)) for span in timed), default=0)

    def bar(self, width: int) -> int:
        """Width of the bars in rows of `width`: at most a third, and at most what the arguments leave; 0 for
        no bars."""
        if width < MIN_WIDTH_WITH_BARS:
            return 0
        room = width - _GUTTER_WIDTH - self.left - self.tokens - _DURATION_WIDTH - 3 * _GAP
        return 0 if room < _MIN_BAR else min(width // 3, room)


def axis_line(columns: Columns, width: int) -> Line:
    """The headings of the columns, and the times of the hairlines, where they can be told apart."""
    room = columns.bar(width)
    whole = columns.scale.end - columns.scale.start
    labels = ["0", *(show_duration(whole * quarter / 4) for quarter in (1, 2, 3))]
    marks = ""
    if whole >= _MIN_SCALE and len(set(labels)) == len(labels):
        for quarter, label in enumerate(labels):
            place = room * quarter // 4
            # Where they would touch, every other one is enough.
            if not marks or len(marks) < place <= room - len(label):
                marks = pad(marks, place) + label
    right: Line = [("tokens".rjust(columns.tokens), "faint")] if columns.tokens else []
    right += [(" " * _GAP, ""), (pad(marks, room), "faint")] if room else []
    return join_ends([], [*right, (f"{'time':>{_DURATION_WIDTH + _GAP}}", "faint")], width, least=0)


def span_line(
    span: Span,
    columns: Columns,
    width: int,
    *,
    folded: bool,
    op: str = "",
    status: str = "",
    is_live: bool = False,
    named: bool = True,
) -> Line:
    """A span as a row.

    `op` is the diff operation of a call, `status` the verdict of a turn, `is_live` tells whether an open span
    may still end, `named` whether the name of a model is shown.
    """
    right = _right_line(span, columns, width, "…" if is_live else UNKNOWN)
    room = width - cells(right) - 1
    left = [*_gutter_line(span, folded, op), *_left_line(span, status, room - _GUTTER_WIDTH, named=named)]
    return [*fill_line(left, room), (" ", ""), *right]


def is_named(spans: Sequence[Span], span: Span) -> bool:
    """Whether the row of a model call shows its model: it differs from that of the previous call."""
    before = next((spans[n] for n in range(span.number - 1, -1, -1) if spans[n].kind == "model"), None)
    return before is None or model_of(before) != model_of(span)


def cut_text(span: Span, columns: Columns, width: int, status: str = "", *, named: bool = True) -> str:
    """The whole text of a row that is cut; "" where it is fully visible."""
    room = width - cells(_right_line(span, columns, width, UNKNOWN)) - 1 - _GUTTER_WIDTH
    full = _left_line(span, status, _UNCUT_WIDTH, named=named)
    return plain_text(full).strip() if cells(full) > room else ""


def _gutter_line(span: Span, folded: bool, op: str) -> Line:
    """The diff mark of a call, and the fold mark."""
    fold = "▸" if folded else "▾" if span.kind == "turn" and span.children else ""
    marks: Line = [_MARKS[op]] if op in _MARKS else []
    marks += [(fold, "muted")] if fold else []
    return fill_line(marks, _GUTTER_WIDTH)


def _left_line(span: Span, status: str, room: int, *, named: bool = True) -> Line:
    if span.kind == "turn":
        return _turn_line(span, status)
    indent: Text = ("  " * min(_MAX_INDENT, span.depth - 1), "")
    role = "error" if span.failed and span.kind == "agent" else KIND_ROLES.get(span.kind, "muted")
    kind: Text = (pad(span.kind, max(_LABEL_WIDTH, len(span.kind) + 1)), role)
    if span.kind == "error":
        kind = (pad("! error", _LABEL_WIDTH + 2), "error")
    return [indent, kind, *span_body_line(span, room - cells([indent, kind]), named=named)]


def _turn_line(span: Span, status: str) -> Line:
    line: Line = [(turn_title(span), "bold error" if span.failed else "bold")]
    if status:
        line += [(" ", ""), (GLYPHS[status], ROLES[status])]
    return [*line, ("  ", ""), (turn_message(span), "muted")]


def _right_line(span: Span, columns: Columns, width: int, unknown: str) -> Line:
    """Tokens, bar and time; `unknown` stands for the time of a span without end."""
    if span.kind not in TIMED_KINDS and span.kind != "turn":
        return []
    shown = unknown if span.is_open else show_duration(span.seconds)
    time = f"{shown:>{_DURATION_WIDTH + _GAP}}"
    took: Text = (time, "bold" if span.seconds >= _LONG_SHARE else "muted")
    if span.kind == "turn":
        return [took]
    if width < MIN_WIDTH_WITH_BARS:
        return [(span_tokens(span), "muted"), took]
    right: Line = [(span_tokens(span).rjust(columns.tokens), "muted")]
    if room := columns.bar(width):
        role = "error" if span.failed else TIMED_KINDS[span.kind]
        start, end = columns.scale
        drawn = waterfall_bar(span.start - start, span.end - start, end - start, room, role)
        right += [(" " * _GAP, ""), *drawn]
    return [*right, took]


# Below the rows

# Lines of the times, and of the plot of the last runs with its heading.
TIMES_ROWS, PLOT_ROWS = 5, 6
_MAX_PLOT = 8
_MAX_RUNS = 40


def write_time_spent(
    page: Page, spent: TimeSpent, tokens: int, unknown: Collection[SpanKind] = frozenset()
) -> None:
    """Writes a bar for each of model, tool, agent and, if any, throttling and waiting; none where the time is
    `unknown`."""
    page.section(("Where the time went", "bold"))
    room = max(8, page.width * 3 // 10)
    for kind, seconds, duration, what in time_facts(spent, unknown):
        share = seconds / spent.whole if spent.whole else 0.0
        left: Line = [("   ", ""), (pad(kind, 9), TIMED_KINDS.get(kind, "muted"))]
        left += [(f"{duration:>{_DURATION_WIDTH}}", "bold"), ("  ", "")]
        left += [*bar(share, room, TIMED_KINDS.get(kind, "muted")), (f"  {what}", "muted")]
        page.ends(left, [(counted(tokens, "token"), "muted")] if kind == "model" and tokens else [])


def write_last_runs(page: Page, past: CaseHistory, height: int) -> None:
    """Writes a column for each of the last runs of the case: its height is the duration, its colour the
    outcome."""
    points = [point for point in past.points if point.summary.seconds is not None][-_MAX_RUNS:]
    seconds = [point.summary.seconds or 0.0 for point in points]
    if len(points) < 2:
        return
    page.section((f"This case, last {counted(len(points), 'run')}", "bold"))
    longest = max(max(seconds), 1e-9)
    roles = [ROLES[point.summary.status] for point in points]
    p50, p95 = (show_duration(quantile(seconds, share)) for share in (0.5, 0.95))
    facts: list[Line] = [
        [(show_duration(seconds[-1]), "bold")],
        [("last run", "muted")],
        [(f"p50 {p50}   p95 {p95}", "muted")],
    ]
    shares = [duration / longest for duration in seconds]
    plot = column_plot(shares, roles, page.width - 30, min(_MAX_PLOT, height), top=show_duration(longest))
    for number, line in enumerate(plot):
        page.ends(line, facts[number] if number < len(facts) else [])
