"""References of a config's `evaltui` block that name nothing in the eval sets it scores, and idle rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaltui.core.matching.rules import reached_places
from evaltui.core.model.arg_rule import parse_arg_path
from evaltui.core.model.case_id import expected_calls
from evaltui.core.model.config import EvaltuiBlock
from evaltui.core.model.json_values import indexed_objects, list_at, value_at
from evaltui.core.model.problems import (
    DANGLING_REFERENCE,
    IGNORED_VALUE,
    Finding,
    JsonPath,
    LintRule,
    Problem,
    problems_of,
)
from evaltui.core.model.regexes import is_slow
from evaltui.core.model.stored_cases import StoredCase
from evaltui.documents.editing.references import BLOCK, BLOCK_LISTS, RULES, Entry
from evaltui.documents.json_text import text_or_problem
from evaltui.project.configs import config_file, located_in_config
from evaltui.project.eval_set_file import read_eval_set_file
from evaltui.project.eval_sets import data_of, set_name
from evaltui.project.folders import json_files, json_files_below
from evaltui.project.workspace import is_set
from evaltui.text.figures import counted
from evaltui.text.values import did_you_mean, nearest_word, visible

HIDDEN_RULE = LintRule("hidden-rule", "A rule never applies", blocks=False)
DANGLING_CHECK = LintRule(
    "dangling-check", "A check of responses names a set or case that is not there", blocks=True
)
SLOW_REGEX = LintRule("slow-regex", "A regular expression can be very slow", blocks=False)

CallsByTool = Mapping[str, Sequence[Any]]
"""The arguments of the expected calls of each tool."""


@dataclass(frozen=True)
class ScoredSets:
    """The sets that a config scores, by id, with their cases by id."""

    turns: Mapping[str, Mapping[str, int | None]]
    """The number of turns of each case; None where a user is simulated."""
    calls: Mapping[str, Mapping[str, CallsByTool]]
    is_complete: bool = True
    """False where a set is unreadable, so that it may have a name that seems to be missing."""
    are_beside: bool = True
    """False where a set is elsewhere, so that further ones may be."""

    def in_scope(self, rule: Entry) -> list[CallsByTool]:
        """The calls of the cases in the scope of a rule; none where a set cannot be read."""
        return [
            calls
            for set_id, cases in (self.calls if self.is_complete else {}).items()
            if rule.get("set") in (None, set_id)
            for eval_id, calls in cases.items()
            if rule.get("case") in (None, eval_id)
        ]


def reference_problems(
    config: Path | None,
    block: EvaltuiBlock,
    read: Mapping[Path | str, tuple[str, Sequence[StoredCase]]],
) -> list[Problem]:
    """Problems of the references of a config's block, and of its rules.

    `config` is its file; None for a config from Python code, which may be for further sets. `read` are sets
    that were read already, by file or id: their ids and cases.
    """
    if not (block.tools or any(getattr(block, name) for name in BLOCK_LISTS)):
        return []
    text = "" if config is None else text_or_problem(config)
    if isinstance(text, Problem):
        return []
    # Sets may have the same id.
    cases: dict[str, list[StoredCase]] = {}
    for set_id, of_set in read.values():
        cases.setdefault(set_id, []).extend(of_set)
    # Data of a set from Python code may be a part of it.
    is_complete = config is not None and all(isinstance(source, Path) for source in read)
    neighbours = [] if config is None else _neighbours(config)
    for file in neighbours:
        if file not in read:
            other = read_eval_set_file(file, "", file.parent)
            cases.setdefault(other.eval_set_id, []).extend(other.cases)
            is_complete = is_complete and other.format is not None
    sets = ScoredSets(
        {name: {case.eval_id: case.outline.turns for case in of_set} for name, of_set in cases.items()},
        {
            name: {case.eval_id: expected_calls(case.data()) for case in of_set}
            for name, of_set in cases.items()
            if is_complete and (block.rules or block.tools)
        },
        is_complete,
        {*read} <= {*neighbours},
    )
    if config is None:
        return problems_of("references", {BLOCK[0]: block.model_dump(mode="json")}, sets)
    return located_in_config(config, text, problems_of("references", data_of(config, text), sets))


def left_behind(old: Path, old_id: str, new: Path) -> list[Problem]:
    """The config of a set, or its entries, that do not hold for a copy of the set in another file."""
    config = config_file(old)
    text = text_or_problem(config)
    data = None if isinstance(text, Problem) else data_of(config, text)
    if isinstance(text, Problem) or isinstance(data, Problem):
        return []
    if (other := config_file(new)) != config:
        scores = f"{other} does" if other.exists() else "ADK's defaults do"
        return [IGNORED_VALUE.at((), f"scores {old.name}, but not {new.name}: {scores}", str(config))]
    problems = [
        Problem.warning((*BLOCK, name, index, "set"), f"not for {new.name}, whose id is {set_name(new)!r}")
        for name in BLOCK_LISTS
        for index, entry in indexed_objects(list_at(data, (*BLOCK, name)))
        if entry.get("set") == old_id != set_name(new)
    ]
    return located_in_config(config, text, problems)


def _neighbours(config: Path) -> list[Path]:
    """The sets that a config scores, beside it and below."""
    below = {file for file in json_files_below([config.parent]) if config_file(file) == config}
    beside = set(json_files(config.parent))
    return [file for file in sorted(below | beside) if is_set(file)]


@DANGLING_REFERENCE.checks("references")
def _missing(config: Any, sets: ScoredSets) -> Iterator[Finding]:
    """Marks, rules and tags that name a set, case or turn that is not there."""
    for name in BLOCK_LISTS:
        for index, entry in indexed_objects(list_at(config, (*BLOCK, name))):
            path: JsonPath = (*BLOCK, name, index)
            if not (name == "answers" and _misspelt(entry, path, sets)):
                yield from _missing_names(entry, path, sets)


@DANGLING_CHECK.checks("references")
def _checks_of_nothing(config: Any, sets: ScoredSets) -> Iterator[Finding]:
    """Checks of responses that no response gets, since a name in them is another one."""
    for index, entry in indexed_objects(list_at(config, (*BLOCK, "answers"))):
        yield from _misspelt(entry, (*BLOCK, "answers", index), sets)


def _misspelt(entry: Entry, path: JsonPath, sets: ScoredSets) -> list[Finding]:
    """An unknown case of a set that a config scores, and a set that resembles one; other sets may be
    elsewhere."""
    set_id = entry.get("set")
    if set_id in sets.turns or not isinstance(set_id, str):
        findings = _missing_names(entry, path, sets) if sets.is_complete and sets.turns else ()
        return [finding for finding in findings if finding[0][-1] == "case"]
    spellings = {name.casefold(): name for name in sets.turns}
    near = spellings.get(set_name(Path(set_id)).casefold())
    near = near or (nearest_word(set_id, sets.turns) if sets.are_beside else None)
    return [((*path, "set"), f"no eval set {set_id!r}. Did you mean {visible(near)}?")] if near else []


def _missing_names(entry: Entry, path: JsonPath, sets: ScoredSets) -> Iterator[Finding]:
    set_id, case, turn = entry.get("set"), entry.get("case"), entry.get("turn")
    if isinstance(set_id, str) and set_id not in sets.turns:
        if sets.is_complete:
            yield (
                (*path, "set"),
                f"no eval set {set_id!r} beside this config{did_you_mean(set_id, sets.turns)}",
            )
        return
    if not isinstance(case, str):
        return
    every = {eval_id: count for own in sets.turns.values() for eval_id, count in own.items()}
    cases = sets.turns[set_id] if isinstance(set_id, str) else every
    if case not in cases:
        where = set_id if isinstance(set_id, str) else "the eval sets beside this config"
        yield (*path, "case"), f"no case {case!r} in {where}{did_you_mean(case, cases)}"
    elif isinstance(turn, int) and (count := cases[case]) is not None and turn >= count:
        yield (*path, "turn"), f"no turn {turn}: {case} has {counted(count, 'turn')}, counted from 0"


@HIDDEN_RULE.checks("references")
def _hidden_rules(config: Any, _: ScoredSets) -> Iterator[Finding]:
    """Rules whose argument and scope a later one has."""
    hidden_by: dict[tuple[Any, ...], int] = {}
    for index, rule in reversed(list(indexed_objects(list_at(config, RULES)))):
        scope = tuple(rule.get(key) for key in ("tool", "arg", "set", "case"))
        is_valid = all(isinstance(name, str | None) for name in scope)
        if is_valid and hidden_by.setdefault(scope, index) != index:
            yield (*RULES, index), f"never applies: rules[{hidden_by[scope]}] covers the same argument"


@DANGLING_REFERENCE.checks("references")
def _idle_rules(config: Any, sets: ScoredSets) -> Iterator[Finding]:
    """Rules of tools that no case in their scope expects a call of."""
    for index, rule in reversed(list(indexed_objects(list_at(config, RULES)))):
        tool, in_scope = rule.get("tool"), sets.in_scope(rule)
        tools = {name for calls in in_scope for name in calls}
        if isinstance(tool, str) and in_scope and tool not in tools:
            yield (*RULES, index, "tool"), f"no expected call of {tool!r}{did_you_mean(tool, tools)}"


@DANGLING_REFERENCE.checks("references")
def _idle_arguments(config: Any, sets: ScoredSets) -> Iterator[Finding]:
    """Rules for arguments that no expected call of their tool has.

    An ignored argument may come only from the agent, so only likely misspellings of these count.
    """
    for index, rule in indexed_objects(list_at(config, RULES)):
        tool, path = rule.get("tool"), rule.get("arg")
        if not isinstance(tool, str) or not isinstance(path, str):
            continue
        of_tool = [args for calls in sets.in_scope(rule) for args in calls.get(tool, ())]
        steps = parse_arg_path(path)
        if not of_tool or any(True for args in of_tool for _ in reached_places(steps, args)):
            continue
        names = {name for args in of_tool if isinstance(args, dict) for name in args}
        hint = did_you_mean(str(steps[0]), names - {steps[0]})
        if hint or rule.get("match") != "ignore":
            yield (*RULES, index, "arg"), f"no expected call of {tool} has {path!r}{hint}"


@DANGLING_REFERENCE.checks("references")
def _idle_tools(config: Any, sets: ScoredSets) -> Iterator[Finding]:
    """Modes of tools that no case expects a call of."""
    tools = {name for calls in sets.in_scope({}) for name in calls}
    modes = value_at(config, (*BLOCK, "tools"))
    for tool in modes if isinstance(modes, dict) and tools else ():
        if tool not in tools:
            yield (*BLOCK, "tools", tool), f"no expected call of {tool!r}{did_you_mean(tool, tools)}"


@SLOW_REGEX.checks("references")
def _slow_rules(config: Any, _sets: ScoredSets) -> Iterator[Finding]:
    """Rules and checks of answers whose regex takes very long on texts that it does not match."""
    for name, owner in (("rules", ("match",)), ("answers", ())):
        for index, _ in indexed_objects(list_at(config, (*BLOCK, name))):
            path = (*BLOCK, name, index, *owner, "regex")
            if isinstance(regex := value_at(config, path), str) and is_slow(regex):
                yield path, "can be very slow; avoid nested repeats"
