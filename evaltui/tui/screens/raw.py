"""A JSON text in full, to be edited over the main screen."""

from __future__ import annotations

import re
from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from evaltui.core.model.problems import Problem
from evaltui.files.json_text import parse
from evaltui.text.lines import Line
from evaltui.text.values import visible
from evaltui.tui.action_screen import DialogScreen
from evaltui.tui.external_editor import EditorError, edit_outside
from evaltui.tui.widgets.ascii import fit_for_terminal
from evaltui.tui.widgets.field import FieldText
from evaltui.tui.widgets.one_line import OneLine, rule

# Takes a text that is JSON over, or says why not.
Take = Callable[[str], str | None]
_KEYS = "esc takes it over  ctrl+s saves it, too  ctrl+e $EDITOR"


class RawScreen(DialogScreen[str | None], inherit_bindings=False):
    """Returns None once the text has been taken over, or the text that was left unfinished.

    What is not JSON is not left at the first `esc`: the line and the reason are shown.
    """

    def __init__(self, title: str, text: str, take: Take, save: Callable[[], None]) -> None:
        super().__init__()
        self._title_text = title
        self._text = text
        self._take = take
        self._save = save
        self._refused: str | None = None

    def compose(self) -> ComposeResult:
        with Vertical(id="raw"):
            yield RawTitle(self._title_text)
            yield FieldText(id="raw-text", line_numbers=True)
            yield Static(Content(_KEYS), id="raw-note", markup=False)

    def on_mount(self) -> None:
        field = self.query_one(FieldText)
        field.begin(self._text, selected=False, is_json=True)
        field.move_cursor((0, 0))
        if problem := self._problem():
            self._show(problem)

    def action_save_field(self) -> None:
        if self._taken():
            self._save()
            self.dismiss(None)

    def action_field_in_editor(self) -> None:
        field = self.query_one(FieldText)
        try:
            field.begin(edit_outside(self.app, field.text, ".json"), selected=False, is_json=True)
        except EditorError as error:
            self._say(str(error))

    def action_leave_field(self) -> None:
        text = self.query_one(FieldText).text
        if text == self._refused:
            # A second time without a change: it is kept for later.
            self.dismiss(text)
        elif self._taken():
            self.dismiss(None)
        else:
            self._refused = text

    action_end_text = action_leave_field

    def _taken(self) -> bool:
        problem = self._problem()
        if problem is not None:
            self._show(problem)
            return False
        if reason := self._take(self.query_one(FieldText).text):
            self._say(reason)
            return False
        return True

    def _problem(self) -> Problem | None:
        found = parse(self.query_one(FieldText).text)
        return found if isinstance(found, Problem) else None

    def _show(self, problem: Problem) -> None:
        if problem.line is not None:
            column = re.search(r"\(column (\d+)\)", problem.message)
            place = problem.line - 1, int(column[1]) - 1 if column else 0
            self.query_one(FieldText).move_cursor(place, center=True)
        where = f"line {problem.line}: " if problem.line else ""
        self._say(f"{where}{problem.message}; esc again leaves it for later")

    def _say(self, sentence: str) -> None:
        note = self.query_one("#raw-note", Static)
        note.set_class(True, "-problem")
        note.update(Content(fit_for_terminal(visible(f"! {sentence}"))))


class RawTitle(OneLine):
    def __init__(self, title: str) -> None:
        super().__init__()
        self._title_text = title

    def line(self, width: int) -> Line:
        return rule([(visible(self._title_text), "bold")], [], width, heavy=True)
