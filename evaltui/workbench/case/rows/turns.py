"""The rows of a turn, the operations on the whole turn, and the row of a difference."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from evaltui.core.conversation.waiting import REQUESTS
from evaltui.core.model.arg_rule import parse_arg_path
from evaltui.core.model.events import describe_response
from evaltui.core.model.json_values import field_of, object_or_empty, value_at
from evaltui.core.model.text_diff import IntermediateDiff
from evaltui.documents.editing.json_paths import field_path, field_value
from evaltui.documents.editing.set import CaseEditor, EditBuilder
from evaltui.documents.editing.turn import (
    EXPECTATION_KINDS,
    ExpectationKind,
    MessageEditor,
    TurnEditor,
    response_in,
)
from evaltui.documents.edits import EditError
from evaltui.text.figures import counted, show_size
from evaltui.text.outcomes import CALLS_NOT_CHECKED, CONTEXT_TURN
from evaltui.text.values import show_value
from evaltui.views.cause import expected_call_index, judged_row
from evaltui.views.difference import DifferenceAt
from evaltui.workbench.case.fields import (
    Completion,
    Field,
    Operation,
    Row,
    RowId,
    RowSource,
    object_of,
    remove_member,
    required_text,
    unknown_fields,
)
from evaltui.workbench.case.rows.calls import call_rows, intermediate_rows, response_rows
from evaltui.workbench.case.rows.turn_source import TurnSource, add_turn, rubric_rows
from evaltui.workbench.state import CaseOutcome

Whose = Literal["user", "answer"]


def message_rows(turn: TurnSource, whose: Whose) -> Iterator[Row]:
    """The rows of the parts of a message; the first text has a row even where it is missing."""
    message = _message(turn.editor, whose)
    texts = {text.part: text.text for text in message.texts}
    parts = message.parts
    # What comes next: the calls after what the user says, a turn after the answer.
    first = turn.add_call(0) if whose == "user" else add_turn(turn.source, turn.number + 1)
    adds = turn.additions(first)
    responses = [response_in(part) if whose == "user" else None for part in parts]
    for number, part in enumerate(parts):
        common: dict[str, Any] = {
            "turn": turn.number,
            "label": _label(whose) if number == 0 else "",
            "adds": adds,
            "path": message.path if number == 0 else (*message.parts_path, number),
            "delete": _remove_part(turn, whose, number, len(parts)),
        }
        if number in texts:
            yield Row(
                turn.id(whose, number),
                "fact",
                value=texts[number],
                shown=None if texts[number] else "empty",
                quiet=not texts[number],
                field=_text_field(turn, whose, texts[number], number),
                **common,
            )
        elif (response := responses[number]) is not None:
            yield _response_row(turn, number, response, common)
        else:
            shown, thought = _part_text(part)
            yield Row(turn.id(whose, number), "fact", value=None, shown=shown, quiet=thought, **common)
    if not texts and all(response is None for response in responses):
        is_checked = turn.source.editor.checks_unspecified
        absent = "no response expected" if is_checked else "not checked"
        yield Row(
            # Once something is typed, its place is that of the part.
            turn.id(whose, len(parts)),
            "fact",
            "" if parts else _label(whose),
            shown=absent if whose == "answer" and not message.exists else "empty",
            quiet=True,
            turn=turn.number,
            field=_text_field(turn, whose, "", None),
            adds=adds,
            path=None if parts else message.path,
        )


def _message(turn: TurnEditor, whose: Whose) -> MessageEditor:
    return turn.user if whose == "user" else turn.answer


def _label(whose: Whose) -> str:
    return "user" if whose == "user" else "response"


def _message_noun(whose: Whose) -> str:
    return "user message" if whose == "user" else "response"


def _text_field(turn: TurnSource, whose: Whose, text: str, part: int | None) -> Field:
    def change(typed: str) -> EditBuilder:
        return turn.build(lambda editor: _message(editor, whose).set_text(typed, part))

    return Field(f"change {_message_noun(whose)}", text, "text", change)


def _remove_part(turn: TurnSource, whose: Whose, number: int, count: int) -> Operation:
    if whose == "answer" and count == 1:
        return Operation("expect no response", turn.build(lambda editor: editor.answer.remove()))
    edit = turn.build(lambda editor: _message(editor, whose).remove_part(number))
    return Operation(f"remove part of {_message_noun(whose)}", edit)


# What the user responds to calls that wait


def _response_row(turn: TurnSource, part: int, response: Mapping[str, Any], common: Mapping[str, Any]) -> Row:
    """The row of a response part; `common` are arguments shared with the rows of the other parts."""
    name, content = str(response.get("name") or ""), response.get("response")

    def change(field: Literal["name", "response"], value: Any) -> EditBuilder:
        return turn.build(lambda editor: editor.user.set_response(part, field, value))

    return Row(
        turn.id("user", part),
        "part",
        name=f"response to {name or '?'}:",
        value=content,
        is_json=True,
        field=Field(
            f"change response to {name}",
            json.dumps({} if content is None else content, ensure_ascii=False),
            "json",
            lambda typed: change("response", object_of(typed)),
        ),
        rename=Field(
            "change call of response",
            name,
            "line",
            lambda typed: change("name", required_text("Call name")(typed)),
            tuple(Completion(name) for name in _earlier_calls(turn)),
        ),
        **common,
    )


def _earlier_calls(turn: TurnSource) -> list[str]:
    """The names of the calls expected before a turn; calls that always wait come first."""
    case = turn.source.editor
    names = dict.fromkeys(call.name for before in range(turn.number) for call in case.turn(before).calls)
    return sorted(names, key=lambda name: name not in REQUESTS)


# Parts that are no text to be edited


def _part_text(part: Any) -> tuple[str, bool]:
    """The text that stands for a part: its type and size; and whether it is drawn dim."""
    if not isinstance(part, dict):
        return "[unknown part]", False
    if isinstance(part.get("text"), str) and part.get("thought"):
        return f"{part['text']}\n[thought, not scored]", True
    for name, show in _PARTS.items():
        value = field_of(part, name)
        if isinstance(value, dict):
            return show(value), False
    return "[unknown part]", False


def _blob(value: dict[str, Any]) -> str:
    payload = str(value.get("data") or "")
    size = len(payload.rstrip("=")) * 3 // 4
    return f"[{field_of(value, 'mime_type') or 'data'} {show_size(size)}]"


def _file(value: dict[str, Any]) -> str:
    kind = field_of(value, "mime_type") or "file"
    return f"[{kind} at {field_of(value, 'file_uri') or '?'}]"


_PARTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "inline_data": _blob,
    "file_data": _file,
    "function_call": lambda value: f"[call {value.get('name') or '?'}  {show_value(value.get('args'), 400)}]",
    "function_response": lambda value: f"[{describe_response(value)}]",
    "executable_code": lambda value: f"[code]\n{value.get('code') or ''}",
    "code_execution_result": lambda value: f"[output of code]\n{value.get('output') or ''}",
}


EXPECTATION_TEXTS: dict[ExpectationKind, str] = {
    "calls": "exactly these calls",
    "none": "no calls expected",
    "unspecified": "calls unspecified",
    "unchecked": CALLS_NOT_CHECKED,
}
_MEANINGS: dict[ExpectationKind, str] = {
    "calls": "exactly these calls are expected",
    "none": "no calls expected; each call is unexpected",
    "unspecified": "unspecified; scored as no calls",
    "unchecked": "calls are not checked; any may be made",
}
_LABELS: dict[ExpectationKind, str] = {
    "calls": "expect these calls",
    "none": "expect no calls",
    "unspecified": "leave calls unspecified",
    "unchecked": "don't check calls",
}
_KNOWN_KEYS = (
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


def turn_rows(source: RowSource, number: int) -> list[Row]:
    turn = TurnSource(source, number)
    return [
        _heading_row(turn),
        *message_rows(turn, "user"),
        *call_rows(turn),
        *response_rows(turn),
        *intermediate_rows(turn),
        *message_rows(turn, "answer"),
        *rubric_rows(source, number),
        *_agents(turn),
        *_unknown_rows(turn),
    ]


def _heading_row(turn: TurnSource) -> Row:
    number, count = turn.number, turn.source.editor.turn_count
    expectation = turn.editor.expectation
    kind = expectation.kind
    if kind == "unspecified" and not turn.source.editor.checks_unspecified:
        kind = "unchecked"

    def move(step: int) -> Operation:
        to = max(0, min(number + step, count - 1))
        return Operation(
            f"move turn {number + 1} {'up' if step < 0 else 'down'}",
            turn.build(lambda editor: editor.move(to)),
            ("turn", to),
        )

    return Row(
        turn.id(),
        "turn",
        f"Turn {number + 1}",
        shown=CONTEXT_TURN if expectation.context else EXPECTATION_TEXTS[kind],
        quiet=True,
        turn=number,
        adds=turn.additions(add_turn(turn.source, number + 1)),
        insert=add_turn(turn.source, number),
        duplicate=Operation(
            f"duplicate turn {number + 1}",
            turn.build(lambda editor: editor.duplicate()),
            ("turn", number + 1),
        ),
        delete=Operation(
            f"delete turn {number + 1}",
            turn.build(lambda editor: editor.delete()),
            ("turn", min(number, count - 2)) if count > 1 else ("turns",),
        ),
        move=move,
        path=turn.editor.path,
    )


# What is shown only


def _agents(turn: TurnSource) -> Iterator[Row]:
    data = turn.source.editor.data
    path = field_path(data, turn.editor.path, "app_details")
    details = field_value(data, path, "agent_details")
    for key, agent in object_or_empty(details).items():
        if not isinstance(agent, dict):
            continue
        tools = field_of(agent, "tool_declarations")
        count = f", {counted(len(tools), 'tool')}" if isinstance(tools, list) and tools else ""
        yield Row(
            turn.id("agent", key),
            "part",
            "agent",
            f"{agent.get('name', key)}{count}",
            shown=str(agent.get("instructions") or ""),
            quiet=True,
            turn=turn.number,
            adds=turn.additions(add_turn(turn.source, turn.number + 1)),
            path=path,
        )


def _unknown_rows(turn: TurnSource) -> Iterator[Row]:
    path = turn.editor.path
    for key, value in unknown_fields(value_at(turn.source.editor.data, path), _KNOWN_KEYS):
        yield Row(
            turn.id("unknown", key),
            "fact",
            key,
            value=value,
            shown=show_value(value, 400),
            quiet=True,
            turn=turn.number,
            adds=turn.additions(add_turn(turn.source, turn.number + 1)),
            delete=remove_member((*path, key)),
            path=(*path, key),
        )


# What any row of a turn may change


def next_expectation(source: RowSource, number: int) -> tuple[Operation, str, int]:
    """The next of the four kinds of expectation: its operation, its meaning, and the number of calls that it
    deletes."""
    turn = TurnSource(source, number)
    kind = turn.editor.expectation.kind
    next_kind = EXPECTATION_KINDS[(EXPECTATION_KINDS.index(kind) + 1) % len(EXPECTATION_KINDS)]
    label = f"turn {number + 1}: {_LABELS[next_kind]}"
    edit = turn.build(lambda editor: editor.set_expectation(next_kind))
    if next_kind == "calls" and not turn.calls:
        # One is added, whose name is typed next.
        return Operation(label, edit, turn.id("call", 0), "value"), _MEANINGS[next_kind], 0
    lost = len(turn.calls) if next_kind in ("none", "unspecified") else 0
    return Operation(label, edit), _MEANINGS[next_kind], lost


def toggle_context(source: RowSource, number: int) -> Operation:
    turn = TurnSource(source, number)
    on = not turn.editor.expectation.context
    label = f"turn {number + 1}: make it a context turn" if on else f"turn {number + 1}: score it"
    return Operation(label, turn.build(lambda editor: editor.set_context(on=on)))


def attach(source: RowSource, number: int, payload: bytes, mime_type: str) -> Operation:
    edit = TurnSource(source, number).build(lambda turn: turn.user.attach_file(payload, mime_type))
    return Operation("attach file", edit)


def expected_row(scored: CaseOutcome, at: DifferenceAt, case: CaseEditor) -> RowId:
    """The row of the expected value, down to a member of a nested value of the current case.

    A difference without a row, such as an unexpected call, leads to its turn.
    """
    if at.kind == "judgement":
        return judged_row(scored.shown, scored.case, at)
    if at.turn is None:
        return _member(("final_state",), (), case.final_state.value, at.path)
    turn: RowId = ("turn", at.turn)
    if at.kind == "answer":
        return (*turn, "answer", 0)
    if at.text is not None:
        return _text(turn, scored.shown.turns[at.turn].intermediate[: at.text + 1])
    call = expected_call_index(scored.shown, scored.case, at)
    if call is None:
        return turn
    row = (*turn, "call", call)
    if at.kind != "argument":
        return row
    try:
        return _member(row, ("arg",), case.turn(at.turn).call(call).arguments or {}, at.path)
    except EditError:
        return row


def _text(turn: RowId, rows: Sequence[IntermediateDiff]) -> RowId:
    """The row of the last of these texts; that of the turn for an unexpected text."""
    if rows[-1].expected is None:
        return turn
    return (*turn, "intermediate", sum(row.expected is not None for row in rows) - 1)


def _member(holder: RowId, between: RowId, value: Any, path: str | None) -> RowId:
    """The row of the deepest existing member on a path, in an object whose members are rows."""
    row = holder
    try:
        steps = parse_arg_path(path) if path else ()
    except ValueError:
        # A key of a state that no argument could have.
        steps = (path or "",)
    for step in steps:
        names: list[Any] = [*value] if isinstance(value, dict) else [*range(len(value))]
        if step not in names:
            break
        row = (*row, *(between if row == holder else ("in",)), names.index(step))
        value = value[step]
        if not isinstance(value, dict | list):
            break
    return row
