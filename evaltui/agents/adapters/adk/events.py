"""Converts ADK's events to steps and back, and session state to JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from google.adk.events.event import Event
from google.genai import types
from pydantic_core import to_jsonable_python

from ....core.conversation.adk_steps import FRAMEWORK_ACTIONS, is_internal, output_of
from ....core.model.events import Json, Step
from ....core.model.problems import JsonPath, format_path
from ..base import plain_json
from .past import past_events


def step_of(event: Event) -> Step:
    """The step of an event. Raises TypeError, naming the tool or agent, for a content that JSON cannot
    hold."""
    return Step(
        # ADK passes the result of an agent with a task of its own to the calling agent in the user's name.
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
        state=_plain(_own_state(event.actions.state_delta)) or None,
        transfer=event.actions.transfer_to_agent,
        long_running=tuple(sorted(event.long_running_tool_ids or ())),
        error_code=event.error_code,
        error_message=event.error_message,
        framework=_framework(event),
        **output_of(_plain(event.output), event.node_info.model_dump(exclude_defaults=True)),
    )


def state_json(state: Json) -> Json:
    """The session state without ADK's internal keys.

    Raises TypeError with the path of a value that JSON cannot hold.
    """
    own = _own_state(state)
    unwritable = _unwritable(own)
    if unwritable is not None:
        path, value = unwritable
        raise TypeError(
            f"the session state cannot be written as JSON: {format_path(path)} is a {type(value).__name__}"
        )
    written: Json = to_jsonable_python(own, bytes_mode="base64")
    return written


def _own_state(state: Json) -> Json:
    return {key: value for key, value in state.items() if not is_internal(key)}


def _plain(value: Any) -> Any:
    # An agent may pass objects of its own from tool to tool: an error only where they must be JSON.
    return to_jsonable_python(value, bytes_mode="base64", fallback=lambda value: f"<{type(value).__name__}>")


def _framework(event: Event) -> Json | None:
    """The fields of an event that ADK needs to continue from it: which agents may see it, ADK's internal
    state, and the node and its actions in a workflow."""
    fields: Json = {}
    internal = {key: value for key, value in event.actions.state_delta.items() if key.startswith("_adk")}
    if internal:
        fields["state"] = _plain(internal)
    if event.isolation_scope:
        fields["isolation_scope"] = event.isolation_scope
    # Every event has a path; that of a root agent is not needed.
    if "/" in event.node_info.path:
        fields["node_info"] = event.node_info.model_dump(mode="json", exclude_defaults=True)
    actions = event.actions.model_dump(
        include=set(FRAMEWORK_ACTIONS), exclude_defaults=True, exclude_none=True
    )
    if actions := {name: value for name, value in actions.items() if value not in ({}, [])}:
        fields["actions"] = _plain(actions)
    return fields or None


def _content(event: Event) -> Json | None:
    if event.content is None:
        return None
    try:
        return plain_json(event.content)
    except ValueError as error:
        raise TypeError(_unwritable_message(event.author, event.content) or str(error)) from error


def _unwritable_message(author: str, content: types.Content) -> str | None:
    for part in content.parts or []:
        for what, value in _foreign_values(author, part):
            if unwritable := _unwritable(value):
                return f"{what} a {type(unwritable[1]).__name__}, which cannot be written as JSON"
    return None


def _foreign_values(author: str, part: types.Part) -> Iterator[tuple[str, object]]:
    if part.function_response:
        yield f"tool {part.function_response.name} returned", part.function_response.response
    if part.function_call:
        yield f"agent {author} called {part.function_call.name} with", part.function_call.args


def _unwritable(
    value: Any, path: JsonPath = (), inside: frozenset[int] = frozenset()
) -> tuple[JsonPath, Any] | None:
    """The path and the innermost value that cannot be written as JSON."""
    try:
        to_jsonable_python(value, bytes_mode="base64")
    except ValueError:
        for key, child in _children(value):
            inner = None
            if id(child) not in inside:
                inner = _unwritable(child, (*path, key), inside | {id(value)})
            if inner is not None:
                return inner
        return path, value
    return None


def _children(value: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, dict):
        yield from ((str(key), child) for key, child in value.items())
    elif isinstance(value, (list, tuple)):
        yield from enumerate(value)


def events_of(past: Sequence[Step], root: str, agents: Collection[str]) -> Iterator[Event]:
    """The events of a past in order, see `past_events`. Raises pydantic's ValidationError for a content that
    genai does not accept."""
    for data in past_events(past, root, agents):
        # From JSON, since bytes are base64 in JSON only.
        yield Event.model_validate_json(json.dumps(data))
