"""A run and its cases as they are compared with those of another run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pydantic import computed_field

from evaltui.core.model.base_model import NOT_REPORTED, keys_first
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.confidence import Decision
from evaltui.core.model.modes import RecordMode, ToolMode, modes_of
from evaltui.core.model.outcome import CaseResult, Outcome, Status, verdict_of
from evaltui.core.model.served import ServedModel, served_models
from evaltui.core.model.spending import Cost, Payer
from evaltui.core.model.variants import Variant

Json = dict[str, Any]

_TOKENS = "token_usage_v1"


@dataclass(frozen=True, slots=True)
class CaseSummary:
    """The figures of a case in a run, for lists and comparisons of 100,000 cases without their turns."""

    eval_set_id: str = field(metadata=NOT_REPORTED)
    eval_id: str = field(metadata=NOT_REPORTED)
    status: Outcome
    runs: int = 1
    """0 for a selected case without a result."""
    passed: int = 0
    policy: str = field(default="all", metadata=NOT_REPORTED)
    policy_met: bool = field(default=False, metadata=NOT_REPORTED)
    scores: Mapping[str, float] = field(default_factory=dict, metadata=NOT_REPORTED)
    """Mean score over the runs of each metric that passes or fails the case."""
    seconds: float | None = None
    """Wall time, the mean over its runs; None where nobody knows."""
    tokens: float | None = None
    """Tokens of all turns, the mean over the runs; None where they are unknown."""
    throttled: float = field(default=0.0, metadata=NOT_REPORTED)
    """Seconds in which model calls waited, of all its runs."""
    expects: str = field(default="", metadata=NOT_REPORTED)
    """The case's fingerprint; "" where nobody knows."""
    judges: Mapping[str, str] = field(default_factory=dict, metadata=NOT_REPORTED)
    """The model and the prompt by which each metric was judged that was."""
    path: str = field(default="", metadata=NOT_REPORTED)
    """The case's file as in `CaseId`; "" where nobody knows."""
    statuses: tuple[Status, ...] = field(default=(), metadata=NOT_REPORTED)
    """Statuses of the runs where they differ."""
    times: tuple[float, ...] = field(default=(), metadata=NOT_REPORTED)
    """Seconds of its runs where there were several; empty where nobody knows."""
    costs: Mapping[Payer, Cost] = field(default_factory=dict, metadata=NOT_REPORTED)
    """Cost of all runs together by payer; empty where it is unknown, else with that of the agent."""
    decision: Decision | None = field(default=None, metadata=NOT_REPORTED)
    """Decision of the sequential test over the runs; None where their number was fixed."""
    given: str = field(default="", metadata=NOT_REPORTED)
    """Fingerprint of what the agent got of the case; "" where nobody knows."""
    recorded: str = field(default="", metadata=NOT_REPORTED)
    served: tuple[ServedModel, ...] = field(default=(), metadata=NOT_REPORTED)
    """Models that answered in all its runs, as their responses name them."""

    _keys = keys_first("status", "passes")

    @computed_field
    @property
    def cost(self) -> Cost | None:
        """Cost of all runs together, judges included; None where it is unknown."""
        return Cost.of_all(self.costs.values())

    @property
    def usd(self) -> float | None:
        """Average cost of a run in US dollars; None where a part of it is unknown."""
        cost = self.cost
        return None if cost is None or cost.usd is None or not cost.is_exact else cost.usd / self.runs

    @property
    def id(self) -> CaseId:
        return CaseId(self.path or self.eval_set_id, self.eval_id)

    @computed_field
    @property
    def passes(self) -> bool:
        """Whether it counts as passed, a flaky case by its policy."""
        return self.verdict is Status.PASSED

    @property
    def failed(self) -> bool:
        """Whether an expectation was not met; no error and no undecided case is that."""
        return self.verdict is Status.FAILED and (not self.outcomes or Status.FAILED in self.outcomes)

    @property
    def is_judged(self) -> bool:
        """Whether it passes or failed; False after errors, and where it was not evaluated."""
        return self.passes or self.failed

    @property
    def judged_repeats(self) -> tuple[int, int]:
        """How many of its repeats passed, and how many passed or failed."""
        if not self.outcomes:
            return self.passed, self.runs
        passed = self.outcomes.count(Status.PASSED)
        return passed, passed + self.outcomes.count(Status.FAILED)

    @property
    def outcomes(self) -> tuple[Status, ...]:
        """The status of each of its runs; empty where only their number is known."""
        if self.statuses or self.status is Status.FLAKY:
            return self.statuses
        return (self.status,) * self.runs

    @property
    def evaluated(self) -> int:
        """The number of its runs that were evaluated: others say nothing of how often it passes."""
        return self.runs - self.outcomes.count(Status.NOT_EVALUATED)

    @property
    def verdict(self) -> Status:
        """The status, of a flaky case as its policy decides: PASSED or FAILED."""
        return verdict_of(self.status, is_met=self.policy_met)


def summarize(case: CaseResult) -> CaseSummary:
    scores: dict[str, list[float]] = {}
    for repeat in case.repeats:
        for metric in repeat.metrics:
            if metric.status is not Status.INFORMATIONAL and metric.score is not None:
                scores.setdefault(metric.name, []).append(metric.score)
    seconds = _mean([repeat.seconds for repeat in case.repeats if repeat.seconds])
    return CaseSummary(
        eval_set_id=case.eval_set_id,
        eval_id=case.eval_id,
        status=case.status,
        runs=len(case.repeats),
        passed=case.passed_repeats,
        policy=case.policy,
        policy_met=case.policy_met,
        scores={name: round(sum(values) / len(values), 6) for name, values in scores.items()},
        seconds=None if seconds is None else round(seconds, 3),
        tokens=_mean(list(_tokens(case))),
        throttled=round(case.throttled, 3),
        expects=case.repeats[0].expects if case.repeats else "",
        given=case.repeats[0].given if case.repeats else "",
        recorded=" ".join(repeat.recorded for repeat in case.repeats).strip(),
        judges={
            metric.name: f"{metric.judge.model} ({metric.judge.prompt})"
            for metric in case.metrics
            if metric.judge is not None
        },
        path=case.path,
        statuses=tuple(repeat.status for repeat in case.repeats) if _differ(case) else (),
        decision=case.decision,
        times=_times(case),
        costs={} if (spent := case.spent) is None else spent.costs,
        served=served_models(
            replace(served, repeat=number)
            for number, repeat in enumerate(case.repeats)
            for served in repeat.served
        ),
    )


def _differ(case: CaseResult) -> bool:
    """Whether its status does not say what its runs came to."""
    return {repeat.status for repeat in case.repeats} != {case.status}


def _times(case: CaseResult) -> tuple[float, ...]:
    """Seconds of each of several runs; empty where the time of one is unknown."""
    times = tuple(round(repeat.seconds, 3) for repeat in case.repeats if repeat.seconds)
    return times if len(times) == len(case.repeats) > 1 else ()


def _tokens(case: CaseResult) -> Iterator[float]:
    for repeat in case.repeats:
        for metric in repeat.metrics:
            counts = [turn.score for turn in metric.per_invocation if turn.score is not None]
            if metric.name == _TOKENS and counts:
                yield sum(counts)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


@dataclass(frozen=True)
class Circumstances:
    """The circumstances of a run besides its cases.

    `files` are the agent's with what they hold, as fingerprints; `configs` the config of each set in its
    normal form, by the set's path as in `CaseId`. Each is empty, and `model` "", where nobody knows.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    agent: str = ""
    model: str = ""
    configs: Mapping[str, Json] = field(default_factory=dict)
    adk_verdicts: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    """How and where the agent was run, by what it is called; "" for what nobody knows."""


def options_of_run(
    agent_name: str | None,
    module: str,
    url: str,
    record: RecordMode,
    tools: ToolMode | None,
    agent: Mapping[str, Any],
) -> dict[str, str]:
    """The options of `Circumstances`; `agent` as the run found it."""
    return {
        "--agent": agent_name or "root",
        "-m": module or "none",
        "URL": url,
        "record": record,
        "tools": modes_of(record, tools, {}).tools,
        "Python": str(agent.get("python") or ""),
        "framework": f"{agent.get('framework') or ''} {agent.get('version') or ''}".strip(),
    }


@dataclass(frozen=True)
class RunSummary:
    """A run as it is compared with another one.

    `cases` are all that were selected, in order, those without a result with no runs; `whole` are the paths
    of the sets of which every case was selected, so that a case that is not there did not exist. Where it is
    `by_label`, the run tells cases by set id only, as results of google-adk and logs of earlier versions do.
    `ambiguous` are its cases of which nobody knows the file: they are never taken for a case of another run.
    """

    id: str
    cases: Mapping[CaseId, CaseSummary] = field(metadata=NOT_REPORTED)
    whole: frozenset[str] = field(default=frozenset(), metadata=NOT_REPORTED)
    circumstances: Circumstances = field(default=Circumstances(), metadata=NOT_REPORTED)
    by_label: bool = field(default=False, metadata=NOT_REPORTED)
    ambiguous: frozenset[CaseId] = field(default=frozenset(), metadata=NOT_REPORTED)
    matrix: str = field(default="", metadata=NOT_REPORTED)
    """The id that all runs of its matrix have; "" where it is of none."""
    variant: Variant | None = field(default=None, metadata=NOT_REPORTED)
    """The variant of the agent that was run; None where none was asked for."""
    number: int | None = field(default=None, metadata=NOT_REPORTED)
    """Counts the runs of the agent, from 1; None for a result file of google-adk."""

    @property
    def title(self) -> str:
        """`run 18`; its id where it has no number."""
        return f"run {self.number}" if self.number else self.id

    @cached_property
    def results(self) -> Mapping[CaseId, CaseSummary]:
        """The cases that have a result."""
        return {case: summary for case, summary in self.cases.items() if summary.runs}

    @computed_field(alias="cases")
    @property
    def case_count(self) -> int:
        """Selected cases."""
        return len(self.cases)

    @computed_field
    @property
    def passing(self) -> int:
        """Cases that pass."""
        return sum(case.passes for case in self.cases.values())

    @computed_field(alias="unfinished")
    @property
    def unfinished_count(self) -> int:
        """Selected cases without a result."""
        return len(self.unfinished)

    @property
    def unfinished(self) -> list[CaseId]:
        """The selected cases without a result."""
        return [case for case, summary in self.cases.items() if not summary.runs]

    def lacks(self, case: CaseId) -> bool:
        """Whether there was no such case when the run began, as far as the run can tell."""
        return case not in self.cases and case.path in self.whole


def selected_cases(
    selected: Iterable[tuple[CaseId, str]], results: Mapping[CaseId, CaseSummary]
) -> dict[CaseId, CaseSummary]:
    """Every selected case in order, with its result or without; then the results that no selection has.

    `selected` are cases with the ids of their sets.
    """
    rows = {case: results.get(case) or summarize(CaseResult.not_run(case, label)) for case, label in selected}
    return rows | {case: summary for case, summary in results.items() if case not in rows}
