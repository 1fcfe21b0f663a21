"""The case pane: the selected case, whose rows are edited in place; or its set."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from textual import events
from textual.app import ComposeResult
from textual.widget import Widget

from evaltui.core.model.renaming import Renaming, new_name_problem
from evaltui.documents.edits import EditError
from evaltui.project.agent_source import SourcePlace
from evaltui.text.figures import counted
from evaltui.text.keys import key_of
from evaltui.text.lines import Line
from evaltui.tui.action_screen import ask, bindings
from evaltui.tui.case.field_editor import CaseFields
from evaltui.tui.case.rows import Placed
from evaltui.tui.dialogs.accept import AcceptScreen, RenameScreen
from evaltui.tui.dialogs.details import RawScreen
from evaltui.tui.dialogs.prompt import PromptScreen, ask_for_file, dialog_name
from evaltui.tui.exchange import Attached, EditorError, edit_outside
from evaltui.tui.widgets.lines import DrawnLine
from evaltui.workbench.actions import Action, Scope
from evaltui.workbench.case.editors import place_of_tool
from evaltui.workbench.case.fields import Completion, Field, FieldError, Operation, Row
from evaltui.workbench.case.rows.turn_source import ADD_ROW
from evaltui.workbench.case.rows.turns import attach, next_expectation, toggle_context
from evaltui.workbench.result.acceptable import choices_in_result
from evaltui.workbench.workbench import Workbench

# Keys of a field that do nothing where it chooses what to add.
_ACTIONS_OUTSIDE_MENU = frozenset(("in_editor", "save_field"))


class CaseView(CaseFields, can_focus=True, inherit_bindings=False):
    """The case pane."""

    BINDINGS = bindings(Scope.CASE)

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self._shows_json = False
        self._version = -1
        self._how_to_run = DrawnLine(self._draw_how_to_run, id="how-to-run")
        # Where the open field was drawn last.
        self._field_place: Placed | None = None

    def above(self) -> Widget:
        return self._how_to_run

    def _draw_how_to_run(self, width: int) -> Line:
        """` ▶ r  Run case   R  Run all 9 cases`"""
        cases = len(list(self._workbench.sets.every_case()))
        case: Line = [(" ▶ ", "success"), (key_of("run"), "bold accent"), ("  Run case   ", "")]
        every: Line = [(key_of("run_all"), "bold accent"), (f"  Run all {counted(cases, 'case')}", "")]
        return [*case, *(every if cases > 1 else ())]

    def source(self) -> SourcePlace | None:
        """The source of the tool of a call."""
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
        yield self.field_line
        yield self.field_text

    # Following the workbench

    def follow(self) -> None:
        self.selected.follow()
        if self.selected.version != self._version:
            self._version = self.selected.version
            self.rows = self.selected.rows
            self.find_current()
        self.go_to_selection()
        self.follow_draft()
        self._how_to_run.display = bool(self.rows) and self._workbench.is_unused
        self._how_to_run.refresh_changed()
        if self.is_attached and self.screen.is_active:
            self._show_json()
        self.write_changes()
        self.place_field()
        self._keep_field_in_view()

    def _keep_field_in_view(self) -> None:
        """Scrolls to the open field where it has moved, as in a narrower pane."""
        field = self.opened
        place = self.placed[self.current] if field and self.current < len(self.placed) else None
        if place is not None and place != self._field_place:
            self.call_after_refresh(self.show_current)
        self._field_place = place

    def shown_state(self) -> object:
        selection = self._workbench.navigation.selection
        opened = self._workbench.sets.opened(self._workbench.navigation.file)
        return (
            self._workbench.sets.workspace if not self.rows else self.selected.version,
            selection.path,
            selection.case,
            opened if not self.rows else None,
            self.page_field,
            selection.case and self._outcomes(),
        )

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self.opened is not None and round(old_value) != round(new_value):
            # A ScrollView draws its lines anew, and leaves the widgets in it where they were.
            self.refresh(layout=True)

    # Focus and mouse

    def on_focus(self) -> None:
        if self.opened is not None and self.screen.focused is self:
            self.screen.set_focus(self.opened.widget, scroll_visible=False)

    def on_click(self, event: events.Click) -> None:
        field = self.opened
        if event.widget in (self.field_line, self.field_text) or (field and field.draft.is_gone):
            return
        line = self.scroll_offset.y + event.y
        if self.choose_at(line):
            return
        number = self.row_at(line)
        if not self.left() or number is None or line >= len(self.page.lines):
            return
        self.move_by(number - self.current)
        if event.chain == 2:
            self.action_edit_value()

    # Changing rows

    def edit_user_text(self) -> None:
        """Opens the user's text of the first turn, as in a new case."""
        self.follow()
        if self.rows:
            self.move_to_id(("turn", 0, "user", 0))
            self.edit("value")

    def action_edit_value(self) -> None:
        row = self.ready_row()
        if row is None:
            return
        if row.field is not None:
            self.edit("value")
        elif row.id == ADD_ROW:
            self.action_add_other()
        elif row.role == "turn":
            self.perform(Operation("", None, (*row.id, "user", 0), "value"), "")
        elif row.adds and row.role in ("fact", "argument", "hint"):
            self.perform(row.adds[0], "")
        else:
            self.refuse_row(f"Read-only here   {key_of('edit_json')}  Edit JSON")

    def action_rename(self) -> None:
        row = self.ready_row()
        if row is not None:
            if row.rename is not None:
                self.edit("name")
            elif row.role == "call":
                self.edit("value")
            else:
                self.refuse_row("No name on this line")

    def action_rename_everywhere(self) -> None:
        row = self.ready_row()
        if row is None:
            return
        if row.named is None:
            self.refuse_row("No tool, argument or agent on this line")
            return
        what, old = row.named
        name = Renaming.of(what, old, "").old

        def preview(new: str) -> None:
            self.app.push_screen(RenameScreen(self._workbench, Renaming.of(what, old, new)))

        check = partial(new_name_problem, what, name)
        hint = f"New name of the {what}; the places are shown next"
        ask(self, PromptScreen(dialog_name("rename_everywhere"), name, check, hint, old), preview)

    def _perform(self, operation: Callable[[Row], Operation | None], otherwise: str) -> None:
        """Does an operation of the current row; `otherwise` is shown where there is none."""
        if (row := self.ready_row()) is not None:
            self.perform(operation(row), otherwise)

    def action_add_below(self) -> None:
        row = self.ready_row()
        if row is not None and row.is_unset:
            self.edit("value")
        elif row is not None:
            self.perform(row.adds[0] if row.adds else None, "Nothing to add here")

    def action_insert_before(self) -> None:
        self._perform(lambda row: row.insert, "Select a turn or call to insert before")

    def action_duplicate(self) -> None:
        self._perform(lambda row: row.duplicate, "Select a turn or call to duplicate")

    def action_delete(self) -> None:
        self._perform(lambda row: row.delete, "Not deletable")

    def action_move(self, step: int) -> None:
        why_not = "Select a turn or call to move"
        self._perform(lambda row: row.move(step) if row.move else None, why_not)

    def action_accept(self) -> None:
        self.app.push_screen(AcceptScreen(self._workbench, choices_in_result(self._workbench.editing)))

    def action_next_kind(self) -> None:
        row = self.ready_row()
        if row is None:
            return
        if row.cycle is not None:
            self.perform(row.cycle, "")
        elif row.turn is None:
            self._workbench.say("No turn selected")
        else:
            self._change_expectation(row.turn)

    def _change_expectation(self, turn: int) -> None:
        """Sets the next of the four kinds of expectation; shows its meaning and the deleted calls."""
        operation, meaning, lost = next_expectation(self.selected.source, turn)
        self.perform(operation, "")
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
            operation.label: partial(self.perform, operation, "") for operation in row.adds if operation.label
        }
        if row.turn is not None:
            attach_file = partial(self._attach_file, row.turn)
            adds["attach file to user message"] = partial(ask_for_file, self, self._workbench, attach_file)
        choices = tuple(Completion(label) for label in adds)
        self.choose(row, Field("", "", "line", _changes_nothing, choices), adds)
        self.show_soon()

    def _attach_file(self, turn: int, file: Attached) -> None:
        if self.ready_row() is None:
            return
        if self.do(attach(self.selected.source, turn, file.payload, file.mime_type)):
            self._workbench.say(file.notice)

    # As JSON

    def edit_json(self) -> None:
        """Opens the JSON of the selected case, or the text of a file with unreadable cases."""
        if self._workbench.navigation.selection.case is None:
            self._edit_file()
        elif self.is_ready():
            try:
                field = self.selected.json_field(())
            except EditError:
                # It is no object.
                self._edit_file()
                return
            if field is not None and self._workbench.drafting.open((), "json", field):
                self._show_json()

    def _edit_file(self) -> None:
        path = self._workbench.navigation.file
        if path is not None and self._workbench.drafting.open_file(path):
            self._show_json()

    def _show_json(self) -> None:
        """Opens the dialog with the draft of a case's JSON, also of an earlier session."""
        draft = self._workbench.drafting.draft
        if draft is None or not draft.is_in_dialog or self._shows_json:
            return
        self._shows_json = True

        def leave(_: None) -> None:
            self._shows_json = False
            self.show_soon()

        self.app.push_screen(RawScreen(self._workbench), leave)

    def _edit_json_outside(self, row: Row) -> None:
        """Edits the arguments of a call in the user's editor; in other rows, the whole case."""
        arguments, drafting = self.selected.json_field(row.id), self._workbench.drafting
        place, field = (row.id, arguments) if arguments else ((), self.selected.json_field(()))
        if field is None:
            return
        try:
            changed = edit_outside(self.app, field.text, ".json")
        except EditorError as error:
            self._workbench.say(str(error))
            return
        if changed == field.text or drafting.open(place, "json", field, changed) is None:
            return
        if drafting.apply():
            self.show_soon()
        else:
            self._show_json()

    def action_in_editor(self) -> None:
        """Edits the open field or the text of this row in the user's editor; without a text, the case."""
        if self.is_editing:
            self.edit_field_outside()
            return
        row = self.ready_row()
        if row is None:
            return
        if row.field is not None and row.field.kind in ("text", "json"):
            self.edit("value")
            self.edit_field_outside()
        else:
            self._edit_json_outside(row)

    # Keys in a field

    def footer_word(self, action: Action) -> str:
        opened = self.opened
        if action.id == "end_field" and opened is not None and opened.adds is not None:
            return "choose"
        if action.id == "next_field" and opened is not None and opened.completes():
            return "complete"
        return super().footer_word(action)

    def refusal(self, action_id: str) -> str | None:
        opened = self.opened
        is_menu = opened is not None and opened.adds is not None
        return "Choose what to add" if is_menu and action_id in _ACTIONS_OUTSIDE_MENU else None

    def action_step_line(self, step: int) -> None:
        """Selects another completion of an open field, else another row."""
        if self.is_editing:
            self.step_choice(step)
        else:
            super().action_step_line(step)


def _changes_nothing(text: str) -> Any:
    raise FieldError("Nothing of this kind to add here")
