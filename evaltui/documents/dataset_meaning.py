"""The content of an eval case in one shape, and the part of it that a dataset keeps for evaltui.

Eval cases say the same in several ways: calls in lists or in events, keys in two spellings. A meaning has one
shape for that, so that cases can be compared before and after they were in another format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from evaltui.core.model.datasets import (
    CHECKED,
    OF_CASE,
    OWN_KEY,
    UNSPECIFIED,
    by_name,
    checks_unspecified,
    content_of,
    from_dataset_case,
    other_members,
    without_original,
)
from evaltui.core.model.events import Json
from evaltui.core.model.json_values import ABSENT, field_of, list_at, side_by_side, spelling_in
from evaltui.core.model.problems import JsonPath

# Members of eval cases by the names that they have in a meaning.
_MEMBERS = {
    "scenario": "conversation_scenario",
    "session": "session_input",
    "user": "user_content",
    "calls": "intermediate_data",
    "responses": "intermediate_data",
    "between": "intermediate_data",
    "events": "intermediate_data",
    "response": "final_response",
    "turn_rubrics": "rubrics",
    "text": "rubric_content",
}
_OF_SESSION = ("app_name", "user_id", "session_id", "state")
_DETAILS_OF_TURN = (
    "invocation_id",
    "creation_timestamp",
    "duration",
    "model_duration",
    "tool_duration",
    "app_details",
)
# They are no expectations: an edit may drop them.
DETAILS = (*_DETAILS_OF_TURN, "events")


def meaning_of_case(case: Json) -> Json:
    """The content of an eval case in one shape: equal for cases with the same expectations."""
    scenario, session = field_of(case, "conversation_scenario"), field_of(case, "session_input") or {}
    own = without_original(case).get(OWN_KEY)
    in_session = {spelling_in(name, session): name for name in _OF_SESSION}
    return {
        "eval_id": field_of(case, "eval_id"),
        "scenario": scenario
        and {
            name: value
            for name in ("starting_prompt", "conversation_plan", "user_persona")
            if (value := field_of(scenario, name)) is not None
        },
        "conversation": [meaning_of_turn(turn) for turn in field_of(case, "conversation") or []],
        "session": {in_session.get(name, name): value for name, value in session.items() if value},
        "rubrics": _meaning_of_rubrics(field_of(case, "rubrics") or []),
        "final_session_state": field_of(case, "final_session_state") or {},
        "creation_timestamp": field_of(case, "creation_timestamp") or 0.0,
        OWN_KEY: None if own in ({}, UNSPECIFIED) else own,
        "others": other_members(case),
    }


def _meaning_of_rubrics(rubrics: Sequence[Json]) -> dict[str, Json]:
    """Rubrics by their ids, which are unique in a sound case."""
    meanings: dict[str, Json] = {}
    for index, rubric in enumerate(rubrics):
        rubric_id = str(field_of(rubric, "rubric_id"))
        name = f"{rubric_id} ({index})" if rubric_id in meanings else rubric_id
        meanings[name] = _meaning_of_rubric(rubric)
    return meanings


def _meaning_of_rubric(rubric: Json) -> Json:
    text = field_of(field_of(rubric, "rubric_content"), "text_property")
    return {"text": text} | {name: field_of(rubric, name) for name in ("type", "description")}


def meaning_of_turn(turn: Json) -> Json:
    data = field_of(turn, "intermediate_data")
    parts: dict[str, list[Json]] = {"call": [], "response": [], "other": []}
    if isinstance(data, dict):
        for event in field_of(data, "invocation_events") or events_of_lists(data):
            for kind, part in parts_of(event):
                parts[kind].append({"author": event.get("author"), "part": part} if kind == "other" else part)
    response, user = field_of(turn, "final_response"), content_of(field_of(turn, "user_content"))
    return {
        "user": user and user["parts"],
        "calls": parts["call"] if isinstance(data, dict) else None,
        "responses": parts["response"],
        "between": parts["other"],
        "response": None if response is None else (content_of(response) or {"parts": []})["parts"],
        "events": list_at(data, (spelling_in("invocation_events", data or {}),)) or None,
        "turn_rubrics": field_of(turn, "rubrics") or [],
        **{name: value for name in _DETAILS_OF_TURN if (value := field_of(turn, name))},
    }


def parts_of(event: Json) -> Iterator[tuple[str, Json]]:
    """The parts of an event with their kinds: a call in one shape, a response, or another."""
    for part in (content_of(event.get("content")) or {"parts": []})["parts"]:
        call, response = field_of(part, "function_call"), field_of(part, "function_response")
        if isinstance(call, dict):
            yield "call", call_of(call)
        elif isinstance(response, dict):
            yield "response", response
        else:
            yield "other", part


def call_of(call: Json) -> Json:
    """A call that has arguments, empty ones where it states none."""
    return {**call, "args": call.get("args") or {}}


def events_of_lists(data: Json, author: str = "") -> Iterator[Json]:
    """The events that the lists of intermediate data stand for: texts, then each call with its response."""
    for name, parts in field_of(data, "intermediate_responses") or []:
        yield {"author": name, "content": {"role": "model", "parts": parts}}
    responses = list(field_of(data, "tool_responses") or [])
    for call in field_of(data, "tool_uses") or []:
        yield {"author": author, "content": {"role": "model", "parts": [{"function_call": call}]}}
        own = next((item for item in responses if _answers(item, call)), None)
        if own is not None:
            responses.remove(own)
            yield _response_event(own, author)
    yield from (_response_event(response, author) for response in responses)


def _answers(response: Json, call: Json) -> bool:
    by_id = call.get("id") or response.get("id")
    return response.get("id") == call.get("id") if by_id else response.get("name") == call.get("name")


def _response_event(response: Json, author: str) -> Json:
    return {"author": author, "content": {"role": "user", "parts": [{"function_response": response}]}}


def with_kept(written: Json, eval_case: Json) -> Json:
    """A case that keeps under `OWN_KEY` what its other members do not say."""
    meaning = meaning_of_case(eval_case)
    own = {name: value for name, value in written.get(OWN_KEY, {}).items() if name != OF_CASE}
    own.pop("unspecified", None)
    if checks_unspecified(eval_case) and any(
        turn["response"] is None or turn["calls"] is None for turn in meaning["conversation"]
    ):
        own |= CHECKED
    rest = {name: value for name, value in written.items() if name != OWN_KEY}
    read = from_dataset_case(rest, "")[0]
    paths = list(unfit(eval_case, rest))
    members = _members_at(paths, eval_case, read)
    unread = set(unfit(eval_case, rest | {OWN_KEY: {OF_CASE: members}}))
    members = _members_at([path for path in paths if path not in unread], eval_case, read)
    own |= {OF_CASE: members} if members else {}
    return rest | ({OWN_KEY: own} if own else {})


def _members_at(paths: Iterable[JsonPath], eval_case: Json, read: Json) -> Json:
    """The members of an eval case at these paths, each with the first part around it that `read` has not."""
    members: Json = {}
    for path in map(names_at, paths):
        length = next((n for n in range(1, len(path)) if _at(read, path[:n]) is None), len(path))
        *way, name = path[:length]
        value, holder = _at(eval_case, path[:length]), members
        for step in way:
            holder = holder.setdefault(step, {})
        holder[name] = value
    return members


def _at(value: Any, path: Iterable[str]) -> Any:
    """The value at a path of names in an eval case, in either spelling; None where there is none."""
    for step in path:
        value = by_name(value).get(step) if isinstance(value, list) else field_of(value, step)
    return value


def unfit(eval_case: Json, case: Json) -> Iterator[JsonPath]:
    """The paths at which the meaning of an eval case differs from that of a dataset's case."""
    read = meaning_of_case(from_dataset_case(case, str(field_of(eval_case, "eval_id")))[0])
    for path, expected, actual in side_by_side(meaning_of_case(eval_case), read):
        # Lists of calls, responses and texts have no order among them.
        is_free = path[-1] == "events" and expected is None
        if not is_free and (expected is ABSENT or actual is ABSENT or expected != actual):
            yield path


def names_at(path: JsonPath) -> tuple[str, ...]:
    """The path of names in an eval case for one in its meaning, down to what is kept as a whole."""
    names = [_MEMBERS.get(str(step), str(step)) for step in path]
    if path[0] == "others":
        return tuple(names[1:2])
    return tuple(names[:3] if path[0] in ("conversation", "rubrics") else names)


def path_in(eval_case: Json, names: Sequence[str]) -> JsonPath:
    """A path of names as a JSON path of the eval case."""
    path: JsonPath = ()
    for step in names:
        value = _at(eval_case, names[: len(path)])
        if isinstance(value, list):
            if step not in by_name(value):
                break
            path = (*path, list(by_name(value)).index(step))
        else:
            path = (*path, spelling_in(step, value) if isinstance(value, dict) else step)
    return path
