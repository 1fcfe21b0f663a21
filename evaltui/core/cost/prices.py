"""Prices of model calls: from the config, else the list price in genai-prices, else unknown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from importlib import import_module, metadata
from typing import TYPE_CHECKING

from evaltui.core.model.config import OwnPrice
from evaltui.core.model.events import SCRIPTED_PREFIX
from evaltui.core.model.spending import Tokens

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo

_PRICE_TABLE = "genai-prices"
OWN_PRICE_SOURCE = "own prices"
"""The source of prices that the config or the project's settings define."""

_MILLION = 1_000_000
# `models/NAME`, `publishers/google/models/NAME`, `projects/P/locations/L/publishers/google/models/NAME`
_RESOURCE_PREFIX = re.compile(r"^(?:.*/)?models/(?=[^/]+$)")


@dataclass(frozen=True)
class Prices:
    """The prices of models in a run."""

    own: Mapping[str, OwnPrice] = field(default_factory=dict)
    """Prices by name of the model, with or without prefix."""

    def price_of(self, model: str, tokens: Tokens | None, at: datetime) -> float | None:
        """US dollars of a call at a time; None where the price is unknown.

        Scripted models cost nothing unless a price is set for them.
        """
        if (own := self._find_own(model)) is not None:
            return _own_price(own, tokens)
        if is_scripted(model):
            return 0.0
        return None if tokens is None else _list_price(model, tokens, at)

    def source_of(self, model: str) -> str:
        """The source of a model's price: `own prices`, `genai-prices 0.2.3`; "" for a scripted model."""
        if self._find_own(model) is not None:
            return OWN_PRICE_SOURCE
        return "" if is_scripted(model) else table_version()

    def need_table(self, models: Iterable[str]) -> bool:
        """Whether a model needs the table of list prices, which is not loaded yet."""
        if load_table.cache_info().currsize:
            return False
        return any(self._find_own(model) is None and not is_scripted(model) for model in models)

    def _find_own(self, model: str) -> OwnPrice | None:
        if not self.own:
            return None
        price = self.own.get(model)
        return self.own.get(_RESOURCE_PREFIX.sub("", model)) if price is None else price


def is_scripted(model: str) -> bool:
    """Whether a model is scripted: it answers by rules, without network and cost."""
    return model.startswith(SCRIPTED_PREFIX)


def _own_price(price: OwnPrice, tokens: Tokens | None) -> float | None:
    if not any((price.input_mtok, price.output_mtok, price.cached_input_mtok)):
        return 0.0
    if tokens is None or tokens.input is None:
        return None
    cached = min(tokens.cached or 0, tokens.input)
    of_cached = price.input_mtok if price.cached_input_mtok is None else price.cached_input_mtok
    into = (tokens.input - cached) * price.input_mtok + cached * of_cached
    return (into + (tokens.output or 0) * price.output_mtok) / _MILLION


@cache
def table_version() -> str:
    """The table of list prices with its version; "" where it is not installed."""
    try:
        return f"{_PRICE_TABLE} {metadata.version(_PRICE_TABLE)}"
    except metadata.PackageNotFoundError:
        return ""


@cache
def load_table() -> None:
    """Loads the table of list prices if it is installed, which takes a second or more."""
    if table_version():
        import_module("genai_prices")


def _list_price(model: str, tokens: Tokens, at: datetime) -> float | None:
    info = _model_info(model) if table_version() else None
    if info is None or tokens.input is None:
        return None
    from genai_prices import Usage

    cached = min(tokens.cached or 0, tokens.input)
    usage = Usage(input_tokens=tokens.input, cache_read_tokens=cached, output_tokens=tokens.output or 0)
    try:
        return float(info.get_prices(at).calc_price(usage)["total_price"])
    except ValueError:
        # A kind of tokens that the model has no price for.
        return None


@cache
def _model_info(model: str) -> ModelInfo | None:
    from genai_prices.data_snapshot import get_snapshot

    table = get_snapshot()
    name = _RESOURCE_PREFIX.sub("", model)
    provider, slash, rest = name.partition("/")
    try:
        return table.find_provider_model(rest if slash else name, None, provider if slash else None, None)[1]
    except LookupError:
        return None
