"""References of a config's `evaltui` block that name nothing in the eval sets it scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from evaltui.core.model.case_id import expected_calls
from evaltui.core.model.config import EvaltuiBlock
from evaltui.core.model.problems import Problem
from evaltui.core.model.stored_cases import StoredCase
from evaltui.documents.editing.references import dangling, idle_arguments, idle_rules, idle_tools, slow_rules
from evaltui.documents.json_text import locate, parse, read_text
from evaltui.files.configs import config_file
from evaltui.files.eval_set_file import read_eval_set_file
from evaltui.files.folders import json_files, json_files_below
from evaltui.files.workspace import is_set


def reference_problems(
    config: Path, block: EvaltuiBlock, read: Mapping[Path, tuple[str, Sequence[StoredCase]]]
) -> list[Problem]:
    """Warnings for sets, cases, turns, tools and arguments that the block of a config names and that are not
    there. `read` are sets that were read already, by file: their ids and cases.
    """
    if not (block.turns or block.rules or block.tags or block.tools):
        return []
    try:
        text = read_text(config)
    except OSError:
        return []
    if not isinstance(text, str):
        return []
    data, sets, unread = parse(text), dict(read.values()), False
    for file in _neighbours(config):
        if file not in read:
            other = read_eval_set_file(file, "", config.parent)
            sets[other.eval_set_id], unread = other.cases, unread or other.format is None
    turns = {name: {case.eval_id: case.outline.turns for case in cases} for name, cases in sets.items()}
    problems = [problem for problem in dangling(data, turns) if not (unread and problem.path[-1] == "set")]
    if not unread and (block.rules or block.tools):
        calls = {
            name: {case.eval_id: expected_calls(case.data()) for case in cases}
            for name, cases in sets.items()
        }
        problems += [*idle_rules(data, calls), *idle_arguments(data, calls), *idle_tools(data, calls)]
    return locate([*problems, *slow_rules(data)], text, str(config))


def _neighbours(config: Path) -> list[Path]:
    """The sets beside a config, and those below that it scores."""
    below = {file for file in json_files_below([config.parent]) if config_file(file) == config}
    beside = set(json_files(config.parent))
    return [file for file in sorted(below | beside) if is_set(file)]
