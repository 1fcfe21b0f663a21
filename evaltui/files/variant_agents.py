"""An agent with the changes of a variant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from evaltui.core.model.variants import Variant
from evaltui.files.agent_address import AgentAddress
from evaltui.files.interpreters import find_interpreter
from evaltui.files.variants import ready


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
