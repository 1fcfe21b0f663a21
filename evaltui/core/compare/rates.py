"""What the cases of a run come to: pass rates and mean scores, each with what it can be relied on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.outcome import Status
from evaltui.core.statistics.estimates import (
    Estimate,
    Rate,
    RunsRate,
    clustered_mean,
    clustered_rate,
    rate_of,
)
from evaltui.text.figures import counted, show_score


def rate_over_cases(cases: Collection[CaseSummary]) -> Rate | None:
    """The rate of the cases that pass among those that were evaluated; None where none was."""
    evaluated = sum(case.runs > 0 and case.verdict is not Status.NOT_EVALUATED for case in cases)
    return rate_of(sum(case.passes for case in cases), evaluated)


@dataclass(frozen=True)
class Rates:
    """Those of a run with at least one case that was evaluated."""

    cases: Rate
    """Cases that pass, flaky ones by their policy."""
    runs: RunsRate | None
    """None where every case was run once."""
    scores: Mapping[str, Estimate]
    """By metric, over the mean of each case."""

    @property
    def in_words(self) -> str:
        """`84% (74–90%) of 40 cases, 86% (78–92%) of 200 runs`"""
        text = f"{self.cases} of {counted(self.cases.of, 'case')}"
        return text if self.runs is None else f"{text}, {self.runs} of {counted(self.runs.of, 'run')}"

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
        {
            name: clustered_mean([[case.scores[name]] for case in known if name in case.scores])
            for name in names
        },
    )
