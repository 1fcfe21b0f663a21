"""The text of a whole file as a field: a set that is no JSON, or that cannot be cut into cases."""

from __future__ import annotations

from pathlib import Path

from evaltui.core.model.old_formats import kind_of
from evaltui.core.model.problems import EvalSetError, Problem
from evaltui.documents.case_file import CaseFile
from evaltui.documents.editing.set import EditBuilder
from evaltui.documents.json_text import parse
from evaltui.documents.nodes import BOM
from evaltui.workbench.case.editing import Editing
from evaltui.workbench.case.fields import Field, FieldError, syntax_error


def file_field(editing: Editing, path: Path) -> Field | None:
    """The text of a file with `\\n` between its lines; None where it cannot be read as text."""
    try:
        text = editing.whole(path).text
    except (OSError, EvalSetError):
        return None
    return Field(f"edit the JSON of {path.name}", _with_plain_lines(text), "json", _no_edit_of_a_case)


def replaced(document: CaseFile, typed: str) -> CaseFile:
    """The file with another text, its lines ended as before. Raises FieldError where that is in no format."""
    text = _with_plain_lines(typed)
    ended = text.replace("\n", "\r\n") if "\r\n" in document.text else text
    try:
        new = document.read(BOM + ended if document.text.startswith(BOM) else ended)
    except ValueError as error:
        problem = parse(text)
        raise (syntax_error(problem) if isinstance(problem, Problem) else FieldError(str(error))) from error
    if not isinstance(new.value, dict) and kind_of(new.value) is None:
        raise FieldError("Must be a JSON object: { … }")
    return new


def _with_plain_lines(text: str) -> str:
    return text.removeprefix(BOM).replace("\r\n", "\n")


def _no_edit_of_a_case(text: str) -> EditBuilder:
    raise FieldError("The text of a file is replaced as a whole")
