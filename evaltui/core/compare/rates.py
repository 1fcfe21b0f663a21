"""Pass rates and mean scores of the cases of a run, with their intervals and standard errors."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.compare.totals import Totals
from evaltui.core.statistics.estimates import (
    Estimate,
    Rate,
    RunsRate,
    clustered_mean,
)
from evaltui.text.figures import counted, show_score


@dataclass(frozen=True)
class Rates:
    """Rates of a run in which at least one case was evaluated."""

    cases: Rate
    """Cases that pass, flaky ones by their policy."""
    runs: RunsRate | None
    """None where every case was run once."""
    scores: Mapping[str, Estimate]
    """Mean score by metric, over the mean of each case."""

    @property
    def in_words(self) -> str:
        """`84% (74–90%) of 40 cases, 86% (78–92%) of 200 runs`"""
        text = f"{self.cases} of {counted(self.cases.of, 'case')}"
        return text if self.runs is None else f"{text}, {self.runs} of {counted(self.runs.of, 'run')}"

    @property
    def scores_in_words(self) -> str:
        """`response_match_score 0.84 ± 0.05`, with the standard error; "" where all cases score the same."""
        scores = [
            f"{name} {show_score(estimate.mean)} ± {show_score(estimate.standard_error)}"
            for name, estimate in self.scores.items()
            if estimate.standard_error
        ]
        return ", ".join(scores)


def rates(cases: Collection[CaseSummary], totals: Totals) -> Rates | None:
    """The rates of cases with their totals; None where no case was evaluated."""
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
