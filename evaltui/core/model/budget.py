"""What a run may spend."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from evaltui.text.figures import counted

WANTED_BUDGET = "an amount such as 5USD or 2Mtok"

_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_FORM = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)\s*([kmg]?)(usd|tok)", re.IGNORECASE)


@dataclass(frozen=True)
class Budget:
    """An amount above 0."""

    amount: float
    """In dollars or tokens."""
    unit: Literal["USD", "tok"]

    def __str__(self) -> str:
        """`5 USD`, `2,000,000 tokens`."""
        if self.unit == "tok":
            return counted(round(self.amount), "token")
        return f"{int(self.amount) if self.amount.is_integer() else self.amount} USD"


def parse_budget(text: str) -> Budget:
    """`5USD`, `0.5 USD`, `2Mtok`, `500ktok`. Raises ValueError for anything else."""
    found = _FORM.fullmatch(text.strip())
    amount = float(found[1]) * _UNITS[found[2].lower()] if found else 0.0
    if found is None or not amount or (found[3].lower() == "usd" and found[2]):
        raise ValueError(f"wanted is {WANTED_BUDGET}")
    return Budget(amount, "USD" if found[3].lower() == "usd" else "tok")
