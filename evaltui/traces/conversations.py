"""Spans to conversations: which turns belong together, in which order, and what they do not hold.

    found = conversations_in(read_file(path))

A conversation is all turns that share a session, and the traces in which they are may come from several
files: a span that several of them have is one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from evaltui.core.model.events import Event, message_text
from evaltui.core.model.outcome import ErrorInfo
from evaltui.text.figures import counted
from evaltui.text.values import valid_text
from evaltui.traces.events import TurnEvents, error_of
from evaltui.traces.history import history_length, split_turn, turns_of_conversation
from evaltui.traces.layouts.limits import json_attribute, limit_of
from evaltui.traces.layouts.messages import NOT_RECORDED
from evaltui.traces.layouts.operation import Json
from evaltui.traces.span import LogRecord, OtelSpan, Recorded, with_logs
from evaltui.traces.trace_turn import TraceTurn
from evaltui.traces.tree import operation_of, turns_of
from evaltui.traces.writing.turn import EVENTS, FINAL_STATE, LENGTH, OWNER, REMARKS, SESSION

CASE_ATTRIBUTES = ("evaltui.eval.case.id", "agentevals.eval.case.id")
"""Attributes of a span, or of what made it, that name the case that a conversation is of."""
SET_ATTRIBUTE = "evaltui.eval_set.id"
"""The attribute that names the set of that case."""
_SESSION = "agentevals.session_name"
_SECOND = 1_000_000_000


@dataclass(frozen=True)
class RecordedTurn:
    """One message of the user and all that it led to."""

    events: tuple[Event, ...]
    """Its own; `turn` is its place in the conversation, `t` seconds since the conversation began."""
    user: str
    """The text of the user's message; "" where it has none, or nobody recorded it."""
    untold: Mapping[str, str]
    """Parts that the trace does not hold, such as `answers`, each with its remedy."""
    remarks: tuple[str, ...] = ()
    """Remarks about the recorded parts, a sentence each."""
    error: ErrorInfo | None = None
    """The error that ended the turn."""
    spans: int = 0
    seconds: float = 0.0
    has_state: bool = False
    """Whether its events have all its changes of the session state."""


@dataclass(frozen=True)
class RecordedSession:
    """The session of a conversation before its first turn."""

    app_name: str
    user_id: str
    state: Json
    unknown: tuple[str, ...] = ()
    """Keys of the state of which no value before the first turn is known."""
    shared: tuple[str, ...] = ()
    """Keys with their values of later: other sessions may have changed them meanwhile."""


@dataclass(frozen=True)
class RecordedConversation:
    """A conversation as traces have it."""

    id: str
    """The session's; where there is none, that of the trace."""
    turns: tuple[RecordedTurn, ...]
    traces: tuple[str, ...]
    """Their ids."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Attributes that spans give the conversation as a whole; the first value of each counts."""
    began: float = 0.0
    """Seconds since 1970; 0.0 where nobody knows."""
    final_state: Json | None = None
    """The session state after the last turn; None where it is unknown."""

    @property
    def named_case(self) -> str:
        """The case that it says it is of; "" for none."""
        return next((str(self.attributes[name]) for name in CASE_ATTRIBUTES if self.attributes.get(name)), "")

    @cached_property
    def session(self) -> RecordedSession | None:
        """The session before the first turn; None where it is unknown."""
        data = _json_object(self.attributes.get(SESSION))
        if data is None or not isinstance(state := data.get("state"), dict):
            return None
        keys = (tuple(map(str, data.get(name) or ())) for name in ("unknown", "shared"))
        return RecordedSession(str(data.get("app_name") or ""), str(data.get("user_id") or ""), state, *keys)

    def session_before(self, number: int) -> RecordedSession | None:
        """The session before a turn, from 0; None where it is unknown."""
        session = self.session
        if session is None or not all(turn.has_state for turn in self.turns[:number]):
            return None
        deltas = (event.data.get("delta") for turn in self.turns[:number] for event in turn.events)
        changed = {key: delta[key] for delta in deltas if isinstance(delta, dict) for key in delta}
        unknown, shared = (
            tuple(key for key in keys if key not in changed) for keys in (session.unknown, session.shared)
        )
        state = {key: value for key, value in (session.state | changed).items() if value is not None}
        return replace(session, state=state, unknown=unknown, shared=shared)

    def state_after(self, number: int) -> Json | None:
        """The session state after a turn, from 0, as far as it is known; None where nothing of it is."""
        if number + 1 == len(self.turns) and self.final_state is not None:
            return self.final_state
        session = self.session_before(number + 1)
        return session.state if session else None

    @property
    def messages(self) -> tuple[str, ...]:
        """Messages of the user, by turn; "" where a message is unknown."""
        return tuple(turn.user for turn in self.turns)

    @property
    def agent(self) -> str:
        """The one that speaks first; "" where none is named."""
        return next((event.agent for event in self.events if event.agent), "")

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(event for turn in self.turns for event in turn.events)


@dataclass(frozen=True)
class Conversations:
    """Conversations in traces."""

    conversations: tuple[RecordedConversation, ...]
    """Conversations in the order in which they began."""
    warnings: tuple[str, ...] = ()
    """Parts that were left out, a sentence each."""
    lost: tuple[str, ...] = ()
    """The warnings about missing records."""
    scenarios: tuple[Json, ...] = ()
    """Scenarios of ADK, with which no conversation was recorded."""


def conversations_in(recorded: Iterable[Recorded], attributes: Sequence[str] = ()) -> Conversations:
    """The conversations in what was read. Of `attributes`, values are kept with each."""
    merged, twins = _merged(recorded)
    warnings = merged.warnings
    if strays := with_logs(merged.spans, merged.logs):
        merged.lost.append(f"{counted(strays, 'log record')} with messages left out: of no span that is here")
        warnings.append(merged.lost[-1])
    traces: dict[str, list[OtelSpan]] = {}
    for span in merged.spans:
        traces.setdefault(span.trace_id, []).append(span)
    merged.spans.clear()
    groups: dict[tuple[str, str], list[tuple[str, TraceTurn]]] = {}
    values: dict[tuple[str, str], dict[str, Any]] = {}
    names = (*CASE_ATTRIBUTES, SET_ATTRIBUTE, SESSION, *attributes)
    empty = 0
    while traces:
        trace_id, members = traces.popitem()
        turns = turns_of(members)
        empty += not turns
        session = _session(members)
        named = {_conversation(turn) for turn in turns} - {""}
        alone = named.pop() if len(named) == 1 else trace_id
        for turn in turns:
            key = session or _conversation(turn) or alone, str(turn.span.attributes.get(OWNER) or "")
            groups.setdefault(key, []).extend((trace_id, piece) for piece in split_turn(turn))
            _keep(values.setdefault(key, {}), names, turn.spans)
    owners = Counter(session for session, _ in groups)
    conversations = [
        _conversation_of(
            session if owners[session] == 1 else f"{owner}/{session}", turns, values[session, owner]
        )
        for (session, owner), turns in groups.items()
        if session not in merged.incomplete
    ]
    if gone := sum(session in merged.incomplete for session, _ in groups):
        why = "the first turns are no longer stored by evaltui listen"
        warnings.append(f"{counted(gone, 'conversation')} left out: {why}")
    if twins:
        warnings.append(f"{counted(twins, 'span')} left out: another span of the trace has the same id")
    if empty:
        warnings.append(f"{counted(empty, 'trace')} of no agent left out")
    return Conversations(
        tuple(sorted(conversations, key=lambda conversation: (conversation.began, conversation.id))),
        tuple(warnings),
        tuple(merged.lost),
        tuple(merged.scenarios),
    )


def _merged(recorded: Iterable[Recorded]) -> tuple[Recorded, int]:
    """All that was read, each span once: of twins, the one that says more. Also the count of twins."""
    merged = Recorded()
    spans: dict[tuple[str, str], OtelSpan] = {}
    logs: dict[tuple[object, ...], LogRecord] = {}
    twins = 0
    for document in recorded:
        merged.add(replace(document, spans=[], logs=[]))
        for span in document.spans:
            key = (span.trace_id, span.span_id)
            existing = spans.setdefault(key, span)
            if existing is not span:
                is_twin = existing.name != span.name or existing.start != span.start
                twins += is_twin
                # The same span may have been exported before it ended.
                if (not is_twin and span.end, *_says(span)) > (
                    not is_twin and existing.end,
                    *_says(existing),
                ):
                    spans[key], existing, span = span, span, existing
                existing.has_twin = (
                    existing.has_twin or span.has_twin or (is_twin and operation_of(span) is not None)
                )
        # A record may be sent twice, also beside other records, and equal ones may be logged at once.
        equal = Counter[tuple[object, ...]]()
        for log in document.logs:
            event = log.event
            texts = event.name, repr(event.body), repr(event.attributes)
            identity = log.trace_id, log.span_id, event.time, *texts
            logs.setdefault((*identity, 0 if event.time else equal[identity]), log)
            equal[identity] += 1
    merged.spans, merged.logs = _of_latest_sessions(spans.values()), list(logs.values())
    return merged, twins


def _of_latest_sessions(spans: Collection[OtelSpan]) -> list[OtelSpan]:
    """The spans without those of turns that a session of google-adk no longer had when it was read later."""
    roots = [span for span in spans if OWNER in span.attributes]
    longest: dict[tuple[Any, ...], int] = {}
    for root in roots:
        longest[_owned(root)] = max(longest.get(_owned(root), 0), _length(root))
    rewound = {root.trace_id for root in roots if _length(root) < longest[_owned(root)]}
    return [span for span in spans if span.trace_id not in rewound]


def _owned(root: OtelSpan) -> tuple[Any, ...]:
    return tuple(root.attributes.get(name) for name in (OWNER, "gen_ai.conversation.id"))


def _length(span: OtelSpan) -> int:
    return int(span.attributes.get(LENGTH) or 0)


def _says(span: OtelSpan) -> tuple[int, int, int, bool]:
    """How much a span says, and how late its session was read."""
    return _length(span), len(span.attributes), len(span.events), span.status != ""


def _session(spans: Sequence[OtelSpan]) -> str:
    return next((str(span.resource[_SESSION]) for span in spans if span.resource.get(_SESSION)), "")


def _conversation(turn: TraceTurn) -> str:
    """The session of the outermost span that names one: an agent in a call of a tool has one of its own."""
    operations = [turn.operation, *turn.agents, *(work.operation for work in turn.works)]
    named = (operation.conversation for operation in operations if operation and operation.conversation)
    return turn.conversation or next(named, "") or turn.session


def _keep(values: dict[str, Any], names: Sequence[str], spans: Sequence[OtelSpan]) -> None:
    for span in spans:
        for name in names:
            value = span.attributes.get(name, span.resource.get(name))
            if value is not None:
                values.setdefault(name, value)


def _conversation_of(
    key: str, turns: list[tuple[str, TraceTurn]], attributes: Mapping[str, Any]
) -> RecordedConversation:
    # Turns of one trace are in order, also where they began at the same moment.
    ordered = sorted(turns, key=lambda entry: (entry[1].start, history_length(entry[1]), entry[0]))
    for _, turn in ordered:
        turn.own_events = _own_events(turn.span.attributes.get(EVENTS))
    joined = turns_of_conversation([turn for _, turn in ordered])
    zero = ordered[0][1].start
    return RecordedConversation(
        valid_text(key),
        tuple(_recorded(turn, number, zero) for number, turn in enumerate(joined)),
        tuple(dict.fromkeys(trace for trace, _ in ordered)),
        attributes,
        zero / _SECOND,
        _json_object(joined[-1].span.attributes.get(FINAL_STATE)),
    )


def _recorded(turn: TraceTurn, number: int, zero: int) -> RecordedTurn:
    made = TurnEvents(turn, number, zero)
    own = turn.own_events and [replace(event, turn=number) for event in turn.own_events]
    if own is None and _is_our_own(turn.span):
        # The spans alone do not say what the agent did not send.
        turn.lost = turn.lost or limit_of(turn.span)
    events = tuple(own or made.events())
    seconds = max(turn.end - turn.start, 0) / _SECOND if turn.start else 0.0
    return RecordedTurn(
        events,
        message_text(events[0].content),
        _untold(own) if own else made.untold,
        tuple(_remarks(events)),
        error_of(turn, number),
        len(turn.spans),
        seconds,
        own is not None,
    )


def _is_our_own(span: OtelSpan) -> bool:
    return any(name.startswith("evaltui.") for name in (*span.attributes, *span.cut))


def _remarks(events: Sequence[Event]) -> Iterator[str]:
    yield from map(str, events[0].data.get(REMARKS) or ())
    if any(event.data.get("may_hold_thoughts") for event in events):
        yield "response may contain thoughts, which the trace does not mark"
    if NOT_RECORDED in message_text(events[0].content) or any(
        event.data.get("lacks_attachment") for event in events
    ):
        yield f"an {NOT_RECORDED}"


def _untold(events: Sequence[Event]) -> Mapping[str, str]:
    """Unknown parts of a turn whose events were written as they were, each with its remedy."""
    parts = [(what, event) for event in events for what in event.data.get("untold", ())]
    return {
        what: event.data.get("remedies", {}).get(what, "the agent does not tell") for what, event in parts
    }


def _own_events(text: Any) -> list[Event] | None:
    """The events of a turn as evaltui wrote them; None where they cannot be read.

    They are no longer of a case: its names and its repeat are left out.
    """
    try:
        data = json.loads(text) if isinstance(text, str) else None
        if not isinstance(data, list) or not data:
            return None
        events = [Event.from_json(event) for event in data]
        return [replace(event, path="", set="", case="", repeat=0) for event in events]
    except (AttributeError, TypeError, ValueError, RecursionError):
        # Something on the way has cut it: the spans say nearly as much.
        return None


def _json_object(text: Any) -> Json | None:
    """The object of a JSON text; None for anything else."""
    data = json_attribute(text) if isinstance(text, str) else None
    return data if isinstance(data, dict) else None
