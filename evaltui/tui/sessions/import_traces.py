"""The dialog that imports conversations of recorded traces as cases."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.dom import DOMNode

from evaltui.core.model.events import Event
from evaltui.core.secrets import Secrets
from evaltui.core.trace.span_lines import model_of
from evaltui.text.figures import UNKNOWN, counted, show_moment
from evaltui.text.lines import Line, both_ends
from evaltui.text.values import visible
from evaltui.traces.conversations import RecordedConversation
from evaltui.tui.action_screen import ask, bindings
from evaltui.tui.dialogs.finding import has_words
from evaltui.tui.dialogs.prompt import Hint, PromptScreen, QuestionInput, dialog_name
from evaltui.tui.dialogs.second_pages import PreviewScreen
from evaltui.tui.trace.page import Columns, span_line
from evaltui.tui.widgets.writer import Page
from evaltui.workbench.actions import Scope
from evaltui.workbench.chat.imported import path_problem, read_conversations
from evaltui.workbench.trace.traces import GAP, Outline
from evaltui.workbench.workbench import Workbench

Chosen = Sequence[RecordedConversation]
_WHEN = 13


class ConversationScreen(PreviewScreen[Chosen, RecordedConversation]):
    """A list of conversations with a preview of the trace; returns the marked ones, else the current one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Scope.PROMPT),
        Binding("space", "form_toggle", id="form_toggle", priority=True),
    ]
    box = "#pick-conversation"
    title_text = dialog_name("import_traces")
    placeholder = "type a word of its messages"
    take_word = "import"

    def __init__(self, conversations: Chosen, secrets: Secrets) -> None:
        super().__init__()
        self._secrets = secrets
        self._conversations = conversations
        self._marked: list[RecordedConversation] = []

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one(QuestionInput).takes_space = False

    def hints(self) -> list[Hint]:
        choose, cancel = super().hints()
        return [choose, Hint("form_toggle", "mark"), cancel]

    def find(self, query: str) -> list[RecordedConversation]:
        return [
            conversation
            for conversation in self._conversations
            if has_words(query, " ".join([conversation.id, *(turn.user for turn in conversation.turns)]))
        ]

    def match_line(self, match: RecordedConversation, width: int) -> Line:
        began = datetime.fromtimestamp(match.began, UTC) if match.began else None
        when = show_moment(began, datetime.now(UTC)) if began else UNKNOWN
        message = next((turn.user for turn in match.turns if turn.user), match.id)
        errors = sum(turn.error is not None for turn in match.turns)
        left: Line = [
            ("◆ " if match in self._marked else "  ", "bold accent"),
            (f"{when:<{_WHEN}}", "muted"),
            (visible(" ".join(message.split())), ""),
        ]
        right: Line = [(f"{counted(errors, 'error')}  ", "error")] if errors else []
        return both_ends(left, [*right, (f"{counted(len(match.turns), 'turn')} ", "muted")], width)

    def write_preview(self, page: Page, match: RecordedConversation, height: int) -> None:
        outline = Outline()
        outline.add(Event.from_json(self._secrets.masked(event.to_json())) for event in match.events)
        columns, model = Columns.of(outline.tree), ""
        page.row(("session ", "muted"), (visible(match.id), "bold"))
        page.blank()
        for row in outline.rows:
            span = outline.tree.spans[row]
            if row == GAP:
                page.blank()
                continue
            named = span.kind != "model" or model_of(span) != model
            model = model if span.kind != "model" else model_of(span)
            page.lines.append(span_line(span, columns, page.width, folded=False, named=named))

    def action_form_toggle(self) -> None:
        if (current := self.current) is not None:
            self._marked = [
                conversation
                for conversation in self._conversations
                if (conversation in self._marked) != (conversation is current)
            ]
            self.action_step_line(1)
            self.answers.refresh()

    def result_of(self, match: RecordedConversation) -> Chosen:
        return self._marked or [match]


def ask_for_traces(asker: DOMNode, read: Callable[[str], None]) -> None:
    """Asks for the path of a file or folder of traces."""
    hint = "File or folder of traces: OTLP, Tempo, Jaeger, ADK"
    name = dialog_name("import_traces")
    ask(asker, PromptScreen(name, check=path_problem, hint=hint, is_path=True), read)


async def choose_conversations(
    asker: DOMNode, workbench: Workbench, path: str, choose: Callable[[Chosen], None]
) -> None:
    """Reads traces, and asks which of their conversations to import."""
    workbench.say(f"Reading {visible(path)}…")
    try:
        conversations = await asyncio.to_thread(read_conversations, path)
    except (OSError, ValueError) as error:
        workbench.say(str(error))
        return
    workbench.say("")
    ask(asker, ConversationScreen(conversations, workbench.agent.secrets), choose)
