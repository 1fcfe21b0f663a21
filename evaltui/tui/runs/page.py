"""One run in full, and its preview in a list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from evaltui.core.model.outcome import Status
from evaltui.core.statistics.estimates import wilson
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
    """What did not pass in a run, each with why, and below it what the run was; `failed` is None while it is
    being read."""
    facts = Page(page.width)
    write_run(facts, row)
    if not row.problem:
        _write_failures(page, row, failed, height - len(facts.lines) - 1)
        page.blank()
    page.lines += facts.lines


def write_run_preview(
    page: Page, row: RunRow, failed: Sequence[FailedCase] | None, now: datetime, height: int
) -> None:
    """A run in so many lines: when it was, how its cases came out, what did not pass; then what it was."""
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
        one = Page(page.width)
        one.row(glyph(case.status), (f" {visible(case.eval_id)}", ""))
        one.block([(visible(case.why), "muted")], 2)
        if len(page.lines) + len(one.lines) + 1 > height:
            break
        page.lines += one.lines
        shown += 1
    if shown < count:
        page.row(
            (f"and {show_number(count - shown)} more" if shown else f"{counted(count, 'case')}", "muted")
        )


def write_run(page: Page, row: RunRow) -> None:
    """What a run was: its cases, model, config, and whether the agent is still the same."""
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
    """On one line, or on one each where there is little room."""
    if criteria and page.width < _ONE_BELOW_THE_OTHER:
        page.row(("  config", "muted"))
        for name, threshold in criteria:
            page.ends([(f"    {name}", "")], [(threshold, "muted")])
    elif criteria:
        pairs = [((name, ""), (f"  {threshold}   ", "muted")) for name, threshold in criteria]
        page.labelled("config", [span for pair in pairs for span in pair])


def _criteria(row: RunRow) -> Iterator[tuple[str, str]]:
    """The metrics of the configs of a run, each with its threshold."""
    found: dict[tuple[str, str], None] = {}
    for one in row.sets:
        criteria = (one.config or {}).get("criteria")
        for name, value in criteria.items() if isinstance(criteria, dict) else ():
            threshold = value.get("threshold") if isinstance(value, dict) else value
            known = isinstance(threshold, int | float) and not isinstance(threshold, bool)
            found[visible(str(name)), show_score(threshold) if known else ""] = None
    yield from found
