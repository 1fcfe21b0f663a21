"""A tool, an argument or an agent renamed in eval sets, configs and recordings at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaltui.core.model.arg_rule import arg_path_text, parse_arg_path
from evaltui.core.model.file_kinds import file_kind
from evaltui.core.model.json_values import indexed_objects, list_at, value_at
from evaltui.core.model.problems import EvalSetError, JsonPath, Problem
from evaltui.core.model.renaming import (
    NameKind,
    NamePlace,
    NameTakenError,
    Renaming,
    key_place,
    names_in,
    rename_places,
    renamed_text,
    value_place,
)
from evaltui.core.model.stored_cases import StoredCase
from evaltui.core.recordings.entry import line_text
from evaltui.core.recordings.renaming import rename_in_line
from evaltui.documents.case_file import CaseFile
from evaltui.documents.document import JsonDocument
from evaltui.documents.editing.json_paths import cases_path, field_path
from evaltui.documents.editing.references import BLOCK, RULES
from evaltui.documents.formats import TextLines
from evaltui.documents.line_changes import lines_of
from evaltui.documents.nodes import BOM
from evaltui.documents.values import copy_of, edits_of
from evaltui.project.folders import RECORDING_SUFFIX
from evaltui.project.lint import files_to_lint, is_config_by_content
from evaltui.runner.recording_files import parse_recordings, recordings_of
from evaltui.text.figures import counted

_CRITERIA: tuple[JsonPath, ...] = (("criteria",), (*BLOCK, "criteria"))
# The options of criteria that name a tool or an agent.
_OPTIONS: Mapping[str, NameKind] = {
    "tool": "tool",
    "tool_name": "tool",
    "toolName": "tool",
    "agent": "agent",
    "agent_name": "agent",
    "agentName": "agent",
}


def rename_in_set(data: Any, renaming: Renaming) -> Iterator[JsonPath]:
    """Renames in a copy of an eval set; yields the path of each place. Raises NameTakenError."""
    cases = cases_path(data)
    items = list_at(data, cases)
    for index, stored in enumerate(list.__iter__(items)):
        if isinstance(stored, StoredCase) and not renaming.is_in(stored.text):
            continue
        case, path = items[index], (*cases, index)
        yield from rename_places(names_in(case, path), renaming)
        yield from _rename_in_rubrics(case, path, renaming)
        conversation = field_path(case, (), "conversation")
        for number, turn in indexed_objects(list_at(case, conversation)):
            yield from _rename_in_rubrics(turn, (*path, *conversation, number), renaming)


def rename_in_config(data: Any, renaming: Renaming) -> Iterator[JsonPath]:
    """Renames in a copy of a config; yields the path of each place. Raises NameTakenError."""
    yield from rename_places(_names_in_config(data), renaming)
    for path, criterion in _criteria_in(data):
        yield from _rename_in_rubrics(criterion, path, renaming)


def _criteria_in(data: Any) -> Iterator[tuple[JsonPath, Any]]:
    """The criteria of a config, each with its path."""
    for owner in _CRITERIA:
        criteria = value_at(data, owner)
        for name, criterion in criteria.items() if isinstance(criteria, dict) else ():
            yield (*owner, name), criterion


def _names_in_config(data: Any) -> Iterator[NamePlace]:
    modes = value_at(data, (*BLOCK, "tools"))
    for name in list(modes) if isinstance(modes, dict) else ():
        place: JsonPath = (*BLOCK, "tools", name)
        yield NamePlace("tool", name, place, key_place(modes, name), others=modes.keys() - {name})
    yield from _names_in_rules(data)
    answers: JsonPath = (*BLOCK, "answers")
    for index, check in indexed_objects(list_at(data, answers)):
        if isinstance(check.get("agent"), str):
            yield NamePlace("agent", check["agent"], (*answers, index, "agent"), value_place(check, "agent"))
    for path, criterion in _criteria_in(data):
        for option, value in criterion.items() if isinstance(criterion, dict) else ():
            if option in _OPTIONS and isinstance(value, str):
                yield NamePlace(_OPTIONS[option], value, (*path, option), value_place(criterion, option))


def _names_in_rules(data: Any) -> Iterator[NamePlace]:
    rules = [rule for rule in indexed_objects(list_at(data, RULES)) if isinstance(rule[1].get("tool"), str)]
    arguments = [(index, rule, argument) for index, rule in rules if (argument := _argument(rule))]
    for index, rule in rules:
        others = {other["tool"] for _, other in rules} - {rule["tool"]}
        yield NamePlace(
            "tool", rule["tool"], (*RULES, index, "tool"), value_place(rule, "tool"), others=others
        )
    for index, rule, name in arguments:
        others = {other for _, row, other in arguments if row["tool"] == rule["tool"]} - {name}
        yield NamePlace("argument", name, (*RULES, index, "arg"), _path_place(rule), rule["tool"], others)


def _argument(rule: dict[str, Any]) -> str:
    """The argument that the path of a rule begins with; "" for a path of none."""
    try:
        steps = parse_arg_path(rule["arg"])
    except (KeyError, TypeError, ValueError):
        return ""
    return steps[0] if steps and isinstance(steps[0], str) else ""


def _path_place(rule: dict[str, Any]) -> Any:
    """Replaces the argument at the start of a rule's path; the rest of the path stays."""

    def put(name: str) -> None:
        old, path = _argument(rule), rule["arg"]
        if path.startswith(old):
            rule["arg"] = arg_path_text((name,)) + path.removeprefix(old)
        else:
            quote = path[1]
            plain = not set(name) & {quote, "\\"}
            head = f"[{quote}{name}{quote}]" if plain else arg_path_text((name,))
            rule["arg"] = head + path[path.index(f"{quote}]", 2) + 2 :]

    return put


def _rename_in_rubrics(owner: Any, path: JsonPath, renaming: Renaming) -> Iterator[JsonPath]:
    """Renames in the texts of rubrics."""
    for index, rubric in indexed_objects(list_at(owner, ("rubrics",))):
        at = field_path(rubric, field_path(rubric, (), "rubric_content"), "text_property")
        text = value_at(rubric, at)
        if isinstance(text, str) and (renamed := renamed_text(text, renaming)) != text:
            value_at(rubric, at[:-1])[at[-1]] = renamed
            yield (*path, "rubrics", index, *at)


def names_of(data: Any, *, is_config: bool) -> Iterator[NamePlace]:
    """The names in an eval set or config."""
    if is_config:
        yield from _names_in_config(data)
    else:
        for index, case in enumerate(list_at(data, cases_path(data))):
            yield from names_in(case, (index,))


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
    """The eval sets and configs that paths mean, and the recordings of these sets. Raises OSError."""
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
