"""Where a message is typed: a text that grows with what is in it, and what is attached to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical

from evaltui.text.lines import Line, cells
from evaltui.tui.bindings import bindings
from evaltui.tui.widgets.exact_text import ExactTextArea
from evaltui.tui.widgets.field import Tell
from evaltui.tui.widgets.one_line import OneLine, rule
from evaltui.workbench.actions import Scope

# What is said on the rule above the message: on its left and on its right.
Note = Callable[[], tuple[Line, Line]]
Chips = Callable[[], Line]


class MessageField(ExactTextArea):
    """Takes text. Every other key is handed to who owns the box, but for those that go about in the text.

    `up` in the first line and `down` in the last one ask for an earlier and a later message.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Scope.MESSAGE)

    def __init__(self, tell: Tell, *, id: str) -> None:
        super().__init__(compact=True, highlight_cursor_line=False, id=id)
        self.tell = tell

    def begin(self, text: str) -> None:
        """Show a text with the cursor at its end."""
        self.load_text(text)
        self.move_cursor(self.document.end)

    def action_new_line(self) -> None:
        self.insert("\n")

    def action_earlier_message(self) -> None:
        if self._wrapped_row > 0:
            self.action_cursor_up()
        else:
            self.tell("earlier_message")

    def action_later_message(self) -> None:
        if self._wrapped_row < self.wrapped_document.height - 1:
            self.action_cursor_down()
        else:
            self.tell("later_message")

    def action_send(self) -> None:
        self.tell("send")

    def action_leave_message(self) -> None:
        self.tell("leave_message")

    def action_attach_file(self) -> None:
        self.tell("attach_file")

    def action_respond_to_next(self) -> None:
        self.tell("respond_to_next")

    def action_message_in_editor(self) -> None:
        self.tell("message_in_editor")

    def action_earlier_rows(self) -> None:
        self.tell("earlier_rows")

    def action_later_rows(self) -> None:
        self.tell("later_rows")

    def action_new_chat(self) -> None:
        self.tell("new_chat")

    def action_save_as_case(self) -> None:
        self.tell("save_as_case")

    def action_delete_left(self) -> None:
        if self.selection.is_empty and self.cursor_location == (0, 0):
            self.tell("detach")
        else:
            super().action_delete_left()

    @property
    def _wrapped_row(self) -> int:
        return self.wrapped_document.location_to_offset(self.cursor_location).y


class MessageBox(Vertical):
    """A rule that says what goes on, what is attached, and the field. Knows no conversation."""

    def __init__(self, tell: Tell, note: Note, chips: Chips, *, id: str) -> None:
        super().__init__(id=id)
        self.field = MessageField(tell, id=f"{id}-field")
        self._rule = MessageRule(self.field, note)
        self._chips = MessageChips(chips)

    def compose(self) -> ComposeResult:
        yield self._rule
        yield self._chips
        with Horizontal(id=f"{self.id}-line"):
            yield MessagePrompt(self.field)
            yield self.field

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


class MessageRule(OneLine):
    def __init__(self, field: MessageField, note: Note) -> None:
        super().__init__()
        self._field = field
        self._note = note

    def line(self, width: int) -> Line:
        left, right = self._note()
        heavy = self._field.has_focus
        if left:
            return rule(left, right, width, heavy=heavy)
        stroke, tone = ("━", "accent") if heavy else ("─", "dim")
        ending: Line = (
            [(" ", ""), *right, (f" {stroke * 2}", tone)] if right and cells(right) + 8 <= width else []
        )
        return [(stroke * (width - cells(ending)), tone), *ending]


class MessageChips(OneLine):
    def __init__(self, chips: Chips) -> None:
        super().__init__()
        self._shown = chips

    def line(self, width: int) -> Line:
        return self._shown()


class MessagePrompt(OneLine):
    def __init__(self, field: MessageField) -> None:
        super().__init__()
        self._field = field

    def line(self, width: int) -> Line:
        return [("> ", "accent" if self._field.has_focus else "dim")]
