"""Totals over cases of a run, an eval set, a variant or a tag."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum

from pydantic import computed_field

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.base_model import NOT_REPORTED, keys_first
from evaltui.core.model.outcome import Rate, Status, rate_of
from evaltui.core.model.spending import Cost, KnownCost
from evaltui.core.statistics import (
    Estimate,
    RunsRate,
    clustered_mean,
    clustered_rate,
    quantile,
)
from evaltui.text.figures import counted, show_number, show_score


@dataclass(frozen=True)
class Totals:
    """Totals over cases; cases without a result are only counted."""

    counts: Mapping[str, int] = field(default_factory=dict, metadata=NOT_REPORTED)
    """Numbers of cases with a result, by status."""
    flaky_passed: int = field(default=0, metadata=NOT_REPORTED)
    """Number of flaky cases that pass by their policy."""
    open_cases: int = field(default=0, metadata={"serialization_alias": "unfinished_cases"})
    """Number of selected cases without a result."""
    runs: int = 0
    """Number of executions."""
    passed_runs: int = 0
    """Number of executions that passed."""
    rate: RunsRate | None = field(default=None, metadata=NOT_REPORTED)
    """Share of executions that pass, with its interval; None without executions."""
    seconds: float | None = field(default=None, metadata=NOT_REPORTED)
    """Seconds of all executions with a known time; None where no time is known."""
    timed: int = field(default=0, metadata=NOT_REPORTED)
    """Number of cases with a known time."""
    p50: float | None = field(default=None, metadata={"serialization_alias": "p50_seconds"})
    """Median seconds of an execution; None where no time is known."""
    p95: float | None = field(default=None, metadata={"serialization_alias": "p95_seconds"})
    tokens: float | None = None
    """Tokens of all executions; None where those of a case are unknown."""
    total_cost: Cost | None = field(default=None, metadata=NOT_REPORTED)
    """Cost of all executions, judges included; None where no cost is known."""
    cost: Cost | None = field(default=None, metadata=NOT_REPORTED)
    """Cost of the agent in all executions, without judges; None where no cost is known."""

    @computed_field
    @property
    def cases(self) -> int:
        """Number of cases with a result."""
        return sum(self.counts.values())

    @computed_field(alias="passed_cases")
    @property
    def passed(self) -> int:
        """Number of cases that passed, flaky ones by their policy."""
        return self.counts.get(Status.PASSED, 0) + self.flaky_passed

    @property
    def by_status(self) -> Mapping[str, int]:
        """Numbers of selected cases by status; a case without a result counts as NOT_EVALUATED."""
        return Counter(self.counts) + Counter({Status.NOT_EVALUATED.value: self.open_cases})

    @property
    def evaluated(self) -> int:
        """Number of cases with a verdict."""
        return self.cases - self.counts.get(Status.NOT_EVALUATED, 0)

    @property
    def case_rate(self) -> Rate | None:
        """Share of evaluated cases that pass; None without an evaluated case."""
        return rate_of(self.passed, self.evaluated)

    @property
    def in_words(self) -> str:
        """Passed cases of all: `7 of 12`."""
        return f"{show_number(self.passed)} of {show_number(self.cases + self.open_cases)}"

    @computed_field(alias="cost")
    @property
    def known_cost(self) -> KnownCost | None:
        """Cost of the agent in all executions, without judges; None where no cost is known."""
        return KnownCost.of(self.cost)

    @computed_field
    @property
    def pass_rate(self) -> float | None:
        """Share of executions that pass; None without executions."""
        return self.rate.mean if self.rate else None

    @computed_field
    @property
    def interval(self) -> list[float] | None:
        """The 95 % confidence interval of the pass rate, clustered by case: low and high end."""
        return list(self.rate.interval) if self.rate else None

    @computed_field
    @property
    def usd_per_passed_case(self) -> float | None:
        """US dollars of all cases divided by the number of passed cases; None where it is unknown or no case
        passed."""
        cost = self.cost_per_passed
        return None if cost is None else cost.usd

    _keys = keys_first(
        "cases",
        "passed_cases",
        "unfinished_cases",
        "runs",
        "passed_runs",
        "pass_rate",
        "interval",
        "p50_seconds",
        "p95_seconds",
        "tokens",
        "cost",
    )

    @property
    def known_usd(self) -> float | None:
        """US dollars of the agent; None where a part is unknown."""
        return self.cost.usd if self.cost is not None and self.cost.is_exact else None

    @property
    def cost_per_passed(self) -> Cost | None:
        """Cost of all cases divided by the number of passed cases; None where it is unknown or no case
        passed."""
        is_known = self.cost is not None and self.cost.usd is not None and self.passed
        return self.cost.shared_by(self.passed) if is_known and self.cost else None


def totals_of(cases: Iterable[CaseSummary]) -> Totals:
    """Totals of cases in memory; `RunFile.totals` queries a run's file."""
    selected = list(cases)
    done = [case for case in selected if case.runs]
    times = list(_times(done))
    tokens = [case.tokens * case.runs for case in done if case.tokens is not None]
    return Totals(
        counts=Counter(case.status.value for case in done),
        flaky_passed=sum(case.passes for case in done if case.status is Status.FLAKY),
        open_cases=len(selected) - len(done),
        runs=sum(case.runs for case in done),
        passed_runs=sum(case.passed for case in done),
        rate=clustered_rate([(case.passed, case.evaluated) for case in done])
        if any(case.evaluated for case in done)
        else None,
        seconds=fsum(times) if times else None,
        timed=sum(case.seconds is not None for case in done),
        p50=quantile(times, 0.5) if times else None,
        p95=quantile(times, 0.95) if times else None,
        tokens=fsum(tokens) if tokens and len(tokens) == len(done) else None,
        total_cost=_sum([case.cost for case in done], done),
        cost=_sum([case.costs.get("agent") for case in done], done),
    )


def _sum(costs: Sequence[Cost | None], cases: Sequence[CaseSummary]) -> Cost | None:
    """The sum of costs; unknown costs count as unseen."""
    if not any(costs):
        return None
    return Cost.of_all([cost or Cost(unseen=case.runs) for cost, case in zip(costs, cases, strict=True)])


def _times(cases: Iterable[CaseSummary]) -> Iterator[float]:
    """Seconds of each execution; their mean where only the mean is known."""
    for case in cases:
        if case.times:
            yield from case.times
        elif case.seconds is not None:
            yield from [case.seconds] * case.runs


@dataclass(frozen=True)
class Rates:
    """Rates of a run with at least one evaluated case."""

    cases: Rate
    """Share of cases that pass, flaky ones by their policy."""
    runs: RunsRate | None
    """Share of executions that pass; None where every case ran once."""
    scores: Mapping[str, Estimate]
    """Mean scores by metric, over the mean of each case."""

    @property
    def in_words(self) -> str:
        """The rates in words: `84% (74–90%) of 40 cases, 86% (78–92%) of 200 runs`."""
        text = f"{self.cases} of {counted(self.cases.of, 'case')}"
        return text if self.runs is None else f"{text}, {self.runs} of {counted(self.runs.of, 'run')}"

    @property
    def scores_in_words(self) -> str:
        """Mean scores with standard errors: `response_match_score 0.84 ± 0.05`; "" where all cases have the
        same score."""
        scores = [
            f"{name} {show_score(estimate.mean)} ± {show_score(estimate.standard_error)}"
            for name, estimate in self.scores.items()
            if estimate.standard_error
        ]
        return ", ".join(scores)


def rates(cases: Collection[CaseSummary], totals: Totals) -> Rates | None:
    """The rates of cases with their totals; None without an evaluated case."""
    over_cases = totals.case_rate
    if over_cases is None:
        return None
    scores: dict[str, list[list[float]]] = {}
    for name, score in (score for case in cases for score in case.scores.items()):
        scores.setdefault(name, []).append([score])
    return Rates(
        over_cases,
        totals.rate if totals.runs > totals.cases else None,
        {name: clustered_mean(of_cases) for name, of_cases in scores.items()},
    )
