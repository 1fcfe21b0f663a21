"""The rows of a turn: what the user says, which calls and answer are expected, and what else it says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from evaltui.core.editing import calls, content, turns
from evaltui.core.editing import intermediate_responses as said
from evaltui.core.editing.calls import ExpectedCall, ExpectedResponse
from evaltui.core.editing.expectation import KINDS, Kind, expectation, set_context, switch
from evaltui.core.editing.intermediate import shape
from evaltui.core.editing.json_paths import Changes, get, list_at, place, turn_count, turn_path, value_at
from evaltui.core.jsondoc.edits import Edit, Remove, apply_to_data
from evaltui.core.model.aliases import camel, spelt
from evaltui.core.model.problems import JsonPath, Problem
from evaltui.core.model.tool_schema import check_call
from evaltui.core.recording.responding import describe_response
from evaltui.text.values import show_size, show_value
from evaltui.workbench.editing import Make
from evaltui.workbench.fields import (
    CaseSource,
    Completion,
    DeclaredTool,
    Field,
    FieldError,
    Operation,
    Row,
    RowId,
    first_value,
    object_of,
    required_text,
    value_field,
)
from evaltui.workbench.response_rows import response_row, response_turns
from evaltui.workbench.rubric_rows import add_rubric, rubric_rows

KIND_TEXTS: dict[Kind, str] = {
    "calls": "expects these calls",
    "none": "must call nothing",
    "unspecified": "says nothing of calls: scored as no calls",
    "unchecked": "calls are not checked",
}
CONTEXT_TEXT = "context: run, not scored"
_KIND_LABELS: dict[Kind, str] = {
    "calls": "expect these calls",
    "none": "expect no call",
    "unspecified": "say nothing of calls",
    "unchecked": "leave the calls unchecked",
}
_KNOWN = (
    "invocation_id",
    "user_content",
    "final_response",
    "intermediate_data",
    "creation_timestamp",
    "duration",
    "model_duration",
    "tool_duration",
    "rubrics",
    "app_details",
)


def add_turn(source: CaseSource, index: int) -> Operation:
    """A turn before the one at `index`, and what its user says is typed next."""
    case = source.case
    return Operation(
        "add a turn",
        lambda data, config: turns.insert_turn(data, config, case, index),
        ("turn", index, "user", 0),
        "value",
    )


def turn_rows(source: CaseSource, turn: int) -> list[Row]:
    return _Turn(source, turn).rows()


@dataclass(frozen=True)
class _Turn:
    source: CaseSource
    turn: int

    @property
    def _data(self) -> Any:
        return self.source.data

    @property
    def _at(self) -> tuple[int, int]:
        return self.source.case, self.turn

    @property
    def _path(self) -> JsonPath:
        return turn_path(self._data, *self._at)

    def _id(self, *more: str | int) -> RowId:
        return ("turn", self.turn, *more)

    def rows(self) -> list[Row]:
        return [
            self._heading(),
            *self._user(),
            *self._calls(),
            *self._responses(),
            *self._before(),
            *self._answer(),
            *rubric_rows(self.source, self.turn),
            *self._agents(),
            *self._unknown(),
        ]

    # What can be added anywhere in a turn

    def _adds(self, first: Operation, call: int | None = None) -> tuple[Operation, ...]:
        """`first` is what `o` adds, then everything else that a turn can get."""
        found_calls = calls.expected_calls(self._data, *self._at)
        every = [
            first,
            self.add_call(len(found_calls)),
            add_turn(self.source, self.turn + 1),
            *([self._add_response(call)] if call is not None else []),
            *response_turns(*self._at, found_calls),
            *([self._add_answer()] if not turns.answer_texts(self._data, *self._at) else []),
            self._add_said(),
            add_rubric(self.source, self.turn),
        ]
        found: dict[tuple[str, RowId | None], Operation] = {}
        for one in every:
            found.setdefault((one.label, one.then), one)
        return tuple(found.values())

    def add_call(self, index: int) -> Operation:
        at = self._at
        return Operation(
            "add a call",
            lambda data, _: calls.insert_call(data, *at, index, ""),
            self._id("call", index),
            "value",
        )

    def _add_response(self, call: int) -> Operation:
        at = self._at
        count = len(calls.expected_responses(self._data, *at))
        # In a turn of events it comes right behind its call.
        then = self._id("response", count if not self._has_events else self._responses_before(call))
        return Operation(
            "add a response to this call",
            lambda data, _: calls.add_response(data, *at, call, {}),
            then,
            "value",
        )

    @property
    def _has_events(self) -> bool:
        return shape(self._data, *self._at) == "events"

    def _responses_before(self, call: int) -> int:
        """Which of the responses one to this call would be."""
        at = self._at
        edits = calls.add_response(self._data, *at, call, {"": None})
        after = calls.expected_responses(apply_to_data(self._data, edits), *at)
        return next(number for number, one in enumerate(after) if one.response == {"": None})

    def _add_answer(self) -> Operation:
        own = place(self._data, self._path, "final_response")
        parts = len(list_at(self._data, (*own, "parts")))
        return Operation("write the answer", None, self._id("answer", parts), "value")

    def _add_said(self) -> Operation:
        at = self._at
        count = len(said.said_before(self._data, *at))
        return Operation(
            "add what an agent says before the answer",
            lambda data, _: said.add_said(data, *at, "agent", ""),
            self._id("said", count),
            "value",
        )

    # The heading

    def _heading(self) -> Row:
        at = self._at
        kind = expectation(self._data, self.source.config, *at)
        count = turn_count(self._data, self.source.case)
        turn = self.turn

        def move(step: int) -> Operation:
            to = max(0, min(turn + step, count - 1))
            return Operation(
                f"move turn {turn + 1} {'up' if step < 0 else 'down'}",
                lambda data, config: turns.move_turn(data, config, *at, to),
                ("turn", to),
            )

        return Row(
            self._id(),
            "turn",
            f"Turn {turn + 1}",
            shown=CONTEXT_TEXT if kind.context else KIND_TEXTS[kind.kind],
            quiet=True,
            turn=turn,
            adds=self._adds(add_turn(self.source, turn + 1)),
            insert=add_turn(self.source, turn),
            duplicate=Operation(
                f"duplicate turn {turn + 1}",
                lambda data, config: turns.duplicate_turn(data, config, *at),
                ("turn", turn + 1),
            ),
            delete=Operation(
                f"delete turn {turn + 1}",
                lambda data, config: turns.delete_turn(data, config, *at),
                ("turn", min(turn, count - 2)) if count > 1 else ("turns",),
            ),
            move=move,
            path=self._path,
        )

    # What the user says

    def _user(self) -> Iterator[Row]:
        own = place(self._data, self._path, "user_content")
        yield from self._content(own, "user", turns.set_user_text, turns.remove_user_part)

    def _answer(self) -> Iterator[Row]:
        own = place(self._data, self._path, "final_response")
        yield from self._content(own, "answer", turns.set_answer_text, turns.remove_answer_part)

    def _content(
        self,
        own: JsonPath,
        id: str,
        put: Callable[..., list[Edit]],
        remove: Callable[..., list[Edit]],
    ) -> Iterator[Row]:
        """The parts of a message; its first text is there to be typed even where it has none."""
        at = self._at
        what = "what the user says" if id == "user" else "the answer"
        texts = {one.part: one.text for one in content.text_parts(self._data, own)}
        parts = list_at(self._data, (*own, "parts"))
        # What comes next: the calls after what the user says, a turn after the answer.
        first = self.add_call(0) if id == "user" else add_turn(self.source, self.turn + 1)
        adds = self._adds(first)
        for number, part in enumerate(parts):
            common: dict[str, Any] = {
                "turn": self.turn,
                "label": id if number == 0 else "",
                "adds": adds,
                "path": own if number == 0 else (*own, "parts", number),
                "delete": self._without_part(number, len(parts), id, remove),
            }
            if number in texts:
                field = Field(f"change {what}", texts[number], "text", _text_change(put, at, number))
                empty = "(nothing)" if not texts[number] else None
                yield Row(
                    self._id(id, number),
                    "fact",
                    value=texts[number],
                    shown=empty,
                    quiet=empty is not None,
                    field=field,
                    **common,
                )
            elif id == "user" and (response := content.response_in(part)) is not None:
                yield response_row(self.source, (*own, "parts", number), response, common)
            else:
                shown, thought = _part_text(part)
                yield Row(self._id(id, number), "fact", value=None, shown=shown, quiet=thought, **common)
        if not texts and not (id == "user" and any(content.response_in(part) is not None for part in parts)):
            given = isinstance(value_at(self._data, own), dict)
            missing = "none is expected" if id == "answer" and not given else "(nothing)"
            yield Row(
                # Once something is typed, its place is that of the part.
                self._id(id, len(parts)),
                "fact",
                "" if parts else id,
                shown=missing,
                quiet=True,
                turn=self.turn,
                field=Field(f"change {what}", "", "text", _text_change(put, at, None)),
                adds=adds,
                path=None if parts else own,
            )

    def _without_part(self, number: int, count: int, id: str, remove: Callable[..., list[Edit]]) -> Operation:
        at = self._at
        if id == "answer" and count == 1:
            return Operation("expect no answer", lambda data, _: turns.remove_answer(data, *at))
        what = "what the user says" if id == "user" else "the answer"
        return Operation(f"remove a part of {what}", lambda data, _: remove(data, *at, number))

    # Calls and what they answer

    def _calls(self) -> Iterator[Row]:
        found = calls.expected_calls(self._data, *self._at)
        for number, call in enumerate(found):
            yield from self._call(number, call, len(found))
        kind = expectation(self._data, self.source.config, *self._at)
        if not found and kind.kind == "unspecified" and not kind.context:
            yield Row(
                self._id("calls"),
                "fact",
                "calls",
                shown="nothing is said of them: o adds one, space changes that",
                quiet=True,
                turn=self.turn,
                adds=self._adds(self.add_call(0)),
            )

    def _call(self, number: int, call: ExpectedCall, count: int) -> Iterator[Row]:
        at = self._at
        tool = self.source.by_name.get(call.name)
        tools = [one.schema for one in self.source.tools]
        found = check_call(call.name, call.args, tools)
        args = call.args or {}
        # What is wrong with an argument that is there is said at it.
        own = [_worded(one) for one in found if not one.path or one.path[0] not in args]

        def move(step: int) -> Operation:
            to = max(0, min(number + step, count - 1))
            return Operation(
                f"move the call {'up' if step < 0 else 'down'}",
                lambda data, _: calls.move_call(data, *at, number, to),
                self._id("call", to),
            )

        shared: dict[str, Any] = {
            "insert": self.add_call(number),
            "duplicate": Operation(
                f"duplicate the call of {call.name}",
                lambda data, _: calls.duplicate_call(data, *at, number),
                self._id("call", number + 1),
            ),
            "move": move,
            "turn": self.turn,
        }
        yield Row(
            self._id("call", number),
            "call",
            value=call.name,
            shown=None if call.name else "(no name)",
            quiet=not call.name,
            field=Field(
                "change the name of a call",
                call.name,
                "line",
                lambda text: lambda data, _: calls.rename_call(data, *at, number, text),
                tuple(Completion(one.name, one.description) for one in self.source.tools),
                then=self._after_name(number, call, tool),
            ),
            adds=self._adds(self.add_call(number + 1), number),
            delete=Operation(
                f"delete the call of {call.name}" if call.name else "delete a call",
                lambda data, _: calls.delete_call(data, *at, number),
                self._id("call", min(number, count - 2)) if count > 1 else self._id(),
            ),
            path=call.path,
            findings=tuple(own),
            **shared,
        )
        for index, name in enumerate(args):
            yield self._argument(number, call, index, name, tool, found, shared)
        if not args and (tool is None or tool.properties):
            yield Row(
                self._id("call", number, "arg", 0),
                "argument",
                shown="no arguments: o adds one",
                quiet=True,
                adds=self._adds(self._add_argument(number, args, tool), number),
                **shared,
            )

    def _after_name(self, number: int, call: ExpectedCall, tool: DeclaredTool | None) -> Operation | None:
        """To the first argument; a call that has none gets those that its tool needs."""
        first = self._id("call", number, "arg", 0)
        if call.args:
            return None
        if tool is None or not tool.required:
            return None
        at = self._at
        args = {name: first_value(tool.properties.get(name)) for name in tool.required}
        return Operation(
            f"fill in the arguments of {tool.name}",
            lambda data, _: calls.replace_args(data, *at, number, args),
            first,
            "value",
        )

    def _add_argument(
        self, number: int, args: Mapping[str, Any], tool: DeclaredTool | None, after: int | None = None
    ) -> Operation:
        at = self._at
        unused = [name for name in (tool.properties if tool else {}) if name not in args]
        name, free = "arg", 1
        while name in args:
            free += 1
            name = f"arg_{free}"
        wanted = unused[0] if len(unused) == 1 else name
        value = first_value(tool.properties.get(wanted)) if tool else ""
        return Operation(
            "add an argument",
            lambda data, _: calls.put_arg(data, *at, number, (wanted,), value),
            self._id("call", number, "arg", len(args)),
            "value" if len(unused) == 1 else "name",
        )

    def _argument(
        self,
        number: int,
        call: ExpectedCall,
        index: int,
        name: str,
        tool: DeclaredTool | None,
        found: list[Problem],
        shared: Mapping[str, Any],
    ) -> Row:
        at, args = self._at, call.args or {}
        schema = tool.properties.get(name) if tool else None
        own = self._id("call", number, "arg", index)

        def rename(text: str) -> Make:
            if text != name and text in args:
                raise FieldError(f"the call has an argument {text!r} already")
            wanted = required_text("the name of an argument")(text)
            return lambda data, _: _renamed(data, at, number, name, wanted, args[name], tool)

        names = [one for one in (tool.properties if tool else {}) if one not in args]
        return Row(
            own,
            "argument",
            "",
            name,
            value=args[name],
            is_json=True,
            field=value_field(
                f"change {name} of {call.name}",
                args[name],
                lambda value: lambda data, _: calls.put_arg(data, *at, number, (name,), value),
                schema,
            ),
            rename=Field(
                "rename an argument",
                name,
                "line",
                rename,
                tuple(Completion(one, _described(tool, one)) for one in names),
                then=Operation("go to its value", None, own, "value"),
            ),
            adds=self._adds(self._add_argument(number, args, tool), number),
            delete=Operation(
                f"remove {name} from {call.name}",
                lambda data, _: calls.remove_arg(data, *at, number, (name,)),
            ),
            path=(*call.path, "args", name),
            findings=tuple(_inside(one) for one in found if one.path and one.path[0] == name),
            **shared,
        )

    def _responses(self) -> Iterator[Row]:
        for number, response in enumerate(calls.expected_responses(self._data, *self._at)):
            yield self._response(number, response)

    def _response(self, number: int, response: ExpectedResponse) -> Row:
        at = self._at
        # A recorded answer is often long, and one line of it is enough to know it.
        text = json.dumps(response.response or {}, ensure_ascii=False, indent=2)
        return Row(
            self._id("response", number),
            "response",
            "",
            response.name,
            value=response.response,
            is_json=True,
            quiet=True,
            turn=self.turn,
            field=Field(
                f"change the response of {response.name}",
                text,
                "json",
                lambda typed: _response_change(at, number, object_of(typed)),
            ),
            rename=Field(
                "change the name of a response",
                response.name,
                "line",
                lambda name: lambda data, _: calls.rename_response(data, *at, number, name),
            ),
            adds=self._adds(self.add_call(len(calls.expected_calls(self._data, *at)))),
            delete=Operation(
                f"delete the response of {response.name}",
                lambda data, _: calls.delete_response(data, *at, number),
            ),
            path=response.path,
        )

    def _before(self) -> Iterator[Row]:
        at = self._at
        for number, one in enumerate(said.said_before(self._data, *at)):
            yield Row(
                self._id("said", number),
                "part",
                "before" if number == 0 else "",
                f"{one.author}:",
                value=one.text,
                shown=None if one.text else "(nothing)",
                quiet=not one.text,
                turn=self.turn,
                field=Field(
                    "change what is said before the answer",
                    one.text,
                    "text",
                    partial(_said_change, at, number, said.set_said_text),
                ),
                rename=Field(
                    "change who says it",
                    one.author,
                    "line",
                    partial(_said_change, at, number, said.set_said_author),
                ),
                adds=self._adds(self._add_said()),
                delete=Operation(
                    "delete what is said before the answer", _deleting(said.delete_said, at, number)
                ),
                path=one.path,
            )

    # What is shown only

    def _agents(self) -> Iterator[Row]:
        own = place(self._data, self._path, "app_details")
        details = get(self._data, own, "agent_details")
        for key, agent in details.items() if isinstance(details, dict) else ():
            if not isinstance(agent, dict):
                continue
            tools = agent.get(spelt("tool_declarations", agent))
            count = f", {len(tools)} tools" if isinstance(tools, list) and tools else ""
            yield Row(
                self._id("agent", key),
                "part",
                "agent",
                f"{agent.get('name', key)}{count}",
                shown=str(agent.get("instructions") or ""),
                quiet=True,
                turn=self.turn,
                adds=self._adds(add_turn(self.source, self.turn + 1)),
                path=own,
            )

    def _unknown(self) -> Iterator[Row]:
        known = {*_KNOWN, *map(camel, _KNOWN)}
        holder = value_at(self._data, self._path)
        for key, value in holder.items():
            if key not in known:
                yield Row(
                    self._id("unknown", key),
                    "fact",
                    key,
                    value=value,
                    shown=show_value(value, 400),
                    quiet=True,
                    turn=self.turn,
                    adds=self._adds(add_turn(self.source, self.turn + 1)),
                    delete=Operation(f"remove {key}", _removing((*self._path, key))),
                    path=(*self._path, key),
                )


# The kind of expectation, which any row of a turn may change


def next_kind(source: CaseSource, turn: int) -> tuple[Operation, int]:
    """The next of the four kinds, and how many calls are taken out by it."""
    now = expectation(source.data, source.config, source.case, turn).kind
    wanted = KINDS[(KINDS.index(now) + 1) % len(KINDS)]
    found = calls.expected_calls(source.data, source.case, turn)
    label = f"turn {turn + 1}: {_KIND_LABELS[wanted]}"
    make = partial(_switch, source.case, turn, wanted)
    if wanted == "calls" and not found:
        # One is added, whose name is typed next.
        return Operation(label, make, ("turn", turn, "call", 0), "value"), 0
    return Operation(label, make), len(found) if wanted in ("none", "unspecified") else 0


def _switch(case: int, turn: int, kind: Kind, data: Any, config: Any) -> Changes:
    return switch(data, config, case, turn, kind)


def toggle_context(source: CaseSource, turn: int) -> Operation:
    case = source.case
    on = not expectation(source.data, source.config, case, turn).context
    label = f"turn {turn + 1}: run it without scoring" if on else f"turn {turn + 1}: score it"
    return Operation(label, lambda data, config: set_context(data, config, case, turn, on=on))


def attach(source: CaseSource, turn: int, payload: bytes, mime_type: str) -> Operation:
    at = source.case, turn
    return Operation("attach a file", lambda data, _: turns.attach_file(data, *at, payload, mime_type))


# Changes


def _text_change(
    put: Callable[..., list[Edit]], at: tuple[int, int], part: int | None
) -> Callable[[str], Make]:
    return lambda text: lambda data, _: put(data, *at, text, part)


def _said_change(at: tuple[int, int], number: int, put: Callable[..., list[Edit]], text: str) -> Make:
    return lambda data, _: put(data, *at, number, text)


def _deleting(delete: Callable[..., list[Edit]], at: tuple[int, int], number: int) -> Make:
    return lambda data, _: delete(data, *at, number)


def _response_change(at: tuple[int, int], number: int, response: dict[str, Any]) -> Make:
    return lambda data, _: calls.set_response(data, *at, number, response)


def _removing(path: JsonPath) -> Make:
    return lambda data, _: [Remove(path)]


def _renamed(
    data: Any,
    at: tuple[int, int],
    number: int,
    name: str,
    wanted: str,
    value: Any,
    tool: DeclaredTool | None,
) -> list[Edit]:
    """An argument that says nothing yet begins with what its new name asks for."""
    edits = calls.rename_arg(data, *at, number, (name,), wanted)
    if edits and value == "" and tool and wanted in tool.properties:
        first = first_value(tool.properties[wanted])
        if first != "":
            edits += calls.put_arg(data, *at, number, (wanted,), first)
    return edits


# Words


def _described(tool: DeclaredTool | None, name: str) -> str:
    schema = tool.properties.get(name) if tool else None
    if not isinstance(schema, Mapping):
        return ""
    kind = str(schema.get("type") or "").lower()
    return "  ".join(text for text in (kind, str(schema.get("description") or "")) if text)


def _worded(problem: Problem) -> Problem:
    """A problem of an argument that is not there, as it is said at the call."""
    if not problem.path:
        return problem
    return Problem(problem.severity, (), f"{problem.path[0]}: {problem.message}")


def _inside(problem: Problem) -> Problem:
    """A problem of an argument, at its place in it."""
    return Problem(problem.severity, problem.path[1:], problem.message)


def _part_text(part: Any) -> tuple[str, bool]:
    """A part that is no text to be edited, as what it is and how big; and whether it is quiet."""
    if not isinstance(part, dict):
        return "[a part of another kind]", False
    if isinstance(part.get("text"), str) and part.get("thought"):
        return f"{part['text']}\n[a thought: not scored]", True
    for name, show in _PARTS.items():
        value = part.get(spelt(name, part))
        if isinstance(value, dict):
            return show(value), False
    return "[a part of another kind]", False


def _blob(value: dict[str, Any]) -> str:
    payload = str(value.get("data") or "")
    size = len(payload.rstrip("=")) * 3 // 4
    return f"[{value.get(spelt('mime_type', value)) or 'data'} {show_size(size)}]"


def _file(value: dict[str, Any]) -> str:
    kind = value.get(spelt("mime_type", value)) or "file"
    return f"[{kind} at {value.get(spelt('file_uri', value)) or '?'}]"


_PARTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "inline_data": _blob,
    "file_data": _file,
    "function_call": lambda value: f"[call {value.get('name') or '?'}  {show_value(value.get('args'), 400)}]",
    "function_response": lambda value: f"[{describe_response(value)}]",
    "executable_code": lambda value: f"[code]\n{value.get('code') or ''}",
    "code_execution_result": lambda value: f"[output of code]\n{value.get('output') or ''}",
}
