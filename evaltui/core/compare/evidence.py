"""The evidence that a run is worse than another one: pairs of verdicts, and pass rates of repeated cases."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import computed_field

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.statistics import fisher_worse, mcnemar_exact
from evaltui.text.figures import counted, show_number, show_p


@dataclass(frozen=True)
class Paired:
    """Cases with a verdict in both runs, as pairs of verdicts."""

    better: int
    """Number of cases that pass in the candidate but not in the base."""
    worse: int
    """Number of cases that pass in the base but not in the candidate."""
    cases: int
    repeated: bool = field(default=False, compare=False)
    """Whether a verdict combines several runs of a case."""

    @computed_field
    @property
    def p(self) -> float:
        """Two-sided p-value of McNemar's exact test: the probability of such a difference by chance."""
        return mcnemar_exact(self.better, self.worse)

    def is_worse(self, alpha: float) -> bool:
        """Whether more cases became worse than chance explains."""
        return self.worse > self.better and self.p <= alpha

    def __str__(self) -> str:
        """The comparison in words: `better on 7, worse on 1 of 40 cases: p = 0.07`."""
        cases = counted(self.cases, "case")
        if not self.better and not self.worse:
            return f"{show_number(self.cases)}/{cases} same verdict"
        better, worse = show_number(self.better), show_number(self.worse)
        return f"better on {better}, worse on {worse} of {cases}: {show_p(self.p)}"


def pair_cases(both: Iterable[tuple[CaseSummary, CaseSummary]]) -> Paired:
    """Pairs of base and candidate with comparable verdicts; cases without a verdict are skipped."""
    judged = [(before, after) for before, after in both if before.is_judged and after.is_judged]
    passes = [(before.passes, after.passes) for before, after in judged]
    repeated = any(case.runs > 1 for pair in judged for case in pair)
    return Paired(passes.count((False, True)), passes.count((True, False)), len(judged), repeated)


def chance_of_fall(before: CaseSummary, after: CaseSummary) -> float | None:
    """The probability that a case passes as rarely as now if its pass rate is unchanged.

    None for a case that was not repeated in both runs, which counts as changed, and where a repeat has no
    verdict now.
    """
    _, judged_before = before.judged_repeats
    _, judged_now = after.judged_repeats
    if judged_now < after.runs or judged_before < 2 or judged_now < 2:
        return None
    return chance_of_rate(before, after)


def chance_of_rate(before: CaseSummary, after: CaseSummary) -> float:
    """The probability that so few repeats pass if the pass rate is unchanged; repeats without a verdict count
    as failed."""
    return fisher_worse(*before.judged_repeats, after.judged_repeats[0], after.runs)


def passes_less_often(before: CaseSummary, after: CaseSummary) -> bool:
    """Whether a case that failed in both runs did so in more of its repeats now."""
    if not (before.failed and after.failed):
        return False
    passed, judged = before.judged_repeats
    return after.judged_repeats[0] * judged < passed * after.runs


def fell_to_none(before: CaseSummary, after: CaseSummary) -> bool:
    """Whether all judged repeats passed before and none passes now, which is a regression for any number of
    repeats."""
    passed_before, judged_before = before.judged_repeats
    return 0 < passed_before == judged_before and not after.passed
