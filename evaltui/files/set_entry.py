"""An eval set file as a list shows it, read without models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evaltui.core.model.aliases import spelt
from evaltui.core.model.case_info import CaseInfo, case_info, required_field
from evaltui.core.model.old_formats import Format
from evaltui.core.model.problems import Problem
from evaltui.files.case_paths import case_path
from evaltui.files.eval_sets import read_set_data, set_name
from evaltui.files.json_text import locate


@dataclass(frozen=True)
class SetEntry:
    """An eval set file. `case_path` is the path that its cases have in their `CaseId`; `origin` is the
    folder it was found in, as seen from the agent directory.

    `problems` are those that are seen without models: syntax and missing ids. A file that cannot be read as
    any format has format None and no cases.
    """

    path: Path
    case_path: str
    eval_set_id: str
    name: str
    origin: str
    format: Format | None
    cases: tuple[CaseInfo, ...]
    problems: tuple[Problem, ...] = ()


def read_entry(path: Path, origin: str, folder: Path) -> SetEntry:
    """What a list shows of an eval set file; never raises for what is in the file.

    `folder` is the one that its cases are named from, the agent's where there is one.
    """
    read, named = read_set_data(path), case_path(folder, path)
    data = read.data
    if data is None:
        return SetEntry(path, named, set_name(path), "", origin, read.format, (), read.problems)
    found: list[Problem] = []
    eval_set_id = required_field(data, ("eval_set_id",), str, found)
    raw_cases = required_field(data, ("eval_cases",), list, found) or []
    key = spelt("eval_cases", data)
    cases = tuple(case_info(raw, (key, index), found) for index, raw in enumerate(raw_cases))
    name = data.get("name")
    return SetEntry(
        path=path,
        case_path=named,
        eval_set_id=eval_set_id or set_name(path),
        name=name if isinstance(name, str) else "",
        origin=origin,
        format=read.format,
        cases=cases,
        problems=(*read.problems, *locate(found, read.text, str(path))),
    )
