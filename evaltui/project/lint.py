"""Problems of eval sets and configs, found without a run, and mended where exactly one mend is right.

The rules stand beside their checks: those of sets and cases in `core.model.validation`, of configs in
`core.metrics.config_validation`, of what a config names in `config_references`, of the
choice of a config in `configs`, and of several files here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaltui.core.metrics.registry import METRICS
from evaltui.core.metrics.response_match import never_passes
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.file_kinds import file_kind, is_eval_config
from evaltui.core.model.json_values import spelling_in, values_in
from evaltui.core.model.model_errors import spellings
from evaltui.core.model.problems import (
    MENDS,
    NOT_AN_EVAL_SET,
    RULES,
    EvalSetError,
    Finding,
    LintRule,
    Problem,
    mend,
    problems_of,
)
from evaltui.documents.document import JsonDocument
from evaltui.documents.json_text import duplicate_keys, locate, parse, without_comments
from evaltui.documents.saving import Source, read_source
from evaltui.documents.values import copy_of, edits_of
from evaltui.documents.yaml_text import YAML_SUFFIXES
from evaltui.project.agents import agents_in, is_agent
from evaltui.project.config_references import reference_problems
from evaltui.project.configs import (
    ConfigInUse,
    choice_problems,
    config_file,
    find_config,
    is_eval_config_file,
    read_config,
)
from evaltui.project.eval_set_file import EvalSetFile, read_eval_set_file, validated
from evaltui.project.eval_sets import read_data
from evaltui.project.folders import CONFIG_NAME, has_set_name, project_root
from evaltui.project.run_settings import PROJECT_FILE, nearest_table, read_table
from evaltui.project.workspace import (
    SET_KEYS,
    Skipped,
    open_workspace,
    passed_over,
    sets_below,
    skipped_below,
)

if TYPE_CHECKING:
    from evaltui.core.model.eval_set import EvalCase

# What agent-starter-pack calls it, too.
_CONFIG_NAMES = (CONFIG_NAME, "eval_config.json")
_MENDS = "evaltui.documents.editing.mending"

NEVER_PASSES = LintRule("never-passes", "A case can never pass", blocks=False)
NOT_FINITE = LintRule("not-finite", "A number is NaN or infinite, which is not JSON", blocks=False)
DUPLICATE_SET_ID = LintRule("duplicate-set-id", "Two sets of an agent have the same id", blocks=False)
NOT_RUN = LintRule("not-run", "A file that may be an eval set is not run", blocks=False)


def lint_rules() -> tuple[LintRule, ...]:
    """All rules: errors first, then by id."""
    for module in ("core.model.validation", "core.metrics.config_validation"):
        import_module(f"evaltui.{module}")
    return tuple(sorted(RULES.values(), key=lambda rule: (not rule.blocks, rule.id)))


def rules_with_mends() -> set[str]:
    """The ids of the rules of which `lint --fix` mends some problems."""
    import_module(_MENDS)
    return {rule.id for mends in MENDS.values() for rule, _ in mends.values()} | {"not-json"}


def lint(paths: Sequence[str | Path]) -> list[Problem]:
    """The problems of files, of the eval sets and their configs in folders, and of the run-wide settings that
    apply there, by file and line.

    A folder that is an agent is searched as a workspace, any other one to the bottom.
    """
    problems = [*dict.fromkeys(problem for path in map(Path, paths) for problem in _settings_problems(path))]
    files, empty, skipped = _search(paths)
    problems += problems_of("search", empty, skipped)
    by_file, set_ids = dict[str, list[Problem]](), list[tuple[Path, str]]()
    for file in files:
        if is_config_by_content(file):
            config, problems_of_config = read_config(file)
            references = [] if config is None else reference_problems(file, config.evaltui, {})
            by_file[str(file)] = problems_of_config + references
        else:
            by_file[str(file)], eval_set_id = _lint_set(file)
            set_ids += [(file, eval_set_id)] if eval_set_id is not None else []
    for problem in problems_of("set ids", set_ids):
        by_file[str(problem.file)].append(problem)
    return problems + [
        problem
        for of_file in by_file.values()
        for problem in sorted(of_file, key=lambda problem: problem.line or 0)
    ]


def files_to_lint(paths: Sequence[str | Path]) -> list[Path]:
    """The eval sets and configs that paths mean, each once."""
    return _search(paths)[0]


def _search(paths: Sequence[str | Path]) -> tuple[list[Path], list[Path], list[Skipped]]:
    """The files to lint, the folders without any, and the skipped files that look like eval sets."""
    files: dict[Path, None] = {}
    empty, skipped = list[Path](), dict[Skipped, None]()
    for path in map(Path, paths):
        if path.name == PROJECT_FILE:
            continue
        if not path.is_dir():
            files[path] = None
            continue
        workspace = open_workspace(path) if is_agent(path) else None
        lintable = _with_configs(path, sets_below(path, path) if workspace is None else workspace.sets)
        files |= dict.fromkeys(lintable)
        if not lintable:
            empty.append(path)
        skipped |= dict.fromkeys(passed_over(workspace, ()) if workspace else skipped_below(path))
    return list(files), empty, list(skipped)


def _settings_problems(path: Path) -> list[Problem]:
    """Problems of a pyproject.toml, or of the settings that apply to a folder and to the agents in it."""
    if path.name == PROJECT_FILE:
        return read_table(path)[1]
    agents = [path / name for name in agents_in(path)]
    return [problem for folder in (path, *agents) if folder.is_dir() for problem in nearest_table(folder)[1]]


def format_problem(problem: Problem) -> str:
    """A problem as a line: `path/to/file.json:41: error: eval_cases[2]: missing`."""
    return problem.located(problem.severity)


def _with_configs(folder: Path, sets: Sequence[EvalSetFile]) -> list[Path]:
    """The sets of a folder and their configs."""
    used = [config_file(eval_set.path) for eval_set in sets]
    configs = dict.fromkeys(config for config in [folder / CONFIG_NAME, *used] if os.path.lexists(config))
    return [*(eval_set.path for eval_set in sets), *configs]


def is_config_by_content(file: Path, text: str | None = None) -> bool:
    """Whether a file is a config, by its name, else by its text, which is read where it is None."""
    if file.name in _CONFIG_NAMES:
        return True
    if has_set_name(file):
        return False
    if file.suffix in YAML_SUFFIXES:
        return is_eval_config_file(file)
    data = read_data(file) if text is None else parse(text)
    if not isinstance(data, dict) or data.keys() & SET_KEYS:
        return False
    if file_kind(data) is not None:
        return is_eval_config(data)
    of_configs = {key for keys in spellings(EvalConfig) for key in keys}
    return bool(data.keys() & of_configs) or "config" in file.name.lower()


def _lint_set(file: Path) -> tuple[list[Problem], str | None]:
    """The problems of a set, and its id; None where it has errors."""
    loaded = validated(read_eval_set_file(file, "", file.parent))
    try:
        used = find_config(file)
    except EvalSetError:
        # The problems of the config itself are found where it is linted.
        used = None
    if used is not None:
        loaded = loaded.scored_by(used)
    problems = [
        *choice_problems(file),
        *(problem for problem in loaded.problems if problem.file == str(file)),
    ]
    if loaded.eval_set is None:
        return problems, None
    set_id = loaded.eval_set.eval_set_id
    if loaded.document is None:
        return problems, set_id
    text = loaded.document.text.removeprefix("\ufeff")
    unlocated = problems_of("values", parse(text)) if "NaN" in text or "Infinity" in text else []
    cases_key = spelling_in("eval_cases", loaded.document.value)
    for index, stored in enumerate(loaded.cases if used is not None else ()):
        of_case = problems_of("scored case", stored.model(), set_id, used)
        unlocated += [replace(problem, path=(cases_key, index, *problem.path)) for problem in of_case]
    return problems + locate(unlocated, text, str(file)), set_id


@NOT_AN_EVAL_SET.checks("search")
def _no_sets(empty: Sequence[Path], skipped: Sequence[Skipped]) -> Iterator[Finding]:
    yield from (((), "has no eval sets", str(path)) for path in empty)
    yield from (((), f"{file.reason}; rename it", str(file.path)) for file in skipped if file.is_set)


@NOT_RUN.checks("search")
def _skipped_files(_: Sequence[Path], skipped: Sequence[Skipped]) -> Iterator[Finding]:
    yield from (((), file.reason, str(file.path)) for file in skipped if not file.is_set)


@DUPLICATE_SET_ID.checks("set ids")
def _shared_ids(set_ids: Sequence[tuple[Path, str]]) -> Iterator[Finding]:
    """Sets that an agent has under one id, by which configs and the command line name them.

    An agent has the sets beside the agents of its project as well.
    """
    earlier: dict[str, list[tuple[Path, Path | None, Path | None]]] = {}
    for file, set_id in set_ids:
        project = project_root(file.parent)
        folders = [
            parent for parent in file.absolute().parents if project is None or parent.is_relative_to(project)
        ]
        agent = next(filter(is_agent, folders), None)
        for first, other_agent, other_project in earlier.setdefault(set_id, []):
            is_shared = project == other_project and (agent == other_agent or None in (agent, other_agent))
            if is_shared and first.resolve() != file.resolve():
                message = f"{set_id!r} is also the id of {first}; an agent's set ids must be unique"
                yield ("eval_set_id",), message, str(file)
                break
        earlier[set_id].append((file, agent, project))


@NEVER_PASSES.checks("scored case")
def _never_passes(case: EvalCase, set_id: str, used: ConfigInUse) -> Iterator[Finding]:
    turns, config = case.conversation or [], used.config
    modes = [config.turn_mode(set_id, case.eval_id, number) for number in range(len(turns))]
    context = {number for number, mode in enumerate(modes) if mode == "context"}
    metrics = {metric.metric_name for metric in config.metrics()}
    required = metrics - {*config.evaltui.optional}
    if turns and len(context) == len(turns) and (required or not case.final_session_state):
        yield (), "never passes: all turns are context; nothing to score"
    elif turns and all(modes):
        of_calls = {name for name in metrics & METRICS.keys() if METRICS[name].subject == "Calls"}
        others = metrics - of_calls or case.final_session_state or config.answer_rules(set_id, case.eval_id)
        if not others:
            yield (), "never passes: all turns are skip or context; no calls to score"
    # Where there is no config, who expects no answer may mean to give one without that metric.
    unscored = {number for number, turn in enumerate(turns) if used.defaulted and turn.final_response is None}
    if reason := never_passes(case, config, context | unscored):
        yield (), reason


@NOT_FINITE.checks("values")
def _not_finite(data: Any) -> Iterator[Finding]:
    """The numbers that Python's reader accepts, and other readers of JSON refuse."""
    for path, value in values_in(data):
        if isinstance(value, float) and not isfinite(value):
            yield path, f"{json.dumps(value)} is not JSON, and no value of an agent equals it"


@dataclass(frozen=True)
class MendedFile:
    """A file that can be mended."""

    source: Source
    """The file before the changes."""
    text: str
    """The mended text."""
    mends: tuple[Problem, ...]
    """A problem for each mended place, with the change as its message."""


def mended_files(paths: Sequence[str | Path]) -> Iterator[MendedFile]:
    """The files that `lint` checks and that can be mended."""
    for path in files_to_lint(paths):
        if (file := mended_file(path)) is not None:
            yield file


def mended_file(path: Path) -> MendedFile | None:
    """A file with mended problems; None for a file without any, and for an unreadable one."""
    import_module(_MENDS)
    try:
        source = read_source(path)
    except (OSError, EvalSetError):
        return None
    text, removals = source.text, tuple[Problem, ...]()
    if isinstance(parse(text), Problem):
        text, removals = without_comments(text)
    data = parse(text)
    if isinstance(data, Problem) or file_kind(data) is not None:
        return None
    removed = tuple(replace(removal, file=str(path)) for removal in removals)
    # Edits would not leave both of two members with one key.
    if duplicate_keys(text):
        return MendedFile(source, text, removed) if removed else None
    document = JsonDocument(text)
    data, mends = copy_of(document.value), list[Problem]()
    # A mend may make place for others.
    while isinstance(data, dict) and (
        more := mend("config" if is_config_by_content(path, text) else "set", data)
    ):
        mends += more
    located = (*removed, *locate(mends, text, str(path)))
    return MendedFile(source, document.edited(edits_of(data)).text, located) if located else None
