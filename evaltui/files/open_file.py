"""One file as it is being edited."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evaltui.core.jsondoc.document import JsonDocument
from evaltui.core.jsondoc.merge import Conflict, Merged, merge
from evaltui.core.jsondoc.shapes import CONFIG, EVAL_SET, FileShape
from evaltui.core.model.json_values import spelt
from evaltui.core.model.problems import EvalSetError, Problem, Severity
from evaltui.files.folders import CONFIG_NAME
from evaltui.files.journal import Journal
from evaltui.files.json_text import parse
from evaltui.files.saving import Fingerprint, Source, read_source
from evaltui.text.wording import in_words


@dataclass(frozen=True, eq=False)
class FileConflict:
    """A file that was changed here and outside in ways that only the user can decide between.

    `theirs` is None where the file was deleted.
    """

    path: Path
    conflict: Conflict
    mine: str
    theirs: str | None


class OpenFile:
    """One file that is being edited. `saved` is what is on disk as far as is known, and `fingerprint` tells
    it from others; both are None for a new file.

    `gone` is one that was deleted outside, with nothing unsaved in it. `is_config` goes by what it held when
    was opened, as configs may have any name.
    """

    def __init__(self, path: Path, document: JsonDocument, fingerprint: Fingerprint | None) -> None:
        self.path = path
        self.document = document
        self.fingerprint = fingerprint
        self.saved = document.copy() if fingerprint is not None else None
        self.revision = 0
        self.saved_revision = 0 if fingerprint is not None else -1
        self.journal: Journal | None = None
        self.gone = False
        self.is_config = path.name == CONFIG_NAME or not _has_cases(self.document.value)

    @property
    def dirty(self) -> bool:
        return self.revision != self.saved_revision and not self.gone

    @property
    def shape(self) -> FileShape:
        return CONFIG if self.is_config else EVAL_SET

    @property
    def base(self) -> JsonDocument:
        """What this one and the one on disk both come from."""
        return self.saved or JsonDocument(self.shape.empty)

    def merged(self, base: JsonDocument, mine: JsonDocument, theirs: str | JsonDocument) -> Merged | Conflict:
        return merge(base, mine, theirs, self.shape)

    def was_saved(self, fingerprint: Fingerprint) -> None:
        """What there is now is on disk."""
        self.fingerprint, self.saved = fingerprint, self.document.copy()
        self.saved_revision = self.revision
        self.end_journal()

    def end_journal(self) -> None:
        if self.journal is not None:
            with suppress(OSError):
                self.journal.discard()
            self.journal = None


def _has_cases(value: Any) -> bool:
    return isinstance(value, dict) and spelt("eval_cases", value) in value


def read_file(path: Path, new_text: str | None) -> OpenFile:
    """A file to be edited; one that does not exist begins with `new_text`, where that is given.

    Raises OSError, and EvalSetError for what is not a JSON object.
    """
    try:
        source = read_source(path)
    except FileNotFoundError:
        if new_text is None:
            raise
        return OpenFile(path, JsonDocument(new_text), None)
    try:
        return OpenFile(path, JsonDocument(source.text), source.fingerprint)
    except ValueError as error:
        raise unusable(source) from error


def unusable(source: Source) -> EvalSetError:
    """Why a file cannot be edited."""
    found = parse(source.text)
    if isinstance(found, Problem):
        problem = found
    elif isinstance(found, dict):
        problem = Problem(Severity.ERROR, (), "its lists and objects are nested too deeply")
    else:
        problem = Problem(Severity.ERROR, (), f"expected an object, found {in_words(found)}")
    return EvalSetError([replace(problem, file=str(source.path))])
