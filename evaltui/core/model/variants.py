"""Variants of an agent: another model, prompt, environment or code, run with the same cases.

Users write them as `NAME:KEY=VALUE,KEY=VALUE` in an option, or as a table in the settings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...text.values import did_you_mean, show_value
from .json_values import member

BASE = "base"
"""The variant of the unchanged agent, unless the settings define another one with this name."""
VARIANT_ERROR = "VariantError"
"""The error type of a host whose agent does not fit a variant."""


@dataclass(frozen=True)
class Change:
    """A change that a variant makes, such as another model."""

    key: str
    """The kind of change, for some with a name after a dot: `model`, `model.root_agent`,
    `config.temperature`, `env.NAME`, `instruction`, `git`, `agent`."""
    value: Any
    """The new value as JSON: a file for `instruction`, a commit for `git`, a folder for `agent`."""

    @property
    def kind(self) -> str:
        return self.key.partition(".")[0]

    @property
    def name(self) -> str:
        """The name of the agent, field or variable; "" for all agents."""
        return self.key.partition(".")[2]


@dataclass(frozen=True)
class Variant:
    """A variant, named by its column in a matrix."""

    name: str
    changes: tuple[Change, ...] = ()
    """The changes; empty for the unchanged agent."""
    commit: str = ""
    """The commit of `git`; "" before it is looked up."""
    places: tuple[tuple[str, str], ...] = ()
    """Paths of changes with a file or folder, by key, relative to the agent's folder."""

    def place(self, change: Change) -> str:
        """The file or folder of a change, relative to the agent's folder."""
        return dict(self.places).get(change.key, str(change.value))

    @property
    def has_other_code(self) -> bool:
        """Whether it runs the agent of a commit or of another folder."""
        return any(change.kind in _NAMELESS_KINDS for change in self.changes)

    def of_kind(self, kind: str) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.kind == kind)

    def to_json(self) -> dict[str, Any]:
        data = {"name": self.name, "changes": {change.key: change.value for change in self.changes}}
        if self.commit:
            data["commit"] = self.commit
        return data | ({"places": dict(self.places)} if self.places else {})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Variant:
        """The variant in JSON data. Raises ValueError for other data."""
        changes = member(data, "changes", dict, {})
        named = tuple(Change(key, value) for key, value in changes.items())
        places = {key: str(place) for key, place in member(data, "places", dict, {}).items()}
        return cls(member(data, "name", str), named, member(data, "commit", str, ""), tuple(places.items()))


ALL_VARIANTS = "all"
"""The name for the unchanged agent and all variants of the settings."""
_VARIANT_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,39}")
# Where the next change begins; any other comma is part of a value.
_NEXT_CHANGE = re.compile(r",(?=\s*[A-Za-z_][\w.\- ]*=)")

_NAMELESS_KINDS = ("git", "agent")
_NAMED_KINDS = {"model": "an agent", "instruction": "an agent", "config": "a field", "env": "a variable"}
_NEED_NAME = {"config": "config.temperature=0", "env": "env.NAME=value"}
_KINDS = (*_NAMED_KINDS, *_NAMELESS_KINDS)


class VariantTextError(ValueError):
    """A text or table is no valid variant; the message is a sentence."""

    page = "variants"
    """The page of the guide about it."""


def variant_of_text(text: str, defined: Mapping[str, Variant]) -> Variant:
    """The variant in an option's text; a name alone is a defined variant or `base`. Raises
    VariantTextError."""
    name, colon, changes = (part.strip() for part in text.partition(":"))
    if not colon and "=" in name:
        value = re.sub(r"[^\w.-]+", "-", name.rpartition("=")[2]).strip("-.")
        raise VariantTextError(f"{text!r} has no name. Write {value or 'other'}:{text}")
    _check_name(name)
    if not colon:
        if name in defined:
            return defined[name]
        if name == BASE:
            return Variant(BASE)
        hint = did_you_mean(name, [*defined, BASE])
        raise VariantTextError(
            f"[tool.evaltui.variants] has no {name!r}{hint or '.'} A new one is {name}:KEY=VALUE, such as "
            f"{name}:model=gemini-2.5-flash"
        )
    if not changes:
        raise VariantTextError(f"{text!r} changes nothing. Write {name}:KEY=VALUE with {', '.join(_KINDS)}")
    parsed = [_change(change.strip()) for change in _NEXT_CHANGE.split(changes)]
    return _check_variant(Variant(name, tuple(parsed)))


def _check_name(name: str) -> None:
    if not _VARIANT_NAME.fullmatch(name) or name == ALL_VARIANTS:
        raise VariantTextError(
            f"{name!r} is not a name of a variant: up to 40 of a–z, 0–9, _, - and ., not {ALL_VARIANTS}"
        )


def _change(text: str) -> Change:
    key, equals, value = (part.strip() for part in text.partition("="))
    if not equals:
        raise VariantTextError(f"{text!r} is not KEY=VALUE")
    return Change(_checked_key(key), _value(key, value))


def _value(key: str, text: str) -> Any:
    """The value of a change: for a config field the parsed JSON if it is valid, else the text."""
    if key.partition(".")[0] != "config":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _checked_key(key: str) -> str:
    kind, dot, name = key.partition(".")
    if kind not in _KINDS:
        near = did_you_mean(kind, _KINDS)
        if not near and kind.isupper():
            near = f". Did you mean env.{key}?"
        raise VariantTextError(f"{key!r} is unknown{near or '.'} A variant changes {', '.join(_KINDS)}")
    if kind in _NAMELESS_KINDS and dot:
        raise VariantTextError(f"{key!r}: {kind} has nothing after a dot. Write {kind}=…")
    if kind in _NEED_NAME and not name:
        raise VariantTextError(f"{key!r} needs {_NAMED_KINDS[kind]}, for example {_NEED_NAME[kind]}")
    if dot and not name:
        raise VariantTextError(f"{key!r} needs {_NAMED_KINDS[kind]} after the dot")
    return key


def _check_variant(variant: Variant) -> Variant:
    keys = [change.key for change in variant.changes]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise VariantTextError(f"variant {variant.name} has {twice} twice")
    if {*_NAMELESS_KINDS} <= {*keys}:
        raise VariantTextError(f"variant {variant.name}: git and agent cannot be changed together")
    for change in variant.changes:
        if change.kind not in ("config", "env") and not str(change.value).strip():
            raise VariantTextError(f"variant {variant.name}: {change.key} is empty")
    # What is of one agent comes after what is of all: it counts.
    return Variant(variant.name, tuple(sorted(variant.changes, key=lambda change: bool(change.name))))


def variant_of_table(name: str, table: object) -> Variant:
    """The variant in a table: `{"model": "…", "env": {"NAME": "…"}}`. Raises VariantTextError."""
    _check_name(name)
    if not isinstance(table, dict):
        raise VariantTextError(f'{name} is {show_value(table)}. Give a table, such as {{model = "…"}}')
    changes = tuple(_changes(table))
    if not changes and name != BASE:
        raise VariantTextError(f"{name} changes nothing. Give {', '.join(_KINDS)}")
    return _check_variant(Variant(name, changes))


def _changes(table: Mapping[str, Any]) -> Iterator[Change]:
    for key, value in table.items():
        if isinstance(value, dict) and key.partition(".")[0] in _NAMED_KINDS:
            yield from (
                _table_change(f"{key}.{inner}", inner_value) for inner, inner_value in _flatten(value)
            )
        else:
            yield _table_change(key, value)


def _flatten(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{inner}", inner_value) for inner, inner_value in _flatten(value))
        else:
            yield key, value


def _table_change(key: str, value: Any) -> Change:
    kind = _checked_key(key).partition(".")[0]
    if kind == "env" and isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if kind != "config" and not isinstance(value, str):
        raise VariantTextError(f"{key} is {show_value(value)}. Give a string")
    return Change(key, value)


def variants_of(tables: object) -> dict[str, Variant]:
    """The variants in `[tool.evaltui.variants]`, by name. Raises VariantTextError."""
    if not isinstance(tables, dict):
        raise VariantTextError(f"is {show_value(tables)}. Give a table for each variant")
    return {name: variant_of_table(name, table) for name, table in tables.items()}
