"""Langfuse's SDK: what went in and came out of an observation, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaltui.traces.layouts.limits import json_attribute
from evaltui.traces.layouts.messages import contents_of, instruction_in, messages_of
from evaltui.traces.layouts.operation import (
    Operation,
    OperationKind,
    as_arguments,
    as_result,
    of_function,
    texts,
    usage_of,
)
from evaltui.traces.span import OtelSpan

_PREFIX = "langfuse.observation."
_REMEDY = (
    "set LANGFUSE_OBSERVE_DECORATOR_IO_CAPTURE_ENABLED=true where the agent runs, or record inputs and "
    "outputs with update(input=, output=)"
)
_KINDS: Mapping[str, OperationKind] = {
    "generation": "model",
    "agent": "agent",
    "chain": "agent",
    "span": "agent",
    "tool": "tool",
}


def read_langfuse(span: OtelSpan) -> Operation | None:
    """What a span with these attributes says; None for a span without them."""
    said = span.attributes
    if f"{_PREFIX}type" not in said:
        return None
    kind = _KINDS.get(str(said[f"{_PREFIX}type"]).lower(), "other")
    given, returned = said.get(f"{_PREFIX}input"), said.get(f"{_PREFIX}output")
    operation = Operation(
        kind,
        conversation=str(said.get("session.id") or said.get("langfuse.session.id") or ""),
        remedy=_REMEDY,
    )
    if kind == "tool":
        operation.name = span.name
        operation.arguments = as_arguments(of_function(json_attribute(given)))
        operation.result = as_result(returned)
    elif kind == "model":
        operation.name = str(said.get(f"{_PREFIX}model.name") or "")
        operation.inputs = contents_of(given)
        operation.outputs = contents_of(returned, "assistant")
        operation.instruction = instruction_in(messages_of(given)) if operation.inputs else ""
        operation.usage = _usage(said)
    elif kind == "agent":
        operation.is_run = said[f"{_PREFIX}type"] == "agent"
        operation.name = operation.agent = span.name if operation.is_run else ""
        operation.inputs, operation.outputs = _spoken(given, "user"), _spoken(returned, "assistant")
    return operation


def _spoken(value: Any, role: str) -> Any:
    """What was said: a text, messages, or the only text among a function's arguments."""
    found = json_attribute(value)
    if isinstance(found, dict) and not {"role", "content", "messages"} & found.keys():
        match found:
            case {"args": list() as by_place, "kwargs": dict() as by_name}:
                inner = [*by_place, *by_name.values()]
            case _:
                inner = list(found.values())
        said = [one for one in inner if isinstance(one, str)]
        found = said[0] if len(said) == 1 else None
    contents = contents_of(found, role)
    return contents if contents and texts(contents) else None


def _usage(said: Mapping[str, Any]) -> Any:
    found = json_attribute(said.get(f"{_PREFIX}usage_details"))
    details = found if isinstance(found, dict) else {}
    return usage_of(
        details.get("input", details.get("prompt_tokens")),
        details.get("output", details.get("completion_tokens")),
        total=details.get("total", details.get("total_tokens")),
    )
