"""Where a case starts from, what it must end with, its rubrics, and its simulated user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from evaltui.core.editing import references
from evaltui.core.editing.content import text_parts
from evaltui.core.editing.json_paths import (
    Changes,
    case_path,
    eval_id,
    get,
    in_style,
    insert_at,
    list_at,
    place,
    put_member,
    set_id,
    turn_path,
    value_at,
)
from evaltui.core.jsondoc.edits import Edit, EditError, Put, Remove, Rename, alike
from evaltui.core.model.problems import JsonPath

# What google-adk 2.13 takes where a case says nothing of its session.
DEFAULT_APP_NAME = "EvaluationGenerator"
DEFAULT_USER_ID = "test_user_id"

# The types by which ADK's three rubric metrics pick their rubrics from cases and turns. They pass over
# those without a type.
RUBRIC_TYPES = ("FINAL_RESPONSE_QUALITY", "TOOL_USE_QUALITY", "TRAJECTORY_QUALITY")

SessionField = Literal["app_name", "user_id", "session_id"]
RubricField = Literal["rubric_id", "text", "description", "type"]


# Session input


def set_session_field(
    data: Any, case: int, name: SessionField, value: str, *, app_name: str = DEFAULT_APP_NAME
) -> list[Edit]:
    """`app_name` is for a case that has no session input yet: ADK wants both names in it.

    An empty session id is taken out, as an id there pins a session that then exists already.
    """
    path = _session(data, case)
    field = place(data, path, name)
    if name == "session_id" and not value:
        return _remove(data, field)
    if not isinstance(value_at(data, path), dict):
        return [Put(path, _new_session(data, path, app_name, {name: value}))]
    return _put(data, field, value)


def put_state(data: Any, case: int, key: str, value: Any, *, app_name: str = DEFAULT_APP_NAME) -> list[Edit]:
    """A value of the state that the session starts with."""
    path = _session(data, case)
    if not isinstance(value_at(data, path), dict):
        return [Put(path, _new_session(data, path, app_name, {"state": {key: value}}))]
    return [put_member(data, place(data, path, "state"), key, value)]


def remove_state(data: Any, case: int, key: str) -> list[Edit]:
    return [Remove((*place(data, _session(data, case), "state"), key))]


def rename_state(data: Any, case: int, key: str, wanted: str) -> list[Edit]:
    return _rename((*place(data, _session(data, case), "state"), key), wanted)


def replace_state(
    data: Any, case: int, state: Mapping[str, Any], *, app_name: str = DEFAULT_APP_NAME
) -> list[Edit]:
    path = _session(data, case)
    if not isinstance(value_at(data, path), dict):
        return [Put(path, _new_session(data, path, app_name, {"state": dict(state)}))]
    return [Put(place(data, path, "state"), dict(state))]


def remove_session(data: Any, case: int) -> list[Edit]:
    """The case starts where ADK lets it: with its default names and an empty state."""
    return _remove(data, _session(data, case))


def _session(data: Any, case: int) -> JsonPath:
    return place(data, case_path(data, case), "session_input")


def _new_session(data: Any, path: JsonPath, app_name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    return in_style(data, path, {"app_name": app_name, "user_id": DEFAULT_USER_ID, **given})


# Final session state. ADK reads it nowhere and takes absent for `{}`; neither is checked here.


def put_final_state(data: Any, case: int, key: str, value: Any) -> list[Edit]:
    """The state must have this value in the end."""
    return [put_member(data, _final_state(data, case), key, value)]


def remove_final_state(data: Any, case: int, key: str) -> list[Edit]:
    return [Remove((*_final_state(data, case), key))]


def rename_final_state(data: Any, case: int, key: str, wanted: str) -> list[Edit]:
    return _rename((*_final_state(data, case), key), wanted)


def replace_final_state(data: Any, case: int, state: Mapping[str, Any] | None) -> list[Edit]:
    """None takes the field out: nothing is said of the final state."""
    path = _final_state(data, case)
    return _remove(data, path) if state is None else [Put(path, dict(state))]


def _final_state(data: Any, case: int) -> JsonPath:
    return place(data, case_path(data, case), "final_session_state")


# Rubrics, of a case or of one of its turns


def add_rubric(
    data: Any, case: int, text: str, type: str = RUBRIC_TYPES[0], *, turn: int | None = None
) -> list[Edit]:
    """A rubric at the end, with an id that neither the case nor any of its turns has: ADK refuses others."""
    path = _rubrics(data, case, turn)
    taken = _rubric_ids(data, case)
    number = len(taken) + 1
    while f"rubric_{number}" in taken:
        number += 1
    content = in_style(data, path, {"text_property": text})
    rubric = {"rubric_id": f"rubric_{number}", "rubric_content": content} | ({"type": type} if type else {})
    return [insert_at(data, path, len(list_at(data, path)), in_style(data, path, rubric))]


def set_rubric(
    data: Any, case: int, index: int, field: RubricField, value: str, *, turn: int | None = None
) -> list[Edit]:
    """An empty description or type is taken out. Raises EditError for an id that is empty or taken."""
    path = (*_rubrics(data, case, turn), index)
    if not isinstance(value_at(data, path), dict):
        raise EditError(f"there is no rubric {index + 1}")
    if field == "text":
        content = place(data, path, "rubric_content")
        key = str(place(data, content, "text_property")[-1])
        return [put_member(data, content, key, value)]
    target = place(data, path, field)
    if field == "rubric_id":
        if not value:
            raise EditError("a rubric needs an id")
        if value != value_at(data, target) and value in _rubric_ids(data, case):
            raise EditError(f"there is a rubric {value!r} in this case already")
    elif not value:
        return _remove(data, target)
    return _put(data, target, value)


def delete_rubric(data: Any, case: int, index: int, *, turn: int | None = None) -> list[Edit]:
    return [Remove((*_rubrics(data, case, turn), index))]


def _rubrics(data: Any, case: int, turn: int | None) -> JsonPath:
    owner = case_path(data, case) if turn is None else turn_path(data, case, turn)
    return place(data, owner, "rubrics")


def _rubric_ids(data: Any, case: int) -> set[str]:
    owner = case_path(data, case)
    turns = place(data, owner, "conversation")
    owners = [owner, *((*turns, number) for number in range(len(list_at(data, turns))))]
    found: set[str] = set()
    for one in owners:
        path = place(data, one, "rubrics")
        ids = (get(data, (*path, index), "rubric_id") for index in range(len(list_at(data, path))))
        found |= {value for value in ids if isinstance(value, str)}
    return found


# Simulated user


def set_starting_prompt(data: Any, case: int, text: str) -> list[Edit]:
    return _put(data, place(data, _scenario(data, case), "starting_prompt"), text)


def set_plan(data: Any, case: int, text: str) -> list[Edit]:
    return _put(data, place(data, _scenario(data, case), "conversation_plan"), text)


def set_persona(data: Any, case: int, persona: str | Mapping[str, Any] | None) -> list[Edit]:
    """The id of a built-in persona, one of your own (`id, description, behaviors`), or none."""
    path = place(data, _scenario(data, case), "user_persona")
    if persona is None:
        return _remove(data, path)
    return _put(data, path, persona if isinstance(persona, str) else dict(persona))


def to_scenario(data: Any, config: Any, case: int) -> Changes:
    """A simulated user in place of fixed turns, who begins with what the first turn says.

    The turns go, and with them their marks.
    """
    owner = case_path(data, case)
    conversation = place(data, owner, "conversation")
    first = text_parts(data, place(data, (*conversation, 0), "user_content"))
    path = place(data, owner, "conversation_scenario")
    if isinstance(value_at(data, path), dict):
        raise EditError("the user of this case is simulated already")
    scenario = {"starting_prompt": first[0].text if first else "", "conversation_plan": ""}
    edits = [*_remove(data, conversation), Put(path, in_style(data, owner, scenario))]
    marks = references.turns_changed(config, (set_id(data), eval_id(data, case)), lambda turn: None)
    return Changes(edits, marks)


def to_conversation(data: Any, case: int) -> list[Edit]:
    """Fixed turns in place of a simulated user: at first one, with the prompt of the scenario."""
    owner = case_path(data, case)
    scenario = _scenario(data, case)
    prompt = get(data, scenario, "starting_prompt")
    path = place(data, owner, "conversation")
    content = {"parts": [{"text": prompt if isinstance(prompt, str) else ""}], "role": "user"}
    return [Remove(scenario), Put(path, [in_style(data, owner, {"user_content": content})])]


def _scenario(data: Any, case: int) -> JsonPath:
    path = place(data, case_path(data, case), "conversation_scenario")
    if not isinstance(value_at(data, path), dict):
        raise EditError("the user of this case is not simulated; make it a scenario first")
    return path


# What these share


def _put(data: Any, path: JsonPath, value: Any) -> list[Edit]:
    return [Put(path, value)] if not alike(value_at(data, path), value) else []


def _remove(data: Any, path: JsonPath) -> list[Edit]:
    holder = value_at(data, path[:-1])
    return [Remove(path)] if isinstance(holder, dict) and path[-1] in holder else []


def _rename(path: JsonPath, wanted: str) -> list[Edit]:
    return [Rename(path, wanted)] if path[-1] != wanted else []
