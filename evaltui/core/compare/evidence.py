"""Whether two runs differ by more than chance: all their cases, and a case that was repeated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import computed_field

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.statistics.differences import fisher_worse, mcnemar_exact
from evaltui.text.figures import counted, show_number, show_p


@dataclass(frozen=True)
class Paired:
    """The cases that passed or failed in both runs, paired by their verdicts."""

    better: int
    """Cases that pass in the candidate and not in the base."""
    worse: int
    """Cases that pass in the base and not in the candidate."""
    cases: int
    repeated: bool = field(default=False, compare=False)
    """Whether a verdict is that of a case over several runs."""

    @computed_field
    @property
    def p(self) -> float:
        """p-value of McNemar's exact test, two-sided: the chance of a difference this large or larger."""
        return mcnemar_exact(self.better, self.worse)

    def is_worse(self, alpha: float) -> bool:
        """Whether more cases became worse than chance explains."""
        return self.worse > self.better and self.p <= alpha

    def __str__(self) -> str:
        """`better on 7, worse on 1 of 40 cases: p = 0.07`"""
        cases = counted(self.cases, "case")
        if not self.better and not self.worse:
            return f"{show_number(self.cases)}/{cases} same verdict"
        better, worse = show_number(self.better), show_number(self.worse)
        return f"better on {better}, worse on {worse} of {cases}: {show_p(self.p)}"


def paired(both: Iterable[tuple[CaseSummary, CaseSummary]]) -> Paired:
    """Base and candidate of cases whose verdicts can be compared; what was not judged in both is left out."""
    judged = [(before, after) for before, after in both if before.is_judged and after.is_judged]
    passes = [(before.passes, after.passes) for before, after in judged]
    repeated = any(case.runs > 1 for pair in judged for case in pair)
    return Paired(passes.count((False, True)), passes.count((True, False)), len(judged), repeated)


def chance_of_fall(before: CaseSummary, after: CaseSummary) -> float | None:
    """How likely a case passes as seldom as now, if its repeats pass as often as before.

    None where a repeat ended with an error or was not evaluated now, which is no chance, and where the case
    was not repeated in both runs, which proves nothing and is believed.
    """
    _, judged_before = before.judged_repeats
    _, judged_now = after.judged_repeats
    if judged_now < after.runs or judged_before < 2 or judged_now < 2:
        return None
    return chance_of_rate(before, after)


def chance_of_rate(before: CaseSummary, after: CaseSummary) -> float:
    """How likely so few repeats pass now, if they pass as often as before; what has no verdict now does not
    pass."""
    return fisher_worse(*before.judged_repeats, after.judged_repeats[0], after.runs)


def passes_less_often(before: CaseSummary, after: CaseSummary) -> bool:
    """Whether a case that failed in both runs did so in more of its repeats now."""
    if not (before.failed and after.failed):
        return False
    passed, judged = before.judged_repeats
    return after.judged_repeats[0] * judged < passed * after.runs


def fell_to_none(before: CaseSummary, after: CaseSummary) -> bool:
    """Whether each judged repeat passed before and none passes now: a regression however few there are."""
    passed_before, judged_before = before.judged_repeats
    return 0 < passed_before == judged_before and not after.passed
