"""Budget of a run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from evaltui.text.figures import counted

if TYPE_CHECKING:
    from evaltui.core.model.spending import Spending

WANTED_BUDGET = "an amount such as 5USD or 2Mtok"

_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_FORM = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)\s*([kmg]?)(usd|tok)", re.IGNORECASE)


@dataclass(frozen=True)
class Budget:
    """An amount above 0."""

    amount: float
    """Number of dollars or tokens."""
    unit: Literal["USD", "tok"]

    def __str__(self) -> str:
        """`5 USD`, `2,000,000 tokens`."""
        if self.unit == "tok":
            return counted(round(self.amount), "token")
        return f"{int(self.amount) if self.amount.is_integer() else self.amount} USD"


@dataclass(frozen=True)
class Amount:
    """Spending of model calls, as budgets count it."""

    usd: float = 0.0
    """US dollars of the calls with a known price."""
    tokens: float = 0.0

    @classmethod
    def of(cls, spending: Spending | None) -> Amount:
        """The part of it that is known."""
        if spending is None:
            return cls()
        return cls(spending.cost.usd or 0.0, sum(model.tokens.total or 0 for model in spending.models))

    def in_unit(self, unit: Literal["USD", "tok"]) -> float:
        return self.usd if unit == "USD" else self.tokens

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.usd + other.usd, self.tokens + other.tokens)

    def beyond(self, other: Amount) -> Amount:
        """The part that exceeds another amount."""
        return Amount(max(self.usd - other.usd, 0.0), max(self.tokens - other.tokens, 0.0))


def parse_budget(text: str) -> Budget:
    """`5USD`, `0.5 USD`, `2Mtok`, `500ktok`. Raises ValueError for anything else."""
    match = _FORM.fullmatch(text.strip())
    amount = float(match[1]) * _UNITS[match[2].lower()] if match else 0.0
    if match is None or not amount or (match[3].lower() == "usd" and match[2]):
        raise ValueError(f"wanted is {WANTED_BUDGET}")
    return Budget(amount, "USD" if match[3].lower() == "usd" else "tok")
