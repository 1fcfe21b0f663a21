"""The case pane: the selected case, every row edited in its place; or its set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from textual import events
from textual.app import ComposeResult

from evaltui.core.model.case_id import CaseId
from evaltui.documents.edits import EditError
from evaltui.files.agent_source import SourcePlace
from evaltui.text.figures import counted
from evaltui.text.keys import key_of
from evaltui.tui.action_screen import ask, bindings
from evaltui.tui.exchange import (
    ATTACH_HINT,
    ATTACH_TITLE,
    EditorError,
    cannot_attach,
    edit_outside,
    read_attached,
)
from evaltui.tui.pages.case import OpenField
from evaltui.tui.panes.case.field_editor import FieldEditor
from evaltui.tui.panes.case.navigation import CaseRows
from evaltui.tui.screens.details import RawScreen
from evaltui.tui.screens.prompt import PromptScreen
from evaltui.workbench.acceptable import choices_in_result
from evaltui.workbench.actions import Scope
from evaltui.workbench.case_rows.turn_source import ADD_ROW
from evaltui.workbench.case_rows.turns import attach, next_expectation, toggle_context
from evaltui.workbench.editors import place_of_tool
from evaltui.workbench.fields import Completion, Field, FieldError, Operation, Row
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench


@dataclass
class CaseDraft:
    """A JSON text that is to replace a case."""

    case: CaseId
    base: str
    """The case when the text was begun."""
    shown: str
    """The case as the user last saw it."""


class OutsideEditing:
    """Replaces the case of a pane, or a part of it, with a text that was edited as a whole."""

    def __init__(self, pane: CaseRows, workbench: Workbench) -> None:
        self._pane = pane
        self._workbench = workbench

    def edit_raw(self, text: str | None = None) -> None:
        """Opens the JSON of the case, or `text` in its place, in a dialog."""
        row, case = self._pane.ready_row(), self._workbench.navigation.selection.case
        if row is None or case is None:
            return
        place = self._pane.selected.place_of(None, "raw")
        left = self._workbench.editing.unapplied.at(case.path, *place) if text is None else None
        now = self._pane.selected.text()
        draft = CaseDraft(case, left.base if left else now, left.base if left else now)
        screen = RawScreen(
            f"JSON of {case.eval_id}",
            now,
            partial(self._replace_case, draft),
            self._save,
            draft=left.text if left else text,
            typed=partial(self._raw_typed, draft),
        )
        ask(self._pane, screen, partial(self._raw_left, draft))

    def _replace_case(self, draft: CaseDraft, text: str) -> str | None:
        """Makes a JSON text the case; returns why it cannot be.

        A case that was changed since the text was begun is replaced once the user was told so.
        """
        selected = self._pane.selected
        if not self._is_there(draft.case):
            return "The case was deleted"
        now = selected.text()
        try:
            if text == draft.base:
                text = now
            if now not in (text, draft.shown):
                draft.shown = now
                replaces, leaves = key_of("end_text"), key_of("leave_field")
                return f"The case was changed elsewhere   {replaces} replace it   {leaves} keep draft"
            made = selected.replaced(text)
        except (FieldError, EditError) as error:
            return str(error)
        self._workbench.editing.unapplied.drop(draft.case.path, *selected.place_of(None, "raw"))
        if made is None:
            return None
        make, new_id = made
        case, renamed = draft.case, CaseId(draft.case.path, new_id)
        moved = {case: renamed} if renamed != case else None
        label = f"change the JSON of {case.eval_id}"
        file = self._workbench.sets.file_of(case.path)
        self._workbench.editing.do(label, file, make, moved=moved, after=Selection(*renamed))
        self._pane.show_soon()
        return None

    def _is_there(self, case: CaseId) -> bool:
        """Whether the case is the selected one still."""
        self._pane.selected.follow()
        return self._pane.selected.case == case and bool(self._pane.selected.rows)

    def _save(self) -> None:
        self._workbench.editing.save_all()

    def _raw_typed(self, draft: CaseDraft, text: str) -> bool:
        """Keeps a JSON text that is not what the case says; False where the case is gone."""
        if not self._is_there(draft.case):
            return False
        place, unapplied = self._pane.selected.place_of(None, "raw"), self._workbench.editing.unapplied
        if text in (draft.base, self._pane.selected.text()):
            unapplied.drop(draft.case.path, *place)
        else:
            problem = f"draft   {key_of('raw_case')} edit"
            unapplied.keep(draft.case.path, *place, text, problem, draft.base)
        return True

    def _raw_left(self, draft: CaseDraft, text: str) -> None:
        if not self._raw_typed(draft, text):
            self._pane.app.copy_to_clipboard(text)
            self._workbench.say("The case was deleted; its JSON is in the clipboard")
            return
        if text not in (draft.base, self._pane.selected.text()):
            self._workbench.say(f"Draft kept   {key_of('raw_case')} edit")
        self._pane.show_soon()

    def _arguments_left(self, text: str) -> None:
        self._pane.app.copy_to_clipboard(text)
        self._workbench.say("Arguments not applied; their JSON is in the clipboard")

    def edit_in_editor(self, row: Row) -> None:
        """Edits the arguments of a call in the user's editor; at every other row, the whole case."""
        arguments = self._pane.selected.call_json(row)
        case, whole = self._workbench.navigation.selection.case, self._pane.selected.text()
        if case is None:
            return
        text, replace_text = arguments or (whole, partial(self._replace_case, CaseDraft(case, whole, whole)))
        try:
            changed = edit_outside(self._pane.app, text, ".json")
        except EditorError as error:
            self._workbench.say(str(error))
            return
        if changed == text:
            return
        reason = replace_text(changed)
        if reason and arguments:
            self._workbench.say(reason)
            ask(self._pane, RawScreen("Arguments", changed, replace_text, self._save), self._arguments_left)
        elif reason:
            self.edit_raw(changed)


class CaseView(CaseRows, can_focus=True, inherit_bindings=False):
    """The case pane."""

    BINDINGS = bindings(Scope.CASE)

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self._editor = FieldEditor(self, workbench)
        self._outside = OutsideEditing(self, workbench)

    def source(self) -> SourcePlace | None:
        """Of the tool that a call is of."""
        row = self.row
        if row is None or row.role != "call":
            return None
        return place_of_tool(self._workbench.agent, str(row.value))

    @property
    def is_container(self) -> bool:
        # A ScrollView draws lines and no children, unless it says so.
        return True

    def compose(self) -> ComposeResult:
        # They are there from the start: a field that is mounted when it is needed misses the first keys.
        yield self._editor.line
        yield self._editor.text

    # Following the workbench

    def follow(self) -> None:
        if self.selected.follow():
            self.rows = self.selected.rows
            self.find_current()
        self._editor.follow()
        self.go_to_selection()
        self.write_page()
        self._editor.place()

    def shown_state(self) -> object:
        selection = self._workbench.navigation.selection
        opened = self._workbench.sets.opened(self._workbench.navigation.file)
        return (
            self._workbench.sets.workspace if not self.rows else self.selected.version,
            selection.path,
            selection.case,
            opened if not self.rows else None,
            self._editor.shown_state(),
            tuple(self._workbench.editing.unapplied.now()),
            selection.case and self._outcomes(),
        )

    @property
    def page_field(self) -> OpenField | None:
        return self._editor.page_field

    @property
    def is_editing(self) -> bool:
        return self._editor.opened is not None

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self._editor.opened is not None and round(old_value) != round(new_value):
            # A ScrollView draws its lines anew, and leaves the widgets in it where they were.
            self.refresh(layout=True)

    # Focus and mouse

    def left(self) -> None:
        self._editor.left()

    def on_focus(self) -> None:
        if self._editor.opened is not None and self.screen.focused is self:
            self.screen.set_focus(self._editor.opened.widget, scroll_visible=False)

    def on_click(self, event: events.Click) -> None:
        field = self._editor.opened
        if event.widget in (self._editor.line, self._editor.text) or (field and field.is_gone):
            return
        line = self.scroll_offset.y + event.y
        if self._editor.choose_at(line):
            return
        self._editor.left()
        number = self.row_at(line)
        if number is None or line >= len(self.page.lines):
            return
        self.move_by(number - self.current)
        if event.chain == 2:
            self.action_edit_field()

    # Changing rows

    def edit_user_text(self) -> None:
        """Opens the user's text of the first turn, as in a new case."""
        self.follow()
        if self.rows:
            self.move_to_id(("turn", 0, "user", 0))
            self._editor.edit("value")

    def action_edit_field(self) -> None:
        row = self.ready_row()
        if row is None:
            return
        if row.field is not None:
            self._editor.edit("value")
        elif row.id == ADD_ROW:
            self.action_add_other()
        elif row.role == "turn":
            self._editor.perform(Operation("", None, (*row.id, "user", 0), "value"), "")
        elif row.adds and row.role in ("fact", "argument", "hint"):
            self._editor.perform(row.adds[0], "")
        else:
            self.refuse_row(f"Read-only here   {key_of('raw_case')}  Edit JSON")

    def action_rename_field(self) -> None:
        row = self.ready_row()
        if row is not None:
            if row.rename is not None:
                self._editor.edit("name")
            elif row.role == "call":
                self._editor.edit("value")
            else:
                self.refuse_row("No name on this line")

    def _perform(self, operation: Callable[[Row], Operation | None], otherwise: str) -> None:
        """Does an operation of the current row; `otherwise` is why there is none."""
        if (row := self.ready_row()) is not None:
            self._editor.perform(operation(row), otherwise)

    def action_add_below(self) -> None:
        row = self.ready_row()
        if row is not None and row.is_unset:
            self._editor.edit("value")
        elif row is not None:
            self._editor.perform(row.adds[0] if row.adds else None, "Nothing to add here")

    def action_insert_before(self) -> None:
        self._perform(lambda row: row.insert, "Select a turn or call to insert before")

    def action_duplicate_field(self) -> None:
        self._perform(lambda row: row.duplicate, "Select a turn or call to duplicate")

    def action_delete_field(self) -> None:
        self._perform(lambda row: row.delete, "Not deletable")

    def action_move_field_up(self) -> None:
        self._move_row(-1)

    def action_move_field_down(self) -> None:
        self._move_row(1)

    def _move_row(self, step: int) -> None:
        why_not = "Select a turn or call to move"
        self._perform(lambda row: row.move(step) if row.move else None, why_not)

    def action_accept_in_case(self) -> None:
        # The first frame does not wait for what is seen only now.
        from evaltui.tui.screens.accept import AcceptScreen

        self.app.push_screen(AcceptScreen(self._workbench, choices_in_result(self._workbench.editing)))

    def action_next_kind(self) -> None:
        row = self.ready_row()
        if row is None:
            return
        if row.cycle is not None:
            self._editor.perform(row.cycle, "")
        elif row.turn is None:
            self._workbench.say("No turn selected")
        else:
            self._change_expectation(row.turn)

    def _change_expectation(self, turn: int) -> None:
        """The next of the four kinds of expectation; says what it means and what is lost by it."""
        operation, meaning, lost = next_expectation(self.selected.source, turn)
        self._editor.perform(operation, "")
        gone = f"; {counted(lost, 'call')} deleted   {key_of('undo')} undo" if lost else ""
        self._workbench.say(f"Turn {turn + 1}: {meaning}{gone}")

    def action_context_turn(self) -> None:
        self._perform(
            lambda row: None if row.turn is None else toggle_context(self.selected.source, row.turn),
            "No turn selected",
        )

    def action_add_other(self) -> None:
        row = self.ready_row()
        if row is None:
            return
        adds: dict[str, Callable[[], None]] = {
            one.label: partial(self._editor.perform, one, "") for one in row.adds if one.label
        }
        if row.turn is not None:
            adds["attach file to user message"] = partial(self._ask_for_file, row.turn)
        choices = tuple(Completion(label) for label in adds)
        field = Field("", "", "line", _changes_nothing, choices, live=False)
        self._editor.open(row, "value", field, adds=adds)
        self.show_soon()

    def _ask_for_file(self, turn: int) -> None:
        question = PromptScreen(ATTACH_TITLE, check=cannot_attach, hint=ATTACH_HINT)
        ask(self, question, partial(self._attach_file, turn))

    def _attach_file(self, turn: int, text: str) -> None:
        if self.ready_row() is None:
            return
        try:
            file = read_attached(text)
        except OSError as error:
            self._workbench.say(f"{text} is not attached: {error}")
            return
        if self.do(attach(self.selected.source, turn, file.payload, file.mime_type)):
            self._workbench.say(file.notice)

    def action_raw_case(self) -> None:
        self._outside.edit_raw()

    def action_external_editor(self) -> None:
        """Edits the text of this row in the user's editor; where it has none, the whole case."""
        row = self.ready_row()
        if row is None:
            return
        if row.field is not None and row.field.kind in ("text", "json"):
            self._editor.edit("value")
            self._editor.edit_outside()
        else:
            self._outside.edit_in_editor(row)

    # Keys in a field

    def on_text_area_changed(self) -> None:
        self._editor.typed()

    def action_end_field(self) -> None:
        self._editor.end()

    action_end_text = action_end_field

    def action_leave_field(self) -> None:
        self._editor.cancel()

    def action_next_field(self) -> None:
        self._editor.step(1)

    def action_previous_field(self) -> None:
        self._editor.step(-1)

    def action_save_field(self) -> None:
        self._editor.save()

    def action_next_choice(self) -> None:
        self._editor.step_choice(1)

    def action_previous_choice(self) -> None:
        self._editor.step_choice(-1)

    def action_field_in_editor(self) -> None:
        self._editor.edit_outside()


def _changes_nothing(text: str) -> Any:
    raise FieldError("Nothing of this kind to add here")
