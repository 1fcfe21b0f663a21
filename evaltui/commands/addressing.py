"""The agent that the words and options of a command name."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from evaltui.project.agents import agents_in, agents_named
from evaltui.project.folders import seen_from_here
from evaltui.project.interpreters import find_interpreter
from evaltui.project.modules import ModuleNotThereError, find_module
from evaltui.project.remote_address import checked_headers, checked_url
from evaltui.text.values import did_you_mean

_UNRECORDED = (
    "an agent behind a network calls its models and tools there, where evaltui cannot record, replay or stub "
    "them. Run it with --record off and --tools live"
)


def settle_address(options: argparse.Namespace) -> None:
    """Has the agent's folder, or the home of one behind a network, with `url`, `headers` and `module`.

    `--agent` then names a sub-agent only: of a folder of several agents it picked one. Raises ValueError.
    """
    place = "agent_dir" if "agent_dir" in options else "place"
    word = getattr(options, place)
    options.url, options.headers = "", ()
    if options.module is not None:
        setattr(options, place, _module_place(options, word))
    elif isinstance(word, str):
        setattr(options, place, _settle_url(options, word))
        return
    elif word is None and place == "agent_dir":
        raise ValueError("the following arguments are required: AGENT_DIR")
    elif getattr(options, "agent", None) is not None and (agents := agents_in(word)):
        setattr(options, place, word / _one_of(agents, options.agent, word))
        options.agent = None
    options.module = options.module or ""
    if options.home is not None or getattr(options, "header_env", []):
        option = "--home" if options.home is not None else "--header-env"
        raise ValueError(f"{option} needs an agent with a URL, such as http://127.0.0.1:8000/my_app")


def agent_and_runs(words: Sequence[str]) -> tuple[Path | None, Sequence[str]]:
    """The agent and the runs. A first word that is a folder or a file of Python is the agent; without one it
    is None."""
    first = Path(words[0]) if words else None
    if first is not None and (first.is_dir() or first.suffix == ".py"):
        return first, words[1:]
    return None, words


def _settle_url(options: argparse.Namespace, word: str) -> Path:
    """The home of an agent behind a network."""
    options.module, options.url = "", checked_url(word)
    if getattr(options, "agent", None) is not None:
        raise ValueError("--agent: an agent behind a network is run as it is served")
    for option in ("record", "tools"):
        if (mode := getattr(options, option, None)) not in (None, "off", "live"):
            raise ValueError(f"--{option} {mode}: {_UNRECORDED}")
    home: Path = options.home or Path()
    if not home.is_dir():
        raise ValueError(f"--home: {home} is not a folder")
    options.headers = checked_headers(getattr(options, "header_env", []), home)
    return home


def _module_place(options: argparse.Namespace, word: str | Path | None) -> Path:
    """The path of the module that `-m` names; a `word` in place of the agent becomes the first selector.

    Raises ValueError.
    """
    if word not in (None, Path()):
        if "selectors" not in options or isinstance(word, str):
            raise ValueError(f"-m names the agent; leave out {word}")
        options.selectors = [str(word), *options.selectors]
    try:
        python = find_interpreter(Path(), getattr(options, "python", None)).executable
        path = find_module(options.module, python, starts=_runs_agent(options))
    except (ModuleNotThereError, OSError) as error:
        raise ValueError(f"-m: {error}") from error
    return Path(seen_from_here(path))


def _runs_agent(options: argparse.Namespace) -> bool:
    """Whether the command sends the agent messages, and therefore may start its Python."""
    is_idle = getattr(options, "estimate", False) or getattr(options, "read_only", False)
    return "header_env" in options and not is_idle


def _one_of(agents: list[str], name: str, folder: Path) -> str:
    matches = agents_named(name, agents)
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise ValueError(f"--agent: {name} may be {' or '.join(matches)}. Give more of the path")
    hint = did_you_mean(name, [*agents, *(path.rpartition("/")[2] for path in agents)])
    raise ValueError(f"--agent: no agent {name} in {folder}, which has {', '.join(agents)}{hint}")
