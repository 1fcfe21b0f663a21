"""Adding cases to the file of an eval set, which other programs may write meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaltui.core.model.json_values import spelling_in
from evaltui.core.model.problems import EvalSetError, JsonPath, Problem
from evaltui.documents.case_file import CaseFile
from evaltui.documents.editing.set import SetEditor
from evaltui.documents.formats import read_case_file
from evaltui.documents.json_text import parse
from evaltui.documents.saving import ChangedOutsideError, Source, read_source, save
from evaltui.documents.values import edits_of

# A save by another program takes milliseconds; so many in a row do not happen.
_MAX_TRIES = 50


def add_cases(path: Path, cases: Sequence[dict[str, Any]]) -> Source:
    """Add cases at the end of the file of an eval set or a dataset, all or none; of processes that do so at
    once, none loses another's cases.

    Raises OSError, EvalSetError where the file is no eval set or has a case of one of the ids, and EditError
    where a case is not JSON data, or a dataset cannot hold it.
    """
    for _ in range(_MAX_TRIES):
        source = read_source(path)
        text = _with_cases(source, cases)
        try:
            return save(path, text, source.fingerprint)
        except ChangedOutsideError:
            continue
    raise OSError(f"{path} keeps changing on disk")


def _with_cases(source: Source, added: Sequence[dict[str, Any]]) -> str:
    document, cases_key = _set_of(source)
    eval_set = SetEditor.copied(document.value)
    ids: set[Any] = set(eval_set.eval_ids)
    for case in added:
        eval_id = case.get(spelling_in("eval_id", case))
        if eval_id in ids:
            message = f"already has a case {eval_id!r}; choose another id"
            raise _unusable(source.path, (cases_key,), message)
        ids.add(eval_id)
        eval_set.insert_case(case)
    return document.edited(edits_of(eval_set.data)).text


def _set_of(source: Source) -> tuple[CaseFile, str]:
    """An eval set file, or a dataset, as a document, and the key under which it has its cases."""
    # For the sentence: a document only says that a text is not JSON.
    data = parse(source.text)
    if isinstance(data, Problem):
        raise EvalSetError([replace(data, file=str(source.path))])
    cases_key = spelling_in("eval_cases", data) if isinstance(data, dict) else "eval_cases"
    if not isinstance(data, dict) or not isinstance(data.get(cases_key), list):
        raise _unusable(
            source.path, (cases_key,), "must be a list of cases; cases can be added to eval sets only"
        )
    return read_case_file(source.text), cases_key


def _unusable(path: Path, where: JsonPath, message: str) -> EvalSetError:
    return EvalSetError([Problem.error(where, message, file=str(path))])
