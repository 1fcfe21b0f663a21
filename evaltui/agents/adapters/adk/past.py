"""Converts a past to the events of ADK, without ADK: its servers accept them too."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

from ....core.conversation.waiting import CONFIRMATION
from ....core.model.events import Json, Step, is_made_id
from ..base import call_of, content_of

# The prefix of ids that ADK 2.13 gives to calls, and removes before a request to a model.
_UNSENT_ID = "adk-"
_CALLER_FIELDS = ("invocation_id", "branch", "isolation_scope")


def past_events(past: Sequence[Step], root: str, agents: Collection[str]) -> Iterator[Json]:
    """ADK's events as JSON, in order. An author that is not among `agents` becomes `root`."""
    callers: dict[str, Json] = {}
    confirmations = _confirmations(past)
    for turn, steps in groupby(past, key=lambda step: step.turn):
        group = list(steps)
        invocation_id = next((step.invocation_id for step in group if step.invocation_id), f"past-{turn}")
        # A user's answer to an agent with a task of its own is only for that agent.
        addressee = next((_of_framework(step) for step in group if step.author != "user"), {})
        for step in group:
            data = _event(step, invocation_id)
            if step.author == "user":
                data["isolation_scope"] = addressee.get("isolation_scope")
                # A response has the place of its call.
                data |= next((callers[call_id] for call_id in _call_ids(step) if call_id in callers), {})
            elif not step.invocation_id and step.author not in agents:
                data["author"] = root
            for call_id in _call_ids(step) if step.author != "user" else ():
                callers[call_id] = {name: data[name] for name in _CALLER_FIELDS if data[name] is not None}
            if not _of_framework(step).get("actions"):
                # A turn of a case does not say that its tool asked for a confirmation.
                requested = {id_: confirmations[id_] for id_ in _call_ids(step) if id_ in confirmations}
                data["actions"]["requested_tool_confirmations"] = requested
            yield {name: value for name, value in data.items() if value is not None}


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
        "long_running_tool_ids": [_unsent(call_id) for call_id in step.long_running] or None,
        "error_code": step.error_code,
        "error_message": step.error_message,
        "isolation_scope": framework.get("isolation_scope"),
        "node_info": framework.get("node_info"),
        "output": step.output,
        "actions": framework.get("actions", {}) | {"state_delta": delta, "transfer_to_agent": step.transfer},
    }


def _confirmations(past: Sequence[Step]) -> dict[str, Json]:
    """The confirmation requested for each call, by the id of the call."""
    confirmations: dict[str, Json] = {}
    for step in past:
        for part in step.parts:
            call = part.get("function_call") or {}
            original = (call.get("args") or {}).get("originalFunctionCall")
            if call.get("name") == CONFIRMATION and isinstance(original, dict):
                confirmations[str(original.get("id"))] = {"hint": ""}
    return confirmations


def _call_ids(step: Step) -> list[str]:
    """The ids of the calls and results of a step in its event."""
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
