"""Wraps the SDK's `Model` interface, to see every model request and its response.

`get_response` and `stream_response` are wrapped on each class of model: agents that are tools, guardrails
with an agent, and runs inside of tools use them too.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from agents import FunctionTool, Handoff, ModelResponse, MultiProvider, Usage
from agents.models import get_default_model
from agents.models.interface import Model
from openai.types.responses import Response, ResponseCompletedEvent, ResponseOutputItem
from pydantic import BaseModel, TypeAdapter
from pydantic_core import to_jsonable_python

from ....core.model.events import Json
from ....core.recordings.entry import JsonRequest
from ...call_recorder import NotRecordedError, current_call_recorder
from ..calls import (
    Described,
    ModelCall,
    ResponseFormat,
    ask_model,
    is_same_request,
    wrap_methods,
)
from ..values import declaration, text_of, usage_of
from .items import arguments_of, call_id_of, contents_of, item_json, output_contents, tool_of

_OUTPUT: TypeAdapter[Any] = TypeAdapter(ResponseOutputItem)
_USAGE: TypeAdapter[Usage] = TypeAdapter(Usage)
# Settings of how a request is sent; headers may contain keys.
_TRANSPORT_SETTINGS = (
    "extra_headers",
    "extra_query",
    "metadata",
    "preserve_raw_usage",
    "retry",
    "store",
    "timeout",
)


# The run that the current task works for; its `agent` is the name of the running agent.
current_run: ContextVar[Any] = ContextVar("evaltui_agents_run", default=None)
# Gets the models that the provider's responses name while a model is asked: the SDK's response has none.
_served: ContextVar[list[str] | None] = ContextVar("evaltui_agents_served", default=None)
_VERSION = "model_version"
_ITEM_DONE = "response.output_item.done"


@functools.cache
def watch_models() -> None:
    """Wraps models, also of classes that are defined later."""
    wrap_methods(Model, {"get_response": _watched, "stream_response": _watched_stream})
    wrap_methods(Model, {"_fetch_response": _fetching})


def _fetching(fetch_response: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
    @functools.wraps(fetch_response)
    async def watched(self: Model, *args: Any, **kwargs: Any) -> Any:
        response = await fetch_response(self, *args, **kwargs)
        served, version = _served.get(), getattr(response, "model", None)
        if served is not None and isinstance(version, str):
            served.append(version)
        return response

    return watched


def _watched(get_response: Callable[..., Awaitable[ModelResponse]]) -> Callable[..., Any]:
    @functools.wraps(get_response)
    async def watched(self: Model, *args: Any, **kwargs: Any) -> ModelResponse:
        arguments = _arguments(Model.get_response, self, *args, **kwargs)
        ask = functools.partial(get_response, self, *args, **kwargs)
        if is_same_request(self, arguments.get("input")):
            return await ask()
        return await ask_model(_call(self, arguments), functools.partial(_with_version, ask), _FORM)

    return watched


async def _with_version(ask: Callable[[], Awaitable[ModelResponse]]) -> ModelResponse:
    served: list[str] = []
    token = _served.set(served)
    try:
        response = await ask()
    finally:
        _served.reset(token)
    return _as_served(response, served[-1] if served else "")


def _as_served(response: ModelResponse, version: str) -> ModelResponse:
    setattr(response, _VERSION, version)
    return response


def _call(model: Model, arguments: dict[str, Any]) -> ModelCall:
    run, name = current_run.get(), model_name(model)
    request = functools.partial(_json_request, name, arguments)
    return ModelCall(name, run.agent if run else "", request, (model, arguments.get("input")))


class _UnfinishedStreamError(Exception):
    """A stream has ended without a completed response."""


def _watched_stream(stream_response: Callable[..., AsyncIterator[Any]]) -> Callable[..., Any]:
    @functools.wraps(stream_response)
    async def watched(self: Model, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        arguments = _arguments(Model.stream_response, self, *args, **kwargs)
        if is_same_request(self, arguments.get("input")):
            async for event in stream_response(self, *args, **kwargs):
                yield event
            return
        # The events are passed on after the stream has ended: only the last one has the complete response.
        events: list[Any] = []

        async def ask() -> ModelResponse:
            events.extend([event async for event in stream_response(self, *args, **kwargs)])
            response = _streamed(events)
            # Of a model without the Responses API, the SDK names the requested one.
            named = _completed_in(events).model
            return _as_served(response, named if named != model_name(self) else "")

        try:
            response = await ask_model(_call(self, arguments), ask, _FORM)
            events = events or [_completed(model_name(self), response)]
        except _UnfinishedStreamError:
            # The reader of the stream handles its last event.
            pass
        for event in events:
            yield event

    return watched


def _arguments(method: Callable[..., Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
    """The arguments by name; `{}` where a model's method has other parameters than the SDK's interface."""
    try:
        return inspect.signature(method).bind_partial(*args, **kwargs).arguments
    except TypeError:
        return {}


def model_name(model: object) -> str:
    """The name of a model at its provider, else of its class."""
    name = model if isinstance(model, str) else getattr(model, "model", None)
    return name if isinstance(name, str) and name else type(model).__name__


def _json_request(model: str, arguments: dict[str, Any]) -> JsonRequest:
    settings = to_jsonable_python(arguments["model_settings"], fallback=text_of)
    # The SDK generates this argument for each run.
    extra = {
        key: value for key, value in (settings.get("extra_args") or {}).items() if key != "prompt_cache_key"
    }
    schema = arguments["output_schema"]
    config = {
        **{name: value for name, value in settings.items() if name not in _TRANSPORT_SETTINGS},
        "extra_args": extra or None,
        "response_json_schema": None if schema is None or schema.is_plain_text() else schema.json_schema(),
        "previous_response_id": arguments.get("previous_response_id"),
        "conversation_id": arguments.get("conversation_id"),
        "prompt": to_jsonable_python(arguments.get("prompt"), fallback=text_of),
    }
    return JsonRequest(
        model=model,
        instruction=arguments["system_instructions"] or "",
        tools=[_declaration(tool) for tool in (*arguments["tools"], *arguments["handoffs"])],
        config={name: value for name, value in config.items() if value is not None},
        contents=contents_of(arguments["input"]),
    )


def _declaration(tool: Any) -> Json:
    if isinstance(tool, FunctionTool):
        return declaration(tool.name, tool.description, tool.params_json_schema)
    if isinstance(tool, Handoff):
        return declaration(tool.tool_name, tool.tool_description, tool.input_json_schema)
    # The fields of a tool of the service are sent, such as the files that it searches.
    fields: Json = {
        name: to_jsonable_python(value, exclude_none=True, fallback=text_of)
        for name, value in getattr(tool, "__dict__", {}).items()
        if isinstance(value, str | int | float | list | dict | BaseModel)
        if not name.startswith("_") and name != "needs_approval"
    }
    if isinstance(settings := fields.get("tool_config"), dict):
        # Headers may contain keys.
        fields["tool_config"] = {
            name: value for name, value in settings.items() if name not in ("headers", "authorization")
        }
    return fields | {"name": str(getattr(tool, "name", type(tool).__name__))}


def _streamed(events: list[Any]) -> ModelResponse:
    """The response of a stream. Raises _UnfinishedStreamError where it has none."""
    response = _completed_in(events)
    output = response.output or [event.item for event in events if getattr(event, "type", "") == _ITEM_DONE]
    return ModelResponse(output=output, usage=_streamed_usage(response), response_id=response.id)


def _completed_in(events: list[Any]) -> Response:
    """The completed response of a stream. Raises _UnfinishedStreamError where it has none."""
    last = next((event for event in reversed(events) if isinstance(event, ResponseCompletedEvent)), None)
    if last is None:
        raise _UnfinishedStreamError("the model's stream ended without a completed response")
    return last.response


def _streamed_usage(response: Response) -> Usage:
    counted = response.usage
    return Usage() if counted is None else _USAGE.validate_python({"requests": 1, **dict(counted)})


def _completed(model: str, response: ModelResponse) -> ResponseCompletedEvent:
    """The only event of a replayed stream."""
    usage = response.usage
    names = ("input_tokens", "output_tokens", "total_tokens", "input_tokens_details", "output_tokens_details")
    counted = {name: getattr(usage, name) for name in names}
    whole = Response.model_validate(
        {
            "id": response.response_id or "",
            "object": "response",
            "created_at": 0,
            "model": model,
            "output": response.output,
            "usage": counted if usage.requests else None,
            "tools": [],
            "tool_choice": "auto",
            "parallel_tool_calls": True,
        }
    )
    return ResponseCompletedEvent(type="response.completed", sequence_number=0, response=whole)


class RecordedProvider(MultiProvider):  # type: ignore[misc]
    """Finds models by name as the SDK does; a replay creates none, so it needs no key."""

    def get_model(self, model_name: str | None) -> Any:
        recorder = current_call_recorder.get()
        if recorder is None or recorder.modes.models != "replay":
            return super().get_model(model_name)
        name = model_name or get_default_model()
        for prefix in ("openai/", "litellm/", "any-llm/"):
            name = name.removeprefix(prefix)
        return _RecordedModel(name)


class _RecordedModel(Model):  # type: ignore[misc]
    """A model of a replay, which is never asked."""

    def __init__(self, name: str) -> None:
        self.model = name

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        raise NotRecordedError("a model of a replay was asked")

    stream_response = get_response


def _write(response: ModelResponse) -> Json:
    items = output_of(response)
    return {
        # The recorder numbers the ids of the calls in it; when read, the items get their ids from it.
        "content": {"role": "model", "parts": [_call_part(item) for item in items if "call_id" in item]},
        "output": [item | {"call_id": ""} if "call_id" in item else item for item in items],
        "usage": _USAGE.dump_python(response.usage, mode="json"),
        "response_id": response.response_id,
        **_version_of(response),
    }


def _version_of(response: ModelResponse) -> Json:
    version = getattr(response, _VERSION, "")
    return {_VERSION: version} if version else {}


def _call_part(item: Json) -> Json:
    args = arguments_of(item["arguments"]) if "arguments" in item else {}
    return {"function_call": {"id": call_id_of(item), "name": tool_of(item), "args": args}}


def _read(data: Json) -> ModelResponse:
    ids = iter([part["function_call"]["id"] for part in data["content"]["parts"]])
    items = [item | {"call_id": next(ids)} if "call_id" in item else item for item in data["output"]]
    response = ModelResponse(
        output=[_OUTPUT.validate_python(item) for item in items],
        usage=_USAGE.validate_python(data["usage"]),
        response_id=data["response_id"],
    )
    return _as_served(response, data.get(_VERSION, ""))


def _describe(response: ModelResponse) -> Described:
    parts = [part for content in output_contents(output_of(response)) for part in content["parts"]]
    return Described({"role": "model", "parts": parts}, tokens_of(response), _version_of(response))


def output_of(response: ModelResponse) -> list[Json]:
    return [item_json(item) for item in response.output]


def tokens_of(response: ModelResponse) -> Json | None:
    usage = response.usage
    return usage_of(
        prompt=usage.input_tokens,
        output=usage.output_tokens,
        cached=usage.input_tokens_details.cached_tokens,
        thoughts=usage.output_tokens_details.reasoning_tokens,
    )


_FORM = ResponseFormat(write=_write, read=_read, describe=_describe)
