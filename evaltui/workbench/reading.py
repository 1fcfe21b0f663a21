"""An eval set file read such that one case at a time is a model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evaltui.core.model.aliases import spelt
from evaltui.core.model.eval_set import EvalSet
from evaltui.core.model.problems import Problem
from evaltui.core.model.stored_cases import StoredCase, StoredCases, head_of
from evaltui.core.model.validation import has_error, validate_case, validate_set_level
from evaltui.files.eval_sets import read_eval_set, read_set_data
from evaltui.files.json_text import duplicate_keys, locate


@dataclass(frozen=True)
class ReadSet:
    """What a file holds: the set without its cases, None where there are errors, and the cases."""

    eval_set: EvalSet | None
    cases: StoredCases
    problems: tuple[Problem, ...]


def read_cases(path: Path) -> ReadSet:
    """The set and every problem it has, as `read_eval_set` finds them; never raises for a file's content."""
    read = read_set_data(path)
    if read.format != "eval set" or not isinstance(read.data.get(_cases_key(read.data)), list):
        # Old formats, whose sets are small, and what is no set at all.
        loaded = read_eval_set(path)
        models = loaded.eval_set.eval_cases if loaded.eval_set else []
        return ReadSet(loaded.eval_set, StoredCases(map(StoredCase.of, models)), loaded.problems)
    text = read.text
    eval_set, cases, found = _validated(read.data)
    # Looking for duplicate keys takes the parsed data once more.
    del read
    problems = (*duplicate_keys(text, str(path)), *locate(found, text, str(path)))
    return ReadSet(eval_set, cases, problems)


def _validated(data: dict[str, Any]) -> tuple[EvalSet | None, StoredCases, list[Problem]]:
    """As `validate_eval_set`, a case at a time."""
    key = _cases_key(data)
    eval_set, problems = validate_set_level(data)
    stored: list[StoredCase] = []
    for index, raw in enumerate(data[key]):
        case, found = validate_case(raw)
        problems += [replace(problem, path=(key, index, *problem.path)) for problem in found]
        if case is not None:
            stored.append(StoredCase(head_of(case), raw))
    if eval_set is None or has_error(problems):
        return None, StoredCases(()), problems
    return eval_set, StoredCases(stored), problems


def _cases_key(data: dict[str, Any]) -> str:
    return spelt("eval_cases", data)
