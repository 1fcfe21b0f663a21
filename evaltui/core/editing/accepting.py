"""What an agent did, taken over as what is expected of it.

Only what is scored is taken over: calls, the answer's text, the final state. Thoughts never become expected
text. What a rule or a criterion lets pass stays as it is, and so do what is said before the answer, the other
parts of an answer, marks on turns, and the shape that a turn has. A call keeps its id. Its response stays as
long as its arguments do; with other arguments it gets the response that came this time. A new call brings its
response where the case keeps responses.

`result` and `rows` are what the case was scored with (`TurnResult`, its `calls`), `row` is the index of one
call in it, `actual` is what was done in the turn. All functions raise EditError where the case expects other
calls than those that were scored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evaltui.core.compare.diff import calls_of
from evaltui.core.compare.values import ABSENT, at
from evaltui.core.editing import calls, content, turns
from evaltui.core.editing.calls import ExpectedCall, expected_calls, expected_responses
from evaltui.core.editing.intermediate import (
    end_of_events,
    events_path,
    field_parts,
    holds_only,
    new_event,
    shape,
)
from evaltui.core.editing.json_paths import (
    case_path,
    in_style,
    list_at,
    place,
    turn_count,
    turn_path,
    value_at,
)
from evaltui.core.editing.replace_value import replace_value, replace_value_at
from evaltui.core.jsondoc.edits import Edit, EditError, Insert, Put, Remove, apply_to_data
from evaltui.core.metrics.response_match import scored_text
from evaltui.core.model.arg_path import parse_arg_path
from evaltui.core.model.eval_set import Invocation, InvocationEvents, tool_calls, tool_responses
from evaltui.core.model.outcome import Call, CallDiff, TurnResult
from evaltui.core.model.problems import JsonPath

Rows = Sequence[CallDiff]


def accept_argument(data: Any, case: int, turn: int, rows: Rows, row: int, path: str) -> list[Edit]:
    """One argument of a changed call, `path` as in `ArgDiff`; "" is all of them, where one side has none."""
    edits = _Edits(data, case)
    number = _numbers(rows, expected_calls(data, case, turn))[row]
    actual = rows[row].actual
    if number is None or actual is None:
        raise EditError("only a call that was expected and made has arguments to accept")
    _take_argument(edits, turn, number, path, actual.args)
    return edits.done


def accept_call(data: Any, case: int, turn: int, rows: Rows, row: int, actual: Invocation) -> list[Edit]:
    """Expect a changed call as it was made, an extra one, no missing one, a moved one where it was made."""
    edits = _Edits(data, case)
    numbers = _numbers(rows, expected_calls(data, case, turn))
    number = numbers[row]
    # A call that was expected elsewhere says nothing of the order of the others.
    before = [
        one
        for other, one in zip(rows[:row], numbers, strict=False)
        if one is not None and other.op != "moved"
    ]
    after = before[-1] + 1 if before else 0
    made_before = sum(other.actual is not None for other in rows[:row])
    match rows[row].op:
        case "extra":
            _insert(edits, turn, after, _made(actual)[made_before])
        case "missing" if number is not None:
            edits.do(calls.delete_call(edits.data, edits.case, turn, number))
        case "moved" if number is not None:
            edits.do(calls.move_call(edits.data, edits.case, turn, number, after - (number < after)))
        case "changed" if number is not None:
            _change(edits, turn, number, rows[row], _made(actual)[made_before])
    return edits.done


def accept_calls(data: Any, case: int, turn: int, rows: Rows, actual: Invocation) -> list[Edit]:
    """All calls of a turn, with arguments, in their order. A turn that said nothing of them does now."""
    edits = _Edits(data, case)
    _take_calls(edits, turn, rows, actual)
    return edits.done


def accept_answer(data: Any, case: int, turn: int, actual: Invocation) -> list[Edit]:
    """The text that was scored. Without one, no answer is expected any more."""
    edits = _Edits(data, case)
    _take_answer(edits, turn, actual)
    return edits.done


def accept_state(data: Any, case: int, path: str, final_state: Mapping[str, Any]) -> list[Edit]:
    """One difference of the final state, `path` as in `StateDiff`. A key that is gone is expected as null."""
    owner, expected, actual = _states(data, case, final_state)
    inside = _steps(path)
    if at(expected, inside) is ABSENT and at(actual, inside) is ABSENT:
        raise EditError(f"nothing is expected of {path} in the final state any more")
    return replace_value_at(owner, expected, actual, inside)


def accept_turn(data: Any, case: int, turn: int, result: TurnResult, actual: Invocation) -> list[Edit]:
    """Calls and answer, as far as they are scored: a mark that leaves them out is kept, and so are they."""
    edits = _Edits(data, case)
    _take_turn(edits, turn, result, actual)
    return edits.done


def accept_case(
    data: Any,
    case: int,
    results: Sequence[TurnResult],
    actual: Sequence[Invocation],
    final_state: Mapping[str, Any] | None,
) -> list[Edit]:
    """Every turn, and the final state where something is expected of it and it is known.

    A turn that the agent did not get to stays as it is, as what the user says in it is the case's own; what
    the agent did beyond the last turn is left out.
    """
    edits = _Edits(data, case)
    reached = zip(range(turn_count(data, case)), results, actual, strict=False)
    for turn, result, did in reached:
        _take_turn(edits, turn, result, did)
    if final_state is not None:
        owner, expected, reached_state = _states(edits.data, edits.case, final_state)
        edits.do(list(replace_value(owner, expected, reached_state)))
    return edits.done


class _Edits:
    """Edits of one case, each made for what the ones before it left.

    As a set may be large, `data` is one with this case alone, and `case` its number there.
    """

    case = 0

    def __init__(self, data: Any, case: int) -> None:
        self._path = case_path(data, case)
        self.data: Any = {**data, self._path[0]: [value_at(data, self._path)]}
        self._done: list[Edit] = []

    def do(self, edits: Sequence[Edit]) -> None:
        self.data = apply_to_data(self.data, edits)
        self._done += edits

    @property
    def done(self) -> list[Edit]:
        """As edits of the whole set."""
        return [replace(edit, path=(*self._path, *edit.path[len(self._path) :])) for edit in self._done]


# Calls


@dataclass(frozen=True)
class _Made:
    """A call that was made. `together` is whether it came with the one before, as one step of the agent;
    `response` is None where none is known."""

    call: Call
    author: str
    together: bool
    response: dict[str, Any] | None


def _made(actual: Invocation) -> list[_Made]:
    found = calls_of(actual.intermediate_data)
    places = _authors(actual) or [("", number) for number in range(len(found))]
    responses = _responses(actual)
    return [
        _Made(call, author, number > 0 and places[number - 1][1] == event, response)
        for number, (call, (author, event), response) in enumerate(zip(found, places, responses, strict=True))
    ]


def _authors(actual: Invocation) -> list[tuple[str, int]]:
    """Who made each call, and in which event; nothing where the turn has no events."""
    data = actual.intermediate_data
    if not isinstance(data, InvocationEvents):
        return []
    return [
        (event.author, number)
        for number, event in enumerate(data.invocation_events)
        if event.content
        for part in event.content.parts or []
        if part.function_call
    ]


def _responses(actual: Invocation) -> list[dict[str, Any] | None]:
    """What the tools answered, call by call: by id, where there are none by name, in their order."""
    waiting = tool_responses(actual.intermediate_data)
    found: list[dict[str, Any] | None] = []
    for call in tool_calls(actual.intermediate_data):
        own = next((one for one in waiting if one.id and one.id == call.id), None) or next(
            (one for one in waiting if not (one.id and call.id) and one.name == call.name), None
        )
        if own is not None:
            waiting.remove(own)
        found.append(own.response if own else None)
    return found


def _numbers(rows: Rows, expected: Sequence[ExpectedCall]) -> list[int | None]:
    """The expected call that each row is about, from 0; None for one that nothing expects.

    Of equal calls it may be another one than the one that was aligned: they stand for each other.
    """
    wanted = [Call(call.name, call.args) for call in expected]
    numbers: list[int | None] = [None] * len(rows)
    left = list(range(len(wanted)))
    start = 0
    for row, diff in enumerate(rows):
        if diff.expected is not None and diff.op != "moved":
            numbers[row] = found = _first(wanted, range(start, len(wanted)), diff.expected)
            start = found + 1
            left.remove(found)
    for row, diff in enumerate(rows):
        if diff.expected is not None and diff.op == "moved":
            numbers[row] = found = _first(wanted, left, diff.expected)
            left.remove(found)
    if left:
        raise _other_calls()
    return numbers


def _first(wanted: Sequence[Call], among: Sequence[int], call: Call) -> int:
    for number in among:
        if wanted[number] == call:
            return number
    raise _other_calls()


def _other_calls() -> EditError:
    return EditError("the expected calls are no longer those that were scored: look at the result again")


def _take_calls(edits: _Edits, turn: int, rows: Rows, actual: Invocation) -> None:
    numbers = _numbers(rows, expected_calls(edits.data, edits.case, turn))
    for diff, missing in reversed(list(zip(rows, numbers, strict=True))):
        if diff.op == "missing" and missing is not None:
            edits.do(calls.delete_call(edits.data, edits.case, turn, missing))
    _bring_in_order(edits, turn, rows, numbers)
    kept = [diff for diff in rows if diff.op != "missing"]
    for number, (diff, made) in enumerate(zip(kept, _made(actual), strict=True)):
        if diff.op == "extra":
            _insert(edits, turn, number, made)
        elif diff.op == "changed":
            _change(edits, turn, number, diff, made)


def _bring_in_order(edits: _Edits, turn: int, rows: Rows, numbers: Sequence[int | None]) -> None:
    """Move what was made at another place behind the one that was made before it; extra ones come later."""
    kept = [
        (diff.op, number)
        for diff, number in zip(rows, numbers, strict=True)
        if number is not None and diff.op != "missing"
    ]
    order = sorted(number for _, number in kept)
    before: int | None = None
    for op, number in kept:
        if op == "moved":
            start = order.index(number)
            order.remove(number)
            to = 0 if before is None else order.index(before) + 1
            order.insert(to, number)
            edits.do(calls.move_call(edits.data, edits.case, turn, start, to))
        before = number


def _insert(edits: _Edits, turn: int, index: int, made: _Made) -> None:
    case = edits.case
    event = _event_for(edits, turn, index, made)
    if event is None:
        edits.do(calls.insert_call(edits.data, case, turn, index, made.call.name, made.call.args))
    else:
        call = {"name": made.call.name, "args": made.call.args or {}}
        part = in_style(edits.data, events_path(edits.data, case, turn), {"function_call": call})
        edits.do([new_event(edits.data, case, turn, event, part, "model", made.author)])
    if made.call.args is None:
        edits.do([Remove(calls.args_path(edits.data, case, turn, index))])
    if made.response is not None and _keeps_responses(edits):
        edits.do(calls.add_response(edits.data, case, turn, index, made.response))


def _event_for(edits: _Edits, turn: int, index: int, made: _Made) -> int | None:
    """The place of an event of its own; None where the call belongs into a list, or into a call's event."""
    data, case = edits.data, edits.case
    if shape(data, case, turn) != "events":
        return None
    places = field_parts(data, case, turn, "function_call")
    if not index:
        return places[0][0] if places else end_of_events(data, case, turn)
    event = places[index - 1][0]
    is_inside = index < len(places) and places[index][0] == event
    if made.together or is_inside:
        return None
    event += 1
    while holds_only(data, case, turn, event, "function_response"):
        event += 1
    return event


def _keeps_responses(edits: _Edits) -> bool:
    every_turn = range(turn_count(edits.data, edits.case))
    return any(expected_responses(edits.data, edits.case, turn) for turn in every_turn)


def _change(edits: _Edits, turn: int, number: int, diff: CallDiff, made: _Made) -> None:
    """The arguments that differ, and the response to them where there was one."""
    for arg in diff.args:
        if arg.op != "same":
            _take_argument(edits, turn, number, arg.path, made.call.args)
    answers = calls.answers_to(edits.data, edits.case, turn, number)
    if len(answers) == 1 and made.response is not None:
        path = (*expected_responses(edits.data, edits.case, turn)[answers[0]].path, "response")
        edits.do(list(replace_value(path, value_at(edits.data, path), made.response)))


def _take_argument(edits: _Edits, turn: int, number: int, path: str, actual: dict[str, Any] | None) -> None:
    args = calls.args_path(edits.data, edits.case, turn, number)
    expected = expected_calls(edits.data, edits.case, turn)[number].args
    inside = _steps(path)
    if not inside or expected is None or actual is None:
        edits.do(_other_args(args, expected, actual, inside))
    # One before it in the same list may have taken it along.
    elif at(expected, inside) is not ABSENT or at(actual, inside) is not ABSENT:
        edits.do(replace_value_at(args, expected, actual, inside))


def _other_args(
    path: JsonPath, expected: dict[str, Any] | None, actual: dict[str, Any] | None, inside: JsonPath
) -> list[Edit]:
    """Arguments of which one side has none, which is something else than `{}`."""
    if actual is not None:
        return [Put(path, {key: value for key, value in actual.items() if key in inside})]
    if expected is None:
        return []
    return [Remove((*path, *inside) if len(expected) > 1 else path)]


def _steps(path: str) -> JsonPath:
    return tuple(step for step in parse_arg_path(path) if isinstance(step, str | int)) if path else ()


# Answer


def _take_answer(edits: _Edits, turn: int, actual: Invocation) -> None:
    case = edits.case
    said = _texts(actual)
    texts = turns.answer_texts(edits.data, case, turn)
    if "\n".join(one.text for one in texts if one.text) == "\n".join(said):
        return
    if not said:
        _drop_answer(edits, turn)
        return
    for known, text in zip(texts, said, strict=False):
        edits.do(turns.set_answer_text(edits.data, case, turn, text, known.part))
    for known in reversed(texts[len(said) :]):
        edits.do(turns.remove_answer_part(edits.data, case, turn, known.part))
    path = place(edits.data, turn_path(edits.data, case, turn), "final_response")
    for count, text in enumerate(said[len(texts) :], 1):
        if texts:
            edits.do([Insert((*path, "parts"), texts[-1].part + count, {"text": text})])
        else:
            edits.do(content.add_part(edits.data, path, {"text": text}, "model"))


def _texts(actual: Invocation) -> list[str]:
    """The texts that are scored, part by part where they are parts of the answer."""
    parts = (actual.final_response.parts if actual.final_response else None) or []
    texts = [part.text for part in parts if part.text and not part.thought]
    scored = scored_text(actual, thoughts=False)
    return texts or ([scored] if scored else [])


def _drop_answer(edits: _Edits, turn: int) -> None:
    """The texts, and all of the answer where nothing but thoughts would be left."""
    path = (*place(edits.data, turn_path(edits.data, edits.case, turn), "final_response"), "parts")
    texts = turns.answer_texts(edits.data, edits.case, turn)
    others = [part for part in list_at(edits.data, path) if "text" not in part]
    if not others:
        edits.do(turns.remove_answer(edits.data, edits.case, turn))
        return
    for known in reversed(texts):
        edits.do(turns.remove_answer_part(edits.data, edits.case, turn, known.part))


# State, turn


def _states(
    data: Any, case: int, final_state: Mapping[str, Any]
) -> tuple[JsonPath, dict[str, Any], dict[str, Any]]:
    """Where the expected final state is, what it is, and what the keys that it names have become."""
    owner = place(data, case_path(data, case), "final_session_state")
    value = value_at(data, owner)
    expected = value if isinstance(value, dict) else {}
    return owner, expected, {key: final_state.get(key) for key in expected}


def _take_turn(edits: _Edits, turn: int, result: TurnResult, actual: Invocation) -> None:
    if result.expectation == "context":
        return
    if result.expectation != "not checked":
        _take_calls(edits, turn, result.calls, actual)
    _take_answer(edits, turn, actual)
