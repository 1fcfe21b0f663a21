"""The names of keys in texts: every text that mentions a key takes its name from here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_names: dict[str, Sequence[str]] = {}


def key_of(action_id: str) -> str:
    """The first key of an action, as the user has set it: `ctrl+s`; the action's id where it has no key."""
    return _names.get(action_id, (action_id,))[0]


def keys_of(action_id: str) -> str:
    """All keys of an action, as the user has set them: `u ctrl+z`."""
    return " ".join(_names[action_id])


def name_keys(names: Mapping[str, Sequence[str]]) -> None:
    """Sets the names of the keys of actions, by action id."""
    _names.update(names)
