"""The kind of a run: runs of one kind have the same agent and comparable verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evaltui.project.folders import agent_file

if TYPE_CHECKING:
    from evaltui.project.agent_address import AgentAddress


class RunKind(NamedTuple):
    """The agent of a run, relative to the folder of its runs, and the kind of its verdicts.

    A run of another kind never counts as the last run.
    """

    file: str = ""
    """File name of a single-file agent; "" for an agent of its folder."""
    module: str = ""
    """The dotted module name of the agent, perhaps with `:attribute`; "" for none."""
    agent_name: str = ""
    """The sub-agent that was run as the root agent; "" for the root agent."""
    url: str = ""
    """The URL of an agent behind a network; "" for an imported agent."""
    in_process: bool = False
    variant: str = ""
    """The name of a variant with changes; "" for none."""
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
        """The kind reduced to the agent, without properties of verdicts."""
        return self._replace(of_traces=False, adk_verdicts=False)

    @property
    def of_any_deployment(self) -> RunKind:
        """The kind without the URL, which may differ between deployments."""
        return self._replace(url="any" if self.url else "")

    @property
    def in_words(self) -> tuple[str, ...]:
        """The differences from the root agent of the folder in words, without the variant."""
        words = {
            "traces": self.of_traces,
            "in process": self.in_process,
            self.module: self.module,
            self.url: self.url,
            f"agent {self.agent_name}": self.agent_name,
        }
        return tuple(word for word, holds in words.items() if holds)


ROOT_AGENT = RunKind()
"""The kind of a run with the root agent of a folder."""
