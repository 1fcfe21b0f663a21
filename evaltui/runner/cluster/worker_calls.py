"""The model calls of one worker at the run's gate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from evaltui.runner.cluster.messages import (
    AskCall,
    EndCall,
    Go,
    OfCalls,
    RefusedCall,
    StopCalls,
    Wait,
    WithdrawCall,
)
from evaltui.runner.parent.gate.gate import Gate, GatedCall

# Seconds for which a call of a worker that is lost still counts as one at a time: its model was not told.
_STILL_ASKED = 1.0


class WorkerCalls:
    """`send` passes on to the worker what the gate says."""

    def __init__(self, gate: Gate | None, send: Callable[[Go | Wait | StopCalls], None]) -> None:
        self._gate = gate
        self._send = send
        self._calls: dict[int, GatedCall] = {}

    def on_message(self, message: OfCalls) -> None:
        """What the worker tells of a call."""
        gate = self._gate
        if gate is None:
            return
        if isinstance(message, AskCall):
            on_go = partial(self._send, Go(message.number))
            on_stop = partial(self._send, StopCalls())
            self._calls[message.number] = gate.ask(
                message.model, message.size, on_go, on_stop, is_first=message.is_first
            )
            return
        if (gated := self._calls.pop(message.number, None)) is None:
            return
        match message:
            case EndCall(usage=usage):
                gate.end(gated, usage)
            case RefusedCall(retry_after=retry_after):
                gate.refused(gated, retry_after)
                model = gated.call.model
                self._send(Wait(model, gate.refused_until(model) - gate.clock()))
            case WithdrawCall():
                gate.withdraw(gated)

    def close(self) -> None:
        """The worker is lost, and its calls with it: those that models may be at work on a little later."""
        calls, self._calls = self._calls, {}
        loop = asyncio.get_running_loop()
        for gated in calls.values():
            if self._gate is None:
                continue
            if gated.call.began is None:
                self._gate.withdraw(gated)
            else:
                loop.call_later(_STILL_ASKED, self._gate.withdraw, gated)
