"""The rows of a message: what the user says, and the expected answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from evaltui.core.editing.set import EditBuilder
from evaltui.core.editing.turn import MessageEditor, TurnEditor, response_in
from evaltui.core.model.events import describe_response
from evaltui.core.model.json_values import spelt
from evaltui.core.recording.waiting import REQUESTS
from evaltui.text.values import show_size, show_value
from evaltui.workbench.case_rows.turn_source import TurnSource, add_turn
from evaltui.workbench.fields import Completion, Field, Operation, Row, object_of, required_text

Whose = Literal["user", "answer"]


def message_rows(turn: TurnSource, whose: Whose) -> Iterator[Row]:
    """The parts of a message; its first text is there to be typed even where it has none."""
    message = _message(turn.editor, whose)
    texts = {one.part: one.text for one in message.texts}
    parts = message.parts
    # What comes next: the calls after what the user says, a turn after the answer.
    first = turn.add_call(0) if whose == "user" else add_turn(turn.source, turn.number + 1)
    adds = turn.additions(first)
    responses = [response_in(part) if whose == "user" else None for part in parts]
    for number, part in enumerate(parts):
        common: dict[str, Any] = {
            "turn": turn.number,
            "label": whose if number == 0 else "",
            "adds": adds,
            "path": message.path if number == 0 else (*message.parts_path, number),
            "delete": _remove_part(turn, whose, number, len(parts)),
        }
        if number in texts:
            yield Row(
                turn.id(whose, number),
                "fact",
                value=texts[number],
                shown=None if texts[number] else "(nothing)",
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
        yield Row(
            # Once something is typed, its place is that of the part.
            turn.id(whose, len(parts)),
            "fact",
            "" if parts else whose,
            shown="none is expected" if whose == "answer" and not message.exists else "(nothing)",
            quiet=True,
            turn=turn.number,
            field=_text_field(turn, whose, "", None),
            adds=adds,
            path=None if parts else message.path,
        )


def _message(turn: TurnEditor, whose: Whose) -> MessageEditor:
    return turn.user if whose == "user" else turn.answer


def _what(whose: Whose) -> str:
    return "what the user says" if whose == "user" else "the answer"


def _text_field(turn: TurnSource, whose: Whose, text: str, part: int | None) -> Field:
    def change(typed: str) -> EditBuilder:
        return turn.build(lambda editor: _message(editor, whose).set_text(typed, part))

    return Field(f"change {_what(whose)}", text, "text", change)


def _remove_part(turn: TurnSource, whose: Whose, number: int, count: int) -> Operation:
    if whose == "answer" and count == 1:
        return Operation("expect no answer", turn.build(lambda editor: editor.answer.remove()))
    edit = turn.build(lambda editor: _message(editor, whose).remove_part(number))
    return Operation(f"remove a part of {_what(whose)}", edit)


# What the user responds to calls that wait


def _response_row(turn: TurnSource, part: int, response: Mapping[str, Any], common: Mapping[str, Any]) -> Row:
    """The row of a part that is a response; `common` is what rows of the message's other parts have."""
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
            f"change the response to {name}",
            json.dumps({} if content is None else content, ensure_ascii=False),
            "json",
            lambda typed: change("response", object_of(typed)),
        ),
        rename=Field(
            "change the call that is responded to",
            name,
            "line",
            lambda typed: change("name", required_text("the name of a call")(typed)),
            tuple(Completion(one) for one in _calls_before(turn)),
        ),
        **common,
    )


def _calls_before(turn: TurnSource) -> list[str]:
    """The names of the calls expected before a turn, those that always wait first."""
    case = turn.source.editor
    names = dict.fromkeys(call.name for before in range(turn.number) for call in case.turn(before).calls)
    return sorted(names, key=lambda name: name not in REQUESTS)


# Parts that are no text to be edited


def _part_text(part: Any) -> tuple[str, bool]:
    """A part as what it is and how big; and whether it is quiet."""
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
