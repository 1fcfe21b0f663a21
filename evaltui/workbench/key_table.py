"""The table of keys in the README, from the action registry: `python -m evaltui.workbench.key_table`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from evaltui.workbench.actions import ACTIONS, place_of
from evaltui.workbench.keys import key_name


def key_table() -> str:
    """Every action in Markdown, in the order of the registry."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "| keys | what they do | where | name in `keys.toml` |"
    yield "|---|---|---|---|"
    for action in ACTIONS:
        keys = " ".join(f"`{key_name(key)}`" for key in action.keys)
        yield f"| {keys} | {action.help} | {place_of(action)} | `{action.id}` |"


if __name__ == "__main__":
    sys.stdout.write(key_table())
