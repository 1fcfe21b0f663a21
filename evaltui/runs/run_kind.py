"""The kind of a run: results of one kind are of the same agent, verdicts of the same scale."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evaltui.project.folders import agent_file

if TYPE_CHECKING:
    from evaltui.project.agent_address import AgentAddress


class RunKind(NamedTuple):
    """The agent of a run, relative to the folder that its runs are stored for, and how its verdicts came
    about.

    Runs of another kind do not count as the last run, nor their passed cases as passed.
    """

    file: str = ""
    """The name of an agent that is a single file; "" for what its folder holds."""
    module: str = ""
    """The dotted name that the agent was imported by, perhaps with `:attribute`; "" for none."""
    agent_name: str = ""
    """The sub-agent that was run as the root; "" for the root agent."""
    url: str = ""
    """The address of an agent behind a network; "" for one that is imported."""
    in_process: bool = False
    variant: str = ""
    """The name of the variant, if it changes something of the agent."""
    of_traces: bool = False
    """Whether recorded traces were scored."""
    adk_verdicts: bool = False

    @classmethod
    def of(cls, agent: AgentAddress, *, of_traces: bool = False, adk_verdicts: bool = False) -> RunKind:
        variant = agent.variant.variant if agent.variant else None
        return cls(
            agent_file(agent.folder),
            agent.module,
            agent.name or "",
            agent.url,
            agent.in_process,
            variant.name if variant and variant.changes else "",
            of_traces,
            adk_verdicts,
        )

    @property
    def agent(self) -> RunKind:
        """The agent alone, whatever its verdicts are of."""
        return self._replace(of_traces=False, adk_verdicts=False)

    @property
    def of_any_deployment(self) -> RunKind:
        """Without the URL, which may be another one in each deployment."""
        return self._replace(url="any" if self.url else "")

    @property
    def in_words(self) -> tuple[str, ...]:
        """The ways in which it differs from the root agent of its folder, without the variant."""
        words = {
            "traces": self.of_traces,
            "in process": self.in_process,
            self.module: self.module,
            self.url: self.url,
            f"agent {self.agent_name}": self.agent_name,
        }
        return tuple(word for word, holds in words.items() if holds)


ROOT_AGENT = RunKind()
"""A run of the root agent of a folder."""
