"""What a run says: its facts, its sets and cases in a line, its tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC
from typing import NamedTuple

from evaltui.core.cost.cost_lines import estimate, is_worth_telling
from evaltui.core.model.outcome import CaseResult, Status, worst_status
from evaltui.runs.listing import RunRow
from evaltui.runs.report import RunReport
from evaltui.runs.run_header import SelectedSet
from evaltui.text.figures import UNKNOWN, counted, show_duration
from evaltui.text.lines import Line, Span, cells, cut
from evaltui.text.outcomes import ROLES, RUNNING, glyph
from evaltui.text.plots import bar
from evaltui.text.values import visible

# Tags may be as many as tickets.
MOST_TAGS = 40
_BAR = 10
# Runs of cases from which on a rate says something.
_LEAST = 2


class Fact(NamedTuple):
    """What ran, or what came of it."""

    label: str
    text: str
    note: str = ""
    """Where a figure is from."""


def run_facts(report: RunReport) -> dict[str, Fact]:
    """By label; what is not known, or says nothing, is left out."""
    rates, spent = report.rates, report.spent
    says_rates = rates is not None and (rates.runs or rates.cases).of >= _LEAST
    has_calls = report.uses_recordings or any(vars(report.calls).values())
    has_cost = spent is not None and is_worth_telling(spent)
    facts = (
        Fact("started", report.started.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")),
        Fact("took", "" if report.seconds is None else show_duration(report.seconds)),
        Fact("pass rate", rates.in_words if rates and says_rates else ""),
        Fact("mean scores", rates.scores_in_words if rates and says_rates else ""),
        Fact("model", report.model),
        Fact("python", report.python),
        Fact("recordings", report.settings.record if report.uses_recordings else ""),
        Fact("calls", str(report.calls) if has_calls else ""),
        Fact("cost", str(spent.cost) if spent and has_cost else "", estimate(spent) if spent else ""),
        Fact("log", report.log or ""),
    )
    return {fact.label: fact for fact in facts if fact.text}


def run_mark(row: RunRow) -> Span:
    """The glyph of a run in a list."""
    if row.problem:
        return glyph("ERROR")
    if row.ending == "going on":
        return glyph(RUNNING)
    status = row.status
    if status is None and row.totals.cases == row.selected:
        # It was ended before it could say so, and yet every case has its result.
        status = worst_status(Status(one) for one, number in row.totals.counts.items() if number)
    return ("–", "warning") if status is None else glyph(status)


def selected_in(row: RunRow) -> str:
    """`lights, thermostat:set_bedroom, garden (3 cases)`: its sets, and of one in part the cases."""
    shared = Counter(eval_set.eval_set_id for eval_set in row.sets)
    parts = []
    for eval_set in row.sets:
        name = eval_set.eval_set_id if shared[eval_set.eval_set_id] == 1 else eval_set.path
        ids = eval_set.eval_ids
        some = f":{ids[0]}" if len(ids) == 1 else f" ({counted(len(ids), 'case')})"
        parts.append(name if eval_set.whole or row.is_of_adk else f"{name}{some}")
    return visible(", ".join(parts))


def outcome_span(case: CaseResult) -> Span:
    """`✗ 3/5`: the verdict, and of several repeats how many passed."""
    mark, role = glyph(case.status)
    several = f" {case.passed_repeats}/{len(case.repeats)}" if len(case.repeats) > 1 else ""
    return f"{mark}{several}", role


def config_text(eval_set: SelectedSet) -> str:
    """The config of a set, and the criteria that it has by default: `defaults: response_match_score 0.8`."""
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


def tag_lines(report: RunReport, width: int) -> Iterator[Line]:
    """A line for each tag: how many of its cases passed."""
    tags = report.tags
    totals = [*tags.values()][:MOST_TAGS]
    names = [visible(f"#{tag}") for tag in [*tags][:MOST_TAGS]]
    widest = min(max((cells([(name, "")]) for name in names), default=0), width // 3)
    figures = [f"{one.in_words} passed" for one in totals]
    shown = [str(one.case_rate or UNKNOWN) for one in totals]
    column, of_rates = (max(map(len, texts), default=0) for texts in (figures, shown))
    for one, name, figure, rate in zip(totals, names, figures, shown, strict=True):
        role = ROLES[Status.PASSED if one.passed == one.cases + one.open_cases else Status.FAILED]
        short = cut([(name, "")], widest)
        yield [
            ("tag  ", "muted"),
            *short,
            (" " * (widest - cells(short)), ""),
            (f"  {figure:>{column}}  {rate:<{of_rates}}  ", ""),
            *(bar(one.case_rate.rate, _BAR, role) if one.case_rate else ()),
        ]
    if len(tags) > MOST_TAGS:
        yield [(f"     and {counted(len(tags) - MOST_TAGS, 'more tag')}", "muted")]
