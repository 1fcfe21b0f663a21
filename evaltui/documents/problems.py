"""Problems of the cases in a document; each case is validated once, and again after a change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaltui.core.model.case_id import case_fingerprint
from evaltui.core.model.json_values import spelling_in
from evaltui.core.model.problems import Problem, has_error, merge_ignored
from evaltui.core.model.stored_cases import StoredCase
from evaltui.documents.case_file import CASES, CaseFile
from evaltui.documents.json_text import duplicate_keys

if TYPE_CHECKING:
    from evaltui.core.model.eval_set import EvalSet


def check_case(case: StoredCase) -> None:
    """Validates a case, unless that was done before."""
    if case.problems is None:
        from evaltui.core.model.validation import validate_case

        model, problems = validate_case(case.data())
        problems = [*duplicate_keys(case.text), *problems]
        case.was_validated(tuple(problems), case_fingerprint(model) if model else None)


def check_new_cases(document: CaseFile, seen: Iterable[StoredCase]) -> None:
    """Validates the new cases of a document ahead of time."""
    there = set(seen)
    for case in document.cases:
        if case not in there:
            check_case(case)
            _ = case.outline


def validate_document(
    document: CaseFile, cases: Sequence[StoredCase]
) -> tuple[EvalSet | None, list[Problem]]:
    """Validates an eval set case by case, with duplicate keys; returns a model of the set without cases."""
    from evaltui.core.model.validation import validate_set_level

    data = document.value
    eval_set, problems = validate_set_level(data)
    problems = [*duplicate_keys(document.frame), *problems]
    for case in cases:
        check_case(case)
    problems = merge_ignored([*problems, *at_cases(data, [case.problems or () for case in cases])])
    return None if has_error(problems) else eval_set, problems


def located(problems: Iterable[Problem], document: CaseFile, file: Path) -> Iterator[Problem]:
    """The problems with the lines of their paths and the name of the file, where they have none yet."""
    for problem in problems:
        line = problem.line or document.line_of(problem.path)
        yield replace(problem, line=line, file=problem.file or str(file))


def at_cases(data: Any, problems: Sequence[Sequence[Problem]]) -> Iterator[Problem]:
    """The problems of each case, at its path in the set."""
    key = spelling_in(CASES, data) if isinstance(data, dict) else CASES
    for number, of_case in enumerate(problems):
        for problem in of_case:
            yield replace(problem, path=(key, number, *problem.path))
