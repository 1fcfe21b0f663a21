"""Reports, records or replays, gates, times and stubs the model and tool calls of agents.

Adapters wrap the functions by which their framework calls models and tools (`wrap_methods`), and pass each
call to `ask_model` or `model_responses`, and to `call_tool`. Contents and results are genai's as JSON.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from ...core.model.events import SCRIPTED_PREFIX, Json, Kind
from ...core.recordings.entry import JsonRequest, ToolCall
from ...text.values import common_length
from ..call_recorder import (
    ModelExchange,
    NotRecordedError,
    ToolExchange,
    ToolOutcome,
    current_call_recorder,
)
from ..errors import error_from_json, message_of
from ..model_gate import Waits, size_of, through_gate
from .base import Reporter, current_reporter, nested_in, removed_keys, state_delta

Response = TypeVar("Response")
Wrapper = Callable[[Any], Any]


def wrap_methods(base: Any, wrappers: Mapping[str, Wrapper], only_below: Collection[str] = ()) -> None:
    """Wraps methods of a class and of all its subclasses, also those that are defined later.

    The methods in `only_below` are not wrapped in the class itself.
    """

    def wrap(cls: type) -> None:
        for name, wrapper in wrappers.items():
            method = None if cls is base and name in only_below else vars(cls).get(name)
            if inspect.isfunction(method) and not hasattr(method, "is_wrapped"):
                wrapped = wrapper(method)
                wrapped.is_wrapped = True
                setattr(cls, name, wrapped)

    for cls in {base, *_subclasses(base)}:
        wrap(cls)
    inherited = vars(base).get("__init_subclass__")

    def wrap_when_defined(cls: type, /, **kwargs: Any) -> None:
        if inherited is None:
            super(base, cls).__init_subclass__(**kwargs)
        else:
            inherited.__func__(cls, **kwargs)
        wrap(cls)

    base.__init_subclass__ = classmethod(wrap_when_defined)


def _subclasses(base: type[Any]) -> Iterator[type[Any]]:
    for subclass in base.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


# The model and the request of the model call that is running: a subclass calls its parent's method, and a
# model may pass a request on to another model; these are parts of one call.
running_request: ContextVar[tuple[object, object] | None] = ContextVar("evaltui_asking", default=None)


def is_same_request(model: object, request: object) -> bool:
    """Whether a request is part of the running one: of the same model, or the same request object."""
    outer = running_request.get()
    return outer is not None and (outer[0] is model or (request is not None and outer[1] is request))


@dataclass(frozen=True)
class Described:
    """The content of the event of a model's response."""

    content: Json | None = None
    """A genai Content as JSON."""
    usage: Json | None = None
    """The token counts, see `usage_of`."""
    data: Json = field(default_factory=dict)
    """`model_version` and `finish_reason`, where they are known."""
    is_partial: bool = False
    """Whether it is a piece of a response that also follows as a whole."""


@dataclass(frozen=True)
class ResponseFormat(Generic[Response]):
    """Converts a framework's responses for recordings and events."""

    write: Callable[[Response], Json]
    """Converts a response to JSON for a recording. If it has `content` with function calls, the recorder
    numbers their ids."""
    read: Callable[[Json], Response]
    describe: Callable[[Response], Described]


@dataclass(frozen=True)
class ModelCall:
    """A request to a model."""

    model: str
    """The name of the model."""
    agent: str
    request: Callable[[], JsonRequest]
    """Returns the request as JSON; if it raises, the request is neither recorded nor shown in full."""
    objects: tuple[object, object]
    """The model and the request as objects of the framework, see `running_request`."""
    waits: Waits = field(default_factory=Waits)
    is_gated: bool = True
    is_recorded: bool = True
    reports_errors: bool = True
    id: str = ""
    """The id of its event; a new one where it is empty."""
    data: Json = field(default_factory=dict)
    """Further data of the event of the request."""


async def ask_model(
    call: ModelCall, ask: Callable[[], Awaitable[Response]], form: ResponseFormat[Response]
) -> Response:
    """Returns the response of `ask`, or the recorded one; see `model_responses`."""

    async def ask_once() -> list[Response]:
        return [await ask()]

    responses = await model_responses(call, ask_once, form)
    if not responses:
        raise NotRecordedError("the recorded model call has no response; use --record record")
    return responses[0]


async def model_responses(
    call: ModelCall, ask: Callable[[], Awaitable[list[Response]]], form: ResponseFormat[Response]
) -> list[Response]:
    """Returns the responses of a model or the recorded ones, which may be pieces, and reports them with their
    request.

    Raises NotRecordedError, and any error of the model, also a recorded one.
    """
    reporter = current_reporter.get()
    if reporter is None:
        return await ask()
    request = _json_request(call)
    exchange = _exchange(call, request)
    data = _request_data(reporter, call, request) | exchange.mark
    request_id = reporter.event("model_request", agent=call.agent, data=data, id=call.id)
    if not call.model.startswith(SCRIPTED_PREFIX):
        for count in _counts_of_tools.get():
            count.models += 1
    started = time.perf_counter()

    def report(kind: Kind, data: Json, content: Json | None, usage: Json | None) -> None:
        reporter.event(
            kind,
            content,
            agent=call.agent,
            data=data | exchange.mark | call.waits.mark,
            usage=usage,
            duration=time.perf_counter() - started - call.waits.seconds,
            parent=request_id,
        )

    token = running_request.set(call.objects)
    try:
        responses = await _exchanged(exchange, call, request, ask, form)
    except Exception as error:
        if call.reports_errors:
            usages = getattr(error, "usages", ())
            data = {"type": type(error).__name__, "message": message_of(error)}
            report("error", data, None, usages[-1] if usages else None)
        raise
    finally:
        running_request.reset(token)
    described = list(map(form.describe, responses))
    for number, response in enumerate(described, 1):
        if not response.is_partial or number == len(described):
            report("model_response", response.data, response.content, response.usage)
    return responses


def _json_request(call: ModelCall) -> JsonRequest | Exception:
    try:
        return call.request()
    except Exception as error:
        # Users' objects may raise anything when they are read; that must not end the user's run.
        return error


def _exchange(call: ModelCall, request: JsonRequest | Exception) -> ModelExchange:
    """The exchange of the recorder for a request; one without a recording where there is no recorder."""
    recorder = current_call_recorder.get()
    if recorder is None or recorder.modes.models == "off" or not call.is_recorded:
        return ModelExchange()
    if isinstance(request, Exception):
        return recorder.unrecordable(f"a request to model {call.model}", request)
    return recorder.model_call(request, call.agent)


async def _exchanged(
    exchange: ModelExchange,
    call: ModelCall,
    request: JsonRequest | Exception,
    ask: Callable[[], Awaitable[list[Response]]],
    form: ResponseFormat[Response],
) -> list[Response]:
    """The recorded responses, or the responses of the model, which are recorded."""
    exchange.check()
    if exchange.is_replayed:
        exchange.end()
        return list(map(form.read, exchange.responses))

    def usage(responses: list[Response]) -> Json | None:
        usages = [form.describe(response).usage for response in responses]
        return next(filter(None, reversed(usages)), None)

    try:
        if call.is_gated:
            responses = await through_gate(call.model, lambda: _size(request), ask, usage, call.waits)
        else:
            responses = await ask()
        versions = (form.describe(response).data.get("model_version") for response in reversed(responses))
        version = next((str(name) for name in versions if name), "")
        exchange.keep(list(map(form.write, responses)), None, version)
    except Exception as error:
        exchange.keep([], error, "")
        raise
    return responses


def _size(request: JsonRequest | Exception) -> int:
    if isinstance(request, Exception):
        return 0
    return size_of([request.instruction, list(request.tools), list(request.contents)])


def _request_data(reporter: Reporter, call: ModelCall, request: JsonRequest | Exception) -> Json:
    if isinstance(request, Exception):
        return {"model": call.model, "unrecorded": f"{type(request).__name__}: {message_of(request)}"}
    same = common_length(reporter.sent.get(call.agent, ()), request.contents)
    reporter.sent[call.agent] = request.contents
    data: Json = {
        "model": call.model,
        **call.data,
        "system_instruction": request.instruction,
        "tools": list(request.tools),
        "config": request.config,
        "contents_before": same,
        "contents": list(request.contents[same:]),
    }
    return {key: value for key, value in data.items() if value not in ("", [], {}) or key == "contents"}


@dataclass(frozen=True)
class ToolForm:
    """Converts a framework's tool calls for recordings."""

    write: Callable[[Any], ToolOutcome] = ToolOutcome
    """Converts a result to its recorded outcome, without the changes of state."""
    read: Callable[[ToolCall], Any] = lambda recorded: recorded.result
    """Converts a recorded result, or a stub's response, to the framework's result."""
    state: Callable[[], Json] = dict
    """Returns a copy of the state that the call may change."""
    apply: Callable[[Json, Sequence[str]], None] = lambda changed, removed: None
    """Applies the changed and removed keys of a recorded call to the state."""
    has_own_state: bool = False
    """Whether `state` has the changes of this call alone, not also those of calls beside it."""
    is_recorded: bool = True
    """If false, a call is neither recorded nor stubbed unless the config names the tool: it is a part of the
    agent, whose own calls are recorded."""


@dataclass
class _CallCount:
    """Number of model calls inside a tool call."""

    models: int = 0


# The counts of the running tool calls, from the outermost.
_counts_of_tools: ContextVar[tuple[_CallCount, ...]] = ContextVar("evaltui_tool_models", default=())
# The key of the running tool call: a subclass calls its parent's method, which is the same call.
_running_call: ContextVar[object] = ContextVar("evaltui_calling", default=None)


async def call_tool(
    key: object,
    name: str,
    args: Callable[[], Json],
    call_id: str,
    call: Callable[[], Awaitable[Any]],
    form: ToolForm,
) -> Any:
    """Returns the result of `call`, or the recorded one where the tool is stubbed. `key` identifies the call.

    Events inside the call are nested in it; its reporter gets its duration. Raises NotRecordedError, and any
    error of the tool, also a recorded one.
    """
    reporter, recorder = current_reporter.get(), current_call_recorder.get()
    if reporter is None or _running_call.get() == key:
        return await call()
    if recorder is not None and not form.is_recorded and name not in recorder.modes.by_tool:
        recorder = None
    exchange = recorder.tool_call(name, args(), nested=nested_in.get() is not None) if recorder else None
    tokens = nested_in.set(call_id or nested_in.get()), _running_call.set(key), running_request.set(None)
    started = time.perf_counter()
    try:
        if exchange is None:
            return await call()
        exchange.check()
        if exchange.recorded is None:
            return await _recorded_call(exchange, call, form)
        reporter.stubbed[call_id] = {"stubbed": exchange.source}
        if exchange.recorded.models:
            reporter.stubbed[call_id]["stubbed_models"] = exchange.recorded.models
        if recorder is not None:
            form.apply(*recorder.side_by_side.changes(exchange.recorded))
        return _replayed_result(exchange.recorded, form)
    except asyncio.CancelledError as error:
        reporter.cancelled.append(error)
        raise
    finally:
        reporter.seconds[call_id] = time.perf_counter() - started
        nested_in.reset(tokens[0])
        _running_call.reset(tokens[1])
        running_request.reset(tokens[2])


def _replayed_result(recorded: ToolCall, form: ToolForm) -> Any:
    result = form.read(recorded)
    if recorded.error is not None:
        raise error_from_json(recorded.error)
    return result


async def _recorded_call(exchange: ToolExchange, call: Callable[[], Awaitable[Any]], form: ToolForm) -> Any:
    before, count = form.state(), _CallCount()

    def keep(outcome: ToolOutcome) -> None:
        after = form.state()
        # What another call has set meanwhile, and this one has set back, is a change, too.
        earlier = (before, before if form.has_own_state else exchange.state_before_end(after))
        removed = tuple(dict.fromkeys(key for state in earlier for key in removed_keys(state, after)))
        delta = {key: value for state in earlier for key, value in state_delta(state, after).items()}
        changed = {key: value for key, value in delta.items() if key not in removed}
        exchange.keep(replace(outcome, state=changed, removed=removed, models=count.models))

    token = _counts_of_tools.set((*_counts_of_tools.get(), count))
    try:
        result = await call()
    except Exception as error:
        keep(ToolOutcome(error=error))
        raise
    finally:
        _counts_of_tools.reset(token)
    keep(form.write(result))
    # Later calls may change what this one returned; what the model is sent is what was recorded.
    return copied(result)


def copied(value: Any) -> Any:
    """A deep copy; of a value that cannot be copied, the value itself."""
    try:
        return copy.deepcopy(value)
    except Exception:
        return value
