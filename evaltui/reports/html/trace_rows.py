"""The trace of a run of a case as rows: what happened in what, with times and tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evaltui.core.model.events import Event
from evaltui.core.model.outcome import TurnResult
from evaltui.core.trace.span_lines import KIND_ROLES, TIMED, Scale, short, text_of, tokens_of, what_line
from evaltui.core.trace.spans import Span, SpanTree
from evaltui.core.trace.time_spent import time_spent
from evaltui.text.figures import UNKNOWN, counted, show_duration, show_number
from evaltui.text.lines import Line
from evaltui.text.outcomes import ROW_MARKS

# The log has them all.
_MOST_ROWS = 1_000
# Cells: what is longer is wrapped by the browser.
_ROOM = 10_000
_MOST_DEPTH = 6


@dataclass(frozen=True)
class SpanRow:
    """A span: what it was, how long it took, and where its bar begins and ends, in percent of the case."""

    kind: str
    role: str
    depth: int
    what: Line
    mark: tuple[str, str]
    """How a call differs from what is expected; `("", "")` where it does not."""
    tokens: str
    seconds: str
    begin: float
    width: float
    has_bar: bool


@dataclass(frozen=True)
class TurnRows:
    """The rows of a turn's trace."""

    title: str
    user: str
    seconds: str
    rows: tuple[SpanRow, ...]


@dataclass(frozen=True)
class TraceView:
    """The trace of one run of a case, and what all of it took."""

    turns: tuple[TurnRows, ...]
    spent: tuple[tuple[str, str, str], ...]
    """Kinds of work with their time and count: `("model", "2.8 s", "7 calls")`."""
    tokens: str
    """`2,412 tokens`; "" where nobody reports any."""
    left_out: str
    """How many spans are not shown; "" for none."""


def trace_view(events: Sequence[Event], turns: Sequence[TurnResult]) -> TraceView | None:
    """None where no event is known."""
    if not events:
        return None
    tree = SpanTree()
    tree.add(events)
    scale = Scale.of(tree.spans, tree.turns)
    views, room = [], _MOST_ROWS
    for turn in tree.turns:
        below = list(_below(tree.spans, turn))
        shown = below[:room]
        room -= len(shown)
        rows = tuple(_row(span, scale, turns) for span in shown)
        views.append(TurnRows(_title(turn), _user(turn), show_duration(turn.seconds), rows))
    left_out = len(tree.spans) - len(tree.turns) - (_MOST_ROWS - room)
    return TraceView(
        turns=tuple(views),
        spent=tuple(_spent(tree)),
        tokens=counted(tree.tokens, "token") if tree.tokens else "",
        left_out=counted(left_out, "more span") if left_out > 0 else "",
    )


def _below(spans: Sequence[Span], turn: Span) -> Iterator[Span]:
    """The spans of a turn, each before those inside of it."""
    stack = list(reversed(turn.children))
    while stack:
        span = spans[stack.pop()]
        yield span
        stack += reversed(span.children)


def _title(turn: Span) -> str:
    return "Start" if turn.turn is None else f"Turn {turn.turn + 1}"


def _user(turn: Span) -> str:
    message = turn.events[0].content if turn.events and turn.events[0].kind == "user" else None
    return short(text_of(message))


def _row(span: Span, scale: Scale, turns: Sequence[TurnResult]) -> SpanRow:
    whole = scale.end - scale.start
    tokens = tokens_of(span.usage) if span.kind == "model" else ""
    if span.kind == "agent" and span.tokens:
        tokens = show_number(span.tokens)
    timed = span.kind in TIMED
    begin = 100 * (span.start - scale.start) / whole if whole else 0.0
    width = 100 * span.seconds / whole if whole else 0.0
    return SpanRow(
        kind=span.kind,
        role="error"
        if span.failed and span.kind in ("error", *TIMED)
        else KIND_ROLES.get(span.kind, "muted"),
        depth=min(_MOST_DEPTH, span.depth - 1),
        what=what_line(span, _ROOM),
        mark=_mark(span, turns),
        tokens=tokens,
        seconds="" if not timed else UNKNOWN if span.is_open else show_duration(span.seconds),
        begin=round(min(max(begin, 0.0), 100.0), 1),
        width=round(min(max(width, 0.4), 100.0), 1),
        has_bar=timed and not span.is_open,
    )


def _mark(span: Span, turns: Sequence[TurnResult]) -> tuple[str, str]:
    """How the call of a span differs: the rows of a turn are in the order in which calls were made."""
    if span.call is None or span.turn is None or not 0 <= span.turn < len(turns):
        return "", ""
    turn = turns[span.turn]
    made = [diff.op for diff in turn.calls if diff.actual is not None]
    if not turn.checks_calls or span.call >= len(made) or made[span.call] == "same":
        return "", ""
    return ROW_MARKS[made[span.call]]


def _spent(tree: SpanTree) -> Iterator[tuple[str, str, str]]:
    spent, unknown = time_spent(tree.spans), tree.unknown
    for kind, seconds, calls in (
        ("model", spent.model, spent.model_calls),
        ("tool", spent.tool, spent.tool_calls),
    ):
        if kind in unknown:
            yield kind, UNKNOWN, f"calls {UNKNOWN}"
        else:
            yield kind, show_duration(seconds), counted(calls, "call")
    yield "agent", show_duration(spent.agent), "overhead"
    if show_duration(spent.waiting) != show_duration(0):
        yield "waiting", show_duration(spent.waiting), "before and after the agent"
