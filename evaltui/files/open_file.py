"""One file as it is being edited."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evaltui.core.jsondoc.document import JsonDocument
from evaltui.core.jsondoc.edits import Edit, alike
from evaltui.core.jsondoc.merge import Choices, Conflict, Merged, Side, merge, resolve
from evaltui.core.jsondoc.shapes import CONFIG, EVAL_SET, FileShape
from evaltui.core.jsondoc.splices import Splice
from evaltui.core.model.json_values import spelt
from evaltui.core.model.problems import EvalSetError, Problem, Severity
from evaltui.core.model.stored_cases import StoredCase
from evaltui.files.eval_set_file import check_new_cases
from evaltui.files.folders import CONFIG_NAME
from evaltui.files.journal import Draft, Journal, Recovered
from evaltui.files.json_text import parse
from evaltui.files.saving import ChangedOutsideError, Fingerprint, Write, read_source, save_together
from evaltui.text.values import in_words

# What the journal calls changes that are no step of the user's.
_MERGED = "merge with changes on disk"
_EARLIER = "unsaved changes"


@dataclass(frozen=True)
class Outside:
    """What another program has made of a file."""

    fingerprint: Fingerprint | None
    """None where it was deleted."""
    document: JsonDocument | None
    """None where the text is no JSON, and where there is none."""
    not_json: str | None = None
    """The text where it is no JSON."""

    @property
    def text(self) -> str | None:
        """None where it was deleted."""
        return self.document.text if self.document else self.not_json

    @property
    def is_whole(self) -> bool:
        """Whether it is an object; a text that is none may be half of one."""
        return self.document is not None and isinstance(self.document.value, dict)


@dataclass(frozen=True, eq=False)
class FileConflict:
    """A file that was changed here and outside in ways that only the user can decide between."""

    path: Path
    conflict: Conflict
    mine: str
    outside: Outside

    @property
    def was_deleted(self) -> bool:
        """Whether there is no such file any more."""
        return self.outside.fingerprint is None

    @property
    def theirs(self) -> str | None:
        """None where the file was deleted."""
        return self.outside.text


class OpenFile:
    """The text of a file that is edited, what is on disk, and the journal of what is unsaved.

    A configuration may have any name: which files are some goes by what they held when they were opened.
    """

    def __init__(
        self,
        path: Path,
        document: JsonDocument,
        on_disk: Fingerprint | None,
        agent_dir: Path,
    ) -> None:
        self.path = path
        self.document = document
        """The text as it is here."""
        self.fingerprint = on_disk
        """Of what is on disk as far as is known; None for a new file."""
        self.saved = document.copy() if on_disk is not None else None
        """What is on disk as far as is known; None for a new file, and where it is no JSON."""
        self.revision = 0
        """The number of the text: another one after each change, the one from before after an undo."""
        self.is_being_written = False
        """Whether what is on disk is about to be another text, so that nothing counts as saved."""
        self.deleted = False
        """Whether it is gone or unreadable on disk, with nothing unsaved in it."""
        self.is_config = path.name == CONFIG_NAME or not _has_cases(document.value)
        """Whether it is a config and no eval set."""
        self.journal: Journal | None = None
        """None while nothing is unsaved."""
        self._last_revision = 0
        # A config that is not there is an empty one; a new set is there only once it was saved.
        self._saved_revision = 0 if on_disk is not None or self.is_config else None
        self._agent_dir = agent_dir
        self._drafts: Sequence[Draft] = ()
        self._journal_problem = ""

    @property
    def on_disk(self) -> Outside:
        """What is on disk as far as is known."""
        return Outside(self.fingerprint, self.saved)

    @property
    def dirty(self) -> bool:
        return not self.deleted and (self.is_being_written or self.revision != self._saved_revision)

    @property
    def shape(self) -> FileShape:
        return CONFIG if self.is_config else EVAL_SET

    @property
    def base(self) -> JsonDocument:
        """What this text and the one on disk both come from."""
        return self.saved or JsonDocument(self.shape.empty)

    @property
    def journal_problem(self) -> str:
        """Why a crash would lose what is unsaved; "" where the journal has all of it."""
        return self._journal_problem if self.dirty or self._drafts else ""

    def dirty_cases(self) -> frozenset[str]:
        """The ids of the cases that are not on disk as they are here."""
        if not self.dirty:
            return frozenset()
        before = self.saved.cases if self.saved else ()
        there = set(before)
        changed = [case for case in self.document.cases if case not in there]
        saved = {case.eval_id: case for case in before} if changed else {}
        return frozenset(case.eval_id for case in changed if _differs(saved.get(case.eval_id), case))

    def snapshot(self) -> OpenFile:
        """The file as it is now, to be looked at in a thread."""
        now = copy(self)
        now.document, now.saved = self.document.copy(), self.saved and self.saved.copy()
        return now

    # Changes

    def apply(self, edits: JsonDocument | Iterable[Edit]) -> tuple[Splice, ...]:
        """Do edits, all or none of them, or take over the document that they made; the splices that did it.

        It is a change only with `changed`. Raises EditError.
        """
        if isinstance(edits, JsonDocument):
            return self.document.replace(edits)
        return self.document.apply(edits)

    def changed(self, label: str, splices: Sequence[Splice], before: JsonDocument) -> None:
        """Count what was done to `before`, and write it to the journal."""
        self._count()
        if self.journal is None:
            with self._journaling():
                self._begin_journal(_EARLIER, before, before)
        if self.journal is not None:
            with self._journaling():
                self.journal.append(label, splices)
                self.journal.write_drafts(self._drafts)

    def rebase(self, new: JsonDocument, outside: Outside) -> None:
        """Go on with a text that was merged with what is on disk now. It is no step: undo leaves it alone."""
        before = self.document.copy()
        self.document.replace(new)
        self.deleted = False
        self._count()
        self.fingerprint, theirs = outside.fingerprint, outside.document
        self.saved = theirs and theirs.copy()
        is_saved = theirs is not None and new.has_text_of(theirs)
        self._saved_revision = self.revision if is_saved else None
        self._renew_journal(_MERGED, before)

    def was_saved(self, written: OpenFile, on_disk: Fingerprint) -> None:
        """What this file was when it was `written` is on disk; what was changed since then is unsaved."""
        self.fingerprint, self.saved = on_disk, written.document.copy()
        self._saved_revision = written.revision
        self._renew_journal(_EARLIER, self.document)

    def keep_deleted_outside(self) -> None:
        """It is a new file from now on."""
        self.fingerprint, self.saved, self._saved_revision = None, None, None

    def leave_deleted(self) -> None:
        """It stays deleted, with what was unsaved in it."""
        self.end_journal()
        self.leave_unreadable()

    def leave_unreadable(self) -> None:
        """What was in it counts no more until it can be read again; texts typed for it stay journaled."""
        self.fingerprint, self.saved, self.deleted = None, None, True

    def step_back_to(self, revision: int | None) -> None:
        """The text is that of a revision again; None where it is another one, with what came from outside."""
        if revision is not None:
            self.revision = revision
        elif self.fingerprint and self.saved and self.document.has_text_of(self.saved):
            self.was_saved(self, self.fingerprint)

    def _count(self) -> None:
        self._last_revision += 1
        self.revision = self._last_revision

    # The journal

    def write_drafts(self, drafts: Sequence[Draft]) -> None:
        """Keeps in the journal the texts that are typed for the file and not in it."""
        self._drafts = drafts
        if self.dirty or drafts:
            with self._journaling():
                journal = self.journal or self._begin_journal(_EARLIER, self.document, self.document)
                journal.write_drafts(drafts)
        else:
            self.end_journal()

    def _begin_journal(self, label: str, base: JsonDocument, now: JsonDocument) -> Journal:
        """Begin with what is on disk, else with `base`, and what was changed until now. Raises OSError."""
        on_disk = self.fingerprint if self.saved else None
        base = self.saved or base
        self.journal = Journal.open(self._agent_dir, self.path, base.copy(), on_disk)
        if earlier := base.copy().replace(now):
            self.journal.append(label, earlier)
        return self.journal

    def _renew_journal(self, label: str, base: JsonDocument) -> None:
        """Begin again after what is on disk has changed. The old journal stays until the new one is there."""
        old, self.journal = self.journal, None
        if (self.dirty or self._drafts) and self.fingerprint is not None:
            with self._journaling():
                self._begin_journal(label, base, self.document).write_drafts(self._drafts)
        if old is not None:
            with suppress(OSError):
                old.discard()

    @contextmanager
    def _journaling(self) -> Iterator[None]:
        """What goes wrong with the journal must not stop anybody's work: it is in `journal_problem`."""
        try:
            yield
        except OSError as error:
            self._journal_problem = error.strerror or str(error)
        else:
            self._journal_problem = ""

    def end_journal(self) -> None:
        """Nothing is to be recovered."""
        if self.journal is not None:
            with suppress(OSError):
                self.journal.discard()
            self.journal = None

    # What others change. These take time, and may be called in a thread on a snapshot.

    def look(self) -> Outside | None:
        """What is on disk, None where that is known. Raises OSError, EvalSetError."""
        try:
            source = read_source(self.path)
        except FileNotFoundError:
            return None if self.fingerprint is None else Outside(None, None)
        return (
            None if source.fingerprint == self.fingerprint else self.outside(source.text, source.fingerprint)
        )

    def outside(self, text: str | None, on_disk: Fingerprint | None) -> Outside:
        """A text that is on disk; None for none."""
        if text is None:
            return Outside(None, None)
        try:
            return Outside(on_disk, self._checked(JsonDocument(text, self.base)))
        except ValueError:
            return Outside(on_disk, None, text)

    def merged(self, outside: Outside, choices: Choices, whole: Side | None = None) -> Merged | Conflict:
        """The text with what was changed outside; `whole` takes one side's text.

        Raises EvalSetError where that is no JSON.
        """
        theirs = outside.document or outside.not_json
        if theirs is None:
            return Conflict(reason="deleted outside")
        if whole == "mine":
            return Merged(self.document)
        if whole == "theirs":
            if outside.document is None:
                raise unusable(self.path, outside.not_json or "")
            return Merged(outside.document)
        found = resolve(self.base, self.document, theirs, choices, self.shape)
        if isinstance(found, Merged):
            self._checked(found.document)
        return found

    def restored(self, recovered: Recovered) -> tuple[JsonDocument, JsonDocument, Merged | Conflict]:
        """What an earlier sitting began with, what it made of that, and both in one with this text."""
        # Usually it began with what is on disk: then no text is put together.
        is_on_disk = self.saved is not None and recovered.fingerprint == self.fingerprint
        began = self.base if is_on_disk else recovered.base(self.document)
        mine = recovered.edited(began)
        found = merge(began, mine, self.document, self.shape)
        self._checked(found.document if isinstance(found, Merged) else mine)
        return began, mine, found

    def _checked(self, document: JsonDocument) -> JsonDocument:
        """A document whose new cases were looked at, so that nobody waits for that later."""
        if document.chunks.key is not None:
            check_new_cases(document, (*self.base.cases, *self.document.cases))
        return document


def _has_cases(value: Any) -> bool:
    return isinstance(value, dict) and spelt("eval_cases", value) in value


def _differs(saved: StoredCase | None, now: StoredCase) -> bool:
    if saved is None or saved.text == now.text:
        return saved is None
    return not alike(saved.value, now.value)


def read_document(path: Path, new_text: str | None) -> tuple[JsonDocument, Fingerprint | None]:
    """A file to be edited; one that does not exist is `new_text`, where that is given.

    Raises OSError, and EvalSetError for what is not a JSON object.
    """
    try:
        source = read_source(path)
    except FileNotFoundError:
        if new_text is None:
            raise
        return JsonDocument(new_text), None
    try:
        return JsonDocument(source.text), source.fingerprint
    except ValueError as error:
        raise unusable(path, source.text) from error


def unusable(path: Path, text: str) -> EvalSetError:
    """Why a file cannot be edited."""
    found = parse(text)
    if isinstance(found, Problem):
        problem = found
    elif isinstance(found, dict):
        problem = Problem(Severity.ERROR, (), "its lists and objects are nested too deeply")
    else:
        problem = Problem(Severity.ERROR, (), f"expected an object, found {in_words(found)}")
    return EvalSetError([replace(problem, file=str(path))])


def write_together(files: Sequence[OpenFile]) -> list[Fingerprint] | tuple[Path, Outside]:
    """Writes all of the files or none; their fingerprints, or one that was changed outside."""
    try:
        writes = [Write(file.path, file.document.text, file.fingerprint) for file in files]
        return [source.fingerprint for source in save_together(writes)]
    except ChangedOutsideError as changed:
        path, text, on_disk = changed.path, changed.theirs_text, changed.fingerprint
    # Here the texts that could not be written are gone from memory.
    if text is None and on_disk is not None:
        raise OSError(f"{path} is no longer text; restore it or save under another name")
    return path, next(file for file in files if file.path == path).outside(text, on_disk)
