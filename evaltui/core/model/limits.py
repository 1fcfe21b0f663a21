"""Limits of model calls per minute and at once, and budgets."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal

from ...text.figures import counted
from .json_values import is_number

if TYPE_CHECKING:
    from evaltui.core.model.spending import Spending

KEYS = {"rpm": "requests per minute", "tpm": "tokens per minute", "concurrent": "calls at once"}
LIMIT_FORM = "MODEL:rpm=N,tpm=N,concurrent=N, e.g. gemini-*:rpm=600,tpm=1M"
_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}


@dataclass(frozen=True)
class Limit:
    """A limit for all models with matching names together; None is no limit."""

    model: str
    """A pattern for the name of the model, such as `gemini-*`."""
    rpm: float | None = None
    """Requests per minute."""
    tpm: float | None = None
    """Tokens per minute, input and output."""
    concurrent: int | None = None
    """Concurrent calls."""

    def matches(self, model: str) -> bool:
        """Whether the limit applies to a model."""
        return is_named(model, self.model)

    def divided_by(self, count: int) -> Limit:
        """The part of one of `count` runs that share the limit; at least one concurrent call."""
        if count == 1:
            return self
        return replace(
            self,
            rpm=None if self.rpm is None else self.rpm / count,
            tpm=None if self.tpm is None else self.tpm / count,
            concurrent=None if self.concurrent is None else max(1, self.concurrent // count),
        )

    def to_json(self) -> dict[str, float]:
        """The set limits by key."""
        return {key: value for key in KEYS if (value := getattr(self, key)) is not None}

    def __str__(self) -> str:
        """The limit in the form that `parse_limit` reads."""
        return f"{self.model}:{','.join(f'{key}={_to_text(value)}' for key, value in self.to_json().items())}"


@dataclass(frozen=True)
class CallRate:
    """The number of calls in the last minute, and its limit."""

    made: float
    limit: float
    """Calls per minute."""


def is_named(model: str, pattern: str) -> bool:
    """Whether a pattern matches a model, by its whole name or by the name without provider."""
    names = (model, model.rpartition("/")[2])
    return any(fnmatchcase(name.lower(), pattern.lower()) for name in names)


def parse_limit(text: str) -> Limit:
    """The limit in a text: `gemini-*:rpm=600,tpm=1M,concurrent=8`. Raises ValueError with the reason."""
    model, colon, values = text.rpartition(":")
    pairs = [pair.partition("=") for pair in values.split(",")]
    if not (colon and model.strip() and all(equals for _, equals, _ in pairs)):
        raise ValueError(f"wanted is {LIMIT_FORM}")
    keys = [key.strip() for key, _, _ in pairs]
    if twice := next((key for key in keys if keys.count(key) > 1), ""):
        raise ValueError(f"{twice} is given twice")
    return limit_of(
        model.strip(), {key: _number(value) for key, (_, _, value) in zip(keys, pairs, strict=True)}
    )


def limit_of(model: str, values: Mapping[str, Any]) -> Limit:
    """The limit in a table of values. Raises ValueError with the reason."""
    if wrong := next((key for key in values if key not in KEYS), None):
        raise ValueError(f"{wrong} is unknown. Known: {', '.join(KEYS)}")
    if not values:
        raise ValueError(f"no limit is given: {', '.join(KEYS)}")
    for key, value in values.items():
        if not is_number(value) or value <= 0 or (key == "concurrent" and value != int(value)):
            number_kind = "a whole number" if key == "concurrent" else "a number"
            raise ValueError(f"{key} ({KEYS[key]}) is not {number_kind} above 0")
    rpm, tpm, concurrent = (values.get(key) for key in ("rpm", "tpm", "concurrent"))
    return Limit(
        model,
        None if rpm is None else float(rpm),
        None if tpm is None else float(tpm),
        None if concurrent is None else int(concurrent),
    )


def limits_of(table: Any) -> tuple[Limit, ...]:
    """The limits in a table such as `{"gemini-*": {"rpm": 600}}`. Raises ValueError with the reason."""
    if not isinstance(table, Mapping):
        raise ValueError('no table of limits by model, e.g. "gemini-*" = {rpm = 600}')
    limits = []
    for model, values in table.items():
        if not isinstance(values, Mapping):
            raise ValueError(f"{model} has no table of limits: {', '.join(KEYS)}")
        try:
            limits.append(limit_of(model, values))
        except ValueError as error:
            raise ValueError(f"{model}: {error}") from None
    return tuple(limits)


def _number(text: str) -> float:
    """The number in a text: `600`, `1.5M`, `250k`; NaN for another text."""
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,15})?|\d{1,3}e\d{1,2})([km]?)", text.strip().lower())
    return float(match[1]) * _UNITS[match[2]] if match else math.nan


def _to_text(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:g}"


BUDGET_FORM = "an amount such as 5USD or 2Mtok"

_FORM = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)\s*([kmg]?)(usd|tok)", re.IGNORECASE)


@dataclass(frozen=True)
class Budget:
    """A budget: an amount above 0 with its unit."""

    amount: float
    """Number of dollars or tokens."""
    unit: Literal["USD", "tok"]

    def __str__(self) -> str:
        """The budget as text: `5 USD`, `2,000,000 tokens`."""
        if self.unit == "tok":
            return counted(round(self.amount), "token")
        return f"{int(self.amount) if self.amount.is_integer() else self.amount} USD"


@dataclass(frozen=True)
class Amount:
    """Spending of model calls as budgets count it."""

    usd: float = 0.0
    """US dollars of the calls with a known price."""
    tokens: float = 0.0

    @classmethod
    def of(cls, spending: Spending | None) -> Amount:
        """The known part of some spending."""
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
    """The budget in a text: `5USD`, `0.5 USD`, `2Mtok`, `500ktok`. Raises ValueError for another text."""
    match = _FORM.fullmatch(text.strip())
    amount = float(match[1]) * _UNITS[match[2].lower()] if match else 0.0
    if match is None or not amount or (match[3].lower() == "usd" and match[2]):
        raise ValueError(f"wanted is {BUDGET_FORM}")
    return Budget(amount, "USD" if match[3].lower() == "usd" else "tok")
