"""Every problem of eval sets and configs, before anything is run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from evaltui.core.config import TurnMark
from evaltui.core.problems import JsonPath, Problem, Severity
from evaltui.core.wording import did_you_mean
from evaltui.files.configs import read_config
from evaltui.files.eval_sets import SUFFIXES, read_eval_set
from evaltui.files.folders import CONFIG_NAME, is_agent
from evaltui.files.json_text import locate, parse, read_text
from evaltui.files.set_entry import SetEntry, read_entry
from evaltui.files.workspace import open_workspace, sets_below


def lint(paths: Sequence[str | Path]) -> list[Problem]:
    """The problems of files, and of the eval sets and their configs in folders, by file and line.

    A folder that is an agent is searched as a workspace, any other one to the bottom.
    """
    files: dict[Path, None] = {}
    problems: list[Problem] = []
    for path in map(Path, paths):
        found = _files_in(path) if path.is_dir() else [path]
        files |= dict.fromkeys(found)
        if not found:
            problems.append(Problem(Severity.ERROR, (), "holds no eval sets", file=str(path)))
    for file in files:
        of_file = _lint_config(file) if _is_config(file) else read_eval_set(file).problems
        problems += sorted(of_file, key=lambda problem: problem.line or 0)
    return problems


def format_problem(problem: Problem) -> str:
    """`path/to/file.json: error: eval_cases[2]: missing; line 41`"""
    sentence = f"{problem.severity}: {problem}"
    return f"{problem.file}: {sentence}" if problem.file else sentence


def _files_in(folder: Path) -> list[Path]:
    """The sets of a folder and the configs beside them."""
    sets = open_workspace(folder).sets if is_agent(folder) else sets_below(folder)
    folders = dict.fromkeys([folder, *(entry.path.parent for entry in sets)])
    configs = [one / CONFIG_NAME for one in folders if (one / CONFIG_NAME).is_file()]
    return [*(entry.path for entry in sets), *configs]


def _is_config(file: Path) -> bool:
    """By name, else by what is in it: `--config` takes a file of any name."""
    if file.name == CONFIG_NAME:
        return True
    if file.name.endswith(SUFFIXES):
        return False
    try:
        text = read_text(file)
    except OSError:
        return False
    data = parse(text) if isinstance(text, str) else None
    return isinstance(data, dict) and "criteria" in data and "eval_set_id" not in data


def _lint_config(file: Path) -> list[Problem]:
    config, problems = read_config(file)
    if config is None or not config.evaltui.turns:
        return problems
    text = read_text(file)
    dangling = list(_dangling(config.evaltui.turns, _neighbours(file)))
    return problems + locate(dangling, text if isinstance(text, str) else "", str(file))


def _neighbours(config: Path) -> list[SetEntry]:
    files = sorted(file for file in config.parent.iterdir() if file.name.endswith(SUFFIXES))
    return [read_entry(file, "") for file in files]


def _dangling(marks: Iterable[TurnMark], sets: Sequence[SetEntry]) -> Iterator[Problem]:
    """Marks on turns that no set beside the config has."""
    turns = {(entry.eval_set_id, case.eval_id): case.turns for entry in sets for case in entry.cases}
    unread = any(entry.format is None for entry in sets)
    set_ids = {entry.eval_set_id for entry in sets}
    for index, mark in enumerate(marks):
        path: JsonPath = ("evaltui", "turns", index)
        if mark.set not in set_ids:
            if not unread:
                hint = did_you_mean(mark.set, set_ids)
                yield _warning((*path, "set"), f"no eval set {mark.set!r} beside this config{hint}")
        elif (mark.set, mark.case) not in turns:
            hint = did_you_mean(mark.case, [case for owner, case in turns if owner == mark.set])
            yield _warning((*path, "case"), f"no case {mark.case!r} in {mark.set}{hint}")
        elif (count := turns[mark.set, mark.case]) is not None and mark.turn >= count:
            number = f"{count} turn{'' if count == 1 else 's'}"
            yield _warning((*path, "turn"), f"no turn {mark.turn}: {mark.case} has {number}, counted from 0")


def _warning(path: JsonPath, message: str) -> Problem:
    return Problem(Severity.WARNING, path, message)
