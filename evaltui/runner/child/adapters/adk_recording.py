"""Requests of an ADK agent's models as JSON data, and their answers through the call recorder of the case.

Live connections (`connect`) are neither recorded nor replayed.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, get_args

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from evaltui.core.model.events import Json
from evaltui.core.recordings.request import UNASKED_CONFIG, Asked
from evaltui.runner.call_recorder import ModelExchange, current_call_recorder

_Ask = Callable[[], AsyncIterator[LlmResponse]]


def config_of(request: LlmRequest) -> Json:
    """The config as JSON data; without headers, in which there may be keys."""
    config: Json = request.config.model_dump(
        mode="json", exclude_none=True, exclude={"http_options"}, fallback=_described, warnings=False
    )
    return config


def written(model: BaseModel) -> Json:
    """A genai model as JSON data, whatever users have put into it."""
    data: Json = model.model_dump(mode="json", exclude_none=True, fallback=_described, warnings=False)
    return data


def _described(value: Any) -> Any:
    if isinstance(value, type) and issubclass(value, BaseModel):
        return value.model_json_schema()
    return getattr(value, "__name__", f"<{type(value).__name__}>")


def declarations(tools: list[Any]) -> list[Any]:
    """Function declarations one by one; tools of the model itself, such as its search, as they are."""
    declared: list[Any] = []
    for tool in tools:
        functions = tool.get("function_declarations") if isinstance(tool, dict) else None
        declared += functions or [tool]
    return declared


def model_exchange(model: BaseLlm, request: LlmRequest, streamed: bool, agent: str) -> ModelExchange | None:
    """What is to be done about a request; None where the model is simply asked."""
    recorder = current_call_recorder.get()
    if recorder is None or recorder.modes.models == "off":
        return None
    name = request.model or model.model
    try:
        config = config_of(request)
        asked = Asked(
            model=name,
            instruction=config.pop("system_instruction", ""),
            tools=declarations(config.pop("tools", [])),
            config={key: value for key, value in config.items() if key not in UNASKED_CONFIG}
            | ({"stream": True} if streamed else {}),
            contents=[written(content) for content in request.contents],
        )
    except Exception as error:
        # Users' objects may fail in any way when looked at, and looking must not end the user's run.
        return recorder.unrecordable(f"a request to model {name}", error)
    return recorder.model_call(asked, agent)


async def answers(exchange: ModelExchange | None, ask: _Ask) -> AsyncGenerator[LlmResponse, None]:
    """The recorded responses, chunk by chunk, or those that the model gives.

    Raises NotRecordedError, and what the model raises or raised.
    """
    if exchange is not None:
        exchange.check()
    if exchange is not None and exchange.is_replayed:
        for data in exchange.responses:
            yield _response_from_json(data)
        exchange.end()
        return
    heard: list[Json] = []
    responses = aiter(ask())
    try:
        async for response in responses:
            if exchange is not None:
                heard.append(_response_to_json(response))
            yield response
    except GeneratorExit:
        # Who has the whole answer may stop listening before the model has said that there is no more.
        if exchange is not None and heard and not heard[-1].get("partial"):
            exchange.keep(heard, None)
        raise
    except Exception as error:
        if exchange is not None:
            exchange.keep(heard, error)
        raise
    else:
        if exchange is not None:
            exchange.keep(heard, None)
    finally:
        if isinstance(responses, AsyncGenerator):
            await responses.aclose()


def _response_to_json(response: LlmResponse) -> Json:
    # Field by field: bytes are written as the outermost model has it, and only genai's are written as base64.
    return {
        name: written(value)
        if isinstance(value, BaseModel)
        else to_jsonable_python(value, fallback=_described)
        for name, value in response
        if value is not None
    }


def _response_from_json(data: Json) -> LlmResponse:
    """Raises pydantic's error for fields of another version of ADK."""
    return LlmResponse(**{name: _field(name, value) for name, value in data.items()})


def _field(name: str, value: Any) -> Any:
    field = LlmResponse.model_fields.get(name)
    for kind in get_args(field.annotation) if field else ():
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind.model_validate_json(json.dumps(value))
    return value
