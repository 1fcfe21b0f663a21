"""Which recorded conversation is of which case, and which of its turns is of which expected one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from itertools import pairwise
from typing import NamedTuple

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.content import Content
from evaltui.core.model.events import EXPECTATION, TURN, USER_MESSAGE, Event, Json
from evaltui.text.figures import counted
from evaltui.text.values import valid_json_text
from evaltui.traces.conversations import SET_ATTRIBUTE, RecordedConversation, RecordedTurn
from evaltui.traces.layouts.messages import NOT_RECORDED

# A case whose message shares less of it is none to suggest.
_MIN_LIKENESS = 0.4
# Of a message, for a suggestion.
_COMPARED = 400
_ATTACHMENT = re.compile(rf"\[{NOT_RECORDED}(?:: ([^\]]*))?\]")


@dataclass(frozen=True)
class CaseToPair:
    """A case by what its user says."""

    id: CaseId
    eval_set_id: str
    messages: tuple[str, ...]
    """Messages by turn; of a simulated user only the first one is known."""


@dataclass(frozen=True)
class Unpaired:
    """A conversation that no case is for."""

    conversation: RecordedConversation
    nearest: CaseId | None
    """The case whose user says something most like it; None where none is."""
    reason: str = ""
    """Why, where it is not that no case begins like it."""


@dataclass
class Pairing:
    """Conversations by case; several of one case are its repeats, in the order in which they began."""

    pairs: dict[CaseId, list[RecordedConversation]] = field(default_factory=dict)
    unpaired: list[Unpaired] = field(default_factory=list)


def pair(
    cases: Sequence[CaseToPair], conversations: Iterable[RecordedConversation], attribute: str = ""
) -> Pairing:
    """Pair conversations with cases: by what names the case, `attribute` first, by their ids, then by text.

    An attribute has the id of a case, or `SET:CASE`; of cases with one id, that of the set that the
    conversation names. By text, what the user says first must be the same but
    for case and white space; where several cases begin so, all of it decides, then the number of turns.
    """
    pairing = Pairing()
    index = _Index(cases)
    for conversation in conversations:
        named = str(conversation.attributes.get(attribute) or "") or conversation.named_case
        hits, reason = index.find(conversation, named)
        if len(hits) == 1:
            pairing.pairs.setdefault(hits[0].id, []).append(conversation)
        else:
            nearest = hits[0].id if hits else index.nearest(conversation)
            pairing.unpaired.append(Unpaired(conversation, nearest, reason))
    for case in cases:
        conversations = pairing.pairs.get(case.id, [])
        if any(_named_set(conversation) == case.eval_set_id for conversation in conversations):
            # Those of a set with another id are of its case with this name.
            pairing.pairs[case.id] = [
                conversation
                for conversation in conversations
                if _named_set(conversation) in ("", case.eval_set_id)
            ]
            pairing.unpaired += [
                Unpaired(conversation, case.id, f"the trace names set {_named_set(conversation)}")
                for conversation in conversations
                if _named_set(conversation) not in ("", case.eval_set_id)
            ]
    return pairing


def _named_set(conversation: RecordedConversation) -> str:
    return str(conversation.attributes.get(SET_ATTRIBUTE) or "")


class _Index:
    def __init__(self, cases: Sequence[CaseToPair]) -> None:
        self._cases = cases
        self._by_name: dict[str, list[CaseToPair]] = {}
        self._by_text: dict[str, list[CaseToPair]] = {}
        for case in cases:
            for name in (case.id.eval_id, f"{case.eval_set_id}:{case.id.eval_id}"):
                self._by_name.setdefault(name, []).append(case)
            if case.messages and (text := _plain(case.messages[0])):
                self._by_text.setdefault(text, []).append(case)

    def find(self, conversation: RecordedConversation, named: str) -> tuple[list[CaseToPair], str]:
        """The cases that it may be of, and why these are not exactly one."""
        if named:
            hits = self._by_name.get(named, [])
            hits = [case for case in hits if case.eval_set_id == _named_set(conversation)] or hits
            return _decided(hits, conversation), "" if len(hits) == 1 else _why(hits, f"case {named}")
        if hits := self._by_name.get(conversation.id, []):
            return _decided(hits, conversation), _why(hits, f"case {conversation.id}")
        first = _plain(conversation.messages[0]) if conversation.messages else ""
        hits = _decided(self._by_text.get(first, []), conversation) if first else []
        if not first:
            return [], "the user's message is not in the trace"
        return hits, f"{counted(len(hits), 'case')} begin like it" if len(hits) > 1 else ""

    def nearest(self, conversation: RecordedConversation) -> CaseId | None:
        first_message = _plain(conversation.messages[0])[:_COMPARED] if conversation.messages else ""
        best, likeness = None, 0.0
        matcher = SequenceMatcher(b=first_message, autojunk=False)
        for case in self._cases if first_message else ():
            matcher.set_seq1(_plain(case.messages[0])[:_COMPARED] if case.messages else "")
            if matcher.real_quick_ratio() > likeness and matcher.quick_ratio() > likeness:
                ratio = matcher.ratio()
                if ratio > likeness:
                    best, likeness = case.id, ratio
        return best if likeness > _MIN_LIKENESS else None


def _why(hits: Sequence[CaseToPair], named: str) -> str:
    return f"several sets have a {named}" if hits else f"no set has a {named}"


def _decided(hits: list[CaseToPair], conversation: RecordedConversation) -> list[CaseToPair]:
    """The cases among several that are most like the conversation."""
    if len(hits) < 2:
        return hits
    messages = [_plain(message) for message in conversation.messages]
    same = [case for case in hits if [_plain(message) for message in case.messages] == messages]
    if not same:
        same = [case for case in hits if len(case.messages) == len(messages)]
    return same or hits


def _plain(text: str) -> str:
    return " ".join(_ATTACHMENT.sub("", text).split()).casefold()


def aligned_events(
    expected: Sequence[Json], conversation: RecordedConversation
) -> tuple[tuple[Event, ...], tuple[int | None, ...]]:
    """The events of a conversation, numbered by the turns that expect them, each with this content of the
    user.

    An expected turn that was not held is a message of the user alone, which says so; turns that nobody
    expects come last, and say so, too. Also returns for each turn of the conversation its new number.
    """
    pairs = aligned(expected, conversation.turns)
    events: list[Event] = []
    for number, content in enumerate(expected):
        turn = pairs.get(number)
        if turn is None:
            data = {"step": f"not held:{number}", "untold": [TURN]}
            events.append(Event("user", content, turn=number, data=data))
        else:
            events += _numbered(conversation.turns[turn], number)
    places: list[int | None] = [None] * len(conversation.turns)
    for place, turn in pairs.items():
        places[turn] = place
    extra = [turn for turn, place in enumerate(places) if place is None]
    for offset, turn in enumerate(extra):
        first, *others = _numbered(conversation.turns[turn], len(expected) + offset)
        untold = [*first.data.get("untold", ()), EXPECTATION]
        events += [replace(first, data={**first.data, "untold": untold}), *others]
    return tuple(events), tuple(places)


def _numbered(turn: RecordedTurn, number: int) -> Iterator[Event]:
    return (event if event.turn == number else replace(event, turn=number) for event in turn.events)


def aligned(expected: Sequence[Json], turns: Sequence[RecordedTurn]) -> Mapping[int, int]:
    """Which expected turn is which that was held, in order: the one with the same message of the user.

    A turn whose message nobody recorded is the expected one at its place, where as many turns were held
    between two that are known as are expected.
    """
    messages = [_Message.of(content) for content in expected]
    held = [
        None if USER_MESSAGE in turn.untold else _Message.of(turn.events[0].content or {}) for turn in turns
    ]
    pairs = _same(messages, held)
    ends = [(-1, -1), *sorted(pairs.items()), (len(messages), len(held))]
    for (i, j), (next_i, next_j) in pairwise(ends):
        if next_i - i == next_j - j:
            pairs |= {i + n: j + n for n in range(1, next_i - i) if held[j + n] is None}
    return pairs


def _same(expected: Sequence[_Message], held: Sequence[_Message | None]) -> dict[int, int]:
    """The longest common subsequence."""
    is_same = [[other is not None and message.is_like(other) for other in held] for message in expected]
    best = [[0] * (len(held) + 1) for _ in range(len(expected) + 1)]
    for i in reversed(range(len(expected))):
        for j in reversed(range(len(held))):
            together = 1 + best[i + 1][j + 1] if is_same[i][j] else 0
            best[i][j] = max(together, best[i + 1][j], best[i][j + 1])
    pairs: dict[int, int] = {}
    i = j = 0
    while i < len(expected) and j < len(held):
        if is_same[i][j] and best[i][j] == 1 + best[i + 1][j + 1]:
            pairs[i] = j
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


class _Attachment(NamedTuple):
    """A file of a message; "" is what nobody recorded of it."""

    mime_type: str
    source: str
    """Its address, or the data itself."""

    def is_like(self, other: _Attachment) -> bool:
        return all(mine == theirs or not mine or not theirs for mine, theirs in zip(self, other, strict=True))


@dataclass(frozen=True)
class _Message:
    """Parts of a user's message by which two messages are the same."""

    text: str
    attachments: tuple[_Attachment, ...]
    responses: tuple[Json, ...]
    """To calls that waited for the user."""

    @classmethod
    def of(cls, content: Json) -> _Message:
        parts = Content.model_validate_json(valid_json_text(content)).parts or []
        text = "\n".join(part.text for part in parts if part.text)
        attachments = [_Attachment(_mime(match[1]), "") for match in _ATTACHMENT.finditer(text)]
        for part in parts:
            if blob := part.inline_data:
                attachments.append(_Attachment(_mime(blob.mime_type), str(blob.data or "")))
            elif link := part.file_data:
                attachments.append(_Attachment(_mime(link.mime_type), link.file_uri or ""))
        responses = [
            {"name": response.name, "response": response.response}
            for part in parts
            if (response := part.function_response)
        ]
        return cls(_plain(text), tuple(attachments), tuple(responses))

    def is_like(self, other: _Message) -> bool:
        return (
            self.text == other.text
            and self.responses == other.responses
            and len(self.attachments) == len(other.attachments)
            and all(map(_Attachment.is_like, self.attachments, other.attachments))
        )


def _mime(mime_type: str | None) -> str:
    return "" if mime_type in (None, "application/octet-stream") else str(mime_type)
