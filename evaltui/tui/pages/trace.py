"""The trace: the time axis, a span as a row, and below the rows where the time went."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from evaltui.core.trace.span_lines import KIND_ROLES, TIMED, Scale, short, text_of, tokens_of, what_line
from evaltui.core.trace.spans import Span, SpanKind
from evaltui.core.trace.time_spent import TimeSpent
from evaltui.text.figures import UNKNOWN, counted, show_duration, show_number
from evaltui.text.lines import Line, both_ends, cells, pad
from evaltui.text.lines import Span as Text
from evaltui.text.lines import cut as cut_line
from evaltui.text.outcomes import GLYPHS, ROLES
from evaltui.text.plots import bar, column_plot, waterfall_bar
from evaltui.tui.pages.writer import Page

if TYPE_CHECKING:
    from evaltui.runs.history import CaseHistory

_GUTTER = 3
_LABEL = 6
_TOKENS = 12
_DURATION = 7
# Times are a picture where there is room for it.
WITH_BARS = 90
# Seconds.
_LONG = 0.5
_MOST_INDENT = 6
# Cells that no row has.
_UNCUT = 10_000
_MARKS: Mapping[str, Text] = {
    "changed": ("≠", "error"),
    "moved": ("↕", "error"),
    "extra": ("+", "error"),
}


def axis_line(scale: Scale, width: int) -> Line:
    """What the columns of the rows are, and the times of the hairlines."""
    room = _bar_cells(width)
    if not room:
        return both_ends([], [("tokens", "faint"), (f"{'time':>{_DURATION + 2}}", "faint")], width, least=0)
    marks, last = "", ""
    for quarter in range(4):
        seconds = (scale.end - scale.begin) * quarter / 4
        label = show_duration(seconds) if quarter else "0"
        place = room * quarter // 4
        # Quarters of a few milliseconds may round to the same figure.
        if label != last and len(marks) <= place and place + len(label) <= room:
            marks += " " * (place - len(marks)) + label
            last = label
    right = [(f"{'tokens':>{_TOKENS}}", "faint"), ("  ", ""), (pad(marks, room), "faint")]
    return both_ends([], [*right, (f"{'time':>{_DURATION + 2}}", "faint")], width, least=0)


def span_line(
    span: Span,
    scale: Scale,
    width: int,
    *,
    folded: bool,
    op: str = "",
    status: str = "",
    is_live: bool = False,
) -> Line:
    """A span as a row. `op` says how a call differs, `status` what came of a turn, `is_live` whether what is
    not over may still end."""
    right = _right(span, scale, width, "…" if is_live else UNKNOWN)
    room = width - cells(right) - 1
    left = cut_line([*_gutter(span, folded, op), *_left(span, status, room - _GUTTER)], room)
    return [*left, (" " * (width - cells(left) - cells(right)), ""), *right]


def cut_text(span: Span, scale: Scale, width: int, status: str = "") -> str:
    """What its row says where that is cut there; "" where all of it is seen."""
    room = width - cells(_right(span, scale, width, UNKNOWN)) - 1 - _GUTTER
    full = _left(span, status, _UNCUT)
    return "".join(text for text, _ in full).strip() if cells(full) > room else ""


def _gutter(span: Span, folded: bool, op: str) -> Line:
    """How a call differs, and whether what is in it is folded away."""
    fold = "▸" if folded else "▾" if span.kind == "turn" and span.children else ""
    marks: Line = [_MARKS[op]] if op in _MARKS else []
    marks += [(fold, "muted")] if fold else []
    return [*marks, (" " * (_GUTTER - cells(marks)), "")]


def _left(span: Span, status: str, room: int) -> Line:
    if span.kind == "turn":
        return _turn(span, status)
    indent: Text = ("  " * min(_MOST_INDENT, span.depth - 1), "")
    role = "error" if span.failed and span.kind == "agent" else KIND_ROLES.get(span.kind, "muted")
    kind: Text = (pad(span.kind, max(_LABEL, len(span.kind) + 1)), role)
    if span.kind == "error":
        kind = (pad("! error", _LABEL + 2), "error")
    return [indent, kind, *what_line(span, room - cells([indent, kind]))]


def _turn(span: Span, status: str) -> Line:
    number = "Start" if span.turn is None else f"Turn {span.turn + 1}"
    line: Line = [(number, "bold error" if span.failed else "bold")]
    if status:
        line += [(" ", ""), (GLYPHS[status], ROLES[status])]
    message = span.events[0].content if span.events and span.events[0].kind == "user" else None
    return [*line, ("  ", ""), (short(text_of(message)), "muted")]


def _bar_cells(width: int) -> int:
    return 0 if width < WITH_BARS else width * 3 // 10


def _right(span: Span, scale: Scale, width: int, unknown: str) -> Line:
    """Tokens, bar and time; `unknown` stands for the time of what has no end."""
    timed = span.kind in TIMED or span.kind == "turn"
    tokens = tokens_of(span.usage) if span.kind == "model" else ""
    if span.kind == "agent" and span.tokens:
        tokens = show_number(span.tokens)
    shown = unknown if span.is_open else show_duration(span.seconds) if timed else ""
    took: Line = [("  ", ""), (f"{shown:>{_DURATION}}", "bold" if span.seconds >= _LONG else "muted")]
    room = _bar_cells(width)
    if not room:
        return [(f"{tokens:>{_TOKENS}}", "muted"), *took] if tokens else took if shown else []
    drawn: Line = [(" " * room, "")]
    if span.kind in TIMED:
        role = "error" if span.failed else TIMED[span.kind]
        drawn = waterfall_bar(
            span.begin - scale.begin, span.end - scale.begin, scale.end - scale.begin, room, role
        )
    return [(f"{tokens:>{_TOKENS}}", "muted"), ("  ", ""), *drawn, *took]


# Below the rows

# Lines of the times, and of the plot of the last runs with its heading.
TIMES_ROWS, PLOT_ROWS = 5, 6
_MOST_PLOT = 8
_MOST_RUNS = 40


def write_time_spent(
    page: Page, spent: TimeSpent, tokens: int, unknown: Collection[SpanKind] = frozenset()
) -> None:
    """A bar for each of model, tool, agent and what there was of throttling and waiting; none for what is
    `unknown`."""
    page.section(("Where the time went", "bold"))
    facts: list[tuple[str, float, str]] = [
        ("model", spent.model, counted(spent.model_calls, "call")),
        ("tool", spent.tool, counted(spent.tool_calls, "call")),
        ("agent", spent.agent, "overhead"),
    ]
    if spent.throttled:
        facts.append(("throttled", spent.throttled, "waiting for limits"))
    if show_duration(spent.waiting) != show_duration(0):
        facts.append(("waiting", spent.waiting, "before and after the agent"))
    room = max(8, page.width * 3 // 10)
    for kind, seconds, what in facts:
        share = seconds / spent.whole if spent.whole else 0.0
        is_unknown = kind in unknown
        what = f"calls {UNKNOWN}" if is_unknown else what
        left: Line = [("   ", ""), (pad(kind, 9), TIMED.get(kind, "muted"))]
        left += [(f"{UNKNOWN if is_unknown else show_duration(seconds):>{_DURATION}}", "bold"), ("  ", "")]
        left += [*bar(share, room, TIMED.get(kind, "muted")), (f"  {what}", "muted")]
        page.ends(left, [(counted(tokens, "token"), "muted")] if kind == "model" and tokens else [])


def write_last_runs(page: Page, past: CaseHistory, height: int) -> None:
    """A column for each of the last runs of the case, as high as it took, by outcome."""
    points = [point for point in past.points if point.summary.seconds is not None][-_MOST_RUNS:]
    seconds = [point.summary.seconds or 0.0 for point in points]
    if len(points) < 2:
        return
    page.section((f"This case, last {counted(len(points), 'run')}", "bold"))
    longest = max(max(seconds), 1e-9)
    roles = [ROLES[point.summary.status] for point in points]
    p50, p95 = (show_duration(_quantile(seconds, share)) for share in (0.5, 0.95))
    facts: list[Line] = [
        [(show_duration(seconds[-1]), "bold")],
        [("last run", "muted")],
        [(f"p50 {p50}   p95 {p95}", "muted")],
    ]
    shares = [one / longest for one in seconds]
    plot = column_plot(shares, roles, page.width - 30, min(_MOST_PLOT, height), top=show_duration(longest))
    for number, line in enumerate(plot):
        page.ends(line, facts[number] if number < len(facts) else [])


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, round(share * (len(values) - 1)))]
