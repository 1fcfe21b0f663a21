"""Which recorded conversation is of which case, and which of its turns is of which expected one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import TURN, UNEXPECTED, USER_MESSAGE, Event
from evaltui.text.figures import counted
from evaltui.traces.conversations import RecordedConversation, RecordedTurn
from evaltui.traces.found import FoundConversation
from evaltui.traces.layouts.messages import NOT_RECORDED

# Two messages that share this much are one, said in other words.
_ALIKE = 0.6
# Of a message; the rest of a long one does not decide.
_COMPARED = 400
_ATTACHMENT = re.compile(rf"\[{NOT_RECORDED}: [^\]]*\]")


@dataclass(frozen=True)
class CaseToPair:
    """A case by what its user says."""

    id: CaseId
    eval_set_id: str
    messages: tuple[str, ...]
    """By turn; of a simulated user only the first one is known."""


@dataclass(frozen=True)
class Unpaired:
    """A conversation that no case is for."""

    conversation: FoundConversation
    nearest: CaseId | None
    """The case whose user says something most like it; None where none is."""
    reason: str = ""
    """Why, where it is not that no case begins like it."""


@dataclass
class Pairing:
    """Conversations by case; several of one case are its repeats, in the order in which they began."""

    pairs: dict[CaseId, list[FoundConversation]] = field(default_factory=dict)
    unpaired: list[Unpaired] = field(default_factory=list)


def pair(
    cases: Sequence[CaseToPair], conversations: Iterable[FoundConversation], attribute: str = ""
) -> Pairing:
    """Pair conversations with cases: by what names the case, `attribute` first, by their ids, then by text.

    An attribute has the id of a case, or `SET:CASE`. By text, what the user says first must be the same but
    for case and white space; where several cases begin so, all of it decides, then the number of turns.
    """
    found = Pairing()
    index = _Index(cases)
    for conversation in conversations:
        named = str(conversation.attributes.get(attribute) or "") or conversation.named_case
        hits, reason = index.find(conversation, named)
        if len(hits) == 1:
            found.pairs.setdefault(hits[0].id, []).append(conversation)
        else:
            nearest = hits[0].id if hits else index.nearest(conversation)
            found.unpaired.append(Unpaired(conversation, nearest, reason))
    return found


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

    def find(self, conversation: FoundConversation, named: str) -> tuple[list[CaseToPair], str]:
        """The cases that it may be of, and why these are not exactly one."""
        if named:
            hits = self._by_name.get(named, [])
            return _decided(hits, conversation), "" if len(hits) == 1 else _why(hits, f"case {named}")
        if hits := self._by_name.get(conversation.id, []):
            return _decided(hits, conversation), _why(hits, f"case {conversation.id}")
        first = _plain(conversation.messages[0]) if conversation.messages else ""
        hits = _decided(self._by_text.get(first, []), conversation) if first else []
        if not first:
            return [], "the user's message is not in the trace"
        return hits, f"{counted(len(hits), 'case')} begin like it" if len(hits) > 1 else ""

    def nearest(self, conversation: FoundConversation) -> CaseId | None:
        said = _plain(conversation.messages[0])[:_COMPARED] if conversation.messages else ""
        best, likeness = None, 0.0
        matcher = SequenceMatcher(b=said, autojunk=False)
        for case in self._cases if said else ():
            matcher.set_seq1(_plain(case.messages[0])[:_COMPARED] if case.messages else "")
            if matcher.real_quick_ratio() > likeness and matcher.quick_ratio() > likeness:
                ratio = matcher.ratio()
                if ratio > likeness:
                    best, likeness = case.id, ratio
        return best if likeness > 1 - _ALIKE else None


def _why(hits: Sequence[CaseToPair], named: str) -> str:
    return f"several sets have a {named}" if hits else f"no set has a {named}"


def _decided(hits: list[CaseToPair], conversation: FoundConversation) -> list[CaseToPair]:
    """Those of several cases that are most like the conversation."""
    if len(hits) < 2:
        return hits
    said = [_plain(one) for one in conversation.messages]
    same = [case for case in hits if [_plain(one) for one in case.messages] == said]
    if not same:
        same = [case for case in hits if len(case.messages) == len(said)]
    return same or hits


def _plain(text: str) -> str:
    return " ".join(_ATTACHMENT.sub("", text).split()).casefold()


def aligned_events(
    messages: Sequence[str], conversation: RecordedConversation
) -> tuple[tuple[Event, ...], tuple[int | None, ...]]:
    """The events of a conversation, numbered by the expected turns that they are of.

    An expected turn that was not held is a message of the user alone, which says so; turns that nobody
    expects come last, and say so, too. Also returns for each turn of the conversation its new number.
    """
    pairs = aligned(messages, conversation.turns)
    events: list[Event] = []
    for number, message in enumerate(messages):
        turn = pairs.get(number)
        if turn is None:
            events.append(_not_held(message, number))
        else:
            events += _numbered(conversation.turns[turn], number)
    places: list[int | None] = [None] * len(conversation.turns)
    for expected, turn in pairs.items():
        places[turn] = expected
    extra = [turn for turn, place in enumerate(places) if place is None]
    for offset, turn in enumerate(extra):
        first, *others = _numbered(conversation.turns[turn], len(messages) + offset)
        untold = [*first.data.get("untold", ()), UNEXPECTED]
        events += [replace(first, data={**first.data, "untold": untold}), *others]
    return tuple(events), tuple(places)


def _numbered(turn: RecordedTurn, number: int) -> Iterator[Event]:
    return (event if event.turn == number else replace(event, turn=number) for event in turn.events)


def _not_held(message: str, number: int) -> Event:
    content = {"role": "user", "parts": [{"text": message}] if message else []}
    return Event("user", content, turn=number, data={"step": f"not held:{number}", "untold": [TURN]})


def aligned(messages: Sequence[str], turns: Sequence[RecordedTurn]) -> Mapping[int, int]:
    """Which expected turn is which that was held, in order: the same message, or one much like it.

    A turn whose message nobody recorded may be any.
    """
    wanted = [_plain(one)[:_COMPARED] for one in messages]
    said = [None if USER_MESSAGE in one.untold else _plain(one.user)[:_COMPARED] for one in turns]
    if wanted == said:
        return {number: number for number in range(len(wanted))}
    # The best sum of likenesses, from the end.
    best = [[0.0] * (len(said) + 1) for _ in range(len(wanted) + 1)]
    likeness = [[_likeness(one, other) for other in said] for one in wanted]
    for i in reversed(range(len(wanted))):
        for j in reversed(range(len(said))):
            together = likeness[i][j] + best[i + 1][j + 1] if likeness[i][j] else 0.0
            best[i][j] = max(together, best[i + 1][j], best[i][j + 1])
    pairs: dict[int, int] = {}
    i = j = 0
    while i < len(wanted) and j < len(said):
        if likeness[i][j] and best[i][j] == likeness[i][j] + best[i + 1][j + 1]:
            pairs[i] = j
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _likeness(wanted: str, said: str | None) -> float:
    """0.0 for messages that are not the same."""
    if said is None:
        return _ALIKE / 2
    if wanted == said:
        return 1.0
    matcher = SequenceMatcher(None, wanted, said, autojunk=False)
    if matcher.real_quick_ratio() < _ALIKE or matcher.quick_ratio() < _ALIKE:
        return 0.0
    ratio = matcher.ratio()
    return ratio if ratio >= _ALIKE else 0.0
