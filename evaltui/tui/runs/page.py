"""The page of a run, and its preview in a list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from evaltui.core.model.outcome import Status
from evaltui.core.statistics import wilson
from evaltui.runs.listing import FailedCase, RunRow
from evaltui.text.figures import (
    counted,
    show_interval,
    show_moment,
    show_number,
    show_score,
    some_of,
)
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, Span
from evaltui.text.outcomes import counts, glyph
from evaltui.text.values import visible
from evaltui.tui.widgets.writer import Page
from evaltui.views.run import lasted, rate_bar, rate_figure, selected_in

_ONE_BELOW_THE_OTHER = 60


def write_side(page: Page, row: RunRow, failed: Sequence[FailedCase] | None, height: int) -> None:
    """Writes the cases of a run that did not pass, each with the reason, and the run's facts below; `failed`
    is None while it is being read."""
    facts = Page(page.width)
    write_run(facts, row)
    if not row.problem:
        _write_failures(page, row, failed, height - len(facts.lines) - 1)
        page.blank()
    page.lines += facts.lines


def write_run_preview(
    page: Page, row: RunRow, failed: Sequence[FailedCase] | None, now: datetime, height: int
) -> None:
    """Writes a run in `height` lines: its time, its counts, the failed cases; then its facts."""
    moment: Line = [(f"{show_moment(row.started, now)}   {lasted(row, now)}", "muted")]
    page.ends([(visible(row.title), "bold")], [] if row.problem else moment)
    if row.problem:
        page.text([(visible(row.problem), "error")])
        return
    interval: Line = []
    if row.ending != "going on" and row.totals.evaluated:
        low, high = wilson(row.totals.passed, row.totals.evaluated)
        interval = [(f"  {show_interval(low, high)}", "muted")]
    selected: Span = (f"   {selected_in(row)}", "muted")
    page.row(
        *counts(row.totals.counts),
        ("   ", ""),
        rate_figure(row),
        (" ", ""),
        *rate_bar(row),
        *interval,
        selected,
    )
    page.blank()
    _write_failures(page, row, failed, height)
    facts = Page(page.width)
    write_run(facts, row)
    if len(page.lines) + 1 + len(facts.lines) <= height:
        page.blank()
        page.lines += facts.lines


def _write_failures(page: Page, row: RunRow, failed: Sequence[FailedCase] | None, height: int) -> None:
    if failed is None:
        page.row(("Reading the run…", "muted"))
        return
    count = row.totals.cases - row.totals.passed
    if not count:
        passed = [glyph(Status.PASSED), (" All cases passed", "")]
        page.row(*(passed if row.totals.cases else [("No result yet", "muted")]))
        return
    page.row((f"{counted(count, 'case')} did not pass", "bold"))
    shown = 0
    for case in failed:
        part = Page(page.width)
        part.row(glyph(case.status), (f" {visible(case.eval_id)}", ""))
        part.block([(visible(case.why), "muted")], 2)
        if len(page.lines) + len(part.lines) + 1 > height:
            break
        page.lines += part.lines
        shown += 1
    if shown < count:
        page.row(
            (f"and {show_number(count - shown)} more" if shown else f"{counted(count, 'case')}", "muted")
        )


def write_run(page: Page, row: RunRow) -> None:
    """Writes the facts of a run: its cases, model, config, and whether the agent has changed."""
    page.labelled("log", [(visible(row.id), "muted")])
    if row.problem:
        page.labelled("problem", [(visible(row.problem), "error")])
        return
    done = row.totals.cases
    all_of_them = counted(row.selected, "case")
    how_many = f"{show_number(done)} of {all_of_them}" if done != row.selected else all_of_them
    rest: Line = [(f"   {key_of('resume_run')}", "bold accent"), (" resume", "muted")]
    page.labelled(
        "cases",
        [
            (how_many, ""),
            (f"  {selected_in(row)}", "muted"),
            *(rest if row.ending == "interrupted" and done != row.selected else []),
        ],
    )
    if row.model:
        page.labelled("model", [(visible(row.model), "")])
    if row.kind.in_process:
        page.labelled("agent", [("object, run in the process that evaluated it", "")])
    elif words := row.kind.in_words:
        page.labelled("agent", [(visible(", ".join(words)), "")])
    if row.totals.tokens is not None:
        page.labelled("tokens", [(show_number(round(row.totals.tokens)), "")])
    if row.totals.total_cost is not None:
        page.labelled("cost", [(str(row.totals.total_cost), "")])
    _write_criteria(page, list(_criteria(row)))
    if row.changed:
        names = some_of([visible(name) for name in row.changed])
        page.labelled("stale", [(names, ""), (" changed after this run", "muted")])


def _write_criteria(page: Page, criteria: Sequence[tuple[str, str]]) -> None:
    """Writes the criteria on one line, or on one line each in a narrow page."""
    if criteria and page.width < _ONE_BELOW_THE_OTHER:
        page.row(("  config", "muted"))
        for name, threshold in criteria:
            page.ends([(f"    {name}", "")], [(threshold, "muted")])
    elif criteria:
        pairs = [((name, ""), (f"  {threshold}   ", "muted")) for name, threshold in criteria]
        page.labelled("config", [span for pair in pairs for span in pair])


def _criteria(row: RunRow) -> Iterator[tuple[str, str]]:
    """The metrics of the configs of a run, each with its threshold."""
    criteria_names: dict[tuple[str, str], None] = {}
    for eval_set in row.sets:
        criteria = (eval_set.config or {}).get("criteria")
        for name, value in criteria.items() if isinstance(criteria, dict) else ():
            threshold = value.get("threshold") if isinstance(value, dict) else value
            has_threshold = isinstance(threshold, int | float) and not isinstance(threshold, bool)
            criteria_names[visible(str(name)), show_score(threshold) if has_threshold else ""] = None
    yield from criteria_names
