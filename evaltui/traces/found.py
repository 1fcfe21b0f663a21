"""Conversations of traces by what pairs them with cases; the rest of one is read when it is asked for.

    with found_conversations(read_files(paths)) as traces:
        for conversation in traces.conversations:
            conversation.read()

So no more is in memory than one document while files are read, then one conversation, and of each of the
others what its user says.
"""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, BinaryIO

from evaltui.traces.conversations import (
    PassedOver,
    RecordedConversation,
    conversations_in,
    named_case,
)
from evaltui.traces.span import OtelSpan, Recorded, UnreadableTraceError

# How attributes end that may name the conversation of a span, in any layout.
_SESSION_ATTRIBUTES = (
    "session.id",
    "session_id",
    "session_name",
    "conversation.id",
    "conversation_id",
    "thread_id",
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the file something is."""

    offset: int
    size: int


class Shelf:
    """Keeps values in a file of its own, and gives them back."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = 0

    def put(self, value: Any) -> Place:
        """Raises UnreadableTraceError where there is no room."""
        data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        try:
            self._file.write(data)
        except OSError as error:
            raise UnreadableTraceError(
                f"{tempfile.gettempdir()}, where traces are kept while they are sorted: "
                f"{error.strerror}; set TMPDIR to a folder with room"
            ) from error
        place = Place(self._size, len(data))
        self._size += len(data)
        return place

    def get(self, place: Place) -> Any:
        self._file.flush()
        return pickle.loads(os.pread(self._file.fileno(), place.size, place.offset))


@contextmanager
def shelf() -> Iterator[Shelf]:
    """A file without a name, which only this process can read."""
    with tempfile.TemporaryFile(prefix="evaltui-traces-") as file:
        yield Shelf(file)


@dataclass(slots=True)
class _Trace:
    places: list[Place] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    """All that its conversations may be called."""


class SpanStore:
    """Which spans are where."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._traces: dict[str, _Trace] = {}

    def add(self, recorded: Recorded) -> None:
        """Raises UnreadableTraceError where there is no room."""
        parts: dict[str, Recorded] = {}
        for span in recorded.spans:
            parts.setdefault(span.trace_id, Recorded()).spans.append(span)
        for log in recorded.logs:
            parts.setdefault(log.trace_id, Recorded()).logs.append(log)
        for trace_id, part in parts.items():
            trace = self._traces.setdefault(trace_id, _Trace(names={trace_id}))
            for span in part.spans:
                trace.names.update(_names_in(span))
            trace.places.append(self._shelf.put(part))

    def groups(self) -> Iterator[Iterator[Recorded]]:
        """The traces that may have a conversation in common, in the order in which they were added."""
        by_name: dict[str, list[str]] = {}
        for trace_id, trace in self._traces.items():
            for name in trace.names:
                by_name.setdefault(name, []).append(trace_id)
        seen: set[str] = set()
        for trace_id in self._traces:
            if trace_id in seen:
                continue
            seen.add(trace_id)
            group = [trace_id]
            for member in group:
                for name in self._traces[member].names:
                    others = [other for other in by_name.pop(name, ()) if other not in seen]
                    seen.update(others)
                    group += others
            yield self._read(group)

    def _read(self, group: list[str]) -> Iterator[Recorded]:
        for trace_id in group:
            for place in self._traces[trace_id].places:
                yield self._shelf.get(place)


def _names_in(span: OtelSpan) -> Iterator[str]:
    for attributes in (span.attributes, span.resource):
        for name, value in attributes.items():
            if name.endswith(_SESSION_ATTRIBUTES) and value:
                yield str(value)


@dataclass(frozen=True)
class FoundConversation:
    """A conversation that may be on disk."""

    id: str
    messages: tuple[str, ...]
    """Messages of the user, by turn; "" where a message is unknown."""
    attributes: Mapping[str, Any]
    began: float
    agent: str
    """The one that speaks first; "" where none is named."""
    read: Callable[[], RecordedConversation]
    """All of it."""

    @classmethod
    def of(
        cls, conversation: RecordedConversation, read: Callable[[], RecordedConversation]
    ) -> FoundConversation:
        return cls(
            conversation.id,
            tuple(turn.user for turn in conversation.turns),
            conversation.attributes,
            conversation.began,
            next((event.agent for event in conversation.events if event.agent), ""),
            read,
        )

    @classmethod
    def in_memory(cls, conversation: RecordedConversation) -> FoundConversation:
        return cls.of(conversation, lambda: conversation)

    @property
    def named_case(self) -> str:
        """The case that it says it is of; "" for none."""
        return named_case(self.attributes)


@dataclass(frozen=True)
class FoundConversations:
    """Conversations in traces, each of which is read when needed."""

    conversations: tuple[FoundConversation, ...]
    """Conversations in the order in which they began."""
    warnings: tuple[str, ...]
    """Warnings: parts that were left out, a sentence each."""


@contextmanager
def found_conversations(
    recorded: Iterable[Recorded], attributes: Sequence[str] = ()
) -> Iterator[FoundConversations]:
    """Finds conversations as `conversations_in`; they can be read while the context is open."""
    with shelf() as store:
        yield _stored_conversations(recorded, attributes, store)


def _stored_conversations(
    recorded: Iterable[Recorded], attributes: Sequence[str], store: Shelf
) -> FoundConversations:
    spans = SpanStore(store)
    warnings: list[str] = []
    for document in recorded:
        warnings += document.warnings
        spans.add(document)
    conversations: list[FoundConversation] = []
    passed_over = PassedOver()
    for group in spans.groups():
        made = conversations_in(group, attributes)
        passed_over += made.passed_over
        for conversation in made.conversations:
            read = partial(store.get, store.put(conversation))
            conversations.append(FoundConversation.of(conversation, read))
    conversations.sort(key=lambda conversation: (conversation.began, conversation.id))
    return FoundConversations(tuple(conversations), (*warnings, *passed_over.in_words()))
