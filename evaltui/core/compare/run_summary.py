"""Summaries of runs and cases for comparisons."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pydantic import computed_field

from evaltui.core.model.base_model import NOT_REPORTED, keys_first
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.confidence import Decision
from evaltui.core.model.events import Json
from evaltui.core.model.modes import RecordMode, ToolMode, modes_of
from evaltui.core.model.outcome import CaseResult, Outcome, Status, verdict_of
from evaltui.core.model.served import ServedModel, served_models
from evaltui.core.model.spending import Cost, Payer
from evaltui.core.model.variants import Variant

_TOKENS = "token_usage_v1"


@dataclass(frozen=True, slots=True)
class CaseSummary:
    """The figures of a case in a run, small enough for lists and comparisons of 100,000 cases."""

    eval_set_id: str = field(metadata=NOT_REPORTED)
    eval_id: str = field(metadata=NOT_REPORTED)
    status: Outcome
    runs: int = 1
    """Number of runs; 0 for a selected case without a result."""
    passed: int = 0
    policy: str = field(default="all", metadata=NOT_REPORTED)
    policy_met: bool = field(default=False, metadata=NOT_REPORTED)
    scores: Mapping[str, float] = field(default_factory=dict, metadata=NOT_REPORTED)
    """Mean score over the runs of each metric that passes or fails the case."""
    seconds: float | None = None
    """Mean wall time of a run in seconds; None where it is unknown."""
    tokens: float | None = None
    """Mean number of tokens of a run; None where it is unknown."""
    throttled: float = field(default=0.0, metadata=NOT_REPORTED)
    """Seconds in which model calls waited, in all runs."""
    expects: str = field(default="", metadata=NOT_REPORTED)
    """Fingerprint of the case; "" where it is unknown."""
    judges: Mapping[str, str] = field(default_factory=dict, metadata=NOT_REPORTED)
    """Model and prompt of the judge, by metric."""
    path: str = field(default="", metadata=NOT_REPORTED)
    """The case's file as in `CaseId`; "" where it is unknown."""
    statuses: tuple[Status, ...] = field(default=(), metadata=NOT_REPORTED)
    """Statuses of the runs if they differ."""
    times: tuple[float, ...] = field(default=(), metadata=NOT_REPORTED)
    """Seconds of each of several runs; empty where they are unknown."""
    costs: Mapping[Payer, Cost] = field(default_factory=dict, metadata=NOT_REPORTED)
    """Cost of all runs by payer, the agent included; empty where it is unknown."""
    decision: Decision | None = field(default=None, metadata=NOT_REPORTED)
    """Decision of a sequential test over the runs; None for a fixed number of runs."""
    given: str = field(default="", metadata=NOT_REPORTED)
    """Fingerprint of the agent's input; "" where it is unknown."""
    recorded: str = field(default="", metadata=NOT_REPORTED)
    served: tuple[ServedModel, ...] = field(default=(), metadata=NOT_REPORTED)
    """Models that answered in all its runs, as their responses name them."""

    _keys = keys_first("status", "passes")

    @computed_field
    @property
    def cost(self) -> Cost | None:
        """Cost of all runs, judges included; None where it is unknown."""
        return Cost.of_all(self.costs.values())

    @property
    def usd(self) -> float | None:
        """Mean cost of a run in US dollars; None where a part of it is unknown."""
        cost = self.cost
        return None if cost is None or cost.usd is None or not cost.is_exact else cost.usd / self.runs

    @property
    def id(self) -> CaseId:
        return CaseId(self.path or self.eval_set_id, self.eval_id)

    @computed_field
    @property
    def passes(self) -> bool:
        """Whether the case counts as passed; for a flaky case, whether its policy is met."""
        return self.verdict is Status.PASSED

    @property
    def failed(self) -> bool:
        """Whether an expectation was not met; False for errors and undecided cases."""
        return self.verdict is Status.FAILED and (not self.outcomes or Status.FAILED in self.outcomes)

    @property
    def is_judged(self) -> bool:
        """Whether it has a verdict; False for an error, and for a case that was not evaluated."""
        return self.passes or self.failed

    @property
    def judged_repeats(self) -> tuple[int, int]:
        """Number of passed repeats, and number of repeats with a verdict."""
        if not self.outcomes:
            return self.passed, self.runs
        passed = self.outcomes.count(Status.PASSED)
        return passed, passed + self.outcomes.count(Status.FAILED)

    @property
    def outcomes(self) -> tuple[Status, ...]:
        """The status of each run; empty where only their number is known."""
        if self.statuses or self.status is Status.FLAKY:
            return self.statuses
        return (self.status,) * self.runs

    @property
    def evaluated(self) -> int:
        """Number of evaluated runs."""
        return self.runs - self.outcomes.count(Status.NOT_EVALUATED)

    @property
    def verdict(self) -> Status:
        """The status; for a flaky case PASSED or FAILED by its policy."""
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
    """Whether the status of a case does not give the statuses of its runs."""
    return {repeat.status for repeat in case.repeats} != {case.status}


def _times(case: CaseResult) -> tuple[float, ...]:
    """Seconds of each of several runs; empty if one of them is unknown."""
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

    `files` are the agent's files with fingerprints; `configs` are normal forms by path of the set, as in
    `CaseId`. Each is empty, and `model` "", where it is unknown.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    agent: str = ""
    model: str = ""
    configs: Mapping[str, Json] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)
    """Fingerprints of the code of the user's metrics, judges and simulated users, by the paths of their
    functions."""
    adk_verdicts: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    """The options of agent and run, by label; "" for an unknown value."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """The versions of the packages of the agent's Python."""
    own_data: frozenset[str] = frozenset()
    """Files that the agent wrote itself in the run."""


def different_files(
    first: Mapping[str, str], other: Mapping[str, str], own_data: Container[str]
) -> tuple[str, ...]:
    """The agent's files that differ between two runs, sorted, without data that it wrote itself in one.

    Files outside of the agent's folder but `.env` count only where both runs opened them.
    """

    def counts(name: str) -> bool:
        is_outside = name.startswith("../") and not name.endswith("/.env")
        return name not in own_data and not (is_outside and (name not in first or name not in other))

    names = sorted({**first, **other})
    return tuple(name for name in names if first.get(name, "") != other.get(name, "") and counts(name))


def options_of_run(
    agent_name: str | None,
    module: str,
    url: str,
    record: RecordMode,
    tools: ToolMode | None,
    agent: Mapping[str, Any],
) -> dict[str, str]:
    """The options of `Circumstances`; `agent` is the metadata from its host."""
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
    """The summary of a run for comparisons.

    `cases` are all selected cases in order, with no runs for those without a result. `whole` are the paths of
    the sets with all cases selected, so that other cases did not exist. With `by_label`, cases are known by
    set id only, as in results of google-adk. `ambiguous` are cases whose file is unknown, which match no case
    of another run.
    """

    id: str
    cases: Mapping[CaseId, CaseSummary] = field(metadata=NOT_REPORTED)
    whole: frozenset[str] = field(default=frozenset(), metadata=NOT_REPORTED)
    circumstances: Circumstances = field(default=Circumstances(), metadata=NOT_REPORTED)
    by_label: bool = field(default=False, metadata=NOT_REPORTED)
    of_adk: bool = field(default=False, metadata=NOT_REPORTED)
    """Whether google-adk ran the cases, so that their expectations are unknown."""
    ambiguous: frozenset[CaseId] = field(default=frozenset(), metadata=NOT_REPORTED)
    matrix: str = field(default="", metadata=NOT_REPORTED)
    """The id of its matrix; "" for none."""
    variant: Variant | None = field(default=None, metadata=NOT_REPORTED)
    """The variant of the agent; None for no variant."""
    number: int | None = field(default=None, metadata=NOT_REPORTED)
    """Number of the run among those of the agent, from 1; None for a result file of google-adk."""

    @property
    def title(self) -> str:
        """The title of the run: `run 18`; its id where it has no number."""
        return f"run {self.number}" if self.number else self.id

    @cached_property
    def results(self) -> Mapping[CaseId, CaseSummary]:
        """The cases with a result."""
        return {case: summary for case, summary in self.cases.items() if summary.runs}

    @computed_field(alias="cases")
    @property
    def case_count(self) -> int:
        """Number of selected cases."""
        return len(self.cases)

    @computed_field
    @property
    def passing(self) -> int:
        """Number of passing cases."""
        return sum(case.passes for case in self.cases.values())

    @computed_field(alias="unfinished")
    @property
    def unfinished_count(self) -> int:
        """Number of selected cases without a result."""
        return len(self.unfinished)

    @property
    def unfinished(self) -> list[CaseId]:
        """The selected cases without a result."""
        return [case for case, summary in self.cases.items() if not summary.runs]

    def lacks(self, case: CaseId) -> bool:
        """Whether the case did not exist at the start of the run, as far as the run can tell."""
        return case not in self.cases and case.path in self.whole


def selected_cases(
    selected: Iterable[tuple[CaseId, str]], results: Mapping[CaseId, CaseSummary]
) -> dict[CaseId, CaseSummary]:
    """Every selected case in order, with or without a result; then results of unselected cases. `selected`
    are cases with their set ids."""
    rows = {case: results.get(case) or summarize(CaseResult.not_run(case, label)) for case, label in selected}
    return rows | {case: summary for case, summary in results.items() if case not in rows}
