"""All problems of eval sets and configs, without a run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from evaltui.core.model.config import EvalConfig
from evaltui.core.model.eval_set import EvalSet
from evaltui.core.model.file_kinds import file_kind, is_eval_config
from evaltui.core.model.json_values import spelt
from evaltui.core.model.model_errors import spellings
from evaltui.core.model.problems import EvalSetError, JsonPath, LintRule, Problem
from evaltui.documents.json_text import locate, parse, read_text
from evaltui.files.config_references import reference_problems
from evaltui.files.configs import (
    choice_problems,
    config_file,
    find_config,
    is_eval_config_file,
    read_config,
)
from evaltui.files.eval_set_file import EvalSetFile, read_eval_set_file, validated
from evaltui.files.folders import CONFIG_NAME, has_set_name, project_root
from evaltui.files.projects import agents_in
from evaltui.files.recognition import YAML_SUFFIXES
from evaltui.files.root_agents import is_agent
from evaltui.files.run_settings import PROJECT_FILE, nearest_table, read_table
from evaltui.files.workspace import SET_KEYS, Skipped, open_workspace, passed_over, sets_below, skipped_below

# What agent-starter-pack calls it, too.
_CONFIG_NAMES = (CONFIG_NAME, "eval_config.json")


def lint(paths: Sequence[str | Path]) -> list[Problem]:
    """The problems of files, of the eval sets and their configs in folders, and of the run-wide settings that
    apply there, by file and line.

    A folder that is an agent is searched as a workspace, any other one to the bottom.
    """
    problems = [*dict.fromkeys(problem for path in map(Path, paths) for problem in _settings_problems(path))]
    files, empty, skipped = _search(paths)
    problems += [
        Problem.error((), "has no eval sets", file=str(path), rule=LintRule.NOT_AN_EVAL_SET) for path in empty
    ]
    problems += [
        (Problem.error if skipped_file.is_set else Problem.warning)(
            (),
            f"{skipped_file.reason}; rename it" if skipped_file.is_set else skipped_file.reason,
            file=str(skipped_file.path),
            rule=LintRule.NOT_AN_EVAL_SET,
        )
        for skipped_file in skipped
    ]
    seen: _SetIds = {}
    for file in files:
        of_file = _lint_config(file) if is_config_by_content(file) else _lint_set(file, seen)
        problems += sorted(of_file, key=lambda problem: problem.line or 0)
    return problems


def files_to_lint(paths: Sequence[str | Path]) -> tuple[list[Path], list[Path]]:
    """The eval sets and configs that paths mean, each once, and the folders among them that have none."""
    files, empty, _ = _search(paths)
    return files, empty


def _search(paths: Sequence[str | Path]) -> tuple[list[Path], list[Path], list[Skipped]]:
    """The files to lint, the folders without any, and the skipped files that look like eval sets."""
    files: dict[Path, None] = {}
    empty, skipped = list[Path](), dict[Skipped, None]()
    for path in map(Path, paths):
        if path.name == PROJECT_FILE:
            continue
        workspace = open_workspace(path) if path.is_dir() and is_agent(path) else None
        lintable = [path]
        if path.is_dir():
            lintable = _with_configs(path, sets_below(path, path) if workspace is None else workspace.sets)
        files |= dict.fromkeys(lintable)
        if not lintable:
            empty.append(path)
        if path.is_dir():
            skipped |= dict.fromkeys(passed_over(workspace, ()) if workspace else skipped_below(path))
    return list(files), empty, list(skipped)


def _settings_problems(path: Path) -> list[Problem]:
    """Problems of a pyproject.toml, or of the settings that apply to a folder and to the agents in it."""
    if path.name == PROJECT_FILE:
        return read_table(path)[1]
    agents = [path / name for name in agents_in(path)]
    return [problem for folder in (path, *agents) if folder.is_dir() for problem in nearest_table(folder)[1]]


# The files with each id of a set, with the folders of their agent and project.
_SetIds = dict[str, list[tuple[Path, Path | None, Path | None]]]


def _same_label(file: Path, eval_set: EvalSet | None, seen: _SetIds) -> Iterator[Problem]:
    """Rules and marks of a config, and what is typed on the command line, name sets by their ids, among those
    of an agent, which has the sets beside the agents of its project as well."""
    if eval_set is None:
        return
    project = project_root(file.parent)
    folders = [
        parent for parent in file.absolute().parents if project is None or parent.is_relative_to(project)
    ]
    agent = next(filter(is_agent, folders), None)
    earlier = seen.setdefault(eval_set.eval_set_id, [])
    for first, other_agent, other_project in earlier:
        is_shared = project == other_project and (agent == other_agent or None in (agent, other_agent))
        if is_shared and first.resolve() != file.resolve():
            message = f"{eval_set.eval_set_id!r} is also the id of {first}; an agent's set ids must be unique"
            yield Problem.warning(("eval_set_id",), message, file=str(file), rule=LintRule.DUPLICATE_ID)
            break
    earlier.append((file, agent, project))


def format_problem(problem: Problem) -> str:
    """`path/to/file.json:41: error: eval_cases[2]: missing`"""
    return problem.located(problem.severity)


def _with_configs(folder: Path, sets: Sequence[EvalSetFile]) -> list[Path]:
    """The sets of a folder and their configs."""
    used = [config_file(eval_set.path) for eval_set in sets]
    configs = dict.fromkeys(config for config in [folder / CONFIG_NAME, *used] if os.path.lexists(config))
    return [*(eval_set.path for eval_set in sets), *configs]


def is_config_by_content(file: Path, text: str | Problem | None = None) -> bool:
    """Whether a file is a config, by its name, else by its text, which is read where it is None."""
    if file.name in _CONFIG_NAMES:
        return True
    if has_set_name(file):
        return False
    if file.suffix in YAML_SUFFIXES:
        return is_eval_config_file(file)
    try:
        text = read_text(file) if text is None else text
    except OSError:
        return False
    data = parse(text) if isinstance(text, str) else None
    if not isinstance(data, dict) or data.keys() & SET_KEYS:
        return False
    if file_kind(data) is not None:
        return is_eval_config(data)
    of_configs = {key for keys in spellings(EvalConfig) for key in keys}
    return bool(data.keys() & of_configs) or "config" in file.name.lower()


def _lint_set(file: Path, seen: _SetIds) -> list[Problem]:
    loaded = validated(read_eval_set_file(file, "", file.parent))
    try:
        used = find_config(file)
    except EvalSetError:
        # Of the config itself lint says what is wrong with it.
        used = None
    if used is not None:
        loaded = loaded.scored_by(used)
    of_set = [problem for problem in loaded.problems if problem.file == str(file)]
    problems = [*choice_problems(file), *of_set, *_same_label(file, loaded.eval_set, seen)]
    if loaded.eval_set is None or loaded.document is None:
        return problems
    text = loaded.document.text.removeprefix("\ufeff")
    unlocated = list(_not_finite(parse(text))) if "NaN" in text or "Infinity" in text else []
    if used is None:
        return problems + locate(unlocated, text, str(file))
    # Models load slowly, and reading this module must not wait for them.
    from evaltui.core.metrics.response_match import never_passes

    cases_key = spelt("eval_cases", loaded.document.value)
    for index, stored in enumerate(loaded.cases):
        case, set_id = stored.model(), loaded.eval_set.eval_set_id
        # Where there is no config, who expects no answer may mean to give one without that metric.
        unscored = {
            number
            for number, turn in enumerate(case.conversation or [])
            if used.config.turn_mode(set_id, case.eval_id, number) == "context"
            or (used.defaulted and turn.final_response is None)
        }
        if reason := never_passes(case, used.config, unscored):
            unlocated.append(Problem.warning((cases_key, index), reason, rule=LintRule.NEVER_PASSES))
    return problems + locate(unlocated, text, str(file))


def _not_finite(data: Any, path: JsonPath = ()) -> Iterator[Problem]:
    """The numbers that Python's reader accepts, and other readers of JSON refuse."""
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from _not_finite(value, (*path, key))
    elif isinstance(data, float) and not isfinite(data):
        yield Problem.warning(
            path,
            f"{json.dumps(data)} is not JSON, and no value of an agent equals it",
            rule=LintRule.NOT_JSON,
        )


def _lint_config(file: Path) -> list[Problem]:
    config, problems = read_config(file)
    if config is None:
        return problems
    return problems + reference_problems(file, config.evaltui, {})
