"""An agent: a name, a model, an instruction and tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from evaltui.runner.child.native.models import Model
from evaltui.runner.child.native.tools import Tool, ToolContext

Instruction = str | Callable[[ToolContext], str]


class Agent:
    """What answers in a conversation.

    `model` is the name of a Gemini model or a `Model` of your own, such as a `ScriptedModel`. `instruction`
    is the system instruction, or a function that makes it for each request. `tools` are functions, sync or
    async, with type annotations; sync ones run in a thread.
    """

    def __init__(
        self,
        name: str,
        model: str | Model,
        instruction: Instruction = "",
        tools: Iterable[Callable[..., Any]] = (),
    ) -> None:
        """Raises TypeError for a tool that cannot be declared, ValueError for two tools of one name."""
        self.name = name
        self.model = model
        self.instruction = instruction
        self.tools: dict[str, Tool] = {}
        for tool in map(Tool, tools):
            if tool.name in self.tools:
                raise ValueError(f"agent {name!r} has two tools named {tool.name!r}: rename one of them")
            self.tools[tool.name] = tool
