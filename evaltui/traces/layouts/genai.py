"""OpenTelemetry's conventions for generative AI, which google-adk's schema 2 follows.

Messages are attributes of the span, or of the event `gen_ai.client.inference.operation.details`, or older
events with one message each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from evaltui.core.model.events import text_content
from evaltui.core.model.json_values import ABSENT
from evaltui.traces.formats.otlp import object_of, objects
from evaltui.traces.layouts.limits import json_attribute
from evaltui.traces.layouts.messages import (
    contents_of,
    has_choices,
    instruction_in,
    is_placeholder,
    is_unread,
    messages_in_texts,
    messages_of,
    parts_in_text,
    structured_output,
    with_output_text,
)
from evaltui.traces.layouts.operation import (
    CAPTURE,
    Json,
    Layout,
    Operation,
    OperationKind,
    as_arguments,
    as_result,
    of_langchain,
    usage_of,
)
from evaltui.traces.span import OtelSpan, SpanEvent

DETAILS = "gen_ai.client.inference.operation.details"
"""The event that holds the messages of a model call."""
ADK = "gcp.vertex.agent"
"""The scope of google-adk, and how the names of its own attributes begin."""
NOT_SPECIFIED = "<not specified>"

_KIND = "gen_ai.operation.name"
_KINDS: Mapping[str, OperationKind] = {
    "chat": "model",
    "generate_content": "model",
    "text_completion": "model",
    "invoke_agent": "agent",
    "invoke_workflow": "agent",
    "execute_tool": "tool",
}
TRACELOOP = "set TRACELOOP_TRACE_CONTENT=true where the agent runs"
_AI_SDK = (
    "pass experimental_telemetry: {isEnabled: true, recordInputs: true, recordOutputs: true} to the calls of "
    "the AI SDK where the agent runs"
)
_LANGSMITH = "langsmith."
_LANGSMITH_UNREAD = (
    "LangSmith records it as gen_ai.prompt and gen_ai.completion, which evaltui does not read: instrument "
    "the agent with OpenInference or OpenLLMetry instead"
)
_WITH_CONTENT = "create InstrumentationSettings with include_content=True where the agent runs"
_REMEDIES: Mapping[str, str] = {
    # OpenTelemetry's own are `openai_v2`, `google_genai` and the like.
    "opentelemetry.instrumentation.openai.": TRACELOOP,
    "opentelemetry.instrumentation.anthropic": TRACELOOP,
    "opentelemetry.instrumentation.google_generativeai": TRACELOOP,
    "opentelemetry.instrumentation.bedrock": TRACELOOP,
    "opentelemetry.instrumentation.llamaindex": TRACELOOP,
    "logfire.openai_agents": "set OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA=true where the agent runs",
    "pydantic-ai": _WITH_CONTENT,
}
# Vercel's, for TypeScript: its tracer has this name.
_AI_SDK_SCOPE = "ai"
_AI_SDK_MESSAGES = ("ai.prompt", "ai.response.text", "ai.response.toolCalls")
_AI_SDK_UNREAD = (
    "the AI SDK recorded it as ai.prompt and ai.response, which evaltui does not read: record messages as "
    "OpenTelemetry's conventions for generative AI have them"
)
_LISTED = "events"
"""Logfire's attribute with the messages as events."""
_RECORDED = (
    "gen_ai.usage.",
    "gen_ai.prompt.",
    "gen_ai.completion.",
    "gen_ai.input.",
    "gen_ai.output.",
    _LISTED,
)
# Of responses that a model, or its provider, has blocked or spoilt.
_FAILED_FINISHES = {
    "blocklist",
    "content_filter",
    "error",
    "malformed_function_call",
    "prohibited_content",
    "recitation",
    "safety",
    "spii",
    "unexpected_tool_call",
}
_TOOL_FINISHES = frozenset(("tool_calls", "tool_call", "tool_use", "function_call"))
_MERGED = "(merged tools)"
_EXECUTE = "execute_tool "
# Its client has spans without content of its own, which tell nothing beside those of what instruments it.
_ANTHROPIC = "com.anthropic.sdk"
_MESSAGES = ("gen_ai.input.messages", "gen_ai.output.messages")
# Logfire's spans of the OpenAI Agents SDK have no name of the operation.
_OPENAI_AGENTS = "logfire.openai_agents"
# What a handoff is named stands in the model's answer only.
_FUNCTIONS = ("Function: {name}", "Handoff: {from_agent} → {to_agent}")
# Pydantic AI: what a function makes of the model's output.
_OUTPUT_FUNCTION = "running output function"
# OpenLLMetry: the final state of a graph of LangGraph.
_ENTITY_OUTPUT = "traceloop.entity.output"
_CONFIG = ("temperature", "top_p", "top_k", "max_tokens", "seed", "stop_sequences")
_ASSISTANT = "gen_ai.assistant.message"
_MESSAGE_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    _ASSISTANT: "assistant",
    "gen_ai.tool.message": "tool",
}
_CHOICE = "gen_ai.choice"


def read_genai(span: OtelSpan) -> Operation | None:
    """Reads a span with these attributes; None for a span of another kind."""
    attributes = span.attributes
    kind = _kind(span)
    if kind is None:
        return None
    # AWS Strands has one for each attribute.
    details = [event.attributes.items() for event in span.events if event.name == DETAILS]
    merged = {**dict(chain.from_iterable(details)), **attributes}
    operation = Operation(
        kind,
        name=_name(kind, merged),
        version=_text(merged.get("gen_ai.response.model")) if kind == "model" else "",
        agent=_text(merged.get("gen_ai.agent.name")),
        conversation=_text(merged.get("gen_ai.conversation.id")),
        error=_text(merged.get("error.type")),
        is_adk=span.scope == ADK or any(name.startswith(ADK) for name in attributes),
        is_guess=not _named(attributes),
        remedy=_remedy(span),
        # Around runs of agents there may be several turns.
        is_run=attributes.get(_KIND) != "invoke_workflow",
    )
    if kind == "tool" and _is_function(span):
        operation.name = _text(attributes.get("name"))
        operation.arguments = as_arguments(attributes.get("input"))
        operation.result = as_result(attributes.get("output", ABSENT))
    elif kind == "tool":
        _read_call(operation, merged)
        operation.name = operation.name or span.name.partition(_EXECUTE)[2]
        operation.is_output = str(attributes.get("logfire.msg")).startswith(_OUTPUT_FUNCTION)
    elif kind in ("model", "agent"):
        _read_messages(operation, merged, span)
    if kind == "model":
        _read_request(operation, merged)
        operation.response_id = _text(merged.get("gen_ai.response.id"))
        output_tools = _output_tools(merged)
        operation.inputs = with_output_text(operation.inputs, output_tools)
        operation.outputs = with_output_text(operation.outputs, output_tools)
    elif kind == "agent" and operation.outputs is None:
        operation.outputs = _output(merged) or structured_output(attributes.get(_ENTITY_OUTPUT))
    return operation


def _output_tools(attributes: Mapping[str, Any]) -> dict[str, str]:
    """The tools by which a model of Pydantic AI gives its output, as `with_output_text` takes them."""
    parameters = object_of(json_attribute(attributes.get("model_request_parameters")))
    return {
        str(tool.get("name")): str(tool.get("outer_typed_dict_key") or "")
        for tool in objects(parameters.get("output_tools"))
    }


def _output(attributes: Mapping[str, Any]) -> list[Json] | None:
    """The output of an agent of Pydantic AI; None for other agents, and where it was cut."""
    result = attributes.get("final_result")
    if not isinstance(result, str) or not result or json_attribute(result) is ABSENT:
        return None
    return [text_content("model", result)]


def _remedy(span: OtelSpan) -> str:
    """The remedy is named by the instrumentation that wrote the span: the conventions leave it open."""
    if any(name.startswith("traceloop.") for name in span.attributes):
        return TRACELOOP
    if any(name.startswith(_LANGSMITH) for name in span.attributes):
        return _LANGSMITH_UNREAD
    if "ai.operationId" in span.attributes or span.scope == _AI_SDK_SCOPE:
        is_recorded = any(name.startswith(_AI_SDK_MESSAGES) for name in span.attributes)
        return _AI_SDK_UNREAD if is_recorded else _AI_SDK
    return next((remedy for scope, remedy in _REMEDIES.items() if span.scope.startswith(scope)), CAPTURE)


def _named(attributes: Mapping[str, Any]) -> str:
    """The kind that a span names; "" for none."""
    named = attributes.get(_KIND)
    return named if isinstance(named, str) else ""


def _kind(span: OtelSpan) -> OperationKind | None:
    attributes = span.attributes
    if span.scope.startswith(_ANTHROPIC) and not any(name.startswith(_MESSAGES) for name in attributes):
        return None
    if named := _named(attributes):
        if span.name == "execute_tool (merged)" or attributes.get("gen_ai.tool.name") == _MERGED:
            return "other"
        # Some libraries give the names of their own functions.
        return _KINDS.get(named, "model" if "gen_ai.output.messages" in attributes else "other")
    if _is_function(span):
        return "tool"
    # The attributes of a resource may be on every span: only what records a call is one.
    names_model = "gen_ai.request.model" in attributes
    by_whom = "gen_ai.system" in attributes or "gen_ai.provider.name" in attributes
    if names_model and by_whom and any(name.startswith(_RECORDED) for name in attributes):
        return "model"
    return None


def _is_function(span: OtelSpan) -> bool:
    """Whether a span is a call of a tool or a handoff of the OpenAI Agents SDK, as Logfire records it."""
    return span.scope == _OPENAI_AGENTS and span.attributes.get("logfire.msg_template") in _FUNCTIONS


def _name(kind: OperationKind, attributes: Mapping[str, Any]) -> str:
    if kind == "tool":
        return _text(attributes.get("gen_ai.tool.name"))
    if kind == "model":
        return _text(attributes.get("gen_ai.request.model") or attributes.get("gen_ai.response.model"))
    return _text(attributes.get("gen_ai.agent.name"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value != NOT_SPECIFIED else ""


def _read_call(operation: Operation, attributes: Mapping[str, Any]) -> None:
    arguments = json_attribute(attributes.get("gen_ai.tool.call.arguments", ABSENT))
    operation.arguments = as_arguments(of_langchain(arguments))
    operation.result = as_result(attributes.get("gen_ai.tool.call.result", ABSENT))
    operation.call_id = _text(attributes.get("gen_ai.tool.call.id"))


def _read_messages(operation: Operation, attributes: Mapping[str, Any], span: OtelSpan) -> None:
    sent = messages_in_texts(attributes.get("gen_ai.input.messages"))
    choices: Any = messages_in_texts(attributes.get("gen_ai.output.messages"))
    operation.inputs = contents_of(sent)
    operation.outputs = contents_of(choices, "assistant")
    operation.is_unread = is_unread(choices)
    operation.instruction = instruction_in(attributes.get("gen_ai.system_instructions")) or instruction_in(
        messages_of(sent)
    )
    if operation.inputs is None and operation.outputs is None and not _lacks_messages(span):
        inputs, outputs = _from_events(span.events or _listed_events(attributes))
        operation.inputs = contents_of(inputs) if inputs else None
        operation.outputs = contents_of(outputs, "assistant") if outputs else None
        operation.is_unread |= is_unread(outputs)
        operation.instruction = operation.instruction or instruction_in(inputs)
        choices = outputs
        if operation.kind == "agent":
            operation.output_value = next(
                (event.attributes.get("message") for event in span.events if event.name == _CHOICE), None
            )
    if span.scope == _OPENAI_AGENTS and operation.inputs is None and operation.outputs is None:
        choices = attributes.get("output")
        operation.inputs = contents_of(attributes.get("input"))
        operation.outputs = contents_of(choices, "assistant")
        operation.is_unread = is_unread(choices)
    if operation.kind == "model" and has_choices(choices):
        operation.take_none_of_choices()


def _lacks_messages(span: OtelSpan) -> bool:
    """Whether some of the events of a span, or of their content, may be missing."""
    return span.dropped > 0 or any(event.cut for event in span.events)


def _listed_events(attributes: Mapping[str, Any]) -> list[SpanEvent]:
    """The events that Logfire has as one attribute, in which the last messages may be the model's answer."""
    listed = json_attribute(attributes.get(_LISTED))
    events = [SpanEvent(str(event.get("event.name")), {}, 0, event) for event in objects(listed)]
    if not any(event.name == _CHOICE for event in events):
        for event in reversed(events):
            if event.name != _ASSISTANT:
                break
            event.name = _CHOICE
    return events


def _from_events(events: list[SpanEvent]) -> tuple[list[Json], list[Json]]:
    """The messages of older events, with content in their attributes, or in their bodies as log records."""
    inputs: list[Json] = []
    outputs: list[Json] = []
    for event in events:
        role = _MESSAGE_EVENTS.get(event.name)
        if role is None and event.name != _CHOICE:
            continue
        body = json_attribute(event.body) if event.body is not None else _with_values(event.attributes)
        fields = dict(body) if isinstance(body, dict) else {"content": body}
        if any(json_attribute(fields.get(name)) is ABSENT for name in ("content", "message")):
            return [], []
        if role is not None:
            inputs += _message(fields, role)
        else:
            message = fields.get("message")
            inner = (
                message
                if isinstance(message, dict)
                else {**fields, "content": fields.get("content", message)}
            )
            outputs += _message({**inner, "index": fields.get("index")}, "assistant")
    return inputs, outputs


def _with_values(attributes: Json) -> Json:
    """The attributes of an event, with messages and parts as values, as they are in a body."""
    texts = {name: attributes[name] for name in ("content", "message") if name in attributes}
    return attributes | {name: _value_in(text) for name, text in texts.items()}


def _value_in(text: Any) -> Any:
    """The message, or the parts of one, in a text of JSON; the text itself where that has none."""
    value = json_attribute(text)
    is_message = isinstance(value, dict) and {"role", "content", "parts", "tool_calls"} & value.keys()
    return value if is_message else parts_in_text(text)


def _message(fields: Json, role: str) -> Iterator[Json]:
    content = fields.get("content")
    if isinstance(content, dict) and "parts" in content:
        # google-adk: a genai Content.
        yield {"role": content.get("role") or role, "parts": content["parts"]}
        return
    if (content is not None and not is_placeholder(content)) or fields.get("tool_calls"):
        yield {**fields, "role": role, "content": content}


def _read_request(operation: Operation, attributes: Mapping[str, Any]) -> None:
    operation.usage = usage_of(
        attributes.get("gen_ai.usage.input_tokens", attributes.get("gen_ai.usage.prompt_tokens")),
        attributes.get("gen_ai.usage.output_tokens", attributes.get("gen_ai.usage.completion_tokens")),
        cached=attributes.get("gen_ai.usage.cache_read.input_tokens"),
        thoughts=attributes.get("gen_ai.usage.reasoning.output_tokens"),
        total=attributes.get("gen_ai.usage.total_tokens", attributes.get("llm.usage.total_tokens")),
    )
    finishes = json_attribute(
        attributes.get("gen_ai.response.finish_reasons", attributes.get("gen_ai.response.finish_reason"))
    )
    listed = finishes if isinstance(finishes, list) else [finishes]
    operation.calls_tools = any(str(item).lower() in _TOOL_FINISHES for item in listed)
    failed = next((str(item) for item in listed if str(item).lower() in _FAILED_FINISHES), "")
    operation.error = operation.error or failed
    operation.tools = list(objects(json_attribute(attributes.get("gen_ai.tool.definitions"))))
    operation.config = {
        name: attributes[f"gen_ai.request.{name}"]
        for name in _CONFIG
        if f"gen_ai.request.{name}" in attributes
    }


LAYOUT = Layout(
    read_genai,
    content=("gen_ai.",),
    messages=(*_MESSAGES, "gen_ai.tool.call."),
    kind=_KIND,
    session="gen_ai.conversation.id",
)
