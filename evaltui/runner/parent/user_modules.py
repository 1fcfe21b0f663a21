"""Whether a module of the user's is there. Nothing of it is imported: this runs in the parent process."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Sequence
from importlib.machinery import PathFinder
from pathlib import Path


def has_module(name: str, agent_folder: Path) -> bool:
    """Whether the child process would find this module for an agent, going by the files there are."""
    importlib.invalidate_caches()
    folder = agent_folder.resolve()
    return any(
        _is_there(spelling.split("."), places)
        for spelling in _spellings(name, folder)
        for places in ([str(folder.parent)], [str(folder)], *_above(spelling, folder), None)
    )


def _spellings(name: str, folder: Path) -> Iterator[str]:
    yield name
    head, _, rest = name.partition(".")
    if head == "agent":
        # `adk eval` knows the agent's package under this name.
        yield f"{folder.name}.{rest}" if rest else folder.name


def _above(name: str, folder: Path) -> Iterator[list[str]]:
    """The path may start further up: `agents.my_agent.metrics`."""
    head = name.partition(".")[0]
    return ([str(one.parent)] for one in folder.parents if one.name == head)


def _is_there(parts: Sequence[str], places: Sequence[str] | None) -> bool:
    """`places` are the folders to look in; None is wherever Python itself looks."""
    for number, part in enumerate(parts):
        try:
            if number == 0 and places is None:
                spec = importlib.util.find_spec(part)
            else:
                spec = PathFinder.find_spec(part, places)
        except (ImportError, ValueError):
            # Of a module without a spec, such as __main__.
            return False
        if spec is None:
            return False
        places = list(spec.submodule_search_locations or ())
    return True
