"""Model and tool calls of a native agent, through the call recorder of the case where there is one."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import fields
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, TypeAdapter

from .....core.model.content import GroundingMetadata, Part, UsageMetadata
from .....core.model.events import Json
from .....core.recordings.entry import UNASKED_CONFIG, JsonRequest
from ....call_recorder import ModelExchange, ToolOutcome, current_call_recorder
from ....model_gate import Waits, through_gate
from ...native.agent import Tool, ToolContext
from ...native.models import Model, ModelRequest, ModelResponse, size_of_request, used
from ...native.scripted import ScriptedModel
from ..base import copy_state, plain_json, removed_keys, state_delta

if TYPE_CHECKING:
    from google.genai.types import GenerateContentConfig

_OnText = Callable[[str], None]


def model_exchange(model: Model, request: ModelRequest, agent: str) -> ModelExchange | None:
    """What is to be done about a request; None where the model is simply asked.

    A scripted model always is: it costs nothing, and its rules are part of the agent.
    """
    recorder = current_call_recorder.get()
    if recorder is None or isinstance(model, ScriptedModel):
        return None
    asked = JsonRequest(
        model=model.name,
        instruction=request.system_instruction,
        tools=[tool.as_json() for tool in request.tools],
        contents=[plain_json(content) for content in request.contents],
        config=_config(request.config),
    )
    return recorder.model_call(asked, agent)


def _config(config: GenerateContentConfig | None) -> Json:
    """What of a config the answer depends on."""
    if config is None:
        return {}
    data: Json = config.model_dump(mode="json", exclude_none=True, exclude=set(UNASKED_CONFIG))
    return data


async def generated(model: Model, request: ModelRequest, waits: Waits, on_text: _OnText) -> ModelResponse:
    """What a model that is not Gemini gives when the run's gate lets it go; a scripted one costs nothing."""
    if isinstance(model, ScriptedModel):
        return await model.generate(request, on_text)
    return await through_gate(
        model.name,
        lambda: size_of_request(request),
        lambda: model.generate(request, on_text),
        used,
        waits,
    )


async def answer(
    exchange: ModelExchange | None, ask: Callable[[_OnText], Awaitable[ModelResponse]], on_text: _OnText
) -> ModelResponse:
    """The recorded response, its pieces of text included, or that of `ask`.

    Raises NotRecordedError, and what the model raises or raised.
    """
    if exchange is None:
        return await ask(on_text)
    exchange.check()
    if exchange.is_replayed:
        exchange.end()
        response = _response_from_json(exchange.response)
        for piece in _pieces(response, exchange.response.get("pieces", [])):
            on_text(piece)
        return response
    pieces: list[str] = []

    def hear(text: str) -> None:
        pieces.append(text)
        on_text(text)

    try:
        response = await ask(hear)
    except Exception as error:
        exchange.keep([], error)
        raise
    exchange.keep([_response_to_json(response) | _lengths(response, pieces)], None)
    return response


def _response_to_json(response: ModelResponse) -> Json:
    data: Json = {
        item.name: plain_json(value) if isinstance(value, BaseModel) else value
        for item in fields(response)
        if (value := getattr(response, item.name)) is not None
    }
    return data | {"parts": [plain_json(part) for part in response.parts]}


def _response_from_json(data: Json) -> ModelResponse:
    def read(name: str, kind: Any) -> Any:
        # Bytes are base64 in JSON only.
        return TypeAdapter(kind).validate_json(json.dumps(data[name])) if name in data else None

    return ModelResponse(
        parts=read("parts", list[Part]),
        usage=read("usage", UsageMetadata),
        grounding=read("grounding", GroundingMetadata),
        model_version=data.get("model_version"),
        finish_reason=data.get("finish_reason"),
        finish_message=data.get("finish_message"),
    )


def _lengths(response: ModelResponse, heard: Sequence[str]) -> Json:
    """In pieces of which length the text came; of an answer that began again, those of the last time."""
    text, lengths = _text(response), list[int]()
    for piece in reversed(heard):
        if not text.endswith(piece):
            return {}
        text = text.removesuffix(piece)
        lengths.insert(0, len(piece))
        if not text:
            return {"pieces": lengths}
    return {}


def _pieces(response: ModelResponse, lengths: Sequence[int]) -> list[str]:
    text = _text(response)
    return [text[start:end] for start, end in pairwise(accumulate(lengths, initial=0))]


def _text(response: ModelResponse) -> str:
    """What is meant for the user."""
    return "".join(part.text for part in response.parts if part.text and not part.thought)


async def call_tool(tool: Tool, args: Json, context: ToolContext, call_id: str) -> Json:
    """The result of a call, and its effect on the session state: recorded ones where the tool is stubbed.

    Raises NotRecordedError, and what the tool raises or raised.
    """
    recorder = current_call_recorder.get()
    exchange = recorder.tool_call(tool.name, args, call_id) if recorder else None
    if exchange is None:
        return await tool.call(args, context)
    exchange.check()
    if exchange.recorded is not None:
        context.state.update(exchange.recorded.state)
        for key in exchange.recorded.removed:
            context.state.pop(key, None)
        stubbed: Json = exchange.end()
        return stubbed
    before = copy_state(context.state)
    try:
        result = await tool.call(args, context)
    except Exception as error:
        exchange.keep(_outcome(before, context, error=error))
        raise
    exchange.keep(_outcome(before, context, result=result))
    return result


def _outcome(before: Json, context: ToolContext, **came: Any) -> ToolOutcome:
    after = copy_state(context.state)
    removed = removed_keys(before, after)
    changed = {key: value for key, value in state_delta(before, after).items() if key not in removed}
    return ToolOutcome(state=changed, removed=removed, **came)
