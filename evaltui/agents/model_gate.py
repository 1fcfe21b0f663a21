"""The run's gate for model calls, on the side of a host: lets live calls go, and reports their cost.

Adapters and models find the gate of the task that they work in as `current_model_gate`, and make their live
calls through `through_gate`. Where nothing is limited there is none, and nothing is reported.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from ..core.model.events import Json
from ..core.model.limits import is_named
from .errors import CallNotMadeError
from .exception_kinds import Refusal, refusal_of

Response = TypeVar("Response")

# Seconds. A shorter wait is the way to the parent and back.
SHORTEST_WAIT = 0.05
# Characters that a picture or a sound counts as.
_DATA = 1_000


class Waits:
    """The time that one model call, with all its attempts, waited at the gate."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @property
    def mark(self) -> Json:
        """Data of the event of its response."""
        return {"throttled": round(self.seconds, 3)} if self.seconds >= SHORTEST_WAIT else {}


class ModelGate:
    """The gate of one request. `patterns` are those of the models that are limited, `send` sends the parent
    the steps of a call: first `{"number", "model", "size", "first"?, "again"?}`, with its size in characters,
    whether this process has had no answer of the model yet, and its last refusal; in the end
    `{"number", "over", "usage"?, "refused"?}`.
    """

    def __init__(
        self, patterns: Sequence[str], send: Callable[[Json], object], *, shares_loop: bool = False
    ) -> None:
        """`shares_loop` where this thread is also the one that lets calls go."""
        self._patterns = patterns
        self._send = send
        self._thread = threading.get_ident() if shares_loop else None
        self._numbers = itertools.count()
        self._waiting: dict[int, concurrent.futures.Future[bool]] = {}
        # Of the calls that were let go.
        self._models: dict[int, str] = {}

    def limits(self, model: str) -> bool:
        """Whether calls of a model are to go through it."""
        return any(is_named(model, pattern) for pattern in self._patterns)

    def on_go(self, number: int, *, goes: bool) -> None:
        """The parent lets a call go, or says that waiting is in vain. From any thread."""
        answer = self._waiting.pop(number, None)
        # Whoever waits may be cancelled at this moment.
        if answer is not None and answer.set_running_or_notify_cancel():
            answer.set_result(goes)

    async def enter(self, model: str, size: int, waits: Waits, refusal: Refusal | None = None) -> int | None:
        """Waits until the call may be made, and returns its number; None where waiting is in vain.

        `refusal` is the model's last one of this call.
        """
        number = next(self._numbers)
        answer = self._waiting[number] = concurrent.futures.Future[bool]()
        began = time.perf_counter()
        again = {"again": {"retry_after": refusal.retry_after}} if refusal else {}
        first = {} if model in _answered else {"first": True}
        self._send({"number": number, "model": model, "size": size, **first, **again})
        try:
            goes = await self._goes(answer)
        except BaseException:
            self.leave(number)
            raise
        finally:
            self._waiting.pop(number, None)
            waits.seconds += time.perf_counter() - began
        if not goes:
            return None
        self._models[number] = model
        return number

    async def _goes(self, answer: concurrent.futures.Future[bool]) -> bool:
        if not _blocks.get():
            return await asyncio.wrap_future(answer)
        # Nothing could let it go while this thread waits.
        return True if threading.get_ident() == self._thread else answer.result()

    def close(self) -> None:
        """The request was given up: threads that wait for its calls go on."""
        for number in list(self._waiting):
            self.on_go(number, goes=False)

    def leave(self, number: int, usage: Json | None = None, refusal: Refusal | None = None) -> None:
        """A call is over. `usage` is genai's usage metadata, None where it is unknown."""
        if (model := self._models.pop(number, None)) is not None:
            _answered.add(model)
        refused = {"refused": {"retry_after": refusal.retry_after}} if refusal else {}
        self._send({"number": number, "over": True, **({"usage": usage} if usage else {}), **refused})


# The models that this process has had an answer of. The imports of a first call may take seconds.
_answered: set[str] = set()
# The gate of the request that the current task works for, if there is one.
current_model_gate: ContextVar[ModelGate | None] = ContextVar("evaltui_model_gate", default=None)
# Whether the current code cannot await: a synchronous call of a model.
_blocks: ContextVar[bool] = ContextVar("evaltui_gate_blocks", default=False)


@contextmanager
def gating(gate: ModelGate | None) -> Iterator[None]:
    """Every live model call of this task and its children goes through `gate`."""
    token = current_model_gate.set(gate)
    try:
        yield
    finally:
        current_model_gate.reset(token)


@contextmanager
def blocking() -> Iterator[None]:
    """Waiting at the gate blocks the thread of the current code."""
    token = _blocks.set(True)
    try:
        yield
    finally:
        _blocks.reset(token)


def gate_for(model: str) -> ModelGate | None:
    """The gate that a live call of a model goes through; None where it simply goes out."""
    gate = current_model_gate.get()
    return gate if gate is not None and gate.limits(model) else None


async def through_gate(
    model: str,
    size: Callable[[], int],
    ask: Callable[[], Awaitable[Response]],
    usage: Callable[[Response], Json | None],
    waits: Waits,
    may_repeat: Callable[[], bool] = lambda: True,
) -> Response:
    """The response of `ask`, made when the gate lets it go, and again while the model refuses for too many
    and it `may_repeat`.

    Raises what `ask` raises, a refusal too once waiting is in vain.
    """
    gate = gate_for(model)
    if gate is None:
        return await ask()
    refused: Exception | None = None
    refusal: Refusal | None = None
    while True:
        number = await gate.enter(model, size(), waits, refusal)
        if number is None:
            raise refused or CallNotMadeError("the run makes no more model calls")
        spent = refusal = None
        try:
            response = await ask()
            spent = usage(response)
            return response
        except Exception as error:
            refusal = refusal_of(error)
            if refusal is None or refusal.is_lasting or not may_repeat():
                raise
            refused = error
        finally:
            gate.leave(number, spent, refusal)


def size_of(value: Any) -> int:
    """The characters of JSON data, as a model counts them."""
    match value:
        case str():
            return len(value)
        case {"data": str(), **others}:
            return _DATA + size_of(others)
        case dict():
            return sum(len(str(key)) + size_of(item) for key, item in value.items())
        case list() | tuple():
            return sum(map(size_of, value))
        case _:
            return 4
