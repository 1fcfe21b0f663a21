"""Files as they are being edited: what is unsaved, what was done, and back."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from evaltui.core.jsondoc.document import JsonDocument
from evaltui.core.jsondoc.edits import Edit, EditError
from evaltui.core.jsondoc.merge import Choices, Conflict, Merged, Side, resolve
from evaltui.core.jsondoc.splices import Splice
from evaltui.core.model.case_id import CaseId
from evaltui.files.folders import CONFIG_NAME
from evaltui.files.journal import Journal
from evaltui.files.open_file import FileConflict, OpenFile, read_file, unusable
from evaltui.files.saving import (
    ChangedOutsideError,
    Fingerprint,
    Source,
    Write,
    fingerprint,
    read_source,
    save_together,
)
from evaltui.workbench.state import Selection
from evaltui.workbench.steps import Entry, Step, Steps

Known = tuple[JsonDocument, Fingerprint]

MERGED = "merge with what changed outside"
RESTORED = "restore unsaved changes"
EARLIER = "unsaved changes"

# Seconds in which another program finishes a file that it has begun to write.
_MOMENT = 0.3
_MOST_TRIES = 50


class OpenFiles:
    """Every file that has been edited in this sitting.

    What one step has changed in several files is one transaction: done and undone at once, and saved together
    or not at all. What others change is a new base and no step: it is merged into a draft, and undoing what
    was done before leaves it alone.

    `read` gives a file that was read already, None where it was not or has changed since. `complain` is told
    what goes wrong with the recovery journal, which must not stop anybody's work. Everything raises OSError
    and EvalSetError for files that cannot be read, and EditError for edits that cannot be done; nothing has
    changed then.
    """

    def __init__(
        self,
        agent_dir: Path,
        complain: Callable[[str], None],
        read: Callable[[Path], Known | None],
    ) -> None:
        self._agent_dir = agent_dir
        self._read = read
        self._complain = complain
        self._files: dict[Path, OpenFile] = {}
        self._done = Steps()
        self._undone = Steps()
        self._revisions = 0
        # Files that have been changed by one step, and not been saved since.
        self._together: list[set[Path]] = []
        # Contents that nobody has finished writing, so that they are waited for once.
        self._waited_for: dict[Path, str] = {}

    # What there is

    def known(self, path: Path) -> OpenFile | None:
        """The draft of a file that has been edited in this sitting; None where it was deleted outside."""
        draft = self._files.get(path)
        return None if draft is None or draft.gone else draft

    def open(self, path: Path, new_text: str | None = None) -> OpenFile:
        """The file to be edited; one that does not exist begins with `new_text`, where that is given."""
        draft = self._files.get(path)
        if draft is None:
            known = self._read(path)
            draft = OpenFile(path, *known) if known else read_file(path, new_text)
            self._files[path] = draft
        elif draft.gone:
            new = read_file(path, new_text)
            self._rebase(draft, new.document, new.saved, new.fingerprint)
        return draft

    def is_config(self, path: Path) -> bool:
        """Whether a file is a config, and no set; one that was never open goes by its name."""
        draft = self._files.get(path)
        return path.name == CONFIG_NAME if draft is None else draft.is_config

    def unsaved(self) -> list[Path]:
        return [path for path, draft in self._files.items() if draft.dirty]

    def __iter__(self) -> Iterator[OpenFile]:
        return (draft for draft in self._files.values() if not draft.gone)

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
                document = self._files[path].document
                done = document.replace(some) if isinstance(some, JsonDocument) else document.apply(some)
                if done:
                    splices[path] = done
        except Exception:
            for path in splices:
                self._files[path].document.replace(befores[path])
            raise
        if not splices:
            return None
        return self._did(Step(label, splices, before, after, moved or {}, typing), befores)

    def _did(self, step: Step, befores: Mapping[Path, JsonDocument]) -> Step:
        earlier = {path: self._files[path].revision for path in step.splices}
        self._keep(step, befores)
        self._undone.clear()
        if self._done.goes_on(step.typing):
            self._done.extend(step, earlier)
        else:
            self._done.push(Entry(step, earlier))
        return step

    def end_typing(self) -> None:
        """What is typed from now on is a step of its own."""
        self._done.end_typing()

    @property
    def undo_label(self) -> str | None:
        return self._done.top.step.label if self._done.top else None

    @property
    def redo_label(self) -> str | None:
        return self._undone.top.step.label if self._undone.top else None

    def undo(self) -> Step | None:
        """Take the last step back; the step that did it, None where there is none.

        What others have changed since stays. Raises EditError where it is not possible without taking that
        back; the step is none that can be undone then, and the one before it is the last.
        """
        return self._back(self._done, self._undone)

    def undo_typing(self, typing: Hashable) -> Step | None:
        """As `undo`, where the last step is what was typed into this field; None where it is another one."""
        top = self._done.top
        return self.undo() if top is not None and top.step.typing == typing else None

    def redo(self) -> Step | None:
        return self._back(self._undone, self._done)

    def _back(self, taken_from: Steps, put_to: Steps) -> Step | None:
        if taken_from.top is None:
            return None
        entry, bases = taken_from.pop()
        inverse = entry.step.inverse
        blocked = [path for path in inverse.splices if self._files[path].gone]
        befores = {path: self._files[path].document.copy() for path in inverse.splices}
        merged: dict[Path, JsonDocument] = {}
        for path, base in bases.items():
            if path not in inverse.splices:
                continue
            # As it was before the step, had nobody else changed anything; that is merged into what is there.
            bases[path] = _spliced(base, inverse.splices[path])
            found = self._files[path].merged(base, bases[path], befores[path])
            if isinstance(found, Conflict):
                blocked.append(path)
            else:
                merged[path] = found.document
        if blocked:
            for path in inverse.splices.keys() - bases.keys():
                bases[path] = _spliced(befores[path], inverse.splices[path])
            taken_from.rebase(bases)
            names = " and ".join(path.name for path in dict.fromkeys(blocked))
            raise EditError(f"{entry.step.label!r} stays: {names} was changed outside at the same place")
        taken_from.rebase(bases)
        revisions = {path: self._files[path].revision for path in inverse.splices}
        splices = {}
        for path, exact in inverse.splices.items():
            if path in merged:
                splices[path] = self._files[path].document.replace(merged[path])
            else:
                self._files[path].document.splice(exact)
                splices[path] = exact
        back = replace(inverse, splices=splices)
        put_to.push(Entry(back, revisions))
        self._keep(back, befores)
        for path, revision in entry.revisions.items():
            draft = self._files[path]
            if path not in merged:
                draft.revision = revision
            elif draft.fingerprint and draft.saved and draft.document.has_text_of(draft.saved):
                draft.was_saved(draft.fingerprint)
        return back

    def _keep(self, step: Step, befores: Mapping[Path, JsonDocument]) -> None:
        """Count the revision, and write the step to the journals."""
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
            draft = self._files[path]
            draft.revision = self._next_revision()
            self._write_journal(draft, step.label, splices, befores[path])

    def _next_revision(self) -> int:
        self._revisions += 1
        return self._revisions

    def _write_journal(
        self, draft: OpenFile, label: str, splices: Sequence[Splice], before: JsonDocument
    ) -> None:
        try:
            if draft.journal is None:
                base = draft.saved or before
                draft.journal = Journal.open(
                    self._agent_dir, draft.path, base.copy(), draft.fingerprint if draft.saved else None
                )
                if earlier := base.copy().replace(before):
                    draft.journal.append(EARLIER, earlier)
            draft.journal.append(label, splices)
        except OSError as error:
            self._complain(f"unsaved edits are not kept for a crash: {error.strerror or error}")

    # Saving, and what others change

    def saved_with(self, path: Path) -> list[Path]:
        """The files with unsaved edits that are written together with this one, and it; sets first."""
        group = next((one for one in self._together if path in one), {path})
        dirty = [one for one in self.unsaved() if one in group]
        return sorted(dirty, key=self.is_config)

    def save(self, path: Path) -> FileConflict | None:
        """Write a file, and what steps have changed together with it: all of these files or none.

        What was changed outside is merged; a clash is given back, and nothing is written then.
        """
        for _ in range(_MOST_TRIES):
            drafts = [self._files[one] for one in self.saved_with(path)]
            writes = [Write(draft.path, draft.document.text, draft.fingerprint) for draft in drafts]
            try:
                sources = save_together(writes)
            except ChangedOutsideError as changed:
                draft = self._files[changed.path]
                theirs = _document(changed.theirs_text, draft.base)
                if self._is_unfinished(changed.path, changed.theirs_text, theirs):
                    continue
                if clash := self._merge(draft, changed, theirs):
                    return clash
            else:
                for draft, source in zip(drafts, sources, strict=True):
                    draft.was_saved(source.fingerprint)
                self._together = [one for one in self._together if path not in one]
                return None
        raise OSError(f"{path} is being changed all the time by another program; try again")

    def _is_unfinished(self, path: Path, text: str | None, document: JsonDocument | None) -> bool:
        """Whether another program may still be writing this; that is waited for, once."""
        is_whole = document is not None and isinstance(document.value, dict)
        if text is None or is_whole or self._waited_for.get(path) == text:
            return False
        self._waited_for[path] = text
        time.sleep(_MOMENT)
        return True

    def _merge(
        self, draft: OpenFile, changed: ChangedOutsideError, theirs: JsonDocument | None
    ) -> FileConflict | None:
        """`theirs` is what there is outside, None where that is no JSON."""
        if changed.theirs_text is None or changed.fingerprint is None:
            if changed.fingerprint is not None:
                raise OSError(
                    f"{changed.path} is not text any more; save it under another name or restore it"
                )
            return FileConflict(draft.path, Conflict(reason="deleted outside"), draft.document.text, None)
        found = draft.merged(draft.base, draft.document, theirs or changed.theirs_text)
        if isinstance(found, Conflict):
            return FileConflict(draft.path, found, draft.document.text, changed.theirs_text)
        self._rebase(draft, found.document, theirs, changed.fingerprint)
        return None

    def settle(self, clash: FileConflict, choices: Choices, whole: Side | None = None) -> Conflict | None:
        """Decide a clash; what is undecided still is given back. `whole` takes one side's file.

        Mine is what is in the draft now. What has changed outside since then is found when it is saved.
        """
        draft = self._files[clash.path]
        if clash.theirs is None:
            if whole == "theirs":
                self._leave_gone(draft)
            elif whole == "mine":
                draft.fingerprint, draft.saved, draft.saved_revision = None, None, -1
            else:
                return clash.conflict
            return None
        theirs = _document(clash.theirs, draft.base)
        if whole == "mine":
            found: Merged | Conflict = Merged(draft.document.copy())
        elif whole == "theirs":
            found = Merged(theirs or JsonDocument(clash.theirs))
        else:
            found = resolve(draft.base, draft.document, theirs or clash.theirs, choices, draft.shape)
        if isinstance(found, Conflict):
            return found
        self._rebase(draft, found.document, theirs, fingerprint(clash.theirs))
        return None

    def refresh(self, path: Path, pending: FileConflict | None = None) -> FileConflict | None:
        """Take over what was changed outside; what clashes with unsaved edits is given back.

        `pending` is a clash that is to be decided: the same one is given back where nothing else has changed.
        """
        draft = self._files[path]
        try:
            theirs = read_source(path)
            if theirs.fingerprint == draft.fingerprint:
                return None
            new = _document(theirs.text, draft.base)
            if self._is_unfinished(path, theirs.text, new):
                theirs = read_source(path)
                new = _document(theirs.text, draft.base)
        except FileNotFoundError:
            return self._deleted(draft, pending)
        if theirs.fingerprint == draft.fingerprint:
            return None
        if not draft.dirty:
            if new is None or not isinstance(new.value, dict):
                raise unusable(theirs)
            self._rebase(draft, new, new, theirs.fingerprint)
            return None
        if pending is not None and pending.theirs == theirs.text:
            return pending
        return self._merge(draft, ChangedOutsideError(path, theirs.text, theirs.fingerprint), new)

    def _deleted(self, draft: OpenFile, pending: FileConflict | None) -> FileConflict | None:
        if draft.fingerprint is None:
            return None
        if not draft.dirty:
            self._leave_gone(draft)
            return None
        if pending is not None and pending.theirs is None:
            return pending
        return self._merge(draft, ChangedOutsideError(draft.path, None, None), None)

    def _leave_gone(self, draft: OpenFile) -> None:
        draft.end_journal()
        draft.fingerprint, draft.saved, draft.gone = None, None, True

    def _rebase(
        self, draft: OpenFile, new: JsonDocument, theirs: JsonDocument | None, on_disk: Fingerprint | None
    ) -> None:
        """From now on the text is that of `new`, and `theirs` is on disk, None where that is no JSON or no
        file. It is no step: undo leaves it alone."""
        before = draft.document.copy()
        draft.document.replace(new)
        draft.gone = False
        draft.revision = self._next_revision()
        for steps in (self._done, self._undone):
            steps.rebase({draft.path: before})
        old = draft.journal
        draft.journal, draft.fingerprint = None, on_disk
        draft.saved = theirs.copy() if theirs else None
        if on_disk is not None and theirs is not None and new.has_text_of(theirs):
            draft.was_saved(on_disk)
        else:
            draft.saved_revision = -1
            if on_disk is not None:
                base = draft.saved or before
                self._write_journal(draft, MERGED, base.copy().replace(new), base)
        if old is not None:
            with suppress(OSError):
                old.discard()

    def restore(self, base: Source, text: str, here: Selection) -> tuple[Step | None, FileConflict | None]:
        """Make of a file what the edits of an earlier sitting made of `base`, `text`, as one step.

        Where the file has changed meanwhile, that is merged: a clash is given back as by `save`, no step
        where the file has all of it. Raises EditError where edits of this sitting clash.
        """
        path = base.path
        draft = self.open(path, base.text)
        began = JsonDocument(base.text, draft.document)
        mine = JsonDocument(text, began)
        old = draft.document.copy()
        found = draft.merged(began, mine, old)
        clash = None
        if isinstance(found, Conflict):
            if any(path in entry.step.splices for entry in (*self._done, *self._undone)):
                raise EditError(
                    f"{path.name} has been edited in this sitting as well: save or undo that first"
                )
            clash = FileConflict(path, found, text, old.text)
            # As if it had been opened then: what is decided between, both sides made of that.
            draft = self._files[path] = OpenFile(path, began, base.fingerprint)
            old, new = began.copy(), mine
        else:
            new = found.document
        splices = draft.document.replace(new)
        if not splices:
            return None, clash
        return self._did(Step(RESTORED, {path: splices}, here, here, {}), {path: old}), clash

    def discard(self) -> None:
        """Throw away every unsaved edit, and what could be undone."""
        for draft in self._files.values():
            draft.end_journal()
        self._files.clear()
        self._done.clear()
        self._undone.clear()
        self._together.clear()


def _document(text: str | None, like: JsonDocument) -> JsonDocument | None:
    """None for a text that is not valid JSON, and for none."""
    if text is None:
        return None
    try:
        return JsonDocument(text, like)
    except ValueError:
        return None


def _spliced(document: JsonDocument, splices: Sequence[Splice]) -> JsonDocument:
    changed = document.copy()
    changed.splice(splices)
    return changed
