"""References from a config to cases and turns: updated when these change, checked by lint."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from evaltui.core.model.arg_rule import ANY_INDEX, ArgPath, parse_arg_path
from evaltui.core.model.json_values import dicts, list_at, value_at
from evaltui.core.model.modes import TurnMode
from evaltui.core.model.problems import JsonPath, LintRule, Problem
from evaltui.core.model.regexes import is_slow
from evaltui.documents.values import append, remove
from evaltui.text.figures import counted
from evaltui.text.values import did_you_mean

BLOCK: JsonPath = ("evaltui",)
TURNS: JsonPath = ("evaltui", "turns")
RULES: JsonPath = ("evaltui", "rules")
TAGS: JsonPath = ("evaltui", "tags")

# Set id, then eval id.
CaseRef = tuple[str, str]
# The new number of a turn, None for one that is gone.
Renumbering = Callable[[int], int | None]
Entry = Mapping[str, Any]
ArgumentsByTool = Mapping[str, Sequence[Any]]
BlockList = Literal["turns", "rules", "tags"]
_OfCase = TypeVar("_OfCase")
_LISTS: tuple[BlockList, ...] = ("turns", "rules", "tags")


@dataclass(frozen=True)
class CopiedReferences:
    """The marks, rules and tags that copies of cases need."""

    turns: list[Entry] = field(default_factory=list)
    rules: list[Entry] = field(default_factory=list)
    tags: list[Entry] = field(default_factory=list)


@dataclass(frozen=True)
class References:
    """The marks, rules and tags of a config, with the methods that keep them true."""

    config: Any
    """The parsed JSON of the config, None where there is no file."""

    def entries(self, name: BlockList) -> Iterator[tuple[int, dict[str, Any]]]:
        """The entries of a list of the `evaltui` block, each with its index."""
        return dicts(list_at(self.config, (*BLOCK, name)))

    # Marks on turns

    def turn_mode(self, case: CaseRef, turn: int) -> TurnMode | None:
        """The mark on a turn, the last one given for it."""
        marks = self._marks_of(case, turn)
        return marks[-1][1].get("mode") if marks else None

    def mark_turn(self, case: CaseRef, turn: int, mode: TurnMode) -> None:
        """Gives a turn this mark in place of any other."""
        if not (marks := self._marks_of(case, turn)):
            self.mark_turns(case, {turn: mode})
            return
        marks[-1][1]["mode"] = mode
        self.remove_entries("turns", [index for index, _ in marks[:-1]])

    def mark_turns(self, case: CaseRef, modes: Mapping[int, TurnMode]) -> None:
        """Gives the turns of a new case their marks."""
        names = {"set": case[0], "case": case[1]}
        self.append_entries("turns", [{**names, "turn": turn, "mode": mode} for turn, mode in modes.items()])

    def unmark_turn(self, case: CaseRef, turn: int, mode: TurnMode) -> None:
        """Takes the marks of one mode from a turn."""
        marks = self._marks_of(case, turn)
        self.remove_entries("turns", [index for index, mark in marks if mark.get("mode") == mode])

    def renumber_turns(self, case: CaseRef, now: Renumbering) -> None:
        """Renumbers the marks of a case after its turns have moved."""
        gone: list[int] = []
        for index, mark in self._marks_of(case):
            if isinstance(turn := mark.get("turn"), int):
                mark["turn"] = now(turn)
                if mark["turn"] is None:
                    gone.append(index)
        self.remove_entries("turns", gone)

    def _marks_of(self, case: CaseRef, turn: int | None = None) -> list[tuple[int, dict[str, Any]]]:
        """The marks of a case, or of one of its turns, each with its index."""
        return [
            (index, mark)
            for index, mark in self.entries("turns")
            if (mark.get("set"), mark.get("case")) == case
            and (turn is None or (mark.get("turn") == turn and not isinstance(mark.get("turn"), bool)))
        ]

    # Tags

    def change_tags(self, cases: Sequence[CaseRef], added: Sequence[str], removed: Collection[str]) -> None:
        """Adds and removes tags of cases."""
        of_case: dict[tuple[Any, Any], list[tuple[int, dict[str, Any]]]] = {}
        for index, entry in self.entries("tags"):
            of_case.setdefault((entry.get("set"), entry.get("case")), []).append((index, entry))
        new: list[Entry] = []
        gone: list[int] = []
        for case in cases:
            entries = of_case.get(case, [])
            current = [
                tag for _, entry in entries for tag in list_at(entry, ("tags",)) if isinstance(tag, str)
            ]
            changed = [tag for tag in dict.fromkeys([*current, *added]) if tag not in removed]
            if changed == current:
                continue
            if entries and changed:
                entries[0][1]["tags"] = changed
            elif changed:
                new.append({"set": case[0], "case": case[1], "tags": changed})
            gone += [index for index, _ in entries[bool(changed) :]]
        self.append_entries("tags", new)
        self.remove_entries("tags", gone)

    def _tags_of(self, case: CaseRef) -> list[tuple[int, dict[str, Any]]]:
        return [
            (index, entry)
            for index, entry in self.entries("tags")
            if (entry.get("set"), entry.get("case")) == case
        ]

    # Cases and sets that are renamed, moved, copied or deleted

    def rename_set(self, old: str, new: str) -> None:
        for _, _, entry in self._every_entry():
            if entry.get("set") == old:
                entry["set"] = new

    def move_cases(self, pairs: Sequence[tuple[CaseRef, CaseRef]]) -> None:
        """Follows cases that got another id or set in this config, given as `(before, after)` pairs."""
        pinned = [
            {**rule, "set": new[0], "case": new[1]}
            for old, new in pairs
            if old[1] != new[1]
            for rule in self._rules_of_any_set(old)
        ]
        after = dict(pairs)
        for _, _, entry in self._every_entry():
            owner, case = entry.get("set"), entry.get("case")
            if isinstance(owner, str) and isinstance(case, str) and (owner, case) in after:
                entry["set"], entry["case"] = after[owner, case]
        self.append_entries("rules", pinned)

    def remove_cases(self, set_id: str, eval_ids: Collection[str]) -> None:
        """Removes the entries that name these cases of the set."""
        gone: dict[BlockList, list[int]] = {name: [] for name in _LISTS}
        for name, index, entry in self._every_entry():
            if entry.get("set") == set_id and entry.get("case") in eval_ids:
                gone[name].append(index)
        for name, indices in gone.items():
            self.remove_entries(name, indices)

    def copied(
        self, pairs: Sequence[tuple[CaseRef, CaseRef]], *, elsewhere: bool = False
    ) -> CopiedReferences:
        """The marks, rules and tags that copies of cases need, from the `(case, its copy)` pairs.

        With `elsewhere` the copies have another config: a rule without a set has to be brought along then,
        while in the same config it holds for a copy of the same name as it is.
        """
        copies = CopiedReferences()
        for old, new in pairs:
            renamed = {"set": new[0], "case": new[1]}
            rules = self._rules_of(*old)
            if old[1] != new[1] or elsewhere:
                rules += self._rules_of_any_set(old)
            copies.turns.extend({**mark, **renamed} for _, mark in self._marks_of(old))
            copies.rules.extend({**rule, **renamed} for rule in rules)
            copies.tags.extend({**entry, **renamed} for _, entry in self._tags_of(old))
        return copies

    def add_copied(self, copies: CopiedReferences) -> None:
        """Adds marks, rules and tags at the end of their lists, which are made where they are missing."""
        for name in _LISTS:
            self.append_entries(name, getattr(copies, name))

    def _every_entry(self) -> list[tuple[BlockList, int, dict[str, Any]]]:
        return [(name, index, entry) for name in _LISTS for index, entry in self.entries(name)]

    def _rules_of(self, set_id: str | None, eval_id: str) -> list[dict[str, Any]]:
        names = set_id, eval_id
        return [rule for _, rule in self.entries("rules") if (rule.get("set"), rule.get("case")) == names]

    def _rules_of_any_set(self, case: CaseRef) -> list[dict[str, Any]]:
        """The rules that name the case alone, but for what one that names its set, too, says otherwise."""
        overridden = {(rule.get("tool"), rule.get("arg")) for rule in self._rules_of(*case)}
        rules = self._rules_of(None, case[1])
        return [rule for rule in rules if (rule.get("tool"), rule.get("arg")) not in overridden]

    # The lists of the block

    def append_entries(self, name: BlockList, entries: Sequence[Entry]) -> None:
        """Adds entries to a list of the `evaltui` block, both made where they are missing."""
        for entry in entries:
            append(self.config, (*BLOCK, name), entry)

    def remove_entries(self, name: BlockList, indices: Sequence[int]) -> None:
        """Takes entries out of a list of the `evaltui` block; the list goes with its last entry."""
        path: JsonPath = (*BLOCK, name)
        for index in sorted(indices, reverse=True):
            remove(self.config, (*path, index))
        if indices and not list_at(self.config, path):
            remove(self.config, path)


def dangling(config: Any, sets: Mapping[str, Mapping[str, int | None]]) -> Iterator[Problem]:
    """Warnings for marks, rules and tags that name what is not there.

    `sets` are those that the config is for: their cases by id, each with its number of turns, None where
    a user is simulated.
    """
    for name in _LISTS:
        for index, entry in dicts(list_at(config, (*BLOCK, name))):
            yield from _dangling(entry, (*BLOCK, name, index), sets)


def idle_rules(config: Any, tools: Mapping[str, Mapping[str, Collection[str]]]) -> Iterator[Problem]:
    """Warnings for rules of tools that no case expects a call of, and for rules that another one hides.

    `tools` are the tools that calls are expected of, by set and case. Where a rule names a set or a case that
    is not there, `dangling` says so.
    """
    hidden_by: dict[tuple[Any, ...], int] = {}
    for index, rule in reversed(list(dicts(list_at(config, RULES)))):
        scope = tuple(rule.get(key) for key in ("tool", "arg", "set", "case"))
        if (
            all(isinstance(name, str | None) for name in scope)
            and hidden_by.setdefault(scope, index) != index
        ):
            yield Problem.warning(
                (*RULES, index),
                f"never applies: rules[{hidden_by[scope]}] covers the same argument",
                rule=LintRule.HIDDEN_RULE,
            )
        tool, in_scope = rule.get("tool"), _in_scope(rule, tools)
        called_tools = {name for names in in_scope for name in names}
        if isinstance(tool, str) and in_scope and tool not in called_tools:
            yield Problem.warning(
                (*RULES, index, "tool"),
                f"no expected call of {tool!r}{did_you_mean(tool, called_tools)}",
                rule=LintRule.DANGLING_REFERENCE,
            )


def idle_arguments(config: Any, calls: Mapping[str, Mapping[str, ArgumentsByTool]]) -> Iterator[Problem]:
    """Warnings for rules of arguments that no expected call of their tool has.

    An argument that is ignored may be one that only the agent gives: of those only likely mistakes.
    """
    for index, rule in dicts(list_at(config, RULES)):
        tool, path = rule.get("tool"), rule.get("arg")
        if not isinstance(tool, str) or not isinstance(path, str):
            continue
        of_tool = [args for tools in _in_scope(rule, calls) for args in tools.get(tool, ())]
        steps = parse_arg_path(path)
        if not of_tool or any(_has(args, steps) for args in of_tool):
            continue
        names = {name for args in of_tool if isinstance(args, dict) for name in args}
        hint = did_you_mean(str(steps[0]), names - {steps[0]})
        if hint or rule.get("match") != "ignore":
            yield Problem.warning(
                (*RULES, index, "arg"),
                f"no expected call of {tool} has {path!r}{hint}",
                rule=LintRule.DANGLING_REFERENCE,
            )


def idle_tools(config: Any, tools: Mapping[str, Mapping[str, Collection[str]]]) -> Iterator[Problem]:
    """Warnings for modes of tools that no case expects a call of."""
    called_tools = {name for names in _in_scope({}, tools) for name in names}
    modes = value_at(config, (*BLOCK, "tools"))
    for tool in modes if isinstance(modes, dict) and called_tools else ():
        if tool not in called_tools:
            hint = did_you_mean(tool, called_tools)
            yield Problem.warning(
                (*BLOCK, "tools", tool),
                f"no expected call of {tool!r}{hint}",
                rule=LintRule.DANGLING_REFERENCE,
            )


def _in_scope(rule: Entry, sets: Mapping[str, Mapping[str, _OfCase]]) -> list[_OfCase]:
    """The values of the cases in the scope of a rule."""
    return [
        value
        for set_id, cases in sets.items()
        if rule.get("set") in (None, set_id)
        for eval_id, value in cases.items()
        if rule.get("case") in (None, eval_id)
    ]


def _has(value: Any, steps: ArgPath) -> bool:
    """Whether there is something at a path in arguments."""
    if not steps:
        return True
    first, rest = steps[0], steps[1:]
    if first is ANY_INDEX:
        return isinstance(value, list) and any(_has(item, rest) for item in value)
    if isinstance(value, dict):
        return first in value and _has(value[first], rest)
    return (
        isinstance(value, list) and isinstance(first, int) and first < len(value) and _has(value[first], rest)
    )


def slow_rules(config: Any) -> Iterator[Problem]:
    """Warnings for rules whose regex takes very long on texts that it does not match."""
    for index, rule in dicts(list_at(config, RULES)):
        match = rule.get("match")
        if isinstance(match, dict) and isinstance(regex := match.get("regex"), str) and is_slow(regex):
            yield Problem.warning(
                (*RULES, index, "match", "regex"),
                "can be very slow; avoid nested repeats",
                rule=LintRule.SLOW_REGEX,
            )


def _dangling(
    entry: Mapping[str, Any], path: JsonPath, sets: Mapping[str, Mapping[str, int | None]]
) -> Iterator[Problem]:
    set_id, case, turn = entry.get("set"), entry.get("case"), entry.get("turn")
    if isinstance(set_id, str) and set_id not in sets:
        hint = did_you_mean(set_id, sets)
        yield Problem.warning(
            (*path, "set"),
            f"no eval set {set_id!r} beside this config{hint}",
            rule=LintRule.DANGLING_REFERENCE,
        )
        return
    if not isinstance(case, str):
        return
    every = {eval_id: count for own in sets.values() for eval_id, count in own.items()}
    cases = sets[set_id] if isinstance(set_id, str) else every
    if case not in cases:
        where = set_id if isinstance(set_id, str) else "the eval sets beside this config"
        yield Problem.warning(
            (*path, "case"),
            f"no case {case!r} in {where}{did_you_mean(case, cases)}",
            rule=LintRule.DANGLING_REFERENCE,
        )
    elif isinstance(turn, int) and (count := cases[case]) is not None and turn >= count:
        has = f"{case} has {counted(count, 'turn')}"
        yield Problem.warning(
            (*path, "turn"), f"no turn {turn}: {has}, counted from 0", rule=LintRule.DANGLING_REFERENCE
        )
