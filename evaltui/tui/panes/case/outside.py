"""Editing the JSON of a case, in a dialog or in the user's editor."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from evaltui.core.jsondoc.edits import EditError
from evaltui.core.model.case_id import CaseId
from evaltui.tui.external_editor import EditorError, edit_outside
from evaltui.tui.panes.case.navigation import CaseRows
from evaltui.workbench.fields import FieldError, Row
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench


class OutsideEditing:
    """Replaces the case of a pane, or a part of it, with a text that was edited as a whole."""

    def __init__(self, pane: CaseRows, workbench: Workbench) -> None:
        self._pane = pane
        self._workbench = workbench

    def edit_raw(self, text: str | None = None) -> None:
        """Opens the JSON of the case, or `text` in its place, in a dialog."""
        row, key = self._pane.ready_row(), self._workbench.navigation.selection.case
        if row is None or key is None:
            return
        from evaltui.tui.screens.raw import RawScreen

        place = self._pane.document.place_of(None, "raw")
        left = self._workbench.editing.unapplied.at(key.path, *place)
        now = self._pane.document.text()
        shown = text if text is not None else left.text if left else now
        replace_case = partial(self._replace_case, now)
        screen = RawScreen(f"JSON of {key.eval_id}", shown, replace_case, self._save)
        self._pane.app.push_screen(screen, partial(self._raw_left, key))

    def _replace_case(self, before: str, text: str) -> str | None:
        """Makes a JSON text the case, which was `before`; returns why it cannot be."""
        key, document = self._workbench.navigation.selection.case, self._pane.document
        document.follow()
        if key is None or not document.rows:
            return "the case is gone"
        try:
            if document.text() != before != text:
                return "the case was changed outside meanwhile; f4 takes this over theirs, once this is left"
            made = document.replaced(text)
        except (FieldError, EditError) as error:
            return str(error)
        self._workbench.editing.unapplied.drop(key.path, *document.place_of(None, "raw"))
        if made is None:
            return None
        make, new_id = made
        new_key = CaseId(key.path, new_id)
        moved = {key: new_key} if new_key != key else None
        label = f"change the JSON of {key.eval_id}"
        file = self._workbench.sets.file_of(key.path)
        self._workbench.editing.do(label, file, make, moved=moved, after=Selection(*new_key))
        self._pane.show_soon()
        return None

    def _save(self) -> None:
        self._workbench.editing.save_all()

    def _raw_left(self, key: CaseId, unfinished: str | None) -> None:
        if unfinished is None:
            return
        document = self._pane.document
        document.follow()
        if document.key != key:
            self._pane.app.copy_to_clipboard(unfinished)
            self._workbench.say("the case is gone: the JSON that was left unfinished is in the clipboard")
            return
        at = document.place_of(None, "raw")
        self._workbench.editing.unapplied.keep(key.path, *at, unfinished, "f4 goes on with it")
        self._workbench.say("the JSON that was left unfinished is kept: f4 goes on with it")

    def edit_in_editor(self, row: Row) -> None:
        """Edits the arguments of a call in the user's editor; at every other row, the whole case."""
        arguments = self._pane.document.call_json(row)
        whole = self._pane.document.text()
        text, replace_text = arguments or (whole, partial(self._replace_case, whole))
        try:
            changed = edit_outside(self._pane.app, text, ".json")
        except EditorError as error:
            self._workbench.say(str(error))
            return
        if changed == text:
            return
        if reason := replace_text(changed):
            if arguments:
                self._workbench.say(reason)
                self._edit_raw_arguments(changed, replace_text)
            else:
                self.edit_raw(changed)

    def _edit_raw_arguments(self, text: str, replace_text: Callable[[str], str | None]) -> None:
        from evaltui.tui.screens.raw import RawScreen

        self._pane.app.push_screen(RawScreen("Arguments", text, replace_text, self._save))
