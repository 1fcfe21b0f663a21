"""Conversations of traces by what pairs them with cases; the rest of one is read when it is asked for.

    with found_conversations(read_files(paths)) as traces:
        for conversation in traces.conversations:
            conversation.read()

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
