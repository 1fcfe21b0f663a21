"""Accepting: the actual behavior of an agent becomes the expected one.

Only scored parts are accepted: calls, texts before the answer in a turn that expects any, the text of the
answer, the final state. Thoughts never become expected text. Differences that a rule or criterion allows
stay, and so do other parts of an answer, marks on turns, authors of unchanged texts, and the form of a turn.
A call keeps its id, and its response as long as its arguments stay; with other arguments it gets the actual
response. A new call gets a response if the case has responses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from evaltui.core.model.arg_rule import json_path_of
from evaltui.core.model.eval_set import (
    Invocation,
    InvocationEvents,
    answer_text,
    scored_text,
    tool_calls,
    tool_responses,
)
from evaltui.core.model.events import ANSWERS, ARGUMENTS, TURN
from evaltui.core.model.json_values import ABSENT, indexed_objects, object_or_empty, value_at
from evaltui.core.model.outcome import Call, CallDiff, TurnResult, calls_of
from evaltui.core.model.problems import JsonPath
from evaltui.core.model.text_diff import IntermediateDiff
from evaltui.documents.editing.calls import CallEditor
from evaltui.documents.editing.intermediate import IntermediateData, IntermediateResponse
from evaltui.documents.editing.json_paths import field_value, in_style
from evaltui.documents.editing.set import CaseEditor
from evaltui.documents.editing.turn import TurnEditor
from evaltui.documents.edits import EditError
from evaltui.documents.values import put, remove


@dataclass(frozen=True)
class TextBefore:
    """An expected text, which is in one part or more."""

    intermediate: IntermediateData
    parts: tuple[IntermediateResponse, ...]

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts)

    @property
    def place(self) -> int:
        """The index of its event or pair."""
        return int(self.parts[0].entry[-1])

    def set_text(self, text: str) -> None:
        if text != self.text:
            put(self.intermediate.data, (*self.parts[0].path, "text"), text)
            for part in reversed(self.parts[1:]):
                remove(self.intermediate.data, part.path)

    def delete(self) -> None:
        """Deletes the text, and the event or pair around it if it has no other content."""
        for part in reversed(self.parts):
            part.delete()


def all_texts(turn: TurnEditor) -> list[TextBefore]:
    """The texts in order, including a text that is scored as the answer."""
    texts = [text for text in turn.intermediate_responses if text.text]
    return [
        TextBefore(turn.intermediate, tuple(parts)) for _, parts in groupby(texts, lambda text: text.entry)
    ]


def text_as_answer(turn: TurnEditor, *, thoughts: bool) -> TextBefore | None:
    """The text that is scored as the answer; None without one, and where `thoughts` are scored."""
    answer = turn.answer
    thought = any(part.get("thought") and part.get("text") for _, part in indexed_objects(answer.parts))
    if thoughts or not thought or any(text.text for text in answer.texts):
        return None
    return next(reversed(all_texts(turn)), None)


def insert_text(turn: TurnEditor, at: int, author: str, text: str, calls: int) -> None:
    """Inserts a text before the text at index `at`; in a turn of events after a number of calls, where the
    texts around it allow that."""
    existing, intermediate, part = all_texts(turn), turn.intermediate, {"text": text}
    first = existing[at - 1].place + 1 if at else 0
    if intermediate.shape != "events":
        place = existing[0].place if existing and not at else first
        intermediate.insert_in_list("intermediate_responses", place, [author, [part]])
        return
    last = existing[at].place if at < len(existing) else intermediate.end_of_events
    event = max(first, min(_behind_calls(intermediate, calls), last))
    intermediate.insert_event(event, part, "model", author)


def _behind_calls(intermediate: IntermediateData, calls: int) -> int:
    """The index of the event after a number of calls and their responses."""
    events = [event for event, _ in intermediate.parts_with("function_call")][:calls]
    if not events:
        return 0
    event = events[-1] + 1
    while intermediate.holds_responses(event):
        event += 1
    return event


@dataclass(frozen=True)
class ActualCall:
    """A call that was made."""

    call: Call
    author: str
    together: bool
    """Whether the same event holds the call before, as one step of the agent."""
    response: dict[str, Any] | None
    """The response; None where it is unknown."""


def actual_calls(actual: Invocation) -> list[ActualCall]:
    calls = calls_of(actual.intermediate_data)
    origins = _authors(actual) or [("", number) for number in range(len(calls))]
    responses = _responses(actual)
    return [
        ActualCall(call, author, number > 0 and origins[number - 1][1] == event, response)
        for number, (call, (author, event), response) in enumerate(
            zip(calls, origins, responses, strict=True)
        )
    ]


def _authors(actual: Invocation) -> list[tuple[str, int]]:
    """The author and the event of each call; empty where the turn has no events."""
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
    """The responses of the tools by call: by id, without ids by name, in order."""
    waiting = tool_responses(actual.intermediate_data)
    responses: list[dict[str, Any] | None] = []
    for call in tool_calls(actual.intermediate_data):
        own = next(
            (response for response in waiting if response.id and response.id == call.id), None
        ) or next(
            (
                response
                for response in waiting
                if not (response.id and call.id) and response.name == call.name
            ),
            None,
        )
        if own is not None:
            waiting.remove(own)
        responses.append(own.response if own else None)
    return responses


def answer_texts(actual: Invocation) -> list[str]:
    """The texts that are scored, part by part where they are parts of the answer."""
    parts = (actual.final_response.parts if actual.final_response else None) or []
    texts = [part.text for part in parts if part.text and not part.thought]
    scored = scored_text(actual, thoughts=False)
    return texts or ([scored] if scored else [])


def calls_before_texts(actual: Invocation) -> list[int]:
    """The number of calls before each intermediate response; empty where the turn has no events."""
    data = actual.intermediate_data
    if not isinstance(data, InvocationEvents):
        return []
    counts, made = [], 0
    for event in data.invocation_events:
        parts = (event.content.parts or []) if event.content else []
        if answer_text(parts):
            counts.append(made)
        made += sum(part.function_call is not None for part in parts)
    return counts


Rows = Sequence[CallDiff]


class Accepting:
    """Changes of a copy of a case.

    A turn is named by its number, `rows` are its scored calls, `row` is the index of one of them, `actual` is
    the actual turn. `thoughts` tells whether thoughts are scored, as in ADK. Raises EditError where the case
    does not have the scored calls or texts.
    """

    def __init__(self, case: CaseEditor, *, thoughts: bool = False) -> None:
        self._case = case
        self._data = case.data
        self._thoughts = thoughts

    def _turn(self, turn: int) -> TurnEditor:
        """The editor of a turn, with all changes so far."""
        return self._case.turn(turn)

    # What can be accepted

    def argument(self, turn: int, rows: Rows, row: int, path: str) -> None:
        """Accepts an argument of a changed call at a `path` of `ArgDiff`; "" for all, where one side has
        none."""
        number = _expected_indices(rows, self._turn(turn).calls)[row]
        actual = rows[row].actual
        if number is None or actual is None:
            raise EditError("Only a matched call has arguments to accept")
        self._arguments(self._turn(turn).call(number), [path], actual.args)

    def call(self, turn: int, rows: Rows, row: int, actual: Invocation) -> None:
        """Accepts the difference of a call: expects it with its actual arguments and place, or removes it."""
        _require({ARGUMENTS, TURN}, actual)
        numbers = _expected_indices(rows, self._turn(turn).calls)
        number = numbers[row]
        # A call that was expected elsewhere says nothing of the order of the others.
        before = [
            index
            for diff, index in zip(rows[:row], numbers, strict=False)
            if index is not None and diff.op != "moved"
        ]
        after = before[-1] + 1 if before else 0
        made_before = sum(diff.actual is not None for diff in rows[:row])
        match rows[row].op:
            case "extra":
                self._insert(turn, after, actual_calls(actual)[made_before])
            case "missing" if number is not None:
                self._turn(turn).call(number).delete()
            case "moved" if number is not None:
                self._turn(turn).call(number).move(after - (number < after))
            case "changed" if number is not None:
                self._change(turn, number, rows[row], actual_calls(actual)[made_before])

    def calls(self, turn: int, rows: Rows, actual: Invocation) -> None:
        """Accepts all calls of a turn, with arguments and order; an unspecified turn gets them, too."""
        _require({ARGUMENTS, TURN}, actual)
        numbers = _expected_indices(rows, self._turn(turn).calls)
        for diff, missing in reversed(list(zip(rows, numbers, strict=True))):
            if diff.op == "missing" and missing is not None:
                self._turn(turn).call(missing).delete()
        for start, to in _moves(rows, numbers):
            self._turn(turn).call(start).move(to)
        remaining = [diff for diff in rows if diff.op != "missing"]
        for number, (diff, made) in enumerate(zip(remaining, actual_calls(actual), strict=True)):
            if diff.op == "extra":
                self._insert(turn, number, made)
            elif diff.op == "changed":
                self._change(turn, number, diff, made)

    def text(self, turn: int, rows: Sequence[IntermediateDiff], row: int, actual: Invocation) -> None:
        """Accepts the difference of one text before the answer."""
        _require({ANSWERS, TURN}, actual)
        self._require_texts(turn, rows)
        self._text(turn, rows, row, sum(diff.expected is not None for diff in rows[:row]), actual)

    def texts(self, turn: int, rows: Sequence[IntermediateDiff], actual: Invocation) -> None:
        """Accepts all texts before the answer; `rows` are empty where the turn expects none."""
        _require({ANSWERS, TURN}, actual)
        if not rows:
            return
        self._require_texts(turn, rows)
        for row in range(len(rows)):
            self._text(turn, rows, row, sum(diff.actual is not None for diff in rows[:row]), actual)

    def answer(self, turn: int, actual: Invocation) -> None:
        """Accepts the scored text as the answer; without a text, removes the expected answer."""
        _require({ANSWERS, TURN}, actual)
        answer, texts = self._turn(turn).answer, answer_texts(actual)
        before = text_as_answer(self._turn(turn), thoughts=self._thoughts)
        current = before.text if before else "\n".join(part.text for part in answer.texts if part.text)
        if current == "\n".join(texts):
            return
        if before is not None:
            # Beside an answer it would be a text before it.
            before.delete()
        # Where nothing but thoughts would be left, all of the answer goes.
        others = any("text" not in part for part in answer.parts)
        if texts or others:
            answer.replace_texts(texts)
        else:
            answer.remove()

    def state(self, path: str, final_state: Mapping[str, Any]) -> None:
        """Accepts one difference of the final state, `path` as in `StateDiff`; a removed key becomes null."""
        expected, actual = self._states(final_state)
        inside = json_path_of(path)
        if value_at(expected, inside, ABSENT) is value_at(actual, inside, ABSENT) is ABSENT:
            raise EditError(f"{path} is no longer expected in the final state")
        put(self._data, self._case.final_state.path, _with_place(expected, actual, inside))

    def turn(self, turn: int, result: TurnResult, actual: Invocation) -> None:
        """Accepts calls, texts and answer of a turn, as far as they are known, scored and not excluded."""
        if result.expectation == "context" or TURN in actual.untold:
            return
        if result.expectation not in ("not checked", "unknown") and ARGUMENTS not in actual.untold:
            self.calls(turn, result.calls, actual)
        if ANSWERS not in actual.untold:
            self.texts(turn, result.intermediate, actual)
            self.answer(turn, actual)

    def case(
        self,
        results: Sequence[TurnResult],
        actual: Sequence[Invocation],
        final_state: Mapping[str, Any] | None,
    ) -> None:
        """Accepts every turn, and the final state if it is expected and known.

        A turn that the agent did not reach stays, because its message belongs to the case; further actual
        turns are ignored.
        """
        reached = zip(range(self._case.turn_count), results, actual, strict=False)
        for turn, result, done in reached:
            self.turn(turn, result, done)
        if final_state is not None:
            expected, now = self._states(final_state)
            if expected != now:
                put(self._data, self._case.final_state.path, _spelt_as(expected, now))

    # How

    def _arguments(self, call: CallEditor, paths: Iterable[str], actual: dict[str, Any] | None) -> None:
        """Replaces arguments of a call at these paths by the actual ones; "" for all of them."""
        arguments = call.arguments
        for path in paths:
            arguments = _with_argument(arguments, actual, json_path_of(path))
        call.replace_arguments(arguments)

    def _insert(self, turn: int, index: int, made: ActualCall) -> None:
        editor = self._turn(turn)
        event = _event_for(editor, index, made)
        if event is None:
            editor.insert_call(index, made.call.name, made.call.args)
        else:
            call = {"name": made.call.name, "args": made.call.args or {}}
            part = in_style(self._data, editor.intermediate.events_path, {"function_call": call})
            editor.intermediate.insert_event(event, part, "model", made.author)
        if made.call.args is None:
            self._turn(turn).call(index).replace_arguments(None)
        if made.response is not None and self._keeps_responses:
            self._turn(turn).call(index).add_response(made.response)

    def _require_texts(self, turn: int, rows: Sequence[IntermediateDiff]) -> None:
        as_answer = text_as_answer(self._turn(turn), thoughts=self._thoughts)
        current = [text.text for text in all_texts(self._turn(turn))]
        if current[: len(current) - (as_answer is not None)] != [
            row.expected for row in rows if row.expected is not None
        ]:
            raise EditError("Expected texts changed since they were scored; review the result")

    def _text(
        self, turn: int, rows: Sequence[IntermediateDiff], row: int, at: int, actual: Invocation
    ) -> None:
        """Replaces, inserts or deletes the text at index `at` of the texts expected so far."""
        editor, diff = self._turn(turn), rows[row]
        if diff.actual is None:
            all_texts(editor)[at].delete()
        elif diff.expected is not None:
            all_texts(editor)[at].set_text(diff.actual)
        else:
            text_index = sum(earlier.actual is not None for earlier in rows[:row])
            calls = dict(enumerate(calls_before_texts(actual))).get(text_index, 0)
            insert_text(editor, at, diff.author, diff.actual, calls)

    @property
    def _keeps_responses(self) -> bool:
        return any(self._turn(turn).responses for turn in range(self._case.turn_count))

    def _change(self, turn: int, number: int, diff: CallDiff, made: ActualCall) -> None:
        """Replaces the arguments that differ, and the response to them where there was one."""
        paths = [arg.path for arg in diff.args if arg.op != "same"]
        call = self._turn(turn).call(number)
        responses = call.responses
        self._arguments(call, paths, made.call.args)
        if len(responses) == 1 and made.response is not None:
            responses[0].replace(_spelt_as(responses[0].response, made.response))

    def _states(self, final_state: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The expected final state, and the actual values of the keys that it names."""
        expected = object_or_empty(field_value(self._data, self._case.path, "final_session_state"))
        return expected, {key: final_state.get(key) for key in expected}


def _require(needed: set[str], actual: Invocation) -> None:
    for what in needed & actual.untold.keys():
        raise EditError(f"Unknown, so nothing to accept: {what}")


def _expected_indices(rows: Rows, expected: Sequence[CallEditor]) -> list[int | None]:
    """The index of the expected call of each row; None for an unexpected call. Of equal calls, any may be
    returned."""
    calls = [Call(call.name, call.arguments) for call in expected]
    numbers: list[int | None] = [None] * len(rows)
    left = list(range(len(calls)))
    start = 0
    for row, diff in enumerate(rows):
        if diff.expected is not None and diff.op != "moved":
            numbers[row] = call_number = _first(calls, range(start, len(calls)), diff.expected)
            start = call_number + 1
            left.remove(call_number)
    for row, diff in enumerate(rows):
        if diff.expected is not None and diff.op == "moved":
            numbers[row] = call_number = _first(calls, left, diff.expected)
            left.remove(call_number)
    if left:
        raise _other_calls()
    return numbers


def _first(calls: Sequence[Call], among: Sequence[int], call: Call) -> int:
    for number in among:
        if calls[number] == call:
            return number
    raise _other_calls()


def _other_calls() -> EditError:
    return EditError("Expected calls changed since they were scored; review the result")


def _moves(rows: Rows, numbers: Sequence[int | None]) -> Iterator[tuple[int, int]]:
    """The moves that bring each moved call behind the call that was made before it."""
    matched = [
        (diff.op, number)
        for diff, number in zip(rows, numbers, strict=True)
        if number is not None and diff.op != "missing"
    ]
    order = sorted(number for _, number in matched)
    before: int | None = None
    for op, number in matched:
        if op == "moved":
            start = order.index(number)
            order.remove(number)
            to = 0 if before is None else order.index(before) + 1
            order.insert(to, number)
            yield start, to
        before = number


def _event_for(turn: TurnEditor, index: int, made: ActualCall) -> int | None:
    """The index of an event of its own; None where the call belongs into a list, or into a call's event."""
    intermediate = turn.intermediate
    if intermediate.shape != "events":
        return None
    calls = intermediate.parts_with("function_call")
    if not index:
        return calls[0][0] if calls else intermediate.end_of_events
    event = calls[index - 1][0]
    is_inside = index < len(calls) and calls[index][0] == event
    if made.together or is_inside:
        return None
    event += 1
    while intermediate.holds_responses(event):
        event += 1
    return event


def _with_argument(
    expected: dict[str, Any] | None, actual: dict[str, Any] | None, inside: JsonPath
) -> dict[str, Any] | None:
    """Arguments with one argument as the agent gave it; None, no arguments, differs from `{}`."""
    if inside and expected is not None and actual is not None:
        # One before it in the same list may have brought it along.
        is_there = any(value_at(args, inside, ABSENT) is not ABSENT for args in (expected, actual))
        return _with_place(expected, actual, inside) if is_there else expected
    if actual is not None:
        return {key: value for key, value in actual.items() if key in inside}
    if expected is None or len(expected) == 1 or not inside:
        return None
    return {key: value for key, value in expected.items() if key != inside[0]}


# Values, which are equal as they are where they are scored, by `==`: what is equal keeps its spelling


def _spelt_as(old: Any, new: Any) -> Any:
    """The new value, in which parts equal to the old value keep its spelling and order of members."""
    if isinstance(old, dict) and isinstance(new, dict):
        members = {key: _spelt_as(value, new[key]) for key, value in old.items() if key in new}
        return members | {key: value for key, value in new.items() if key not in old}
    if isinstance(old, list) and isinstance(new, list):
        items = [_spelt_as(*both) for both in zip(old, new, strict=False)]
        return items + new[len(old) :]
    return old if old == new else new


def _with_place(old: Any, new: Any, inside: JsonPath) -> Any:
    """The old value with the new value at a place inside it; one of them has the place.

    In lists of different lengths, a new element brings the new ones before it, and a removed element removes
    those after it, so that no list results that neither side has at this place.
    """
    if not inside:
        return _spelt_as(old, new)
    step, rest = inside[0], inside[1:]
    if isinstance(step, int):
        if step >= len(new):
            return old[:step]
        if step >= len(old):
            return old + new[len(old) : step + 1]
        return [*old[:step], _with_place(old[step], new[step], rest), *old[step + 1 :]]
    if step not in new:
        return {key: value for key, value in old.items() if key != step}
    return {**old, step: _with_place(old[step], new[step], rest) if step in old else new[step]}
