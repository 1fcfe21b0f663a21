"""A turn of a conversation: its messages, and which calls and answer are expected."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from evaltui.core.model.json_values import field_of, indexed_objects, list_at, spelling_in, value_at
from evaltui.core.model.problems import JsonPath
from evaltui.documents.editing import intermediate
from evaltui.documents.editing.calls import CallEditor, ResponseEditor, calls_in, insert_call, responses_in
from evaltui.documents.editing.intermediate import IntermediateData, IntermediateResponse
from evaltui.documents.editing.json_paths import field_path, in_style
from evaltui.documents.editing.references import CaseRef, References, Renumbering
from evaltui.documents.editing.session import RubricsEditor
from evaltui.documents.edits import EditError
from evaltui.documents.values import append, discard, duplicate, insert, move, put, remove


@dataclass(frozen=True)
class TextPart:
    """A text of a message that is no thought."""

    text: str
    part: int
    """Its index in `parts`."""
    path: JsonPath
    """The path of the part."""


@dataclass(frozen=True)
class MessageEditor:
    """A message of a turn, which need not be there yet."""

    data: Any
    """The parsed JSON of the eval set."""
    path: JsonPath
    role: Literal["user", "model"]
    """The role of the message, which is written in a new message."""

    @property
    def exists(self) -> bool:
        return isinstance(value_at(self.data, self.path), dict)

    @property
    def parts_path(self) -> JsonPath:
        return (*self.path, "parts")

    @property
    def parts(self) -> list[Any]:
        return list_at(self.data, self.parts_path)

    @cached_property
    def texts(self) -> list[TextPart]:
        """The texts in order, without thoughts."""
        return [
            TextPart(part["text"], index, (*self.parts_path, index))
            for index, part in indexed_objects(self.parts)
            if isinstance(part.get("text"), str) and not part.get("thought")
        ]

    def set_text(self, text: str, part: int | None = None) -> None:
        """Changes the text of a part, by default of the first part with a text; everything else stays.

        A message without a text gets one at its end, a turn without the message gets that.
        """
        chosen = [item for item in self.texts if part is None or item.part == part]
        if part is not None and not chosen:
            raise EditError(f"Part {part + 1} of the message is not a text")
        if chosen:
            put(self.data, (*chosen[0].path, "text"), text)
        else:
            self.add_parts([{"text": text}])

    def replace_texts(self, texts: Iterable[str]) -> None:
        """Makes these its texts, in their order; other parts stay."""
        new, current = list(texts), self.texts
        if not current:
            self.add_parts([{"text": text} for text in new])
            return
        for old, text in zip(current, new, strict=False):
            put(self.data, (*old.path, "text"), text)
        for old in reversed(current[len(new) :]):
            remove(self.data, old.path)
        for behind, text in enumerate(new[len(current) :], current[-1].part + 1):
            insert(self.data, self.parts_path, behind, {"text": text})

    def add_parts(self, parts: list[dict[str, Any]]) -> None:
        """Adds parts at the end of the message, which is created if it is missing."""
        if not self.exists:
            put(self.data, self.path, {"parts": parts, "role": self.role})
        elif not isinstance(value_at(self.data, self.parts_path), list):
            put(self.data, self.parts_path, parts)
        else:
            for part in parts:
                append(self.data, self.parts_path, part)

    def attach_file(self, payload: bytes, mime_type: str) -> None:
        """Adds a file at the end, in base64 of the URL-safe alphabet, which is how genai writes it."""
        encoded = base64.urlsafe_b64encode(payload).decode("ascii")
        blob = in_style(self.data, self.path, {"data": encoded, "mime_type": mime_type})
        self.add_parts([in_style(self.data, self.path, {"inline_data": blob})])

    def remove_part(self, part: int) -> None:
        if not 0 <= part < len(self.parts):
            raise EditError(f"The message has no part {part + 1}")
        remove(self.data, (*self.parts_path, part))

    def set_response(self, part: int, field: Literal["name", "response"], value: Any) -> None:
        """Changes the name or the response of the part that is a function response."""
        response = response_in(self.parts[part]) if 0 <= part < len(self.parts) else None
        if response is None:
            raise EditError(f"Part {part + 1} of the message is not a response")
        if response.get(field) != value:
            key = spelling_in("function_response", self.parts[part])
            put(self.data, (*self.parts_path, part, key, field), value)

    def remove(self) -> None:
        """Takes the whole message out."""
        discard(self.data, self.path)


def response_in(part: Any) -> dict[str, Any] | None:
    """The function response that a part is; None where it is none."""
    response = field_of(part, "function_response")
    return response if isinstance(response, dict) else None


ExpectationKind = Literal["calls", "none", "unspecified", "unchecked"]
EXPECTATION_KINDS: tuple[ExpectationKind, ...] = ("calls", "none", "unspecified", "unchecked")


@dataclass(frozen=True)
class TurnExpectation:
    """The tool calls that a turn expects.

    `calls`: these calls; `none`: no call; `unspecified`: nothing is said; `unchecked`: calls may be any.
    """

    kind: ExpectationKind
    context: bool
    """Whether the turn is run and not scored, with any expectation of calls."""


@dataclass(frozen=True)
class TurnEditor:
    """A turn of a case, created by `CaseEditor.turn`."""

    data: Any
    """The parsed JSON of the eval set."""
    config: Any
    """The parsed JSON of the config of the set; None without a file."""
    case: CaseRef
    path: JsonPath

    @property
    def number(self) -> int:
        """Its index in the conversation."""
        return int(self.path[-1])

    # Its place in the conversation

    @property
    def _count(self) -> int:
        return len(list_at(self.data, self.path[:-1]))

    @property
    def _references(self) -> References:
        return References(self.config)

    def _renumber(self, now: Renumbering) -> None:
        self._references.renumber_turns(self.case, now)

    def duplicate(self) -> None:
        """A copy right after the turn, with its mark. An invocation id is not copied: it names one turn."""
        turn, mode = self.number, self._references.turn_mode(self.case, self.number)
        key = field_path(self.data, self.path, "invocation_id")[-1]
        duplicate(self.data, self.path[:-1], turn).pop(key, None)
        self._renumber(lambda number: number + (number > turn))
        if mode:
            self._references.mark_turn(self.case, turn + 1, mode)

    def move(self, to: int) -> None:
        """Another place in the conversation, its mark with it; `to` is the index afterwards."""
        turn, to = self.number, max(0, min(to, self._count - 1))

        def now(number: int) -> int:
            if number == turn:
                return to
            return number - (turn < number <= to) + (to <= number < turn)

        move(self.data, self.path[:-1], turn, to)
        self._renumber(now)

    def delete(self) -> None:
        """Deletes the turn with its mark."""
        turn = self.number
        remove(self.data, self.path)
        self._renumber(lambda number: None if number == turn else number - (number > turn))

    # Its messages

    @property
    def user(self) -> MessageEditor:
        """The user's message."""
        return MessageEditor(self.data, field_path(self.data, self.path, "user_content"), "user")

    @property
    def answer(self) -> MessageEditor:
        """The expected answer."""
        return MessageEditor(self.data, field_path(self.data, self.path, "final_response"), "model")

    # What happens before the answer

    @cached_property
    def intermediate(self) -> IntermediateData:
        return IntermediateData(self.data, self.path)

    @cached_property
    def calls(self) -> list[CallEditor]:
        return calls_in(self.intermediate)

    def call(self, number: int) -> CallEditor:
        """The editor of a call. Raises EditError for a missing call."""
        calls = self.calls
        if not 0 <= number < len(calls):
            raise EditError(f"turn {self.number + 1} expects no call {number + 1}")
        return calls[number]

    def insert_call(self, index: int, name: str, arguments: Mapping[str, Any] | None = None) -> None:
        """Inserts a call before the call at `index`; without arguments, these are `{}` as in calls of
        models."""
        insert_call(self.intermediate, index, name, arguments)

    @property
    def responses(self) -> list[ResponseEditor]:
        return responses_in(self.intermediate)

    def response(self, number: int) -> ResponseEditor:
        """The editor of a response. Raises EditError for a missing response."""
        responses = self.responses
        if not 0 <= number < len(responses):
            raise EditError(f"turn {self.number + 1} has no tool response {number + 1}")
        return responses[number]

    @property
    def intermediate_responses(self) -> list[IntermediateResponse]:
        """The expected texts of agents before the answer."""
        return intermediate.intermediate_responses(self.intermediate)

    def intermediate_response(self, number: int) -> IntermediateResponse:
        """The editor of a text before the answer. Raises EditError for a missing text."""
        texts = self.intermediate_responses
        if not 0 <= number < len(texts):
            turn = self.number + 1
            raise EditError(f"Turn {turn} has no intermediate response {number + 1}")
        return texts[number]

    def add_intermediate_response(self, author: str, text: str) -> None:
        """Adds a text after the others; a turn with unspecified calls then expects no calls."""
        intermediate.add_intermediate_response(self.intermediate, author, text)

    # What it expects of calls as a whole

    @property
    def expectation(self) -> TurnExpectation:
        mode = self._references.turn_mode(self.case, self.number)
        if mode == "skip":
            return TurnExpectation("unchecked", context=False)
        return TurnExpectation(self._written_kind, context=mode == "context")

    def set_expectation(self, kind: ExpectationKind) -> None:
        """Sets one of the four kinds of expectation.

        `unchecked` is a mark in the config in place of `context`, and keeps the calls. `calls` adds a call
        without a name if there is none. `none` removes calls and responses, `unspecified` also the texts
        before the answer.
        """
        if kind == "unchecked":
            self._references.mark_turn(self.case, self.number, "skip")
            return
        self._references.unmark_turn(self.case, self.number, "skip")
        if kind == self._written_kind:
            return
        if kind == "calls":
            self.insert_call(len(self.calls), "")
        elif kind == "none":
            self._remove_calls()
        else:
            remove(self.data, self.intermediate.path)

    def set_context(self, *, on: bool) -> None:
        """Switches a turn between run without scoring and scored, in place of any other mark."""
        change = self._references.mark_turn if on else self._references.unmark_turn
        change(self.case, self.number, "context")

    @property
    def _written_kind(self) -> ExpectationKind:
        if self.intermediate.shape is None:
            return "unspecified"
        return "calls" if self.calls else "none"

    def _remove_calls(self) -> None:
        turn_data = self.intermediate
        if turn_data.shape is None:
            put(self.data, turn_data.path, in_style(self.data, self.path, {"tool_uses": []}))
        elif turn_data.shape == "events":
            fields = ("function_call", "function_response")
            turn_data.remove_parts([part for field in fields for part in turn_data.parts_with(field)])
        else:
            put(self.data, turn_data.list_path("tool_uses"), [])
            if turn_data.list_of("tool_responses"):
                remove(self.data, turn_data.list_path("tool_responses"))

    @property
    def rubrics(self) -> RubricsEditor:
        return RubricsEditor(self.data, self.path, self.path[:2])
