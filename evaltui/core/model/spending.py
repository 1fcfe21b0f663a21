"""Spending on model calls: tokens and US dollars by payer and model."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from pydantic import computed_field

from evaltui.core.model.base_model import LEFT_OUT_IF_EMPTY, LEFT_OUT_IF_NONE, Dollars, keys_first
from evaltui.text.figures import UNKNOWN, counted, show_money

Payer = Literal["agent", "judge", "simulated user"]
"""The payer of model calls."""

Number = TypeVar("Number", int, float)


def known_sum(number: Number | None, other: Number | None) -> Number | None:
    """The sum of the known ones of two numbers; None where both are unknown."""
    if number is None:
        return other
    return number if other is None else number + other


@dataclass(frozen=True, slots=True)
class Tokens:
    """Numbers of tokens by kind; None is unknown."""

    input: int | None = None
    """Input tokens, including cached ones."""
    cached: int | None = None
    """Input tokens from the provider's cache."""
    thoughts: int | None = None
    """Output tokens of thoughts."""
    output: int | None = None
    """Output tokens, including thoughts."""

    @property
    def total(self) -> int | None:
        """Input and output tokens, as far as they are known."""
        return known_sum(self.input, self.output)

    def __add__(self, other: Tokens) -> Tokens:
        """The sums of known numbers."""
        return Tokens(
            known_sum(self.input, other.input),
            known_sum(self.cached, other.cached),
            known_sum(self.thoughts, other.thoughts),
            known_sum(self.output, other.output),
        )


@dataclass(frozen=True, slots=True)
class Cost:
    """A cost in US dollars, as far as it is known."""

    usd: Dollars | None = None
    """US dollars of calls with a known price; 0 if these were free, None without a known price."""
    saved_usd: Dollars | None = None
    """US dollars that replayed calls would have cost; None without such calls or without a known price."""
    unpriced: int = 0
    """Number of calls with an unknown price."""
    unseen: int = 0
    """Number of repeats in which the agent may have made unobserved model calls."""

    @property
    def is_exact(self) -> bool:
        """Whether the price of every call is known."""
        return not self.unpriced and not self.unseen

    @property
    def short(self) -> str:
        """The cost in short: `$0.011`; `$0.011+` where a part of it is unknown."""
        is_part = self.usd is not None and not self.is_exact
        return f"{show_money(self.usd)}+" if is_part else show_money(self.usd)

    @property
    def in_words(self) -> str:
        """The cost in words without savings: `$0.011 + 3 unpriced calls`."""
        unknown = [counted(self.unpriced, "unpriced call")] if self.unpriced else []
        unknown += ["unseen calls of the agent"] if self.unseen else []
        priced = [show_money(self.usd)] if self.usd is not None else []
        return " + ".join([*priced, *unknown]) or UNKNOWN

    def __str__(self) -> str:
        """The cost in words: `$0.011 + 3 unpriced calls, saved $0.31`."""
        text = self.in_words
        return text if self.saved_usd is None else f"{text}, saved {show_money(self.saved_usd)}"

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            known_sum(self.usd, other.usd),
            known_sum(self.saved_usd, other.saved_usd),
            self.unpriced + other.unpriced,
            self.unseen + other.unseen,
        )

    @staticmethod
    def of_all(costs: Collection[Cost]) -> Cost | None:
        """The sum of costs; None for no costs."""
        return sum(costs, Cost()) if costs else None

    def shared_by(self, number: int) -> Cost:
        """The share of one of `number` parts."""
        usd, saved = (None if dollars is None else dollars / number for dollars in (self.usd, self.saved_usd))
        return replace(self, usd=usd, saved_usd=saved)


@dataclass(frozen=True, slots=True)
class KnownCost(Cost):
    """A cost in reports of matrices, without unknown values and counts of 0."""

    usd: Dollars | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    saved_usd: Dollars | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    unpriced: int = field(default=0, metadata=LEFT_OUT_IF_EMPTY)
    unseen: int = field(default=0, metadata=LEFT_OUT_IF_EMPTY)

    @classmethod
    def of(cls, cost: Cost | None) -> KnownCost | None:
        return None if cost is None else cls(cost.usd, cost.saved_usd, cost.unpriced, cost.unseen)


@dataclass(frozen=True, slots=True)
class ModelSpending:
    """Spending of a payer on a model."""

    payer: Payer
    model: str
    """The requested model; "" where it is unknown."""
    calls: int = 0
    """Number of calls to the model, including failed ones."""
    replayed: int = 0
    """Number of calls that a recording answered."""
    unmetered: int = 0
    """Number of calls with unknown tokens."""
    unpriced: int = 0
    """Number of calls with an unknown price."""
    tokens: Tokens = Tokens()
    """Tokens of the calls."""
    saved_tokens: Tokens = Tokens()
    """Tokens of the replayed calls."""
    usd: Dollars | None = None
    """US dollars of calls with a known price; None without one."""
    saved_usd: Dollars | None = None
    """US dollars that the replayed calls would have cost; None without a known price."""
    prices: str = ""
    """The source of the prices, such as `genai-prices 0.2.3`; "" without prices."""

    @property
    def cost(self) -> Cost:
        free = None if self.unpriced else 0.0
        return Cost(free if self.usd is None else self.usd, self.saved_usd, self.unpriced)

    def __add__(self, other: ModelSpending) -> ModelSpending:
        """The sum of two spendings with the same payer, model and source of prices."""
        return ModelSpending(
            self.payer,
            self.model,
            self.calls + other.calls,
            self.replayed + other.replayed,
            self.unmetered + other.unmetered,
            self.unpriced + other.unpriced,
            self.tokens + other.tokens,
            self.saved_tokens + other.saved_tokens,
            known_sum(self.usd, other.usd),
            known_sum(self.saved_usd, other.saved_usd),
            self.prices or other.prices,
        )


@dataclass(frozen=True, slots=True)
class Spending:
    """Spending of a repeat, a case or a run; empty for no model calls, which cost nothing."""

    models: tuple[ModelSpending, ...] = field(default=())
    """Spending by payer and model, in the order of their first calls."""
    unseen: int = 0
    """Number of repeats in which the agent may have made unobserved model calls."""
    stubbed: int = field(default=0, metadata=LEFT_OUT_IF_EMPTY)
    """Number of stubbed tool calls of the agent."""
    stubbed_models: int = field(default=0, metadata=LEFT_OUT_IF_EMPTY)
    """Number of model calls inside these when they were recorded; their tokens and cost are unknown."""

    @property
    def cost(self) -> Cost:
        before = Cost(None if self.models or self.unseen else 0.0, unseen=self.unseen)
        return sum((entry.cost for entry in self.models), before)

    @property
    def costs(self) -> dict[Payer, Cost]:
        """Costs by payer, always including the agent."""
        others: tuple[Payer, ...] = tuple(model.payer for model in self.models)
        return {payer: self.of(payer).cost for payer in ("agent", *others)}

    def models_of(self, payer: Payer) -> tuple[str, ...]:
        """The requested models of a payer, each once."""
        return tuple(dict.fromkeys(entry.model for entry in self.models if entry.payer == payer))

    @computed_field
    @property
    def usd(self) -> Dollars | None:
        """US dollars of calls with a known price; 0 if these were free, None without a known price."""
        return self.cost.usd

    @computed_field
    @property
    def saved_usd(self) -> Dollars | None:
        """US dollars that replayed calls would have cost; None without such calls or without a known
        price."""
        return self.cost.saved_usd

    @computed_field
    @property
    def unpriced(self) -> int:
        """Number of calls with an unknown price."""
        return self.cost.unpriced

    @property
    def unmetered(self) -> int:
        """Number of calls with unknown tokens."""
        return sum(model.unmetered for model in self.models)

    @property
    def calls(self) -> int:
        return sum(model.calls for model in self.models)

    @property
    def replayed(self) -> int:
        return sum(model.replayed for model in self.models)

    @property
    def tokens(self) -> Tokens:
        return sum((model.tokens for model in self.models), Tokens())

    @property
    def saved_tokens(self) -> Tokens:
        return sum((model.saved_tokens for model in self.models), Tokens())

    @computed_field
    @property
    def prices(self) -> tuple[str, ...]:
        """The sources of the prices, such as `genai-prices 0.2.3`."""
        return tuple(dict.fromkeys(model.prices for model in self.models if model.prices))

    _keys = keys_first("usd", "saved_usd", "unpriced", "unseen", "prices", "models")

    def of(self, payer: Payer) -> Spending:
        """The spending of a payer."""
        models = tuple(model for model in self.models if model.payer == payer)
        return replace(self, models=models) if payer == "agent" else Spending(models)

    def __add__(self, other: Spending) -> Spending:
        if other == _NOTHING:
            return self
        if self == _NOTHING:
            return other
        by_key: dict[tuple[str, str, str], ModelSpending] = {}
        for entry in (*self.models, *other.models):
            key = entry.payer, entry.model, entry.prices
            by_key[key] = by_key[key] + entry if key in by_key else entry
        return Spending(
            tuple(by_key.values()),
            self.unseen + other.unseen,
            self.stubbed + other.stubbed,
            self.stubbed_models + other.stubbed_models,
        )


_NOTHING = Spending()


def total(spent: Iterable[Spending | None]) -> Spending | None:
    """The sum of spendings, in which unknown ones count as unseen; None where all are unknown."""
    added = RunningTotal()
    for part in spent:
        added.add(part)
    return added.value


class RunningTotal:
    """A sum of spendings that are added one by one, as by `total`."""

    __slots__ = ("_is_known", "_sum")

    def __init__(self) -> None:
        self._sum = Spending()
        self._is_known = False

    def add(self, spent: Spending | None) -> None:
        self._is_known |= spent is not None
        self._sum += Spending(unseen=1) if spent is None else spent

    @property
    def value(self) -> Spending | None:
        return self._sum if self._is_known else None
