"""The one gate of a run: every live model call that a host can see asks it, wherever the host is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evaltui.core.model.events import Json
from evaltui.core.model.limits import Limit
from evaltui.runner.parent.gate.estimates import Estimates, tokens_of
from evaltui.runner.parent.gate.limiter import Call, Limiter

# Seconds. A model that wants to be left alone for longer is out of order for this run.
_LONGEST_WAIT = 600.0


@dataclass(eq=False)
class GatedCall:
    """A model call of a request, from when it is asked for."""

    call: Call
    on_go: Callable[[], None]
    asked: float


class Gate:
    """In the event loop that it is made in. `clock` is that of the loop."""

    def __init__(self, limits: Sequence[Limit], clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.patterns = tuple(limit.model for limit in limits)
        """Of the models whose calls are to ask."""
        self.throttled = 0.0
        """Seconds that calls have waited, all of them together."""
        self._limiter = Limiter(limits, clock)
        self._estimates = Estimates()
        self._waiting: dict[Call, GatedCall] = {}
        self._timer: asyncio.TimerHandle | None = None

    def ask(self, model: str, size: int, on_go: Callable[[], None]) -> GatedCall:
        """A call that waits until `on_go`, which may come at once; its request has `size` characters."""
        call = self._limiter.ask(model, self._estimates.of(model, size))
        gated = self._waiting[call] = GatedCall(call, on_go, self.clock())
        self._look()
        return gated

    def refused_until(self, model: str) -> float:
        """The moment before which a model does not want to be asked."""
        return self._limiter.refused_until(model)

    def end(self, gated: GatedCall, usage: Json | None) -> None:
        """A call is over; `usage` is genai's usage metadata, None where nobody knows."""
        self._estimates.learn(gated.call.model, usage)
        self._limiter.end(gated.call, tokens_of(usage))
        self._look()

    def refused(self, gated: GatedCall, retry_after: float | None) -> None:
        """A call was refused for too many."""
        is_hopeless = retry_after is not None and retry_after > _LONGEST_WAIT
        self._limiter.refused(gated.call, 0.0 if is_hopeless else retry_after)
        self._look()

    def withdraw(self, gated: GatedCall) -> None:
        """Nobody waits for the call any more."""
        self._waiting.pop(gated.call, None)
        self._limiter.withdraw(gated.call)
        self._look()

    def close(self) -> None:
        """The run is over."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        begun = [self._waiting.pop(call) for call in self._limiter.let_go()]
        for gated in begun:
            self.throttled += self.clock() - gated.asked
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if (at := self._limiter.next_look) is not None:
            delay = max(at - self.clock(), 0.001)
            self._timer = asyncio.get_running_loop().call_later(delay, self._look)
        # Last: what they do may ask for more.
        for gated in begun:
            gated.on_go()
