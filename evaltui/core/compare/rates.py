"""What the cases of a run come to: pass rates and mean scores, each with what it can be relied on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.outcome import CaseResult, Status
from evaltui.core.statistics.estimates import Estimate, Interval, clustered_mean, clustered_rate, wilson
from evaltui.text.figures import counted, show_rate_with, show_score


@dataclass(frozen=True)
class Rate:
    """So many of so many that passed, not evaluated ones left out."""

    passed: int
    of: int

    @property
    def share(self) -> float:
        return self.passed / self.of

    @property
    def interval(self) -> Interval:
        return wilson(self.passed, self.of)

    def __str__(self) -> str:
        """`84% (74–90%)`"""
        return show_rate_with(self.share, self.interval)


def rate_of(passed: int, evaluated: int) -> Rate | None:
    """None where nothing was evaluated."""
    return Rate(passed, evaluated) if evaluated else None


def case_rate(case: CaseResult) -> Rate | None:
    """The pass rate of the repeats of a case that were evaluated; None where none was."""
    return rate_of(case.passed_repeats, case.evaluated_repeats)


def rate_over_cases(cases: Collection[CaseSummary]) -> Rate | None:
    """The rate of the cases that pass among those that were evaluated; None where none was."""
    evaluated = sum(case.runs > 0 and case.verdict is not Status.NOT_EVALUATED for case in cases)
    return rate_of(sum(case.passes for case in cases), evaluated)


@dataclass(frozen=True)
class Rates:
    """Those of a run with at least one case that was evaluated."""

    cases: Rate
    """Cases that pass, flaky ones by their policy."""
    runs: Estimate | None
    """The share of runs of a case that pass; None where every case was run once."""
    passed_runs: int
    all_runs: int
    scores: Mapping[str, Estimate]
    """By metric, over the mean of each case."""

    @property
    def in_words(self) -> str:
        """`84% (74–90%) of 40 cases, 86% (78–92%) of 200 runs`"""
        text = f"{self.cases} of {counted(self.cases.of, 'case')}"
        if self.runs is None or self.runs.interval is None:
            return text
        return (
            f"{text}, {show_rate_with(self.runs.mean, self.runs.interval)} of {counted(self.all_runs, 'run')}"
        )

    @property
    def scores_in_words(self) -> str:
        """`response_match_score 0.84 ± 0.05`, with the standard error; "" where all cases score the same."""
        known = [
            f"{name} {show_score(one.mean)} ± {show_score(one.standard_error)}"
            for name, one in self.scores.items()
            if one.standard_error
        ]
        return ", ".join(known)


def rates(cases: Iterable[CaseSummary]) -> Rates | None:
    """None where no case was evaluated."""
    known = list(cases)
    over_cases = rate_over_cases(known)
    if over_cases is None:
        return None
    names = dict.fromkeys(name for case in known for name in case.scores)
    return Rates(
        over_cases,
        clustered_rate([(case.passed, case.evaluated) for case in known])
        if any(case.runs > 1 for case in known)
        else None,
        sum(case.passed for case in known),
        sum(case.evaluated for case in known),
        {
            name: clustered_mean([[case.scores[name]] for case in known if name in case.scores])
            for name in names
        },
    )
