"""Langfuse's SDK: what went in and came out of an observation, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaltui.core.model.events import spoken_texts
from evaltui.traces.formats.otlp import object_of
from evaltui.traces.layouts.limits import json_attribute
from evaltui.traces.layouts.messages import contents_of, instruction_in, is_unread, may_be_text, messages_of
from evaltui.traces.layouts.operation import (
    Layout,
    Operation,
    OperationKind,
    as_arguments,
    as_result,
    of_function,
    usage_of,
)
from evaltui.traces.span import OtelSpan

_PREFIX = "langfuse.observation."
_KIND = f"{_PREFIX}type"
_SESSION = "langfuse.session.id"
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
    """Reads a span with these attributes; None for a span without them."""
    attributes = span.attributes
    if _KIND not in attributes:
        return None
    kind = _KINDS.get(str(attributes[_KIND]).lower(), "other")
    input_value, output_value = attributes.get(f"{_PREFIX}input"), attributes.get(f"{_PREFIX}output")
    operation = Operation(
        kind,
        conversation=str(attributes.get("session.id") or attributes.get(_SESSION) or ""),
        remedy=_REMEDY,
    )
    if kind == "tool":
        operation.name = span.name
        operation.arguments = as_arguments(of_function(json_attribute(input_value)))
        operation.result = as_result(output_value)
    elif kind == "model":
        operation.name = str(attributes.get(f"{_PREFIX}model.name") or "")
        messages = _without_declarations(input_value)
        operation.inputs = contents_of(messages)
        operation.output_value = output_value
        operation.outputs = None if may_be_text(output_value) else contents_of(output_value, "assistant")
        operation.is_unread = is_unread(output_value)
        operation.instruction = instruction_in(messages_of(messages)) if operation.inputs else ""
        operation.usage = _usage(attributes)
    elif kind == "agent":
        operation.is_run = attributes[_KIND] == "agent"
        operation.name = operation.agent = span.name if operation.is_run else ""
        operation.input_value, operation.output_value = input_value, output_value
        operation.inputs = _spoken(input_value, "user")
        operation.outputs = None if may_be_text(output_value) else _spoken(output_value, "assistant")
    return operation


def _without_declarations(value: Any) -> Any:
    """The messages of a request without the declarations of tools, which Langfuse's handler for LangChain
    appends as messages of tools."""
    parsed = json_attribute(value)
    if not isinstance(parsed, list):
        return value
    return [message for message in parsed if not _is_declaration(message)]


def _is_declaration(message: Any) -> bool:
    match message:
        case {"role": "tool", "content": {"type": "function", "function": {"name": str()}}}:
            return "tool_call_id" not in message
    return False


def _spoken(value: Any, role: str) -> Any:
    """The messages in a value: a text, messages, or the only text among a function's arguments."""
    parsed = json_attribute(value)
    if isinstance(parsed, dict) and not {"role", "content", "messages"} & parsed.keys():
        if role == "assistant":
            # Which member of a result is a response, if any, nobody says.
            return None
        match parsed:
            case {"args": list() as by_place, "kwargs": dict() as by_name}:
                inner = [*by_place, *by_name.values()]
            case _:
                inner = list(parsed.values())
        strings = [member for member in inner if isinstance(member, str)]
        # A text among arguments is no JSON of its own.
        parsed = strings if len(strings) == 1 else None
    contents = contents_of(parsed, role)
    return contents if contents and spoken_texts(contents) else None


def _usage(attributes: Mapping[str, Any]) -> Any:
    details = object_of(json_attribute(attributes.get(f"{_PREFIX}usage_details")))
    return usage_of(
        details.get("input", details.get("prompt_tokens")),
        details.get("output", details.get("completion_tokens")),
        total=details.get("total", details.get("total_tokens")),
    )


LAYOUT = Layout(
    read_langfuse,
    content=("langfuse.",),
    messages=(f"{_PREFIX}input", f"{_PREFIX}output"),
    kind=_KIND,
    session=_SESSION,
)
