"""What the model calls of a run have spent of its budget, and what those under way may spend."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from evaltui.core.cost.metering import tokens_of
from evaltui.core.cost.prices import Prices
from evaltui.core.model.budget import Amount, Budget
from evaltui.core.model.events import Json
from evaltui.core.model.spending import Tokens
from evaltui.runner.parent.gate.limiter import Call
from evaltui.text.figures import counted, show_money


class UnpricedModelError(Exception):
    """A budget in dollars cannot count the calls of a model."""


class Ledger:
    """Of one run. A call that ends and does not tell its tokens counts with its estimate."""

    def __init__(
        self, budget: Budget, prices: Prices, estimate: Callable[[str, int], Tokens], *, counts_all: bool
    ) -> None:
        """`estimate` makes the tokens of a call of its model and the characters of its request. Where it
        `counts_all`, a model without a price is an error."""
        self.budget = budget
        self.total = Amount()
        """Of calls that are over."""
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
        """What is spent: `$5.02`, `2,000,412 tokens`."""
        if self.budget.unit == "USD":
            return show_money(self.spent)
        return counted(round(self.spent), "token")

    def carry_over(self, amount: Amount) -> None:
        """Count what an earlier part of the run has spent."""
        self.total += amount

    def admits(self, call: Call) -> bool:
        """Whether a call may begin, which it does then: not while those under way may use up the rest.

        Raises UnpricedModelError.
        """
        under_way = sum(one.in_unit(self.budget.unit) for one in self._under_way.values())
        if self.spent + under_way >= self.budget.amount:
            return False
        tokens = self._estimate(call.model, call.size)
        if self._counts_all and self.budget.unit == "USD" and self._price(call.model, tokens) is None:
            raise UnpricedModelError(call.model)
        self._under_way[call] = self._amount(call.model, tokens, 0.0)
        return True

    def settle(self, call: Call, usage: Json | None) -> None:
        """A call is over; `usage` is genai's usage metadata, None where nobody knows."""
        estimated = self._under_way.pop(call, None)
        if estimated is None:
            return
        tokens = tokens_of(usage)
        self.total += estimated if tokens is None else self._amount(call.model, tokens, estimated.usd)

    def drop(self, call: Call) -> None:
        """A call was refused by its model, or never made: it costs nothing."""
        self._under_way.pop(call, None)

    def _amount(self, model: str, tokens: Tokens, unpriced: float) -> Amount:
        """Without a price, it costs `unpriced`."""
        price = self._price(model, tokens)
        return Amount(unpriced if price is None else price, float(tokens.total or 0))

    def _price(self, model: str, tokens: Tokens) -> float | None:
        return self._prices.price_of(model, tokens, datetime.now(UTC))
