"""The field of a message, which grows with its text, and its attachments."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical

from evaltui.text.lines import Line, cells
from evaltui.tui.action_screen import bindings
from evaltui.tui.textual_private import ExactTextArea
from evaltui.tui.widgets.lines import DrawnLine, rule
from evaltui.workbench.actions import Scope


class MessageField(ExactTextArea):
    """The text of a message. Keys that do more than change it are actions of the box around it.

    `detach` is called for backspace at the beginning.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.MESSAGE)

    def __init__(self, detach: Callable[[], None], *, id: str) -> None:
        super().__init__(compact=True, highlight_cursor_line=False, id=id)
        self._drop_attached = detach

    def begin(self, text: str) -> None:
        """Show a text with the cursor at its end."""
        self.load_text(text)
        self.move_cursor(self.document.end)

    def action_new_line(self) -> None:
        self.insert("\n")

    def action_delete_left(self) -> None:
        if self.selection.is_empty and self.cursor_location == (0, 0):
            self._drop_attached()
        else:
            super().action_delete_left()

    @property
    def wrapped_row(self) -> int:
        return self.wrapped_document.location_to_offset(self.cursor_location).y


class MessageBox(Vertical):
    """A rule with a note, what is attached, and the field. A subclass knows the conversation."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.field = MessageField(self.detach, id=f"{id}-field")
        self._rule = DrawnLine(self._draw_rule)
        self._chips = DrawnLine(lambda width: self.chips(), id=f"{id}-chips")

    @abstractmethod
    def note(self) -> tuple[Line, Line]:
        """What the rule above the message shows on its left and on its right."""

    @abstractmethod
    def chips(self) -> Line:
        """What goes along with the message."""

    @abstractmethod
    def detach(self) -> None:
        """Removes the file that was attached last."""

    def compose(self) -> ComposeResult:
        yield self._rule
        yield self._chips
        with Horizontal(id=f"{self.id}-line"):
            yield DrawnLine(self._draw_prompt, id=f"{self.id}-prompt")
            yield self.field

    def _draw_rule(self, width: int) -> Line:
        left, right = self.note()
        heavy = self.field.has_focus
        if left:
            return rule(left, right, width, heavy=heavy)
        stroke, role = ("━", "bold accent") if heavy else ("─", "muted")
        ending: Line = (
            [(" ", ""), *right, (f" {stroke * 2}", role)] if right and cells(right) + 8 <= width else []
        )
        return [(stroke * (width - cells(ending)), role), *ending]

    def _draw_prompt(self, width: int) -> Line:
        return [("> ", "bold accent" if self.field.has_focus else "muted")]

    def follow(self) -> None:
        """Draw what may have changed around the field."""
        self._chips.display = bool(self._chips.line(self.size.width))
        self._chips.refresh()
        self._rule.refresh()

    def on_click(self, event: events.Click) -> None:
        self.field.focus()

    def on_descendant_focus(self) -> None:
        self._rule.refresh()

    def on_descendant_blur(self) -> None:
        self._rule.refresh()
