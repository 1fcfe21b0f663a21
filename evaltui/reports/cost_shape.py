"""What model calls cost, in JSON reports, as types."""

from __future__ import annotations

from pydantic import BaseModel

from evaltui.core.model.spending import Payer


class Tokens(BaseModel):
    input: int | None
    """The cached ones included."""
    cached: int | None
    thoughts: int | None
    output: int | None
    """The thoughts included."""


class Cost(BaseModel):
    """US dollars."""

    usd: float | None
    """Of the calls with a known price; 0 where none cost anything, null where no price is known."""
    saved_usd: float | None
    """What replayed calls would have cost."""
    unpriced: int
    """Calls that cost an unknown amount."""
    unseen: int
    """Repeats in which the agent may have asked models that nobody saw."""


class ModelSpending(BaseModel):
    """The calls of one payer to one model."""

    payer: Payer
    model: str
    """"" where nobody knows."""
    calls: int
    replayed: int
    unmetered: int
    """Calls of which nobody knows the tokens."""
    unpriced: int
    tokens: Tokens
    saved_tokens: Tokens
    """Of the replayed calls."""
    usd: float | None
    saved_usd: float | None
    prices: str
    """Where the price is from; "" for none."""


class Spent(Cost):
    prices: list[str]
    """Where the prices are from, such as `genai-prices 0.2.3`."""
    models: list[ModelSpending]
