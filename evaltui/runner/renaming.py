"""A tool, an argument or an agent renamed in eval sets, configs and recordings at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaltui.core.model.file_kinds import file_kind
from evaltui.core.model.json_values import list_at
from evaltui.core.model.problems import EvalSetError, JsonPath, Problem
from evaltui.core.model.renaming import NameKind, NamePlace, NameTakenError, Renaming
from evaltui.core.recordings.entry import line_text
from evaltui.core.recordings.renaming import rename_in_line
from evaltui.documents.case_file import CaseFile
from evaltui.documents.document import JsonDocument
from evaltui.documents.editing.json_paths import cases_path
from evaltui.documents.editing.renaming import names_of, rename_in_config, rename_in_set
from evaltui.documents.formats import TextLines
from evaltui.documents.line_changes import lines_of
from evaltui.documents.nodes import BOM
from evaltui.documents.values import copy_of, edits_of
from evaltui.project.folders import RECORDING_SUFFIX
from evaltui.project.lint import files_to_lint, is_config_by_content
from evaltui.runner.recording_files import parse_recordings, recordings_of
from evaltui.text.figures import counted

_MODEL_CALL = re.compile(r'"kind"\s*:\s*"model"')


@dataclass(frozen=True)
class RenamedFile:
    """A file with another name in it."""

    path: Path
    before: CaseFile
    after: CaseFile
    places: int
    """How often the name stands in it."""


@dataclass(frozen=True)
class RenamedFiles:
    """The files with a name, and those with an unknown format that may have it."""

    files: Sequence[RenamedFile] = ()
    skipped: Sequence[Path] = ()

    @property
    def counts(self) -> str:
        """`5 places in 2 files`"""
        places = sum(file.places for file in self.files)
        return f"{counted(places, 'place')} in {counted(len(self.files), 'file')}"


def files_with_names(paths: Iterable[Path]) -> list[Path]:
    """The eval sets and configs that paths mean, and the recordings of these sets."""
    files = files_to_lint([*paths])
    recordings = [file for path in files if not is_config_by_content(path) for file in recordings_of(path)]
    return list(dict.fromkeys([*files, *recordings]))


def rename_in_files(renaming: Renaming, documents: Mapping[Path, CaseFile]) -> RenamedFiles:
    """Renames in all of these files, of which none is written.

    Raises EvalSetError where something has the new name already, and for recordings that cannot be read.
    """
    files, skipped, problems = list[RenamedFile](), list[Path](), list[Problem]()
    for path, document in documents.items():
        if not renaming.is_in(document.text):
            continue
        try:
            if path.suffix == RECORDING_SUFFIX:
                renamed: RenamedFile | None = _renamed_recording(path, document, renaming)
            elif _has_names(path, document):
                renamed = _renamed_document(path, document, renaming)
            else:
                skipped.append(path)
                continue
        except EvalSetError as error:
            problems += error.problems
            continue
        files += [renamed] if renamed else []
    if problems:
        raise EvalSetError(problems)
    return RenamedFiles(files, skipped)


def names_like(renaming: Renaming, documents: Mapping[Path, CaseFile]) -> list[str]:
    """The names of the same kind; of an argument those of its tool, if there are any."""
    places = [
        place
        for path, document in documents.items()
        if path.suffix != RECORDING_SUFFIX and _has_names(path, document)
        for place in _places_of(renaming.what, names_of(document.value, is_config=_is_config(path, document)))
    ]
    names = {f"{place.tool}.{place.name}" if place.tool else place.name: place.tool for place in places}
    return sorted([name for name, tool in names.items() if tool == renaming.tool] or names)


def _places_of(what: NameKind, places: Iterable[NamePlace]) -> list[NamePlace]:
    """Places with a name of this kind; a tool that is called may be an agent, and most are not."""
    every = [*places]
    called = {place.path for place in every if what == "agent" and place.kind == "tool"}
    return [place for place in every if place.kind == what and place.path not in called]


def _is_config(path: Path, document: CaseFile) -> bool:
    return is_config_by_content(path, document.text)


def _has_names(path: Path, document: CaseFile) -> bool:
    """Whether a file is an eval set or a config as evaltui edits them."""
    value = document.value
    if not isinstance(value, dict) or file_kind(value) is not None:
        return False
    return _is_config(path, document) or bool(list_at(value, cases_path(value)))


def _renamed_document(path: Path, document: CaseFile, renaming: Renaming) -> RenamedFile | None:
    rename = rename_in_config if _is_config(path, document) else rename_in_set
    data = copy_of(document.value)
    try:
        places = len(list(rename(data, renaming)))
    except NameTakenError as error:
        raise _name_taken(path, document.line_of(error.path), error.path, error) from error
    return RenamedFile(path, document, document.edited(edits_of(data)), places) if places else None


def _name_taken(path: Path, line: int, at: JsonPath, error: NameTakenError) -> EvalSetError:
    return EvalSetError([Problem.error(at, str(error), line=line, file=str(path))])


def _renamed_recording(path: Path, document: CaseFile, renaming: Renaming) -> RenamedFile | None:
    """Renames in what was answered, and notes the name under which it was asked."""
    recordings = parse_recordings(path, document.text)
    bom = BOM if document.text.startswith(BOM) else ""
    lines = lines_of(document.text.removeprefix(bom))
    places = 0
    for number, line in enumerate(lines):
        if line.strip() and renaming.is_in(line):
            lines[number], count = _renamed_line(path, number + 1, line, renaming)
            places += count
    if _MODEL_CALL.search(document.text):
        at = [number for number, line in enumerate(lines) if _is_renaming(line)]
        if recordings.renamed[-1:] == [renaming.reverse]:
            del lines[at[-1]]
        else:
            end = "\r\n" if lines[0].endswith("\r\n") else "\n"
            lines.insert(at[-1] + 1 if at else 0, line_text(renaming) + end)
        places += 1
    return RenamedFile(path, document, TextLines(bom + "".join(lines)), places) if places else None


def _is_renaming(line: str) -> bool:
    return line.startswith('{"kind": "renamed"')


def _renamed_line(path: Path, number: int, line: str, renaming: Renaming) -> tuple[str, int]:
    document = JsonDocument(line)
    data: Any = copy_of(document.value)
    try:
        places = rename_in_line(data, renaming)
    except NameTakenError as error:
        raise _name_taken(path, number, error.path, error) from error
    return document.edited(edits_of(data)).text, places
