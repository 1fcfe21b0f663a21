"""The address of an agent: its folder and Python, or its URL with headers."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from evaltui.core.model.variants import Variant
from evaltui.project.agent_files import files_of, prints_of
from evaltui.project.folders import agent_folder, env_file
from evaltui.project.interpreters import OWN, Interpreter, find_interpreter
from evaltui.project.variants import ReadyVariant, ready


@dataclass(frozen=True)
class AgentAddress:
    """An agent, as a host needs it to load the agent."""

    folder: Path
    """Folder or file of the agent, near which its eval sets, configs and runs are."""
    name: str | None = None
    """The agent below the root agent that is run as the root; None for the root itself."""
    interpreter: Interpreter = OWN
    """The Python of its project, in which its hosts and custom metrics run."""
    module: str = ""
    """The dotted module name of the agent, perhaps with `:attribute`; "" for an agent of its folder."""
    url: str = ""
    """The address of a remote agent as the user typed it; "" for an agent that is imported."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers that are sent to `url`, each with the environment variable that holds its value."""

    variant: ReadyVariant | None = None
    """The variant to apply before a run; None for the unchanged agent."""
    in_process: bool = False
    """Whether it is an object of this process, which no host can import; `folder` is then near its eval
    sets."""

    @property
    def code(self) -> Path:
        """The folder or file that is imported; of a variant with other code, not `folder`."""
        return (self.variant and self.variant.code) or self.folder

    @property
    def as_arguments(self) -> str:
        """The arguments that name it on a command line."""
        words = [self.url] if self.url else ["-m", self.module] if self.module else [str(self.folder)]
        return shlex.join([*words, *(["--agent", self.name] if self.name else [])])

    @property
    def python(self) -> Path | None:
        """The executable that the agent's hosts are started with; None for evaltui's own."""
        return None if self.url else self.interpreter.executable

    @property
    def problem(self) -> str:
        """Why it cannot run in its Python, with a remedy, as a sentence; "" where it can."""
        return "" if self.url else self.interpreter.problem


def files_of_agent(agent: AgentAddress, also: Iterable[str] = ()) -> dict[str, str]:
    """The files of an agent and its variant with fingerprints, the `.env` of its folder among them. `also`
    are names of further files, relative to its folder."""
    files = files_of(agent.code, also)
    if agent.variant is None:
        return files
    if (env := env_file(agent_folder(agent.folder))) is not None:
        # Other code has it, too. A checkout is somewhere else each time.
        seen_from = agent.folder if agent.variant.variant.of_kind("git") else agent.code
        place = agent_folder(seen_from).resolve()
        files |= prints_of(place, [Path(os.path.relpath(env, place)).as_posix()])
    return files | agent.variant.files()


@contextmanager
def as_variant(agent: AgentAddress, variant: Variant, python: str | None) -> Iterator[AgentAddress]:
    """The agent with a variant, whose files exist during the block; `python` is the requested one.

    Raises VariantFileError, and InterpreterError for other code without a Python.
    """
    with ready(variant, agent.folder) as ready_variant:
        changed = replace(agent, variant=ready_variant)
        if variant.of_kind("agent"):
            changed = replace(changed, module="", interpreter=find_interpreter(changed.code, python))
        yield changed
