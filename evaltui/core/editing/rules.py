"""The rules for arguments in a config, without its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaltui.core.editing.json_paths import Changes, dicts, list_at, value_at
from evaltui.core.editing.references import RULES, CaseRef, append_to_block, remove_from_block
from evaltui.core.jsondoc.edits import Edit, EditError, Put, Remove, alike
from evaltui.core.model.arg_path import parse_arg_path
from evaltui.core.model.arg_rule import ArgRule
from evaltui.core.model.model_errors import validate_model

Rule = Mapping[str, Any]


def new_rule(tool: str, arg: str, match: Any, case: CaseRef | None = None) -> dict[str, Any]:
    """A rule as it is written in the config: for a case, `(set id, eval id)`, or for every one."""
    rule = {"tool": tool, "arg": arg, "match": match}
    return rule if case is None else rule | {"set": case[0], "case": case[1]}


def put_rule(config: Any, rule: Rule) -> Changes:
    """Add a rule at the end, or where one for the same argument and cases is, change what that one says.

    Without a config file, give the data of a new one. Raises EditError for what is no rule.
    """
    _check(rule)
    here = [index for index, one in dicts(list_at(config, RULES)) if _place(one) == _place(rule)]
    if not here:
        return Changes([], append_to_block(config, "rules", [dict(rule)]))
    edits = _changed(config, here[-1], rule)
    # Of several the last one counts; the others say nothing and would come to life when it is removed.
    return Changes([], edits + [Remove((*RULES, index)) for index in reversed(here[:-1])])


def replace_rule(config: Any, index: int, rule: Rule) -> Changes:
    """Change a rule where it stands. Raises EditError for what is no rule, and where there is none."""
    _check(rule)
    return Changes([], _changed(config, index, rule))


def remove_rule(config: Any, index: int) -> Changes:
    """Take a rule out; the list goes with its last one. Raises EditError where there is none."""
    _at(config, index)
    return Changes([], remove_from_block(config, "rules", [index]))


def _changed(config: Any, index: int, rule: Rule) -> list[Edit]:
    """What is the same in both stays as it is written."""
    before = _at(config, index)
    put = [
        Put((*RULES, index, key), value)
        for key, value in rule.items()
        if key not in before or not alike(before[key], value)
    ]
    return [*put, *(Remove((*RULES, index, key)) for key in before if key not in rule)]


def _at(config: Any, index: int) -> dict[str, Any]:
    rule = value_at(config, (*RULES, index))
    if not isinstance(rule, dict):
        raise EditError(f"this config has no rule {index + 1}")
    return rule


def _check(rule: Rule) -> None:
    model, problems = validate_model(ArgRule, dict(rule))
    if model is None:
        raise EditError(f"this is no rule: {problems[0]}")


def _place(rule: Rule) -> tuple[Any, ...]:
    """What a rule is for: two that say the same place in other words are for the same."""
    arg = rule.get("arg")
    try:
        path: Any = parse_arg_path(arg) if isinstance(arg, str) else arg
    except ValueError:
        path = arg
    return rule.get("tool"), path, rule.get("set"), rule.get("case")
