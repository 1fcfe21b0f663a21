"""An eval set file, listed without models and validated where its cases are shown, run or scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaltui.core.model.case_id import required_field
from evaltui.core.model.datasets import is_dataset
from evaltui.core.model.json_values import field_of, spelling_in
from evaltui.core.model.old_formats import Format, kind_of
from evaltui.core.model.problems import EvalSetError, Problem, errors_in, merge_same_kind
from evaltui.core.model.stored_cases import CaseList, StoredCase
from evaltui.core.model.tags import Tags
from evaltui.documents.case_file import CaseFile
from evaltui.documents.dataset import DatasetDocument
from evaltui.documents.files import Stamp, stamp_in
from evaltui.documents.formats import read_case_file
from evaltui.documents.json_text import locate
from evaltui.documents.problems import at_cases, located, validate_document
from evaltui.documents.saving import Fingerprint, read_source
from evaltui.project.eval_sets import SetData, read_set_data, set_data, set_name, with_model
from evaltui.project.folders import case_path

if TYPE_CHECKING:
    from evaltui.core.model.eval_set import EvalSet
    from evaltui.project.configs import ConfigInUse


@dataclass(frozen=True)
class EvalSetFile:
    """An eval set from its file, or in its edited state."""

    path: Path
    case_path: str
    """The path that its cases have in their `CaseId`."""
    eval_set_id: str
    name: str
    origin: str
    """The folder of the file, as seen from the agent's folder."""
    format: Format | None
    """The format; None for an unknown one, without cases then."""
    cases: tuple[StoredCase, ...]
    problems: tuple[Problem, ...] = ()
    """All problems of the set and its config; before validation, only those found without models: syntax
    and missing ids."""
    document: CaseFile | None = None
    """The text, to be edited; None where it is not cut into cases: no eval set, or another format."""
    stamp: Stamp | None = None
    """Stamp of the file before it was read; None without a file, and after an edit."""
    fingerprint: Fingerprint | None = None
    """Fingerprint of the text that was read; None without a `document`, and after an edit."""
    is_text: bool = True
    """Whether the file can be read as text, and so be edited as one."""
    tags: Tags | None = field(default_factory=dict)
    """Tags that its config gives to its cases; None where the config cannot be read."""
    is_validated: bool = False
    eval_set: EvalSet | None = None
    """The set without its cases; None before validation, and for errors."""
    config: ConfigInUse | None = None
    """The config in use; None before it is validated, and where the config has errors."""
    unjudged: tuple[Problem, ...] = ()
    """The `problems` that depend on the config: rubrics that no metric judges."""

    @cached_property
    def _numbers(self) -> dict[str, int]:
        last = len(self.cases) - 1
        return {case.eval_id: last - number for number, case in enumerate(reversed(self.cases))}

    @cached_property
    def value(self) -> Any:
        """The set as JSON data, each case parsed when it is asked for."""
        if isinstance(self.document, DatasetDocument):
            return self.document.named(self.eval_set_id)
        if self.document is not None:
            return self.document.value
        return {"eval_set_id": self.eval_set_id, "eval_cases": CaseList(self.cases)}

    def number(self, eval_id: str) -> int | None:
        """The index of a case, the first one for a duplicate id; None for a missing case."""
        return self._numbers.get(eval_id)

    @property
    def errors(self) -> list[Problem]:
        return errors_in(self.problems)

    def case(self, eval_id: str) -> StoredCase | None:
        """A case that can be run and scored, the same object while it is unchanged.

        None for a missing case, for a set with errors, and before validation.
        """
        number = self._numbers.get(eval_id)
        return None if number is None or self.eval_set is None else self.cases[number]

    def but(self, **changes: Any) -> EvalSetFile:
        """A copy with changes that leave the cases as they are, so that their numbers stay cached."""
        changed = replace(self, **changes)
        if "_numbers" in self.__dict__:
            changed.__dict__["_numbers"] = self._numbers
        return changed

    def scored_by(self, config: ConfigInUse | EvalSetError) -> EvalSetFile:
        """The set with another config, or with the problems of having none."""
        of_file = (problem for problem in self.problems if problem.file == str(self.path))
        of_set = (problem for problem in of_file if problem not in self.unjudged)
        used = None if isinstance(config, EvalSetError) else config
        unjudged = self._unjudged_by(used)
        return self.but(config=used, unjudged=unjudged, problems=(*of_set, *unjudged, *config.problems))

    def _unjudged_by(self, config: ConfigInUse | None) -> tuple[Problem, ...]:
        # Sets of old formats have no rubrics.
        if config is None or self.eval_set is None or self.document is None:
            return ()
        with_rubrics = [number for number, case in enumerate(self.cases) if '"rubrics"' in case.text]
        if not with_rubrics:
            return ()
        from evaltui.core.metrics.config_validation import rubric_problems

        key, document = spelling_in("eval_cases", self.document.value), self.document
        problems = merge_same_kind(
            replace(problem, path=(key, number, *problem.path))
            for number in with_rubrics
            for problem in rubric_problems(self.cases[number].data(), config.config)
        )
        return tuple(
            replace(problem, line=document.line_of(problem.path), file=str(self.path)) for problem in problems
        )


def stamp_of(path: Path) -> Stamp | None:
    try:
        return stamp_in(path.stat())
    except OSError:
        return None


def read_eval_set_file(
    path: Path, origin: str, folder: Path, before: EvalSetFile | None = None
) -> EvalSetFile:
    """A file as a list shows it; never raises for its content.

    `folder` is the one to which paths of cases are relative, usually the agent's. Unchanged cases of `before`
    are the same objects.
    """
    stamp, source = stamp_of(path), None
    try:
        source = read_source(path)
        document = read_case_file(source.text, before.document if before else None)
    except (OSError, ValueError):
        document = None
    fingerprint: Fingerprint | None = None
    if source and isinstance(document, DatasetDocument):
        fingerprint = source.fingerprint
        problems = tuple(located(document.problems, document, path))
        read = SetData("dataset", document.value, source.text.removeprefix("\ufeff"), problems)
    elif source and document is not None and document.key is not None and not is_dataset(document.value):
        fingerprint = source.fingerprint
        read = SetData("eval set", document.value, source.text.removeprefix("\ufeff"), ())
    else:
        document, read = None, read_set_data(path)
    file = EvalSetFile(path, case_path(folder, path), "", "", origin, None, (), is_text=source is not None)
    return _listed(file, read, document, stamp, fingerprint)


def _listed(
    file: EvalSetFile,
    read: SetData,
    document: CaseFile | None = None,
    stamp: Stamp | None = None,
    fingerprint: Fingerprint | None = None,
) -> EvalSetFile:
    """The eval set of a file that was read again, as a list shows it."""
    path, data, problems = file.path, read.data, list[Problem]()
    if data is None:
        data = {"eval_set_id": set_name(path), "eval_cases": []}
    eval_set_id = required_field(data, ("eval_set_id",), str, problems)
    raw_cases = required_field(data, ("eval_cases",), list, problems) or []
    cases = raw_cases.stored if isinstance(raw_cases, CaseList) else tuple(map(StoredCase.of_data, raw_cases))
    problems += at_cases(data, [case.outline.problems for case in cases])
    name = data.get("name")
    return replace(
        file,
        eval_set_id=eval_set_id or set_name(path),
        name=name if isinstance(name, str) else "",
        format=read.format,
        cases=cases,
        problems=(
            *read.problems,
            *(located(problems, document, path) if document else locate(problems, read.text, str(path))),
        ),
        document=document,
        stamp=stamp,
        fingerprint=fingerprint,
    )


def validated(file: EvalSetFile) -> EvalSetFile:
    """The set with all its problems, as `read_eval_set` reports them; models are made case by case."""
    path = file.path
    if file.document is None:
        # Old formats, whose sets are small, and what is no set at all.
        return _validated_at_once(file, read_set_data(path))
    eval_set, unlocated = _model_of(file.document, file.cases, file.eval_set_id)
    problems = tuple(located(unlocated, file.document, path))
    return replace(file, problems=problems, eval_set=eval_set, is_validated=True)


def _model_of(
    document: CaseFile, cases: Sequence[StoredCase], name: str
) -> tuple[EvalSet | None, list[Problem]]:
    """The set without its cases, None for errors, and all problems; without an id, as a dataset is, it gets
    the id `name`."""
    eval_set, problems = validate_document(document, cases)
    if eval_set is not None and not eval_set.eval_set_id:
        eval_set = eval_set.model_copy(update={"eval_set_id": name})
    return eval_set, [*problems, *(document.problems if isinstance(document, DatasetDocument) else ())]


def _validated_at_once(file: EvalSetFile, read: SetData) -> EvalSetFile:
    loaded = with_model(file.path, read)
    cases = file.cases
    if loaded.eval_set is not None:
        # By their texts, they are the cases of the list, which has no models.
        cases = tuple(map(StoredCase.of_data, field_of(loaded.data, "eval_cases")))
    return replace(file, cases=cases, problems=loaded.problems, eval_set=loaded.eval_set, is_validated=True)


def edited(file: EvalSetFile, document: CaseFile, *, validate: bool) -> EvalSetFile:
    """The set after an edit of its text; only new cases are looked at."""
    if document.key is None and kind_of(document.value) != "eval set":
        read = set_data(file.path, document.text)
        return _validated_at_once(_listed(replace(file, is_validated=False), read), read)
    data, cases = document.value, document.cases
    own_format: Format = "dataset" if isinstance(document, DatasetDocument) else "eval set"
    eval_set, unlocated = None, [*at_cases(data, [case.outline.problems for case in cases])]
    if validate:
        eval_set, unlocated = _model_of(document, cases, file.eval_set_id)
    # Finding a line takes a look at the whole text, which warnings in their thousands are not worth.
    problems = [
        replace(
            problem,
            line=document.line_of(problem.path) if problem.rule.blocks else None,
            file=str(file.path),
        )
        for problem in unlocated
    ]
    return replace(
        # Whatever has become of the file meanwhile.
        replace(file, format=own_format, document=document, stamp=None, fingerprint=None),
        eval_set_id=str(field_of(data, "eval_set_id") or file.eval_set_id),
        cases=cases,
        problems=tuple(problems),
        eval_set=eval_set,
        is_validated=validate,
    )
