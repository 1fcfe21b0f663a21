"""What tools get besides their arguments, an object of a class of the agent's own, made of session state."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from ....core.model.events import Json
from .base import AgentLoadError, copy_state


class Deps:
    """The dependencies or the context of one conversation: what its framework calls them is `what`.

    `value` is made of the initial state: a dict as it is, a dataclass or a pydantic model by its fields,
    others without arguments; None for an agent whose `deps_type` is that of None. Raises AgentLoadError where
    it cannot be made.
    """

    def __init__(self, deps_type: Any, state: Json, what: str = "deps") -> None:
        self._what = what
        self._kind: Any = typing.get_origin(deps_type) or deps_type
        # Of an agent without dependencies nothing ever changes it.
        self._given = copy_state(state)
        self._hints = {} if self._is_dict or self._kind is type(None) else typing.get_type_hints(self._kind)
        self.value: Any = self._made(copy_state(state))

    @property
    def _is_dict(self) -> bool:
        # A TypedDict is a class of its own, and its instances are dicts.
        return self._kind in (Any, object) or (isinstance(self._kind, type) and issubclass(self._kind, dict))

    def _made(self, state: Json) -> Any:
        if self._kind is type(None):
            return None
        if self._is_dict:
            return state
        try:
            if issubclass(self._kind, BaseModel):
                return self._kind.model_validate(state)
            return self._kind(**(self._fields(state) if dataclasses.is_dataclass(self._kind) else {}))
        except (TypeError, ValueError) as error:
            made = f"{self._what} of type {self._kind.__name__}"
            raise AgentLoadError(
                f"{made} cannot be made from the session state: {error}. Give its fields "
                "defaults, put them into the initial state, or run the agent in a function "
                "root_agent(message, session)"
            ) from error

    def _fields(self, state: Json) -> Json:
        names = {one.name for one in dataclasses.fields(self._kind) if one.init}
        return {name: self._read(name, value) for name, value in state.items() if name in names}

    def _read(self, name: str, value: Any) -> Any:
        try:
            return TypeAdapter(self._hints[name]).validate_python(value)
        except PydanticSchemaGenerationError:
            return value

    @property
    def fields(self) -> set[str]:
        """The names of its fields, where it has such."""
        return set(self._hints)

    def state(self) -> Json:
        """What of it JSON can hold."""
        if self.value is None:
            return copy_state(self._given)
        plain: Json = {}
        for name, value in self._items():
            try:
                plain[str(name)] = to_jsonable_python(value)
            except (PydanticSerializationError, ValueError):
                continue
        return plain

    def _items(self) -> Iterable[tuple[Any, Any]]:
        if isinstance(self.value, dict):
            return list(self.value.items())
        if isinstance(self.value, BaseModel):
            return list(self.value)
        if dataclasses.is_dataclass(self.value):
            return [(one.name, getattr(self.value, one.name, None)) for one in dataclasses.fields(self.value)]
        return list(vars(self.value).items())

    def apply(self, changed: Json, removed: Iterable[str]) -> None:
        """Change it as a recorded tool did."""
        if isinstance(self.value, dict):
            self.value.update(changed)
            for name in removed:
                self.value.pop(name, None)
        elif self.value is not None:
            for name, value in changed.items():
                setattr(self.value, name, self._read(name, value) if name in self._hints else value)
