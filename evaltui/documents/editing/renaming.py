"""A tool, an argument or an agent renamed in an eval set or a config."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evaltui.core.model.arg_rule import arg_path_text, parse_arg_path
from evaltui.core.model.json_values import indexed_objects, list_at, value_at
from evaltui.core.model.problems import JsonPath
from evaltui.core.model.renaming import (
    NameKind,
    NamePlace,
    Renaming,
    key_place,
    names_in,
    rename_places,
    renamed_text,
    value_place,
)
from evaltui.core.model.stored_cases import StoredCase
from evaltui.documents.editing.json_paths import cases_path, field_path
from evaltui.documents.editing.references import BLOCK, RULES

_CRITERIA: tuple[JsonPath, ...] = (("criteria",), (*BLOCK, "criteria"))
# The options of criteria that name a tool or an agent.
_OPTIONS: Mapping[str, NameKind] = {
    "tool": "tool",
    "tool_name": "tool",
    "toolName": "tool",
    "agent": "agent",
    "agent_name": "agent",
    "agentName": "agent",
}


def rename_in_set(data: Any, renaming: Renaming) -> Iterator[JsonPath]:
    """Renames in a copy of an eval set; yields the path of each place. Raises NameTakenError."""
    cases = cases_path(data)
    items = list_at(data, cases)
    for index, stored in enumerate(list.__iter__(items)):
        if isinstance(stored, StoredCase) and not renaming.is_in(stored.text):
            continue
        case, path = items[index], (*cases, index)
        yield from rename_places(names_in(case, path), renaming)
        yield from _rename_in_rubrics(case, path, renaming)
        conversation = field_path(case, (), "conversation")
        for number, turn in indexed_objects(list_at(case, conversation)):
            yield from _rename_in_rubrics(turn, (*path, *conversation, number), renaming)


def rename_in_config(data: Any, renaming: Renaming) -> Iterator[JsonPath]:
    """Renames in a copy of a config; yields the path of each place. Raises NameTakenError."""
    yield from rename_places(_names_in_config(data), renaming)
    for owner in _CRITERIA:
        criteria = value_at(data, owner)
        for name, criterion in criteria.items() if isinstance(criteria, dict) else ():
            yield from _rename_in_rubrics(criterion, (*owner, name), renaming)


def _names_in_config(data: Any) -> Iterator[NamePlace]:
    modes = value_at(data, (*BLOCK, "tools"))
    for name in list(modes) if isinstance(modes, dict) else ():
        path: JsonPath = (*BLOCK, "tools", name)
        yield NamePlace("tool", name, path, key_place(modes, name), others=modes.keys() - {name})
    yield from _names_in_rules(data)
    answers: JsonPath = (*BLOCK, "answers")
    for index, check in indexed_objects(list_at(data, answers)):
        if isinstance(check.get("agent"), str):
            yield NamePlace("agent", check["agent"], (*answers, index, "agent"), value_place(check, "agent"))
    for owner in _CRITERIA:
        criteria = value_at(data, owner)
        for name, criterion in criteria.items() if isinstance(criteria, dict) else ():
            for option, value in criterion.items() if isinstance(criterion, dict) else ():
                if option in _OPTIONS and isinstance(value, str):
                    kind = _OPTIONS[option]
                    path = (*owner, name, option)
                    yield NamePlace(kind, value, path, value_place(criterion, option))


def _names_in_rules(data: Any) -> Iterator[NamePlace]:
    rules = [rule for rule in indexed_objects(list_at(data, RULES)) if isinstance(rule[1].get("tool"), str)]
    arguments = [(index, rule, argument) for index, rule in rules if (argument := _argument(rule))]
    for index, rule in rules:
        others = {other["tool"] for _, other in rules} - {rule["tool"]}
        yield NamePlace(
            "tool", rule["tool"], (*RULES, index, "tool"), value_place(rule, "tool"), others=others
        )
    for index, rule, name in arguments:
        others = {other for _, row, other in arguments if row["tool"] == rule["tool"]} - {name}
        yield NamePlace("argument", name, (*RULES, index, "arg"), _path_place(rule), rule["tool"], others)


def _argument(rule: dict[str, Any]) -> str:
    """The argument that the path of a rule begins with; "" for a path of none."""
    try:
        steps = parse_arg_path(rule["arg"])
    except (KeyError, TypeError, ValueError):
        return ""
    return steps[0] if steps and isinstance(steps[0], str) else ""


def _path_place(rule: dict[str, Any]) -> Any:
    """Replaces the argument at the start of a rule's path; the rest of the path stays."""

    def put(name: str) -> None:
        old, path = _argument(rule), rule["arg"]
        if path.startswith(old):
            rule["arg"] = arg_path_text((name,)) + path.removeprefix(old)
        else:
            quote = path[1]
            plain = not set(name) & {quote, "\\"}
            head = f"[{quote}{name}{quote}]" if plain else arg_path_text((name,))
            rule["arg"] = head + path[path.index(f"{quote}]", 2) + 2 :]

    return put


def _rename_in_rubrics(owner: Any, path: JsonPath, renaming: Renaming) -> Iterator[JsonPath]:
    """Renames in the texts of rubrics."""
    for index, rubric in indexed_objects(list_at(owner, ("rubrics",))):
        at = field_path(rubric, field_path(rubric, (), "rubric_content"), "text_property")
        text = value_at(rubric, at)
        if isinstance(text, str) and (renamed := renamed_text(text, renaming)) != text:
            value_at(rubric, at[:-1])[at[-1]] = renamed
            yield (*path, "rubrics", index, *at)


def names_of(data: Any, *, is_config: bool) -> Iterator[NamePlace]:
    """The names in an eval set or config."""
    if is_config:
        yield from _names_in_config(data)
    else:
        for index, case in enumerate(list_at(data, cases_path(data))):
            yield from names_in(case, (index,))
