"""Marks and rules of a config that name what is not there, or that never matter."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from evaltui.core.editing.json_paths import dicts
from evaltui.core.editing.references import RULES
from evaltui.core.model.json_values import list_at
from evaltui.core.model.problems import JsonPath, Problem, Severity
from evaltui.core.model.regexes import is_slow
from evaltui.text.wording import did_you_mean


def dangling(config: Any, sets: Mapping[str, Mapping[str, int | None]]) -> Iterator[Problem]:
    """Warnings for marks and rules that name what is not there.

    `sets` are those that the config is for: their cases by id, each with its number of turns, None where
    a user is simulated.
    """
    for name in ("turns", "rules"):
        for index, entry in dicts(list_at(config, ("evaltui", name))):
            yield from _dangling(entry, ("evaltui", name, index), sets)


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
            yield _warning(
                (*RULES, index), f"never holds: rules[{hidden_by[scope]}] is for the same argument"
            )
        tool, set_id, case = rule.get("tool"), rule.get("set"), rule.get("case")
        in_scope = [
            names
            for one, cases in tools.items()
            if set_id in (None, one)
            for eval_id, names in cases.items()
            if case in (None, eval_id)
        ]
        known = {name for names in in_scope for name in names}
        if isinstance(tool, str) and in_scope and tool not in known:
            yield _warning(
                (*RULES, index, "tool"), f"no call of {tool!r} is expected{did_you_mean(tool, known)}"
            )


def slow_rules(config: Any) -> Iterator[Problem]:
    """Warnings for rules whose regex takes very long on texts that it does not match."""
    for index, rule in dicts(list_at(config, RULES)):
        match = rule.get("match")
        if isinstance(match, dict) and isinstance(regex := match.get("regex"), str) and is_slow(regex):
            yield _warning(
                (*RULES, index, "match", "regex"),
                "takes very long on some texts that do not match; write it without repeats inside repeats",
            )


def _dangling(
    entry: Mapping[str, Any], path: JsonPath, sets: Mapping[str, Mapping[str, int | None]]
) -> Iterator[Problem]:
    set_id, case, turn = entry.get("set"), entry.get("case"), entry.get("turn")
    if isinstance(set_id, str) and set_id not in sets:
        hint = did_you_mean(set_id, sets)
        yield _warning((*path, "set"), f"no eval set {set_id!r} beside this config{hint}")
        return
    if not isinstance(case, str):
        return
    every = {one: count for own in sets.values() for one, count in own.items()}
    cases = sets[set_id] if isinstance(set_id, str) else every
    if case not in cases:
        where = set_id if isinstance(set_id, str) else "the eval sets beside this config"
        yield _warning((*path, "case"), f"no case {case!r} in {where}{did_you_mean(case, cases)}")
    elif isinstance(turn, int) and (count := cases[case]) is not None and turn >= count:
        number = f"{count} turn{'' if count == 1 else 's'}"
        yield _warning((*path, "turn"), f"no turn {turn}: {case} has {number}, counted from 0")


def _warning(path: JsonPath, message: str) -> Problem:
    return Problem(Severity.WARNING, path, message)
