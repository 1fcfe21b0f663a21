"""Turns of recorded conversations for eval cases: what was recorded, without ids, and what is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from evaltui.core.model.events import (
    ANSWERS,
    ARGUMENTS,
    CALLS,
    USER_MESSAGE,
    Event,
    Json,
    describe_response,
    parts_in,
)
from evaltui.text.figures import counted, plural, short_list
from evaltui.traces.conversations import RecordedConversation, RecordedSession, RecordedTurn
from evaltui.traces.history import SEVERAL_MESSAGES

_RANGE = re.compile(r"\s*(\d{1,9})\s*(?:(-)\s*(\d{1,9})?)?\s*")


def chosen_turns(text: str, count: int) -> list[int]:
    """Places of turns, from 0, as in `2-4`, `1,3` or `2-`, of a conversation that has `count`.

    Raises ValueError, with a sentence.
    """
    places: set[int] = set()
    for piece in text.split(","):
        match = _RANGE.fullmatch(piece)
        if match is None:
            raise ValueError(f"{text!r} is not a choice of turns, e.g. 2-4 or 1,3")
        first = int(match[1])
        last = int(match[3] or count) if match[2] else first
        if not 1 <= first <= last <= count:
            raise ValueError(f"{piece.strip()}: the conversation has {counted(count, 'turn')}")
        places.update(range(first - 1, last))
    return sorted(places)


def unusable(turn: RecordedTurn) -> str:
    """Why a turn cannot be one of a case, "" where it can."""
    if turn.error is not None:
        return f"ended with {turn.error.type}: {turn.error.message}"
    if USER_MESSAGE in turn.untold:
        return f"the user's message was not recorded: {turn.untold[USER_MESSAGE]}"
    if (remedy := turn.untold.get(ANSWERS)) in SEVERAL_MESSAGES:
        return f"may have several messages of the user: {remedy}"
    return ""


def shown_message(turn: RecordedTurn) -> str:
    """The text and the responses of a user's message in a line; "" where there are none."""
    parts = parts_in(turn.events[0].content)
    responses = (
        describe_response(part["function_response"]) for part in parts if "function_response" in part
    )
    return " ".join(" ".join((turn.user, *responses)).split())


def unknown_state(session: RecordedSession) -> Iterator[str]:
    """Sentences about values of a session's initial state that are not known, or not surely."""
    if session.unknown:
        keys = short_list(session.unknown)
        yield f"initial state of {keys} unknown: the session changed it. Add it to the case if it had a value"
    if session.shared:
        keys = short_list(session.shared)
        yield f"initial state of {keys} is the last one; other sessions may have changed it"


def turn_events(conversation: RecordedConversation, number: int) -> list[Event]:
    """The events of a turn, from 0, for a case.

    Ids of calls, which are others in every run, are left out unless the user responds to a call by its id.
    Calls whose arguments were not recorded are unknown as a whole: expected without them, none would match.
    """
    turn = conversation.turns[number]
    responded_ids = _responded(conversation.turns)
    first, *others = turn.events
    if ARGUMENTS in turn.untold:
        first = replace(first, data={**first.data, "untold": [*first.data.get("untold", ()), CALLS]})
    return [first, *(_without_ids(event, responded_ids) for event in others)]


def _responded(turns: Sequence[RecordedTurn]) -> set[str]:
    """The ids of the calls that the user responds to."""
    parts = (part for turn in turns for part in parts_in(turn.events[0].content))
    return {str(part["function_response"].get("id")) for part in parts if "function_response" in part}


def _without_ids(event: Event, responded_ids: set[str]) -> Event:
    if event.kind not in ("tool_call", "tool_result") or event.content is None:
        return event
    parts = [
        {name: _without_id(value, responded_ids) for name, value in part.items()}
        for part in event.content["parts"]
    ]
    return replace(event, content={**event.content, "parts": parts})


def _without_id(value: Json, responded_ids: set[str]) -> Json:
    if not isinstance(value, dict) or str(value.get("id")) in responded_ids:
        return value
    return {name: member for name, member in value.items() if name != "id"}


_WORDS = {ANSWERS: "response"}
_EXPECTED = (CALLS, ARGUMENTS, ANSWERS)


def missing_content(turns: Sequence[RecordedTurn]) -> Iterator[tuple[str, str]]:
    """`arguments (turns 1, 3), response`, with what brings it; turns where it is missing in some only."""
    by_remedy: dict[str, dict[str, list[int]]] = {}
    for number, turn in enumerate(turns, start=1):
        for what, remedy in turn.untold.items():
            by_remedy.setdefault(remedy, {}).setdefault(_WORDS.get(what, what), []).append(number)
    for remedy, numbers in by_remedy.items():
        named = (what + _of_turns(some, len(turns)) for what, some in numbers.items())
        yield ", ".join(named), remedy


def _of_turns(numbers: Sequence[int], count: int) -> str:
    if len(numbers) == count:
        return ""
    return f" ({plural(len(numbers), 'turn')} {', '.join(map(str, numbers))})"


def not_expected(turn: RecordedTurn) -> Iterator[str]:
    """Parts of a turn that a case cannot expect, since the trace does not hold them, with their remedies."""
    by_remedy: dict[str, list[str]] = {}
    for what in _EXPECTED:
        if what in turn.untold:
            by_remedy.setdefault(turn.untold[what], []).append(_WORDS.get(what, what))
    for remedy, named in by_remedy.items():
        yield f"{', '.join(named)} not recorded, so not expected: {remedy}"
