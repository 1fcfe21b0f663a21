"""The edited files: undo steps, saving, and merging with changes on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.problems import EvalSetError
from evaltui.documents.case_file import CaseFile, Change
from evaltui.documents.edits import Edit, EditError
from evaltui.documents.merge import Choices, Conflict, Side, merge
from evaltui.documents.open_file import (
    FileConflict,
    OpenFile,
    Outside,
    read_document,
    unusable,
    write_together,
)
from evaltui.project.folders import CONFIG_NAME, agent_folder
from evaltui.workbench.case.steps import Step, Steps
from evaltui.workbench.state import Selection

if TYPE_CHECKING:
    from evaltui.documents.recovery import Recovered
    from evaltui.documents.saving import Fingerprint

RESTORE_LABEL = "restore unsaved changes"

# Seconds in which another program finishes a file that it has begun to write.
_SECONDS_TO_FINISH = 0.3
_MAX_ATTEMPTS = 50

_T = TypeVar("_T")


class OpenFiles:
    """Every file that has been edited in this session.

    The changes of one step in several files are one transaction: done and undone at once, and saved together
    or not at all. A change of another program is a new base and no step: it is merged into the file, and undo
    keeps it.

    Reading, merging and writing run in a thread, one after the other; edits during that time are merged, and
    stay unsaved. `read` returns a file that was read already, None where it was not or has changed since.
    Every method raises OSError and EvalSetError for unreadable files, and EditError for impossible edits;
    nothing has changed then.
    """

    def __init__(
        self,
        agent_dir: Path,
        read: Callable[[Path], tuple[CaseFile, Fingerprint] | None],
    ) -> None:
        self._folder = agent_folder(agent_dir)
        self._read = read
        self._files: dict[Path, OpenFile] = {}
        self._done = Steps()
        self._undone = Steps()
        # Files that have been changed by one step, and not been saved since.
        self._together: list[set[Path]] = []
        # Contents that nobody has finished writing, so that they are waited for once.
        self._waited_for: dict[Path, Fingerprint | None] = {}
        self._lock = asyncio.Lock()

    # What there is

    def get(self, path: Path) -> OpenFile | None:
        """A file that has been edited in this session; None where it is deleted or unreadable on disk."""
        file = self._files.get(path)
        return None if file is None or file.deleted else file

    def open(self, path: Path, new_text: str | None = None) -> OpenFile:
        """Opens a file for edits; a new file starts with `new_text`, if any."""
        return self.get(path) or self._opened(self._loaded(path, new_text))

    def _loaded(self, path: Path, new_text: str | None) -> OpenFile:

        document, on_disk = self._read(path) or read_document(path, new_text)
        return OpenFile(path, document, on_disk, self._folder)

    def _opened(self, loaded: OpenFile) -> OpenFile:
        file = self._files.setdefault(loaded.path, loaded)
        if file.deleted:
            self._rebase(file, loaded.document, loaded.on_disk)
        return file

    def is_config(self, path: Path) -> bool:
        """Whether a file is a config, and no set; a file that was never open is judged by its name."""
        file = self._files.get(path)
        return path.name == CONFIG_NAME if file is None else file.is_config

    def unsaved(self) -> list[Path]:
        return [path for path, file in self._files.items() if file.dirty]

    def __iter__(self) -> Iterator[OpenFile]:
        return (file for file in self._files.values() if not file.deleted)

    # Doing, and back

    def do(
        self,
        label: str,
        edits: Mapping[Path, Sequence[Edit] | CaseFile],
        before: Selection,
        after: Selection,
        *,
        moved: Mapping[CaseId, CaseId] | None = None,
        extends: Step | None = None,
    ) -> Step | None:
        """Applies edits to open files, all or none; returns the step, None where nothing changes.

        Instead of edits, a value may be the document that they make of the current file. As long as `extends`
        is the last step, the edits become a part of it.
        """
        documents: dict[Path, CaseFile] = {}
        for path, some in edits.items():
            now = self._files[path].document
            made = now.edited(some) if isinstance(some, Sequence) else some
            if made is not now:
                documents[path] = made
        if not documents:
            return None
        step = Step(label, self._changes(documents), before, after, moved or {})
        return self._push(step, documents, extends)

    def _changes(self, documents: Mapping[Path, CaseFile]) -> dict[Path, Change]:
        """The changes that make files these documents."""

        return {path: Change.between(self._files[path].document, new) for path, new in documents.items()}

    def _push(self, step: Step, documents: Mapping[Path, CaseFile], extends: Step | None = None) -> Step:
        self._undone.clear()
        if extends is None or self._done.last is not extends:
            self._done.push(step)
        else:
            self._done.pop()
            self._done.push(self._join_steps(extends, step, documents))
        self._record(step.label, documents)
        return step

    def _join_steps(self, last: Step, step: Step, documents: Mapping[Path, CaseFile]) -> Step:
        """Joins two steps; the documents are those after the later step, which is not applied yet."""

        changes = dict(last.changes)
        for path, new in documents.items():
            before = self._files[path].document
            if path in changes:
                before = changes[path].inverse.applied(before)
            changes[path] = Change.between(before, new)
        return replace(last, changes=changes, after=step.after)

    @property
    def last_step(self) -> Step | None:
        """The step that another edit may extend; None without one, or where a file changed on disk since."""
        return self._done.last

    @property
    def undo_label(self) -> str | None:
        return self._done.top.label if self._done.top else None

    @property
    def redo_label(self) -> str | None:
        return self._undone.top.label if self._undone.top else None

    def undo(self) -> Step | None:
        """Takes back the last step and returns the step that did so; None for none.

        Changes of other programs stay. Raises EditError where they conflict; the step can no longer be undone
        then, and the one before it becomes the last.
        """
        return self._step_back(self._done, self._undone)

    def undo_step(self, step: Step) -> Step | None:
        """Takes back a step if it is the last one; else returns None."""
        return self.undo() if self._done.top is step else None

    def redo(self) -> Step | None:
        return self._step_back(self._undone, self._done)

    def _step_back(self, taken_from: Steps, put_to: Steps) -> Step | None:
        if taken_from.top is None:
            return None

        step, bases = taken_from.pop()
        changes = step.inverse.changes
        blocked = [path for path in changes if self._files[path].deleted]
        documents: dict[Path, CaseFile] = {}
        for path, change in changes.items():
            file = self._files[path]
            if (base := bases.get(path)) is None:
                documents[path] = file.or_saved(change.applied(file.document))
                continue
            # As if nobody else had changed anything; that is merged with the document now.
            bases[path] = without_step = change.applied(base)
            merged = merge(base, without_step, file.document, is_config=file.is_config)
            if isinstance(merged, Conflict):
                blocked.append(path)
            else:
                documents[path] = file.or_saved(merged)
        if blocked:
            taken_from.rebase({**documents, **bases})
            names = " and ".join(path.name for path in dict.fromkeys(blocked))
            raise EditError(f"{step.label!r} stays: {names} changed on disk at the same place")
        taken_from.rebase(bases)
        back = replace(step.inverse, changes=self._changes(documents))
        put_to.push(back)
        self._record(step.label, documents)
        return back

    def _record(self, label: str, documents: Mapping[Path, CaseFile]) -> None:
        """Replaces the documents of files, which are saved together from now on."""
        together = set(documents)
        others = []
        for group in self._together:
            if not any(self._files[path].dirty for path in group):
                continue
            if group & together:
                together |= group
            else:
                others.append(group)
        self._together = [*others, together]
        for path, document in documents.items():
            self._files[path].change(document, label)

    # Saving, and what others change

    async def finished(self) -> None:
        """Waits until no file is being read, merged or saved."""
        async with self._lock:
            pass

    def saved_with(self, path: Path) -> list[Path]:
        """The unsaved files that are written together with this one, which is among them; sets first."""
        group = next((files for files in self._together if path in files), {path})
        dirty = [unsaved for unsaved in self.unsaved() if unsaved in group]
        return sorted(dirty, key=self.is_config)

    async def save(self, path: Path, merged: Callable[[Path], None]) -> FileConflict | None:
        """Writes a file, and the files that steps have changed together with it: all of them or none.

        Changes on disk are merged, and `merged` is called with that file; a conflict is returned, and nothing
        is written then.
        """
        async with self._lock:
            for _ in range(_MAX_ATTEMPTS):
                files = [self._files[saved].snapshot() for saved in self.saved_with(path)]
                if not files:
                    return None
                written = await self._written(files)
                if isinstance(written, list):
                    for file, on_disk in zip(files, written, strict=True):
                        self._files[file.path].was_saved(file, on_disk)
                    return None
                changed, outside = written
                if await self._is_finished_soon(changed, outside):
                    continue
                if conflict := await self._merge(self._files[changed], outside):
                    return conflict
                merged(changed)
        raise OSError(f"{path} keeps changing on disk; try again")

    async def _written(self, files: Sequence[OpenFile]) -> list[Fingerprint] | tuple[Path, Outside]:
        """Writes files as `write_together` does; none counts as saved until the write has ended."""

        for file in files:
            self._files[file.path].is_being_written = True
        try:
            return await asyncio.to_thread(write_together, files)
        finally:
            for file in files:
                self._files[file.path].is_being_written = False

    async def _is_finished_soon(self, path: Path, outside: Outside) -> bool:
        """Waits once for another program that may still be writing the file; returns whether it waited."""
        if outside.is_whole or outside.fingerprint in (None, self._waited_for.get(path)):
            return False
        self._waited_for[path] = outside.fingerprint
        await asyncio.sleep(_SECONDS_TO_FINISH)
        return True

    async def _merge(self, file: OpenFile, outside: Outside) -> FileConflict | None:
        """Merges changes on disk; returns a conflict that the user has to settle."""

        conflict = await self._merge_with_choices(file, outside, Choices())
        return FileConflict(file.path, conflict, file.document.text, outside) if conflict else None

    async def _merge_with_choices(
        self, file: OpenFile, outside: Outside, choices: Choices, whole: Side | None = None
    ) -> Conflict | None:

        merged = await self._run_in_thread(file, lambda mine: mine.merged(outside, choices, whole))
        if isinstance(merged, Conflict):
            return merged
        self._rebase(file, merged, outside)
        return None

    async def _run_in_thread(self, file: OpenFile, work: Callable[[OpenFile], _T]) -> _T:
        """Runs work on a file in a thread, again where the file was edited meanwhile, and returns its
        result."""
        while True:
            now = file.snapshot()
            result = await asyncio.to_thread(work, now)
            if file.document is now.document:
                return result

    async def settle(
        self, conflict: FileConflict, choices: Choices, whole: Side | None = None
    ) -> Conflict | None:
        """Settles a conflict; returns the undecided rest. `whole` takes one side's file.

        Mine is the current content of the file. Later changes on disk are found by the next save.
        """
        async with self._lock:
            file = self._files[conflict.path]
            if conflict.was_deleted:
                if whole == "theirs":
                    file.leave_deleted()
                elif whole == "mine":
                    file.keep_deleted_outside()
                return None if whole else conflict.conflict
            return await self._merge_with_choices(file, conflict.outside, choices, whole)

    async def refresh(self, path: Path, pending: FileConflict | None = None) -> FileConflict | None:
        """Merges changes on disk; returns a conflict with unsaved edits.

        `pending` is an open conflict: it is returned unchanged where the file on disk is the same. Raises
        OSError and EvalSetError for an unreadable file: it is closed then, unless it has unsaved edits.
        """
        async with self._lock:
            if (file := self.get(path)) is None:
                return None
            try:
                return await self._take_over(file, pending)
            except (OSError, EvalSetError):
                if not file.dirty:
                    file.leave_unreadable()
                raise

    async def _take_over(self, file: OpenFile, pending: FileConflict | None) -> FileConflict | None:
        outside = await asyncio.to_thread(file.snapshot().outside_change)
        if outside and await self._is_finished_soon(file.path, outside):
            outside = await asyncio.to_thread(file.snapshot().outside_change)
        if outside is None:
            return None
        if pending and pending.outside.fingerprint == outside.fingerprint and file.dirty:
            return pending
        if file.dirty:
            return await self._merge(file, outside)
        if outside.fingerprint is None:
            file.leave_deleted()
        elif outside.document is not None and outside.is_whole:
            self._rebase(file, outside.document, outside)
        else:
            raise unusable(file.path, outside.text or "")
        return None

    def _rebase(self, file: OpenFile, new: CaseFile, outside: Outside) -> None:
        for steps in (self._done, self._undone):
            steps.rebase({file.path: file.document})
        file.rebase(new, outside)

    async def restore(self, recovered: Recovered, here: Selection) -> tuple[Step | None, FileConflict | None]:
        """Restores the document of an earlier session, as one step.

        Later changes on disk are merged: a conflict is returned as by `save`, and no step where the file has
        all edits already. Raises EditError where edits of this session conflict.
        """

        path = recovered.path
        async with self._lock:
            is_there = await asyncio.to_thread(path.exists)
            new_text = None if is_there else (await asyncio.to_thread(recovered.documents))[0].text
            file = self.get(path) or self._opened(await asyncio.to_thread(self._loaded, path, new_text))
            began, mine, merged = await self._run_in_thread(file, lambda now: now.restored(recovered))
            new, conflict = mine, None
            if not isinstance(merged, Conflict):
                new = merged
            elif any(path in step.changes for step in (*self._done, *self._undone)):
                raise EditError(f"{path.name} has unsaved changes; save or undo them first")
            else:
                conflict = FileConflict(path, merged, mine.text, Outside(file.fingerprint, file.document))
                # As if it had been opened then: both sides of the conflict are made of that.
                file.end_recovery()
                self._files[path] = OpenFile(path, began, recovered.fingerprint, self._folder)
            if new.has_text_of(self._files[path].document):
                return None, conflict
            step = Step(RESTORE_LABEL, self._changes({path: new}), here, here, {})
            return self._push(step, {path: new}), conflict

    def discard(self) -> None:
        """Discards all unsaved edits and undo steps. No save may be running."""
        for file in self._files.values():
            file.end_recovery()
        self._files.clear()
        self._done.clear()
        self._undone.clear()
        self._together.clear()
