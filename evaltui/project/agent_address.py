"""The address of an agent: its folder and Python, or its URL with headers."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from evaltui.core.model.variants import Variant
from evaltui.project.agent_files import files_of
from evaltui.project.interpreters import OWN, Interpreter, find_interpreter
from evaltui.project.variants import ReadyVariant, ready


@dataclass(frozen=True)
class AgentAddress:
    """An agent, as a host needs it to load the agent."""

    folder: Path
    """Its folder or file, near which its eval sets, configs and runs are."""
    name: str | None = None
    """The agent below the root agent that is run as the root; None for the root itself."""
    interpreter: Interpreter = OWN
    """The Python of its project: its hosts are started with it, and custom metrics run in it."""
    module: str = ""
    """The dotted name that it is imported by, perhaps with `:attribute`; "" for what its folder holds."""
    url: str = ""
    """The address of a remote agent as the user typed it; "" for an agent that is imported."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers that are sent to `url`, each with the environment variable that holds its value."""

    variant: ReadyVariant | None = None
    """The variant that is applied before a run; None for the agent as it is."""
    in_process: bool = False
    """Whether it is an object of this process, which runs it: no host can find it. Its folder is then the one
    that its eval sets are near."""

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
        """The sentence why it cannot run in its Python, and what to do; "" where it can."""
        return "" if self.url else self.interpreter.problem


def files_of_agent(agent: AgentAddress, also: Iterable[str] = ()) -> dict[str, str]:
    """The files that it is made of, each with a fingerprint of what it holds; those of its variant, too.

    `also` are names of further files, as seen from its folder.
    """
    return files_of(agent.code, also) | (agent.variant.files() if agent.variant else {})


@contextmanager
def as_variant(agent: AgentAddress, variant: Variant, python: str | None) -> Iterator[AgentAddress]:
    """The agent as the variant has it, while it is run; `python` is the one that was asked for.

    Raises VariantFileError, and InterpreterError where its other code has no Python.
    """
    with ready(variant, agent.folder) as ready_variant:
        changed = replace(agent, variant=ready_variant)
        if variant.of_kind("agent"):
            changed = replace(changed, module="", interpreter=find_interpreter(changed.code, python))
        yield changed
