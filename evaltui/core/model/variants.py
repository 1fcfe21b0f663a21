"""Variants: the same agent with another model, prompt, environment or code, run on the same cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .json_values import member

BASE = "base"
"""The variant that is the agent as it is, unless the settings say otherwise."""
VARIANT_ERROR = "VariantError"
"""The type of the error of a host whose agent a variant does not fit."""


@dataclass(frozen=True)
class Change:
    """One thing that a variant changes, such as the model of an agent."""

    key: str
    """The kind, and after a dot what of it: `model`, `model.root_agent`, `config.temperature`, `env.NAME`,
    `instruction`, `git`, `agent`."""
    value: Any
    """JSON: the new value; of `instruction` a file, of `git` a commit, of `agent` a folder."""

    @property
    def kind(self) -> str:
        return self.key.partition(".")[0]

    @property
    def name(self) -> str:
        """The agent, field or variable that it is of; "" for all agents."""
        return self.key.partition(".")[2]


@dataclass(frozen=True)
class Variant:
    """A way to run an agent, by the name of its column in a matrix."""

    name: str
    changes: tuple[Change, ...] = ()
    """Changes of the agent; none: the agent as it is."""
    commit: str = ""
    """The one that `git` stands for, as far as it has been looked up."""
    places: tuple[tuple[str, str], ...] = ()
    """Paths of changes that name a file or folder, by key, as seen from the agent's folder."""

    def place(self, change: Change) -> str:
        """The file or folder of a change, as seen from the agent's folder."""
        return dict(self.places).get(change.key, str(change.value))

    def of_kind(self, kind: str) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.kind == kind)

    def to_json(self) -> dict[str, Any]:
        data = {"name": self.name, "changes": {change.key: change.value for change in self.changes}}
        if self.commit:
            data["commit"] = self.commit
        return data | ({"places": dict(self.places)} if self.places else {})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Variant:
        """Raises ValueError for what is no variant."""
        changes = member(data, "changes", dict, {})
        named = tuple(Change(key, value) for key, value in changes.items())
        places = {key: str(place) for key, place in member(data, "places", dict, {}).items()}
        return cls(member(data, "name", str), named, member(data, "commit", str, ""), tuple(places.items()))
