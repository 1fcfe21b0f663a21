"""The last result of every case, and how many of each set came out how."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from evaltui.core.model.case_id import CaseId
from evaltui.workbench.state import CaseOutcome
from evaltui.workbench.verdicts import needs_attention

if TYPE_CHECKING:
    from evaltui.core.model.outcome import CaseResult


class Results:
    """Counted as they come in: a set of ten thousand cases is not counted anew for each of them.

    `attention` are the cases whose last result is one to stop at.
    """

    def __init__(self) -> None:
        self._scored: dict[CaseId, CaseOutcome] = {}
        self._counts: dict[str, Counter[str]] = {}
        self.attention: set[CaseId] = set()

    def put(self, case: CaseId, scored: CaseOutcome) -> None:
        """Replaces the result that an earlier run had for the case."""
        self.drop(case)
        self._scored[case] = scored
        self._counts.setdefault(case.path, Counter())[scored.result.status] += 1
        if needs_attention(scored.result):
            self.attention.add(case)

    def drop(self, case: CaseId) -> None:
        if earlier := self._scored.pop(case, None):
            self._counts[case.path][earlier.result.status] -= 1
            self.attention.discard(case)

    def get(self, case: CaseId) -> CaseOutcome | None:
        return self._scored.get(case)

    def of(self, path: str) -> list[tuple[CaseId, CaseOutcome]]:
        """Every result of a set's cases."""
        return [(case, scored) for case, scored in self._scored.items() if case.path == path]

    def paths(self) -> list[str]:
        """The sets that have results."""
        return [path for path, counts in self._counts.items() if +counts]

    def move(self, moved: Mapping[CaseId, CaseId]) -> None:
        """Cases are called otherwise now."""
        taken = {new: self._scored[old] for old, new in moved.items() if old in self._scored}
        for old in moved:
            self.drop(old)
        for new, scored in taken.items():
            self.put(new, scored)

    def keep_only(self, cases: set[CaseId]) -> None:
        """Forget cases that do not exist any more."""
        for case in [case for case in self._scored if case not in cases]:
            self.drop(case)

    def counts(self, path: str | None = None) -> Counter[str]:
        """How many cases of a set, or of all, came out how, by status; what did not run is not in it."""
        if path is not None:
            return +self._counts.get(path, Counter())
        total: Counter[str] = Counter()
        for counts in self._counts.values():
            total.update(counts)
        return +total


def result_as_json(result: CaseResult) -> str:
    """A case as it stands in the JSON report."""
    # What is written is seldom asked for here.
    from evaltui.reports.json_report import case_result_json

    return json.dumps(case_result_json(result), indent=2, ensure_ascii=False)
