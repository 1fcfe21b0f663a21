"""What a command says when it was called in a way that cannot work."""

from __future__ import annotations

from pathlib import Path

from evaltui.commands.output import write_stderr
from evaltui.files.folders import agents_in, may_be_agent

WRONG_USE = 2


class UsageError(ValueError):
    """The command was called in a way that cannot work; one sentence."""


def complain(command: str, problem: object) -> int:
    """Say what was wrong with the call, line by line; returns the exit code for it."""
    for line in str(problem).splitlines():
        write_stderr(f"evaltui {command}: {line}")
    return WRONG_USE


def require_one_agent(agent_dir: Path) -> None:
    """Raises UsageError for what does not exist, and for a folder that is no agent, naming those it holds."""
    if not agent_dir.exists():
        raise UsageError(f"{agent_dir} does not exist")
    agents = [str(agent_dir / name) for name in agents_in(agent_dir)]
    if len(agents) == 1:
        raise UsageError(f"{agent_dir} is a folder above the agent; name the agent itself: {agents[0]}")
    if agents:
        raise UsageError(f"{agent_dir} holds several agents: {', '.join(agents)}; name one of them")
    if not may_be_agent(agent_dir):
        raise UsageError(f"{agent_dir} holds no agent: it has no agent.py, __init__.py or root_agent.yaml")
