"""The last result of every case, what it says in a list and of its turns, and what differs in it.

Statuses are compared by their text, so that nothing heavy is imported to draw a case that has not run.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.core.compare.turn_verdicts import response_op
from evaltui.core.model.case_id import CaseId
from evaltui.text.figures import counted, show_number, show_score
from evaltui.text.outcomes import STALE
from evaltui.views.difference import DifferenceAt
from evaltui.workbench.state import CaseOutcome
from evaltui.workbench.stored_results import StoredResult

if TYPE_CHECKING:
    from evaltui.core.compare.judged import Finding
    from evaltui.core.model.eval_set import EvalCase
    from evaltui.core.model.outcome import CaseResult


# What the reason of a metric says where its judge cannot be asked.
_NO_JUDGE = re.compile(r"judge|API_KEY")
_CALLS = ("tool_trajectory_avg_score", "trajectory_recall", "trajectory_precision")
_OPS = {"missing": "missing", "extra": "unexpected"}


def why(result: CaseResult) -> str:
    """The cause of an outcome in few cells: `out of order`, `1 call missing`, `response 0.12`, `3/5 flaky`;
    "" for a case that passed."""
    if result.status == "PASSED":
        return ""
    if result.status == "FLAKY":
        return f"{result.passed_repeats}/{len(result.repeats)} flaky"
    if result.error is not None:
        limit = re.search(r"within (\S+ s)\b", result.error.message)
        if "Timeout" not in result.error.type:
            return result.error.type
        return f"timeout {limit[1]}" if limit else "timeout"
    if result.status == "NOT_EVALUATED":
        reasons = [metric.reason for metric in result.metrics if metric.status == result.status]
        return "no judge" if any(_NO_JUDGE.search(reason) for reason in reasons) else "not evaluated"
    failed = [metric for metric in result.metrics if metric.status == result.status]
    ops = [call.op for turn in result.turns if turn.checks_calls for call in turn.calls if call.op != "same"]
    if ops and any(metric.name in _CALLS for metric in failed):
        return _calls_in_short(ops, sum(at.kind in ("argument", "call") for at in differences_of(result)))
    metric = next(iter(failed), None)
    if metric is None or metric.score is None:
        return ""
    if metric.name == "final_session_state":
        return "final state"
    name = "response" if "response" in metric.name else metric.name.split("_")[0]
    return f"{name} {show_score(metric.score)}"


def _calls_in_short(ops: Sequence[str], differences: int) -> str:
    kinds = set(ops)
    if kinds == {"moved"}:
        return "out of order"
    if len(kinds) == 1 and ops[0] in _OPS:
        return f"1 call {_OPS[ops[0]]}" if ops == ["missing"] else f"{show_number(len(ops))} {_OPS[ops[0]]}"
    return counted(differences, "difference")


def differences_of(result: CaseResult) -> Iterator[DifferenceAt]:
    """Those of the rows of each turn; then what is wrong by judges, by metric; then the final state."""
    from evaltui.core.compare.judged import findings
    from evaltui.views.rows import compared_rows, state_rows

    for number in range(len(result.turns)):
        yield from (row.at for row in compared_rows(result, number) if row.at)
    for metric in result.metrics:
        if metric.status != "INFORMATIONAL":
            yield from _places(findings(metric))
    yield from (row.at for row in state_rows(result.state) if row.at)


def _places(found: Iterable[Finding]) -> Iterator[DifferenceAt]:
    return (place_of(finding) for finding in found if finding.needs_attention)


def place_of(finding: Finding) -> DifferenceAt:
    return DifferenceAt("judgement", finding.turn, found=(finding.metric, finding.number))


def made_call(result: CaseResult, at: DifferenceAt) -> int | None:
    """Which call of its turn, in the order in which they were made, a difference is of; None for no call."""
    if at.turn is None or at.row is None:
        return None
    rows = result.turns[at.turn].calls
    return sum(row.actual is not None for row in rows[: at.row]) if rows[at.row].actual else None


def expected_call(result: CaseResult, case: EvalCase, at: DifferenceAt) -> int | None:
    """Which call that its turn expects a difference is of; None where none is, or it is of no call."""
    from evaltui.core.model.outcome import calls_of

    if at.turn is None or at.row is None or at.turn >= len(case.conversation or ()):
        return None
    rows = result.turns[at.turn].calls
    wanted = rows[at.row].expected
    if wanted is None:
        return None
    # Rows are in the order in which calls were made, and the same call may be expected twice.
    before = sum(row.expected == wanted for row in rows[: at.row])
    calls = calls_of((case.conversation or [])[at.turn].intermediate_data)
    equal = [number for number, call in enumerate(calls) if call == wanted]
    return equal[before] if before < len(equal) else None


def judged_row(result: CaseResult, case: EvalCase, at: DifferenceAt) -> tuple[str | int, ...]:
    """The row of the case by which something was judged: a rubric, an expected answer, else the turn."""
    from evaltui.core.compare.judged import subject_of

    turn = at.turn or 0
    if at.found is None:
        return ("turn", turn)
    name, number = at.found
    if subject_of(name) == "answer":
        return ("turn", turn, "answer", 0)
    metric = next(metric for metric in result.metrics if metric.name == name)
    rubric_id = metric.per_invocation[turn].judgements[number].id
    of_turn = (case.conversation or [])[turn : turn + 1]
    holders = [(("rubric",), case.rubrics), *((("turn", turn, "rubric"), one.rubrics) for one in of_turn)]
    for row, rubrics in holders:
        for place, rubric in enumerate(rubrics or ()):
            if rubric.rubric_id == rubric_id:
                return (*row, place)
    return ("turn", turn)


def failing_differences(result: CaseResult) -> list[DifferenceAt]:
    """The differences without those within a threshold; these where there are no others."""
    every = list(differences_of(result))
    failing = [at for at in every if at.kind != "answer" or response_op(result, at.turn or 0) == "changed"]
    return failing or every


class Results:
    """The last result of each case."""

    def __init__(self) -> None:
        self._of_sets = defaultdict[str, dict[CaseId, CaseOutcome]](dict)
        # Versions of the last changes, in order.
        self._changes = defaultdict[str, dict[CaseId, int]](dict)
        # Results of cases that were deleted, for when that is undone.
        self._of_deleted: dict[CaseId, CaseOutcome] = {}
        self.pending: set[CaseId] = set()
        """Cases of the run that goes on without a result of it: those that they have do not count."""
        self.attention: set[CaseId] = set()
        """Cases whose result is one to stop at."""
        self.version = 0
        """Another one after every change."""

    def note(self, *cases: CaseId) -> None:
        """Cases have another result, or something else is known of the one that they have."""
        self.version += 1
        for case in cases:
            changes = self._changes[case.path]
            changes.pop(case, None)
            changes[case] = self.version

    def changed_since(self, version: int, path: str) -> list[CaseId]:
        """The cases of a set that have been noted since a version, those of a set without results too."""
        changes = self._changes.get(path, {})
        return list(takewhile(lambda case: changes[case] > version, reversed(changes)))

    def put(self, case: CaseId, scored: CaseOutcome) -> None:
        """Replaces the result that an earlier run had for the case."""
        self.put_all([(case, scored)])

    def put_all(self, outcomes: Iterable[tuple[CaseId, CaseOutcome]]) -> None:
        """As `put`, many at once."""
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
        return [one for results in self._of_sets.values() for one in results.items()]

    def files(self) -> set[Path]:
        """The files of runs that results are read from."""
        refs = (ref for _, scored in self.all() for ref in (scored.logged, scored.ref))
        return {file.path for file in {ref.file for ref in refs if isinstance(ref, StoredResult)}}

    def paths(self) -> list[str]:
        """The sets that have results."""
        return [path for path, results in self._of_sets.items() if results]

    def move(self, moved: Mapping[CaseId, CaseId]) -> None:
        """Cases are called otherwise now."""
        results = [(new, scored) for old, new in moved.items() if (scored := self.drop(old)) is not None]
        self.put_all(results)

    def keep_only(self, cases: set[CaseId]) -> None:
        """Forget cases that do not exist any more."""
        for case, _ in self.all():
            if case not in cases:
                self.drop(case)

    def follow_cases(self, path: str, number_of: Callable[[str], int | None]) -> None:
        """Puts the results of deleted cases of a set aside, and back where the cases are there again;
        `number_of` gives the number of a case in the set, None where it has none of this id."""
        for case in [case for case in self._of_deleted if case.path == path]:
            if number_of(case.eval_id) is not None:
                self.put(case, self._of_deleted.pop(case))
        for case, scored in self.of(path):
            if number_of(case.eval_id) is None:
                self._of_deleted[case] = scored
                self.drop(case)


class Verdicts:
    """The verdicts of a set's cases that count, and how many there are of each."""

    def __init__(self, results: Results, path: str, state: object) -> None:
        self.results = results
        self.state = state
        """What verdicts depend on besides the results."""
        self.counts = Counter[str]()
        """Cases by status, those with a stale result apart."""
        self.of_now: set[CaseId] = set()
        """Cases with a result of now."""
        self.passed: set[CaseId] = set()
        """Of these those that pass, flaky ones by their policy."""
        self.stale: set[CaseId] = set()
        self.changes = 0
        """How often other cases or results have been counted than before."""
        self._version = 0
        self._path = path
        self._statuses: dict[CaseId, str] = {}

    def follow(self, is_stale: Callable[[CaseId], bool]) -> None:
        """Counts cases with another result than before anew, and no others."""
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
    """A case as it stands in the JSON report."""
    # What is written is seldom asked for here.
    from evaltui.reports.json_report import case_result_json

    return json.dumps(case_result_json(result), indent=2, ensure_ascii=False)
