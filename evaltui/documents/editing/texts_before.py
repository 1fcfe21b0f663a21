"""The expected texts of a turn before its answer, in the units in which they are scored.

All that one event, or one pair of author and parts, says is one text. Where the answer holds nothing but
thoughts, the last text is scored in its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from evaltui.core.model.json_values import dicts
from evaltui.documents.editing.intermediate import IntermediateData, IntermediateResponse
from evaltui.documents.editing.turn import TurnEditor
from evaltui.documents.values import put, remove


@dataclass(frozen=True)
class TextBefore:
    """An expected text, which is in one part or more."""

    intermediate: IntermediateData
    parts: tuple[IntermediateResponse, ...]

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts)

    @property
    def place(self) -> int:
        """The index of its event or pair."""
        return int(self.parts[0].entry[-1])

    def set_text(self, text: str) -> None:
        if text != self.text:
            put(self.intermediate.data, (*self.parts[0].path, "text"), text)
            for part in reversed(self.parts[1:]):
                remove(self.intermediate.data, part.path)

    def delete(self) -> None:
        """An event or pair that has nothing else in it goes, too."""
        for part in reversed(self.parts):
            part.delete()


def all_texts(turn: TurnEditor) -> list[TextBefore]:
    """In order, with one that is scored in place of the answer."""
    texts = [text for text in turn.intermediate_responses if text.text]
    return [
        TextBefore(turn.intermediate, tuple(parts)) for _, parts in groupby(texts, lambda text: text.entry)
    ]


def text_as_answer(turn: TurnEditor, *, thoughts: bool) -> TextBefore | None:
    """The text that is scored in place of the answer; None where there is none, or `thoughts` are scored."""
    answer = turn.answer
    thought = any(part.get("thought") and part.get("text") for _, part in dicts(answer.parts))
    if thoughts or not thought or any(text.text for text in answer.texts):
        return None
    return next(reversed(all_texts(turn)), None)


def insert_text(turn: TurnEditor, at: int, author: str, text: str, calls: int) -> None:
    """A text before the one at index `at`: in a turn of events, behind so many calls where the texts around
    it let it."""
    existing, intermediate, part = all_texts(turn), turn.intermediate, {"text": text}
    first = existing[at - 1].place + 1 if at else 0
    if intermediate.shape != "events":
        place = existing[0].place if existing and not at else first
        intermediate.insert_in_list("intermediate_responses", place, [author, [part]])
        return
    last = existing[at].place if at < len(existing) else intermediate.end_of_events
    event = max(first, min(_behind_calls(intermediate, calls), last))
    intermediate.insert_event(event, part, "model", author)


def _behind_calls(intermediate: IntermediateData, calls: int) -> int:
    """The index of the event behind the first calls and what was returned to them."""
    events = [event for event, _ in intermediate.parts_with("function_call")][:calls]
    if not events:
        return 0
    event = events[-1] + 1
    while intermediate.holds_only(event, "function_response"):
        event += 1
    return event
