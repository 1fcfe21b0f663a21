"""A file while it is edited."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evaltui.core.model.eval_config import from_eval_config
from evaltui.core.model.file_kinds import is_eval_config
from evaltui.core.model.json_values import spelling_in
from evaltui.core.model.problems import EvalSetError, Problem, errors_in
from evaltui.core.model.stored_cases import StoredCase
from evaltui.documents.case_file import CASES, CaseFile
from evaltui.documents.document import JsonDocument
from evaltui.documents.edits import alike
from evaltui.documents.formats import TextLines, read_any_text
from evaltui.documents.json_text import parse
from evaltui.documents.merge import Choices, Conflict, Side, merge
from evaltui.documents.problems import check_new_cases
from evaltui.documents.recovery import Draft, Recovered, RecoveryFile
from evaltui.documents.saving import ChangedOutsideError, Fingerprint, Write, read_source, save_together
from evaltui.documents.yaml_text import YAML_SUFFIXES, parse_yaml
from evaltui.text.values import value_in_words

_OF_LINES = ".jsonl"
_SET_SUFFIXES = (".evalset.json", ".test.json")
# The label of changes whose own are gone.
_EARLIER = "unsaved changes"


@dataclass(frozen=True)
class Outside:
    """The version of a file that another program has written."""

    fingerprint: Fingerprint | None
    """The fingerprint; None for a deleted file."""
    document: CaseFile | None
    """The document on disk; None for invalid JSON and for a missing file."""
    not_json: str | None = None
    """The text on disk where it is no JSON."""

    @property
    def text(self) -> str | None:
        """The text; None for a deleted file."""
        return self.document.text if self.document else self.not_json

    @property
    def is_whole(self) -> bool:
        """Whether its JSON is an object; invalid JSON may be incomplete, unless it is a text of lines."""
        return isinstance(self.document, TextLines) or (
            self.document is not None and isinstance(self.document.value, dict)
        )


@dataclass(frozen=True, eq=False)
class FileConflict:
    """A file with a conflict between unsaved changes and changes on disk, for the user to decide."""

    path: Path
    conflict: Conflict
    mine: str
    outside: Outside

    @property
    def was_deleted(self) -> bool:
        """Whether the file was deleted."""
        return self.outside.fingerprint is None

    @property
    def theirs(self) -> str | None:
        """The text on disk; None for a deleted file."""
        return self.outside.text


class OpenFile:
    """The edited document, the document on disk, and the recovery file of the unsaved changes.

    A file is a config by its content when it was opened, else by its name.
    """

    def __init__(
        self,
        path: Path,
        document: CaseFile,
        on_disk: Fingerprint | None,
        folder: Path,
    ) -> None:
        """Opens a document; `on_disk` is None for a new file, `folder` is the agent's."""
        self.path = path
        self.document = document
        """The document with the edits."""
        self.fingerprint = on_disk
        """Fingerprint of the file on disk when it was last read or written; None for a new file."""
        self.saved = document if on_disk is not None else None
        """The file on disk when it was last read or written; None for a new file, and where it is no JSON."""
        self.is_being_written = False
        """Whether the file on disk is being replaced, so that no text counts as saved."""
        self.deleted = False
        """Whether the file is deleted or unreadable on disk, and has no unsaved changes."""
        self.is_config = _is_config(path, document.value)
        """Whether it is a config and no eval set."""
        self.recovery: RecoveryFile | None = None
        """The recovery file; None without unsaved changes."""
        # A config that is not there is an empty one; a new set is there only once it was saved.
        self._clean = document if on_disk is not None or self.is_config else None
        self._folder = folder
        self._labels: list[str] = []
        self._draft: Draft | None = None
        self._recovery_problem = ""

    @property
    def on_disk(self) -> Outside:
        """The file on disk as far as is known."""
        return Outside(self.fingerprint, self.saved)

    @property
    def dirty(self) -> bool:
        """Whether it has unsaved edits."""
        return not self.deleted and (self.is_being_written or self.document is not self._clean)

    @property
    def base(self) -> CaseFile:
        """The common document of the edited one and the one on disk."""
        return self.saved or JsonDocument("{}" if self.is_config else f'{{"{CASES}": []}}')

    @property
    def recovery_problem(self) -> str:
        """Why a crash would lose unsaved changes; "" where the recovery file has all of them."""
        return self._recovery_problem if self.dirty or self._draft else ""

    def dirty_cases(self) -> frozenset[str]:
        """The ids of the cases with unsaved changes."""
        if not self.dirty:
            return frozenset()
        before = self.saved.cases if self.saved else ()
        there = set(before)
        changed = [case for case in self.document.cases if case not in there]
        saved = {case.eval_id: case for case in before} if changed else {}
        return frozenset(case.eval_id for case in changed if _differs(saved.get(case.eval_id), case))

    def snapshot(self) -> OpenFile:
        """The file in its current state, for reading in a thread."""
        return copy(self)

    # Changes

    def or_saved(self, document: CaseFile) -> CaseFile:
        """The document on disk if it has the same text as `document`, so that it counts as saved; else
        `document`."""
        return self._clean if self._clean and document.has_text_of(self._clean) else document

    def change(self, document: CaseFile, label: str) -> None:
        """Applies an edit, and writes the new document to the recovery file."""
        self.document = document
        self._labels.append(label)
        self._write_recovery()

    def rebase(self, new: CaseFile, outside: Outside) -> None:
        """Replaces the document by a merged one, without an undo step."""
        self.deleted = False
        self.fingerprint = outside.fingerprint
        self.saved = self._clean = outside.document
        self.document = self.or_saved(new)
        self._renew_recovery()

    def was_saved(self, written: OpenFile, on_disk: Fingerprint) -> None:
        """Records the `written` document as the one on disk; later changes are unsaved."""
        self.fingerprint = on_disk
        self.saved = self._clean = written.document
        self._labels = [_EARLIER]
        self._renew_recovery()
        if not self.dirty:
            self._labels = []

    def keep_deleted_outside(self) -> None:
        """Keeps the document as a new file after the file on disk was deleted."""
        self.fingerprint, self.saved, self._clean = None, None, None

    def leave_deleted(self) -> None:
        """Leaves the file deleted, with its unsaved changes."""
        self.end_recovery()
        self.leave_unreadable()

    def leave_unreadable(self) -> None:
        """Ignores the content until it can be read again; a typed text stays in the recovery file."""
        self.fingerprint, self.saved, self.deleted = None, None, True

    # The recovery file

    def write_draft(self, draft: Draft | None) -> None:
        """Writes the text of an open field to the recovery file; None removes that text."""
        if draft != self._draft:
            self._draft = draft
            self._write_recovery()

    def _write_recovery(self) -> None:
        """Writes the recovery file; an error is stored in `recovery_problem`."""
        if not self.dirty and not self._draft:
            self.end_recovery()
            return
        try:
            if self.recovery is None:
                on_disk = self.fingerprint if self.saved else None
                self.recovery = RecoveryFile.open(self._folder, self.path, self.base, on_disk)
            self.recovery.write(self.document, self._labels, self._draft)
        except OSError as error:
            self._recovery_problem = error.strerror or str(error)
        else:
            self._recovery_problem = ""

    def _renew_recovery(self) -> None:
        """Starts a new recovery file after the file on disk has changed; the old one stays until then."""
        old, self.recovery = self.recovery, None
        self._write_recovery()
        if old is not None:
            with suppress(OSError):
                old.discard()

    def end_recovery(self) -> None:
        """Removes the recovery file."""
        self._labels = []
        if self.recovery is not None:
            with suppress(OSError):
                self.recovery.discard()
            self.recovery = None

    # Changes by others. These take time, and may be called in a thread on a snapshot.

    def outside_change(self) -> Outside | None:
        """The changed file on disk; None for an unchanged one. Raises OSError, EvalSetError."""
        try:
            source = read_source(self.path)
        except FileNotFoundError:
            return None if self.fingerprint is None else Outside(None, None)
        if source.fingerprint == self.fingerprint:
            return None
        return self.outside(source.text, source.fingerprint)

    def outside(self, text: str | None, on_disk: Fingerprint | None) -> Outside:
        """The version of a file for its text on disk; `text` is None for a deleted file."""
        if text is None:
            return Outside(None, None)
        try:
            return Outside(on_disk, self._checked(self.base.read(text)))
        except ValueError:
            return Outside(on_disk, None, text)

    def merged(self, outside: Outside, choices: Choices, whole: Side | None = None) -> CaseFile | Conflict:
        """The document with the changes from outside; `whole` takes one side's text.

        Raises EvalSetError where their text is chosen and is no JSON.
        """
        theirs = outside.document or outside.not_json
        if theirs is None:
            return Conflict(reason="deleted outside")
        if whole == "mine":
            return self.document
        if whole == "theirs":
            if outside.document is None:
                raise unusable(self.path, outside.not_json or "")
            return outside.document
        merged = merge(self.base, self.document, theirs, choices, is_config=self.is_config)
        return merged if isinstance(merged, Conflict) else self._checked(merged)

    def restored(self, recovered: Recovered) -> tuple[CaseFile, CaseFile, CaseFile | Conflict]:
        """The first and the last document of an earlier session, and its merge with this document."""
        began, mine = recovered.documents()
        if began.has_text_of(self.base):
            # So that cases that nobody changed are known to be the same.
            began, mine = self.base, read_any_text(mine.text, self.base)
        merged = merge(began, mine, self.document, is_config=self.is_config)
        self._checked(mine if isinstance(merged, Conflict) else merged)
        return began, mine, merged

    def _checked(self, document: CaseFile) -> CaseFile:
        if document.key is not None:
            check_new_cases(document, (*self.base.cases, *self.document.cases))
        return document


def _is_config(path: Path, value: Any) -> bool:
    if not isinstance(value, dict):
        return path.stem.endswith("config")
    return spelling_in(CASES, value) not in value and not path.name.lower().endswith(_SET_SUFFIXES)


def _differs(saved: StoredCase | None, now: StoredCase) -> bool:
    if saved is None or saved.text == now.text:
        return saved is None
    return not alike(saved.value, now.value)


def read_document(path: Path, new_text: str | None) -> tuple[CaseFile, Fingerprint | None]:
    """A file to be edited; one that is no JSON is a single chunk; a missing one gets `new_text`, if any.

    Raises OSError, and EvalSetError for a file that is no text.
    """
    try:
        source = read_source(path)
    except FileNotFoundError:
        if new_text is None:
            raise
        return read_any_text(new_text), None
    is_of_lines = path.suffix == _OF_LINES
    return TextLines(source.text) if is_of_lines else read_any_text(source.text), source.fingerprint


def unusable(path: Path, text: str) -> EvalSetError:
    """The error for a file that cannot be edited."""
    data = parse_yaml(text) if path.suffix in YAML_SUFFIXES else parse(text)
    if is_eval_config(data):
        problem = errors_in(from_eval_config(data, {})[1])[0]
    elif isinstance(data, Problem):
        problem = data
    elif isinstance(data, dict):
        problem = Problem.error((), "its lists and objects are nested too deeply")
    else:
        problem = Problem.error((), f"expected an object, found {value_in_words(data)}")
    return EvalSetError([replace(problem, file=str(path))])


def write_together(files: Sequence[OpenFile]) -> list[Fingerprint] | tuple[Path, Outside]:
    """Writes all of the files or none of them; returns their new fingerprints.

    Where another program has changed a file, returns the path and the other version of that file instead.
    Raises OSError.
    """
    try:
        writes = [Write(file.path, file.document.text, file.fingerprint) for file in files]
        return [source.fingerprint for source in save_together(writes)]
    except ChangedOutsideError as changed:
        path, text, on_disk = changed.path, changed.theirs_text, changed.fingerprint
    # Here the texts that could not be written are gone from memory.
    if text is None and on_disk is not None:
        raise OSError(f"{path} is no longer text; restore it or save under another name")
    return path, next(file for file in files if file.path == path).outside(text, on_disk)
