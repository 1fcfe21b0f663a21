"""An eval set file: as a list shows it, read without models, and as it is shown, run and edited."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from evaltui.core.jsondoc.document import JsonDocument
from evaltui.core.model.aliases import spelt
from evaltui.core.model.case_id import CaseInfo, case_info, required_field
from evaltui.core.model.old_formats import Format
from evaltui.core.model.problems import EvalSetError, Problem, Severity
from evaltui.core.model.stored_cases import Checked, StoredCase, StoredCases
from evaltui.files.case_paths import case_path
from evaltui.files.eval_sets import read_set_data, set_name
from evaltui.files.json_text import duplicate_keys, locate
from evaltui.files.saving import Fingerprint, read_source

if TYPE_CHECKING:
    from evaltui.core.model.eval_set import EvalCase, EvalSet
    from evaltui.files.configs import ConfigInUse


@dataclass(frozen=True)
class EvalSetFile:
    path: Path
    eval_set: EvalSet | None
    """What the file says of the set as a whole, without its cases; None where there are errors."""
    cases: StoredCases
    """None of them where there are errors."""
    problems: tuple[Problem, ...]
    """Those of the set, then those of its config."""
    config: ConfigInUse | None = None
    """None where it has errors."""
    document: JsonDocument | None = None
    """The text, to be edited; None for what is no eval set, or one of an old format."""
    fingerprint: Fingerprint | None = None
    """Of the file that was read, None where it was not read or has been edited since."""

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {case.eval_id: number for number, case in enumerate(self.cases.stored)}

    @property
    def errors(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.severity is Severity.ERROR]

    def case(self, eval_id: str) -> EvalCase | None:
        """A model of a case, None where there is no such case."""
        stored = self.stored_case(eval_id)
        return None if stored is None else stored.model()

    def stored_case(self, eval_id: str) -> StoredCase | None:
        """The case without a model of it; the same object as long as the case is the same."""
        number = self._numbers.get(eval_id)
        return None if number is None else self.cases.stored[number]

    def scored_by(self, config: ConfigInUse | EvalSetError) -> EvalSetFile:
        """The set with another config, or with none and what is wrong with it."""
        of_set = tuple(problem for problem in self.problems if problem.file == str(self.path))
        return replace(
            self,
            config=None if isinstance(config, EvalSetError) else config,
            problems=(*of_set, *config.problems),
        )


def read_eval_set_file(path: Path) -> EvalSetFile:
    """The set and every problem it has, as `read_eval_set` finds them; never raises for a file's content.

    One case at a time is a model.
    """
    try:
        source = read_source(path)
        document = JsonDocument(source.text)
    except (OSError, ValueError):
        return _read_with_models(path)
    if document.chunks.key is not None:
        text = source.text.removeprefix("\ufeff")
        eval_set, cases, found = _validated(document)
        problems = (*duplicate_keys(text, str(path)), *locate(found, text, str(path)))
        return EvalSetFile(path, eval_set, cases, problems, None, document, source.fingerprint)
    return _read_with_models(path)


def _read_with_models(path: Path) -> EvalSetFile:
    """Old formats, whose sets are small, and what is no set at all."""
    from evaltui.files.eval_sets import read_eval_set

    loaded = read_eval_set(path)
    models = loaded.eval_set.eval_cases if loaded.eval_set else []
    return EvalSetFile(path, loaded.eval_set, StoredCases(map(StoredCase.of, models)), loaded.problems)


def edited_eval_set_file(path: Path, document: JsonDocument) -> EvalSetFile:
    """The set that a document is: of its cases, only those are looked at that nobody looked at before."""
    eval_set, cases, found = _validated(document)
    # Finding a line takes a look at the whole text, which warnings in their thousands are not worth.
    problems = [
        replace(
            problem,
            line=document.line_of(problem.path) if problem.severity is Severity.ERROR else None,
            file=str(path),
        )
        for problem in found
    ]
    return EvalSetFile(path, eval_set, cases, tuple(problems), None, document)


def _validated(
    document: JsonDocument,
) -> tuple[EvalSet | None, StoredCases, list[Problem]]:
    """As `validate_eval_set`, a case at a time."""
    from evaltui.core.model.validation import has_error, validate_set_level

    data = document.value
    eval_set, problems = validate_set_level(data)
    key = spelt("eval_cases", data) if isinstance(data, dict) else "eval_cases"
    cases = document.cases
    valid = True
    for number, case in enumerate(cases):
        checked = check(case)
        valid = valid and checked.is_valid
        problems += [replace(one, path=(key, number, *one.path)) for one in checked.problems]
    if eval_set is None or not valid or has_error(problems):
        return None, StoredCases(()), problems
    return eval_set, StoredCases(cases), problems


def check(case: StoredCase) -> Checked:
    """What is wrong with a case; one that was looked at is not looked at again."""
    if case.checked is None:
        from evaltui.core.model.validation import validate_case

        model, problems = validate_case(case.data())
        case.checked = Checked(model is not None, tuple(problems))
    return case.checked


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
