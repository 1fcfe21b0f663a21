"""The eval set to which a command adds cases: an existing or a new one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaltui.commands.output import UsageError, write_stderr
from evaltui.core.conversation.drafting import CaseDraft
from evaltui.core.metrics.response_match import never_passes
from evaltui.core.model.eval_set import EvalCase, tool_calls
from evaltui.core.model.events import Json
from evaltui.core.model.json_values import field_of, spelling_in
from evaltui.core.model.old_formats import FORMATS
from evaltui.core.model.problems import EvalSetError, JsonPath, Problem, errors_in
from evaltui.documents.case_file import CaseFile
from evaltui.documents.document import JsonDocument
from evaltui.documents.editing.config import new_config_text
from evaltui.documents.editing.references import References
from evaltui.documents.editing.set import SetEditor, new_set_text, set_id_problem
from evaltui.documents.edits import EditError
from evaltui.documents.formats import read_case_file
from evaltui.documents.json_text import parse
from evaltui.documents.saving import ChangedOutsideError, Source, Write, read_source, save, save_together
from evaltui.documents.values import copy_of, edits_of
from evaltui.project.configs import config_file, find_config
from evaltui.project.eval_set_file import EvalSetFile, read_eval_set_file
from evaltui.project.eval_sets import set_kind, set_name
from evaltui.project.folders import SET_SUFFIXES, agent_folder
from evaltui.project.workspace import hint_for_unknown, open_workspace
from evaltui.text.figures import plural, short_list
from evaltui.text.values import did_you_mean, visible

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
        eval_id = field_of(case, "eval_id")
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


_NEW_SET = SET_SUFFIXES[0]


def existing_set(agent_dir: Path, name: str, *, in_project: bool = True) -> Path:
    """The file of an existing set, by its path or id. Raises UsageError."""
    path, sets = _existing(agent_dir, name, in_project)
    if path is None:
        raise UsageError(f"no eval set {name!r} in {agent_folder(agent_dir)}{hint_for_unknown(name, sets)}")
    return path


def _existing(agent_dir: Path, name: str, in_project: bool) -> tuple[Path | None, Sequence[EvalSetFile]]:
    """The file of a set, None where there is none, and all sets. Raises UsageError."""
    for path in (Path(name), agent_folder(agent_dir) / name):
        if path.is_file():
            return path, []
    sets = open_workspace(agent_dir, in_project=in_project).sets
    matches = [eval_set.path for eval_set in sets if eval_set.eval_set_id == name]
    if len(matches) > 1:
        raise UsageError(
            f"{name!r} is the id of several sets, {' and '.join(map(str, matches))}; name the file instead"
        )
    return (matches[0] if matches else None), sets


def find_set(agent_dir: Path, name: str, *, in_project: bool = True) -> Path:
    """The file of an existing set, or of a new one; a new one without a folder goes to the agent's."""
    folder = agent_folder(agent_dir)
    existing, sets = _existing(agent_dir, name, in_project)
    if existing:
        return existing
    set_ids = [eval_set.eval_set_id for eval_set in sets]
    if not name.endswith(_NEW_SET):
        hint = did_you_mean(name, set_ids) or f". For a new set, name its file: NAME{_NEW_SET}"
        raise UsageError(f"no eval set {name!r} in {folder}{hint}")
    new = folder / name if Path(name).name == name else Path(name)
    if not new.parent.is_dir():
        raise UsageError(f"the folder {new.parent} does not exist")
    if problem := set_id_problem(set_name(new), set_ids):
        raise UsageError(f"{new} cannot be a new set: {problem}")
    return new


def require_free(path: Path, eval_ids: Sequence[str]) -> None:
    """Raises UsageError or EvalSetError where the set cannot get cases of these ids."""
    eval_set = read_eval_set_file(path, "given", path.parent)
    is_dataset = eval_set.format == "dataset" and eval_set.document is not None
    if eval_set.format not in (None, "eval set") and not is_dataset:
        raise UsageError(f"{path} is {FORMATS[eval_set.format]}; convert it with `evaltui migrate`")
    # What is wrong with a case of it need not keep the set from getting another.
    if errors := [problem for problem in errors_in(eval_set.problems) if len(problem.path) < 2]:
        raise EvalSetError(errors)
    existing_ids = {case.eval_id for case in eval_set.cases}
    if taken_id := next((eval_id for eval_id in eval_ids if eval_id in existing_ids), None):
        raise UsageError(f"{path} already has a case {taken_id!r}; choose another id")


def never_passes_in(path: Path, draft: CaseDraft) -> str:
    """The reason why a case can never pass with the config of its set; "" where none is known."""
    try:
        config = find_config(path).config
    except EvalSetError:
        return ""
    return never_passes(EvalCase.model_validate(draft.case), config, (), draft.outputs)


def add_to_set(path: Path, drafts: Sequence[CaseDraft]) -> Path | None:
    """Adds cases to a set, or to a new set; all of them or none.

    Returns the config that has the marks of their turns, None where they have none. Raises UsageError where a
    file cannot be written, EvalSetError where an id is in the set meanwhile or the config cannot be read.
    """
    cases = [draft.case for draft in drafts]
    if path.exists() and set_kind(path) == "dataset":
        cases = [_for_dataset(case) for case in cases]
    marked = _marked_config(path, drafts)
    document = JsonDocument(new_set_text(set_name(path), time.time()))
    eval_set = SetEditor.copied(document.value)
    for case in cases:
        eval_set.insert_case(case)
    document = document.edited(edits_of(eval_set.data))
    try:
        try:
            save(path, document.text, None)
        except ChangedOutsideError:
            add_cases(path, cases)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error
    except EditError as error:
        remedy = f"Name an eval set, or convert this file: evaltui migrate {path} NAME{_NEW_SET}"
        raise UsageError(f"{path}: {error.message}. {remedy}") from error
    if marked is not None:
        try:
            save_together([marked])
        except (OSError, ChangedOutsideError) as error:
            raise UsageError(
                f"{path} has the cases; {marked.path} has not got their marks: {error}"
            ) from error
    return marked.path if marked else None


def _for_dataset(case: Json) -> Json:
    """A case without expectations that a dataset has no words for, each of which is said."""
    turns_of_case = EvalCase.model_validate(case).conversation or []
    silent = [
        number
        for number, turn in enumerate(turns_of_case[:-1])
        if turn.intermediate_data is not None and not tool_calls(turn.intermediate_data)
    ]
    if not silent:
        return case
    turns = f"{plural(len(silent), 'turn')} {short_list([str(number + 1) for number in silent])}"
    write_stderr(
        f"case {visible(case['eval_id'])}: calls of {turns} are not checked; a dataset cannot say that an "
        "earlier turn calls no tool"
    )
    without_calls = [
        {key: value for key, value in turn.items() if key != "intermediate_data" or number not in silent}
        for number, turn in enumerate(case["conversation"])
    ]
    return {**case, "conversation": without_calls}


def _marked_config(path: Path, drafts: Sequence[CaseDraft]) -> Write | None:
    """The config of a set with the marks of new cases. Raises EvalSetError, UsageError."""
    if not any(draft.marks for draft in drafts):
        return None
    eval_set_id = read_eval_set_file(path, "given", path.parent).eval_set_id if path.exists() else ""
    config = config_file(path)
    try:
        source = read_source(config) if config.exists() else None
        document = read_case_file(source.text if source else new_config_text())
        references = References(copy_of(document.value))
        for draft in drafts:
            references.mark_turns((eval_set_id or set_name(path), draft.case["eval_id"]), draft.marks)
        document = document.edited(edits_of(references.config))
    except (OSError, ValueError) as error:
        raise UsageError(f"{config} cannot get the marks of the cases: {error}") from error
    return Write(config, document.text, source.fingerprint if source else None)
