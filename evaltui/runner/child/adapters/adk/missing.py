"""What ADK looks for in its own turns although it has no use for it."""

from __future__ import annotations

import functools
import sys
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from typing import Any

_REMOTE_AGENTS = "google.adk.agents.remote_a2a_agent"
# What that has its class from.
_THEIR_HOME = "google.adk.a2a.agent._remote_a2a_agent"
# Where ADK 2.13 asks whether a node is a remote agent, in every turn.
_ASKS = "google.adk.workflow.utils._workflow_graph_utils"


class _NotLoaded(MetaPathFinder):
    """Asked only as long as the module of remote agents is not loaded."""

    def __init__(self, *, is_installed: bool) -> None:
        self._is_installed = is_installed

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        if fullname != _REMOTE_AGENTS or (self._is_installed and not _is_vain()):
            return
        # What importing it without the a2a SDK ends with, without the way there.
        raise ModuleNotFoundError("No module named 'a2a'", name="a2a")


def _is_vain() -> bool:
    """Whether ADK imports the class to compare agents with it, and none can be of it."""
    if _THEIR_HOME in sys.modules:
        return False
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("importlib."):
        frame = frame.f_back
    return frame.f_globals.get("__name__") == _ASKS


@functools.cache
def look_for_no_remote_agents() -> None:
    """Have ADK not import its remote agents only to see that an agent is none of them.

    ADK 2.13 does in every turn (`build_node`). With the a2a SDK, that takes the first turn a fifth of a
    second: no agent can be of a class that nobody has loaded. Without it, Python does not remember that the
    import failed, which takes a quarter of the time of a turn.
    """
    sys.meta_path.insert(0, _NotLoaded(is_installed=find_spec("a2a") is not None))
