"""Editing one field of the case in its place: opening, typing, applying, closing."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace

from evaltui.text.keys import key_of
from evaltui.tui.action_screen import KeysInOrder
from evaltui.tui.exchange import EditorError, edit_outside
from evaltui.tui.pages.case import OpenField
from evaltui.tui.panes.case.navigation import CaseRows
from evaltui.tui.panes.case.opened_field import FieldChanges, OpenedField, changed_outside
from evaltui.tui.widgets.fields import FieldLine, FieldText, as_one_line
from evaltui.workbench.fields import Field, Operation, Part, Row, RowId
from evaltui.workbench.workbench import Workbench

_TALLEST = 12


class FieldEditor:
    """The two widgets of a case pane that fields are typed in, and the field that is open in one of them."""

    def __init__(self, pane: CaseRows, workbench: Workbench) -> None:
        self.opened: OpenedField | None = None
        """The open field; None if none is."""
        self.line = FieldLine(id="case-line")
        self.line.soft_wrap = True
        self.text = FieldText(id="case-text")
        self._pane = pane
        self._workbench = workbench
        self._changes = FieldChanges(pane, workbench)
        self._opened_times = 0
        self._width = 0

    # Opening

    def perform(self, operation: Operation | None, otherwise: str) -> None:
        """Does an operation of a row and opens the field it leads to; `otherwise` is why there is none."""
        if operation is None:
            self._pane.refuse_row(otherwise)
            return
        typing = self._new_typing(operation.then or ()) if operation.opens else None
        before = self._pane.row
        if self._pane.do(operation, typing=typing) and operation.opens:
            self.edit(operation.opens, typing=typing, fresh=operation.make is not None)
            if self.opened is not None and self.opened.fresh and before is not None:
                self.opened.added_from = before.id
        if operation.opens and self.opened is None:
            self._pane.refuse_row(None)

    def edit(
        self, part: Part, *, typing: Hashable = None, fresh: bool = False, selected: bool = False
    ) -> None:
        """Opens the value or the name of the current row, if it has one."""
        row = self._pane.row
        field = row.of(part) if row else None
        if row is not None and field is not None:
            # Names complete from what it declares.
            self._workbench.agent.learn_tools()
            self.open(row, part, field, typing, fresh=fresh, selected=selected or fresh)
            self._pane.show_soon()

    def open(
        self,
        row: Row,
        part: Part,
        field: Field,
        typing: Hashable = None,
        *,
        fresh: bool = False,
        selected: bool = False,
        adds: dict[str, Callable[[], None]] | None = None,
    ) -> None:
        """Opens a field in its row. With `adds` it chooses what to add there.

        `typing` joins what is typed with an undo step; `fresh` is a field of something added by that step.
        """
        self.close(keep=True)
        path = self._workbench.navigation.selection.path
        left = None
        if path is not None and adds is None:
            left = self._workbench.editing.unapplied.at(path, *self._pane.selected.place_of(row, part))
        text, problem = (left.text, left.problem) if left else (field.text, "")
        if left is not None and left.base != field.text:
            problem = changed_outside(field.text)
        widget = self.text if field.kind in ("text", "json") else self.line
        self.line.one_line = field.kind == "line"
        self.opened = OpenedField(
            row.id,
            part,
            field,
            field.kind,
            widget,
            typing or self._new_typing(row.id),
            handled=text,
            seen=field.text,
            base=field.text,
            fresh=fresh,
            done=fresh,
            problem=problem,
            choice=None if adds is None else 0,
            chosen_from=field.completions,
            adds=adds,
        )
        for one in (self.line, self.text):
            one.display = one is widget
        widget.begin(text, selected=selected, is_json=field.kind == "json")
        # What the widget makes of a text, nobody has typed.
        self.opened.handled = widget.typed
        self._pane.follow()
        # At once, not soon: what is typed right behind the key is meant for the field.
        self._pane.screen.set_focus(widget, scroll_visible=False)

    def _new_typing(self, row: RowId) -> Hashable:
        self._opened_times += 1
        return "field of a case", self._workbench.navigation.selection.case, row, self._opened_times

    # Typing

    def typed(self) -> None:
        """Applies what is in the field, as far as it is valid."""
        field = self.opened
        if field is None or field.widget.typed == field.handled:
            return
        field.handled = field.widget.typed
        field.choose_best_match()
        if field.is_gone:
            return
        if field.field.live:
            self._changes.apply(field)
        else:
            self._changes.keep_unapplied(field)
        self._pane.show_soon()

    # Closing

    def follow(self) -> None:
        """Takes over what an undo, or somebody else, has changed in the row that is open."""
        if self.opened is not None and not self._changes.take_over(self.opened):
            self._close_from_outside()

    def _close_from_outside(self) -> None:
        """Closes the field; what the user goes on typing is no command."""
        was_typing = self.opened is not None and self.opened.widget.has_focus
        self.close(keep=True)
        app = self._pane.app
        if was_typing and isinstance(app, KeysInOrder):
            app.swallow_typing()
            self._workbench.say("Field closed: its line was changed outside")

    def close(self, *, keep: bool) -> None:
        """Leaves the field. What is not valid is kept for later with `keep`, else dropped."""
        field = self.opened
        if field is None:
            return
        if not keep:
            self._changes.drop_unapplied(field)
        self.opened = None
        if field.widget.has_focus:
            self._pane.screen.set_focus(self._pane, scroll_visible=False)
        self.line.display = self.text.display = False
        self._workbench.editing.end_typing()

    def left(self) -> None:
        """Closes the field when another pane gets the focus: what is typed counts, but no completion."""
        if self.opened is not None:
            self.opened.choice = None
            self._finished()
            self.close(keep=True)
            self._pane.show_soon()

    def save(self) -> None:
        """Closes the field if all is applied, and saves every file."""
        if self._finished():
            self.close(keep=True)
        self._pane.show_soon()
        self._workbench.editing.save_all()

    def _finished(self) -> bool:
        return self.opened is None or self._changes.finish(self.opened)

    def end(self) -> None:
        """Applies and closes the field, and goes on to what comes after it."""
        field = self.opened
        if field is None:
            return
        if field.adds is not None:
            self._add_chosen(field)
            return
        if not self._finished():
            if field.problem_at is not None:
                field.widget.move_cursor(field.problem_at)
            self._pane.show_soon()
            return
        self._go_on(field, self._following(field))

    def _following(self, field: OpenedField) -> Operation | None:
        """What comes after a field: its value after the name of something new, arguments after a call."""
        now = self._changes.now(field)
        then = now.then if now else None
        if then is None or (then.if_changed and not field.fresh and field.widget.typed == field.base):
            return None
        return then if then.make is not None or field.fresh else None

    def _go_on(self, field: OpenedField, then: Operation | None) -> None:
        """Closes a field in which all is well, and does what comes after it."""
        if then is not None and then.make is not None:
            # A call, its name and the arguments that it needs are one step.
            self._pane.do(replace(then, then=None), typing=field.typing)
        self.close(keep=True)
        if then is not None and then.then is not None:
            self._pane.move_to_id(then.then)
        self._pane.show_soon()
        if then is not None and then.opens:
            self.edit(then.opens, selected=True)
            if self.opened is None:
                # It could not be made: what is typed next is typed where the cursor was.
                self._pane.move_to_id(field.row)
                self.edit(field.part)

    def _add_chosen(self, field: OpenedField) -> None:
        matches = field.matches()
        chosen = matches[field.choice].text if field.choice is not None and matches else self.line.typed
        add = (field.adds or {}).get(chosen)
        if add is None:
            field.problem = "Nothing of this kind to add here"
            self._pane.show_soon()
            return
        self.close(keep=False)
        self._pane.show_soon()
        add()

    def cancel(self) -> None:
        """Closes the completions, else the field: the old value is back. A long text is asked about first."""
        field = self.opened
        if field is None:
            return
        if field.choice is not None and field.adds is None and field.matches():
            field.choice, field.hides_choices = None, True
        elif not field.asks_to_discard():
            self._changes.restore(field)
            if field.done:
                self._workbench.say(f"Cancelled   {key_of('redo')} redo")
            self.close(keep=False)
            if field.added_from is not None:
                self._pane.move_to_id(field.added_from)
        self._pane.show_soon()

    def step(self, step: int) -> None:
        """Ends the field and edits the next (1) or the one before (-1); the last one is not left.

        A completion that is ready is taken first, and the field stays open.
        """
        field = self.opened
        if field is None:
            return
        if field.adds is not None:
            self.end()
            return
        if step > 0 and field.completes():
            field.widget.begin(field.matches()[field.choice or 0].text, selected=False)
            self.typed()
            return
        if not self._finished():
            self._pane.show_soon()
            return
        then = self._following(field) if step > 0 else None
        if then is not None:
            self._go_on(field, then)
            return
        following = self._pane.next_field(step)
        if following is None:
            apply = key_of("end_text" if field.is_text else "end_field")
            self._workbench.say(f"{'Last' if step > 0 else 'First'} field   {apply} apply")
            self._pane.show_soon()
            return
        self._go_on(field, None)
        self._pane.move_to_id(following)
        self._pane.show_soon()
        self.edit("value", selected=True)

    def step_choice(self, step: int) -> None:
        """Selects the next (1) or previous (-1) completion; without any, moves the cursor in the text."""
        field = self.opened
        if field is None:
            return
        if not (matches := field.matches()):
            (field.widget.action_cursor_down if step > 0 else field.widget.action_cursor_up)()
            return
        place = -1 if field.choice is None else field.choice
        place = max(-1, min(place + step, len(matches) - 1))
        field.choice = None if place < 0 else place
        self._pane.show_soon()

    def choose_at(self, line: int) -> bool:
        """Applies the completion that is drawn on a line of the page; False if there is none."""
        field, pane = self.opened, self._pane
        if field is None or pane.current >= len(pane.placed):
            return False
        matches = field.matches()
        number = line - pane.placed[pane.current].y - self.height()
        if not 0 <= number < len(matches):
            return False
        field.choice = number + field.first_choice
        self.end()
        return True

    def edit_outside(self) -> None:
        """Goes on in $VISUAL or $EDITOR."""
        field = self.opened
        if field is None or field.adds is not None:
            return
        suffix = ".json" if field.kind == "json" else ".txt"
        before = field.widget.typed
        try:
            changed = edit_outside(self._pane.app, before, suffix)
        except EditorError as error:
            self._workbench.say(str(error))
            return
        if changed != before:
            changed = as_one_line(changed) if field.kind == "line" else changed
            field.widget.begin(changed, selected=False, is_json=field.kind == "json")
        self.typed()

    # Where the field is on the page

    @property
    def page_field(self) -> OpenField | None:
        """The room that the page leaves for the open field."""
        field = self.opened
        if field is None:
            return None
        adding = field.adds is not None or field.is_gone
        chosen = None if field.choice is None else field.choice - field.first_choice
        row = self._pane.row
        remark = row.declared if row and field.part == "value" and not field.is_text else ""
        return OpenField(
            field.row,
            field.part,
            self.height(),
            field.is_text,
            field.choice_lines(),
            chosen,
            field.lines_below(),
            remark,
            adding,
        )

    def shown_state(self) -> object:
        """What of the field the page around it shows."""
        field = self.opened
        if field is None:
            return None
        typed = (field.handled, field.chosen_from) if field.chosen_from or field.adds else None
        height = self.height(), self._pane.size.height
        texts = field.problem, field.question
        return field.row, field.part, texts, field.choice, field.hides_choices, height, typed

    def height(self) -> int:
        """The lines that the field takes."""
        field, size = self.opened, self._pane.size
        if field is None:
            return 1
        width = self._width or max(10, min(size.width - 3, 110) - 16)
        least = 2 if field.is_text else 1
        most = max(least, min(_TALLEST, size.height - 6))
        return max(least, field.widget.height_at(width, most))

    def place(self) -> None:
        """Puts the widget where the page has left room for it."""
        field, pane = self.opened, self._pane
        if field is None or pane.current >= len(pane.placed):
            return
        place = pane.placed[pane.current]
        width = max(8, min(place.width, pane.line_width - 2 - place.x))
        field.widget.styles.offset = (place.x + 1, place.y)
        field.widget.styles.width = width
        if width != self._width:
            # How high it is depends on where it begins.
            self._width = width
            pane.write_page()
        field.widget.styles.height = self.height()
