"""Costs of model calls as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evaltui.core.cost.prices import OWN_PRICE_SOURCE, is_scripted
from evaltui.core.model.spending import ModelSpending, Spending, Tokens
from evaltui.text.columns import Column, Table
from evaltui.text.figures import UNKNOWN, counted, plural, show_money, show_number
from evaltui.text.lines import Line, cut, wrap
from evaltui.text.values import visible


def may_cost(spent: Spending | None) -> bool:
    """Whether any model call cost something, or may have."""
    return spent is not None and any(
        spending.usd or not is_scripted(spending.model) for spending in spent.models
    )


def estimate_note(spent: Spending) -> str:
    """The source of prices: `estimated from list prices of genai-prices 0.2.3`; "" for none."""
    listed = [f"list prices of {name}" for name in spent.prices if name != OWN_PRICE_SOURCE]
    sources = " and ".join(
        [*listed, *(OWN_PRICE_SOURCE for name in spent.prices if name == OWN_PRICE_SOURCE)]
    )
    return f"estimated from {sources}" if sources else ""


def cost_lines(spent: Spending | None, width: int) -> Iterator[Line]:
    """The total cost, then a line for each payer and model; none where no call can have cost anything."""
    if spent is None or not may_cost(spent):
        return
    prices = f", {estimate_note(spent)}" if estimate_note(spent) else ""
    yield from wrap([("cost  ", "muted"), (str(spent.cost), "bold"), (prices, "muted")], width)
    yield from model_lines(spent, width)


def model_lines(spent: Spending | None, width: int) -> Iterator[Line]:
    """A line for each payer and model; none where no call can have cost anything."""
    if spent is None or not may_cost(spent):
        return
    table = Table(_COLUMNS, spent.models, width)
    for model in spent.models:
        yield cut(table.line(model), width)


def _cost(spending: ModelSpending) -> str:
    saved = f"saved {show_money(spending.saved_usd)}" if spending.replayed else ""
    usd = spending.cost.usd
    unpriced = counted(spending.unpriced, "unpriced call") if spending.unpriced else ""
    priced = show_money(usd) if spending.calls and usd is not None else ""
    return ", ".join(filter(None, [priced, unpriced, saved]))


def _calls(spending: ModelSpending) -> str:
    calls = counted(spending.calls, "call") if spending.calls else ""
    replayed = f"{show_number(spending.replayed)} replayed" if spending.replayed else ""
    return ", ".join(filter(None, [calls, replayed]))


_MAX_WIDTH = 1_000
_COLUMNS: Sequence[Column[ModelSpending]] = (
    Column("", lambda spending: spending.payer, 0, _MAX_WIDTH, role="muted"),
    Column("", lambda spending: visible(spending.model) or UNKNOWN, 0, _MAX_WIDTH, role="muted"),
    Column("", _cost, 0, _MAX_WIDTH),
    Column("", _calls, 0, _MAX_WIDTH, role="muted"),
    Column(
        "",
        lambda spending: tokens_in_words(spending.tokens + spending.saved_tokens),
        0,
        _MAX_WIDTH,
        role="muted",
    ),
)


def tokens_in_words(tokens: Tokens) -> str:
    """Numbers of tokens as text: `9,612 → 1,038 tokens (1,200 cached, 300 thoughts)`."""
    if tokens.total is None:
        return f"{UNKNOWN} {plural(0, 'token')}"
    counts = " → ".join(map(show_number, (tokens.input, tokens.output)))
    parts = ((tokens.cached, "cached"), (tokens.thoughts, "thoughts"))
    details = ", ".join(f"{show_number(count)} {name}" for count, name in parts if count)
    text = f"{counts} {plural(0, 'token')}"
    return f"{text} ({details})" if details else text
