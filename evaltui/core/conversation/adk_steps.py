"""google-adk's events as steps, from the JSON of its servers and files. Source: google-adk 2.13."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..model.events import Json, Step, is_final
from ..model.json_values import field_of


def step_from_adk(event: Mapping[str, Any]) -> Step:
    """Converts a google-adk event as JSON, in snake_case or camelCase.

    Raises ValueError for an event without author, pydantic's ValidationError for a content that genai does
    not accept.
    """
    # A host whose agent is one of google-adk has events as objects, and needs no models of ours.
    from ..model.content import GROUNDING_METADATA, Content, UsageMetadata

    if "author" not in event:
        raise ValueError("not an event: it has neither `kind` nor `author`")
    actions = event.get("actions") or {}
    content = _genai(Content, event.get("content"))
    long_running = tuple(field_of(event, "long_running_tool_ids") or ())
    delta = field_of(actions, "state_delta") or {}
    grounding = field_of(event, "grounding_metadata")
    step = Step(
        author=event["author"],
        content=content,
        partial=bool(event.get("partial")),
        usage=_genai(UsageMetadata, field_of(event, "usage_metadata")),
        grounding=None if grounding is None else _genai(GROUNDING_METADATA.imported(), grounding),
        model_version=field_of(event, "model_version"),
        id=event.get("id") or "",
        invocation_id=field_of(event, "invocation_id") or "",
        branch=event.get("branch") or "",
        timestamp=event.get("timestamp") or 0.0,
        state={key: value for key, value in delta.items() if not is_internal(key)} or None,
        transfer=field_of(actions, "transfer_to_agent"),
        long_running=long_running,
        error_code=field_of(event, "error_code"),
        error_message=field_of(event, "error_message"),
        **output_of(event.get("output"), field_of(event, "node_info") or {}),
        framework=_framework_data(event, actions),
    )
    return replace(
        step, final=is_final(step, skip_summarization=bool(field_of(actions, "skip_summarization")))
    )


def is_internal(key: str) -> bool:
    """Whether a key of the session state is internal to ADK."""
    return key.removeprefix("temp:").startswith("_adk")


def node_name(event: Mapping[str, Any]) -> str:
    """The name of the workflow node of an event; "" for none."""
    path = str((field_of(event, "node_info") or {}).get("path") or "")
    return path.rpartition("/")[2].partition("@")[0]


def output_of(output: Any, node_info: Mapping[str, Any]) -> Json:
    """The fields of a step for an output: the node that returns it, and whether it is the output of the
    root."""
    if output is None:
        return {}
    paths = field_of(node_info, "output_for") or ()
    node = node_name({"node_info": node_info})
    return {"output": output, "node": node, "answers": any("/" not in path for path in paths)}


# What of an event's actions ADK goes on by: a confirmation that a tool has asked for, where a workflow goes,
# and how far an agent of a resumable app is. Credentials that were asked for are left out.
FRAMEWORK_ACTIONS = ("requested_tool_confirmations", "route", "agent_state", "end_of_agent")


def _framework_data(event: Mapping[str, Any], actions: Mapping[str, Any]) -> Json | None:
    """The data of an event that ADK needs to continue: isolation scope, internal state, and the node of a
    workflow with its actions."""
    delta = field_of(actions, "state_delta") or {}
    node = field_of(event, "node_info") or {}
    # The path of an agent that is the root says nothing, and every event has it.
    in_workflow = "/" in str(node.get("path"))
    fields = {
        "state": {key: value for key, value in delta.items() if key.startswith("_adk")},
        "isolation_scope": field_of(event, "isolation_scope"),
        "node_info": _filled_fields(node, "path", "output_for", "message_as_output") if in_workflow else None,
        "actions": _filled_fields(actions, *FRAMEWORK_ACTIONS),
    }
    present = {name: value for name, value in fields.items() if value is not None and value != {}}
    return present or None


def _filled_fields(data: Mapping[str, Any], *names: str) -> Json:
    """The fields with these names that are not empty."""
    values = {name: field_of(data, name) for name in names}
    return {name: value for name, value in values.items() if value not in (None, {}, [])}


def _genai(model: type[Any], data: Any) -> Json | None:
    if data is None:
        return None
    parsed: Json = model.model_validate_json(json.dumps(data)).model_dump(mode="json", exclude_none=True)
    return parsed
