"""What differs in a result, in the order in which it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from evaltui.core.compare.judged import (
    Finding,
    findings,
    findings_in,
    judged_as_a_whole,
    judged_in,
    subject_of,
)
from evaltui.workbench.state import DifferenceAt

if TYPE_CHECKING:
    from evaltui.core.model.eval_set import EvalCase
    from evaltui.core.model.outcome import CaseResult, TurnResult


def differences_of(result: CaseResult) -> Iterator[DifferenceAt]:
    """Turn by turn the calls, or the arguments of changed ones, the answer, and what a judge found fault
    with; then what one found of the whole conversation, and the final state."""
    for number, turn in enumerate(result.turns):
        yield from calls_in(turn, number)
        if answer_differs(turn):
            yield DifferenceAt("answer", number)
        for metric in judged_in(result.metrics, number):
            yield from _places(findings_in(metric, number))
    for metric in judged_as_a_whole(result.metrics):
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
    from evaltui.core.compare.diff import calls_of

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


def answer_differs(turn: TurnResult) -> bool:
    """Whether an answer is expected and came out otherwise."""
    expected = turn.response.expected
    return bool(expected) and turn.expectation != "context" and expected != turn.response.actual
