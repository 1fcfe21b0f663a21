"""The names of keys on screen, and the user's own keys, from `keys.toml`:

    [keys]
    run = "ctrl+g"
    next_failing = ["f", "f8"]

An entry that cannot be read is a problem, and its action keeps its default key.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaltui.project.settings import read_toml
from evaltui.text.keys import name_keys
from evaltui.text.values import did_you_mean, value_in_words
from evaltui.workbench.actions import ACTIONS, ACTIONS_BY_ID, FOCUS_CHAINS, actions_in

_NAMES = {
    "escape": "esc",
    "question_mark": "?",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "slash": "/",
    "asterisk": "*",
    "number_sign": "#",
    "exclamation_mark": "!",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "equals_sign": "=",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "page up",
    "pagedown": "page down",
}


def key_name(key: str) -> str:
    """The name of a key on screen: `escape` is `esc`, `shift+tab` and `R` stay as they are."""
    return _NAMES.get(key, key)


Keys = tuple[str, ...]


def use_keys(chosen: Mapping[str, Keys]) -> None:
    """Makes texts use the keys that the user has chosen, else those of the registry."""
    name_keys({action.id: [*map(key_name, chosen.get(action.id, action.keys))] for action in ACTIONS})


use_keys({})

# The terminal's words for them, and what people write.
_ALIASES = {"esc": "escape", "return": "enter", "del": "delete", "pgup": "pageup", "pgdn": "pagedown"}
_NAMED_KEYS = {
    *("escape", "enter", "tab", "space", "backspace", "delete", "insert", "home", "end"),
    *("pageup", "pagedown", "up", "down", "left", "right"),
    *(f"f{number}" for number in range(1, 25)),
}
# Textual's names of punctuation are those of Unicode, but for these.
_RENAMED_KEYS = {
    "solidus": "slash",
    "reverse_solidus": "backslash",
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "plus_sign": "plus",
    "low_line": "underscore",
}


@dataclass(frozen=True)
class Keymap:
    """The user's keys. `keys` has the actions with chosen keys. `problems` are sentences."""

    keys: Mapping[str, Keys] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def read_keymap(path: Path) -> Keymap:
    """Reads the keymap of a file; it is empty where there is no file. Never raises for the contents."""
    try:
        tables = read_toml(path)
        lines = path.read_text(encoding="utf-8").splitlines() if tables else []
    except (OSError, ValueError) as error:
        return Keymap(problems=(str(error),))
    table, problems = tables.get("keys", {}), []

    def add(name: str, problem: str) -> None:
        problems.append(f"{path.name}:{_line_of(name, lines)}: {problem}")

    for name in tables:
        if name != "keys":
            add(name, f"unknown table [{name}]; keys go in [keys]")
    if not isinstance(table, dict):
        add("keys", "keys must be a table: [keys], then lines action = key")
        return Keymap(problems=tuple(problems))
    chosen: dict[str, Keys] = {}
    for action, value in table.items():
        try:
            chosen[action] = _keys(action, value)
        except ValueError as error:
            add(action, str(error))
    while clash := next(_clashes(chosen), None):
        key, *actions = clash
        named = next(action for action in actions if action in chosen)
        for action in actions:
            chosen.pop(action, None)
        both = " and ".join(actions)
        add(named, f"{key_name(key)} is set for both {both}; both keep their default keys")
    return Keymap(chosen, tuple(problems))


def _line_of(name: str, lines: Sequence[str]) -> int:
    """Number of the line of a key or a table in a TOML text, from 1."""
    quoted = re.escape(name)
    named = re.compile(rf"""\s*(?:\[\s*)?["']?{quoted}["']?\s*[=\].]""")
    return next((number for number, line in enumerate(lines, start=1) if named.match(line)), 1)


def _keys(action: str, value: Any) -> Keys:
    if action not in ACTIONS_BY_ID:
        raise ValueError(f"unknown action {action!r}{did_you_mean(action, ACTIONS_BY_ID)}")
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{action} must be a key or a list of keys, is {value_in_words(value)}")
    return tuple(dict.fromkeys(_key(action, name) for name in names))


def _key(action: str, name: str) -> str:
    """The Textual name of a key: `?` is `question_mark`, `shift+r` is `R`."""
    *modifiers, last = re.split(r"\+(?=.)", name.strip())
    last = _ALIASES.get(last.lower(), last)
    if len(last) == 1 and not last.isalnum():
        spelled = unicodedata.name(last, "").lower().replace("-", "_").replace(" ", "_")
        last = "space" if last == " " else _RENAMED_KEYS.get(spelled, spelled)
    elif len(last) > 1:
        last = last.lower()
        if last not in _NAMED_KEYS and not _is_punctuation(last):
            raise ValueError(f"{action}: unknown key {name!r}{did_you_mean(last, _NAMED_KEYS)}")
    modifiers = [modifier.lower() for modifier in modifiers]
    if not last or not set(modifiers) <= {"ctrl", "shift", "alt"}:
        raise ValueError(f"{action}: unknown key {name!r}; an example is 'ctrl+r'")
    if modifiers == ["shift"] and len(last) == 1:
        return last.upper()
    if modifiers:
        last = last.lower()
    return "+".join([*sorted(modifiers, key=["alt", "ctrl", "shift"].index), last])


def _is_punctuation(name: str) -> bool:
    unicode = {value: key for key, value in _RENAMED_KEYS.items()}.get(name, name)
    for spelled in (unicode.replace("_", " "), unicode.replace("_", "-")):
        try:
            return not unicodedata.lookup(spelled).isalnum()
        except KeyError:
            continue
    return False


def _clashes(chosen: Mapping[str, Keys]) -> Iterator[tuple[str, str, str]]:
    """Chosen keys with two meanings in one place: the key, and the ids of two actions, one of them chosen."""
    for chain in FOCUS_CHAINS:
        used: dict[str, str] = {}
        for action in {action.id: action for scope in chain for action in actions_in(scope)}.values():
            for key in chosen.get(action.id, action.keys):
                if key in used and not chosen.keys().isdisjoint((used[key], action.id)):
                    yield key, used[key], action.id
                used[key] = action.id
