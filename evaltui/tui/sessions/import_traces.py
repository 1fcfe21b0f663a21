"""The conversation of recorded traces that is taken as a case."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from textual.dom import DOMNode

from evaltui.text.figures import counted
from evaltui.text.lines import Line, both_ends
from evaltui.text.values import visible
from evaltui.traces.conversations import RecordedConversation
from evaltui.tui.action_screen import ask
from evaltui.tui.dialogs.finding import SearchScreen, has_words
from evaltui.tui.dialogs.prompt import PromptScreen, dialog_name
from evaltui.workbench.chat.imported import path_problem, read_conversations
from evaltui.workbench.workbench import Workbench


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


def ask_for_traces(asker: DOMNode, read: Callable[[str], None]) -> None:
    """Asks for the path of a file or folder of traces."""
    hint = "File or folder of traces: OTLP, Tempo, Jaeger, ADK"
    ask(asker, PromptScreen(dialog_name("import_traces"), check=path_problem, hint=hint), read)


async def choose_conversation(
    asker: DOMNode, workbench: Workbench, path: str, take: Callable[[RecordedConversation], None]
) -> None:
    """Reads traces and asks which of their conversations to take, if they hold several."""
    workbench.say(f"Reading {visible(path)}…")
    try:
        found = await asyncio.to_thread(read_conversations, path)
    except (OSError, ValueError) as error:
        workbench.say(str(error))
        return
    workbench.say("")
    if len(found) == 1:
        take(found[0])
    else:
        ask(asker, ConversationScreen(found), take)
