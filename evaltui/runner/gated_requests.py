"""The model calls of one request of a host at the run's gate, and the time that they make it wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from evaltui.agents.errors import RunStoppedError
from evaltui.core.model.events import Json

# Seconds between two readings of a clock that may stand still.
_MIN_WAIT = 0.05

Gated = TypeVar("Gated")


class CallGate(Protocol[Gated]):
    """A `Gate`, or what stands for one where the run is on another machine."""

    @property
    def clock(self) -> Callable[[], float]: ...

    @property
    def patterns(self) -> tuple[str, ...]: ...

    @property
    def stopped(self) -> object | None: ...

    def ask(
        self,
        model: str,
        size: int,
        on_go: Callable[[], None],
        on_stop: Callable[[], None],
        *,
        is_first: bool,
    ) -> Gated: ...

    def refused_until(self, model: str) -> float: ...

    def end(self, gated: Gated, usage: Json | None) -> None: ...

    def refused(self, gated: Gated, retry_after: float | None) -> None: ...

    def withdraw(self, gated: Gated) -> None: ...


class GatedRequest:
    """A request that may take `timeout` seconds; while one of its calls waits, its clock stands still.

    Waiting after a refusal may take as long once more: a model that refuses for ever ends the case.
    """

    def __init__(self, gate: CallGate[Any], timeout: float) -> None:
        self._gate = gate
        self._patience = timeout
        self._calls: dict[int, Any] = {}
        self._waiting: set[int] = set()
        self._waits_since = 0.0
        self._throttled = 0.0
        self.stop = asyncio.get_running_loop().create_future()
        """Done when the run makes no further call, and the request needs one."""

    @property
    def patterns(self) -> tuple[str, ...]:
        """Patterns of the models whose calls have to ask."""
        return self._gate.patterns

    @property
    def throttled(self) -> float:
        """Seconds in which some call has waited."""
        return self._throttled + (self._gate.clock() - self._waits_since if self._waiting else 0.0)

    def on_message(self, message: Json, go: Callable[[Json], None]) -> None:
        """A step of a call, see `ModelGate`; `go` sends the answer `{"number", "goes"}`."""
        number = message["number"]
        if not message.get("over"):
            self._ask(number, message, go)
            return
        gated = self._calls.pop(number, None)
        if gated is None:
            return
        if number in self._waiting:
            self._waited(number)
            self._gate.withdraw(gated)
        elif (refused := message.get("refused")) is not None:
            self._gate.refused(gated, refused["retry_after"])
        else:
            self._gate.end(gated, message.get("usage"))

    def _ask(self, number: int, message: Json, go: Callable[[Json], None]) -> None:
        if (again := message.get("again")) is not None:
            wait = self._gate.refused_until(message["model"]) - self._gate.clock()
            self._patience -= max(wait, again["retry_after"] or 0.0)
            if self._patience < 0:
                go({"number": number, "goes": False})
                return
        if not self._waiting:
            self._waits_since = self._gate.clock()
        self._waiting.add(number)

        def on_go() -> None:
            self._waited(number)
            go({"number": number, "goes": True})

        def on_stop() -> None:
            if not self.stop.done():
                self.stop.set_result(None)

        is_first = message.get("first", False)
        gated = self._gate.ask(message["model"], message["size"], on_go, on_stop, is_first=is_first)
        self._calls[number] = gated

    def _waited(self, number: int) -> None:
        self._waiting.discard(number)
        if not self._waiting:
            self._throttled += self._gate.clock() - self._waits_since

    def close(self) -> None:
        """The request is over, and with it its calls."""
        self._throttled = self.throttled
        self._waiting.clear()
        for gated in self._calls.values():
            self._gate.withdraw(gated)
        self._calls.clear()


async def answered(answer: asyncio.Future[Any], timeout: float, gated: GatedRequest | None) -> bool:
    """Waits for an answer for so many seconds, without those that it waited at the gate; False where there is
    none by then.

    Raises RunStoppedError once the request needs a call and the run makes no more.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    while not answer.done():
        left = timeout - (loop.time() - began) + (gated.throttled if gated else 0.0)
        if left <= 0:
            return False
        # Not wait_for: in Python 3.11 it loses a cancellation that comes along with the answer.
        if gated is None:
            await asyncio.wait({answer}, timeout=left)
            continue
        ends = {answer, gated.stop}
        await asyncio.wait(ends, timeout=max(left, _MIN_WAIT), return_when=asyncio.FIRST_COMPLETED)
        if gated.stop.done():
            raise RunStoppedError
    return True
