"""Events as spans: turns, agents, model calls with their full requests, and tool calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from ..model.events import CALLS, MODEL_CALLS, Event, Json, parts_in

SpanKind = Literal[
    "turn", "agent", "model", "tool", "text", "transfer", "state", "output", "error", "console"
]
SPAN_KINDS: tuple[SpanKind, ...] = get_args(SpanKind)
# What is a span of its own; everything else begins, continues or ends one.
_LEAVES: dict[str, SpanKind] = {
    kind: kind for kind in SPAN_KINDS if kind not in ("turn", "agent", "model", "tool")
}


@dataclass(slots=True)
class Span:
    """A span: a period of work, or a single event.

    `number` is its index in `SpanTree.spans`, `parent` that of the span around it. `start` and `end` are
    seconds since the start of the run. `call` is the index among the scored calls of its turn; None for other
    spans. `failed` tells whether an error happened in it or below it. `model_tokens` and `step_tokens` are
    the tokens in it and below it, as reported by models and by steps of agents.
    """

    number: int
    kind: SpanKind
    agent: str
    turn: int | None
    parent: int | None
    depth: int
    start: float
    end: float
    events: list[Event] = field(default_factory=list)
    children: list[int] = field(default_factory=list)
    call: int | None = None
    failed: bool = False
    model_tokens: int = 0
    step_tokens: int = 0

    @property
    def seconds(self) -> float:
        """Duration in seconds, without throttling."""
        return max(0.0, self.end - self.start - self.throttled)

    @property
    def throttled(self) -> float:
        """Seconds in which a model call waited for limits of the run."""
        waits = (event.data.get("throttled") for event in self.events)
        return next((float(wait) for wait in waits if isinstance(wait, int | float)), 0.0)

    @property
    def is_open(self) -> bool:
        """Whether its end is unknown: a model without an answer, a tool without a result."""
        return self.kind in ("model", "tool") and len(self.events) == 1

    def event(self, kind: str) -> Event | None:
        """Its last event of a kind; None for none."""
        return next((event for event in reversed(self.events) if event.kind == kind), None)

    @property
    def tokens(self) -> int:
        """Tokens of the model calls in it; of its steps where a framework reports no model calls."""
        return self.model_tokens or self.step_tokens

    @property
    def usage(self) -> Json | None:
        return next((event.usage for event in reversed(self.events) if event.usage is not None), None)


class SpanTree:
    """The tree of spans, updated event by event.

    Spans are numbered by start. `events` is the number of its events, `first_error` the span with the first
    error.
    """

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.events = 0
        self.first_error: int | None = None
        self._turn_spans: list[int] = []
        self._turns: dict[int | None, int] = {}
        # By the id of an event: the span that it is part of.
        self._of_event: dict[str, int] = {}
        # By the span that agents work in: the agent that was heard last there, and each by its name.
        self._last: dict[int, int] = {}
        self._heard: dict[tuple[int, str], int] = {}
        # Only their steps have a branch: what they ask a model does not tell that agents work side by side.
        self._side_by_side: set[tuple[int, str]] = set()
        # By agent span: the text that is being streamed.
        self._streamed: dict[int, int] = {}
        self._calls: dict[int | None, int] = {}
        self._has_models = self._keeps_calls = self._hides_models = False
        self._model_tokens = self._step_tokens = 0

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            untold = event.data.get("untold", ())
            self._keeps_calls = self._keeps_calls or CALLS in untold
            self._hides_models = self._hides_models or MODEL_CALLS in untold
            # Without a change it only carries what the agent framework keeps for itself.
            if event.kind != "state" or event.data.get("delta"):
                self._add(event)
            self.events += 1

    @property
    def turns(self) -> Sequence[Span]:
        return [self.spans[number] for number in self._turn_spans]

    @property
    def tokens(self) -> int:
        """Tokens of all model calls; of all steps where a framework reports no model calls."""
        return self._model_tokens if self._has_models else self._step_tokens

    @property
    def unknown(self) -> frozenset[SpanKind]:
        """The kinds of spans that may be missing because they are not reported."""
        kinds: list[SpanKind] = ["tool"] if self._keeps_calls else []
        if not self._has_models and (self._step_tokens or self._keeps_calls or self._hides_models):
            kinds.append("model")
        return frozenset(kinds)

    def call(self, turn: int, number: int) -> Span | None:
        """The span of a scored call of a turn, both counted from 0; None for none."""
        return next((span for span in self.spans if span.call == number and span.turn == turn), None)

    def ancestors(self, number: int) -> list[int]:
        return ancestors(self.spans, number)

    def _add(self, event: Event) -> None:
        span = self._continued_span(event) or self._open_span(event)
        span.events.append(event)
        is_failure = event.kind == "error" and not event.data.get("retrying")
        if is_failure and self.first_error is None:
            self.first_error = span.number
        tokens = _tokens(event.usage)
        model_tokens, step_tokens = (tokens, 0) if event.kind == "model_response" else (0, tokens)
        self._model_tokens, self._step_tokens = (
            self._model_tokens + model_tokens,
            self._step_tokens + step_tokens,
        )
        self._has_models = self._has_models or span.kind == "model"
        if event.id:
            self._of_event.setdefault(event.id, span.number)
        for number in (span.number, *self.ancestors(span.number)):
            around = self.spans[number]
            around.end = max(around.end, event.t)
            around.start = min(around.start, span.start)
            around.failed = around.failed or is_failure
            around.model_tokens, around.step_tokens = (
                around.model_tokens + model_tokens,
                around.step_tokens + step_tokens,
            )

    def _continued_span(self, event: Event) -> Span | None:
        """The existing span that an event continues; None for none."""
        number = self._of_event.get(event.parent)
        if number is None:
            return self._stream(event)
        span = self.spans[number]
        ends_model = span.kind == "model" and event.kind in ("model_response", "error")
        ends_tool = span.kind == "tool" and event.kind == "tool_result"
        return span if ends_model or ends_tool else self._stream(event)

    def _stream(self, event: Event) -> Span | None:
        """The span of a streamed text, for its pieces and for the whole text after them."""
        if event.kind != "text":
            return None
        agent = self._known_agent(event, self._enclosing_span(event))
        if agent is None:
            return None
        streamed = self._streamed.get(agent.number)
        if streamed is None:
            return None
        if not event.data.get("partial"):
            del self._streamed[agent.number]
        return self.spans[streamed]

    def _open_span(self, event: Event) -> Span:
        if event.kind == "user":
            return self._turn(event)
        agent = self._agent(event)
        start = event.t - (event.duration or 0.0)
        match event.kind:
            case "model_request":
                return self._span("model", event, agent, event.t)
            case "tool_call":
                span = self._span("tool", event, agent, event.t)
                if not event.data.get("nested"):
                    span.call = self._calls.get(event.turn, 0)
                    self._calls[event.turn] = span.call + 1
                return span
            case "model_response":
                return self._span("model", event, agent, start)
            case "tool_result":
                return self._span("tool", event, agent, start)
            case kind:
                span = self._span(_LEAVES[kind], event, agent, start)
                if event.data.get("partial"):
                    self._streamed[agent.number] = span.number
                return span

    def _turn(self, event: Event) -> Span:
        number = self._turns.get(event.turn)
        if number is not None and not self.spans[number].events:
            return self.spans[number]
        return self._new_turn(event)

    def _new_turn(self, event: Event) -> Span:
        span = self._span("turn", event, None, event.t)
        self._turn_spans.append(span.number)
        self._turns[event.turn] = span.number
        return span

    def _enclosing_span(self, event: Event) -> Span:
        """The tool call around an event, else its turn."""
        number = self._of_event.get(event.parent)
        if number is not None:
            span = self.spans[number]
            if span.kind == "tool" and event.kind != "tool_result":
                return span
            parent = self.spans[span.parent] if span.parent is not None else None
            if parent is not None and parent.parent is not None:
                return self.spans[parent.parent]
        if event.turn not in self._turns:
            # What an agent prints while it is imported belongs to no message.
            return self._new_turn(event)
        return self.spans[self._turns[event.turn]]

    def _agent(self, event: Event) -> Span:
        around = self._enclosing_span(event)
        if agent := self._known_agent(event, around):
            return agent
        if not event.agent:
            return around
        span = self._span("agent", event, around, event.t - (event.duration or 0.0))
        self._last[around.number] = self._heard[around.number, event.agent] = span.number
        return span

    def _known_agent(self, event: Event, around: Span) -> Span | None:
        """The active agent span for an event; None where an agent comes back after another, unless both are
        active."""
        key = around.number, event.agent
        if event.branch:
            self._side_by_side.add(key)
        last = self._last.get(around.number)
        if last is not None and self.spans[last].agent == (event.agent or self.spans[last].agent):
            return self.spans[last]
        if key not in self._side_by_side or key not in self._heard:
            return None
        self._last[around.number] = self._heard[key]
        return self.spans[self._heard[key]]

    def _span(self, kind: SpanKind, event: Event, parent: Span | None, start: float) -> Span:
        span = Span(
            number=len(self.spans),
            kind=kind,
            agent=event.agent,
            turn=event.turn,
            parent=None if parent is None else parent.number,
            depth=0 if parent is None else parent.depth + 1,
            start=start,
            end=event.t,
        )
        self.spans.append(span)
        if parent is not None:
            parent.children.append(span.number)
        return span


def ancestors(spans: Sequence[Span], number: int) -> list[int]:
    """The spans around a span, the innermost first."""
    numbers: list[int] = []
    parent = spans[number].parent
    while parent is not None:
        numbers.append(parent)
        parent = spans[parent].parent
    return numbers


def _tokens(usage: Json | None) -> int:
    counts = usage or {}
    return counts.get("total_token_count") or (
        (counts.get("prompt_token_count") or 0) + (counts.get("candidates_token_count") or 0)
    )


@dataclass(frozen=True)
class Request:
    """A request to a model.

    `new` is the number of contents since the agent's request before; `changes` are other differences, each a
    sentence. `unrecorded` tells why it is incomplete.
    """

    model: str
    system_instruction: str
    contents: tuple[Json, ...]
    tools: tuple[Json, ...]
    config: Json
    new: int
    is_first: bool
    changes: tuple[str, ...] = ()
    unrecorded: str = ""


def request_of(spans: Sequence[Span], number: int) -> Request | None:
    """The request of a model span, None where it is unknown; for another span, the last request of its agent
    before it."""
    span = spans[number]
    own = [
        earlier
        for earlier in spans[: number + 1]
        if earlier.kind == "model" and earlier.agent == span.agent and earlier.event("model_request")
    ]
    if not own:
        return None
    before: Request | None = None
    for earlier in own:
        event = earlier.event("model_request")
        assert event is not None
        before = _read_request(event.data, before)
    return before


def _read_request(data: Json, before: Request | None) -> Request:
    earlier = before.contents[: data.get("contents_before", 0)] if before else ()
    request = Request(
        model=str(data.get("model") or ""),
        system_instruction=instruction_text(data.get("system_instruction")),
        contents=(*earlier, *(data.get("contents") or ())),
        tools=tuple(tool for tool in data.get("tools") or () if isinstance(tool, dict)),
        config=data.get("config") or {},
        new=len(earlier),
        is_first=before is None,
        unrecorded=str(data.get("unrecorded") or ""),
    )
    if before is None:
        return request
    return Request(**{**vars(request), "changes": tuple(_changes(before, request))})


def instruction_text(instruction: Any) -> str:
    """The text of a system instruction, which is a text or a genai Content."""
    if isinstance(instruction, dict):
        return "\n".join(str(part.get("text", "")) for part in parts_in(instruction))
    return str(instruction or "")


def _changes(before: Request, now: Request) -> list[str]:
    changes: list[str] = []
    if before.model != now.model:
        changes.append(f"model changed, was {before.model}")
    if before.system_instruction != now.system_instruction:
        changes.append("system instruction changed")
    dropped = len(before.contents) - now.new
    if dropped > 0:
        changes.append(f"{dropped} earlier contents dropped or changed")
    had, has = ({tool.get("name", "") for tool in request.tools} for request in (before, now))
    if added := sorted(has - had):
        changes.append(f"more tools: {', '.join(added)}")
    if gone := sorted(had - has):
        changes.append(f"fewer tools: {', '.join(gone)}")
    if had == has and before.tools != now.tools:
        changes.append("tool declarations changed")
    if before.config != now.config:
        changes.append("config changed")
    return changes


@dataclass(frozen=True)
class TimeSpent:
    """Seconds of all turns by kind of work; overlapping time counts for the first kind in this order."""

    model: float
    """Seconds of model calls."""
    tool: float
    """Seconds in tools."""
    throttled: float
    """Seconds in which model calls waited for limits of the run."""
    agent: float
    """Seconds of the agents' own work."""
    waiting: float
    """Seconds before the first and after the last work of agents."""
    model_calls: int
    tool_calls: int

    @property
    def whole(self) -> float:
        return self.model + self.tool + self.throttled + self.agent + self.waiting


def time_spent(spans: Sequence[Span]) -> TimeSpent:
    """The time of a case's turns; time before the first one, such as an import, is left out."""
    own = [span for span in spans if span.turn is not None]

    def of(kind: SpanKind) -> list[tuple[float, float]]:
        return [(span.start + span.throttled, span.end) for span in own if span.kind == kind]

    waits = [(span.start, span.start + span.throttled) for span in own if span.throttled]
    parts, before, intervals = list[float](), 0.0, list[tuple[float, float]]()
    for ranges in (of("model"), of("tool"), waits, of("agent"), of("turn")):
        intervals += ranges
        so_far = covered_seconds(intervals)
        parts.append(so_far - before)
        before = so_far
    model, tool, throttled, agent, waiting = parts
    return TimeSpent(model, tool, throttled, agent, waiting, len(of("model")), len(of("tool")))


def covered_seconds(ranges: Iterable[tuple[float, float]]) -> float:
    """Seconds that are in at least one of the ranges."""
    seconds, end = 0.0, float("-inf")
    for first, last in sorted(ranges):
        seconds += max(0.0, last - max(first, end))
        end = max(end, last)
    return seconds
