"""ADK's events as steps, a past as ADK's events, and what users keep in session state as JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import Any

from google.adk.events.event import Event
from google.genai import types
from pydantic_core import to_jsonable_python

from ....core.conversation.waiting import CONFIRMATION
from ....core.model.events import Json, Step, is_made_id
from ....core.model.problems import JsonPath, format_path
from .base import call_of, content_of, plain_json


def step_of(event: Event) -> Step:
    """Raises TypeError, naming the tool or agent, for a content that cannot be written as JSON."""
    return Step(
        # What an agent with a task of its own returns, ADK hands to the agent that set it in the user's name.
        author=event.node_info.name if event.author == "user" else event.author,
        content=_content(event),
        final=event.is_final_response(),
        partial=bool(event.partial),
        usage=plain_json(event.usage_metadata) if event.usage_metadata else None,
        grounding=plain_json(event.grounding_metadata) if event.grounding_metadata else None,
        model_version=event.model_version,
        id=event.id,
        invocation_id=event.invocation_id,
        branch=event.branch or "",
        timestamp=event.timestamp,
        state=_delta(event.actions.state_delta),
        transfer=event.actions.transfer_to_agent,
        long_running=tuple(sorted(event.long_running_tool_ids or ())),
        error_code=event.error_code,
        error_message=event.error_message,
        framework=_framework(event),
    )


def state_json(state: Json) -> Json:
    """The session state without the keys that ADK keeps for itself.

    Raises TypeError with the path of a value that cannot be written as JSON.
    """
    own = {key: value for key, value in state.items() if not _is_internal(key)}
    found = _unwritable(own)
    if found is not None:
        path, value = found
        raise TypeError(
            f"the session state cannot be written as JSON: {format_path(path)} is a {type(value).__name__}"
        )
    written: Json = to_jsonable_python(own, bytes_mode="base64")
    return written


def _is_internal(key: str) -> bool:
    return key.removeprefix("temp:").startswith("_adk")


def _delta(delta: Json) -> Json | None:
    return _written({key: value for key, value in delta.items() if not _is_internal(key)})


def _written(delta: Json) -> Json | None:
    return _plain(delta) if delta else None


def _plain(value: Any) -> Any:
    # An agent may pass objects of its own from tool to tool: that is no error until they are asked for.
    return to_jsonable_python(value, bytes_mode="base64", fallback=lambda one: f"<{type(one).__name__}>")


# What of an event's actions ADK goes on by: a confirmation that a tool has asked for, where a workflow goes,
# and how far an agent of a resumable app is. Credentials that were asked for are left out.
_ACTIONS = {"requested_tool_confirmations", "route", "agent_state", "end_of_agent"}


def _framework(event: Event) -> Json | None:
    """What ADK needs to go on from an event: who of several agents may see it, state that is ADK's own, and
    of a workflow the node, its output and where it goes."""
    kept: Json = {}
    internal = {key: value for key, value in event.actions.state_delta.items() if key.startswith("_adk")}
    if internal:
        kept["state"] = _written(internal)
    if event.isolation_scope:
        kept["isolation_scope"] = event.isolation_scope
    # The path of an agent that is the root says nothing, and every event has it.
    if "/" in event.node_info.path:
        kept["node_info"] = event.node_info.model_dump(mode="json", exclude_defaults=True)
    if event.output is not None:
        kept["output"] = _plain(event.output)
    actions = event.actions.model_dump(include=_ACTIONS, exclude_defaults=True, exclude_none=True)
    if actions := {name: value for name, value in actions.items() if value not in ({}, [])}:
        kept["actions"] = _plain(actions)
    return kept or None


def _content(event: Event) -> Json | None:
    if event.content is None:
        return None
    try:
        return plain_json(event.content)
    except ValueError as error:
        raise TypeError(_what_is_unwritable(event.author, event.content) or str(error)) from error


def _what_is_unwritable(author: str, content: types.Content) -> str | None:
    for part in content.parts or []:
        for what, value in _foreign_values(author, part):
            if found := _unwritable(value):
                return f"{what} a {type(found[1]).__name__}, which cannot be written as JSON"
    return None


def _foreign_values(author: str, part: types.Part) -> Iterator[tuple[str, object]]:
    if part.function_response:
        yield f"tool {part.function_response.name} returned", part.function_response.response
    if part.function_call:
        yield f"agent {author} called {part.function_call.name} with", part.function_call.args


def _unwritable(
    value: Any, path: JsonPath = (), inside: frozenset[int] = frozenset()
) -> tuple[JsonPath, Any] | None:
    """The innermost value that cannot be written as JSON, with where it is."""
    try:
        to_jsonable_python(value, bytes_mode="base64")
    except ValueError:
        for key, child in _children(value):
            found = None
            if id(child) not in inside:
                found = _unwritable(child, (*path, key), inside | {id(value)})
            if found is not None:
                return found
        return path, value
    return None


def _children(value: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, dict):
        yield from ((str(key), child) for key, child in value.items())
    elif isinstance(value, (list, tuple)):
        yield from enumerate(value)


# What ADK 2.13 itself begins the ids with that it gives to calls, and takes away before a model sees them.
_UNSENT_ID = "adk-"
_OF_THE_CALLER = ("invocation_id", "branch", "isolation_scope")


def events_of(past: Sequence[Step], root: str, agents: Collection[str]) -> Iterator[Event]:
    """Events in order. Where a case names an author that is none of `agents`, it is `root`.

    Raises pydantic's ValidationError for a content that genai does not know.
    """
    callers: dict[str, Json] = {}
    asked = _confirmations(past)
    for turn, steps in groupby(past, key=lambda step: step.turn):
        group = list(steps)
        invocation_id = next((step.invocation_id for step in group if step.invocation_id), f"past-{turn}")
        # A user who answers an agent with a task of its own is heard by that agent alone.
        heard_by = next((_of_framework(step) for step in group if step.author != "user"), {})
        for step in group:
            data = _event(step, invocation_id)
            if step.author == "user":
                data["isolation_scope"] = heard_by.get("isolation_scope")
                # A response belongs where its call was made.
                data |= next((callers[one] for one in _call_ids(step) if one in callers), {})
            elif not step.invocation_id and step.author not in agents:
                data["author"] = root
            for one in _call_ids(step) if step.author != "user" else ():
                callers[one] = {name: data[name] for name in _OF_THE_CALLER if data[name] is not None}
            if not _of_framework(step).get("actions"):
                # A turn of a case does not say that its tool asked for a confirmation.
                requested = {one: asked[one] for one in _call_ids(step) if one in asked}
                data["actions"]["requested_tool_confirmations"] = requested
            given = {name: value for name, value in data.items() if value is not None}
            # From JSON, since bytes are base64 in JSON only.
            yield Event.model_validate_json(json.dumps(given))


def _event(step: Step, invocation_id: str) -> Json:
    framework = _of_framework(step)
    delta = (step.state or {}) | framework.get("state", {})
    return {
        "id": step.id,
        "author": step.author,
        "invocation_id": invocation_id,
        "branch": step.branch or None,
        "timestamp": step.timestamp or None,
        "content": _content_with_unsent_ids(step),
        "usage_metadata": step.usage,
        "grounding_metadata": step.grounding,
        "model_version": step.model_version,
        "long_running_tool_ids": [_unsent(one) for one in step.long_running] or None,
        "error_code": step.error_code,
        "error_message": step.error_message,
        "isolation_scope": framework.get("isolation_scope"),
        "node_info": framework.get("node_info"),
        "output": framework.get("output"),
        "actions": framework.get("actions", {}) | {"state_delta": delta, "transfer_to_agent": step.transfer},
    }


def _confirmations(past: Sequence[Step]) -> dict[str, Json]:
    """What was asked about each call that is to be confirmed, by the id of that call."""
    asked: dict[str, Json] = {}
    for step in past:
        for part in step.parts:
            call = part.get("function_call") or {}
            original = (call.get("args") or {}).get("originalFunctionCall")
            if call.get("name") == CONFIRMATION and isinstance(original, dict):
                asked[str(original.get("id"))] = {"hint": ""}
    return asked


def _call_ids(step: Step) -> list[str]:
    """The ids that the calls and results of a step have in its event."""
    return [_unsent(call_id) for part in step.parts if (call_id := call_of(part).get("id"))]


def _of_framework(step: Step) -> Json:
    return step.framework or {}


def _content_with_unsent_ids(step: Step) -> Json | None:
    content = content_of(step)
    return content and content | {"parts": [_with_unsent_id(part) for part in step.parts]}


def _with_unsent_id(part: Json) -> Json:
    call = call_of(part)
    if not is_made_id(call.get("id") or ""):
        return part
    kind = "function_call" if "function_call" in part else "function_response"
    return part | {kind: call | {"id": _unsent(call["id"])}}


def _unsent(call_id: str) -> str:
    return _UNSENT_ID + call_id if is_made_id(call_id) else call_id
