"""OpenLLMetry (Traceloop): decorated functions, and the messages of its older versions, numbered in names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaltui.core.model.json_values import ABSENT
from evaltui.traces.layouts.genai import TRACELOOP, read_genai
from evaltui.traces.layouts.limits import json_attribute, lacks
from evaltui.traces.layouts.messages import (
    contents_of,
    has_choices,
    instruction_in,
    is_unread,
    messages_of,
    numbered,
    parts_in_text,
    structured_output,
)
from evaltui.traces.layouts.operation import (
    Json,
    Layout,
    Operation,
    OperationKind,
    as_arguments,
    as_result,
    langchain_inputs,
    of_function,
)
from evaltui.traces.span import OtelSpan

_KIND = "traceloop.span.kind"
_KINDS: Mapping[str, OperationKind] = {"workflow": "agent", "agent": "agent", "tool": "tool", "task": "other"}
_NAME = "traceloop.entity.name"
_PROMPT, _COMPLETION = "gen_ai.prompt.", "gen_ai.completion."
_SESSIONS = ("session_id", "thread_id", "conversation_id")


def read_openllmetry(span: OtelSpan) -> Operation | None:
    """Reads a span with these attributes; None for a span without them."""
    attributes = span.attributes
    if _KIND in attributes and "gen_ai.operation.name" not in attributes:
        return _decorated(span)
    if (
        any(name.startswith((_PROMPT, _COMPLETION)) for name in attributes)
        or "llm.request.type" in attributes
    ):
        return _model_call(span)
    return None


def _decorated(span: OtelSpan) -> Operation:
    attributes = span.attributes
    kind = _KINDS.get(str(attributes[_KIND]), "other")
    name = str(attributes.get(_NAME) or ("" if lacks(span, _NAME) else span.name))
    input_value, output_value = (
        json_attribute(attributes.get("traceloop.entity.input")),
        attributes.get("traceloop.entity.output"),
    )
    operation = Operation(kind, conversation=_session(attributes), remedy=TRACELOOP)
    if kind == "tool":
        operation.name = name
        operation.arguments = as_arguments(_arguments(input_value))
        operation.result = as_result(output_value)
    elif kind == "agent":
        operation.is_run = attributes[_KIND] == "agent"
        operation.name = operation.agent = name if attributes[_KIND] == "agent" else ""
        operation.output_value, operation.outputs = output_value, structured_output(output_value)
    return operation


def _arguments(value: Any) -> Any:
    """The arguments that were recorded of a decorated function (`args`) or of LangChain (`inputs`)."""
    if isinstance(value, dict) and ("inputs" in value or "input_str" in value):
        return langchain_inputs(value)
    return of_function(value)


def _session(attributes: Mapping[str, Any]) -> str:
    sessions = (attributes.get(f"traceloop.association.properties.{name}") for name in _SESSIONS)
    return next((str(session) for session in sessions if session), "")


def _model_call(span: OtelSpan) -> Operation:
    attributes = span.attributes
    # Model, tokens and settings are named as in the conventions.
    plain = OtelSpan(
        "", "", "", "", attributes={**attributes, "gen_ai.operation.name": "chat"}, dropped=span.dropped
    )
    operation = read_genai(plain) or Operation("model")
    prompt, completion = (
        [] if lacks(span, prefix) else _messages(attributes, prefix) for prefix in (_PROMPT, _COMPLETION)
    )
    if prompt:
        operation.inputs = contents_of(prompt)
        operation.instruction = instruction_in(messages_of(prompt))
    if completion:
        operation.outputs = contents_of(completion, "assistant")
        operation.is_unread = is_unread(completion)
        operation.calls_tools = any(message.get("finish_reason") == "tool_calls" for message in completion)
    operation.conversation = operation.conversation or _session(attributes)
    operation.remedy = TRACELOOP
    if has_choices(completion):
        operation.take_none_of_choices()
    return operation


def _messages(attributes: Mapping[str, Any], prefix: str) -> list[Json]:
    """`gen_ai.prompt.0.role` and its kind as messages, none where a content was cut or one of the roles is
    missing. One without content or calls says nothing."""
    messages: list[Json] = []
    for fields in numbered(attributes, prefix):
        message = {name: value for name, value in fields.items() if "." not in name}
        if "content" in message:
            message["content"] = parts_in_text(message["content"])
        if calls := numbered(fields, "tool_calls."):
            message["tool_calls"] = calls
        messages.append(message)
    is_cut = any(message.get("content") is ABSENT for message in messages)
    if is_cut or len({"role" in message for message in messages}) > 1:
        return []
    return [message for message in messages if message.keys() & {"content", "tool_calls"}]


LAYOUT = Layout(read_openllmetry, content=("traceloop.", "llm."), kind=_KIND)
