"""One file as it is being edited."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evaltui.core.jsondoc.document import JsonDocument
from evaltui.core.jsondoc.merge import Conflict, Merged, merge
from evaltui.core.jsondoc.shapes import CONFIG, EVAL_SET, FileShape
from evaltui.core.jsondoc.splices import Splice, smallest
from evaltui.core.model.aliases import spelt
from evaltui.core.model.problems import EvalSetError, Problem, Severity
from evaltui.files.folders import CONFIG_NAME
from evaltui.files.journal import Journal
from evaltui.files.json_text import parse
from evaltui.files.saving import Source, read_source
from evaltui.text.wording import in_words


@dataclass(frozen=True, eq=False)
class Clashing:
    """A file that was changed here and outside in ways that only the user can decide between.

    `theirs` is None where the file was deleted.
    """

    path: Path
    conflict: Conflict
    mine: str
    theirs: str | None


class Draft:
    """One file that is being edited. `source` is what is on disk as far as is known, None for a new file.

    `gone` is one that was deleted outside, with nothing unsaved in it. `is_config` goes by what it held when
    was opened, as configs may have any name.
    """

    def __init__(self, path: Path, source: Source | None, text: str) -> None:
        self.path = path
        self.source = source
        self.document = JsonDocument(text)
        self.revision = 0
        self.saved_revision = 0 if source is not None else -1
        self.saved_value: Any = self.document.value if source is not None else None
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
    def base(self) -> str:
        """The text that this one and the one on disk both come from."""
        return self.source.text if self.source else self.shape.empty

    def merged(self, base: str, mine: str, theirs: str) -> Merged | Conflict:
        return merge(base, mine, theirs, self.shape)

    def was_saved(self, source: Source) -> None:
        self.source = source
        self.saved_revision = self.revision
        self.saved_value = self.document.value
        self.end_journal()

    def end_journal(self) -> None:
        if self.journal is not None:
            with suppress(OSError):
                self.journal.discard()
            self.journal = None

    def replace_text(self, text: str) -> tuple[Splice, ...]:
        """The splices that make this the text; none where it is. Raises ValueError for what is not JSON."""
        old = self.document.text
        if text == old:
            return ()
        splices = (smallest(0, old, text),)
        self.document.splice(splices)
        return splices


def _has_cases(value: Any) -> bool:
    return isinstance(value, dict) and spelt("eval_cases", value) in value


def read_draft(path: Path, new_text: str | None) -> Draft:
    """A file to be edited; one that does not exist begins with `new_text`, where that is given.

    Raises OSError, and EvalSetError for what is not a JSON object.
    """
    try:
        source = read_source(path)
    except FileNotFoundError:
        if new_text is None:
            raise
        return Draft(path, None, new_text)
    try:
        return Draft(path, source, source.text)
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


def value_of(text: str) -> Any:
    """The data of a JSON text; None where it is not valid JSON, as where there is no file."""
    try:
        return JsonDocument(text).value
    except ValueError:
        return None
