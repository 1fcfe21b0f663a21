"""The head of a result: the outcome with its reason, a strip of metrics, and the earlier results."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from rich.cells import cell_len

from evaltui.core.compare.explain import reason_line
from evaltui.core.compare.run_comparison import circumstance_changes
from evaltui.core.metrics.registry import info_of
from evaltui.core.model.outcome import CaseResult, MetricResult, Status
from evaltui.runs.history import CaseHistory
from evaltui.text.figures import counted, score_figures, show_clock, show_score
from evaltui.text.lines import Line, Span, cells, cut, fill_line, join_ends, pad, with_role
from evaltui.text.outcomes import COUNTED_STATUSES, GLYPHS, NOT_RUN, ROLES, RUNNING, WORDS, glyph
from evaltui.text.plots import bar, sparkline
from evaltui.text.syntax import color_json
from evaltui.text.values import visible
from evaltui.tui.widgets.writer import Folding, Link, Page, fold_mark
from evaltui.views.result import gating_metrics

_MAX_NAME, _CLOCK_WIDTH = 20, 12


def write_history(
    page: Page, past: CaseHistory | None, folding: Folding, *, passed: bool, changed: Sequence[str] = ()
) -> None:
    """Writes the number of earlier runs; for a failing case, its last pass and the changes since. `changed`
    are the changes after the last run, as in `Freshness`.

    When it is open, a row for each run.

    It has the same number of lines while the runs are read: the parts below must not move under the mouse.
    """
    is_open = page.open_part(folding, "history", usual=False)
    head: Line = [fold_mark(is_open), ("History", "bold")]
    if not passed and (past is None or past.points):
        head += [("   ", ""), *_last_pass_spans(past), *_changes_since(past, changed)]
    runs = "…" if past is None else "no run with this id"
    if past is not None and past.points:
        runs = counted(len(past.points), "run")
    page.fold("history", head, [(runs, "muted")])
    if is_open and past is not None:
        write_points(page, past)


def write_points(page: Page, past: CaseHistory) -> None:
    """Writes the runs of the case, the newest first: outcome, repeats, name, score, and changes."""
    points = past.points
    if not points:
        page.row(("    No run with this id", "muted"))
        return
    names = [visible(point.title) for point in points]
    metric = lowest_metric(past)
    width = min(_MAX_NAME, max(map(cell_len, names), default=0))
    for number in reversed(range(len(points))):
        point, name = points[number], names[number]
        summary = point.summary
        clock = show_clock(point.started, datetime.now(UTC))
        left: Line = [("    ", ""), glyph(summary.status), (f" {pad(name, width)}  ", "bold")]
        left += [(pad(clock, _CLOCK_WIDTH), "muted"), ("  ", "")]
        if summary.runs > 1:
            left.append((f"{summary.passed}/{counted(summary.runs, 'repeat')}  ", "muted"))
        if metric:
            score = summary.scores.get(metric)
            left += [(f"{visible(metric)} ", "muted"), (show_score(score), "")]
        before = points[number - 1 : number]
        changed = circumstance_changes(before[0].run, point.run, past.case) if before else ()
        page.ends(left, [("; ".join(map(visible, changed)), "muted")])


def lowest_metric(history: CaseHistory) -> str:
    """The metric with the lowest score, which is the most telling; "" without scores."""
    scores = history.points[-1].summary.scores
    return min(scores, key=scores.__getitem__) if scores else ""


def _last_pass_spans(past: CaseHistory | None) -> list[Span]:
    if past is None:
        return [("last passed …", "muted")]
    point = past.last_passed
    if point is None:
        return [("never passed", "muted")]
    return [("last passed ", "muted"), (visible(point.title), "")]


def _changes_since(past: CaseHistory | None, after: Sequence[str]) -> list[Span]:
    """The differences since the last pass, besides the agent's behaviour."""
    if past is None or past.last_passed is None:
        return []
    changed = [*past.changed_since, *([f"{', '.join(after)} changed"] if after else [])]
    since = "; ".join(map(visible, changed)) if changed else "no other changes found"
    return [("   since then ", "muted"), (since, "" if changed else "muted")]


# From here on there is room for cards, and for why on one line: a pane of 110 cells.
ROOMY_WIDTH = 106
_MIN_CARD, _CARD_GAP = 24, 2
# Fewer cells of a bar say nothing.
_MIN_BAR = 4
# Longer histories take room from the metrics.
_MAX_SPARKS = 16

_TINTS: Mapping[str, str] = {
    **dict.fromkeys(COUNTED_STATUSES, "panel"),
    "PASSED": "exp",
    "FAILED": "act",
    "ERROR": "act",
    RUNNING: "sel",
    NOT_RUN: "panel",
}
_NEEDLESS_WORDS = re.compile(
    r"_v\d+$|_avg_score$|_score$|_based(?=_)|_final_response(?=_quality)|_session(?=_state)"
)


def chip(status: str, *, stale: bool = False) -> Span:
    """The chip of a status: ` ✗ FAILED `."""
    role = "faint panel" if stale else f"bold {ROLES[status].removeprefix('bold ')} {_TINTS[status]}"
    return f" {GLYPHS[status]} {WORDS[status].upper()} ", role


def write_verdict(page: Page, result: CaseResult, note: Line) -> None:
    """Writes the outcome and its reason. `note` is a note about the whole result, such as that it is
    stale."""
    head: Line = [chip(result.status, stale=bool(note)), ("  ", "")]
    if note:
        page.row(*head, *note)
        head = [(" " * cells(head), "")]
    if text := reason_line(result):
        page.text(color_json(text), head)
    elif not note:
        page.row(*head)


def short_names(metrics: Sequence[str], *, shortest: bool) -> list[str]:
    """Short names of metrics, without redundant words where they stay unique."""
    labels = [_label(metric) if shortest else "" for metric in metrics]
    names = [
        label or _NEEDLESS_WORDS.sub("", metric) or metric
        for label, metric in zip(labels, metrics, strict=True)
    ]
    twice = Counter(names)
    return [
        visible(full_name if twice[name] > 1 else name)
        for name, full_name in zip(names, metrics, strict=True)
    ]


def _label(metric: str) -> str:
    return "state" if metric == "final_session_state" else info_of(metric).label


def write_strip(page: Page, result: CaseResult, past: CaseHistory | None, *, stale: bool = False) -> None:
    """Writes a card for each metric and one for the history; with less room, all of them in one line. Scores
    of a stale result are faint."""
    metrics = gating_metrics(result)
    if not metrics and page.width < ROOMY_WIDTH:
        return
    page.blank()
    first = len(page.lines)
    if page.width >= ROOMY_WIDTH:
        _write_cards(page, metrics, past, passed=result.status is Status.PASSED)
    else:
        _write_line(page, metrics, past)
    for number in range(first, len(page.lines)) if stale else ():
        page.lines[number] = [
            (text, "surface faint" if "surface" in role else role) for text, role in page.lines[number]
        ]


def _write_cards(
    page: Page, metrics: Sequence[MetricResult], past: CaseHistory | None, *, passed: bool
) -> None:
    in_row = min(len(metrics) + 1, (page.width + _CARD_GAP) // (_MIN_CARD + _CARD_GAP))
    width = (page.width + _CARD_GAP) // in_row - _CARD_GAP
    names = short_names([metric.name for metric in metrics], shortest=False)
    cards = [_card(metric, name, width - 2) for metric, name in zip(metrics, names, strict=True)]
    cards.append(_history_card(past, width - 2, passed=passed))
    opens = [*(metric.name for metric in metrics), ""]
    for first in range(0, len(cards), in_row):
        if first:
            page.lines.append([])
        for number, name in enumerate(opens[first : first + in_row]):
            start = number * (width + _CARD_GAP)
            page.links.append(Link(name, len(page.lines), len(page.lines) + 2, start, start + width))
        for row in (0, 1):
            line: Line = []
            for card in cards[first : first + in_row]:
                gap: Line = [(" " * _CARD_GAP, "")] if line else []
                line += [*gap, *with_role("surface", fill_line([(" ", ""), *card[row]], width))]
            # What the division leaves belongs to the last card of a full row.
            rest = page.width - cells(line) if len(cards) - first >= in_row else 0
            page.lines.append([*line, (" " * rest, "surface")])


def _card(metric: MetricResult, name: str, width: int) -> tuple[Line, Line]:
    head = cut([glyph(metric.status), (f" {name}", "")], width)
    if metric.score is None:
        return head, cut([(WORDS[metric.status], "muted")], width)
    figure, needed = score_figures(metric.score, metric.threshold)
    score: Line = [(figure, f"bold {ROLES[metric.status]}"), (" ", "")]
    right: Line = [(f" {_sign(metric)}{needed}", "faint")] if needed else []
    room = width - cells(score) - cells(right)
    if room < _MIN_BAR or not 0 <= metric.score <= 1 or (metric.threshold or 0) > 1:
        return head, join_ends(score, right, width, gap=0)
    return head, [*score, *bar(metric.score, room, ROLES[metric.status], metric.threshold), *right]


def _sign(metric: MetricResult) -> str:
    return "≤" if metric.lower_is_better else "≥"


def _write_line(page: Page, metrics: Sequence[MetricResult], past: CaseHistory | None) -> None:
    """Writes the metrics in one line: `✗ trajectory 0.50 ≥1.00  ✓ response 0.97`, with the deciding
    thresholds."""
    sparks: Line = [*_sparks(past, _MAX_SPARKS), (" ", "")]
    lines: list[Line] = [[]]
    room = page.width - cells(sparks) - 2
    above = len(page.lines)
    for metric, name in zip(
        metrics, short_names([metric.name for metric in metrics], shortest=True), strict=True
    ):
        part = _figure(metric, name)
        if lines[-1] and cells(lines[-1]) + cells(part) + 2 > room:
            lines.append([])
            room = page.width
        lines[-1] += [("  ", ""), *part] if lines[-1] else [(" ", ""), *part]
        place, end = above + len(lines) - 1, cells(lines[-1])
        page.links.append(Link(metric.name, place, place + 1, end - cells(part) - 1, end))
    if past is not None and past.points:
        page.links.append(Link("", above, above + 1, page.width - cells(sparks) - 1))
    for number, line in enumerate(lines):
        ends = join_ends(line, [] if number else sparks, page.width)
        page.lines.append(with_role("surface", fill_line(ends, page.width)))


def _figure(metric: MetricResult, name: str) -> Line:
    line: Line = [glyph(metric.status), (f" {name}", "")]
    if metric.score is None:
        return [*line, (f" {WORDS[metric.status]}", "muted")]
    figure, needed = score_figures(metric.score, metric.threshold)
    passed = metric.status is Status.PASSED
    line.append((f" {figure}", f"bold {ROLES[metric.status]}" if not passed else ROLES[metric.status]))
    return line if passed or not needed else [*line, (f" {_sign(metric)}{needed}", "faint")]


# History


def _history_card(past: CaseHistory | None, width: int, *, passed: bool) -> tuple[Line, Line]:
    """The card of the history; `passed` is the current outcome, which differs from that of the run where it
    was scored again."""
    head: Line = [("history", "muted")]
    if past is None:
        return head, [("…", "muted")]
    if not past.points:
        return head, [("no run with this id", "muted")]
    point = past.last_passed
    last: Line = [("rescored ", "muted"), glyph(Status.PASSED)] if passed else [("never passed", "muted")]
    if point is not None:
        title = visible(point.title)
        last = [("last ", "muted"), glyph(Status.PASSED), (f" {title}", "muted")]
    return join_ends(head, last, width), _sparks(past, width)


def _sparks(past: CaseHistory | None, most: int) -> Line:
    """The scores of the last runs, or whether they passed; newest at the right."""
    if past is None or not past.points:
        return []
    points = past.points
    values = past.values(lowest_metric(past))
    return sparkline(values, [ROLES[point.summary.status] for point in points])[-most:]
