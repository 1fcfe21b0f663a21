"""Passes the model calls of workers to the run's gate. The gate stays with the run: a Dask actor would be
lost with its worker."""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from evaltui.core.model.events import Json
from evaltui.runner.dask.messages import CallStep, Go, StopCalls, Wait
from evaltui.runner.gate.gate import Gate
from evaltui.runner.gate.limiter import Call

# Seconds for which a call of a lost worker still counts as running: its model may still be at work.
_LOST_CALL_SECONDS = 1.0


class WorkerCalls:
    """The calls of one worker, on the machine of the run. `send` sends the gate's messages to the worker."""

    def __init__(self, gate: Gate | None, send: Callable[[Go | Wait | StopCalls], None]) -> None:
        self._gate = gate
        self._send = send
        self._calls: dict[int, Call] = {}

    def on_step(self, call_step: CallStep) -> None:
        gate = self._gate
        if gate is None:
            return
        if call_step.step == "ask":
            on_go = partial(self._send, Go(call_step.number))
            on_stop = partial(self._send, StopCalls())
            self._calls[call_step.number] = gate.ask(
                call_step.model, call_step.size, on_go, on_stop, is_first=call_step.is_first
            )
            return
        if (gated := self._calls.pop(call_step.number, None)) is None:
            return
        match call_step.step:
            case "end":
                gate.end(gated, call_step.usage)
            case "refused":
                gate.refused(gated, call_step.retry_after)
                model = gated.model
                self._send(Wait(model, gate.refused_until(model) - gate.clock()))
            case "withdraw":
                gate.withdraw(gated)

    def close(self) -> None:
        """Withdraws the calls of a lost worker; calls that models may be at work on a little later."""
        calls, self._calls = self._calls, {}
        loop = asyncio.get_running_loop()
        for gated in calls.values():
            if self._gate is None:
                continue
            if gated.began is None:
                self._gate.withdraw(gated)
            else:
                loop.call_later(_LOST_CALL_SECONDS, self._gate.withdraw, gated)


class _Put(Protocol):
    def __call__(self, message: CallStep, *, now: bool) -> None: ...


@dataclass(frozen=True, eq=False)
class RemoteCall:
    """A model call at the run's gate, identified by its number."""

    number: int


class RemoteGate:
    """A `CallGate` on a worker. `put` passes a message on to the run."""

    def __init__(self, patterns: tuple[str, ...], put: _Put) -> None:
        self.clock: Callable[[], float] = time.monotonic
        self.patterns = patterns
        self._put = put
        self._numbers = itertools.count(1)
        self.stopped: object | None = None
        """Set once the run makes no more calls."""
        # By the number of a waiting call: the functions that let it go and that stop it.
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
        self._put(CallStep(number, "ask", model, size, is_first), now=True)
        return RemoteCall(number)

    def on_message(self, message: Go | Wait | StopCalls) -> None:
        """Handles a message of the run's gate."""
        match message:
            case Go(number):
                if waiting := self._waiting.pop(number, None):
                    waiting[0]()
            case Wait(model, seconds):
                self._refused_until[model] = self.clock() + seconds
            case StopCalls():
                self.stopped = True
                calls, self._waiting = self._waiting, {}
                for _, on_stop in calls.values():
                    on_stop()

    def refused_until(self, model: str) -> float:
        return self._refused_until.get(model, -math.inf)

    def end(self, gated: RemoteCall, usage: Json | None) -> None:
        self._put(CallStep(gated.number, "end", usage=usage), now=False)

    def refused(self, gated: RemoteCall, retry_after: float | None) -> None:
        self._put(CallStep(gated.number, "refused", retry_after=retry_after), now=True)

    def withdraw(self, gated: RemoteCall) -> None:
        self._waiting.pop(gated.number, None)
        self._put(CallStep(gated.number, "withdraw"), now=False)
