"""google-adk's schema 1: requests and responses as JSON in attributes of its own.

Content that was not captured is `{}` in all of them, which a call without arguments has as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from evaltui.core.model.events import text_content
from evaltui.core.model.json_values import ABSENT
from evaltui.traces.formats.otlp import either, object_of, objects
from evaltui.traces.layouts.genai import ADK, NOT_SPECIFIED
from evaltui.traces.layouts.limits import json_attribute
from evaltui.traces.layouts.messages import NOT_RECORDED, contents_of, instruction_in
from evaltui.traces.layouts.operation import Json, Layout, Operation, as_arguments, as_result, usage_of
from evaltui.traces.span import OtelSpan

REMEDY = (
    "set ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true, or with google-adk 2.13 and later "
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_AND_EVENT, where the agent runs"
)
_REQUEST, _RESPONSE = f"{ADK}.llm_request", f"{ADK}.llm_response"
_ARGUMENTS, _RESULT = f"{ADK}.tool_call_args", f"{ADK}.tool_response"
# As google-adk 2.13 writes data in responses.
_INLINE_DATA = re.compile(r"<inline_data: (.+), \d+ bytes>")
_MERGED = "execute_tool (merged)"
# Of ADK for Java before it had spans of `execute_tool`: the result is in the next request, too.
_JAVA_CALL, _JAVA_RESULT = re.compile(r"tool_call \[(.+)\]"), "tool_response ["


def read_adk(span: OtelSpan) -> Operation | None:
    """Reads a span of schema 1; None for any other span."""
    attributes = span.attributes
    if span.name == _MERGED or not (span.scope == ADK or any(name.startswith(ADK) for name in attributes)):
        return None
    session = attributes.get(f"{ADK}.session_id")
    conversation = session if isinstance(session, str) else ""
    if span.name.startswith(_JAVA_RESULT):
        return None
    java = _JAVA_CALL.fullmatch(span.name)
    if java or _ARGUMENTS in attributes or _RESULT in attributes:
        return _call(attributes, conversation, java[1] if java else "")
    if span.name == "call_llm" or _RESPONSE in attributes:
        return _model_call(attributes, conversation)
    if span.name == "invocation" and "gen_ai.operation.name" not in attributes:
        return Operation("agent", conversation=conversation, is_adk=True, is_run=False, remedy=REMEDY)
    return None


def _call(attributes: Mapping[str, Any], conversation: str, name: str) -> Operation:
    result = as_result(attributes.get(_RESULT, ABSENT))
    if result is not ABSENT and NOT_SPECIFIED in result.values():
        result = ABSENT
    return Operation(
        "tool",
        name=name,
        conversation=conversation,
        arguments=as_arguments(attributes.get(_ARGUMENTS)),
        result=result,
        is_adk=True,
        remedy=REMEDY,
    )


def _model_call(attributes: Mapping[str, Any], conversation: str) -> Operation:
    request, response = _object(attributes.get(_REQUEST)), _object(attributes.get(_RESPONSE))
    config = _object(request.get("config"))
    content = response.get("content")
    usage = _object(either(response, "usageMetadata"))
    model = request.get("model") or attributes.get("gen_ai.request.model")
    return Operation(
        "model",
        name=str(model or ""),
        version=str(either(response, "modelVersion") or ""),
        conversation=conversation,
        inputs=contents_of(_with_placeholders(request["contents"])) if "contents" in request else None,
        outputs=_answer(response, content),
        whole=True,
        instruction=instruction_in(either(config, "systemInstruction")),
        tools=_declarations(config.get("tools")),
        usage=usage_of(
            either(usage, "promptTokenCount"),
            _sum(either(usage, "candidatesTokenCount"), either(usage, "thoughtsTokenCount")),
            cached=either(usage, "cachedContentTokenCount"),
            thoughts=either(usage, "thoughtsTokenCount"),
            total=either(usage, "totalTokenCount"),
        ),
        error=str(either(response, "errorCode") or ""),
        is_adk=True,
        is_elided=_REQUEST in attributes and not request and not response,
        remedy=REMEDY,
    )


def _with_placeholders(contents: Any) -> Any:
    """google-adk leaves data out without a mark: of a message that is nothing else, no part is left."""
    placeholder = text_content("user", f"[{NOT_RECORDED}]")
    if not isinstance(contents, list):
        return contents
    return [placeholder if content == {"role": "user", "parts": []} else content for content in contents]


def _answer(response: Json, content: Any) -> list[Json] | None:
    if isinstance(content, dict):
        recorded = content.get("parts")
        parts = [_with_attachment(part) for part in recorded] if isinstance(recorded, list) else []
        return contents_of([{"role": "model", **content, "parts": parts}], "model")
    # A response without content is one that said nothing; `{}` is none at all.
    return [] if response else None


def _with_attachment(part: Any) -> Any:
    text = part.get("text") if isinstance(part, dict) else None
    data = _INLINE_DATA.fullmatch(text) if isinstance(text, str) else None
    return {"text": f"[{NOT_RECORDED}: {data[1]}]"} if data else part


def _object(value: Any) -> Json:
    return object_of(json_attribute(value))


def _sum(first: Any, other: Any) -> int | None:
    numbers = [value for value in (first, other) if isinstance(value, int)]
    return sum(numbers) if numbers else None


def _declarations(tools: Any) -> list[Json]:
    return [
        declaration
        for tool in objects(tools)
        for declaration in objects(either(tool, "functionDeclarations"))
    ]


LAYOUT = Layout(read_adk, content=(f"{ADK}.",))
