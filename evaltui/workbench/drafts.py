"""Files as they are being edited: what is unsaved, what was done, and back."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evaltui.core.document.document import JsonDocument
from evaltui.core.document.edits import Edit, EditError
from evaltui.core.document.merge import Conflict, Merged, Side, merge, resolve
from evaltui.core.document.splices import Splice, inverted, smallest
from evaltui.core.problems import EvalSetError, Problem, Severity
from evaltui.core.wording import in_words
from evaltui.files.journal import Journal
from evaltui.files.json_text import parse
from evaltui.files.saving import ChangedOutsideError, Source, fingerprint, read_source, save
from evaltui.workbench.state import CaseKey, Selection

MERGED = "take over what was changed outside"
RESTORED = "restore unsaved changes"


@dataclass(frozen=True)
class Step:
    """Something that was done, in one or several files at once; `moved` are cases that have another key now.

    Steps in a row with the same `typing` are one: what is typed into a field is undone at once.
    """

    label: str
    splices: Mapping[Path, tuple[Splice, ...]]
    before: Selection
    after: Selection
    moved: Mapping[CaseKey, CaseKey]
    typing: Hashable = None

    @property
    def inverse(self) -> Step:
        return Step(
            self.label,
            {path: inverted(splices) for path, splices in self.splices.items()},
            self.after,
            self.before,
            {new: old for old, new in self.moved.items()},
        )

    def followed_by(self, later: Step) -> Step:
        paths = dict.fromkeys((*self.splices, *later.splices))
        splices = {path: (*self.splices.get(path, ()), *later.splices.get(path, ())) for path in paths}
        return replace(self, splices=splices, after=later.after)


@dataclass(frozen=True)
class Clashing:
    """A file that was changed here and outside in ways that only the user can decide between."""

    path: Path
    conflict: Conflict
    mine: str
    theirs: str


class Draft:
    """One file that is being edited. `source` is what is on disk as far as is known, None for a new file."""

    def __init__(self, path: Path, source: Source | None, text: str) -> None:
        self.path = path
        self.source = source
        self.document = JsonDocument(text)
        self.revision = 0
        self.saved_revision = 0 if source is not None else -1
        self.saved_value: Any = self.document.value if source is not None else None
        self.journal: Journal | None = None

    @property
    def dirty(self) -> bool:
        return self.revision != self.saved_revision

    def was_saved(self, source: Source) -> None:
        self.source = source
        self.saved_revision = self.revision
        self.saved_value = self.document.value
        if self.journal is not None:
            self.journal.discard()
            self.journal = None


class Drafts:
    """`complain` is told what goes wrong with the recovery journal, which must not stop anybody's work.

    Everything raises OSError and EvalSetError for files that cannot be read, and EditError for edits that
    cannot be done; nothing has changed then.
    """

    def __init__(self, agent_dir: Path, complain: Callable[[str], None]) -> None:
        self._agent_dir = agent_dir
        self._complain = complain
        self._drafts: dict[Path, Draft] = {}
        self._done: list[tuple[Step, dict[Path, int]]] = []
        self._undone: list[tuple[Step, dict[Path, int]]] = []
        self._revisions = 0

    # What there is

    def known(self, path: Path) -> Draft | None:
        """The draft of a file that has been edited in this sitting."""
        return self._drafts.get(path)

    def open(self, path: Path, new_text: str | None = None) -> Draft:
        """The file to be edited; one that does not exist begins with `new_text`, where that is given."""
        if (draft := self._drafts.get(path)) is None:
            draft = self._drafts[path] = _read(path, new_text)
        return draft

    def unsaved(self) -> list[Path]:
        return [path for path, draft in self._drafts.items() if draft.dirty]

    def __iter__(self) -> Iterator[Draft]:
        return iter(self._drafts.values())

    # Doing, and back

    def do(
        self,
        label: str,
        edits: Mapping[Path, Sequence[Edit]],
        before: Selection,
        after: Selection,
        *,
        moved: Mapping[CaseKey, CaseKey] | None = None,
        typing: Hashable = None,
    ) -> Step | None:
        """Do edits in files that are open, all or none of them; None where they change nothing."""
        splices: dict[Path, tuple[Splice, ...]] = {}
        try:
            for path, some in edits.items():
                if done := self._drafts[path].document.apply(some):
                    splices[path] = done
        except Exception:
            for path, done in splices.items():
                self._drafts[path].document.splice(inverted(done))
            raise
        if not splices:
            return None
        return self._did(Step(label, splices, before, after, moved or {}, typing))

    def _did(self, step: Step) -> Step:
        earlier = {path: self._drafts[path].revision for path in step.splices}
        self._keep(step)
        self._undone.clear()
        last = self._done[-1] if self._done else None
        if last and step.typing is not None and last[0].typing == step.typing:
            self._done[-1] = last[0].followed_by(step), {**earlier, **last[1]}
        else:
            self._done.append((step, earlier))
        return step

    def end_typing(self) -> None:
        """What is typed from now on is a step of its own."""
        if self._done:
            step, earlier = self._done[-1]
            self._done[-1] = replace(step, typing=None), earlier

    @property
    def undo_label(self) -> str | None:
        return self._done[-1][0].label if self._done else None

    @property
    def redo_label(self) -> str | None:
        return self._undone[-1][0].label if self._undone else None

    def undo(self) -> Step | None:
        """Take the last step back; the step that did it, None where there is none."""
        return self._back(self._done, self._undone)

    def undo_typing(self, typing: Hashable) -> Step | None:
        """As `undo`, where the last step is what was typed into this field; None where it is another one."""
        last = self._done[-1] if self._done else None
        return self.undo() if last is not None and last[0].typing == typing else None

    def redo(self) -> Step | None:
        return self._back(self._undone, self._done)

    def _back(
        self, taken_from: list[tuple[Step, dict[Path, int]]], put_to: list[tuple[Step, dict[Path, int]]]
    ) -> Step | None:
        if not taken_from:
            return None
        step, revisions = taken_from.pop()
        inverse = step.inverse
        for path, splices in inverse.splices.items():
            self._drafts[path].document.splice(splices)
        put_to.append((inverse, {path: self._drafts[path].revision for path in inverse.splices}))
        self._keep(inverse)
        for path, revision in revisions.items():
            self._drafts[path].revision = revision
        return inverse

    def _keep(self, step: Step) -> None:
        """Count the revision, and write the step to the journals."""
        for path, splices in step.splices.items():
            draft = self._drafts[path]
            self._revisions += 1
            draft.revision = self._revisions
            try:
                if draft.journal is None:
                    base = _before(draft.document.text, splices)
                    draft.journal = Journal.open(self._agent_dir, path, base)
                draft.journal.append(step.label, splices)
            except OSError as error:
                self._complain(f"unsaved edits are not kept for a crash: {error}")

    # Saving, and what others change

    def save(self, path: Path) -> Clashing | None:
        """Write a file. What was changed outside is merged; a clash is given back, unsaved."""
        draft = self._drafts[path]
        for _ in range(_MOST_TRIES):
            seen = draft.source.fingerprint if draft.source else None
            try:
                draft.was_saved(save(path, draft.document.text, seen))
            except ChangedOutsideError as changed:
                if clash := self._merge(draft, changed):
                    return clash
            else:
                return None
        raise OSError(f"{path} is being changed all the time by another program; try again")

    def _merge(self, draft: Draft, changed: ChangedOutsideError) -> Clashing | None:
        mine = draft.document.text
        if changed.theirs_text is None:
            if changed.fingerprint is not None:
                raise OSError(
                    f"{changed.path} is not text any more; save it under another name or restore it"
                )
            # Deleted outside, edited here: the edits are what the user wants.
            draft.source = None
            return None
        theirs = Source(
            changed.path, changed.theirs_text, changed.fingerprint or read_source(changed.path).fingerprint
        )
        base = draft.source.text if draft.source else ""
        found = merge(base, mine, theirs.text)
        if isinstance(found, Conflict):
            return Clashing(draft.path, found, mine, theirs.text)
        self._take_over(draft, theirs, found.text)
        return None

    def settle(
        self,
        clash: Clashing,
        cases: Mapping[str, Side],
        members: Mapping[str, Side],
        whole: Side | None = None,
    ) -> Conflict | None:
        """Decide a clash, and save; what is undecided still is given back. `whole` takes one side's file."""
        draft = self._drafts[clash.path]
        base = draft.source.text if draft.source else ""
        if whole is not None:
            found: Merged | Conflict = Merged(clash.mine if whole == "mine" else clash.theirs)
        else:
            found = resolve(base, clash.mine, clash.theirs, cases, members)
        if isinstance(found, Conflict):
            return found
        # What has changed since it was read is found when this is saved.
        theirs = Source(clash.path, clash.theirs, fingerprint(clash.theirs))
        self._take_over(draft, theirs, found.text)
        return None

    def refresh(self, path: Path) -> Clashing | None:
        """Take over what was changed outside; what clashes with unsaved edits is given back."""
        draft = self._drafts[path]
        try:
            theirs = read_source(path)
        except FileNotFoundError:
            return None
        if draft.source is not None and theirs.fingerprint == draft.source.fingerprint:
            return None
        if not draft.dirty:
            if not isinstance(parse(theirs.text), dict):
                raise _unusable(theirs)
            try:
                self._take_over(draft, theirs, theirs.text)
            except ValueError as error:
                raise _unusable(theirs) from error
            return None
        return self._merge(draft, ChangedOutsideError(path, theirs.text, theirs.fingerprint))

    def _take_over(self, draft: Draft, theirs: Source, text: str) -> None:
        """From now on the text is `text`, as a step that can be undone, and on disk is `theirs`."""
        here = Selection(draft.path)
        old = draft.document.text
        if text != old:
            splice = smallest(0, old, text)
            draft.document.splice([splice])
            self._did(Step(MERGED, {draft.path: (splice,)}, here, here, {}))
        draft.source = theirs
        if text == theirs.text:
            draft.was_saved(theirs)
        else:
            draft.saved_revision = -1
            draft.saved_value = _value_of(theirs.text)

    def restore(self, base: Source, text: str, here: Selection) -> tuple[Step | None, Clashing | None]:
        """Make of a file what the edits of an earlier sitting made of `base`, `text`, as one step.

        Where the file has changed meanwhile, that is merged: a clash is given back as by `save`, no step
        where the file has all of it. Raises EditError where edits of this sitting clash.
        """
        path = base.path
        draft = self.open(path, base.text)
        old = draft.document.text
        found = merge(base.text, text, old)
        clash = None
        if isinstance(found, Conflict):
            if draft.revision:
                raise EditError(
                    f"{path.name} has been edited in this sitting as well: save or undo that first"
                )
            clash = Clashing(path, found, text, old)
            # As if it had been opened then: what is decided between, both sides made of that.
            draft = self._drafts[path] = Draft(path, base, base.text)
            old, new = base.text, text
        else:
            new = found.text
        if new == old:
            return None, clash
        splice = smallest(0, old, new)
        draft.document.splice([splice])
        return self._did(Step(RESTORED, {path: (splice,)}, here, here, {})), clash

    def discard(self) -> None:
        """Throw away every unsaved edit, and what could be undone."""
        for draft in self._drafts.values():
            if draft.journal is not None:
                with suppress(OSError):
                    draft.journal.discard()
        self._drafts.clear()
        self._done.clear()
        self._undone.clear()


_MOST_TRIES = 5


def _read(path: Path, new_text: str | None) -> Draft:
    try:
        source = read_source(path)
    except FileNotFoundError:
        if new_text is None:
            raise
        return Draft(path, None, new_text)
    try:
        return Draft(path, source, source.text)
    except ValueError as error:
        raise _unusable(source) from error


def _unusable(source: Source) -> EvalSetError:
    found = parse(source.text)
    if isinstance(found, Problem):
        problem = found
    elif isinstance(found, dict):
        problem = Problem(Severity.ERROR, (), "its lists and objects are nested too deeply")
    else:
        problem = Problem(Severity.ERROR, (), f"expected an object, found {in_words(found)}")
    return EvalSetError([replace(problem, file=str(source.path))])


def _value_of(text: str) -> Any:
    """None where it is not valid JSON, as where there is no file."""
    try:
        return JsonDocument(text).value
    except ValueError:
        return None


def _before(text: str, splices: Sequence[Splice]) -> str:
    for splice in inverted(splices):
        text = splice.apply(text)
    return text
