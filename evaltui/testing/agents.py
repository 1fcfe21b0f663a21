"""The agent that an eval set belongs to."""

from __future__ import annotations

from pathlib import Path

from evaltui.project.agents import agents_in, is_agent
from evaltui.project.folders import project_root
from evaltui.text.figures import some_of

_MOST_NAMES = 5


class NoAgentError(ValueError):
    """No agent can be told for an eval set; the message says what to do."""


def agent_of_set(path: Path, root: Path) -> Path:
    """The nearest agent at or above the folder of a set, else the only one beside one of these folders in its
    project.

    Agents are looked for up to the project of the set, or `root` where it is in none. Raises NoAgentError.
    """
    folders = [path.parent, *path.parent.parents]
    project = project_root(path.parent)
    top = project or root
    within = folders[: folders.index(top) + 1] if top in folders else folders[:1]
    for folder in within:
        if is_agent(folder):
            return folder
    for folder in within if project else ():
        if names := agents_in(folder):
            if len(names) == 1:
                return folder / names[0]
            raise NoAgentError(
                f"{path.name} may belong to {some_of(names, _MOST_NAMES)}. Name one: --evaltui-agent DIR"
            )
    raise NoAgentError(f"no agent at or above {path.parent}. Name it: --evaltui-agent DIR")
