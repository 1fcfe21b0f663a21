"""The rows of the expected calls of a turn, with their arguments and the responses to them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from evaltui.core.model.problems import Problem
from evaltui.core.model.renaming import TRANSFER, NameKind
from evaltui.core.model.tool_schema import DeclaredTool, check_call, first_value
from evaltui.documents.editing.calls import CallEditor, ResponseEditor
from evaltui.documents.editing.intermediate import IntermediateResponse
from evaltui.documents.editing.set import EditBuilder
from evaltui.text.keys import key_of
from evaltui.workbench.case.fields import (
    Completion,
    Field,
    Operation,
    Row,
    object_of,
)
from evaltui.workbench.case.rows.members import Members, first_leaf
from evaltui.workbench.case.rows.turn_source import TurnSource


def call_rows(turn: TurnSource) -> Iterator[Row]:
    for call in turn.calls:
        yield from _CallRows(turn, call).rows()
    kind = turn.editor.expectation
    if not turn.calls and kind.kind == "unspecified" and not kind.context:
        absent = "No calls" if turn.source.editor.checks_unspecified else "Not checked"
        yield Row(
            turn.id("calls"),
            "fact",
            "calls",
            shown=f"{absent}   {key_of('add_below')} add   {key_of('next_kind')} change",
            quiet=True,
            turn=turn.number,
            adds=turn.additions(turn.add_call(0)),
        )


@dataclass(frozen=True)
class _CallRows:
    turn: TurnSource
    call: CallEditor

    def _build(self, edit: Callable[[CallEditor], object]) -> EditBuilder:
        number = self.call.number
        return self.turn.build(lambda turn: edit(turn.call(number)))

    @property
    def _arguments(self) -> dict[str, Any]:
        return self.call.arguments or {}

    @property
    def _tool(self) -> DeclaredTool | None:
        return self.turn.source.tools_by_name.get(self.call.name)

    @property
    def _properties(self) -> Mapping[str, Any]:
        return self._tool.properties if self._tool else {}

    @cached_property
    def _problems(self) -> Sequence[Problem]:
        return check_call(self.call.name, self.call.arguments, self.turn.source.tools)

    def rows(self) -> Iterator[Row]:
        yield self._heading()
        yield from map(self._argument, self._members.rows())
        if not self._arguments and (self._tool is None or self._properties):
            yield Row(
                self._argument_id,
                "argument",
                shown=f"No arguments   {key_of('add_below')} add",
                quiet=True,
                adds=self._additions,
                **self._common_fields,
            )

    @property
    def _argument_id(self) -> tuple[str | int, ...]:
        return self.turn.id("call", self.call.number, "arg", 0)

    @cached_property
    def _common_fields(self) -> dict[str, Any]:
        """The arguments that all rows of the call have in common."""
        number, count = self.call.number, len(self.turn.calls)

        def move(step: int) -> Operation:
            to = max(0, min(number + step, count - 1))
            return Operation(
                f"move call {'up' if step < 0 else 'down'}",
                self._build(lambda call: call.move(to)),
                self.turn.id("call", to),
            )

        return {
            "insert": self.turn.add_call(number),
            "duplicate": Operation(
                f"duplicate call {self.call.name}",
                self._build(lambda call: call.duplicate()),
                self.turn.id("call", number + 1),
            ),
            "move": move,
            "turn": self.turn.number,
        }

    @cached_property
    def _additions(self) -> tuple[Operation, ...]:
        return self.turn.additions(self._add_argument(), self.call.number)

    # The call

    def _heading(self) -> Row:
        turn, call = self.turn, self.call
        number, count = call.number, len(turn.calls)
        # What is wrong with an argument that is there is said at it.
        at_call = [
            _shown_problem(problem)
            for problem in self._problems
            if not problem.path or problem.path[0] not in self._arguments
        ]
        return Row(
            turn.id("call", number),
            "call",
            value=call.name,
            shown=None if call.name else "no name",
            quiet=not call.name,
            field=Field(
                "rename call",
                call.name,
                "line",
                lambda text: self._build(lambda editor: editor.rename(text)),
                tuple(Completion(tool.name, tool.description) for tool in turn.source.tools),
                then=self._after_name(),
            ),
            named=("tool", call.name) if call.name else None,
            adds=turn.additions(turn.add_call(number + 1), number),
            delete=Operation(
                f"delete call {call.name}" if call.name else "delete call",
                self._build(lambda editor: editor.delete()),
                turn.id("call", min(number, count - 2)) if count > 1 else turn.id(),
            ),
            path=call.path,
            findings=tuple(at_call),
            **self._common_fields,
        )

    def _after_name(self) -> Operation | None:
        """Goes to the first argument; a call without arguments gets those that its tool requires."""
        tool = self._tool
        if self._arguments or tool is None or not tool.required:
            return None
        args = {name: first_value(tool.properties.get(name)) for name in tool.required}
        return Operation(
            f"fill in arguments of {tool.name}",
            self._build(lambda call: call.replace_arguments(args)),
            first_leaf(self._argument_id, next(iter(args.values()))),
            "value",
        )

    # Its arguments

    @property
    def _members(self) -> Members:
        return Members(
            self._arguments,
            self.call.arguments_path,
            self.turn.id("call", self.call.number, "arg"),
            {"properties": self._properties},
            self.call.name,
            nests=True,
        )

    def _add_argument(self) -> Operation:
        def build(name: str, value: Any) -> EditBuilder:
            return self._build(lambda call: call.put_argument((name,), value))

        return self._members.add("add argument", "arg", build)

    def _argument(self, row: Row) -> Row:
        problems = [problem for problem in self._problems if problem.path and problem.path[0] == row.name]
        return replace(
            row,
            role="argument",
            named=self._named(row.name, row.value),
            adds=self._additions,
            required=self._tool is not None and row.name in self._tool.required,
            findings=tuple(_inner_problem(problem) for problem in problems),
            **self._common_fields,
        )

    def _named(self, name: str, value: Any) -> tuple[NameKind, str]:
        """The argument, or the agent that it hands over to."""
        if self.call.name == TRANSFER and isinstance(value, str) and value:
            return "agent", value
        return "argument", f"{self.call.name}.{name}"


def _shown_problem(problem: Problem) -> Problem:
    """A problem of a missing argument, with the text that is shown at the call."""
    if not problem.path:
        return problem
    return replace(problem, path=(), message=f"{problem.path[0]}: {problem.message}")


def _inner_problem(problem: Problem) -> Problem:
    """A problem of an argument, at its place in it."""
    return replace(problem, path=problem.path[1:])


# Responses of tools, and texts before the answer


def response_rows(turn: TurnSource) -> Iterator[Row]:
    for response in turn.editor.responses:
        yield _response(turn, response)


def _response(turn: TurnSource, response: ResponseEditor) -> Row:
    def build(edit: Callable[[ResponseEditor], object]) -> EditBuilder:
        return turn.build(lambda editor: edit(editor.response(response.number)))

    def replace(typed: str) -> EditBuilder:
        new_response = object_of(typed)
        return build(lambda editor: editor.replace(new_response))

    # A recorded answer is often long, and one line of it is enough to know it.
    text = json.dumps(response.response or {}, ensure_ascii=False, indent=2)
    return Row(
        turn.id("response", response.number),
        "response",
        "",
        response.name,
        value=response.response,
        is_json=True,
        quiet=True,
        turn=turn.number,
        field=Field(f"change response of {response.name}", text, "json", replace),
        rename=Field(
            "rename response",
            response.name,
            "line",
            lambda name: build(lambda editor: editor.rename(name)),
        ),
        named=("tool", response.name) if response.name else None,
        adds=turn.additions(turn.add_call(len(turn.calls))),
        delete=Operation(f"delete response of {response.name}", build(lambda editor: editor.delete())),
        path=response.path,
        value_path=(*response.path, "response"),
    )


def intermediate_rows(turn: TurnSource) -> Iterator[Row]:
    for number, response in enumerate(turn.editor.intermediate_responses):
        yield _intermediate_response(turn, number, response)


def _intermediate_response(turn: TurnSource, number: int, response: IntermediateResponse) -> Row:
    def build(edit: Callable[[IntermediateResponse], object]) -> EditBuilder:
        return turn.build(lambda editor: edit(editor.intermediate_response(number)))

    return Row(
        turn.id("intermediate", number),
        "part",
        "intermediate" if number == 0 else "",
        f"{response.author}:",
        value=response.text,
        shown=None if response.text else "empty",
        quiet=not response.text,
        turn=turn.number,
        field=Field(
            "change intermediate response",
            response.text,
            "text",
            lambda text: build(lambda editor: editor.set_text(text)),
        ),
        rename=Field(
            "change author",
            response.author,
            "line",
            lambda author: build(lambda editor: editor.set_author(author)),
        ),
        named=("agent", response.author) if response.author else None,
        adds=turn.additions(turn.add_intermediate_response()),
        delete=Operation("delete intermediate response", build(lambda editor: editor.delete())),
        path=response.path,
    )
