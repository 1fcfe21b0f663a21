"""The formats of case files: eval sets and configs as JSON, Google's datasets and configs, and other text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from evaltui.core.model.problems import JsonPath
from evaltui.core.model.stored_cases import StoredCase
from evaltui.documents.case_file import CaseFile, Chunk
from evaltui.documents.dataset import DatasetDocument
from evaltui.documents.document import JsonDocument
from evaltui.documents.edits import Edit, EditError, missing
from evaltui.documents.eval_config import EvalConfigDocument


def read_case_file(text: str, like: CaseFile | None = None) -> CaseFile:
    """A text in the format that it has; chunks of `like` are shared. Raises ValueError for text in none."""
    try:
        source = JsonDocument(text, like.source if isinstance(like, DatasetDocument) else like)
    except ValueError:
        if (config := EvalConfigDocument.of_yaml(text)) is None:
            raise
        return config
    return DatasetDocument.of(source, like) or EvalConfigDocument.of_json(source) or source


class WholeText:
    """A case file that cannot be read: no value and no cases, only a text that another one may replace."""

    key: str | None = None
    value: Any = None
    chunks: tuple[Chunk, ...] = ()
    tail = ""
    cases: tuple[StoredCase, ...] = ()
    lines_of_cases: Sequence[int] = ()

    def __init__(self, text: str) -> None:
        self.head = self.text = self.frame = text

    def read(self, text: str) -> CaseFile:
        """A text in any format. Raises ValueError where it is in none."""
        return read_case_file(text)

    def has_text_of(self, other: CaseFile) -> bool:
        return self.text == other.text

    def edited(self, edits: Iterable[Edit]) -> CaseFile:
        for edit in edits:
            raise EditError("the text is not valid JSON", edit.path)
        return self

    def with_chunks(self, chunks: Iterable[Chunk]) -> CaseFile:
        return self

    def line_of(self, path: JsonPath) -> int:
        return 1

    def text_at(self, path: JsonPath) -> str:
        raise missing(path)


class TextLines(WholeText):
    """A text of lines, such as a recording, in which every text is valid."""

    def read(self, text: str) -> CaseFile:
        return TextLines(text)


def read_any_text(text: str, like: CaseFile | None = None) -> CaseFile:
    """Reads a case file; a text in no format becomes one chunk."""
    try:
        return read_case_file(text, like)
    except ValueError:
        return WholeText(text)
