"""How the files that people edit are merged: which of their values by member, and which lists by entry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaltui.core.model.json_values import spelt
from evaltui.core.model.stored_cases import eval_ids_of


class UnmergeableError(Exception):
    """Why a version can only be taken as a whole."""


@dataclass(frozen=True)
class ByMember:
    """An object that is merged by member; `inner` says how, those not named there as a whole."""

    inner: Mapping[str, Shape] = field(default_factory=dict)


@dataclass(frozen=True)
class ByEntry:
    """A list whose entries are known by a name, whatever their place. `name` gives a name to each entry.

    It raises UnmergeableError for a list whose entries cannot be told apart.
    """

    name: Callable[[Sequence[Any]], list[str]]
    holds_cases: bool = False


Shape = ByMember | ByEntry


@dataclass(frozen=True)
class FileShape:
    """A kind of file. `empty` is the text of one without content, `requires` a list that it must have."""

    title: str
    root: ByMember
    empty: str
    requires: str | None = None

    def check(self, data: Any) -> None:
        """Raises UnmergeableError for what is no such file."""
        if not isinstance(data, dict):
            lacks = f"it has no list {self.requires}" if self.requires else "it is not an object"
            raise UnmergeableError(f"is not {self.title}: {lacks}")
        if self.requires and not isinstance(data.get(spelt(self.requires, data)), list):
            raise UnmergeableError(f"is not {self.title}: it has no list {self.requires}")


def _case_names(cases: Sequence[Any]) -> list[str]:
    names: dict[str, None] = {}
    for name in eval_ids_of(cases):
        if name is None:
            raise UnmergeableError("has a case without an eval_id")
        if name in names:
            raise UnmergeableError(f"has more than one case {name!r}")
        names[name] = None
    return list(names)


def _rule_names(rules: Sequence[Any]) -> list[str]:
    return _numbered([_rule_name(rule) for rule in rules])


def _rule_name(rule: Any) -> str:
    if not isinstance(rule, dict):
        return repr(rule)
    of = "/".join(str(rule[key]) for key in ("set", "case") if rule.get(key) is not None)
    what = ".".join(str(rule[key]) for key in ("tool", "arg") if rule.get(key) is not None)
    return f"{what} of {of}" if of else what


def _mark_names(marks: Sequence[Any]) -> list[str]:
    return _numbered([_mark_name(mark) for mark in marks])


def _mark_name(mark: Any) -> str:
    if not isinstance(mark, dict):
        return repr(mark)
    return f"{mark.get('set')}/{mark.get('case')} turn {mark.get('turn')}"


def _numbered(names: Sequence[str]) -> list[str]:
    """Of entries of one name the last one counts, so that one has the name as it is."""
    left = Counter(names)
    found = []
    for name in names:
        left[name] -= 1
        found.append(f"{name} (again, {left[name]})" if left[name] else name)
    return found


EVAL_SET = FileShape(
    "an eval set",
    ByMember({"eval_cases": ByEntry(_case_names, holds_cases=True)}),
    '{"eval_cases": []}',
    requires="eval_cases",
)
CONFIG = FileShape(
    "a config",
    ByMember(
        {
            "criteria": ByMember(),
            "custom_metrics": ByMember(),
            "evaltui": ByMember(
                {
                    "criteria": ByMember(),
                    "tools": ByMember(),
                    "rules": ByEntry(_rule_names),
                    "turns": ByEntry(_mark_names),
                }
            ),
        }
    ),
    "{}",
)
