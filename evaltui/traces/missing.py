"""Missing parts of recorded turns, in words: each remedy once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evaltui.core.model.events import ANSWERS, ARGUMENTS, CALLS
from evaltui.text.figures import plural
from evaltui.traces.conversations import RecordedTurn

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
