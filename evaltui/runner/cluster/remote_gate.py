"""The run's gate as a worker has it: its calls ask over the network, the limits are those of the run."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from evaltui.core.model.events import Json
from evaltui.runner.cluster.messages import AskCall, EndCall, OfCalls, RefusedCall, WithdrawCall


class _Put(Protocol):
    def __call__(self, message: OfCalls, *, now: bool) -> None: ...


@dataclass(frozen=True, eq=False)
class RemoteCall:
    """A model call that the run's gate knows by its number."""

    number: int


class RemoteGate:
    """A `CallGate`. `put` passes a message on to the run."""

    def __init__(self, patterns: tuple[str, ...], put: _Put) -> None:
        self.clock: Callable[[], float] = time.monotonic
        self.patterns = patterns
        self._put = put
        self._numbers = itertools.count(1)
        self.stopped: object | None = None
        """Set once the run makes no more calls."""
        # Of a call that waits, what lets it go and what ends its request.
        self._waiting: dict[int, tuple[Callable[[], None], Callable[[], None]]] = {}
        self._refused_until: dict[str, float] = {}

    def ask(
        self,
        model: str,
        size: int,
        on_go: Callable[[], None],
        on_stop: Callable[[], None] = lambda: None,
        *,
        is_first: bool = False,
    ) -> RemoteCall:
        number = next(self._numbers)
        self._waiting[number] = on_go, on_stop
        self._put(AskCall(number, model, size, is_first), now=True)
        return RemoteCall(number)

    def on_go(self, number: int) -> None:
        """The run lets a call go."""
        if waiting := self._waiting.pop(number, None):
            waiting[0]()

    def on_stop(self) -> None:
        """The run makes no more calls."""
        self.stopped = True
        waiting, self._waiting = self._waiting, {}
        for _, on_stop in waiting.values():
            on_stop()

    def on_wait(self, model: str, seconds: float) -> None:
        """The model does not want to be asked, by anybody in the run."""
        self._refused_until[model] = self.clock() + seconds

    def refused_until(self, model: str) -> float:
        return self._refused_until.get(model, -math.inf)

    def end(self, gated: RemoteCall, usage: Json | None) -> None:
        self._put(EndCall(gated.number, usage), now=False)

    def refused(self, gated: RemoteCall, retry_after: float | None) -> None:
        self._put(RefusedCall(gated.number, retry_after), now=True)

    def withdraw(self, gated: RemoteCall) -> None:
        self._waiting.pop(gated.number, None)
        self._put(WithdrawCall(gated.number), now=False)
