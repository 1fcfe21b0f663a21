"""Calls of models and tools where an agent makes them: reported, recorded or replayed, gated, timed, stubbed.

Adapters wrap what their framework asks and calls with (`wrap_methods`), and hand each call to `ask_model` or
`model_responses`, and to `call_tool`. Contents and results are JSON as genai has them.
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

from ....core.model.events import Json, Kind, is_output, output_content
from ....core.recordings.entry import JsonRequest, ToolCall
from ...call_recorder import ModelExchange, NotRecordedError, ToolOutcome, current_call_recorder
from ...errors import error_from_json, message_of
from ...model_gate import Waits, gated, size_of
from .base import Reporter, cancelled_calls, current_reporter, nested_in, removed_keys, state_delta

Response = TypeVar("Response")
Wrapper = Callable[[Any], Any]


def wrap_methods(base: Any, wrappers: Mapping[str, Wrapper], only_below: Collection[str] = ()) -> None:
    """Replace methods of a class and of every class below it, those that are defined later included.

    Those in `only_below` stay as they are in the class itself.
    """

    def wrap(cls: type) -> None:
        for name, wrapper in wrappers.items():
            method = None if cls is base and name in only_below else vars(cls).get(name)
            if inspect.isfunction(method) and not hasattr(method, "is_watched"):
                watched = wrapper(method)
                watched.is_watched = True
                setattr(cls, name, watched)

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


# The model and the request that the current code works for, while a model is at work: a subclass calls its
# parent's method, and a model may hand a request on to another; both are one request.
asking: ContextVar[tuple[object, object] | None] = ContextVar("evaltui_asking", default=None)


def is_same_request(model: object, request: object) -> bool:
    """Whether it is made by the model that is being asked, or is the request that it was asked."""
    outer = asking.get()
    return outer is not None and (outer[0] is model or (request is not None and outer[1] is request))


@dataclass(frozen=True)
class Described:
    """A response of a model as its event has it."""

    content: Json | None = None
    """A genai Content as JSON."""
    usage: Json | None = None
    """See `usage_of`."""
    data: Json = field(default_factory=dict)
    """`model_version` and `finish_reason`, where they are known."""
    is_partial: bool = False
    """Whether it is a piece of a response that comes as a whole, too."""


@dataclass(frozen=True)
class ResponseFormat(Generic[Response]):
    """What a framework's responses are, in the terms of recordings and events."""

    write: Callable[[Response], Json]
    """As JSON, for a recording. Where `content` has function calls, the recorder numbers their ids."""
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
    """A request to a model. Without a gate or a recording the model is asked in any case."""

    model: str
    """Its name."""
    agent: str
    request: Callable[[], JsonRequest]
    """Makes the request as JSON; where it raises, the request is neither recorded nor shown in full."""
    asking: tuple[object, object]
    """See `asking`."""
    waits: Waits = field(default_factory=Waits)
    is_gated: bool = True
    is_recorded: bool = True
    reports_errors: bool = True
    id: str = ""
    """Of its event; made up where it is empty."""


async def ask_model(
    call: ModelCall, ask: Callable[[], Awaitable[Response]], form: ResponseFormat[Response]
) -> Response:
    """The response of `ask`, or the recorded one; see `model_responses`."""

    async def once() -> AsyncIterator[Response]:
        yield await ask()

    responses = [response async for response in model_responses(call, once, form)]
    if not responses:
        raise NotRecordedError("the recorded model call has no response; use --record record")
    return responses[0]


async def model_responses(
    call: ModelCall, ask: Callable[[], AsyncIterator[Response]], form: ResponseFormat[Response]
) -> AsyncGenerator[Response]:
    """The responses of a model, pieces of them or what was recorded; they and the request are reported.

    Raises NotRecordedError, and what the model raises or raised.
    """
    reporter = current_reporter.get()
    if reporter is None:
        async for response in ask():
            yield response
        return
    asked = _asked(call)
    exchange = _exchange(call, asked)
    told = _Told(reporter, call, asked, exchange.mark if exchange else {})
    responses = _exchanged(exchange, call, asked, ask, form)
    piece: Described | None = None
    async with aclosing(responses):
        while True:
            # Only while the model works: between two responses, other code runs in this context.
            token = asking.set(call.asking)
            try:
                with told.timed():
                    response = await anext(responses)
            except StopAsyncIteration:
                break
            except Exception as error:
                told.failure(error)
                raise
            finally:
                asking.reset(token)
            described = form.describe(response)
            piece = described if described.is_partial else None
            if piece is None:
                told.response(described)
            yield response
        if piece is not None:
            told.response(piece)


class _Told:
    """Reports a request, and what came of it."""

    def __init__(
        self, reporter: Reporter, call: ModelCall, asked: JsonRequest | Exception, mark: Json
    ) -> None:
        self._reporter = reporter
        self._call = call
        self._mark = mark
        self._spent = 0.0
        data = _request_data(reporter, call, asked) | mark
        self._request = reporter.event("model_request", agent=call.agent, data=data, id=call.id)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Meanwhile the model works."""
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
            parent=self._request,
        )


def _asked(call: ModelCall) -> JsonRequest | Exception:
    try:
        return call.request()
    except Exception as error:
        # Users' objects may fail in any way when looked at, and looking must not end the user's run.
        return error


def _exchange(call: ModelCall, asked: JsonRequest | Exception) -> ModelExchange | None:
    """What is to be done about a request; None where the model is simply asked."""
    recorder = current_call_recorder.get()
    if recorder is None or recorder.modes.models == "off" or not call.is_recorded:
        return None
    if isinstance(asked, Exception):
        return recorder.unrecordable(f"a request to model {call.model}", asked)
    return recorder.model_call(asked, call.agent)


async def _exchanged(
    exchange: ModelExchange | None,
    call: ModelCall,
    asked: JsonRequest | Exception,
    ask: Callable[[], AsyncIterator[Response]],
    form: ResponseFormat[Response],
) -> AsyncGenerator[Response]:
    """The recorded responses, piece by piece, or those that the model gives, which are recorded."""
    exchange = exchange or ModelExchange()
    exchange.check()
    if exchange.is_replayed:
        for data in exchange.responses:
            yield form.read(data)
        exchange.end()
        return
    given: list[Json] = []
    is_partial = False
    live = gated(
        call.model if call.is_gated else None,
        lambda: _size(asked),
        ask,
        lambda response: form.describe(response).usage,
        call.waits,
    )
    try:
        async with aclosing(live):
            async for response in live:
                given.append(form.write(response))
                is_partial = form.describe(response).is_partial
                yield response
    except GeneratorExit:
        # Who has the whole answer may stop listening before the model has said that there is no more.
        if given and not is_partial:
            exchange.keep(given, None)
        raise
    except Exception as error:
        exchange.keep(given, error)
        raise
    exchange.keep(given, None)


def _size(asked: JsonRequest | Exception) -> int:
    if isinstance(asked, Exception):
        return 0
    return size_of([asked.instruction, list(asked.tools), list(asked.contents)])


# The contents last sent, by agent: a request repeats the whole history, the log should not.
_sent: WeakKeyDictionary[Reporter, dict[str, Sequence[Json]]] = WeakKeyDictionary()


def _request_data(reporter: Reporter, call: ModelCall, asked: JsonRequest | Exception) -> Json:
    if isinstance(asked, Exception):
        return {"model": call.model, "unrecorded": f"{type(asked).__name__}: {message_of(asked)}"}
    sent = _sent.setdefault(reporter, {})
    same = 0
    for earlier, now in zip(sent.get(call.agent, ()), asked.contents, strict=False):
        if earlier != now:
            break
        same += 1
    sent[call.agent] = asked.contents
    data: Json = {
        "model": call.model,
        "system_instruction": asked.instruction,
        "tools": list(asked.tools),
        "config": asked.config,
        "contents_before": same,
        "contents": list(asked.contents[same:]),
    }
    return {key: value for key, value in data.items() if value not in ("", [], {}) or key == "contents"}


def declaration(name: str, description: str | None, schema: Json | None) -> Json:
    """A tool as a request has it."""
    return {"name": name, "description": description or "", "parameters_json_schema": schema}


def response_of(result: Any) -> Json:
    """What a tool returned as the `response` of a function response: an object as it is, anything else as
    `{"result": …}`. What JSON cannot hold becomes its text. See `result_of`."""
    plain = to_jsonable_python(result, bytes_mode="base64", fallback=str)
    return plain if isinstance(plain, dict) and plain.keys() != {"result"} else {"result": plain}


def result_of(response: Any) -> Any:
    """What a tool returned, of the `response` that `response_of` made of it."""
    if isinstance(response, dict) and response.keys() == {"result"}:
        return response["result"]
    return response


def output_fields(value: Any, said: str = "") -> Json | None:
    """The fields of a step that responds with a value; None where there is none, or the agent said it."""
    output = to_jsonable_python(value, bytes_mode="base64", fallback=str)
    if output in (None, "") or is_output(said, output):
        return None
    return {"content": output_content(output), "final": True, "output": output, "answers": True}


class HeldState(Protocol):
    """State that tools change."""

    def state(self) -> Json:
        """A copy of it as it is now."""
        ...

    def apply(self, changed: Json, removed: Iterable[str]) -> None:
        """Change it as a recorded call did."""
        ...


class _Write(Protocol):
    """Makes what is recorded of a call, of what it returned or of what it raised, but for the state."""

    def __call__(self, *, result: Any = None, error: Exception | None = None) -> ToolOutcome: ...


def plain_outcome(*, result: Any = None, error: Exception | None = None) -> ToolOutcome:
    """What is recorded of a call whose result is a response already."""
    return ToolOutcome(result, error)


@dataclass(frozen=True)
class ToolForm:
    """What a framework's calls are, in the terms of recordings."""

    write: _Write = plain_outcome
    read: Callable[[ToolCall], Any] = lambda recorded: recorded.result
    """Makes the framework's own result of a recorded one, or of a response that the case itself has."""
    held: HeldState | None = None
    is_recorded: bool = True
    """Without, a call is neither recorded nor stubbed unless the config names the tool: it is a part of the
    agent, whose own calls are."""


# What tells the call that is running: a subclass calls its parent's method, which is the same call.
_calling: ContextVar[object] = ContextVar("evaltui_calling", default=None)


async def call_tool(
    key: object,
    name: str,
    args: Callable[[], Json],
    call_id: str,
    call: Callable[[], Awaitable[Any]],
    form: ToolForm,
    seconds: MutableMapping[str, float],
) -> Any:
    """What `call` returns, or what was recorded where the tool is stubbed; `key` tells it from other calls.

    What happens inside is nested in the call; how long it took is put into `seconds` by its id. Raises
    NotRecordedError, and what the tool raises or raised.
    """
    if _calling.get() == key:
        return await call()
    recorder = current_call_recorder.get()
    if recorder is not None and not form.is_recorded and name not in recorder.modes.by_tool:
        recorder = None
    exchange = recorder.tool_call(name, args(), call_id) if recorder else None
    tokens = nested_in.set(call_id or nested_in.get()), _calling.set(key), asking.set(None)
    started = time.perf_counter()
    try:
        if exchange is None:
            return await call()
        exchange.check()
        if exchange.recorded is None:
            return await _kept(exchange.keep, call, form)
        if form.held is not None:
            form.held.apply(exchange.recorded.state, exchange.recorded.removed)
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
        _calling.reset(tokens[1])
        asking.reset(tokens[2])


async def _kept(
    keep: Callable[[ToolOutcome], None], call: Callable[[], Awaitable[Any]], form: ToolForm
) -> Any:
    before = form.held.state() if form.held else {}

    def with_changes(outcome: ToolOutcome) -> ToolOutcome:
        after = form.held.state() if form.held else {}
        removed = removed_keys(before, after)
        delta = state_delta(before, after)
        changed = {key: value for key, value in delta.items() if key not in removed}
        return replace(outcome, state=changed, removed=removed)

    try:
        result = await call()
    except Exception as error:
        keep(with_changes(form.write(error=error)))
        raise
    keep(with_changes(form.write(result=result)))
    return result
