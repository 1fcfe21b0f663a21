"""An option of commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from evaltui.commands import values

Group = Literal[
    "Cases",
    "Repeats",
    "Agent",
    "Recording",
    "Limits and cost",
    "Variants",
    "Machines",
    "Reports",
    "CI",
    "Options",
]


@dataclass(frozen=True)
class Option:
    """An option, or with a name without dashes an argument."""

    names: str
    """Its spellings, such as `-o --output`."""
    commands: str
    """The commands that take it."""
    group: Group
    """The heading in the help."""
    help: str
    form: str = ""
    """The placeholder of its value in the help; "" for a flag."""
    type: values.Type | None = None
    """Reads the value; None for a text."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of `add_argument`."""
    instead: Literal["", "required", "optional"] = ""
    """Whether it excludes the other options of the command with this value, and one of them is required."""


REPEATED: Mapping[str, Any] = {"action": "append", "default": []}
"""Arguments of `add_argument` for an option that may be repeated."""
