"""Full-screen views over the main screen: details, the JSON of a case, the conversion of an old file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.timer import Timer
from textual.widgets import Input

from evaltui.project.eval_sets import migrated_text
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, cells
from evaltui.text.values import visible
from evaltui.tui.action_screen import DialogScreen, bindings
from evaltui.tui.dialogs.prompt import (
    CANCEL,
    Dialog,
    DialogKeys,
    Hint,
    QuestionInput,
    QuestionNote,
    QuestionScreen,
    dialog_name,
)
from evaltui.tui.exchange import EditorError, edit_outside
from evaltui.tui.textual_private import call_later_once
from evaltui.tui.widgets.fields import FieldText
from evaltui.tui.widgets.lines import DrawnLine, rule
from evaltui.tui.widgets.writer import Page, PageLines, write_json, write_problems
from evaltui.workbench.actions import Scope
from evaltui.workbench.case.draft import Draft
from evaltui.workbench.cases import set_editing
from evaltui.workbench.workbench import Workbench

Write = Callable[[Page], None]

# What a rule has around a title and what is right of it.
_CONTEXT_LINES = 12


class DetailsScreen(DialogScreen[None], inherit_bindings=False):
    """A page of details, without the panes. `write` is called again for every width."""

    BINDINGS = bindings(Scope.DETAILS)

    def __init__(self, title: Line, write: Write) -> None:
        super().__init__()
        self._title_line = title
        self._write = write

    def compose(self) -> ComposeResult:
        with Vertical(id="details"):
            yield DrawnLine(self._draw_title, id="details-title")
            yield PageLines(self._write, id="details-lines")

    def _draw_title(self, width: int) -> Line:
        close: Line = [(f"{key_of('close_details')} close", "muted")]
        is_fitting = cells(self._title_line) + cells(close) + _CONTEXT_LINES <= width
        return rule(self._title_line, close if is_fitting else [], width, heavy=True)

    def action_close_details(self) -> None:
        self.dismiss()

    def action_open_source(self) -> None:
        """Opens the source of the current item of the pane below, which the details describe."""
        below = self.app.screen_stack[0]
        self.dismiss()
        self.app.call_later(below.run_action, "open_source")


_INDENT = "  "


class RawScreen(DialogScreen[None], inherit_bindings=False):
    """Edits the draft of a JSON text; if its case is deleted meanwhile, the text goes to the clipboard.

    An undo restores the JSON of the case. Invalid JSON is not applied: the cursor goes to the problem.
    """

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench
        draft = workbench.drafting.draft
        self._title: Line = [(visible(draft.title if draft else ""), "bold")]

    def compose(self) -> ComposeResult:
        with Vertical(id="raw"):
            yield DrawnLine(lambda width: rule(self._title, [], width, heavy=True))
            yield FieldText(id="raw-text", line_numbers=True)
            yield QuestionNote()
            yield DialogKeys(
                lambda: [
                    Hint("end_text"),
                    Hint("save_field"),
                    Hint("in_editor"),
                    Hint("leave_field"),
                ]
            )

    @property
    def _field(self) -> FieldText:
        return self.query_one(FieldText)

    def on_mount(self) -> None:
        field, draft = self._field, self._workbench.drafting.draft
        if draft is None:
            return
        text = draft.text
        field.show_text(draft.base, selected=False, is_json=True)
        if draft.is_typed:
            field.replace(text, field.document.start, field.document.end)
        field.move_cursor((0, 0))
        self._show(draft)

    def on_text_area_changed(self) -> None:
        if self.is_current:
            self._draft()

    def _draft(self) -> Draft | None:
        """The draft, with the current text of the field."""
        drafting = self._workbench.drafting
        if drafting.draft is not None and self._field.text != drafting.draft.text:
            drafting.type(self._field.text)
        return drafting.draft

    def action_end_text(self) -> None:
        if self._is_applied():
            self.dismiss(None)

    def action_save_field(self) -> None:
        if self._is_applied():
            self._workbench.editing.save_all()
            self.dismiss(None)

    def _is_applied(self) -> bool:
        draft = self._draft()
        if self._workbench.drafting.apply() or draft is None:
            return True
        self._show(draft)
        return False

    def action_leave_field(self) -> None:
        draft = self._draft()
        if self._workbench.drafting.cancel():
            if draft and draft.is_gone:
                self.app.copy_to_clipboard(draft.text)
                self._workbench.say(f"The {draft.noun} was deleted; its JSON is in the clipboard")
            self.dismiss(None)
        elif draft is not None:
            self.query_one(QuestionNote).show(draft.question)

    def action_step_field(self, step: int) -> None:
        """Indents the line, or removes one level of indentation."""
        if step > 0:
            self._field.insert(_INDENT)
            return
        row = self._field.cursor_location[0]
        line = self._field.document[row]
        spaces = min(len(_INDENT), len(line) - len(line.lstrip(" ")))
        self._field.delete((row, 0), (row, spaces))

    def action_in_editor(self) -> None:
        field = self._field
        try:
            field.show_text(edit_outside(self.app, field.text, ".json"), selected=False, is_json=True)
        except EditorError as error:
            self.query_one(QuestionNote).show(str(error))

    def _show(self, draft: Draft) -> None:
        """Shows why the text cannot be applied."""
        if draft.problem_at is not None:
            self._field.move_cursor(draft.problem_at, center=True)
        if draft.problem:
            self.query_one(QuestionNote).show(draft.problem)


# Seconds without a key after which the text is written anew.
_PAUSE_SECONDS = 0.15


class ConvertScreen(QuestionScreen[None]):
    """Asks for the name of the new file, and previews it; no file is written before `enter`."""

    box = "#convert"

    def __init__(self, workbench: Workbench, old: Path) -> None:
        super().__init__()
        self._workbench = workbench
        self._old = old
        self._eval_set, self._problems = set_editing.convert_file(old)
        self._new = old.parent / set_editing.name_for_converted(old)
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        can_be_done = self._eval_set is not None
        about: Line = [(f"{visible(self._old.name)} to the current format", "muted")]
        with Dialog(dialog_name("convert"), about, id="convert"):
            # Scrolled from the field, where there is one.
            yield PageLines(self._write, can_focus=not can_be_done, id="converted")
            if can_be_done:
                yield QuestionInput(self._new.name)
                yield QuestionNote(f"Name of the new file; {self._old.name} is kept")
            hints = [Hint("confirm", "write file")] if can_be_done else []
            yield DialogKeys(lambda: [*hints, Hint("page_down", "scroll"), CANCEL])

    def on_input_changed(self, event: Input.Changed) -> None:
        """Shows the text for the typed file name after a short delay, because colouring a long text is
        slow."""
        problem = self._problem
        self.query_one(QuestionNote).show(problem)
        if self._timer is not None:
            self._timer.stop()
        if problem is None:
            self._new = self._old.parent / self._file_name
            self._timer = call_later_once(self, _PAUSE_SECONDS, self.answers.write_page)

    @property
    def _file_name(self) -> str:
        return self.query_one(QuestionInput).value.strip()

    @property
    def _problem(self) -> str | None:
        return set_editing.converted_name_problem(self._workbench.editing, self._old, self._file_name)

    @property
    def answers(self) -> PageLines:
        return self.query_one(PageLines)

    def _write(self, page: Page) -> None:
        """Writes the text of the new file, or why there is none."""
        if self._eval_set is None:
            page.text([("Fix these problems before converting the file", "bold")])
            page.blank()
        write_problems(page, self._problems, self._old)
        page.blank()
        if self._eval_set is not None:
            write_json(page, json.loads(migrated_text(self._eval_set, self._new)), 0)

    async def action_confirm(self) -> None:
        if self._eval_set is None:
            return
        if problem := self._problem:
            self.query_one(QuestionNote).show(problem)
            return
        new, workbench = self._old.parent / self._file_name, self._workbench
        written = set_editing.convert(workbench.editing, self._old, self._eval_set, new, workbench.say)
        if await written:
            self.dismiss()
