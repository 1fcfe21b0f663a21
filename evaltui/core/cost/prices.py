"""The price of a model call: what the config says, else the list price in genai-prices, else unknown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from importlib import import_module, metadata
from typing import TYPE_CHECKING

from evaltui.core.model.config import OwnPrice
from evaltui.core.model.events import STAND_IN
from evaltui.core.model.spending import Tokens

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo

_TABLE = "genai-prices"
OWN = "own prices"
"""Where prices are from that the config or the project's settings name."""

_MILLION = 1_000_000
# `models/NAME`, `publishers/google/models/NAME`, `projects/P/locations/L/publishers/google/models/NAME`
_RESOURCE = re.compile(r"^(?:.*/)?models/(?=[^/]+$)")


@dataclass(frozen=True)
class Prices:
    """The prices of models that hold in a run."""

    own: Mapping[str, OwnPrice] = field(default_factory=dict)
    """Prices by the model's name, with or without its prefix."""

    def price_of(self, model: str, tokens: Tokens | None, at: datetime) -> float | None:
        """US dollars of a call that was made `at`; None where nobody knows.

        Scripted models cost nothing, unless there are own prices for them.
        """
        if (own := self._own(model)) is not None:
            return _own_price(own, tokens)
        if is_stand_in(model):
            return 0.0
        return None if tokens is None else _list_price(model, tokens, at)

    def source_of(self, model: str) -> str:
        """Where the price of a model is from: `own prices`, `genai-prices 0.2.3`; "" for a scripted model."""
        if self._own(model) is not None:
            return OWN
        return "" if is_stand_in(model) else table_version()

    def need_table(self, models: Iterable[str]) -> bool:
        """Whether the table of list prices is asked for one of them and not loaded, which takes its time."""
        if load_table.cache_info().currsize:
            return False
        return any(self._own(model) is None and not is_stand_in(model) for model in models)

    def _own(self, model: str) -> OwnPrice | None:
        if not self.own:
            return None
        price = self.own.get(model)
        return self.own.get(_RESOURCE.sub("", model)) if price is None else price


def is_stand_in(model: str) -> bool:
    """Whether a model answers by rules, without network and cost."""
    return model.startswith(STAND_IN)


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
        return f"{_TABLE} {metadata.version(_TABLE)}"
    except metadata.PackageNotFoundError:
        return ""


@cache
def load_table() -> None:
    """Loads the table of list prices, if it is installed: a second and more on a slow machine."""
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
    name = _RESOURCE.sub("", model)
    provider, slash, rest = name.partition("/")
    try:
        return table.find_provider_model(rest if slash else name, None, provider if slash else None, None)[1]
    except LookupError:
        return None
