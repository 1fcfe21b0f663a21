"""The names of keys in texts: one that mentions a key takes its name from here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_names: dict[str, Sequence[str]] = {}


def key_of(action_id: str) -> str:
    """The first key of an action, as the user has it: `ctrl+s`; the id of an action that has no key here."""
    return _names.get(action_id, (action_id,))[0]


def keys_of(action_id: str) -> str:
    """All keys of an action, as the user has them: `u ctrl+z`."""
    return " ".join(_names[action_id])


def name_keys(names: Mapping[str, Sequence[str]]) -> None:
    """Sets the names of the keys of actions, by id."""
    _names.update(names)
