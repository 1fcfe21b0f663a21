"""The one gate of a run: every live model call that a host can see asks it, wherever the host is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evaltui.core.cost.prices import Prices
from evaltui.core.model.budget import Budget
from evaltui.core.model.events import Json
from evaltui.core.model.limits import CallRate, Limit
from evaltui.runner.parent.gate.estimates import tokens_of
from evaltui.runner.parent.gate.ledger import Ledger, UnpricedModelError
from evaltui.runner.parent.gate.limiter import Call, Limiter
from evaltui.runner.parent.gate.shared import SharedByGates

# Seconds. A model that wants to be left alone for longer is out of order for this run.
_LONGEST_WAIT = 600.0


@dataclass(eq=False)
class GatedCall:
    """A model call of a request, from when it is asked for."""

    call: Call
    on_go: Callable[[], None]
    on_stop: Callable[[], None]
    asked: float


@dataclass(frozen=True)
class Stop:
    """Why no further call of a run is made."""

    reason: str
    """A clause, such as `budget of 5 USD reached`."""
    is_refusal: bool = False
    """Whether the run cannot be made as it was asked for."""


class Gate:
    """In the event loop that it is made in. `clock` is that of the loop."""

    def __init__(
        self,
        limits: Sequence[Limit],
        clock: Callable[[], float] = time.monotonic,
        budget: Budget | None = None,
        prices: Prices | None = None,
        *,
        allows_unmetered: bool = False,
        shared: SharedByGates | None = None,
    ) -> None:
        """With a `budget`, every call is to ask. `allows_unmetered` counts models without a price as free.
        `shared` is what the gates of earlier runs have left."""
        self.clock = clock
        self.patterns = ("*",) if budget else tuple(limit.model for limit in limits)
        """Of the models whose calls are to ask."""
        self.stopped: Stop | None = None
        """Set as soon as no further call is made."""
        self.throttled = 0.0
        """Seconds that calls have waited, all of them together."""
        shared = shared or SharedByGates()
        self._limiter = shared.limiter = shared.limiter or Limiter(limits, clock)
        self._estimates = shared.estimates
        if budget and shared.ledger is None:
            estimate = self._estimates.tokens
            shared.ledger = Ledger(budget, prices or Prices(), estimate, counts_all=not allows_unmetered)
            shared.ledger.carry_over(shared.spent)
        self.ledger = shared.ledger
        """What is spent of the budget; None without one."""
        self._waiting: dict[Call, GatedCall] = {}
        self._timer: asyncio.TimerHandle | None = None

    def ask(
        self,
        model: str,
        size: int,
        on_go: Callable[[], None],
        on_stop: Callable[[], None] = lambda: None,
        *,
        is_first: bool = False,
    ) -> GatedCall:
        """A call that waits until `on_go` or `on_stop`, which may come at once; its request has `size`
        characters. `is_first` is whether its process has had no answer of the model yet."""
        call = self._limiter.ask(model, self._estimates.of(model, size), size, is_first=is_first)
        gated = self._waiting[call] = GatedCall(call, on_go, on_stop, self.clock())
        self._look()
        return gated

    def stop(self, stop: Stop) -> None:
        """From now on, no call is made; what is under way goes on."""
        self.stopped = self.stopped or stop
        waiting = list(self._waiting.values())
        self._waiting.clear()
        for gated in waiting:
            self._limiter.withdraw(gated.call)
        for gated in waiting:
            gated.on_stop()

    def rate(self) -> CallRate | None:
        """Calls per minute against the limit that is nearest; None where they are not limited."""
        return self._limiter.rate()

    def refused_until(self, model: str) -> float:
        """The moment before which a model does not want to be asked."""
        return self._limiter.refused_until(model)

    def end(self, gated: GatedCall, usage: Json | None) -> None:
        """A call is over; `usage` is genai's usage metadata, None where nobody knows."""
        self._estimates.learn(gated.call.model, usage)
        if self.ledger is not None:
            self.ledger.settle(gated.call, usage)
        self._limiter.end(gated.call, tokens_of(usage))
        self._look()

    def refused(self, gated: GatedCall, retry_after: float | None) -> None:
        """A call was refused for too many."""
        if self.ledger is not None:
            self.ledger.drop(gated.call)
        is_hopeless = retry_after is not None and retry_after > _LONGEST_WAIT
        self._limiter.refused(gated.call, 0.0 if is_hopeless else retry_after)
        self._look()

    def withdraw(self, gated: GatedCall) -> None:
        """Nobody waits for the call any more."""
        if gated.call.began is None and self._waiting.pop(gated.call, None) is None:
            # It was told that nothing is made any more.
            return
        if self.ledger is not None:
            self.ledger.settle(gated.call, None)
        self._limiter.withdraw(gated.call)
        self._look()

    def close(self) -> None:
        """The run is over."""
        if self._timer is not None:
            self._timer.cancel()

    def _let_go(self) -> tuple[list[Call], str]:
        """The calls that begin, and the model whose calls the budget cannot count; "" for none."""
        if self.ledger is None:
            return self._limiter.let_go(), ""
        unpriced = ""

        def admits(call: Call) -> bool:
            nonlocal unpriced
            try:
                return ledger.admits(call)
            except UnpricedModelError:
                unpriced = call.model
                return False

        ledger = self.ledger
        return self._limiter.let_go(admits), unpriced

    def _stop_for(self, model: str) -> None:
        price = f'"{model}" = {{input_mtok = 0.3, output_mtok = 2.5}} in [tool.evaltui.prices]'
        what = f"the price of {model} is unknown. Give it, e.g. {price}, a budget in tokens, or"
        self.stop(Stop(f"{what} --allow-unmetered to count its calls as free", is_refusal=True))

    def _look(self) -> None:
        if self.ledger is not None and self.ledger.is_used_up:
            self.stop(Stop(f"budget of {self.ledger.budget} reached"))
        if self.stopped is not None:
            self.stop(self.stopped)
            return
        calls, unpriced = self._let_go()
        begun = [self._waiting.pop(call) for call in calls]
        if unpriced:
            self._stop_for(unpriced)
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
