"""Keys of user data as they are spelt: in snake_case or camelCase, and mistyped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from evaltui.core.model.problems import JsonPath, Problem
from evaltui.text.wording import nearest


def likely_typos(
    data: Mapping[str, Any], fields: Iterable[Sequence[str]], path: JsonPath
) -> Iterator[Problem]:
    """Warnings for keys that are near to a field that is absent; each field comes with all its spellings.

    Other unknown keys are the user's own: where this is called, ADK tolerates them.
    """
    fields = [tuple(field) for field in fields]
    known = {spelling for field in fields for spelling in field}
    absent = [spelling for field in fields if not data.keys() & set(field) for spelling in field]
    for key in data:
        if key not in known and (hit := nearest(key, absent, likeness=0.75)):
            yield Problem.warning((*path, key), f"unknown key; did you mean {hit!r}?")


@cache
def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def spelt(name: str, data: Mapping[str, Any]) -> str:
    """The key under which a field is given; its snake_case name where it is given twice or not at all."""
    return camel(name) if name not in data and camel(name) in data else name


def path_as_spelt(path: JsonPath, data: Any) -> JsonPath:
    """A path of snake_case keys with the keys that the data has."""
    found: JsonPath = ()
    for step in path:
        key = spelt(step, data) if isinstance(step, str) and isinstance(data, dict) else step
        found = (*found, key)
        if isinstance(data, dict):
            data = data.get(key)
        elif isinstance(data, list) and isinstance(step, int):
            data = data[step]
    return found
