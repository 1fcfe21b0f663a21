"""How a run came out, added up while its log is written: lists of runs need not read every result."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from evaltui.core.compare.run_summary import CaseSummary
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.json_values import member, members_of
from evaltui.core.model.outcome import Status
from evaltui.core.model.spending import Cost

Json = dict[str, Any]


@dataclass(frozen=True)
class RunTotals:
    """Of the cases that are done."""

    counts: Mapping[str, int]
    """How they came out, by status."""
    flaky_passed: int = 0
    """How many of the flaky ones pass by their policy."""
    tokens: float | None = None
    """Those of all cases; None where nobody knows."""
    cost: Cost | None = None
    """That of all cases; None where nobody knows."""
    case_seconds: float | None = None
    """What a run of a case took, the median of its cases; None where nobody knows."""

    @classmethod
    def of(cls, summaries: Iterable[CaseSummary]) -> RunTotals:
        adding = AddedResults()
        for summary in summaries:
            adding.add(summary)
        return adding.totals()

    def to_json(self) -> Json:
        data = {
            "flaky_passed": self.flaky_passed or None,
            "tokens": self.tokens,
            "cost": self.cost and self.cost.to_json(),
            "case_seconds": self.case_seconds,
        }
        return {"counts": dict(self.counts)} | {
            name: value for name, value in data.items() if value is not None
        }

    @classmethod
    def from_json(cls, data: Json) -> RunTotals:
        """Raises ValueError for what are no totals."""
        number = (int, float, type(None))
        return cls(
            Counter(members_of(data, "counts", int)),
            member(data, "flaky_passed", int, 0),
            member(data, "tokens", number, None),
            Cost.from_json(member(data, "cost", dict)) if "cost" in data else None,
            member(data, "case_seconds", number, None),
        )


class AddedResults:
    """The results of cases, added up one by one."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._flaky_passed = 0
        self._tokens: float | None = 0.0
        self._cost: Cost | None = None
        self._without_cost = 0
        self._seconds = array("d")
        self._cases: set[CaseId] = set()
        self.is_unclear = False
        """Whether a case has several results, of which only one stands."""

    def add(self, summary: CaseSummary) -> None:
        case = summary.id
        self.is_unclear |= case in self._cases
        self._cases.add(case)
        self._counts[summary.status.value] += 1
        self._flaky_passed += summary.status is Status.FLAKY and summary.policy_met
        # Of some cases only it would look like little.
        if self._tokens is not None:
            self._tokens = None if summary.tokens is None else self._tokens + summary.tokens * summary.runs
        cost = summary.cost
        if cost is None:
            self._without_cost += 1
        else:
            self._cost = cost if self._cost is None else self._cost + cost
        if summary.seconds is not None:
            self._seconds.append(summary.seconds)

    def totals(self) -> RunTotals:
        return RunTotals(
            self._counts,
            self._flaky_passed,
            self._tokens if self._counts else None,
            # What is not known counts as unseen.
            None if self._cost is None else self._cost + Cost(unseen=self._without_cost),
            median(self._seconds) if self._seconds else None,
        )
