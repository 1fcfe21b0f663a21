"""The conversation of recorded traces that is taken as a case."""

from __future__ import annotations

from collections.abc import Sequence

from evaltui.text.figures import counted
from evaltui.text.lines import Line, both_ends
from evaltui.text.values import visible
from evaltui.traces.conversations import RecordedConversation
from evaltui.tui.screens.finding import SearchScreen, has_words


class ConversationScreen(SearchScreen[RecordedConversation, RecordedConversation]):
    """Returns one of several conversations."""

    box = "#pick-conversation"
    title_text = "Import conversation"
    placeholder = "type words of its messages"
    take_word = "choose"

    def __init__(self, conversations: Sequence[RecordedConversation]) -> None:
        super().__init__()
        self._conversations = conversations

    def find(self, query: str) -> list[RecordedConversation]:
        return [
            one
            for one in self._conversations
            if has_words(query, " ".join([one.id, *(turn.user for turn in one.turns)]))
        ]

    def found_line(self, found: RecordedConversation, width: int) -> Line:
        said = next((turn.user for turn in found.turns if turn.user), found.id)
        turns = counted(len(found.turns), "turn")
        left: Line = [(" ", ""), (visible(" ".join(said.split())), "")]
        return both_ends(left, [(f"{visible(found.id)}  {turns} ", "muted")], width)

    def result_of(self, found: RecordedConversation) -> RecordedConversation:
        return found
