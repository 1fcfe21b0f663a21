"""The tools of an agent as its host describes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from evaltui.core.model.tool_schema import Tool
from evaltui.core.model.tool_values import inlined


@dataclass(frozen=True)
class DeclaredTool:
    """A tool of the agent as its host describes it."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] | None = None
    """The schema of its arguments; None where it has none."""

    @property
    def schema(self) -> Tool:
        return Tool(self.name, self.parameters)

    @cached_property
    def properties(self) -> Mapping[str, Any]:
        """The schema of each argument, without references."""
        members = (self.parameters or {}).get("properties")
        if not isinstance(members, Mapping):
            return {}
        return {name: inlined(schema, self.parameters or {}) for name, schema in members.items()}

    @property
    def required(self) -> list[str]:
        names = (self.parameters or {}).get("required")
        return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def declared_tools(agent: Mapping[str, Any] | None) -> list[DeclaredTool]:
    """The tools of an agent as its host describes it."""
    return [
        DeclaredTool(str(tool["name"]), str(tool.get("description") or ""), tool.get("parameters"))
        for tool in (agent or {}).get("tools") or ()
    ]
