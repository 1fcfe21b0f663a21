"""Reports, records or replays, gates, times and stubs the model and tool calls of agents.

Adapters wrap the functions by which their framework calls models and tools (`wrap_methods`), and pass each
call to `ask_model` or `model_responses`, and to `call_tool`. Contents and results are genai's as JSON.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from pydantic_core import to_jsonable_python

from ...core.model.events import Json, Kind, is_output, output_content
from ...core.recordings.entry import JsonRequest, ToolCall
from ..call_recorder import ModelExchange, NotRecordedError, ToolOutcome, current_call_recorder
from ..errors import error_from_json, message_of
from ..model_gate import Waits, gated, size_of
from .base import Reporter, cancelled_calls, current_reporter, nested_in, removed_keys, state_delta

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


def usage_of(*, prompt: int, output: int, cached: int = 0, thoughts: int = 0) -> Json | None:
    """Tokens as genai's usage metadata; `output` includes `thoughts`. None where nothing was counted."""
    if not prompt and not output:
        return None
    counts = {
        "prompt_token_count": prompt,
        "candidates_token_count": output - thoughts,
        "total_token_count": prompt + output,
    }
    details = {"cached_content_token_count": cached, "thoughts_token_count": thoughts}
    return counts | {name: count for name, count in details.items() if count}


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


async def ask_model(
    call: ModelCall, ask: Callable[[], Awaitable[Response]], form: ResponseFormat[Response]
) -> Response:
    """Returns the response of `ask`, or the recorded one; see `model_responses`."""

    async def once() -> AsyncIterator[Response]:
        yield await ask()

    responses = [response async for response in model_responses(call, once, form)]
    if not responses:
        raise NotRecordedError("the recorded model call has no response; use --record record")
    return responses[0]


async def model_responses(
    call: ModelCall, ask: Callable[[], AsyncIterator[Response]], form: ResponseFormat[Response]
) -> AsyncGenerator[Response]:
    """Yields the responses of a model or the recorded ones, which may be pieces, and reports them with their
    request.

    Raises NotRecordedError, and any error of the model, also a recorded one.
    """
    reporter = current_reporter.get()
    if reporter is None:
        async for response in ask():
            yield response
        return
    request = _json_request(call)
    exchange = _exchange(call, request)
    report = _CallReport(reporter, call, request, exchange.mark if exchange else {})
    responses = _exchanged(exchange, call, request, ask, form)
    piece: Described | None = None
    async with aclosing(responses):
        while True:
            # Only while the model works: between two responses, other code runs in this context.
            token = running_request.set(call.objects)
            try:
                with report.timed():
                    response = await anext(responses)
            except StopAsyncIteration:
                break
            except Exception as error:
                report.failure(error)
                raise
            finally:
                running_request.reset(token)
            described = form.describe(response)
            piece = described if described.is_partial else None
            if piece is None:
                report.response(described)
            yield response
        if piece is not None:
            report.response(piece)


class _CallReport:
    """Reports a model request, and its response or error."""

    def __init__(
        self, reporter: Reporter, call: ModelCall, request: JsonRequest | Exception, mark: Json
    ) -> None:
        self._reporter = reporter
        self._call = call
        self._mark = mark
        self._spent = 0.0
        data = _request_data(reporter, call, request) | mark
        self._request_id = reporter.event("model_request", agent=call.agent, data=data, id=call.id)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Measures the time in which the model works."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._spent += time.perf_counter() - started

    def response(self, described: Described) -> None:
        self._event("model_response", described.data, described.content, described.usage)

    def failure(self, error: Exception) -> None:
        if self._call.reports_errors:
            self._event("error", {"type": type(error).__name__, "message": message_of(error)})

    def _event(self, kind: Kind, data: Json, content: Json | None = None, usage: Json | None = None) -> None:
        waits = self._call.waits
        self._reporter.event(
            kind,
            content,
            agent=self._call.agent,
            data=data | self._mark | waits.mark,
            usage=usage,
            duration=self._spent - waits.seconds,
            parent=self._request_id,
        )


def _json_request(call: ModelCall) -> JsonRequest | Exception:
    try:
        return call.request()
    except Exception as error:
        # Users' objects may raise anything when they are read; that must not end the user's run.
        return error


def _exchange(call: ModelCall, request: JsonRequest | Exception) -> ModelExchange | None:
    """The exchange of the recorder for a request; None where models are neither recorded nor replayed."""
    recorder = current_call_recorder.get()
    if recorder is None or recorder.modes.models == "off" or not call.is_recorded:
        return None
    if isinstance(request, Exception):
        return recorder.unrecordable(f"a request to model {call.model}", request)
    return recorder.model_call(request, call.agent)


async def _exchanged(
    exchange: ModelExchange | None,
    call: ModelCall,
    request: JsonRequest | Exception,
    ask: Callable[[], AsyncIterator[Response]],
    form: ResponseFormat[Response],
) -> AsyncGenerator[Response]:
    """The recorded responses, or the responses of the model, which are recorded."""
    exchange = exchange or ModelExchange()
    exchange.check()
    if exchange.is_replayed:
        for data in exchange.responses:
            yield form.read(data)
        exchange.end()
        return
    responses: list[Json] = []
    is_partial = False
    live = gated(
        call.model if call.is_gated else None,
        lambda: _size(request),
        ask,
        lambda response: form.describe(response).usage,
        call.waits,
    )
    try:
        async with aclosing(live):
            async for response in live:
                responses.append(form.write(response))
                is_partial = form.describe(response).is_partial
                yield response
    except GeneratorExit:
        # The reader may stop after the last response, before the stream has ended.
        if responses and not is_partial:
            exchange.keep(responses, None)
        raise
    except Exception as error:
        exchange.keep(responses, error)
        raise
    exchange.keep(responses, None)


def _size(request: JsonRequest | Exception) -> int:
    if isinstance(request, Exception):
        return 0
    return size_of([request.instruction, list(request.tools), list(request.contents)])


# The contents of the last request by agent: a request repeats the whole history, its event does not.
_sent: WeakKeyDictionary[Reporter, dict[str, Sequence[Json]]] = WeakKeyDictionary()


def _request_data(reporter: Reporter, call: ModelCall, request: JsonRequest | Exception) -> Json:
    if isinstance(request, Exception):
        return {"model": call.model, "unrecorded": f"{type(request).__name__}: {message_of(request)}"}
    sent = _sent.setdefault(reporter, {})
    same = 0
    for earlier, now in zip(sent.get(call.agent, ()), request.contents, strict=False):
        if earlier != now:
            break
        same += 1
    sent[call.agent] = request.contents
    data: Json = {
        "model": call.model,
        "system_instruction": request.instruction,
        "tools": list(request.tools),
        "config": request.config,
        "contents_before": same,
        "contents": list(request.contents[same:]),
    }
    return {key: value for key, value in data.items() if value not in ("", [], {}) or key == "contents"}


def declaration(name: str, description: str | None, schema: Json | None) -> Json:
    """The declaration of a tool in a request."""
    return {"name": name, "description": description or "", "parameters_json_schema": schema}


def response_of(result: Any) -> Json:
    """The `response` of a function response for a tool's result: an object as it is, another value as
    `{"result": …}`. Values that JSON cannot hold become text. `result_of` is the reverse."""
    plain = to_jsonable_python(result, bytes_mode="base64", fallback=str)
    return plain if isinstance(plain, dict) and plain.keys() != {"result"} else {"result": plain}


def result_of(response: Any) -> Any:
    """The result of a tool, from a `response` that `response_of` returned."""
    if isinstance(response, dict) and response.keys() == {"result"}:
        return response["result"]
    return response


def output_fields(value: Any, text: str = "") -> Json | None:
    """The fields of a step that responds with a value; None without a value, or where it equals the `text`
    already said."""
    output = to_jsonable_python(value, bytes_mode="base64", fallback=str)
    if output in (None, "") or is_output(text, output):
        return None
    return {"content": output_content(output), "final": True, "output": output, "answers": True}


class ToolState(Protocol):
    """The state that tools change."""

    def state(self) -> Json:
        """A copy of the current state."""
        ...

    def apply(self, changed: Json, removed: Iterable[str]) -> None:
        """Applies the changes of a recorded call."""
        ...


class _OutcomeOf(Protocol):
    """Converts the result or error of a call to its recorded outcome, without the state."""

    def __call__(self, *, result: Any = None, error: Exception | None = None) -> ToolOutcome: ...


def plain_outcome(*, result: Any = None, error: Exception | None = None) -> ToolOutcome:
    """The recorded outcome of a call whose result is already a response."""
    return ToolOutcome(result, error)


@dataclass(frozen=True)
class ToolForm:
    """Converts a framework's tool calls for recordings."""

    write: _OutcomeOf = plain_outcome
    read: Callable[[ToolCall], Any] = lambda recorded: recorded.result
    """Converts a recorded result, or a stub's response, to the framework's result."""
    tool_state: ToolState | None = None
    """The state that the call may change; None without such state."""
    is_recorded: bool = True
    """If false, a call is neither recorded nor stubbed unless the config names the tool: it is a part of the
    agent, whose own calls are recorded."""


# The key of the running tool call: a subclass calls its parent's method, which is the same call.
_running_call: ContextVar[object] = ContextVar("evaltui_calling", default=None)


async def call_tool(
    key: object,
    name: str,
    args: Callable[[], Json],
    call_id: str,
    call: Callable[[], Awaitable[Any]],
    form: ToolForm,
    seconds: MutableMapping[str, float],
) -> Any:
    """Returns the result of `call`, or the recorded one where the tool is stubbed. `key` identifies the call.

    Events inside the call are nested in it; its duration is put into `seconds` by its id. Raises
    NotRecordedError, and any error of the tool, also a recorded one.
    """
    if _running_call.get() == key:
        return await call()
    recorder = current_call_recorder.get()
    if recorder is not None and not form.is_recorded and name not in recorder.modes.by_tool:
        recorder = None
    exchange = recorder.tool_call(name, args(), call_id) if recorder else None
    tokens = nested_in.set(call_id or nested_in.get()), _running_call.set(key), running_request.set(None)
    started = time.perf_counter()
    try:
        if exchange is None:
            return await call()
        exchange.check()
        if exchange.recorded is None:
            return await _recorded_call(exchange.keep, call, form)
        if form.tool_state is not None:
            form.tool_state.apply(exchange.recorded.state, exchange.recorded.removed)
        result = form.read(exchange.recorded)
        if exchange.recorded.error is not None:
            raise error_from_json(exchange.recorded.error)
        return result
    except asyncio.CancelledError as error:
        if (inside := cancelled_calls.get()) is not None:
            inside.append(error)
        raise
    finally:
        seconds[call_id] = time.perf_counter() - started
        nested_in.reset(tokens[0])
        _running_call.reset(tokens[1])
        running_request.reset(tokens[2])


async def _recorded_call(
    record: Callable[[ToolOutcome], None], call: Callable[[], Awaitable[Any]], form: ToolForm
) -> Any:
    before = form.tool_state.state() if form.tool_state else {}

    def with_changes(outcome: ToolOutcome) -> ToolOutcome:
        after = form.tool_state.state() if form.tool_state else {}
        removed = removed_keys(before, after)
        delta = state_delta(before, after)
        changed = {key: value for key, value in delta.items() if key not in removed}
        return replace(outcome, state=changed, removed=removed)

    try:
        result = await call()
    except Exception as error:
        record(with_changes(form.write(error=error)))
        raise
    record(with_changes(form.write(result=result)))
    return result
