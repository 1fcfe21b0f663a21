"""The last result of every case, what it says in a list and of its turns, and what differs in it.

Statuses are compared by their text, so that nothing heavy is imported to draw a case that has not run.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

from evaltui.core.compare.turn_verdicts import answer_differs, response_op, text_differs
from evaltui.core.model.case_id import CaseId
from evaltui.text.figures import counted, show_number, show_score
from evaltui.views.difference import DifferenceAt
from evaltui.workbench.kept_results import ResultInFile, ResultsApart
from evaltui.workbench.state import CaseOutcome

if TYPE_CHECKING:
    from evaltui.core.compare.judged import Finding
    from evaltui.core.model.eval_set import EvalCase
    from evaltui.core.model.outcome import CaseResult, TurnResult


def needs_attention(result: CaseResult | ResultInFile) -> bool:
    """Whether a result is one to stop at: everything but a pass, and but what the flaky policy lets pass."""
    if result.status == "FLAKY":
        return not result.policy_met
    return result.status != "PASSED"


def figure(result: CaseResult) -> str:
    """What says most of a case in a few cells: `0.50`, `3/5`, `TimeoutError`; "" for one that passed."""
    if len(result.repeats) > 1 and result.status != "PASSED":
        return f"{result.passed_repeats}/{len(result.repeats)}"
    if result.error is not None:
        return result.error.type
    deciding = next((metric for metric in result.metrics if metric.status == result.status), None)
    if result.status == "PASSED" or deciding is None or deciding.score is None:
        return ""
    return show_score(deciding.score)


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
        return _calls_in_short(ops, len(list(differences_in_calls(result))))
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


def differences_in_calls(result: CaseResult) -> Iterator[DifferenceAt]:
    """The calls that differ, or their arguments, of all turns."""
    for number, turn in enumerate(result.turns):
        yield from calls_in(turn, number)


def differences_of(result: CaseResult) -> Iterator[DifferenceAt]:
    """Turn by turn the calls, or arguments of changed ones, the texts before the response, and the response;
    then, metric by metric, what is wrong by judges; then the final state."""
    from evaltui.core.compare.judged import findings

    for number, turn in enumerate(result.turns):
        yield from calls_in(turn, number)
        yield from texts_in(result, number)
        if answer_differs(turn):
            yield DifferenceAt("answer", number)
    for metric in result.metrics:
        if metric.status != "INFORMATIONAL":
            yield from _places(findings(metric))
    yield from (DifferenceAt("state", path=diff.path) for diff in result.state)


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


def calls_in(turn: TurnResult, number: int) -> Iterator[DifferenceAt]:
    """The calls of one turn that differ."""
    if not turn.checks_calls:
        return
    for row, diff in enumerate(turn.calls):
        if diff.op == "changed":
            differing = (arg for arg in diff.args if arg.op != "same")
            yield from (DifferenceAt("argument", number, row, arg.path) for arg in differing)
        elif diff.op != "same":
            yield DifferenceAt("call", number, row)


def texts_in(result: CaseResult, number: int) -> Iterator[DifferenceAt]:
    """The texts before the response of one turn for which their metric failed."""
    for place, diff in enumerate(result.turns[number].intermediate):
        if text_differs(result, number, diff):
            yield DifferenceAt("text", number, text=place)


def failing_differences(result: CaseResult) -> list[DifferenceAt]:
    """The differences without those within a threshold; these where there are no others."""
    every = list(differences_of(result))
    failing = [at for at in every if at.kind != "answer" or response_op(result, at.turn or 0) == "changed"]
    return failing or every


# More results that are in no log go into a file.
_MOST_IN_MEMORY = 500


class Changes:
    """The cases that have another result than when they were last taken."""

    def __init__(self) -> None:
        self.cases: set[CaseId] = set()

    def take(self) -> set[CaseId]:
        """These cases, which are forgotten then."""
        cases, self.cases = self.cases, set()
        return cases


class Results:
    """Counted as they come in: a set of ten thousand cases is not counted anew for each of them.

    `attention` are the cases whose last result is one to stop at.
    """

    def __init__(self) -> None:
        self._scored: dict[CaseId, CaseOutcome] = {}
        self._in_memory = 0
        self._apart: ResultsApart | None = None
        self._counts = defaultdict[str, Counter[str]](Counter)
        self._passed: Counter[str] = Counter()
        self._of_set: Counter[str] = Counter()
        # Cases of the run that goes on: what they have is from before.
        self._uncounted: set[CaseId] = set()
        # Results of cases that were deleted, for when that is undone.
        self._of_deleted: dict[CaseId, CaseOutcome] = {}
        self._followed = WeakSet[Changes]()
        self.attention: set[CaseId] = set()
        self.version = 0
        """Another one after every change."""

    @property
    def is_full(self) -> bool:
        """Whether as many results are in memory as may be."""
        return self._in_memory >= _MOST_IN_MEMORY

    def follow(self) -> Changes:
        """Tells, as long as somebody has it, which cases have another result from now on."""
        changes = Changes()
        self._followed.add(changes)
        return changes

    def note(self, *cases: CaseId) -> None:
        """Cases have another result, or something else is known of the one that they have."""
        self.version += 1
        for changes in self._followed:
            changes.cases.update(cases)

    def put(self, case: CaseId, scored: CaseOutcome) -> None:
        """Replaces the result that an earlier run had for the case."""
        self.put_all([(case, scored)])

    def put_all(self, outcomes: Iterable[tuple[CaseId, CaseOutcome]]) -> None:
        """As `put`, many at once."""
        outcomes = list(outcomes)
        for case, scored in outcomes:
            self._put(case, scored)
        self.note(*(case for case, _ in outcomes))

    def _put(self, case: CaseId, scored: CaseOutcome) -> None:
        self._take_out(case)
        if not isinstance(scored.kept, ResultInFile):
            if self.is_full:
                scored = replace(scored, kept=self._put_apart(scored.kept))
            self._in_memory += not isinstance(scored.kept, ResultInFile)
        self._scored[case] = scored
        self._of_set[case.path] += 1
        if needs_attention(scored.kept):
            self.attention.add(case)
        self._count(case, 1)

    def drop(self, case: CaseId) -> None:
        if case in self._scored:
            self._take_out(case)
            self.note(case)

    def _take_out(self, case: CaseId) -> None:
        if case in self._scored:
            self._count(case, -1)
            self._in_memory -= not isinstance(self._scored[case].kept, ResultInFile)
            del self._scored[case]
            self._of_set[case.path] -= 1
            self.attention.discard(case)

    def _put_apart(self, result: CaseResult) -> CaseResult | ResultInFile:
        try:
            if self._apart is None or self._apart.is_full:
                self._apart = ResultsApart()
            return self._apart.add(result)
        except OSError:
            # The disk is full: then there is memory.
            return result

    def _count(self, case: CaseId, number: int) -> None:
        if case in self._scored and case not in self._uncounted:
            self._counts[case.path][self._scored[case].kept.status] += number
            if case not in self.attention:
                self._passed[case.path] += number

    def count_without(self, cases: Iterable[CaseId]) -> None:
        """Counts no result of these cases, and those of all others."""
        again = list(self._uncounted)
        for case in again:
            self.count_again(case)
        for case in cases:
            self._count(case, -1)
            self._uncounted.add(case)
        self.note(*again, *self._uncounted)

    def count_again(self, case: CaseId) -> None:
        """Counts the result of a case."""
        if case in self._uncounted:
            self._uncounted.remove(case)
            self._count(case, 1)

    def is_counted(self, case: CaseId) -> bool:
        """Whether the case has a result, and is not being run again."""
        return case in self._scored and case not in self._uncounted

    def __len__(self) -> int:
        return len(self._scored)

    def get(self, case: CaseId) -> CaseOutcome | None:
        return self._scored.get(case)

    def of(self, path: str) -> list[tuple[CaseId, CaseOutcome]]:
        """Every result of a set's cases."""
        return [(case, scored) for case, scored in self._scored.items() if case.path == path]

    def count(self, path: str) -> int:
        """How many cases of a set have a result."""
        return self._of_set[path]

    def copy(self) -> dict[CaseId, CaseOutcome]:
        """Every result as it is now."""
        return dict(self._scored)

    def logs(self) -> set[Path]:
        """The logs that results are read from."""
        kept = (one for scored in self._scored.values() for one in (scored.logged, scored.kept))
        files = {one.file for one in kept if isinstance(one, ResultInFile)}
        return {file.log for file in files if file.log is not None}

    def paths(self) -> list[str]:
        """The sets that have results."""
        return [path for path, count in self._of_set.items() if count]

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

    def follow_cases(self, path: str, number_of: Callable[[str], int | None]) -> None:
        """Puts the results of deleted cases of a set aside, and back where the cases are there again;
        `number_of` gives the number of a case in the set, None where it has none of this id."""
        for case in [case for case in self._of_deleted if case.path == path]:
            if number_of(case.eval_id) is not None:
                self.put(case, self._of_deleted.pop(case))
        for case, scored in self.of(path) if self._of_set[path] else ():
            if number_of(case.eval_id) is None:
                self._of_deleted[case] = scored
                self.drop(case)

    def passed(self, path: str) -> int:
        """How many of the counted cases of a set passed, flaky ones by their policy."""
        return self._passed[path]

    def counts(self, path: str | None = None) -> Counter[str]:
        """How many cases of a set, or of all, came out how, by status; without those that are not run, or
        are being run again."""
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
