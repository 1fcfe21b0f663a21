"""The last result of each case, and the counted verdicts of a set."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.core.model.case_id import CaseId
from evaltui.text.outcomes import STALE
from evaltui.workbench.result.stored_results import StoredResult
from evaltui.workbench.state import CaseOutcome

if TYPE_CHECKING:
    from evaltui.core.model.outcome import CaseResult


class Results:
    """The last result of each case."""

    def __init__(self) -> None:
        self._of_sets = defaultdict[str, dict[CaseId, CaseOutcome]](dict)
        # Versions of the last changes, in order.
        self._changes = defaultdict[str, dict[CaseId, int]](dict)
        # Results of cases that were deleted, for when that is undone.
        self._of_deleted: dict[CaseId, CaseOutcome] = {}
        self.pending: set[CaseId] = set()
        """Queued cases of the running run: their old results do not count."""
        self.attention: set[CaseId] = set()
        """Cases whose result needs attention."""
        self.version = 0
        """A number that changes with every change."""

    def note(self, *cases: CaseId) -> None:
        """Notes that cases have another result, or that their result has changed."""
        self.version += 1
        for case in cases:
            changes = self._changes[case.path]
            changes.pop(case, None)
            changes[case] = self.version

    def changed_since(self, version: int, path: str) -> list[CaseId]:
        """The cases of a set that were noted since a version, also cases without results."""
        changes = self._changes.get(path, {})
        return list(takewhile(lambda case: changes[case] > version, reversed(changes)))

    def put(self, case: CaseId, scored: CaseOutcome) -> None:
        """Replaces the result that an earlier run had for the case."""
        self.put_all([(case, scored)])

    def put_all(self, outcomes: Iterable[tuple[CaseId, CaseOutcome]]) -> None:
        """Puts many results at once."""
        cases = []
        for case, scored in outcomes:
            results = self._of_sets[case.path]
            # The last one that came is the last one.
            results.pop(case, None)
            results[case] = scored
            (self.attention.discard if scored.figures.passes else self.attention.add)(case)
            cases.append(case)
        self.note(*cases)

    def drop(self, case: CaseId) -> CaseOutcome | None:
        """Removes the result of a case and returns it; None without one."""
        scored = self._of_sets[case.path].pop(case, None)
        if scored is not None:
            self.attention.discard(case)
            self.note(case)
        return scored

    def await_run(self, cases: Iterable[CaseId]) -> None:
        """Makes these cases the pending ones."""
        before, self.pending = self.pending, set(cases)
        self.note(*before ^ self.pending)

    def __len__(self) -> int:
        return sum(map(len, self._of_sets.values()))

    def get(self, case: CaseId) -> CaseOutcome | None:
        return self._of_sets.get(case.path, {}).get(case)

    def of(self, path: str) -> list[tuple[CaseId, CaseOutcome]]:
        """Every result of a set's cases."""
        return [*self._of_sets.get(path, {}).items()]

    def all(self) -> list[tuple[CaseId, CaseOutcome]]:
        """Every result."""
        return [pair for results in self._of_sets.values() for pair in results.items()]

    def files(self) -> set[Path]:
        """The files of runs that results are read from."""
        return files_of(self.all())

    def paths(self) -> list[str]:
        """The sets that have results."""
        return [path for path, results in self._of_sets.items() if results]

    def move(self, moved: Mapping[CaseId, CaseId]) -> None:
        """Renames cases."""
        results = [(new, scored) for old, new in moved.items() if (scored := self.drop(old)) is not None]
        self.put_all(results)

    def keep_only(self, cases: set[CaseId]) -> None:
        """Removes deleted cases."""
        for case, _ in self.all():
            if case not in cases:
                self.drop(case)

    def set_aside(self, case: CaseId) -> None:
        """Removes the result of a deleted case, for when it exists again."""
        if (scored := self.drop(case)) is not None:
            self._of_deleted[case] = scored

    def follow_cases(self, path: str, number_of: Callable[[str], int | None]) -> None:
        """Sets the results of deleted cases of a set aside, and restores them when the cases exist again;
        `number_of` returns the number of a case in the set, None for a missing id."""
        for case in [case for case in self._of_deleted if case.path == path]:
            # Another case may have been renamed to its id, with the result that it has.
            if number_of(case.eval_id) is not None and self.get(case) is None:
                self.put(case, self._of_deleted.pop(case))
        for case, _ in self.of(path):
            if number_of(case.eval_id) is None:
                self.set_aside(case)


def files_of(outcomes: Iterable[tuple[CaseId, CaseOutcome]]) -> set[Path]:
    """The files of runs that outcomes are read from."""
    refs = (ref for _, scored in outcomes for ref in (scored.logged, scored.ref))
    return {file.path for file in {ref.file for ref in refs if isinstance(ref, StoredResult)}}


class Verdicts:
    """The counted verdicts of a set's cases, and their numbers by status."""

    def __init__(self, results: Results, path: str, state: object) -> None:
        self.results = results
        self.state = state
        """The other inputs of the verdicts besides the results."""
        self.counts = Counter[str]()
        """Number of cases by status; stale results are counted separately."""
        self.of_now: set[CaseId] = set()
        """Cases with a current result."""
        self.passed: set[CaseId] = set()
        """The passed ones of them, flaky ones by their policy."""
        self.stale: set[CaseId] = set()
        self.changes = 0
        """A number that changes whenever the counts do."""
        self._version = 0
        self._path = path
        self._statuses: dict[CaseId, str] = {}

    def follow(self, is_stale: Callable[[CaseId], bool]) -> None:
        """Updates the counts for cases with another result than before."""
        results = self.results
        cases, self._version = results.changed_since(self._version, self._path), results.version
        self.changes += bool(cases)
        for case in cases:
            if (before := self._statuses.pop(case, None)) is not None:
                self.counts[before] -= 1
                for cases_of in (self.of_now, self.passed, self.stale):
                    cases_of.discard(case)
            scored = results.get(case)
            if scored is None or case in results.pending:
                continue
            status = STALE if is_stale(case) else scored.status
            self._statuses[case] = status
            self.counts[status] += 1
            (self.stale if status is STALE else self.of_now).add(case)
            if status is not STALE and case not in results.attention:
                self.passed.add(case)


def result_as_json(result: CaseResult) -> str:
    """A case in the JSON of reports."""
    # What is written is seldom asked for here.
    from evaltui.reports.json_report import case_result_json

    return json.dumps(case_result_json(result), indent=2, ensure_ascii=False)
