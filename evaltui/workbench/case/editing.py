"""Editing of files: changes, undo and redo, saving, and merging with the changes of others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from evaltui.core.model.old_formats import FORMATS
from evaltui.core.model.problems import EvalSetError, errors_in
from evaltui.documents.dataset import DatasetDocument
from evaltui.documents.edits import Edit, EditError
from evaltui.documents.formats import WholeText
from evaltui.documents.open_file import FileConflict, OpenFile, unusable
from evaltui.documents.values import edits_of
from evaltui.project.configs import UnreadableConfig
from evaltui.project.eval_sets import set_name
from evaltui.project.folders import is_recording
from evaltui.text.keys import key_of
from evaltui.workbench.agent.background import Background
from evaltui.workbench.cases.navigation import Navigation
from evaltui.workbench.cases.open_sets import OpenSets
from evaltui.workbench.messages import FilesChanged, Messages
from evaltui.workbench.result.outcomes import Outcomes
from evaltui.workbench.state import READ_ONLY, Selection

if TYPE_CHECKING:
    from evaltui.core.model.case_id import CaseId
    from evaltui.core.model.stored_cases import StoredCase
    from evaltui.documents.case_file import CaseFile
    from evaltui.documents.editing.set import EditBuilder, SetEditor
    from evaltui.documents.merge import Choices, Side
    from evaltui.documents.recovery import Draft, Recovered
    from evaltui.workbench.case.steps import Step

_P = ParamSpec("_P")
_Change = Callable[Concatenate["Editing", _P], bool]


def _report_errors(change: _Change[_P]) -> _Change[_P]:
    """Turns a change into one that shows its error as a message and returns False."""

    def do(editing: Editing, /, *args: _P.args, **kwargs: _P.kwargs) -> bool:
        try:
            return change(editing, *args, **kwargs)
        except (EvalSetError, OSError, ValueError) as error:
            editing.say(str(error))
            return False

    return do


class Editing:
    """Changes of files; each shows a message when it is done or refused."""

    def __init__(
        self,
        sets: OpenSets,
        outcomes: Outcomes,
        navigation: Navigation,
        messages: Messages,
    ) -> None:
        self.sets = sets
        self.outcomes = outcomes
        self.navigation = navigation
        self.say = messages.say
        self._messages = messages
        self._files = sets.files
        self.conflicts: list[FileConflict] = []
        """The conflicts that the user has to settle."""
        self.background = Background(messages)
        """Slow work that is finished whether a caller waits for it or not."""

    # What there is

    def open_file(self, path: Path) -> OpenFile | None:
        """The file with its unsaved edits; None where it has not been edited."""
        return self._files.get(path)

    def document(self, path: Path) -> CaseFile:
        """A file as it is now, opened for edits. Raises OSError, EvalSetError."""

        document = self.whole(path)
        if isinstance(document, WholeText):
            raise unusable(path, document.text)
        return document

    def whole(self, path: Path) -> CaseFile:
        """Does what `document` does, and also opens a file that is no JSON as a text without cases."""
        return self._files.open(path).document

    def data(self, path: Path) -> Any:
        """The parsed JSON of a file; opens it as `document` does."""
        document = self.document(path)
        return document.named(set_name(path)) if isinstance(document, DatasetDocument) else document.value

    def is_there(self, path: Path) -> bool:
        """Whether there is such a file, on disk or unsaved."""
        return self.open_file(path) is not None or path.exists()

    def config_data(self, set_path: Path) -> Any | None:
        """The parsed JSON of the config of a set as it is now; None without a config."""
        path = self.sets.config_path(set_path)
        return self.data(path) if self.is_there(path) else None

    def config_for_edit(self, set_path: Path) -> Any | None:
        """The config data; an unreadable config raises EvalSetError only when a value is read."""
        try:
            return self.config_data(set_path)
        except EvalSetError as error:
            return UnreadableConfig(error)

    def is_dirty(self, path: Path) -> bool:
        file = self._files.get(path)
        return file is not None and file.dirty

    def dirty_cases(self, path: Path) -> frozenset[str]:
        """The ids of the cases of a set that differ from those on disk."""
        file = self._files.get(path)
        return file.dirty_cases() if file else frozenset()

    def unsaved(self) -> list[Path]:
        return self._files.unsaved()

    @property
    def recovery_problem(self) -> str:
        """Why a crash would lose unsaved changes; "" where the recovery files have all of them."""
        return next((file.recovery_problem for file in self._files if file.recovery_problem), "")

    def write_draft(self, path: Path, draft: Draft | None) -> None:
        """Writes the draft of a file to its recovery file; None for no draft."""
        file, before = self.open_file(path), self.recovery_problem
        if file is not None:
            file.write_draft(draft)
        if self.recovery_problem != before:
            self._messages.publish(FilesChanged())

    def refuses_to_edit(self, path: Path | None) -> str | None:
        """Why a set cannot be edited, as a sentence; None where it can."""
        if self.sets.read_only:
            return READ_ONLY
        eval_set = self.sets.by_path(path)
        if eval_set is None:
            return "Nothing selected"
        if eval_set.format is None:
            edit = f"   {key_of('edit_json')}  Edit JSON" if eval_set.is_text else ""
            return f"{eval_set.path.name} is unreadable: {eval_set.problems[0]}{edit}"
        if eval_set.format == "dataset":
            if eval_set.document is not None:
                return None
            edit, (error, *_) = f"   {key_of('edit_json')}  Edit JSON", errors_in(eval_set.problems)
            return f"{eval_set.path.name} is {FORMATS['dataset']} with errors: {error}{edit}"
        if eval_set.format != "eval set":
            return f"{eval_set.path.name} has an old format   {key_of('convert')}  Convert"
        return None

    def refuses_whole(self, path: Path | None) -> str | None:
        """Why the text of a set cannot be edited as a whole, as a sentence; None where it can."""
        if self.sets.read_only:
            return READ_ONLY
        eval_set = self.sets.by_path(path)
        if eval_set is None:
            return "Nothing selected"
        if not eval_set.is_text:
            return self.refuses_to_edit(path)
        is_cut = eval_set.document is not None and eval_set.document.key is not None
        return "No case selected" if is_cut else None

    # Doing, and back

    def change(
        self,
        label: str,
        path: Path,
        build: EditBuilder,
        *,
        after: Selection | None = None,
        moved: Mapping[CaseId, CaseId] | None = None,
        extends: Step | None = None,
    ) -> bool:
        """Changes a set, and its config, as one step; False where nothing changes.

        Parameters as of `change_files`. Raises EvalSetError, OSError and ValueError where it cannot be done.
        """
        if reason := self.refuses_to_edit(path):
            raise EditError(reason)
        edits = self._edits(path, build)
        return self.change_files(label, edits, after=after, moved=moved, extends=extends)

    do = _report_errors(change)
    """Does what `change` does; an error is shown to the user, and the result is False."""

    def case_after(self, path: Path, number: int, build: EditBuilder) -> StoredCase:
        """The case with this number, from 0, as a change of its set would leave it; nothing is changed.

        Raises the errors of `change`.
        """
        return self.document(path).edited(self._edits(path, build).get(path, ())).cases[number]

    def _edits(self, path: Path, build: EditBuilder) -> dict[Path, list[Edit]]:

        eval_set, config = self.copy_set(path), self.sets.config_path(path)
        build(eval_set)
        copies = {path: eval_set.data, config: eval_set.config}
        return {file: edits for file, copy in copies.items() if (edits := edits_of(copy))}

    def copy_set(self, path: Path) -> SetEditor:
        """A copy of the set at `path` and of its config, which is new where there is none.

        Raises OSError, EvalSetError.
        """
        from evaltui.documents.editing.config import new_config
        from evaltui.documents.editing.set import SetEditor

        data, config = self.data(path), self.config_for_edit(path)
        return SetEditor.copied(data, new_config() if config is None else config)

    def change_files(
        self,
        label: str,
        edits: Mapping[Path, Sequence[Edit] | CaseFile],
        *,
        after: Selection | None = None,
        moved: Mapping[CaseId, CaseId] | None = None,
        extends: Step | None = None,
        scores_later: bool = False,
    ) -> bool:
        """Changes files as one step: sets, and configs, which may be new.

        `label` is an imperative: `rename a to b`. Instead of edits, a value may be the document that they
        make of the current file. `after` is the selection after the change, and again after a redo. As long
        as `extends` is the last step, the change becomes a part of it. With `scores_later`, results are
        scored again by `Outcomes.rescore_now`.
        """
        if self.sets.read_only:
            raise EditError(READ_ONLY)
        before = self.navigation.selection
        self.opened(edits)
        step = self._files.do(label, edits, before, after or before, moved=moved, extends=extends)
        if step is not None:
            self._show(step, scores_later=scores_later)
        return step is not None

    do_edits = _report_errors(change_files)
    """Does what `change_files` does; an error is shown to the user, and the result is False."""

    def opened(self, paths: Iterable[Path]) -> dict[Path, CaseFile]:
        """Files to be edited as they are now; configs may be new. Raises OSError, EvalSetError."""
        # It knows the metrics, which build on the models.
        from evaltui.documents.editing.config import new_config_text

        return {
            path: self._files.open(path, new_config_text() if self.sets.is_config(path) else None).document
            for path in paths
        }

    @property
    def last_step(self) -> Step | None:
        """The step that another edit may extend; None without one, or where a file changed on disk since."""
        return self._files.last_step

    @property
    def undo_label(self) -> str | None:
        """The label of the step that undo takes back; None for none."""
        return self._files.undo_label

    @property
    def redo_label(self) -> str | None:
        return self._files.redo_label

    def undo(self) -> None:
        self._back(self._files.undo, "Undid")

    def undo_step(self, step: Step) -> bool:
        """Takes back this step; False where it is not the last one."""
        return self._back(lambda: self._files.undo_step(step), "Undid")

    def redo(self) -> None:
        self._back(self._files.redo, "Redid")

    def _back(self, step_back: Callable[[], Step | None], done: str) -> bool:
        try:
            step = step_back()
        except EditError as error:
            self.say(str(error))
            return False
        if step is None:
            return False
        before = self.conflicts
        self._drop_conflicts(step.changes)
        self._show(step)
        if len(self.conflicts) < len(before):
            # What is to be decided now, if anything, is between what there is now and what is outside.
            self.merge_outside_changes()
        self.say(f"{done}: {step.label}")
        return True

    def _show(self, step: Step, *, scores_later: bool = False) -> None:
        """Shows the changes of a step, and scores the concerned results again."""
        self.outcomes.move(step.moved)
        self._show_files(step.changes, step.after, scores_later=scores_later)

    def _show_new(self, path: Path) -> None:
        """Shows a new set, and selects it."""
        self._show_files([path], Selection(self.sets.case_path(path)))

    def _show_files(
        self, paths: Collection[Path], selection: Selection | None = None, *, scores_later: bool = False
    ) -> None:
        """Shows files with their unsaved edits."""
        paths = [path for path in paths if not is_recording(path)]
        self.sets.follow(paths)
        if scores_later:
            self.outcomes.rescore_later(paths)
        else:
            self.outcomes.rescore(paths)
        self.navigation.select_nearest(selection or self.navigation.selection)
        self._messages.publish(FilesChanged())

    # Files

    def new_file(self, path: Path, text: str) -> bool:
        """Creates an unsaved set; False, with a message, where the file exists already."""
        if self.sets.read_only:
            self.say(READ_ONLY)
            return False
        if path.exists() or self._files.get(path) is not None:
            self.say(f"{path.name} already exists")
            return False
        self._files.open(path, text)
        self._show_new(path)
        return True

    async def finished(self) -> None:
        """Waits until no file is being saved or taken over."""
        await self.background.finished()

    def save(self, path: Path) -> asyncio.Future[bool]:
        """Writes a file, and the files that steps have changed together with it: all of them or none.

        False where that fails, which the user sees as a message or as `conflicts`. Edits during the save stay
        unsaved.
        """
        return self.background.start(self._save(path))

    async def _save(self, path: Path) -> bool:
        paths = self._files.saved_with(path)
        names = " and ".join(file_path.name for file_path in paths) or path.name
        try:
            with self.background.progress(f"Saving {names}…"):
                conflict = await self._files.save(path, lambda merged: self._show_files([merged]))
        except (OSError, EvalSetError) as error:
            # Without the number of the error, and without a name that is shown already.
            reason = (error.strerror if isinstance(error, OSError) else None) or error
            self.say(f"{names} not saved: {reason}")
            return False
        self._show_files(paths)
        self._drop_conflicts(paths, conflict)
        if conflict is not None:
            what = "deleted" if conflict.was_deleted else "changed"
            self.say(f"{names} not saved: {conflict.path.name} was {what} on disk, too. Choose a side")
        return conflict is None

    def save_all(self) -> asyncio.Future[bool]:
        """Writes every file with unsaved edits; returns whether all were written."""
        return self.background.start(self._save_all())

    async def _save_all(self) -> bool:
        unsaved = self.unsaved()
        tried: set[Path] = set()
        all_saved = True
        for path in unsaved:
            if path not in tried and self.is_dirty(path):
                tried.update(self._files.saved_with(path))
                all_saved = await self._save(path) and all_saved
        if all_saved:
            names = ", ".join(path.name for path in unsaved)
            self.say(f"Saved {names}" if unsaved else "No unsaved changes")
        return all_saved

    def settle(
        self, conflict: FileConflict, choices: Choices, whole: Side | None = None
    ) -> asyncio.Future[bool]:
        """Settles a conflict with choices and saves the result; False where conflicts remain."""
        return self.background.start(self._settle(conflict, choices, whole))

    async def _settle(self, conflict: FileConflict, choices: Choices, whole: Side | None) -> bool:
        with self.background.progress(f"Merging {conflict.path.name}…"):
            undecided = await self._files.settle(conflict, choices, whole)
        if undecided is not None:
            return False
        self._drop_conflicts([conflict.path])
        self._follow([conflict.path])
        return await self._save(conflict.path)

    def merge_outside_changes(self) -> asyncio.Future[None]:
        """Takes over the changes of other programs in the open files."""
        return self.background.start(self._merge_outside_changes())

    async def _merge_outside_changes(self) -> None:
        looked_at = list(self._files)
        for file in looked_at:
            pending = next((conflict for conflict in self.conflicts if conflict.path == file.path), None)
            try:
                with self.background.progress(f"Reading {file.path.name}…"):
                    conflict = await self._files.refresh(file.path, pending)
            except (OSError, EvalSetError) as error:
                # There is one line of room, and which file it is need not be said twice.
                why = error.problems[0] if isinstance(error, EvalSetError) else error
                self.say(f"{file.path.name} is unreadable: {why}")
                continue
            if conflict is not pending:
                self._drop_conflicts([file.path], conflict)
        if looked_at:
            self._follow([file.path for file in looked_at])

    def _drop_conflicts(self, paths: Collection[Path], left: FileConflict | None = None) -> None:
        """Removes the conflicts of these files, but for the conflict that is `left`."""
        others = [conflict for conflict in self.conflicts if conflict.path not in paths]
        self.conflicts = [*others, left] if left else others

    def _follow(self, paths: Sequence[Path]) -> None:
        """Shows files as they are now; a set that was deleted outside is removed, unless it has unsaved
        edits."""
        self._show_files(
            [path for path in paths if self._files.get(path) is not None or self.sets.is_config(path)]
        )

    async def discard(self) -> None:
        """Discards all unsaved edits."""
        await self.finished()
        self._files.discard()

    def restore(self, recovered: Recovered) -> asyncio.Future[bool]:
        """Takes over the unsaved edits of an earlier session; False, with a message, where that is
        impossible.

        Edits that conflict with later changes of the file are in `conflicts` then.
        """
        return self.background.start(self._restore(recovered))

    async def _restore(self, recovered: Recovered) -> bool:
        if self.sets.read_only:
            self.say(READ_ONLY)
            return False
        path = self.sets.known_path(recovered.path)
        is_new = not path.exists() and self._files.get(path) is None
        step = conflict = None
        try:
            if recovered.labels or is_new:
                with self.background.progress(f"Recovering {path.name}…"):
                    here = self.navigation.selection
                    step, conflict = await self._files.restore(replace(recovered, path=path), here)
            self.whole(path)
        except (EvalSetError, OSError, ValueError) as error:
            self.say(f"{path.name} not recovered: {error}")
            return False
        self._drop_conflicts([path], conflict)
        if is_new and not self.sets.is_config(path):
            self._show_new(path)
        if step is not None:
            self._show(step)
        return True
