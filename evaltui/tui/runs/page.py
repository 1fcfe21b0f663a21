"""The page of a run, its preview in a list, and plots over runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from enum import StrEnum

from evaltui.core.model.json_values import is_number
from evaltui.core.model.outcome import Status
from evaltui.core.statistics import wilson
from evaltui.runs.listing import RunRow
from evaltui.text.figures import (
    counted,
    short_list,
    show_duration,
    show_interval,
    show_moment,
    show_money,
    show_number,
    show_points,
    show_rate,
    show_score,
)
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, Span, fill_line
from evaltui.text.outcomes import NOT_RUN, counts_line, glyph
from evaltui.text.plots import column_plot
from evaltui.text.values import visible
from evaltui.tui.widgets.writer import Page
from evaltui.views.run import duration_text, rate_bar, rate_figure, rate_interval, selection_text
from evaltui.workbench.runs.run_list import RunDetails
from evaltui.workbench.state import scale_to_shares

_MIN_WIDTH_BESIDE = 60


def write_side(page: Page, row: RunRow, details: RunDetails | None, height: int) -> None:
    """Writes the cases of a run that did not pass, each with the reason, and the run's facts below; `details`
    are None while they are being read."""
    facts = Page(page.width)
    write_run(facts, row, details)
    if not row.problem:
        _write_failures(page, row, details, height - len(facts.lines) - 1)
        page.blank()
    page.lines += facts.lines


def write_run_preview(
    page: Page, row: RunRow, details: RunDetails | None, now: datetime, height: int
) -> None:
    """Writes a run in `height` lines: its time, its counts, the failed cases; then its facts."""
    moment: Line = [(f"{show_moment(row.started, now)}   {duration_text(row, now)}", "muted")]
    page.ends([(visible(row.title), "bold")], [] if row.problem else moment)
    if row.problem:
        page.text([(visible(row.problem), "error")])
        return
    interval: Line = [(f"  {text}", "muted")] if (text := rate_interval(row)) else []
    selected: Span = (f"   {selection_text(row)}", "muted")
    page.row(
        *counts_line(row.counts),
        ("   ", ""),
        rate_figure(row),
        (" ", ""),
        *rate_bar(row),
        *interval,
        selected,
    )
    page.blank()
    _write_failures(page, row, details, height)
    facts = Page(page.width)
    write_run(facts, row, details)
    if len(page.lines) + 1 + len(facts.lines) <= height:
        page.blank()
        page.lines += facts.lines


def _write_failures(page: Page, row: RunRow, details: RunDetails | None, height: int) -> None:
    if details is None:
        page.row(("Reading the run…", "muted"))
        return
    count, not_run = row.totals.cases - row.totals.passed, row.not_run
    if not_run:
        page.row(glyph(NOT_RUN), (f" {counted(not_run, 'case')} did not run", "bold"))
    elif not row.totals.cases:
        page.row(("No result yet", "muted"))
    elif not count:
        page.row(glyph(Status.PASSED), (" All cases passed", ""))
    if not count:
        return
    page.row((f"{counted(count, 'case')} did not pass", "bold"))
    shown = 0
    for case in details.failures:
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


def write_run(page: Page, row: RunRow, details: RunDetails | None) -> None:
    """Writes the facts of a run: its cases, model, config, and whether the agent has changed."""
    for note in details.notes if details else ():
        page.labelled("note", [(visible(note), "warning")])
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
            (f"  {selection_text(row)}", "muted"),
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
        names = short_list([visible(name) for name in row.changed])
        page.labelled("stale", [(names, ""), (" changed after this run", "muted")])


def _write_criteria(page: Page, criteria: Sequence[tuple[str, str]]) -> None:
    """Writes the criteria on one line, or on one line each in a narrow page."""
    if criteria and page.width < _MIN_WIDTH_BESIDE:
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
            shown = show_score(threshold) if is_number(threshold) else ""
            criteria_names[visible(str(name)), shown] = None
    yield from criteria_names


PLOT_ROWS = 8
# Cells of what stands beside the plot and the table, and the width from which on it does.
SIDE_WIDTH, _MIN_WIDTH_WITH_FACTS = 44, 100


class RunPlot(StrEnum):
    """The figure of a plot over runs."""

    RATE = "pass rate"
    COST = "cost"
    LATENCY = "time of a case"

    @property
    def following(self) -> RunPlot:
        every = list(RunPlot)
        return every[(every.index(self) + 1) % len(every)]

    def of(self, row: RunRow) -> float | None:
        """The figure of a run; None where it is unknown, or incomplete."""
        match self:
            case RunPlot.RATE:
                return pass_rate(row)
            case RunPlot.COST:
                cost = row.totals.total_cost
                return cost.usd if cost is not None and cost.is_exact else None
            case RunPlot.LATENCY:
                return row.totals.p50


def pass_rate(row: RunRow) -> float | None:
    """The pass rate of the evaluated cases, None without one; for a run whose cases did not all run, of
    passed ones among all, as in `rate_bar`."""
    among = row.selected if row.not_run else row.totals.evaluated
    return row.totals.passed / among if row.totals.evaluated else None


def write_plot(
    page: Page,
    height: int,
    rows: Sequence[RunRow],
    current: RunRow | None,
    base: RunRow | None,
    plot: RunPlot = RunPlot.RATE,
    sets: Collection[str] = (),
) -> None:
    """Writes a figure of runs, the newest first in `rows`, in a number of lines, and at the right the figures
    of the current one.

    In a plot of pass rates, runs without cases are left out, and a run of some cases only is hollow; `sets`
    are the paths of all sets. In others, a run without the figure is a gap.
    """
    shown = [(row, plot.of(row)) for row in reversed(rows)]
    beside: list[Line] = []
    values: list[float | None]
    top, partial = "", set[int]()
    if plot is RunPlot.RATE:
        shown = [(row, rate) for row, rate in shown if rate is not None]
        if not shown:
            return
        values = [rate for _, rate in shown]
        partial = {place for place, (row, _) in enumerate(shown) if not row.is_whole(sets)}
        if page.width >= _MIN_WIDTH_WITH_FACTS:
            beside = _beside_plot(rows, current, base)
    else:
        show = show_money if plot is RunPlot.COST else show_duration
        most = max((value for _, value in shown if value is not None), default=None)
        if most is None:
            page.row((f"{plot[0].upper()}{plot[1:]} of no run is known", "muted"))
            return
        values, top = scale_to_shares([value for _, value in shown]), show(most)
        if page.width >= _MIN_WIDTH_WITH_FACTS and current is not None:
            beside = _beside_figures(plot, show, current, base)
    roles = ["accent" if row is current else "line" for row, _ in shown]
    marks: list[Span] = [("●", "accent") if row is base else ("", "") for row, _ in shown]
    room = page.width - (SIDE_WIDTH if beside else 0)
    for number, line in enumerate(column_plot(values, roles, room, height - 1, marks, top, partial)):
        page.lines.append([*fill_line(line, room), *(beside[number] if number < len(beside) else [])])


def _beside_figures(
    plot: RunPlot, show: Callable[[float | None], str], current: RunRow, base: RunRow | None
) -> list[Line]:
    lines: list[Line] = [
        [(visible(current.title), "bold")],
        [(show(plot.of(current)), "bold accent"), (f"   {plot}", "muted")],
    ]
    if base is not None and base is not current:
        lines += [[], _base_text(base, show(plot.of(base)))]
    return lines


def _base_text(base: RunRow, figure: str) -> Line:
    return [("base ● ", "muted"), (visible(base.title), ""), (f"  {figure}", "muted")]


def _beside_plot(rows: Sequence[RunRow], current: RunRow | None, base: RunRow | None) -> list[Line]:
    if current is None or (rate := pass_rate(current)) is None:
        return []
    passed, done = current.totals.passed, current.totals.evaluated
    if current.not_run:
        # As in the list: a rate of those that ran would look like one of all.
        counts = f"{passed}/{current.selected} passed, {show_number(current.not_run)} not run"
        return [[(visible(current.title), "bold")], [(counts, "muted")]]
    others = current.totals.counts.get(Status.NOT_EVALUATED, 0)
    rest = f", {show_number(others)} not evaluated" if others else ""
    lines: list[Line] = [
        [(visible(current.title), "bold")],
        [
            (show_rate(rate), "bold accent"),
            (f" ({show_interval(*wilson(passed, done))})   {passed}/{done} passed{rest}", "muted"),
        ],
    ]
    if base is not None and base is not current and (before := pass_rate(base)) is not None:
        lines += [[], _base_text(base, rate_figure(base)[0].strip())]
        if _have_same_cases(current, base):
            points = round((rate - before) * 100)
            role = "success" if points > 0 else "error" if points < 0 else "muted"
            change = show_points(before, rate) if points else "no change"
            lines.append([(change, f"bold {role}"), (" to the base", "muted")])
        else:
            lines.append([("other cases than the base", "muted")])
    whole = [row for row in rows if row.ending == "over" and not row.not_run]
    alike = [(own, row) for row in whole if _have_same_cases(row, current) and (own := pass_rate(row))]
    if alike:
        best, of = max(alike, key=lambda rated: rated[0])
        lines += [[], [("best ", "muted"), (show_rate(best), ""), (f"  {visible(of.title)}", "muted")]]
    return lines


def _have_same_cases(first: RunRow, second: RunRow) -> bool:
    """Whether the pass rates of two runs are of the same cases: both have them, and as many verdicts."""
    mine, theirs = ({(run.path, *run.eval_ids) for run in row.sets} for row in (first, second))
    return mine == theirs and first.totals.evaluated == second.totals.evaluated
