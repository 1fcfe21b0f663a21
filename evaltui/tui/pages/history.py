"""What earlier runs say of a case, in a few lines."""

from __future__ import annotations

from collections.abc import Sequence

from evaltui.runs.history import CaseHistory
from evaltui.runs.listing import when
from evaltui.text.lines import Span, pad
from evaltui.text.outcomes import TONES
from evaltui.text.values import visible
from evaltui.tui.pages.writer import LABEL, Page
from evaltui.workbench.histories import CasePast


def write_history_rows(page: Page, past: CasePast | None, *, passed: bool) -> None:
    """The last runs as bars, and for a case that has not passed when it last did, and what changed since.

    Each in one row, also while it is not known yet: what is below must not move away from under the mouse.
    """
    page.blank()
    _row(page, "history", _bars(past))
    if not passed:
        _row(page, "last passed", _last_passed(past))
        _row(page, "since then", _since_then(past))


def write_history(page: Page, past: CasePast) -> None:
    """The same for a case that was not run in this sitting."""
    page.blank()
    page.labelled("history", _bars(past))
    page.labelled("last passed", _last_passed(past))
    if past.history.changed_since:
        page.labelled("since then", _since_then(past))


def _row(page: Page, label: str, spans: Sequence[Span]) -> None:
    page.row(("  " + pad(label, LABEL), "dim"), *spans)


def _bars(past: CasePast | None) -> list[Span]:
    if past is None or not past.history.points:
        return [("…" if past is None else "no run of it was kept", "dim")]
    history = past.history
    metric = _metric(history)
    bars: list[Span] = [
        (bar, TONES[point.summary.status])
        for bar, point in zip(history.sparkline(metric), history.points, strict=True)
    ]
    runs = "1 run" if len(bars) == 1 else f"last {len(bars)} runs"
    return [*bars, (f"  {runs}, {visible(metric) if metric else 'the share that passed'}", "dim")]


def _metric(history: CaseHistory) -> str:
    """The metric that is lowest now says most; without scores, none."""
    scores = history.points[-1].summary.scores
    return min(scores, key=scores.__getitem__) if scores else ""


def _last_passed(past: CasePast | None) -> list[Span]:
    if past is None or not past.history.points:
        return [("…" if past is None else "never", "dim")]
    history = past.history
    point = history.last_passed
    if point is None:
        return [
            ("never" if len(history.points) == 1 else f"in none of the last {len(history.points)} runs", "")
        ]
    ago = len(history.points) - 1 - history.points.index(point)
    runs = "in the last run" if ago == 0 else "in the run before" if ago == 1 else f"{ago} runs ago"
    name = past.name_of(point)
    return [(runs, ""), (f", {f'{visible(name)}, ' if name else ''}{when(point.started)}", "dim")]


def _since_then(past: CasePast | None) -> list[Span]:
    """What is different since it last passed, besides what the agent did."""
    if past is None or past.history.last_passed is None:
        return [("…" if past is None else "–", "dim")]
    changed = past.history.changed_since
    return (
        [("; ".join(map(visible, changed)), "")] if changed else [("nothing is known to have changed", "dim")]
    )
