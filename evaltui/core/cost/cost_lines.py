"""What model calls cost, in words and as lines."""

from __future__ import annotations

from collections.abc import Iterator

from evaltui.core.cost.prices import OWN, is_stand_in
from evaltui.core.model.spending import ModelSpending, Spending, Tokens
from evaltui.text.figures import UNKNOWN, counted, plural, show_money, show_number
from evaltui.text.lines import Line, cut, pad, wrap
from evaltui.text.values import visible


def is_worth_telling(spent: Spending | None) -> bool:
    """Whether a model was asked that costs something, or may."""
    return spent is not None and any(one.usd or not is_stand_in(one.model) for one in spent.models)


def estimate(spent: Spending) -> str:
    """Where prices are from: `estimated from list prices of genai-prices 0.2.3`; "" where there are none."""
    listed = [f"list prices of {name}" for name in spent.prices if name != OWN]
    sources = " and ".join([*listed, *(OWN for name in spent.prices if name == OWN)])
    return f"estimated from {sources}" if sources else ""


def cost_lines(spent: Spending | None, width: int) -> Iterator[Line]:
    """The sum, then a line for each payer and model; none where nothing is worth telling."""
    if spent is None or not is_worth_telling(spent):
        return
    prices = f", {estimate(spent)}" if estimate(spent) else ""
    yield from wrap([("cost  ", "muted"), (str(spent.cost), "bold"), (prices, "muted")], width)
    yield from model_lines(spent, width)


def model_lines(spent: Spending | None, width: int) -> Iterator[Line]:
    """A line for each payer and model; none where nothing is worth telling."""
    if spent is None or not is_worth_telling(spent):
        return
    rows = [_row(one) for one in spent.models]
    columns = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        payer, model, cost, *rest = (pad(text, column) for text, column in zip(row, columns, strict=True))
        line = [(f"  {payer}  {model}  ", "muted"), (f"{cost}  ", ""), ("  ".join(rest).rstrip(), "muted")]
        yield cut(line, width)


def _row(one: ModelSpending) -> tuple[str, ...]:
    calls = [counted(one.calls, "call")] if one.calls else []
    calls += [f"{show_number(one.replayed)} replayed"] if one.replayed else []
    saved = f"saved {show_money(one.saved_usd)}" if one.replayed else ""
    usd = one.usd if one.usd is not None or one.unpriced else 0.0
    unpriced = counted(one.unpriced, "unpriced call") if one.unpriced else ""
    known = show_money(usd) if one.calls and usd is not None else ""
    cost = ", ".join(filter(None, [known, unpriced, saved]))
    tokens = one.tokens + one.saved_tokens
    return one.payer, visible(one.model) or UNKNOWN, cost, ", ".join(calls), tokens_in_words(tokens)


def tokens_in_words(tokens: Tokens) -> str:
    """`9,612 → 1,038 tokens (1,200 cached, 300 thoughts)`"""
    if tokens.total is None:
        return f"{UNKNOWN} {plural(0, 'token')}"
    known = " → ".join(map(show_number, (tokens.input, tokens.output)))
    parts = ((tokens.cached, "cached"), (tokens.thoughts, "thoughts"))
    details = ", ".join(f"{show_number(count)} {name}" for count, name in parts if count)
    text = f"{known} {plural(0, 'token')}"
    return f"{text} ({details})" if details else text
