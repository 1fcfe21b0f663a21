"""Model calls among the events of a repeat, and those of judges: tokens, costs, models that answered."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from evaltui.core.cost.prices import Prices, load_table
from evaltui.core.model.events import (
    MODEL_CALLS,
    SCRIPTED_PREFIX,
    SIMULATED_USER,
    SOME_MODEL_CALLS,
    Event,
    Json,
)
from evaltui.core.model.json_values import is_number
from evaltui.core.model.served import ServedModel, served_models
from evaltui.core.model.spending import ModelSpending, Payer, Spending, Tokens


@dataclass(frozen=True)
class MeteredCall:
    """A model call."""

    payer: Payer
    model: str
    """The requested model; "" where it is unknown."""
    tokens: tuple[Tokens | None, ...] = (None,)
    """Tokens of each attempt that may have cost something; None where they are unknown."""
    is_replayed: bool = False
    at: datetime | None = None
    """Time of the call; None where it is unknown."""
    version: str = ""
    """The model that the response names; "" where it names none."""
    turn: int | None = None
    """Its turn, from 0; None where it is unknown."""
    number: int = 1
    """Number among the calls of its payer in the turn, of a judge among its votes, from 1."""
    metric: str = ""
    """The metric of a judge; "" for other payers."""
    is_requested: bool = True
    """Whether its request was seen: without it, `model` is the version."""


def tokens_of(usage: Mapping[str, Any] | None) -> Tokens | None:
    """The tokens in genai's usage metadata; None where it has none. A kind that is missing counts as 0."""
    counts = usage or {}
    prompt, tool_use, candidates, thoughts, whole = (_count(counts.get(name)) for name in _COUNTS)
    into = None if prompt is None and tool_use is None else (prompt or 0) + (tool_use or 0)
    out = None if candidates is None and thoughts is None else (candidates or 0) + (thoughts or 0)
    if into is None and out is None:
        return None
    if out is None and into is not None:
        out = max((whole or 0) - into, 0)
    return Tokens(into, _count(counts.get("cached_content_token_count")), thoughts, out)


_COUNTS = (
    "prompt_token_count",
    "tool_use_prompt_token_count",
    "candidates_token_count",
    "thoughts_token_count",
    "total_token_count",
)


def _count(value: Any) -> int | None:
    """A count of tokens; None for an invalid one."""
    if value is None:
        return None
    is_count = is_number(value) and 0 <= value < _MAX_COUNT
    return int(value) if is_count and value == int(value) else None


# More is an error of whoever counted.
_MAX_COUNT = 10**15


def spending_on(calls: Iterable[MeteredCall], prices: Prices) -> Spending:
    """The spending of model calls."""
    return sum((Spending((_spending_on(call, prices),)) for call in calls), Spending())


def _spending_on(call: MeteredCall, prices: Prices) -> ModelSpending:
    at = call.at or datetime.now(UTC)
    costs = [prices.price_of(call.model, tokens, at) for tokens in call.tokens]
    prices_known = [usd for usd in costs if usd is not None]
    tokens = sum((attempt for attempt in call.tokens if attempt is not None), Tokens())
    usd = sum(prices_known) if prices_known else None
    source = prices.source_of(call.model) if prices_known else ""
    if call.is_replayed:
        return ModelSpending(
            call.payer, call.model, replayed=1, saved_tokens=tokens, saved_usd=usd, prices=source
        )
    return ModelSpending(
        call.payer,
        call.model,
        calls=1,
        unmetered=int(None in call.tokens),
        tokens=tokens,
        usd=usd,
        unpriced=int(None in costs),
        prices=source,
    )


def calls_in(events: Iterable[Event]) -> tuple[list[MeteredCall], Spending]:
    """The model calls of a repeat, and the counts of its spending that no model call has: see `Spending`."""
    meter = _Meter()
    for event in events:
        meter.add(event)
    return meter.calls(), meter.counts


def served_in(calls: Iterable[MeteredCall]) -> tuple[ServedModel, ...]:
    """The versions of models that answered calls; calls whose responses name none are left out."""
    ordered = sorted(calls, key=lambda call: (-1 if call.turn is None else call.turn, call.number))
    return served_models(
        ServedModel(
            call.payer,
            call.model if call.is_requested else "",
            call.version,
            call.metric,
            replayed=int(call.is_replayed),
            turn=call.turn,
            call=call.number,
        )
        for call in ordered
        if call.version and not call.model.startswith(SCRIPTED_PREFIX)
    )


async def spent_by(
    calls: Collection[MeteredCall], prices: Prices, counts: Spending | None = None
) -> Spending:
    """The spending of model calls, with the counts of `calls_in`."""
    if prices.need_table(call.model for call in calls if any(call.tokens)):
        # Importing it takes its time, in which other cases go on.
        await asyncio.to_thread(load_table)
    return spending_on(calls, prices) + (counts or Spending())


@dataclass
class _Request:
    """A request to a model, with the data of its events so far."""

    call: MeteredCall
    """The call without its tokens."""
    usage: Json = field(default_factory=dict)
    """The last reported value of each count; pieces of a response report cumulative counts."""
    failed: list[Tokens] = field(default_factory=list)
    """Tokens of attempts that failed and were repeated."""
    has_failed: bool = False

    @property
    def metered(self) -> MeteredCall:
        last = tokens_of(self.usage)
        # A request that was refused costs nothing, as far as nobody tells of tokens.
        attempts = [] if self.has_failed and last is None else [last]
        return replace(self.call, tokens=(*self.failed, *attempts))


class _Meter:
    def __init__(self) -> None:
        self._requests: dict[str, _Request] = {}
        # Each with its agent.
        self._reported: list[tuple[str, MeteredCall]] = []
        self._at: datetime | None = None
        self._seen_turns: set[int | None] = set()
        # Turns with the agents whose requests were seen.
        self._asking: set[tuple[int | None, str]] = set()
        self._hidden_turns: set[int | None] = set()
        self._lacks_some = False
        self._stubbed = 0
        self._stubbed_models = 0
        self._numbers: Counter[tuple[Payer, int | None]] = Counter()

    def add(self, event: Event) -> None:
        self._at = _moment(event.data.get("timestamp")) or self._at
        untold = event.data.get("untold", ())
        if MODEL_CALLS in untold:
            self._hidden_turns.add(event.turn)
        self._lacks_some = self._lacks_some or SOME_MODEL_CALLS in untold
        if event.kind == "model_request":
            self._start_request(event)
        elif event.kind == "tool_result" and event.data.get("stubbed"):
            self._stubbed += 1
            self._stubbed_models += _count(event.data.get("stubbed_models")) or 0
        elif request := self._requests.get(event.parent):
            self._continue(request, event)
        elif "step" in event.data or event.kind == "model_response":
            self._add_step(event)

    def _start_request(self, event: Event) -> None:
        if event.data.get("missed"):
            return
        is_agents = event.agent != SIMULATED_USER
        if is_agents:
            self._seen_turns.add(event.turn)
            self._asking.add((event.turn, event.agent))
        payer: Payer = "agent" if is_agents else "simulated user"
        model, is_replayed = str(event.data.get("model") or ""), bool(event.data.get("replayed"))
        number = self._next_number(payer, event.turn)
        self._requests[event.id] = _Request(
            MeteredCall(payer, model, (), is_replayed, self._at, turn=event.turn, number=number)
        )

    def _next_number(self, payer: Payer, turn: int | None) -> int:
        self._numbers[payer, turn] += 1
        return self._numbers[payer, turn]

    def _continue(self, request: _Request, event: Event) -> None:
        if event.data.get("replayed"):
            request.call = replace(request.call, is_replayed=True)
        if event.kind == "model_response":
            request.usage |= event.usage or {}
            if version := event.data.get("model_version"):
                request.call = replace(request.call, version=str(version))
            request.has_failed = False
        elif event.kind == "error" and event.data.get("retrying"):
            if (spent := tokens_of(event.usage)) is not None:
                request.failed.append(spent)
        elif event.kind == "error":
            request.usage |= event.usage or {}
            request.has_failed = True

    def _add_step(self, event: Event) -> None:
        """Adds a step of an agent that reports model calls only by the usage of its steps."""
        model = event.data.get("model_version")
        if event.usage is not None or model is not None:
            tokens = tokens_of(event.usage)
            is_replayed = bool(event.data.get("replayed"))
            number = self._next_number("agent", event.turn)
            name = str(model or "")
            call = MeteredCall(
                "agent", name, (tokens,), is_replayed, self._at, name, event.turn, number, is_requested=False
            )
            self._reported.append((event.agent, call))

    def calls(self) -> list[MeteredCall]:
        seen = [request.metered for request in self._requests.values()]
        tokens = {(call.turn, spent) for call in seen for spent in call.tokens}
        reported = [call for agent, call in self._reported if self._is_unseen(agent, call, tokens)]
        return [*seen, *reported]

    def _is_unseen(self, agent: str, call: MeteredCall, seen: Collection[tuple[int | None, object]]) -> bool:
        """Whether a call that a step reports is none of the requests: in a turn with requests, a call of
        another agent with other tokens."""
        if call.turn not in self._seen_turns:
            return True
        is_asking = not self._asking.isdisjoint(((call.turn, agent), (call.turn, "")))
        return not is_asking and any(
            spent is not None and (call.turn, spent) not in seen for spent in call.tokens
        )

    @property
    def counts(self) -> Spending:
        reported_turns = {call.turn for _, call in self._reported}
        # Model calls of a turn were not observed, or not all of them.
        is_unseen = self._lacks_some or bool(self._hidden_turns - self._seen_turns - reported_turns)
        return Spending(unseen=int(is_unseen), stubbed=self._stubbed, stubbed_models=self._stubbed_models)


def _moment(timestamp: Any) -> datetime | None:
    """The time for seconds since 1970; None for another value."""
    if timestamp is None or not isinstance(timestamp, int | float):
        return None
    if isinstance(timestamp, bool) or timestamp <= 0:
        return None
    try:
        return datetime.fromtimestamp(timestamp, UTC)
    except (OverflowError, ValueError, OSError):
        return None
