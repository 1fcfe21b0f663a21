"""The earlier results of a case: a line on its page, and a row for each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.cells import cell_len

from evaltui.core.compare.run_comparison import what_changed
from evaltui.runs.history import CaseHistory
from evaltui.text.figures import counted, show_clock, show_score
from evaltui.text.lines import Line, Span, pad
from evaltui.text.outcomes import glyph
from evaltui.text.values import visible
from evaltui.tui.widgets.writer import Folding, Page

_MOST_NAME, _CLOCK = 20, 12


def write_history(
    page: Page, past: CaseHistory | None, folding: Folding, *, passed: bool, changed: Sequence[str] = ()
) -> None:
    """Writes the number of earlier runs; for a failing case, its last pass and the changes since. `changed`
    are the changes after the last run, as in `Freshness`.

    When it is open, a row for each run.

    It has the same number of lines while the runs are read: the parts below must not move under the mouse.
    """
    is_open = folding.is_open("history", usual=False)
    page.part(is_open=is_open)
    head: Line = [("▾ " if is_open else "▸ ", "faint"), ("History", "bold")]
    if not passed and (past is None or past.points):
        head += [("   ", ""), *_last_passed(past), *_since_then(past, changed)]
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
    width = min(_MOST_NAME, max(map(cell_len, names), default=0))
    for number in reversed(range(len(points))):
        point, name = points[number], names[number]
        summary = point.summary
        clock = show_clock(point.started, datetime.now(UTC))
        left: Line = [("    ", ""), glyph(summary.status), (f" {pad(name, width)}  ", "bold")]
        left += [(pad(clock, _CLOCK), "muted"), ("  ", "")]
        if summary.runs > 1:
            left.append((f"{summary.passed}/{counted(summary.runs, 'repeat')}  ", "muted"))
        if metric:
            score = summary.scores.get(metric)
            left += [(f"{visible(metric)} ", "muted"), (show_score(score), "")]
        before = points[number - 1 : number]
        changed = what_changed(before[0].run, point.run, past.case) if before else ()
        page.ends(left, [("; ".join(map(visible, changed)), "muted")])


def lowest_metric(history: CaseHistory) -> str:
    """The metric with the lowest score, which is the most telling; "" without scores."""
    scores = history.points[-1].summary.scores
    return min(scores, key=scores.__getitem__) if scores else ""


def _last_passed(past: CaseHistory | None) -> list[Span]:
    if past is None:
        return [("last passed …", "muted")]
    point = past.last_passed
    if point is None:
        return [("never passed", "muted")]
    return [("last passed ", "muted"), (visible(point.title), "")]


def _since_then(past: CaseHistory | None, after: Sequence[str]) -> list[Span]:
    """The differences since the last pass, besides the agent's behaviour."""
    if past is None or past.last_passed is None:
        return []
    changed = [*past.changed_since, *([f"{', '.join(after)} changed"] if after else [])]
    since = "; ".join(map(visible, changed)) if changed else "no other changes found"
    return [("   since then ", "muted"), (since, "" if changed else "muted")]
