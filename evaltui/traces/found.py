"""Conversations of traces by what pairs them with cases; the rest of one is read when it is asked for.

    with found_conversations(read_files(paths)) as traces:
        for one in traces.found:
            one.read()

So no more is in memory than one document while files are read, then one conversation, and of each of the
others what its user says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from evaltui.traces.conversations import (
    PassedOver,
    RecordedConversation,
    conversations_in,
    named_case,
)
from evaltui.traces.span import Recorded
from evaltui.traces.span_store import Shelf, SpanStore, shelf


@dataclass(frozen=True)
class FoundConversation:
    """A conversation that may be on disk."""

    id: str
    messages: tuple[str, ...]
    """What the user says, by turn; "" where that is not known."""
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
    """What was found in traces."""

    found: tuple[FoundConversation, ...]
    """In the order in which they began."""
    warnings: tuple[str, ...]
    """What was passed over, a sentence each."""


@contextmanager
def found_conversations(
    recorded: Iterable[Recorded], attributes: Sequence[str] = ()
) -> Iterator[FoundConversations]:
    """As `conversations_in`; they can be read while this is entered."""
    with shelf() as kept:
        yield _found(recorded, attributes, kept)


def _found(recorded: Iterable[Recorded], attributes: Sequence[str], kept: Shelf) -> FoundConversations:
    spans = SpanStore(kept)
    warnings: list[str] = []
    for one in recorded:
        warnings += one.warnings
        spans.add(one)
    found: list[FoundConversation] = []
    passed_over = PassedOver()
    for group in spans.groups():
        made = conversations_in(group, attributes)
        passed_over += made.passed_over
        for conversation in made.found:
            read = partial(kept.get, kept.put(conversation))
            found.append(FoundConversation.of(conversation, read))
    found.sort(key=lambda one: (one.began, one.id))
    return FoundConversations(tuple(found), (*warnings, *passed_over.in_words()))
