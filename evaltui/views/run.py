"""A run as rows: its facts, its line in a list, its tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from evaltui.core.compare.failure_groups import FailureGroup
from evaltui.core.compare.totals import Totals
from evaltui.core.cost.cost_lines import estimate_note, may_cost
from evaltui.core.model.outcome import CaseResult, Status, worst_status
from evaltui.core.model.spending import Cost, Payer, Spending
from evaltui.core.statistics import wilson
from evaltui.runs.listing import RunRow
from evaltui.runs.report import RunReport
from evaltui.runs.run_header import SelectedSet
from evaltui.text.columns import Column, Table
from evaltui.text.figures import (
    UNKNOWN,
    counted,
    short_list,
    show_duration,
    show_elapsed,
    show_interval,
    show_moment,
    show_number,
    show_rate,
)
from evaltui.text.lines import Line, Span
from evaltui.text.outcomes import ROLES, RUNNING, glyph
from evaltui.text.plots import bar
from evaltui.text.values import visible

# Tags may be as many as tickets.
MAX_TAGS = 40
# Cells of a reason, and of the cases beside it, where there is little room.
_MIN_REASON = 24
_BAR_WIDTH = 10
# Cells of a pass rate in a list of runs, and of its bar.
_RATE_WIDTH, _RATE_BAR = 4, 8
_UNKNOWN_RATE = (f"{UNKNOWN:>{_RATE_WIDTH}}", "faint")
# Runs of cases from which on a rate says something.
_MIN_RUNS = 2


class Fact(NamedTuple):
    """A labelled fact about a run, such as a setting or a figure."""

    label: str
    text: str
    note: str = ""
    """The source of the figure."""


def run_facts(report: RunReport) -> dict[str, Fact]:
    """The facts about a run, by label, without unknown ones."""
    rates, spent = report.rates, report.spent
    says_rates = rates is not None and (rates.runs or rates.cases).of >= _MIN_RUNS
    has_calls = report.uses_recordings or any(vars(report.calls).values())
    has_cost = spent is not None and may_cost(spent)
    facts = (
        Fact("started", report.started.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")),
        Fact("took", "" if report.seconds is None else show_duration(report.seconds)),
        Fact("pass rate", rates.in_words if rates and says_rates else ""),
        Fact("mean scores", rates.scores_in_words if rates and says_rates else ""),
        Fact("model", report.model),
        Fact("judge", _models(spent, "judge")),
        Fact("simulated user", _models(spent, "simulated user")),
        Fact("python", report.python),
        Fact("recordings", report.settings.record if report.uses_recordings else ""),
        Fact("calls", str(report.calls) if has_calls else ""),
        Fact("cost", str(spent.cost) if spent and has_cost else "", estimate_note(spent) if spent else ""),
        Fact("log", report.log or ""),
    )
    return {fact.label: fact for fact in facts if fact.text}


def _models(spent: Spending | None, payer: Payer) -> str:
    """The requested models of a payer; "" where it asked none."""
    return short_list(list(spent.models_of(payer))) if spent else ""


def run_mark(row: RunRow) -> Span:
    """The glyph of a run in a list."""
    if row.problem:
        return glyph("ERROR")
    if row.ending == "going on":
        return glyph(RUNNING)
    status = row.status
    if status is None and row.totals.cases == row.selected:
        # It was ended before it could say so, and yet every case has its result.
        status = worst_status(Status(name) for name, number in row.totals.counts.items() if number)
    return ("–", "warning") if status is None else glyph(status)


class ListedRun(NamedTuple):
    """A run in a list."""

    row: RunRow
    now: datetime
    changed: Sequence[str] = ()
    """The names of the files that changed since the previous run."""


def run_table(runs: Sequence[ListedRun], width: int) -> Table[ListedRun]:
    """The table for a list of runs. The column of changes is dropped before that of costs."""
    has_costs = {run.row.totals.total_cost for run in runs} - {None, Cost(0.0)}
    columns = [
        replace(column, drop_rank=2) if column.head == "cost" and has_costs else column
        for column in RUN_COLUMNS
    ]
    return Table(columns, runs, width)


def run_line(run: ListedRun, table: Table[ListedRun]) -> Line:
    """The line of a run in its table."""
    if run.row.problem:
        return table.line(run, _UNREADABLE_COLUMNS, (f"unreadable: {visible(run.row.problem)}", "error"))
    return table.line(run)


def rate_figure(row: RunRow) -> Span:
    """The pass rate, ` 44%`; for a run in progress, the share of finished cases; for a run whose cases did
    not all run, `1/3`: a rate of those that ran would look like one of all."""
    done, evaluated = row.totals.cases, row.totals.evaluated
    if row.ending == "going on":
        figures = f"{done}/{row.selected}"
        shown = figures if len(figures) <= _RATE_WIDTH else show_rate(done / max(1, row.selected))
        return f"{shown:>{_RATE_WIDTH}}", "muted"
    if row.not_run:
        figures = f"{row.totals.passed}/{row.selected}"
        return (f"{figures:>{_RATE_WIDTH}}", "muted") if len(figures) <= _RATE_WIDTH else _UNKNOWN_RATE
    return (
        (f"{show_rate(row.totals.passed / evaluated):>{_RATE_WIDTH}}", "bold") if evaluated else _UNKNOWN_RATE
    )


def rate_bar(row: RunRow) -> Line:
    """The pass rate as a bar, `━━━━─────`; for a run in progress, the share of finished cases, and for a run
    whose cases did not all run, of passed ones among all."""
    totals = row.totals
    if row.ending == "going on":
        return bar(totals.cases / max(1, row.selected), _RATE_BAR, "accent")
    if row.not_run:
        return bar(totals.passed / row.selected, _RATE_BAR, "success")
    return bar(totals.passed / totals.evaluated, _RATE_BAR, "success") if totals.evaluated else []


def duration_text(row: RunRow, now: datetime) -> str:
    """The duration of a run; for an interrupted run, the number of finished cases."""
    if row.ending == "going on":
        return show_elapsed(max(0.0, (now - row.started).total_seconds()))
    if row.ending == "interrupted":
        return f"{row.totals.cases}/{row.selected} run"
    return show_duration(row.seconds)


def _number_text(run: ListedRun) -> str:
    return "adk" if run.row.is_of_adk else str(run.row.number or UNKNOWN)


def _interval_text(run: ListedRun) -> str:
    interval = rate_interval(run.row)
    return f"({interval})" if interval else ""


def rate_interval(row: RunRow) -> str:
    """The interval of the pass rate: `74–90%`; "" without a rate."""
    totals = row.totals
    if row.ending == "going on" or row.not_run or not totals.evaluated:
        return ""
    return show_interval(*wilson(totals.passed, totals.evaluated))


def _time_line(run: ListedRun) -> Line:
    return [(duration_text(run.row, run.now), "warning" if run.row.ending == "interrupted" else "muted")]


def _cost_line(run: ListedRun) -> Line:
    cost = run.row.totals.total_cost
    is_known = cost is not None and cost.usd is not None
    return [(cost.short if cost else UNKNOWN, "muted" if is_known else "faint")]


def _changes_line(run: ListedRun) -> Line:
    return [(", ".join(map(visible, run.changed)) or UNKNOWN, "" if run.changed else "faint")]


def _count_column(status: str, gap: int) -> Column[ListedRun]:
    def cell(run: ListedRun) -> Line:
        number = run.row.totals.counts.get(status, 0)
        return [(str(number), ROLES[status] if number else "faint")]

    return Column(glyph(status)[0], cell, 2, 9, head_role=ROLES[status], gap=gap, align_right=True)


RUN_COLUMNS: tuple[Column[ListedRun], ...] = (
    Column("", lambda run: [run_mark(run.row)], 1, gap=0),
    Column("run", _number_text, 4, role="bold", gap=1),
    Column("when", lambda run: show_moment(run.row.started, run.now), 12),
    Column(
        "name", lambda run: visible(run.row.name or run.row.kind.variant), 4, 20, drop_rank=1, role="bold"
    ),
    Column("what", lambda run: selection_text(run.row), 4, 12, 28, drop_rank=5, role="muted"),
    _count_column("PASSED", 2),
    _count_column("FAILED", 1),
    _count_column("ERROR", 1),
    _count_column("FLAKY", 1),
    Column("pass rate", lambda run: [rate_figure(run.row)], _RATE_WIDTH, short_head="rate"),
    Column("", _interval_text, len("(99–100%)"), drop_rank=4, role="muted", gap=1),
    Column("", lambda run: rate_bar(run.row), _RATE_BAR, drop_rank=6, gap=1),
    Column("time", _time_line, 10, align_right=True),
    Column("cost", _cost_line, 8, drop_rank=7, align_right=True),
    Column("changed since previous run", _changes_line, 10, spare_max=26, drop_rank=3, short_head="changed"),
)
"""The columns of a list of runs."""
# Of a run that cannot be read, those until its moment.
_UNREADABLE_COLUMNS = 3


def selection_text(row: RunRow) -> str:
    """The sets of a run, and the selected cases of incomplete sets: `lights, thermostat:set_bedroom, garden
    (3 cases)`."""
    shared = Counter(eval_set.eval_set_id for eval_set in row.sets)
    parts = []
    for eval_set in row.sets:
        name = eval_set.eval_set_id if shared[eval_set.eval_set_id] == 1 else eval_set.path
        ids = eval_set.eval_ids
        some = f":{ids[0]}" if len(ids) == 1 else f" ({counted(len(ids), 'case')})"
        parts.append(name if eval_set.whole or row.is_of_adk else f"{name}{some}")
    return visible(", ".join(parts))


def outcome_span(case: CaseResult) -> Span:
    """The outcome of a case, with the number of passed repeats if there are several: `✗ 3/5`."""
    mark, role = glyph(case.status)
    several = f" {case.passed_repeats}/{len(case.repeats)}" if len(case.repeats) > 1 else ""
    return f"{mark}{several}", role


def config_text(eval_set: SelectedSet) -> str:
    """The config of a set, and its default criteria: `defaults: response_match_score 0.8`."""
    criteria = (eval_set.config or {}).get("criteria", {})
    if eval_set.defaulted is None:
        logged = ", ".join(_criterion(name, criterion) for name, criterion in criteria.items())
        return f"as in the run log: {logged or UNKNOWN}"
    defaults = ", ".join(_criterion(name, criteria.get(name)) for name in eval_set.defaulted)
    if eval_set.config_path is None:
        unused = f"; not used: {visible(eval_set.not_used)}" if eval_set.not_used else ""
        return f"defaults: {defaults}{unused}" if defaults else "none"
    path = visible(eval_set.config_path)
    return f"{path}, by default: {defaults}" if defaults else path


def _criterion(name: str, value: object) -> str:
    threshold = value.get("threshold") if isinstance(value, dict) else value
    return visible(name if threshold is None else f"{name} {threshold}")


def failure_lines(groups: Sequence[FailureGroup], width: int) -> Iterator[Line]:
    """The failures of a run by reason: their number, and a line for each group with its first cases.

    None where no two failures have one reason, since the cases themselves say it.
    """
    failures = sum(len(group.cases) for group in groups)
    if len(groups) == failures:
        return
    yield [(f"{counted(failures, 'failure')}, {counted(len(groups), 'reason')}", "bold")]
    columns: Sequence[Column[FailureGroup]] = (
        Column("", lambda group: show_number(len(group.cases)), 0, 12, align_right=True),
        Column("", lambda group: visible(group.reason), 0, max(_MIN_REASON, width - _MIN_REASON)),
        Column("", _cases_of_group, 0, spare_max=width, role="muted"),
    )
    rows = groups[:MAX_TAGS]
    table = Table(columns, rows, width)
    yield from map(table.line, rows)
    if len(groups) > MAX_TAGS:
        yield [(f"  and {counted(len(groups) - MAX_TAGS, 'more reason')}", "muted")]


def _cases_of_group(group: FailureGroup) -> str:
    return visible(short_list([case.eval_id for case in group.cases]))


def tag_lines(report: RunReport, width: int) -> Iterator[Line]:
    """A line for each tag with the number of passed cases."""
    tags = report.tags
    rows = [*tags.items()][:MAX_TAGS]
    columns: Sequence[Column[tuple[str, Totals]]] = (
        Column("", lambda row: "tag", 3, role="muted", gap=0),
        Column("", lambda row: visible(f"#{row[0]}"), 0, width // 3),
        Column("", lambda row: f"{row[1].in_words} passed", 0, width, align_right=True),
        Column("", lambda row: str(row[1].case_rate or UNKNOWN), 0, width),
        Column("", lambda row: _tag_bar(row[1]), _BAR_WIDTH),
    )
    table = Table(columns, rows, width)
    yield from map(table.line, rows)
    if len(tags) > MAX_TAGS:
        yield [(f"     and {counted(len(tags) - MAX_TAGS, 'more tag')}", "muted")]


def _tag_bar(total: Totals) -> Line:
    role = ROLES[Status.PASSED if total.passed == total.cases + total.open_cases else Status.FAILED]
    return bar(total.case_rate.rate, _BAR_WIDTH, role) if total.case_rate else []
