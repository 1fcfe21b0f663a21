"""The kind of a run: results of one kind are of the same agent, verdicts of the same scale."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from evaltui.files.agent_address import AgentAddress
    from evaltui.runs.run_header import RunHeader


class RunKind(NamedTuple):
    """Runs of another kind do not count as the last run, nor their passed cases as passed."""

    agent_name: str = ""
    """The sub-agent that was run as the root; "" for the root agent."""
    module: str = ""
    """The dotted name that the agent was imported by; "" for what its folder holds."""
    is_remote: bool = False
    """Whether the agent has a URL, which may be another one in each deployment."""
    in_process: bool = False
    of_traces: bool = False
    """Whether recorded traces were scored."""
    adk_verdicts: bool = False

    @classmethod
    def of(cls, agent: AgentAddress, *, of_traces: bool, adk_verdicts: bool) -> RunKind:
        is_remote = bool(agent.url)
        return cls(agent.name or "", agent.module, is_remote, agent.in_process, of_traces, adk_verdicts)

    @classmethod
    def of_log(cls, header: RunHeader) -> RunKind:
        return cls(
            header.agent_name or "",
            header.module,
            bool(header.url),
            header.in_process,
            header.of_traces,
            header.settings.adk_verdicts,
        )
