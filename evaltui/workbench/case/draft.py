"""The draft: text in an open field of the selected case, or of its file. Applying it is one edit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from evaltui.core.matching.pairing import common_ends
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.old_formats import kind_of
from evaltui.core.model.problems import EvalSetError, Problem
from evaltui.documents.case_file import CaseFile
from evaltui.documents.editing.set import EditBuilder
from evaltui.documents.json_text import parse
from evaltui.documents.nodes import BOM
from evaltui.documents.recovery import Draft as StoredDraft
from evaltui.documents.recovery import Recovered
from evaltui.project.folders import short_path
from evaltui.text.figures import counted
from evaltui.text.keys import key_of
from evaltui.workbench.case.editing import Editing
from evaltui.workbench.case.fields import CasePart, DraftPart, Field, FieldError, RowId, syntax_error
from evaltui.workbench.case.selected_case import SelectedCase
from evaltui.workbench.messages import DraftChanged, Messages
from evaltui.workbench.state import Selection

if TYPE_CHECKING:
    from evaltui.core.model.stored_cases import StoredCase
    from evaltui.workbench.case.steps import Step


def file_field(editing: Editing, path: Path) -> Field | None:
    r"""The text of a file with `\n` between its lines; None where it cannot be decoded."""
    try:
        text = editing.whole(path).text
    except (OSError, EvalSetError):
        return None
    return Field(f"edit the JSON of {path.name}", _with_plain_lines(text), "json", _no_edit_of_a_case)


def replace_text(document: CaseFile, typed: str) -> CaseFile:
    """The file with another text, with its line ends as before. Raises FieldError for a text of no format."""
    text = _with_plain_lines(typed)
    ended = text.replace("\n", "\r\n") if "\r\n" in document.text else text
    try:
        new = document.read(BOM + ended if document.text.startswith(BOM) else ended)
    except ValueError as error:
        problem = parse(text)
        raise (syntax_error(problem) if isinstance(problem, Problem) else FieldError(str(error))) from error
    if not isinstance(new.value, dict) and kind_of(new.value) is None:
        raise FieldError("Must be a JSON object: { … }")
    return new


def _with_plain_lines(text: str) -> str:
    return text.removeprefix(BOM).replace("\r\n", "\n")


def _no_edit_of_a_case(text: str) -> EditBuilder:
    raise FieldError("The text of a file is replaced as a whole")


# Seconds after a key until its text is in the recovery file.
_PAUSE_SECONDS = 0.4


@dataclass
class Draft:
    """Text in an open field that its case does not have yet."""

    case: CaseId
    """Its eval_id is "" for the text of the whole file."""
    row: RowId
    """Row of the field; () for the JSON of the case."""
    part: DraftPart
    """The edited part: value or name of the row, or its JSON."""
    field: Field
    """The field as the case has it now."""
    text: str
    base: str
    """The text of the field before it was edited."""
    step: Step | None = None
    """The step that applying extends: it added the row; None for a row that existed before. After applying,
    the step of the draft itself."""
    problem: str = ""
    """Why the text cannot be applied; empty if it can."""
    problem_at: tuple[int, int] | None = None
    """Line and column of the problem in the text, 0-based; None where it has no single place."""
    question: str = ""
    """The question that is shown before the field is left; "" for none."""
    is_gone: bool = False
    """Whether the row was deleted outside of the workbench."""

    @property
    def is_typed(self) -> bool:
        """Whether the text differs from that of the field."""
        return self.text != self.base

    @property
    def is_text(self) -> bool:
        """Whether the text has several lines."""
        return self.field.kind in ("text", "json")

    @property
    def is_in_dialog(self) -> bool:
        """Whether it is edited in a dialog, as JSON."""
        return self.part in ("json", "file")

    @property
    def name(self) -> str:
        """Id of the case, or name of the file."""
        return self.case.eval_id or Path(self.case.path).name

    @property
    def title(self) -> str:
        """Title of the dialog that edits it."""
        return "Arguments" if self.row else f"JSON of {self.name}"

    @property
    def noun(self) -> str:
        """The owner of the field, for labels."""
        return "file" if self.part == "file" else "case"

    @property
    def apply_key(self) -> str:
        return key_of("end_text" if self.is_text else "end_field")


@contextmanager
def _catch_errors(draft: Draft) -> Iterator[None]:
    """Makes an error of the block the problem of the draft."""
    try:
        yield
    except (EvalSetError, OSError, ValueError) as error:
        draft.problem = str(error)
        draft.problem_at = error.place if isinstance(error, FieldError) else None


class Drafting:
    """The draft of the selected case, as long as its field is open."""

    def __init__(
        self,
        selected: SelectedCase,
        editing: Editing,
        messages: Messages,
    ) -> None:
        self.draft: Draft | None = None
        """None while no field is open."""
        self._selected = selected
        self._outcomes = editing.outcomes
        self._navigation = editing.navigation
        self._editing = editing
        self._messages = messages
        self._timer: asyncio.TimerHandle | None = None
        self._navigation.leave = self.leave

    def open(
        self, row: RowId, part: CasePart, field: Field, text: str | None = None, step: Step | None = None
    ) -> Draft | None:
        """Starts a draft of a field of the selected case; None where no case is selected, or another draft
        stays open."""
        case = self._selected.case
        if case is None or not self.leave():
            return None
        self.draft = Draft(case, row, part, field, field.text, field.text, step)
        if text is not None:
            self.type(text)
        return self.draft

    def open_file(self, path: Path, text: str | None = None) -> Draft | None:
        """Starts a draft of the text of a whole file; None, with a message, where it cannot be read."""
        if not self.leave():
            return None
        if (field := file_field(self._editing, path)) is None:
            self._editing.say(self._editing.refuses_to_edit(path) or f"{path.name} cannot be read")
            return None
        case = CaseId(self._editing.sets.case_path(path), "")
        self.draft = draft = Draft(case, (), "file", field, field.text, field.text)
        if text is not None:
            self.type(text)
        self._replaced(draft)
        return draft

    def type(self, text: str) -> None:
        """Changes the text, and scores the last result by the case with this text."""
        draft = self.draft
        if draft is None:
            return
        draft.text, draft.question = text, ""
        if not draft.is_gone and draft.part != "file":
            made = self._edit_and_case(draft)
            self._outcomes.score_draft(draft.case, made[1] if made else None)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_PAUSE_SECONDS, self.write)

    def _edit_and_case(self, draft: Draft) -> tuple[EditBuilder, StoredCase] | None:
        """The edit for the text, and the edited case; None for no edit, or with a `problem`."""
        draft.problem, draft.problem_at = "", None
        if not draft.is_typed:
            return None
        with _catch_errors(draft):
            build = draft.field.change(draft.text)
            number = self._selected.source.editor.number
            return build, self._editing.case_after(self._file(draft), number, build)
        return None

    def _replaced(self, draft: Draft) -> CaseFile | None:
        """The whole file with the text; None with a `problem`."""
        draft.problem, draft.problem_at = "", None
        with _catch_errors(draft):
            return replace_text(self._editing.whole(self._file(draft)), draft.text)
        return None

    def _file(self, draft: Draft) -> Path:
        return self._editing.sets.file_of(draft.case.path)

    # Its end

    def apply(self) -> bool:
        """Applies the text as one edit of the case and ends the draft; False with a `problem`."""
        draft = self.draft
        if draft is None:
            return True
        if self._was_changed_outside(draft):
            return not draft.is_typed and self._end(draft)
        if draft.part == "file":
            return (not draft.is_typed or self._is_file_replaced(draft)) and self._end(draft)
        made = self._edit_and_case(draft)
        if draft.problem or (made is not None and not self._is_done(draft, *made)):
            return False
        return self._end(draft)

    def _is_done(self, draft: Draft, build: EditBuilder, made: StoredCase) -> bool:
        case, renamed = draft.case, CaseId(draft.case.path, made.eval_id)
        moved = {case: renamed} if renamed != case else None
        after = Selection(*renamed) if moved else None
        with _catch_errors(draft):
            if self._editing.change(
                draft.field.label, self._file(draft), build, after=after, moved=moved, extends=draft.step
            ):
                draft.step = self._editing.last_step
            return True
        return False

    def _is_file_replaced(self, draft: Draft) -> bool:
        document = self._replaced(draft)
        if document is not None:
            self._editing.do_edits(draft.field.label, {self._file(draft): document})
        return document is not None

    def leave(self) -> bool:
        """Applies the draft, if there is one; False where it cannot be applied, and the field shows a
        question."""
        if self.draft is None or self.apply():
            return True
        self.draft.question = f"Not applied   {key_of('leave_field')} discard"
        self._messages.publish(DraftChanged())
        return False

    def cancel(self, unasked: int = 0) -> bool:
        """Ends the draft without applying it; False where more than `unasked` characters were changed, which
        is asked about once."""
        draft = self.draft
        if draft is not None and not draft.question and not draft.is_gone:
            changed = _changed_characters(draft.base, draft.text)
            if changed > unasked:
                question = f"{counted(changed, 'character')} changed   {key_of('leave_field')} discard"
                draft.question = f"{question}   {draft.apply_key} apply"
                return False
        self.drop()
        return True

    def drop(self) -> None:
        """Ends the draft: the case stays as it is, and a row that was added for it is removed."""
        draft = self.draft
        if draft is not None:
            self._end(draft)
            if draft.step is not None and self._editing.undo_step(draft.step):
                self._editing.say(f"Cancelled   {key_of('redo')} redo")

    def _end(self, draft: Draft) -> bool:
        self.draft = None
        if draft.part != "file":
            self._outcomes.score_draft(draft.case, None)
        self._editing.write_draft(self._file(draft), None)
        self._messages.publish(DraftChanged())
        return True

    # Changes outside

    def follow(self) -> bool:
        """Takes over changes of the field from elsewhere; False where its row is gone."""
        draft = self.draft
        if draft is None or draft.is_in_dialog:
            # Whoever edits JSON is told when it is applied.
            return True
        self._was_changed_outside(draft)
        return self._selected.case == draft.case and (draft.is_typed or not draft.is_gone)

    def _was_changed_outside(self, draft: Draft) -> bool:
        """Whether the field has another text since, which sets `problem`; an unchanged draft takes the new
        text."""
        self._selected.follow()
        is_there = self._selected.case == draft.case and self._selected.is_editable
        if draft.part == "file":
            now = file_field(self._editing, self._file(draft))
        else:
            now = self._selected.field(draft.row, draft.part) if is_there else None
        if now is None:
            draft.is_gone = True
            what = "line" if is_there else draft.noun
            cancel = key_of("leave_field")
            draft.problem = f"This {what} was deleted outside; the text cannot be applied   {cancel} cancel"
            return True
        before, draft.field = draft.field, now
        if draft.is_gone:
            draft.is_gone, draft.problem = False, ""
        if now.text == before.text:
            return False
        if draft.is_typed:
            draft.base, draft.problem = now.text, self._changed_outside(draft)
            return True
        draft.text = draft.base = now.text
        return False

    @staticmethod
    def _changed_outside(draft: Draft) -> str:
        cancel, apply = key_of("leave_field"), draft.apply_key
        if draft.is_in_dialog:
            return f"The {draft.noun} was changed elsewhere   {apply} replace it   {cancel} cancel"
        return f"Changed outside to {draft.field.text[:60]}   {cancel} take theirs"

    # In the recovery file

    def write(self) -> None:
        """Writes the text to the recovery file now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if (draft := self.draft) is not None:
            stored = StoredDraft(draft.case.eval_id, draft.row, draft.part, draft.text, draft.field.text)
            self._editing.write_draft(self._file(draft), stored if draft.is_typed else None)

    async def restore(self, recovered: Recovered) -> bool:
        """Takes over the unsaved edits of an earlier session, and opens the field with its draft.

        False, with a message, where that is impossible.
        """
        stored = recovered.draft
        if stored is not None and not self.leave():
            self._editing.say(f"{recovered.name} not recovered: apply or discard the open text first")
            return False
        if not await self._editing.restore(recovered):
            return False
        path = self._editing.sets.case_path(self._editing.sets.known_path(recovered.path))
        if stored is None or self._open_stored(CaseId(path, stored.case), stored):
            return True
        name, where = stored.case or recovered.name, short_path(recovered.file)
        self._editing.say(f"{name}: the place of a typed text was deleted; the text is in {where}")
        return False

    def _open_stored(self, case: CaseId, stored: StoredDraft) -> bool:
        """Opens the stored draft; False where its field is gone."""
        draft = (self._open_in_file if stored.part == "file" else self._open_in_case)(case, stored)
        if draft is None:
            return False
        if draft.field.text != stored.base and draft.is_typed:
            draft.problem = self._changed_outside(draft)
        self.write()
        return True

    def _open_in_file(self, case: CaseId, stored: StoredDraft) -> Draft | None:
        file = self._editing.sets.file_of(case.path)
        if not self._editing.sets.is_config(file):
            self._navigation.show(Selection(case.path))
        return self.open_file(file, stored.text)

    def _open_in_case(self, case: CaseId, stored: StoredDraft) -> Draft | None:
        self._navigation.show(Selection(*case))
        self._selected.follow()
        if self._selected.case != case or not self._selected.is_editable:
            return None
        self._selected.reveal(stored.row)
        part = cast("CasePart", stored.part)
        field = self._selected.field(stored.row, part)
        return None if field is None else self.open(stored.row, part, field, stored.text)


def _changed_characters(before: str, after: str) -> int:
    """The number of characters that were replaced or typed between the common start and end of both texts."""
    return max(len(before), len(after)) - sum(common_ends(before, after))
