"""Editing a field in its place: opening, typing, applying, closing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import itemgetter

from evaltui.text.figures import show_number
from evaltui.text.keys import key_of
from evaltui.text.lines import Line
from evaltui.text.values import visible
from evaltui.tui.action_screen import KeysInOrder
from evaltui.tui.case.navigation import CaseRows
from evaltui.tui.case.rows import OpenField
from evaltui.tui.exchange import EditorError, edit_outside
from evaltui.tui.widgets.fields import FieldLine, FieldText, join_lines
from evaltui.workbench.case.draft import Draft
from evaltui.workbench.case.fields import Completion, Field, Operation, Part, Row, RowId
from evaltui.workbench.case.steps import Step
from evaltui.workbench.workbench import Workbench

_MAX_CHOICES = 6


@dataclass
class OpenedField:
    """A field between opening and closing. It keeps its widget."""

    draft: Draft
    """The draft of the field."""
    widget: FieldText
    """The widget for its text."""
    added_from: RowId | None = None
    """The row from which the row of the field was just added; None for an existing row."""
    hides_choices: bool = False
    """Whether the completions are closed, until more is typed."""
    choice: int | None = None
    """Index of the selected completion, 0-based; None for none."""
    adds: dict[str, Callable[[], None]] | None = None
    """The possible additions, by label; None for a field that does not choose an addition. Additions are not
    drafted."""

    def matches(self) -> list[Completion]:
        """Completions of the typed text; none if it equals one of them."""
        choices, typed = self.draft.field.completions, self.draft.text
        if not choices or self.hides_choices:
            return []
        if not self.draft.is_typed and self.added_from is None:
            typed = ""
        if any(typed == choice.text for choice in choices):
            return []
        ranks = [(_rank(typed, choice.text), choice) for choice in choices]
        return [choice for rank, choice in sorted(ranks, key=itemgetter(0)) if rank < _NO_MATCH_RANK]

    def choose_best_match(self) -> None:
        """Selects the first completion where enter applies it."""
        self.choice, self.hides_choices = None, False
        if matches := self.matches():
            draft = self.draft
            names = draft.part == "name" or self._is_tool or self.adds is not None
            rank = _rank(draft.text, matches[0].text)
            # Letters in between may be another name that nobody proposes.
            self.choice = 0 if draft.text and (rank == 0 or (names and rank == 1)) else None

    @property
    def _is_tool(self) -> bool:
        """Whether it is the name of a tool call."""
        return self.draft.row[-2:-1] == ("call",)

    @property
    def first_choice(self) -> int:
        """Index of the first completion on screen, as not all may fit."""
        return max(0, (self.choice or 0) - _MAX_CHOICES + 1)

    def completes(self) -> bool:
        """Whether enter takes a completion: it is selected, or contains the typed text."""
        matches = self.matches()
        if not matches or self.choice is not None:
            return bool(matches)
        # Letters in between may be another text that is not on offer, but tools are all on offer.
        typed = self.draft.text
        most = _NO_MATCH_RANK if self._is_tool else _SCATTERED_RANK
        return self.draft.is_typed and typed != "" and _rank(typed, matches[0].text) < most

    def choice_lines(self) -> list[tuple[Line, Line]]:
        """The completions below the field: the text of each, and a hint at its right."""
        lines: list[tuple[Line, Line]] = []
        matches, first = self.matches(), self.first_choice
        default = (self.choice or 0) if self.adds is None and self.completes() else None
        for number, match in enumerate(matches[first : first + _MAX_CHOICES], first):
            left = _mark_letters(match.text, self.draft.text, "bold" if number == self.choice else "")
            if match.detail:
                left.append((visible(f"  {match.detail.splitlines()[0][:80]}"), "muted"))
            tab: Line = [(key_of("next_field"), "bold accent"), (" complete", "muted")]
            lines.append((left, tab if number == default else []))
        if len(matches) > first + _MAX_CHOICES:
            lines.append(([(f"… {show_number(len(matches) - first - _MAX_CHOICES)} more", "muted")], []))
        return lines

    def lines_below(self) -> list[Line]:
        """The problem and the question below the field."""
        lines: list[Line] = []
        if self.draft.problem:
            lines.append([("! ", "error"), (visible(self.draft.problem), "error")])
        if self.draft.question:
            lines.append([("! ", "warning"), (self.draft.question, "warning")])
        return lines


_SCATTERED_RANK, _NO_MATCH_RANK = 2, 3


def _rank(typed: str, text: str) -> int:
    """The rank of a completion: 0 if it starts with the typed text, 1 if it contains it, 2 if it contains its
    letters in order, 3 for no match."""
    letters, folded = typed.casefold(), text.casefold()
    if letters in folded:
        return 0 if folded.startswith(letters) else 1
    return _SCATTERED_RANK if len(_letters(typed, text)) == len(typed) else _NO_MATCH_RANK


def _letters(typed: str, text: str) -> list[int]:
    """The places of the typed letters in a text, in order, up to the first missing one."""
    folded, letters = text.casefold(), typed.casefold()
    if (start := folded.find(letters)) >= 0:
        return [*range(start, start + len(typed))]
    places: list[int] = []
    for letter in letters:
        start = folded.find(letter, places[-1] + 1 if places else 0)
        if start < 0:
            break
        places.append(start)
    return places


def _mark_letters(text: str, typed: str, role: str) -> Line:
    """A text with the typed letters in the accent role."""
    places = set(_letters(typed, text))
    return [(visible(letter), "bold accent" if at in places else role) for at, letter in enumerate(text)]


_TALLEST = 12
# Characters. Who has changed more is asked before that is discarded.
_MAX_DISCARDED = 200


class CaseFields(CaseRows, can_focus=True, inherit_bindings=False):
    """The rows of a case with two text widgets, and the field that is open in one of them."""

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self.opened: OpenedField | None = None
        """The open field; None for none."""
        self.field_line = FieldLine(id="case-line")
        self.field_line.soft_wrap = True
        self.field_text = FieldText(id="case-text")
        self._field_width = 0

    @property
    def is_editing(self) -> bool:
        return self.opened is not None

    # Opening

    def perform(self, operation: Operation | None, otherwise: str) -> None:
        """Does an operation of a row and opens the next field; `otherwise` is shown where there is no
        operation."""
        if operation is None:
            self.refuse_row(otherwise)
            return
        before = self.row
        if self.do(operation) and operation.opens:
            is_new = operation.make is not None
            step = self._workbench.editing.last_step if is_new else None
            self.edit(operation.opens, selected=is_new, step=step)
            if self.opened is not None and is_new and before is not None:
                self.opened.added_from = before.id
        if operation.opens and self.opened is None:
            self.refuse_row(None)

    def edit(self, part: Part, *, selected: bool = False, step: Step | None = None) -> None:
        """Opens the value or the name of the current row, if it has one; `step` has added the row."""
        row = self.row
        field = row.of(part) if row else None
        if row is not None and field is not None:
            # Names complete from what it declares.
            self._workbench.agent.learn_tools()
            draft = self._workbench.drafting.open(row.id, part, field, step=step)
            if draft is not None:
                self._show_field(OpenedField(draft, self._widget_for(field)), selected=selected)
            self.show_soon()

    def choose(self, row: Row, field: Field, adds: dict[str, Callable[[], None]]) -> None:
        """Opens a field below a row to choose an addition."""
        case = self.selected.case
        if case is not None and self._workbench.navigation.leave():
            draft = Draft(case, row.id, "value", field, "", "")
            self._show_field(OpenedField(draft, self.field_line, choice=0, adds=adds), selected=False)

    def _widget_for(self, field: Field) -> FieldText:
        return self.field_text if field.kind in ("text", "json") else self.field_line

    def _show_field(self, opened: OpenedField, *, selected: bool) -> None:
        self._close_field()
        self.opened, widget = opened, opened.widget
        for field in (self.field_line, self.field_text):
            field.display = field is widget
        draft, kind, is_typed = opened.draft, opened.draft.field.kind, opened.draft.is_typed
        self.field_line.one_line = kind == "line"
        widget.show_text(draft.text, selected=selected, is_json=kind == "json")
        # What the widget makes of a text, nobody has typed.
        draft.text = widget.typed
        if not is_typed:
            draft.base = draft.text
        self.follow()
        # At once, not soon: what is typed right behind the key is meant for the field.
        self.screen.set_focus(widget, scroll_visible=False)

    # Typing

    def on_text_area_changed(self) -> None:
        """Puts the text of the field into the draft."""
        if self.opened is not None and self._type(self.opened):
            self.show_soon()

    def _type(self, opened: OpenedField) -> bool:
        """Puts the text into the draft; returns whether it has changed."""
        draft, text = opened.draft, opened.widget.typed
        if text == draft.text:
            return False
        if opened.adds is None:
            self._workbench.drafting.type(text)
        else:
            draft.text, draft.problem = text, ""
        opened.choose_best_match()
        return True

    # Closing

    def follow_draft(self) -> None:
        """Opens a recovered draft, closes a field that was applied elsewhere, and takes over outside
        changes."""
        drafting, opened = self._workbench.drafting, self.opened
        if opened is None:
            if (draft := drafting.draft) is not None and not draft.is_in_dialog and self.rows:
                self.move_to_id(draft.row)
                self._show_field(OpenedField(draft, self._widget_for(draft.field)), selected=False)
            return
        if opened.adds is not None:
            return
        if drafting.draft is not opened.draft:
            self._close_field()
            return
        self._type(opened)
        before = opened.draft.text
        if not drafting.follow():
            self._close_from_outside(opened)
        elif opened.draft.text != before or opened.widget is not self._widget_for(opened.draft.field):
            self._show_field(replace(opened, widget=self._widget_for(opened.draft.field)), selected=False)

    def _close_from_outside(self, opened: OpenedField) -> None:
        """Closes the field; keys that the user goes on typing are ignored."""
        app, was_typing = self.app, opened.widget.has_focus
        self._workbench.drafting.drop()
        self._close_field()
        if opened.draft.is_typed:
            app.copy_to_clipboard(opened.draft.text)
            self._workbench.say("The case was deleted; its text is in the clipboard")
        elif was_typing:
            self._workbench.say("Field closed: its line was changed outside")
        if was_typing and isinstance(app, KeysInOrder):
            app.swallow_typing()

    def _close_field(self) -> None:
        opened, self.opened = self.opened, None
        if opened is None:
            return
        if opened.widget.has_focus:
            self.screen.set_focus(self, scroll_visible=False)
        self.field_line.display = self.field_text.display = False

    def left(self) -> bool:
        """Applies and closes the field when another pane gets the focus, without taking a completion.

        False where the text cannot be applied: the field shows a question, and keeps the focus.
        """
        opened = self.opened
        if opened is None:
            return True
        self._type(opened)
        if opened.adds is not None or self._workbench.drafting.leave():
            self._close_field()
        else:
            self.screen.set_focus(opened.widget, scroll_visible=False)
        self.show_soon()
        return self.opened is None

    def action_save_field(self) -> None:
        """Applies and closes the field, and saves all files."""
        opened = self.opened
        if opened is not None and opened.adds is None:
            self._complete_field(opened)
        if self.left():
            self._workbench.editing.save_all()

    def _complete_field(self, opened: OpenedField) -> None:
        """Puts the text into the draft; a selected completion counts as typed."""
        matches = opened.matches()
        if opened.choice is not None and opened.choice < len(matches):
            opened.widget.show_text(matches[opened.choice].text, selected=False)
            opened.choice = None
        self._type(opened)

    def _is_applied(self, opened: OpenedField) -> bool:
        self._complete_field(opened)
        if self._workbench.drafting.apply():
            self.follow()
            return True
        if opened.draft.problem_at is not None:
            opened.widget.move_cursor(opened.draft.problem_at)
        self.show_soon()
        return False

    def action_end_field(self) -> None:
        """Applies and closes the field, and opens the next one."""
        opened = self.opened
        if opened is None:
            return
        if opened.adds is not None:
            self._add_chosen(opened)
        elif self._is_applied(opened):
            self._go_on(opened, self._following(opened))

    action_end_text = action_end_field

    def _following(self, opened: OpenedField) -> Operation | None:
        """The operation after a field: the value after the name of a new member, arguments after a call."""
        draft, is_new = opened.draft, opened.added_from is not None
        field = None if draft.part == "file" else self.selected.field(draft.row, draft.part)
        then = field.then if field else None
        if then is None or (then.if_changed and not is_new and not draft.is_typed):
            return None
        return then if then.make is not None or is_new else None

    def _go_on(self, opened: OpenedField, then: Operation | None) -> None:
        """Closes an applied field, and does the next operation."""
        if then is not None and then.make is not None:
            # A call, its name and the arguments that it needs are one step.
            self.do(replace(then, then=None), extends=opened.draft.step)
        self._close_field()
        if then is not None and then.then is not None:
            self.move_to_id(then.then)
        self.show_soon()
        if then is not None and then.opens:
            self.edit(then.opens, selected=True)
            if self.opened is None:
                # It could not be made: what is typed next is typed where the cursor was.
                self._open_again(opened)

    def _open_again(self, opened: OpenedField) -> None:
        self.move_to_id(opened.draft.row)
        self.edit("name" if opened.draft.part == "name" else "value")

    def _add_chosen(self, opened: OpenedField) -> None:
        matches = opened.matches()
        chosen = (
            matches[opened.choice].text if opened.choice is not None and matches else self.field_line.typed
        )
        add = (opened.adds or {}).get(chosen)
        if add is None:
            opened.draft.problem = "Nothing of this kind to add here"
            self.show_soon()
            return
        self._close_field()
        self.show_soon()
        add()

    def action_leave_field(self) -> None:
        """Closes the completions, else the field without applying it. A long text is asked about first."""
        opened = self.opened
        if opened is None:
            return
        self._type(opened)
        if opened.choice is not None and opened.adds is None and opened.matches():
            opened.choice, opened.hides_choices = None, True
        elif opened.adds is not None or self._workbench.drafting.cancel(_MAX_DISCARDED):
            self._close_field()
            self.follow()
            if opened.added_from is not None:
                self.move_to_id(opened.added_from)
        self.show_soon()

    def action_step_field(self, step: int) -> None:
        """Applies the field and edits the next (1) or previous (-1) one; the last field stays open.

        An available completion is taken first, and the field stays open.
        """
        opened = self.opened
        if opened is None:
            return
        if opened.adds is not None:
            self.action_end_field()
            return
        if step > 0 and opened.completes():
            opened.widget.show_text(opened.matches()[opened.choice or 0].text, selected=False)
            self.on_text_area_changed()
            return
        if not self._is_applied(opened):
            return
        then = self._following(opened) if step > 0 else None
        if then is not None:
            self._go_on(opened, then)
            return
        following = self.next_field(step)
        self._go_on(opened, None)
        if following is None:
            self._workbench.say(f"{'Last' if step > 0 else 'First'} field   {opened.draft.apply_key} apply")
            self._open_again(opened)
            return
        self.move_to_id(following)
        self.show_soon()
        self.edit("value", selected=True)

    def step_choice(self, step: int) -> None:
        """Selects the next (1) or previous (-1) completion; without completions, moves the cursor in the
        text."""
        field = self.opened
        if field is None:
            return
        if not (matches := field.matches()):
            (field.widget.action_cursor_down if step > 0 else field.widget.action_cursor_up)()
            return
        place = -1 if field.choice is None else field.choice
        place = max(-1, min(place + step, len(matches) - 1))
        field.choice = None if place < 0 else place
        self.show_soon()

    def choose_at(self, line: int) -> bool:
        """Applies the completion on a line of the page; False for a line without one."""
        field = self.opened
        if field is None or self.current >= len(self.placed):
            return False
        matches = field.matches()
        number = line - self.placed[self.current].y - self._field_height()
        if not 0 <= number < len(matches):
            return False
        field.choice = number + field.first_choice
        self.action_end_field()
        return True

    def edit_field_outside(self) -> None:
        """Edits the text in $VISUAL or $EDITOR."""
        field = self.opened
        if field is None or field.adds is not None:
            return
        kind = field.draft.field.kind
        suffix = ".json" if kind == "json" else ".txt"
        before = field.widget.typed
        try:
            changed = edit_outside(self.app, before, suffix)
        except EditorError as error:
            self._workbench.say(str(error))
            return
        if changed != before:
            changed = join_lines(changed) if kind == "line" else changed
            field.widget.show_text(changed, selected=False, is_json=kind == "json")
        self.on_text_area_changed()

    # Where the field is on the page

    @property
    def page_field(self) -> OpenField | None:
        """The space on the page for the open field."""
        field = self.opened
        if field is None:
            return None
        draft, row = field.draft, self.row
        adding = field.adds is not None or draft.is_gone
        chosen = None if field.choice is None else field.choice - field.first_choice
        remark = row.declared if row and draft.part == "value" and not draft.is_text else ""
        return OpenField(
            row.id if row and draft.is_gone else draft.row,
            "name" if draft.part == "name" else "value",
            self._field_height(),
            draft.is_text,
            field.choice_lines(),
            chosen,
            field.lines_below(),
            remark,
            adding,
            is_new=field.added_from is not None,
        )

    def _field_height(self) -> int:
        """The lines of the field."""
        field, size = self.opened, self.size
        if field is None:
            return 1
        width = self._field_width or max(10, min(size.width - 3, 110) - 16)
        least = 2 if field.draft.is_text else 1
        most = max(least, min(_TALLEST, size.height - 6))
        return max(least, field.widget.height_at(width, most))

    def place_field(self) -> None:
        """Puts the widget in its space on the page."""
        field = self.opened
        if field is None or self.current >= len(self.placed):
            return
        place = self.placed[self.current]
        width = max(8, min(place.width, self.line_width - 2 - place.x))
        field.widget.styles.offset = (place.x + 1, place.y)
        field.widget.styles.width = width
        if width != self._field_width:
            # How high it is depends on where it begins.
            self._field_width = width
            self.write_changes()
        field.widget.styles.height = self._field_height()
