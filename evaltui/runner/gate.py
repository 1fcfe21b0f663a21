"""The one gate of a run: every live model call asks it, wherever its host is; with the budget's ledger."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from evaltui.core.cost.metering import tokens_of
from evaltui.core.cost.prices import Prices
from evaltui.core.model.events import Json
from evaltui.core.model.limits import Amount, Budget, CallRate, Limit
from evaltui.core.model.spending import Tokens
from evaltui.runner.limiter import Call, Limiter
from evaltui.text.figures import counted, show_money

# Seconds. A model that wants to be left alone for longer is out of order for this run.
_MAX_WAIT = 600.0
_CHARACTERS_PER_TOKEN = 4
# Tokens, until a model has answered.
_FIRST_OUTPUT = 500.0
# Answers that the next one is estimated from.
_LATEST = 100
_QUANTILE = 0.9


class Estimates:
    """Estimates of the tokens of model calls, from the latest answers of each model."""

    def __init__(self) -> None:
        self._outputs: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=_LATEST))

    def total(self, model: str, size: int) -> float:
        """Tokens of a call with a request of so many characters, its answer included."""
        return size / _CHARACTERS_PER_TOKEN + self._output(model)

    def tokens(self, model: str, size: int) -> Tokens:
        """Tokens of such a call by kind."""
        return Tokens(input=round(size / _CHARACTERS_PER_TOKEN), output=round(self._output(model)))

    def learn(self, model: str, usage: Json | None) -> None:
        """A call of a model is over."""
        total, prompt = _total_of(usage), (usage or {}).get("prompt_token_count")
        if total is not None and isinstance(prompt, int):
            self._outputs[model].append(total - prompt)

    def _output(self, model: str) -> float:
        outputs = sorted(self._outputs[model])
        return outputs[int(_QUANTILE * (len(outputs) - 1) + 0.5)] if outputs else _FIRST_OUTPUT


def _total_of(usage: Json | None) -> int | None:
    """Tokens in all, of genai's usage metadata; None where they are unknown."""
    total = (usage or {}).get("total_token_count")
    if total is not None:
        return int(total)
    tokens = tokens_of(usage)
    return None if tokens is None else tokens.total


class UnpricedModelError(Exception):
    """A budget in dollars cannot count the calls of a model."""


class Ledger:
    """The budget of a run, and its spending. A call that ends without its tokens counts with its estimate."""

    def __init__(
        self,
        budget: Budget,
        prices: Prices,
        estimate: Callable[[str, int], Tokens],
        spent: Amount,
        *,
        counts_all: bool,
    ) -> None:
        """`estimate` gets the model of a call and the characters of its request. Where it `counts_all`, a
        model without a price is an error."""
        self.budget = budget
        self.total = spent
        """Spending of calls that are over, and of earlier parts of the run."""
        self._prices = prices
        self._estimate = estimate
        self._counts_all = counts_all
        self._under_way: dict[Call, Amount] = {}

    @property
    def spent(self) -> float:
        """The total in the unit of the budget."""
        return self.total.in_unit(self.budget.unit)

    @property
    def is_used_up(self) -> bool:
        """Whether calls that are over have spent all of it."""
        return self.spent >= self.budget.amount

    def __str__(self) -> str:
        """The total: `$5.02`, `2,000,412 tokens`."""
        if self.budget.unit == "USD":
            return show_money(self.spent)
        return counted(round(self.spent), "token")

    def admits(self, call: Call) -> bool:
        """Starts a call, unless those under way may use up the rest.

        Raises UnpricedModelError.
        """
        under_way = sum(amount.in_unit(self.budget.unit) for amount in self._under_way.values())
        if self.spent + under_way >= self.budget.amount:
            return False
        tokens = self._estimate(call.model, call.size)
        if self._counts_all and self.budget.unit == "USD" and self._price(call.model, tokens) is None:
            raise UnpricedModelError(call.model)
        self._under_way[call] = self._amount(call.model, tokens, 0.0)
        return True

    def settle(self, call: Call, usage: Json | None) -> None:
        """A call is over; `usage` is genai's usage metadata, None where it is unknown."""
        estimated = self._under_way.pop(call, None)
        if estimated is None:
            return
        tokens = tokens_of(usage)
        self.total += estimated if tokens is None else self._amount(call.model, tokens, estimated.usd)

    def drop(self, call: Call) -> None:
        """A call was refused by its model: it costs nothing."""
        self._under_way.pop(call, None)

    def _amount(self, model: str, tokens: Tokens, unpriced: float) -> Amount:
        """Without a price, it costs `unpriced`."""
        price = self._price(model, tokens)
        return Amount(unpriced if price is None else price, float(tokens.total or 0))

    def _price(self, model: str, tokens: Tokens) -> float | None:
        return self._prices.price_of(model, tokens, datetime.now(UTC))


@dataclass
class SharedByGates:
    """Limits and budget of runs one after the other, as those of a matrix: the gate of the first run makes
    them, those of later runs continue with them."""

    spent: Amount = field(default_factory=Amount)
    """Spending before the first run."""
    estimates: Estimates = field(default_factory=Estimates)
    limiter: Limiter | None = None
    ledger: Ledger | None = None
    """None without a budget, and before the first run."""

    @property
    def is_used_up(self) -> bool:
        """Whether the whole budget is spent."""
        return self.ledger is not None and self.ledger.is_used_up


@dataclass(frozen=True)
class Stop:
    """Why no further call of a run is made."""

    reason: str
    """A clause, such as `budget of 5 USD reached`."""
    is_refusal: bool = False
    """Whether the run cannot be made as it was asked for."""


class Gate:
    """Lets model calls go within the limits and the budget, in the event loop that it is made in."""

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
        """`clock` is that of the loop. With a `budget`, every call has to ask. `allows_unmetered` counts
        models without a price as free. `shared` has the state of earlier runs."""
        self.clock = clock
        self.patterns = ("*",) if budget else tuple(limit.model for limit in limits)
        """Patterns of the models whose calls have to ask."""
        self.stopped: Stop | None = None
        """Set as soon as no further call is made."""
        shared = shared or SharedByGates()
        self._limiter = shared.limiter = shared.limiter or Limiter(limits, clock)
        self._estimates = shared.estimates
        if budget and shared.ledger is None:
            estimate = self._estimates.tokens
            shared.ledger = Ledger(
                budget, prices or Prices(), estimate, shared.spent, counts_all=not allows_unmetered
            )
        self.ledger = shared.ledger
        """The budget and its spending; None without one."""
        # For each call that waits, its `on_go` and `on_stop`.
        self._waiting: dict[Call, tuple[Callable[[], None], Callable[[], None]]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def ask(
        self,
        model: str,
        size: int,
        on_go: Callable[[], None],
        on_stop: Callable[[], None] = lambda: None,
        *,
        is_first: bool = False,
    ) -> Call:
        """A call that waits until `on_go` or `on_stop`, which may come at once; its request has `size`
        characters. `is_first` is whether its process has had no answer of the model yet."""
        call = self._limiter.ask(model, self._estimates.total(model, size), size, is_first=is_first)
        self._waiting[call] = on_go, on_stop
        self._let_go()
        return call

    def stop(self, stop: Stop) -> None:
        """From now on, no call is made; what is under way goes on."""
        self.stopped = self.stopped or stop
        waiting, self._waiting = self._waiting, {}
        for call in waiting:
            self._limiter.withdraw(call)
        for _, on_stop in waiting.values():
            on_stop()

    def rate(self) -> CallRate | None:
        """Calls per minute against the limit that is nearest; None where they are not limited."""
        return self._limiter.rate()

    def refused_until(self, model: str) -> float:
        """The moment before which a model does not want to be asked."""
        return self._limiter.refused_until(model)

    def end(self, call: Call, usage: Json | None) -> None:
        """A call is over; `usage` is genai's usage metadata, None where it is unknown."""
        self._estimates.learn(call.model, usage)
        if self.ledger is not None:
            self.ledger.settle(call, usage)
        self._limiter.end(call, _total_of(usage))
        self._let_go()

    def refused(self, call: Call, retry_after: float | None) -> None:
        """A call was refused because of too many."""
        if self.ledger is not None:
            self.ledger.drop(call)
        is_hopeless = retry_after is not None and retry_after > _MAX_WAIT
        self._limiter.refused(call, 0.0 if is_hopeless else retry_after)
        self._let_go()

    def withdraw(self, call: Call) -> None:
        """The caller of a call is gone."""
        if call.began is None and self._waiting.pop(call, None) is None:
            # The run was stopped, and the call with it.
            return
        if self.ledger is not None:
            self.ledger.settle(call, None)
        self._limiter.withdraw(call)
        self._let_go()

    def close(self) -> None:
        """The run is over."""
        if self._timer is not None:
            self._timer.cancel()

    def _let_go(self) -> None:
        """Let all calls go that may begin now, and look again when the next one may."""
        if self.ledger is not None and self.ledger.is_used_up:
            self.stop(Stop(f"budget of {self.ledger.budget} reached"))
        if self.stopped is not None:
            self.stop(self.stopped)
            return
        unpriced = ""

        def admits(call: Call) -> bool:
            nonlocal unpriced
            try:
                return self.ledger is None or self.ledger.admits(call)
            except UnpricedModelError:
                unpriced = call.model
                return False

        callbacks = [self._waiting.pop(call) for call in self._limiter.let_go(admits)]
        if unpriced:
            price = f'"{unpriced}" = {{input_mtok = 0.3, output_mtok = 2.5}} in [tool.evaltui.prices]'
            what = f"the price of {unpriced} is unknown. Give it, e.g. {price}, a budget in tokens, or"
            self.stop(Stop(f"{what} --allow-unmetered to count its calls as free", is_refusal=True))
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if (at := self._limiter.next_look) is not None:
            delay = max(at - self.clock(), 0.001)
            self._timer = asyncio.get_running_loop().call_later(delay, self._let_go)
        # Last: what they do may ask for more.
        for on_go, _ in callbacks:
            on_go()
