"""The agent class: a name, a model, an instruction, and Python functions as tools.

The tools are declared to the model and called with the arguments that it gives.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from ...core.model.events import Json
from ..threads import in_thread
from .declarations import declaration_of, types_of
from .models import Model

if TYPE_CHECKING:
    from google.genai.types import GenerateContentConfig


@dataclass(frozen=True)
class ToolContext:
    """The conversation that a tool is called in. `state` is the session's state: change it to store
    something.

    A tool gets it in the parameter annotated with this class, which is not declared to the model.
    """

    state: Json
    session_id: str
    user_id: str
    app_name: str


class Tool:
    """A tool: a function with type annotations, and its declaration for the model."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """Raises TypeError where `function` is no function, or its signature cannot be declared."""
        if not inspect.isroutine(function):
            raise TypeError(f"a tool must be a function or a method, not {function!r}")
        self.name = function.__name__
        self.function = function
        hints = get_type_hints(function, include_extras=True)
        hints.pop("return", None)
        parameters = [
            parameter.replace(annotation=hints.get(parameter.name, parameter.annotation))
            for parameter in inspect.signature(function).parameters.values()
        ]
        shown = [item for item in parameters if item.annotation is not ToolContext]
        self._context_names = [item.name for item in parameters if item.annotation is ToolContext]
        self._signature = inspect.Signature(shown)
        try:
            self._types = types_of(shown)
            self.declaration = declaration_of(self.name, function.__doc__, shown, self._types)
        except ValueError as error:
            raise TypeError(
                f"tool {self.name!r} cannot be declared to a model: give each parameter a type that has a "
                f"JSON schema, such as str, int, list[str] or a pydantic model ({error})"
            ) from error

    async def call(self, args: Json, context: ToolContext) -> Json:
        """Calls the function and returns its result as a tool response; a result that is no object becomes
        `{"result": ...}`.

        Raises ValueError where the model's arguments do not fit the signature, TypeError for a result that
        JSON cannot hold, and any error of the function.
        """
        arguments = self._fit(args) | dict.fromkeys(self._context_names, context)
        if inspect.iscoroutinefunction(self.function):
            result = await self.function(**arguments)
        else:
            result = await in_thread(lambda: self.function(**arguments))
            if inspect.isawaitable(result):
                result = await result
        try:
            plain = to_jsonable_python(result)
        except ValueError as error:
            raise TypeError(
                f"tool {self.name!r} returned a {type(result).__name__} that JSON cannot hold: {error}"
            ) from error
        return plain if isinstance(plain, dict) else {"result": plain}

    def _fit(self, args: Json) -> Json:
        try:
            self._signature.bind(**args)
            return {
                name: self._types[name].validate_python(value) if name in self._types else value
                for name, value in args.items()
            }
        except (TypeError, ValidationError) as error:
            raise ValueError(
                f"the model called tool {self.name!r} with {args}, which does not fit its signature "
                f"{self._signature}: {error}"
            ) from error


Instruction = str | Callable[[ToolContext], str]


class Agent:
    """An agent: a model with an instruction and tools.

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
        self.config: GenerateContentConfig | None = None
        self.tools: dict[str, Tool] = {}
        for tool in map(Tool, tools):
            if tool.name in self.tools:
                raise ValueError(f"agent {name!r} has two tools named {tool.name!r}: rename one of them")
            self.tools[tool.name] = tool
