"""Finding an action, a case, a set or a theme by its name, and choosing it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input

from evaltui.text.lines import Line
from evaltui.tui.action_screen import DialogScreen
from evaltui.tui.bindings import bindings
from evaltui.tui.palette import Entry, entries
from evaltui.tui.screens.prompt import ANSWER_MOVES, QuestionInput, QuestionKeys, QuestionTitle
from evaltui.tui.timing import once
from evaltui.tui.widgets.cursor_lines import CursorLines
from evaltui.workbench.actions import Scope

if TYPE_CHECKING:
    from evaltui.tui.screens.main import MainScreen

# Seconds without a key after which is looked.
_PAUSE = 0.04


class PaletteScreen(DialogScreen[Callable[[], object] | None], inherit_bindings=False):
    """Returns what is to be done."""

    box = "#palette"
    BINDINGS = bindings(Scope.PROMPT)

    def __init__(self, main: MainScreen) -> None:
        super().__init__()
        self._main = main
        self._soon: Timer | None = None
        self._looked_for: str | None = None

    def compose(self) -> ComposeResult:
        with Vertical(id="palette"):
            yield QuestionTitle("Commands")
            yield QuestionInput(placeholder="an action, a case, a set or a theme")
            yield PaletteLines(id="palette-lines")
            yield QuestionKeys("take", "leave_question", "next_answer", "previous_answer")

    def on_mount(self) -> None:
        self._look()

    def on_input_changed(self, event: Input.Changed) -> None:
        if self._soon is not None:
            self._soon.stop()
        self._soon = once(self, _PAUSE, self._look_again)

    def _look_again(self) -> None:
        if self.is_here:
            self._look()

    def _look(self) -> None:
        query = self.query_one(QuestionInput).value.strip()
        if query != self._looked_for:
            self._looked_for = query
            self.query_one(PaletteLines).show(entries(self._main, query))

    def perform(self, action_id: str) -> None:
        # What was typed just now counts.
        self._look()
        lines = self.query_one(PaletteLines)
        if action_id == "leave_question":
            self.dismiss(None)
        elif action_id == "take":
            if (entry := lines.current) is not None:
                self.dismiss(entry.choose)
        else:
            getattr(lines, f"action_{ANSWER_MOVES[action_id]}")()

    def on_palette_lines_chosen(self, message: PaletteLines.Chosen) -> None:
        self.dismiss(message.entry.choose)


class PaletteLines(CursorLines, can_focus=False, inherit_bindings=False):
    """What was found; a click chooses."""

    class Chosen(Message):
        """The user clicked something."""

        def __init__(self, entry: Entry) -> None:
            super().__init__()
            self.entry = entry

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._entries: Sequence[Entry] = ()

    @property
    def current(self) -> Entry | None:
        return self._entries[self.cursor] if self._entries else None

    def show(self, found: Sequence[Entry]) -> None:
        self._entries = found
        self.lines_changed(max(1, len(found)))
        self.move_to(0)

    def on_resize(self) -> None:
        self.lines_changed(max(1, len(self._entries)))

    def line_classes(self, number: int) -> tuple[str, ...]:
        return super().line_classes(number) if self._entries else ()

    def line(self, number: int) -> Line:
        if not self._entries:
            return [(" No match", "dim")]
        return [("▌" if number == self.cursor else " ", "accent"), (" ", ""), *self._entries[number].line]

    def open_current(self) -> None:
        """A click chooses already."""

    def on_click(self, event: events.Click) -> None:
        number = self.scroll_offset.y + event.y
        if number < len(self._entries):
            self.post_message(self.Chosen(self._entries[number]))
