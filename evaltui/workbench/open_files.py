"""The files that are edited: steps in them are done and undone, saved, and merged with what others change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from evaltui.core.jsondoc.edit_error import EditError
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.problems import EvalSetError
from evaltui.files.folders import CONFIG_NAME
from evaltui.workbench.state import Selection
from evaltui.workbench.steps import Step, Steps

if TYPE_CHECKING:
    from evaltui.core.jsondoc.document import JsonDocument
    from evaltui.core.jsondoc.edits import Edit
    from evaltui.core.jsondoc.merge import Choices, Conflict, Side
    from evaltui.core.jsondoc.splices import Splice
    from evaltui.files.journal import Recovered
    from evaltui.files.open_file import FileConflict, OpenFile, Outside
    from evaltui.files.saving import Fingerprint

RESTORED = "restore unsaved changes"

# Seconds in which another program finishes a file that it has begun to write.
_SECONDS_TO_FINISH = 0.3
_MOST_TRIES = 50
# Splices of a step beyond which the whole text is taken back instead of each of them.
_MANY = 20

_T = TypeVar("_T")


class OpenFiles:
    """Every file that has been edited in this sitting.

    What one step has changed in several files is one transaction: done and undone at once, and saved together
    or not at all. What others change is a new base and no step: it is merged into the file, and undoing what
    was done before leaves it alone.

    What reads, merges and writes is done in a thread, one after the other; what is edited meanwhile is
    merged, and stays unsaved. `read` gives a file that was read already, None where it was not or has changed
    since. Everything raises OSError and EvalSetError for files that cannot be read, and EditError for edits
    that cannot be done; nothing has changed then.
    """

    def __init__(
        self,
        agent_dir: Path,
        read: Callable[[Path], tuple[JsonDocument, Fingerprint] | None],
    ) -> None:
        self._agent_dir = agent_dir
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

    def known(self, path: Path) -> OpenFile | None:
        """A file that has been edited in this sitting; None where it is gone or unreadable on disk."""
        file = self._files.get(path)
        return None if file is None or file.deleted else file

    def open(self, path: Path, new_text: str | None = None) -> OpenFile:
        """The file to be edited; one that does not exist begins with `new_text`, where that is given."""
        return self.known(path) or self._opened(self._loaded(path, new_text))

    def _loaded(self, path: Path, new_text: str | None) -> OpenFile:
        # What is only looked at does not wait for what edits.
        from evaltui.files.open_file import OpenFile, read_document

        document, on_disk = self._read(path) or read_document(path, new_text)
        return OpenFile(path, document, on_disk, self._agent_dir)

    def _opened(self, loaded: OpenFile) -> OpenFile:
        file = self._files.setdefault(loaded.path, loaded)
        if file.deleted:
            self._rebase(file, loaded.document, loaded.on_disk)
        return file

    def is_config(self, path: Path) -> bool:
        """Whether a file is a config, and no set; one that was never open goes by its name."""
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
        edits: Mapping[Path, Sequence[Edit] | JsonDocument],
        before: Selection,
        after: Selection,
        *,
        moved: Mapping[CaseId, CaseId] | None = None,
        typing: Hashable = None,
    ) -> Step | None:
        """Do edits in files that are open, all or none of them; None where they change nothing.

        Edits may be given as the document that they made of a file as it is now.
        """
        befores = {path: self._files[path].document.copy() for path in edits}
        splices: dict[Path, tuple[Splice, ...]] = {}
        try:
            for path, some in edits.items():
                if done := self._files[path].apply(some):
                    splices[path] = done
        except Exception:
            for path in splices:
                self._files[path].apply(befores[path])
            raise
        if not splices:
            return None
        replaced = {path: befores[path] for path, done in splices.items() if len(done) > _MANY}
        revisions = self._revisions(splices)
        step = Step(label, splices, before, after, moved or {}, revisions, typing, replaced)
        return self._push(step, befores)

    def _push(self, step: Step, befores: Mapping[Path, JsonDocument]) -> Step:
        self._record(step, befores)
        self._undone.clear()
        self._done.push(step)
        return step

    def _revisions(self, paths: Iterable[Path]) -> dict[Path, int]:
        return {path: self._files[path].revision for path in paths}

    def end_typing(self) -> None:
        """What is typed from now on is a step of its own."""
        self._done.end_typing()

    @property
    def undo_label(self) -> str | None:
        return self._done.top.label if self._done.top else None

    @property
    def redo_label(self) -> str | None:
        return self._undone.top.label if self._undone.top else None

    def undo(self) -> Step | None:
        """Take the last step back; the step that did it, None where there is none.

        What others have changed since stays. Raises EditError where it is not possible without taking that
        back; the step is none that can be undone then, and the one before it is the last.
        """
        return self._step_back(self._done, self._undone)

    def undo_typing(self, typing: Hashable) -> Step | None:
        """As `undo`, where the last step is what was typed into this field; None where it is another one."""
        top = self._done.top
        return self.undo() if top is not None and top.typing == typing else None

    def redo(self) -> Step | None:
        return self._step_back(self._undone, self._done)

    def _step_back(self, taken_from: Steps, put_to: Steps) -> Step | None:
        if taken_from.top is None:
            return None
        from evaltui.core.jsondoc.merge import Conflict, merge

        step, bases = taken_from.pop()
        befores = {path: self._files[path].document.copy() for path in step.splices}
        back = step.inverse(self._revisions(step.splices), befores)
        blocked = [path for path in back.splices if self._files[path].deleted]
        merged: dict[Path, JsonDocument] = {}
        for path, base in bases.items():
            if path not in back.splices:
                continue
            # As it was before the step, had nobody else changed anything; that is merged into what is there.
            bases[path] = without_step = step.documents.get(path) or base.spliced(back.splices[path])
            found = merge(base, without_step, befores[path], self._files[path].shape)
            if isinstance(found, Conflict):
                blocked.append(path)
            else:
                merged[path] = found.document
        if blocked:
            for path in back.splices.keys() - bases.keys():
                bases[path] = befores[path].spliced(back.splices[path])
            taken_from.rebase(bases)
            names = " and ".join(path.name for path in dict.fromkeys(blocked))
            raise EditError(f"{step.label!r} stays: {names} changed on disk at the same place")
        taken_from.rebase(bases)
        splices = {}
        for path, exact in back.splices.items():
            if (whole := merged.get(path) or step.documents.get(path)) is not None:
                splices[path] = self._files[path].apply(whole)
            else:
                self._files[path].document.splice(exact)
                splices[path] = exact
        back = replace(back, splices=splices)
        put_to.push(back)
        self._record(back, befores)
        for path, revision in step.revisions.items():
            self._files[path].step_back_to(None if path in merged else revision)
        return back

    def _record(self, step: Step, befores: Mapping[Path, JsonDocument]) -> None:
        """Count what was changed, and write it to the journals."""
        together = set(step.splices)
        others = []
        for group in self._together:
            if not any(self._files[path].dirty for path in group):
                continue
            if group & together:
                together |= group
            else:
                others.append(group)
        self._together = [*others, together]
        for path, splices in step.splices.items():
            self._files[path].changed(step.label, splices, befores[path])

    # Saving, and what others change

    async def finished(self) -> None:
        """Waits until nothing is being read, merged or saved."""
        async with self._lock:
            pass

    def saved_with(self, path: Path) -> list[Path]:
        """The files with unsaved edits that are written together with this one, and it; sets first."""
        group = next((one for one in self._together if path in one), {path})
        dirty = [one for one in self.unsaved() if one in group]
        return sorted(dirty, key=self.is_config)

    async def save(self, path: Path, merged: Callable[[Path], None]) -> FileConflict | None:
        """Write a file, and what steps have changed together with it: all of these files or none.

        What was changed outside is merged, and `merged` is called with that file; a conflict is given back,
        and nothing is written then.
        """
        async with self._lock:
            for _ in range(_MOST_TRIES):
                files = [self._files[one].snapshot() for one in self.saved_with(path)]
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
        """As `write_together`; until it is known what is on disk, nothing counts as saved."""
        from evaltui.files.open_file import write_together

        for file in files:
            self._files[file.path].is_being_written = True
        try:
            return await asyncio.to_thread(write_together, files)
        finally:
            for file in files:
                self._files[file.path].is_being_written = False

    async def _is_finished_soon(self, path: Path, outside: Outside) -> bool:
        """Whether another program may still be writing this; that is waited for, once."""
        if outside.is_whole or outside.fingerprint in (None, self._waited_for.get(path)):
            return False
        self._waited_for[path] = outside.fingerprint
        await asyncio.sleep(_SECONDS_TO_FINISH)
        return True

    async def _merge(self, file: OpenFile, outside: Outside) -> FileConflict | None:
        """Take over what was changed outside; what the user has to decide."""
        from evaltui.core.jsondoc.merge import Choices
        from evaltui.files.open_file import FileConflict

        conflict = await self._merge_as(file, outside, Choices())
        return FileConflict(file.path, conflict, file.document.text, outside) if conflict else None

    async def _merge_as(
        self, file: OpenFile, outside: Outside, choices: Choices, whole: Side | None = None
    ) -> Conflict | None:
        from evaltui.core.jsondoc.merge import Conflict

        found = await self._worked_out(file, lambda mine: mine.merged(outside, choices, whole))
        if isinstance(found, Conflict):
            return found
        self._rebase(file, found.document, outside)
        return None

    async def _worked_out(self, file: OpenFile, work: Callable[[OpenFile], _T]) -> _T:
        """What is made of a file in a thread; made again where the file was edited meanwhile."""
        while True:
            now = file.snapshot()
            found = await asyncio.to_thread(work, now)
            if file.revision == now.revision:
                return found

    async def settle(
        self, conflict: FileConflict, choices: Choices, whole: Side | None = None
    ) -> Conflict | None:
        """Decide a conflict; what is undecided still is given back. `whole` takes one side's file.

        Mine is what is in the file now. What has changed outside since then is found when it is saved.
        """
        async with self._lock:
            file = self._files[conflict.path]
            if conflict.was_deleted:
                if whole == "theirs":
                    file.leave_deleted()
                elif whole == "mine":
                    file.keep_deleted_outside()
                return None if whole else conflict.conflict
            return await self._merge_as(file, conflict.outside, choices, whole)

    async def refresh(self, path: Path, pending: FileConflict | None = None) -> FileConflict | None:
        """Take over what was changed outside; what is in conflict with unsaved edits is given back.

        `pending` is one that is to be decided: the same one is given back where nothing else has changed.
        Raises OSError and EvalSetError for a file that cannot be read any more: it is open no longer then,
        unless it has unsaved edits.
        """
        async with self._lock:
            if (file := self.known(path)) is None:
                return None
            try:
                return await self._take_over(file, pending)
            except (OSError, EvalSetError):
                if not file.dirty:
                    file.leave_unreadable()
                raise

    async def _take_over(self, file: OpenFile, pending: FileConflict | None) -> FileConflict | None:
        outside = await asyncio.to_thread(file.snapshot().look)
        if outside and await self._is_finished_soon(file.path, outside):
            outside = await asyncio.to_thread(file.snapshot().look)
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
            from evaltui.files.open_file import unusable

            raise unusable(file.path, outside.text or "")
        return None

    def _rebase(self, file: OpenFile, new: JsonDocument, outside: Outside) -> None:
        for steps in (self._done, self._undone):
            steps.rebase({file.path: file.document.copy()})
        file.rebase(new, outside)

    async def restore(self, recovered: Recovered, here: Selection) -> tuple[Step | None, FileConflict | None]:
        """Make of a file what the edits of an earlier sitting made of it, as one step.

        Where the file has changed meanwhile, that is merged: a conflict is given back as by `save`, no step
        where the file has all of it. Raises EditError where edits of this sitting are in conflict.
        """
        from evaltui.core.jsondoc.merge import Merged
        from evaltui.files.open_file import FileConflict, OpenFile, Outside

        path = recovered.path
        async with self._lock:
            began_with = None if path.exists() else await asyncio.to_thread(lambda: recovered.base().text)
            file = self.known(path) or self._opened(await asyncio.to_thread(self._loaded, path, began_with))
            began, mine, found = await self._worked_out(file, lambda now: now.restored(recovered))
            old, new, conflict = file.document.copy(), mine, None
            if isinstance(found, Merged):
                new = found.document
            elif any(path in step.splices for step in (*self._done, *self._undone)):
                raise EditError(f"{path.name} has unsaved changes; save or undo them first")
            else:
                conflict = FileConflict(path, found, mine.text, Outside(file.fingerprint, old))
                # As if it had been opened then: what is decided between, both sides made of that.
                file.end_journal()
                file = OpenFile(path, began, recovered.fingerprint, self._agent_dir)
                self._files[path], old = file, began.copy()
            splices = file.apply(new)
            if not splices:
                return None, conflict
            step = Step(RESTORED, {path: splices}, here, here, {}, self._revisions([path]))
            return self._push(step, {path: old}), conflict

    def discard(self) -> None:
        """Throw away every unsaved edit, and what could be undone. Nothing may be being saved."""
        for file in self._files.values():
            file.end_journal()
        self._files.clear()
        self._done.clear()
        self._undone.clear()
        self._together.clear()
