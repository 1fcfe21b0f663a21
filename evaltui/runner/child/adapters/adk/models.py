"""Every request to a model and its response, seen at the model itself.

`generate_content_async` is wrapped on each class of model, not through callbacks: there, the agent's own
callbacks have already had their say, and models that tools call directly are seen too. Live connections
(`connect`) are not.
"""

from __future__ import annotations

import functools
import inspect
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any, get_args
from weakref import WeakKeyDictionary

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from .....core.model.events import Json
from .....core.recordings.entry import UNASKED_CONFIG, JsonRequest
from ....call_recorder import ModelExchange, current_call_recorder
from ....errors import message_of
from ....model_gate import Waits, gate_for, size_of
from ..base import Reporter, current_reporter, plain_json
from .gated import gated_responses

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
        asked = JsonRequest(
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


async def _exchanged(exchange: ModelExchange, ask: _Ask) -> AsyncGenerator[LlmResponse, None]:
    """The recorded responses, chunk by chunk, or those that the model gives, which are recorded.

    Raises NotRecordedError, and what the model raises or raised.
    """
    exchange.check()
    if exchange.is_replayed:
        for data in exchange.responses:
            yield _response_from_json(data)
        exchange.end()
        return
    heard: list[Json] = []
    responses = aiter(ask())
    try:
        async for response in responses:
            heard.append(_response_to_json(response))
            yield response
    except GeneratorExit:
        # Who has the whole answer may stop listening before the model has said that there is no more.
        if heard and not heard[-1].get("partial"):
            exchange.keep(heard, None)
        raise
    except Exception as error:
        exchange.keep(heard, error)
        raise
    else:
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


_METHOD = "generate_content_async"
# ADK 2.13 labels each request with the agent that makes it.
_AGENT_LABEL = "adk_agent_name"

_Generate = Callable[..., AsyncIterator[LlmResponse]]

# The model and request of the call that is running: a subclass calls its parent's method, and a model may
# hand the same request on to another; both are one request.
_running: ContextVar[tuple[BaseLlm, LlmRequest] | None] = ContextVar("evaltui_model_call", default=None)
# The contents last sent, by agent: a request repeats the whole history, the log should not.
_sent: WeakKeyDictionary[Reporter, dict[str, list[types.Content]]] = WeakKeyDictionary()


@functools.cache
def watch_models() -> None:
    """From now on, what any model is asked and answers is reported; classes defined later included."""
    base: Any = BaseLlm
    for model in set(_subclasses(base)):
        _wrap(model)
    inherited = base.__pydantic_init_subclass__.__func__

    def wrap_when_defined(cls: type, /, **kwargs: Any) -> None:
        inherited(cls, **kwargs)
        _wrap(cls)

    base.__pydantic_init_subclass__ = classmethod(wrap_when_defined)


def _subclasses(model: type[Any]) -> Iterator[type[Any]]:
    for subclass in model.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _wrap(model: type) -> None:
    generate = vars(model).get(_METHOD)
    if inspect.isfunction(generate):
        setattr(model, _METHOD, _watched(generate))


def _watched(generate: _Generate) -> _Generate:
    @functools.wraps(generate)
    def watched(self: BaseLlm, *args: Any, **kwargs: Any) -> AsyncIterator[LlmResponse]:
        reporter, outer = current_reporter.get(), _running.get()
        request = args[0] if args else kwargs.get("llm_request")
        if reporter is None or not isinstance(request, LlmRequest):
            return generate(self, *args, **kwargs)
        if outer is not None and (outer[0] is self or outer[1] is request):
            return generate(self, *args, **kwargs)
        streamed = bool(args[1] if len(args) > 1 else kwargs.get("stream"))
        return _reporting(partial(generate, self, *args, **kwargs), self, request, streamed, reporter)

    return watched


async def _reporting(
    ask: Callable[[], AsyncIterator[LlmResponse]],
    model: BaseLlm,
    request: LlmRequest,
    streamed: bool,
    reporter: Reporter,
) -> AsyncGenerator[LlmResponse, None]:
    agent = ((request.config and request.config.labels) or {}).get(_AGENT_LABEL, "")
    exchange = model_exchange(model, request, streamed, agent)
    mark = exchange.mark if exchange else {}
    request_id = reporter.event(
        "model_request", agent=agent, data=_request_data(reporter, agent, model, request) | mark
    )
    responses: AsyncIterator[LlmResponse] | None = None
    waits = Waits()
    name = request.model or model.model
    if (gate := gate_for(name)) is not None:
        ask = partial(gated_responses, gate, name, _size(request), ask, waits)
    spent = 0.0
    chunk: LlmResponse | None = None
    try:
        while True:
            started = time.perf_counter()
            # Only while the model works: between two responses, other code runs in this context.
            token = _running.set((model, request))
            try:
                if responses is None:
                    responses = aiter(ask()) if exchange is None else _exchanged(exchange, ask)
                response = await anext(responses)
            except StopAsyncIteration:
                break
            except Exception as error:
                reporter.event(
                    "error",
                    agent=agent,
                    data={"type": type(error).__name__, "message": message_of(error), **mark, **waits.mark},
                    duration=spent + time.perf_counter() - started - waits.seconds,
                    parent=request_id,
                )
                raise
            finally:
                _running.reset(token)
            spent += time.perf_counter() - started
            chunk = response if response.partial else None
            if chunk is None:
                _report_response(
                    reporter, agent, response, request_id, spent - waits.seconds, mark | waits.mark
                )
            yield response
        if chunk is not None:
            _report_response(reporter, agent, chunk, request_id, spent - waits.seconds, mark | waits.mark)
    finally:
        if isinstance(responses, AsyncGenerator):
            await responses.aclose()


def _request_data(reporter: Reporter, agent: str, model: BaseLlm, request: LlmRequest) -> Json:
    data: Json = {"model": request.model or model.model}
    try:
        config = config_of(request)
        before, added = _since_last(reporter, agent, request.contents)
        data |= {
            "system_instruction": config.pop("system_instruction", None),
            "tools": declarations(config.pop("tools", [])),
            "config": config,
            "contents_before": before,
            "contents": [written(content) for content in added],
        }
    except Exception as error:
        # Users' objects may fail in any way when looked at, and looking must not end the user's run.
        data["unrecorded"] = f"{type(error).__name__}: {message_of(error)}"
    return {key: value for key, value in data.items() if value not in (None, [], {}) or key == "contents"}


def _size(request: LlmRequest) -> int:
    try:
        return size_of([config_of(request), *map(written, request.contents)])
    except Exception:
        # Users' objects may fail in any way when looked at, and looking must not end the user's run.
        return 0


def _since_last(
    reporter: Reporter, agent: str, contents: list[types.Content]
) -> tuple[int, list[types.Content]]:
    """How many contents are those of the agent's request before, and the rest."""
    sent = _sent.setdefault(reporter, {})
    same = 0
    for earlier, now in zip(sent.get(agent, []), contents, strict=False):
        if earlier != now:
            break
        same += 1
    sent[agent] = list(contents)
    return same, contents[same:]


def _report_response(
    reporter: Reporter,
    agent: str,
    response: LlmResponse,
    request_id: str,
    spent: float,
    mark: Json,
) -> None:
    data = {
        "model_version": response.model_version,
        "finish_reason": response.finish_reason and response.finish_reason.name,
        "error_code": response.error_code,
        "error_message": response.error_message,
    }
    reporter.event(
        "model_response",
        written(response.content) if response.content else None,
        agent=agent,
        data={key: value for key, value in data.items() if value is not None} | mark,
        usage=plain_json(response.usage_metadata) if response.usage_metadata else None,
        duration=spent,
        parent=request_id,
    )
