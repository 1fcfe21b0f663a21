"""The conversation as a trace, with the row of each span and the span of each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from evaltui.core.model.events import Event
from evaltui.core.model.outcome import ErrorInfo
from evaltui.core.trace.spans import Span
from evaltui.workbench.chat.conversation import ChatTurn, Transcript, TurnStage
from evaltui.workbench.chat.rows import Row
from evaltui.workbench.state import RunRef
from evaltui.workbench.trace.traces import Trace

_CHAT_RUN = RunRef(title="chat")
_OPEN_STAGES = (TurnStage.WAITING, TurnStage.RUNNING)


class ChatPlace(NamedTuple):
    """A place in the conversation: events of a turn."""

    turn: int
    """Index of the turn in the transcript."""
    events: tuple[Event, ...]
    """The events, the same objects as in the turn; empty for the turn as a whole."""


class ChatTrace:
    """A trace that grows with the conversation; it starts anew where a turn is replaced or removed.

    Turns are numbered by their index, failed ones included, and follow each other without the time between
    them. A call gets another id where an earlier turn used the same one.
    """

    def __init__(self) -> None:
        self._version = 0
        self._restart()

    def _restart(self) -> None:
        self._version += 1
        self._events: list[Event] = []
        # The events of the turns, in the order of `_events`, and their places there, by identity.
        self._originals: list[Event | None] = []
        self._places: dict[int, int] = {}
        self._turns: list[ChatTurn] = []
        # Of the last turn: its events that are here, why it failed, when it begins here and there.
        self._event_count = 0
        self._error: ErrorInfo | None = None
        self._start = self._end = self._zero = 0.0
        self._ids: set[str] = set()
        self._renamed: dict[str, str] = {}

    def follow(self, transcript: Transcript | None, *, live: bool) -> Trace:
        """The current trace; the cost depends on the number of new events only."""
        turns = transcript.turns if transcript else []
        if len(turns) < len(self._turns) or any(
            shown is not now for shown, now in zip(self._turns, turns, strict=False)
        ):
            self._restart()
        if self._turns:
            self._add_new(self._turns[-1])
        for turn in turns[len(self._turns) :]:
            if self._turns and self._turns[-1].stage in _OPEN_STAGES:
                break
            self._begin_turn(turn)
            self._add_new(turn)
        return Trace(_CHAT_RUN, events=self._events, live=live, chat=self._version)

    def _begin_turn(self, turn: ChatTurn) -> None:
        self._turns.append(turn)
        self._event_count = 0
        self._error = None
        self._start, self._zero = self._end, 0.0
        self._renamed = {}

    def _add_new(self, turn: ChatTurn) -> None:
        if not self._event_count and turn.events:
            self._zero = turn.events[0].t
        for event in turn.events[self._event_count :]:
            self._add(event, event, max(0.0, event.t - self._zero) + self._start)
            self._event_count += 1
        if turn.stage is TurnStage.FAILED and turn.error is not None and self._error is None:
            error = self._error = turn.error
            data = {"type": error.type, "message": error.message, "traceback": error.traceback}
            self._add(Event("error", data=data), None, self._end)

    def _add(self, event: Event, original: Event | None, at: float) -> None:
        if event.id and event.id not in self._renamed:
            own = f"{len(self._turns) - 1}:{event.id}" if event.id in self._ids else event.id
            self._renamed[event.id] = own
            self._ids.add(own)
        self._end = max(self._end, at)
        seq = len(self._events)
        if original is not None:
            self._places[id(original)] = seq
        self._originals.append(original)
        self._events.append(
            replace(
                event,
                id=self._renamed.get(event.id, event.id),
                parent=self._renamed.get(event.parent, event.parent),
                turn=len(self._turns) - 1,
                seq=seq,
                t=at,
            )
        )

    # Rows of the chat and spans

    def place_of(self, spans: Sequence[Span], span: Span) -> ChatPlace | None:
        """The place of a span in the conversation; None for a span without a turn."""
        turn = span.turn
        if turn is None:
            return None
        while not span.events and span.children:
            span = spans[span.children[0]]
        originals = (self._originals[event.seq] for event in span.events)
        return ChatPlace(turn, tuple(event for event in originals if event is not None))

    def span_of(self, spans: Sequence[Span], place: ChatPlace) -> Span | None:
        """The span of a place; the span of the turn where the events have none."""
        numbers = {self._places[id(event)] for event in place.events if id(event) in self._places}
        of_turn = [span for span in spans if span.turn == place.turn]
        exact = (span for span in of_turn if any(event.seq in numbers for event in span.events))
        return next(exact, of_turn[0] if of_turn else None)


def row_of(rows: Sequence[Row], turn: ChatTurn, place: ChatPlace) -> int | None:
    """The row of a place.

    An event without a row, such as a request to a model, leads to the first later row.
    """
    own = [number for number, row in enumerate(rows) if row.turn == place.turn]
    event_ids = {id(event) for event in place.events}
    for number in own:
        if any(id(event) in event_ids for event in rows[number].events):
            return number
    order = {id(event): at for at, event in enumerate(turn.events)}
    first_place = min((order[event_id] for event_id in event_ids if event_id in order), default=None)
    shown = [number for number in own if rows[number].events]
    if first_place is not None:
        for number in shown:
            if order.get(id(rows[number].events[0]), -1) >= first_place:
                return number
    first = next((number for number in own if rows[number].kind == "user"), None)
    return (shown[-1] if first_place is not None and shown else first) if own else None
