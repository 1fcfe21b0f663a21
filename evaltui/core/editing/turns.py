"""The turns of a conversation, what the user says in them, and which answer is expected."""

from __future__ import annotations

from typing import Any

from evaltui.core.editing import content, references
from evaltui.core.editing.content import TextPart
from evaltui.core.editing.json_paths import (
    Changes,
    eval_id,
    in_style,
    place,
    set_id,
    turn_count,
    turn_path,
    turns_path,
    value_at,
)
from evaltui.core.jsondoc.edits import Duplicate, Edit, Insert, Move, Put, Remove
from evaltui.core.model.problems import JsonPath


def add_turn(data: Any, case: int, text: str = "") -> list[Edit]:
    """A turn at the end, in which the user says `text` and nothing is said of what is expected."""
    path = turns_path(data, case)
    if not isinstance(value_at(data, path), list):
        return [Put(path, [_new_turn(data, path, text)])]
    return [Insert(path, turn_count(data, case), _new_turn(data, path, text))]


def insert_turn(data: Any, config: Any, case: int, index: int, text: str = "") -> Changes:
    """A turn before the one at `index`; the marks of those after it move along."""
    path = turns_path(data, case)
    if index >= turn_count(data, case):
        return Changes(add_turn(data, case, text))
    return _insert(data, config, case, index, _new_turn(data, path, text))


def insert_response_turn(data: Any, config: Any, case: int, index: int, response: dict[str, Any]) -> Changes:
    """A turn before the one at `index`, in which the user responds to a call."""
    path = turns_path(data, case)
    part = in_style(data, path, {"function_response": response})
    user = in_style(data, path, {"user_content": {"parts": [part], "role": "user"}})
    return _insert(data, config, case, index, user)


def _insert(data: Any, config: Any, case: int, index: int, turn: dict[str, Any]) -> Changes:
    inserted: list[Edit] = [Insert(turns_path(data, case), index, turn)]
    return Changes(inserted, _renumber(data, config, case, lambda number: number + (number >= index)))


def duplicate_turn(data: Any, config: Any, case: int, turn: int) -> Changes:
    """A copy right after the turn, with its mark. An invocation id is not copied: it names one turn."""
    path = turn_path(data, case, turn)
    edits: list[Edit] = [Duplicate(path[:-1], turn)]
    key = place(data, path, "invocation_id")[-1]
    if key in value_at(data, path):
        edits.append(Remove((*path[:-1], turn + 1, key)))
    marks = _renumber(data, config, case, lambda number: number + (number > turn))
    owner = set_id(data), eval_id(data, case)
    if mode := references.mode_of(config, owner, turn):
        copy = {"set": owner[0], "case": owner[1], "turn": turn + 1, "mode": mode}
        marks += references.append_to_block(config, "turns", [copy])
    return Changes(edits, marks)


def move_turn(data: Any, config: Any, case: int, turn: int, to: int) -> Changes:
    """Another place in the conversation, its mark with it; `to` is the index afterwards."""
    path = turn_path(data, case, turn)[:-1]
    to = max(0, min(to, turn_count(data, case) - 1))
    if to == turn:
        return Changes()

    def now(number: int) -> int:
        if number == turn:
            return to
        return number - (turn < number <= to) + (to <= number < turn)

    return Changes([Move(path, turn, to)], _renumber(data, config, case, now))


def delete_turn(data: Any, config: Any, case: int, turn: int) -> Changes:
    """Its mark goes with it."""

    def now(number: int) -> int | None:
        return None if number == turn else number - (number > turn)

    return Changes([Remove(turn_path(data, case, turn))], _renumber(data, config, case, now))


def user_texts(data: Any, case: int, turn: int) -> list[TextPart]:
    return content.text_parts(data, _user(data, case, turn))


def set_user_text(data: Any, case: int, turn: int, text: str, part: int | None = None) -> list[Edit]:
    """Change one text of what the user says, the first one where no part is named.

    Every other part stays as it is. Where there is no text yet, one is added at the end.
    """
    return content.set_text(data, _user(data, case, turn), text, "user", part)


def attach_file(data: Any, case: int, turn: int, payload: bytes, mime_type: str) -> list[Edit]:
    """The user sends a file along, after what is there."""
    path = _user(data, case, turn)
    return content.add_part(data, path, content.file_part(data, path, payload, mime_type), "user")


def remove_user_part(data: Any, case: int, turn: int, part: int) -> list[Edit]:
    return content.remove_part(data, _user(data, case, turn), part)


def answer_texts(data: Any, case: int, turn: int) -> list[TextPart]:
    """The texts of the expected answer, without its thoughts."""
    return content.text_parts(data, _answer(data, case, turn))


def set_answer_text(data: Any, case: int, turn: int, text: str, part: int | None = None) -> list[Edit]:
    """Change one text of the expected answer, the first one where no part is named; thoughts are kept."""
    return content.set_text(data, _answer(data, case, turn), text, "model", part)


def remove_answer_part(data: Any, case: int, turn: int, part: int) -> list[Edit]:
    return content.remove_part(data, _answer(data, case, turn), part)


def remove_answer(data: Any, case: int, turn: int) -> list[Edit]:
    """No answer is expected any more."""
    path = _answer(data, case, turn)
    return [Remove(path)] if path[-1] in value_at(data, path[:-1]) else []


def _new_turn(data: Any, path: JsonPath, text: str) -> dict[str, Any]:
    return in_style(data, path, {"user_content": {"parts": [{"text": text}], "role": "user"}})


def _user(data: Any, case: int, turn: int) -> JsonPath:
    return place(data, turn_path(data, case, turn), "user_content")


def _answer(data: Any, case: int, turn: int) -> JsonPath:
    return place(data, turn_path(data, case, turn), "final_response")


def _renumber(data: Any, config: Any, case: int, now: references.Renumbering) -> list[Edit]:
    return references.turns_changed(config, (set_id(data), eval_id(data, case)), now)
