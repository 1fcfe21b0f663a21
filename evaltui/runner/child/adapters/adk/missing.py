"""What ADK looks for again and again although it is not installed."""

from __future__ import annotations

import functools
import sys
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from typing import Any

_NEEDS_A2A = "google.adk.agents.remote_a2a_agent"


class _KnownToFail(MetaPathFinder):
    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        if fullname == _NEEDS_A2A:
            # What importing it ends with, without the way there.
            raise ModuleNotFoundError("No module named 'a2a'", name="a2a")


@functools.cache
def fail_fast_without_a2a() -> None:
    """Where the a2a SDK is missing, say so at once to whoever imports ADK's remote agents.

    ADK 2.13 tries to in every turn (`build_node`), and Python does not remember imports that failed: a
    quarter of the time that a turn takes by itself.
    """
    if find_spec("a2a") is None:
        sys.meta_path.insert(0, _KnownToFail())
