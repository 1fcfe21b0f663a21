"""Checks before a run: whether the metrics of configs can be computed here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from rich.cells import cell_len

from evaltui.core.metrics.declaration import MetricInfo, built_in
from evaltui.core.metrics.judges.rubrics import criterion_rubrics
from evaltui.core.metrics.registry import RUBRIC_TYPES, is_known
from evaltui.core.metrics.requirements import (
    Facts,
    MetricReadiness,
    Readiness,
    unmet_by_metric,
    unmet_by_user,
)
from evaltui.core.model.base_model import NOT_REPORTED
from evaltui.core.model.config import EvalConfig, EvalMetric
from evaltui.core.model.datasets import checks_unspecified
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.events import spoken_texts
from evaltui.core.model.json_values import field_of
from evaltui.core.model.stored_cases import StoredCase, StoredCases, ids_and_turns
from evaltui.text.figures import counted, short_list, show_number
from evaltui.text.lines import Line, Span, cut, pad, wrap_behind
from evaltui.text.values import visible


class CaseTraits(NamedTuple):
    """Properties of a case that metrics need.

    `turns_without_answer` count from 0; `rubric_types` are the types of the rubrics of the case and its
    turns, "" for rubrics without type.
    """

    eval_id: str
    turns_without_answer: tuple[int, ...]
    rubric_types: frozenset[str]
    expects_texts: bool
    """Whether a turn expects intermediate responses."""


def traits_of(cases: Sequence[EvalCase]) -> Iterator[CaseTraits]:
    """The traits of each case, in order."""
    stored = cases.stored if isinstance(cases, StoredCases) else map(StoredCase.of, cases)
    return (_data_traits(case.eval_id, case.data()) for case in stored)


STATED_IN: Mapping[str, str] = {"calls": "intermediate_data", "response": "final_response"}
"""The member of a turn with the expectations that a metric compares."""


def _any_states(cases: Sequence[EvalCase], name: str) -> bool:
    """Whether a case has a member in a turn, or an absent one is an expectation, too."""
    stored = cases.stored if isinstance(cases, StoredCases) else map(StoredCase.of, cases)
    return any(
        checks_unspecified(data) or any(field_of(turn, name) is not None for turn in data["conversation"])
        for case in stored
        if (data := case.data()).get("conversation")
    )


def _data_traits(eval_id: str, data: Mapping[str, Any]) -> CaseTraits:
    turns = data.get("conversation") or []
    rubrics = [
        *(data.get("rubrics") or ()),
        *(rubric for turn in turns for rubric in turn.get("rubrics") or ()),
    ]
    return CaseTraits(
        eval_id,
        tuple(
            number
            for number, turn in enumerate(turns)
            if not _has_text(field_of(turn, "final_response")) and checks_unspecified(data)
        ),
        frozenset(rubric.get("type") or "" for rubric in rubrics),
        any(_has_texts(field_of(turn, "intermediate_data")) for turn in turns),
    )


def _has_text(content: Mapping[str, Any] | None) -> bool:
    return bool(spoken_texts([content]))


def _has_texts(intermediate: Mapping[str, Any] | None) -> bool:
    contents = [{"parts": parts} for _, parts in field_of(intermediate, "intermediate_responses") or ()]
    contents += [event.get("content") for event in field_of(intermediate, "invocation_events") or ()]
    return any(map(_has_text, contents))


_ADD_TEXTS = "add intermediate_responses to a turn of one of these cases, or remove the metric"

SCENARIO = "conversation_scenario"
"""Name of the check for simulated users that cannot be played."""


@dataclass(frozen=True)
class SetToCheck:
    """Cases of a set to run, and the config that scores them; `path` is that of `CaseId`."""

    eval_set_id: str
    cases: Sequence[EvalCase]
    config: EvalConfig
    path: str = ""

    @property
    def known_as(self) -> str:
        return self.path or self.eval_set_id


@dataclass(frozen=True)
class CaseOfSet:
    """A case by its id and the id of its set."""

    eval_set_id: str
    eval_id: str


@dataclass(frozen=True)
class MetricCheck:
    """Whether a metric can be computed, checked before the run."""

    metric: str
    readiness: Readiness = field(metadata={"serialization_alias": "status"})
    why: str = ""
    """Why it cannot be computed, or a warning if it can."""
    fix: str = ""
    """The remedy."""
    optional: bool = False
    sets: tuple[str, ...] = ()
    """Ids of the sets with this check."""
    in_all: bool = field(default=True, metadata=NOT_REPORTED)
    """Whether these are all sets of the run."""
    cases: int = 0
    """Number of cases in these sets."""
    without: tuple[CaseOfSet, ...] = ()
    """Cases for which the metric cannot be evaluated."""
    withheld: bool = field(default=False, metadata=NOT_REPORTED)
    """Whether the metric is not tried at all."""
    is_left_out: bool = field(default=False, metadata=NOT_REPORTED)
    """Whether the cases may pass without the metric, because they state nothing for it and need not."""
    paths: tuple[str, ...] = field(default=(), metadata=NOT_REPORTED)
    """Paths of the sets as in `CaseId`."""

    @property
    def is_fine(self) -> bool:
        return self.is_left_out or (self.readiness is Readiness.RUNS and not self.why)

    @property
    def reason(self) -> str:
        """The reason and the remedy, as the reason of a metric's result."""
        return ". ".join(part for part in (self.why, self.fix) if part)


def preflight(sets: Sequence[SetToCheck], facts: Facts) -> tuple[MetricCheck, ...]:
    """The checks of the metrics in use, in the order of the configs; equal checks of several sets are
    joined."""
    sets = [eval_set for eval_set in sets if eval_set.cases]
    groups: dict[str, dict[tuple[MetricReadiness, bool], list[tuple[SetToCheck, int, MetricReadiness]]]] = {}
    for eval_set in sets:
        known_metrics = {
            SCENARIO,
            *(metric.metric_name for metric in eval_set.config.metrics() if is_known(metric)),
        }
        for name, finding, cases in _set_readiness(eval_set, facts):
            optional = name in eval_set.config.evaltui.optional and name in known_metrics
            alike = groups.setdefault(name, {}).setdefault((finding, optional), [])
            alike.append((eval_set, cases, finding))
    return tuple(
        MetricCheck(
            name,
            finding.readiness,
            finding.why,
            finding.fix,
            optional,
            tuple(eval_set.eval_set_id for eval_set, _, _ in alike),
            in_all=len(alike) == len(sets),
            cases=sum(cases for _, cases, _ in alike),
            without=tuple(
                CaseOfSet(eval_set.eval_set_id, eval_id)
                for eval_set, _, of_set in alike
                for eval_id in of_set.without
            ),
            withheld=finding.withheld,
            is_left_out=finding.is_left_out,
            paths=tuple(eval_set.known_as for eval_set, _, _ in alike),
        )
        for name, group in groups.items()
        for (finding, optional), alike in group.items()
    )


def withheld_metrics(checks: Iterable[MetricCheck], path: str) -> dict[str, str]:
    """The metrics that are not tried in a set, with reasons; SCENARIO for simulated users. `path` is that of
    `CaseId`."""
    return {check.metric: check.reason for check in checks if check.withheld and path in check.paths}


def problems_text(checks: Iterable[MetricCheck]) -> str:
    """The problems in short, without optional metrics: `safety_v1 and final_response_match_v2 cannot run`; ""
    for none."""
    by_kind: dict[str, dict[str, None]] = {}
    for check in checks:
        if not (check.is_fine or check.optional):
            by_kind.setdefault(_KINDS[check.readiness], {})[check.metric] = None
    named = {
        kind: " and ".join(names) if len(names) <= _MAX_NAMES else counted(len(names), "metric")
        for kind, names in by_kind.items()
    }
    return "; ".join(f"{named[kind]} {kind}" for kind in _KINDS.values() if kind in named)


_KINDS = {
    Readiness.CANNOT: "cannot run",
    Readiness.SOME_CASES: "cannot run for every case",
    Readiness.RUNS: "may not be meant so",
}
_MAX_NAMES = 2


def check_metric(info: MetricInfo, facts: Facts) -> MetricCheck:
    """The check of a metric as if a config used it with all its needs."""
    if info.judged is None:
        return MetricCheck(info.name, Readiness.RUNS)
    least = info.interval[0] if info.interval else 0.0
    config = EvalConfig(criteria={info.name: least})
    finding = unmet_by_metric(config.metrics()[0], config, facts, recorded=False) or MetricReadiness()
    return MetricCheck(info.name, finding.readiness, finding.why, finding.fix)


# One set


def _set_readiness(eval_set: SetToCheck, facts: Facts) -> Iterator[tuple[str, MetricReadiness, int]]:
    """The readiness of each metric of a set, and the number of its cases."""
    cases = _Cases(eval_set)
    recorded = eval_set.known_as in facts.recorded
    for metric in eval_set.config.metrics():
        finding = (
            unmet_by_metric(metric, eval_set.config, facts, recorded=recorded)
            or _data(metric, cases)
            or MetricReadiness()
        )
        yield metric.metric_name, finding, cases.count
    if cases.simulated and (problem := unmet_by_user(eval_set.config, facts, recorded)):
        yield SCENARIO, problem, len(cases.simulated)


class _Cases:
    """The traits of the cases of a set, computed once, if a metric needs them."""

    def __init__(self, eval_set: SetToCheck) -> None:
        self._set = eval_set
        self.count = len(eval_set.cases)
        self.simulated = [eval_id for eval_id, turns in ids_and_turns(eval_set.cases) if turns is None]
        self.scripted = [eval_id for eval_id, turns in ids_and_turns(eval_set.cases) if turns is not None]

    def any_states(self, name: str) -> bool:
        """Whether a case has a member in a turn, or an absent one is an expectation, too."""
        return _any_states(self._set.cases, name)

    @cached_property
    def traits(self) -> list[CaseTraits]:
        return list(traits_of(self._set.cases))

    @property
    def without_answers(self) -> list[str]:
        """The ids of cases in which a scored turn expects no answer."""
        config, eval_set_id = self._set.config, self._set.eval_set_id
        return [
            case.eval_id
            for case in self.traits
            if any(
                config.turn_mode(eval_set_id, case.eval_id, turn) != "context"
                for turn in case.turns_without_answer
            )
        ]


# What the cases hold


def _data(metric: EvalMetric, cases: _Cases) -> MetricReadiness | None:
    """The readiness of a metric that can be computed for some cases only, or for none; None for all."""
    info = built_in(metric)
    if info is None:
        return None
    if "expected turns" in info.needs and cases.simulated:
        return _some_cases(
            cases,
            cases.simulated,
            "the metric needs expected turns; cases with a simulated user have none",
            "Move these cases to another eval set, or list the metric under evaltui.optional",
        )
    if "intermediate responses" in info.needs:
        # Of other cases it says nothing, and their other metrics decide.
        if any(case.expects_texts for case in cases.traits):
            return None
        return MetricReadiness(Readiness.CANNOT, "no turn expects intermediate responses", _ADD_TEXTS)
    name = STATED_IN.get(info.compares)
    if name and metric.definition is None and cases.scripted and not cases.any_states(name):
        of_what = "expected calls" if info.compares == "calls" else "an expected response"
        return MetricReadiness(
            Readiness.CANNOT,
            f"no case has {of_what}, and none has to",
            "Add them to a case, or remove the metric",
            is_left_out=True,
        )
    if "a scenario" in info.needs and cases.scripted:
        return _some_cases(
            cases,
            cases.scripted,
            "the metric rates a simulated user; these cases have no conversation_scenario",
            "Move cases with a scenario to another eval set, or list the metric under evaltui.optional",
        )
    if metric.metric_name in RUBRIC_TYPES and not criterion_rubrics(metric):
        kind = RUBRIC_TYPES[metric.metric_name]
        return _some_cases(
            cases,
            [case.eval_id for case in cases.traits if not case.rubric_types & {"", kind}],
            "no rubrics for this metric",
            f'add "rubrics" to its criterion, to the case or to its turns, of type {kind} or without one',
        )
    if metric.metric_name == "final_response_match_v2" and not _includes_earlier_texts(metric):
        return _some_cases(
            cases,
            cases.without_answers,
            "some turns have no expected response",
            "add a final_response to these turns, or mark them as context",
        )
    return None


def _includes_earlier_texts(metric: EvalMetric) -> bool:
    return metric.criterion is not None and metric.criterion.include_intermediate_responses_in_final


def _some_cases(cases: _Cases, without: Sequence[str], why: str, fix: str) -> MetricReadiness | None:
    if not without:
        return None
    if len(without) == cases.count:
        return MetricReadiness(Readiness.CANNOT, why, fix)
    return MetricReadiness(Readiness.SOME_CASES, why, fix, without=tuple(without))


_INDENT = 4
_MAX_CASES = 3


def check_lines(checks: Sequence[MetricCheck], width: int, *, every: bool = False) -> Iterator[Line]:
    """A table of metrics with problems; with `every`, of all metrics."""
    shown = [check for check in checks if every or not check.is_fine]
    names = max((cell_len(visible(check.metric)) for check in shown), default=0)
    names = min(names, width - 24)
    yield [(f"  {pad('METRIC', names)}  RUNS FOR", "bold")]
    for check in shown:
        row: Line = [_mark(check), (f" {pad(visible(check.metric), names)}  {_scope_text(check)}", "")]
        if check.optional:
            row.append(("  optional", "muted"))
        yield cut(row, width)
        yield from _explanation_lines(check, width)
    fine = len(checks) - len(shown)
    if fine:
        what = counted(fine, "other metric runs", "other metrics run")
        yield [(f"  {what} for every case", "muted")]


def _explanation_lines(check: MetricCheck, width: int) -> Iterator[Line]:
    if not check.in_all and check.sets:
        yield from _indent_lines([(f"in {visible(', '.join(check.sets))}", "muted")], width)
    if check.without:
        ids = short_list([case.eval_id for case in check.without], _MAX_CASES)
        yield from _indent_lines([(f"not for {visible(ids)}", "muted")], width)
    if check.why:
        fix = f" {check.fix}." if check.fix else ""
        fix = fix.replace("?.", "?")
        yield from _indent_lines([(f"{visible(check.why)}.", ""), (visible(fix), "muted")], width)


def _indent_lines(spans: Sequence[Span], width: int) -> Iterator[Line]:
    yield from wrap_behind([(" " * _INDENT, "")], spans, width)


def _mark(check: MetricCheck) -> Span:
    if check.readiness is Readiness.RUNS:
        return ("!", "warning") if check.why else ("✓", "success")
    return "–", "warning"


def _scope_text(check: MetricCheck) -> str:
    cases = counted(check.cases, "case")
    match check.readiness:
        case Readiness.RUNS:
            return cases
        case Readiness.SOME_CASES:
            return f"{show_number(check.cases - len(check.without))} of {cases}"
        case Readiness.CANNOT:
            return f"none of {cases}"
