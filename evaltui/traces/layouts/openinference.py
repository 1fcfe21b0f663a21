"""OpenInference, as Phoenix and Arize read it: messages as attributes with numbers in their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaltui.core.model.events import parts_in, spoken_texts
from evaltui.core.model.json_values import ABSENT
from evaltui.traces.formats.otlp import object_of
from evaltui.traces.layouts.limits import json_attribute, lacks
from evaltui.traces.layouts.messages import (
    contents_of,
    has_choices,
    has_reprs,
    instruction_in,
    is_unread,
    may_be_text,
    messages_of,
    numbered,
    structured_output,
)
from evaltui.traces.layouts.operation import (
    Json,
    Layout,
    Operation,
    OperationKind,
    as_arguments,
    as_result,
    calls_in,
    of_function,
    usage_of,
)
from evaltui.traces.span import OtelSpan

KIND = "openinference.span.kind"
_REMEDY = "unset OPENINFERENCE_HIDE_INPUTS, OPENINFERENCE_HIDE_OUTPUTS and their kind where the agent runs"
# Of the OpenAI Agents SDK: what the call of it is named stands in the model's answer only.
_HANDOFF = "handoff to "
# Of Pydantic AI, on the span of a run.
_ALL_MESSAGES = {"pydantic_ai.all_messages", "all_messages_events"}
# Of LlamaIndex, at the end of the span around a run.
_WORKFLOW_END = "StopEvent("
_KINDS: Mapping[str, OperationKind] = {"AGENT": "agent", "CHAIN": "agent", "LLM": "model", "TOOL": "tool"}


def read_openinference(span: OtelSpan) -> Operation | None:
    """Reads a span with these attributes; None for a span without them."""
    attributes = span.attributes
    if KIND not in attributes:
        return None
    # What wrote the span first knows better what it is.
    named = str(attributes.get("gen_ai.operation.name") or "")
    kind = _KINDS.get(str(attributes[KIND]).upper(), "other")
    if kind == "model" and named.startswith("invoke_"):
        kind = "agent"
    if kind == "model" and has_reprs(attributes.get("output.value")):
        # LlamaIndex: what makes a request.
        kind = "other"
    operation = Operation(
        kind,
        agent=str(attributes.get("agent.name") or ""),
        conversation=str(attributes.get("session.id") or ""),
        remedy=_REMEDY,
    )
    if kind == "tool":
        is_nameless = lacks(span, "tool.name") or span.name.startswith(_HANDOFF)
        operation.name = str(attributes.get("tool.name") or ("" if is_nameless else span.name))
        operation.call_id = str(attributes.get("tool.id") or attributes.get("tool_call.id") or "")
        operation.arguments = _arguments(span)
        operation.result = _result(attributes.get("output.value", ABSENT))
    elif kind == "model":
        _read_model(operation, span)
    elif kind == "agent":
        is_workflow = str(attributes.get("output.value")).startswith(_WORKFLOW_END)
        operation.is_run = is_workflow or str(attributes[KIND]).upper() != "CHAIN"
        operation.name = operation.agent
        # Each call of a model overwrites the messages of the one before: only what came in and out counts.
        # The input is the last message of the run then, by which it may have asked its model again.
        has_messages = attributes.keys() & _ALL_MESSAGES
        operation.input_value, output = (
            None if has_messages else _value(span, "input"),
            _value(span, "output"),
        )
        operation.inputs = _spoken(operation.input_value, "user")
        operation.output_value = output
        operation.outputs = structured_output(output) or (
            None if may_be_text(output) and not _is_langchains(output) else _spoken(output, "assistant")
        )
    return operation


def _arguments(span: OtelSpan) -> Any:
    # The parameters are the schema of the tool where there is an input as well.
    if "input.value" in span.attributes or lacks(span, "input.value"):
        return as_arguments(of_function(json_attribute(span.attributes.get("input.value"))))
    parameters = as_arguments(span.attributes.get("tool.parameters"))
    return ABSENT if _is_schema(parameters) else parameters


def _is_schema(parameters: Any) -> bool:
    """Whether parameters are the JSON Schema of a tool: a call without an input has no other attribute."""
    return (
        isinstance(parameters, dict)
        and parameters.get("type") == "object"
        and isinstance(parameters.get("properties", {}), dict)
    )


def _result(value: Any) -> Any:
    parsed = json_attribute(value)
    if isinstance(parsed, dict) and isinstance(content := parsed.get("content"), dict):
        # google-adk: an event as JSON.
        for part in parts_in(content):
            response = part.get("function_response") or part.get("functionResponse")
            if isinstance(response, dict):
                return as_result(response.get("response", ABSENT))
    return as_result(value)


def _read_model(operation: Operation, span: OtelSpan) -> None:
    attributes = span.attributes
    operation.name = str(attributes.get("llm.model_name") or "")
    inputs, outputs = (_unflattened(span, f"llm.{way}_messages.") for way in ("input", "output"))
    operation.inputs = contents_of(inputs or _value(span, "input"))
    operation.output_value = None if outputs else _value(span, "output")
    operation.outputs = (
        contents_of(outputs, "assistant")
        if outputs
        else _spoken(operation.output_value, "assistant", or_called=True)
    )
    if outputs:
        _complete(operation, contents_of(_value(span, "output"), "assistant"))
    if may_be_text(operation.output_value):
        operation.outputs = None
    operation.is_unread = is_unread(outputs or operation.output_value)
    operation.instruction = instruction_in(messages_of(inputs)) if inputs else ""
    operation.usage = usage_of(
        attributes.get("llm.token_count.prompt"),
        attributes.get("llm.token_count.completion"),
        cached=attributes.get("llm.token_count.prompt_details.cache_read"),
        thoughts=attributes.get("llm.token_count.completion_details.reasoning"),
        total=attributes.get("llm.token_count.total"),
    )
    operation.config = object_of(json_attribute(attributes.get("llm.invocation_parameters")))
    if has_choices([{**message, "index": number} for number, message in enumerate(outputs)]) and (
        operation.config.get("n") not in (None, 1)
    ):
        operation.take_none_of_choices()


def _complete(operation: Operation, response: list[Json] | None) -> None:
    """Gives calls without arguments those of the whole response: empty ones are left out of messages."""
    calls, whole = calls_in(operation.outputs or ()), calls_in(response or ())
    # Those of Gemini have no ids, but an order.
    if [call["name"] for call in calls] != [call["name"] for call in whole]:
        whole = [call for call in whole if "id" in call]
    recorded = {call.get("id", place): call["args"] for place, call in enumerate(whole) if "args" in call}
    for place, call in enumerate(calls):
        if "args" not in call and call.get("id", place) in recorded:
            call["args"] = recorded[call.get("id", place)]


def _value(span: OtelSpan, way: str) -> Any:
    """The value that came in or out, a text in a list where it is declared to be no JSON."""
    value = span.attributes.get(f"{way}.value")
    is_text = isinstance(value, str) and span.attributes.get(f"{way}.mime_type") == "text/plain"
    return [value] if value and is_text else value


def _spoken(value: Any, role: str, *, or_called: bool = False) -> list[Json] | None:
    """The messages in a value: a text, a message, or an event or message of google-adk; None without a text,
    `or_called` without a text or a call."""
    parsed = json_attribute(value)
    if has_reprs(parsed):
        return None
    if isinstance(parsed, dict):
        inner = (
            parsed.get("new_message")
            or parsed.get("content")
            or parsed.get("input")
            or parsed.get("output")
            # Of smolagents.
            or (role == "user" and parsed.get("task"))
        )
        if isinstance(inner, dict | str):
            # A text in JSON is no JSON of its own.
            parsed = {"role": role, **inner} if isinstance(inner, dict) else [inner]
    elif isinstance(parsed, int | float) and not isinstance(parsed, bool):
        parsed = [str(value)]
    contents = contents_of(parsed, role)
    has_content = contents and (spoken_texts(contents) or (or_called and calls_in(contents)))
    return contents if has_content else None


def _is_langchains(output: Any) -> bool:
    """Whether an output is the text of an agent of LangChain, whose models may have more around it."""
    parsed = json_attribute(output)
    return isinstance(parsed, dict) and [*parsed] == ["output"]


def _unflattened(span: OtelSpan, prefix: str) -> list[Json]:
    """`llm.input_messages.0.message.role` and its kind as messages; none where some are missing."""
    messages = [] if lacks(span, prefix) else list(map(_message, numbered(span.attributes, prefix)))
    # Where only some have a role, one of the roles is missing.
    return [] if len({"role" in message for message in messages}) > 1 else messages


def _message(flat: Json) -> Json:
    fields = {name.removeprefix("message."): value for name, value in flat.items()}
    message = {name: value for name, value in fields.items() if "." not in name}
    if contents := numbered(fields, "contents."):
        message["content"] = [_renamed(part, "message_content") for part in contents]
    if calls := numbered(fields, "tool_calls."):
        message["tool_calls"] = [_renamed(call, "tool_call") for call in calls]
    return message


def _renamed(flat: Json, prefix: str) -> Json:
    plain = {name.removeprefix(f"{prefix}."): value for name, value in flat.items()}
    function = {
        name.removeprefix("function."): value for name, value in plain.items() if name.startswith("function.")
    }
    return {**plain, "function": function} if function else plain


LAYOUT = Layout(
    read_openinference,
    content=("openinference.", "llm.", "input.", "output.", "tool."),
    messages=("llm.input_messages.", "llm.output_messages."),
    kind=KIND,
    session="session.id",
)
