"""Hosts of agents in other Pythons and of frameworks: copies of processes that have imported these."""

from __future__ import annotations

import sys

from environments import environment_python
from forked_hosts import ADK_LIBRARIES, NAME, ForkedHosts

_FRAMEWORKS, _ADAPTERS = "EVALTUI_FRAMEWORKS_PYTHON", f"{NAME}.agents.adapters"
_HOSTS = {
    "old_adk": ("EVALTUI_OLD_ADK_PYTHON", ADK_LIBRARIES),
    "openai": (_FRAMEWORKS, (f"{_ADAPTERS}.openai_agents.adapter",)),
    "pydantic": (_FRAMEWORKS, (f"{_ADAPTERS}.pydantic_ai.adapter", "pydantic_ai.models.function")),
    "langgraph": (_FRAMEWORKS, (f"{_ADAPTERS}.langgraph.adapter", "langchain.agents.middleware")),
}
"""By the kind of an agent, its Python and what it imports; others run in the Python of the tests."""


def python_of(kind: str) -> str:
    return environment_python(_HOSTS[kind][0]) if kind in _HOSTS else sys.executable


class HostsOfAgents:
    """The process of each kind of agent that is copied, started when its first host is."""

    def __init__(self) -> None:
        self._of_kinds: dict[str, ForkedHosts] = {}

    def of(self, kind: str) -> ForkedHosts | None:
        """None for a kind that runs in the Python of the tests."""
        if kind in _HOSTS and kind not in self._of_kinds:
            self._of_kinds[kind] = ForkedHosts(*_HOSTS[kind][1], python=python_of(kind))
        return self._of_kinds.get(kind)

    def close(self) -> None:
        for hosts in self._of_kinds.values():
            hosts.close()
