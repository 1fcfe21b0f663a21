"""Tool calls of an agent framework: through the call recorder of the case, timed, with what happens in them.

Adapters of frameworks share it. Results are JSON as genai has them: the `response` of a function response.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from pydantic_core import to_jsonable_python

from .....core.model.events import Json, Step, split
from .....core.recordings.entry import ToolCall
from ....call_recorder import ToolOutcome, current_call_recorder
from ....errors import error_from_json
from ..base import Reporter, nested_in


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


# What ended the calls of the current turn that were running when it was cancelled.
_cancelled: ContextVar[list[asyncio.CancelledError] | None] = ContextVar("evaltui_cancelled", default=None)


@contextmanager
def cancelled_in_calls() -> Iterator[None]:
    """Have a cancellation, such as a time-out, name the call that was running: frameworks make calls in tasks
    of their own, of which the traceback of a turn knows nothing."""
    inside: list[asyncio.CancelledError] = []
    token = _cancelled.set(inside)
    try:
        yield
    except asyncio.CancelledError as error:
        if inside and inside[0] is not error:
            raise error from inside[0]
        raise
    finally:
        _cancelled.reset(token)


class _Write(Protocol):
    """Makes what is recorded of a call, of what it returned or of what it raised."""

    def __call__(self, *, result: Any = None, error: Exception | None = None) -> ToolOutcome: ...


async def call_tool(
    name: str,
    args: Json,
    call_id: str,
    call: Callable[[], Awaitable[Any]],
    *,
    write: _Write,
    read: Callable[[ToolCall], Any],
    seconds: MutableMapping[str, float],
    recorded: bool = True,
) -> Any:
    """What `call` returns, or what was recorded where the tool is stubbed.

    `write` says what is recorded of a call, `read` makes the framework's own result of that, or of a
    response that the case itself has, and does to the state what the call did. What happens inside is nested
    in the call; how long it took is put into `seconds` by its id. Without `recorded` the call is neither
    recorded nor stubbed unless the config names the tool: it is a part of the agent, whose own calls are.
    Raises NotRecordedError, and what the tool raises or raised.
    """
    recorder = current_call_recorder.get()
    if recorder is not None and not recorded and name not in recorder.modes.by_tool:
        recorder = None
    exchange = recorder.tool_call(name, args, call_id) if recorder else None
    token, started = nested_in.set(call_id), time.perf_counter()
    try:
        if exchange is None:
            return await call()
        exchange.check()
        if exchange.recorded is not None:
            result = read(exchange.recorded)
            if exchange.recorded.error is not None:
                raise error_from_json(exchange.recorded.error)
            return result
        try:
            result = await call()
        except Exception as error:
            exchange.keep(write(error=error))
            raise
        exchange.keep(write(result=result))
        return result
    except asyncio.CancelledError as error:
        if (inside := _cancelled.get()) is not None:
            inside.append(error)
        raise
    finally:
        seconds[call_id] = time.perf_counter() - started
        nested_in.reset(token)


def report_results(reporter: Reporter, step: Step, seconds: MutableMapping[str, float]) -> None:
    """Reports a step that holds results of calls: with how long each call took, which is taken out of
    `seconds`, and whether it was stubbed."""
    recorder = current_call_recorder.get()
    for event in split(step):
        is_result = event.kind == "tool_result"
        reporter.event(
            event.kind,
            event.content,
            agent=event.agent,
            data=event.data | (recorder.stub_mark(event.parent) if recorder and is_result else {}),
            usage=event.usage,
            branch=event.branch,
            duration=seconds.pop(event.parent, None) if is_result else None,
            id=event.id,
            parent=event.parent,
        )
