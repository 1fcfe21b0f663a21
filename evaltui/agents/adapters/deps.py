"""Creates the object that tools get beside their arguments from session state; its class is the agent's
own."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError

from ...core.model.events import Json
from .base import AgentLoadError, copy_state
from .values import jsonable


class Deps:
    """The dependencies or the context of one conversation; `what` is the framework's word for them.

    `value` is created from the initial state: a dict as it is, a dataclass or a pydantic model by its fields,
    another class without arguments, whose attributes are then set; None where `deps_type` is that of None.
    Raises AgentLoadError where it cannot be created, or has no field for a key of the state.
    """

    def __init__(self, deps_type: Any, state: Json, what: str = "deps") -> None:
        self._what = what
        self._kind: Any = typing.get_origin(deps_type) or deps_type
        self._hints = self._type_hints()
        self.value: Any = self._create(copy_state(state))

    @property
    def _is_dict(self) -> bool:
        # A TypedDict is a class of its own, and its instances are dicts.
        return self._kind in (Any, object) or (isinstance(self._kind, type) and issubclass(self._kind, dict))

    def _type_hints(self) -> dict[str, Any]:
        if self._kind in (Any, object, dict, type(None)):
            return {}
        try:
            return typing.get_type_hints(self._kind)
        except NameError:
            # The hints name types that are imported for type checkers only.
            return dict.fromkeys(getattr(self._kind, "__annotations__", ()), Any)

    def _create(self, state: Json) -> Any:
        if self._kind is type(None):
            if state:
                raise AgentLoadError(
                    f"the initial state has the key {next(iter(state))!r}, but the agent has no {self._what} "
                    f"for it. Remove the key, or declare the type of its {self._what}"
                )
            return None
        if self._is_dict:
            return state
        try:
            if issubclass(self._kind, BaseModel):
                if self._kind.model_config.get("extra") != "allow":
                    self._refuse([key for key in state if key not in self._kind.model_fields])
                return self._kind.model_validate(state)
            read = {name: self._read(name, value) for name, value in state.items()}
            init = self._initial_fields()
            value = self._kind(**{name: value for name, value in read.items() if name in init})
            self._refuse([key for key in state if not hasattr(value, key)])
            for name in read.keys() - init:
                setattr(value, name, read[name])
            return value
        except (TypeError, ValueError) as error:
            kind = f"{self._what} of type {self._kind.__name__}"
            raise AgentLoadError(
                f"{kind} cannot be made from the session state: {error}. Give its fields "
                "defaults, put them into the initial state, or run the agent in a function "
                "root_agent(message, session)"
            ) from error

    def _initial_fields(self) -> set[str]:
        """The fields that can be passed to the constructor; the others are set afterwards."""
        if not dataclasses.is_dataclass(self._kind):
            return set()
        return {field.name for field in dataclasses.fields(self._kind) if field.init}

    def _refuse(self, unknown: list[str]) -> None:
        if unknown:
            raise AgentLoadError(
                f"the initial state has the key {unknown[0]!r}, which is no field of {self._what} of type "
                f"{self._kind.__name__}. Remove the key, or add the field"
            )

    def _read(self, name: str, value: Any) -> Any:
        try:
            return TypeAdapter(self._hints.get(name, Any)).validate_python(value)
        except PydanticSchemaGenerationError:
            return value

    def state(self) -> Json:
        """The values that JSON can hold."""
        return jsonable(self._items())

    def _items(self) -> Iterable[tuple[Any, Any]]:
        if self.value is None:
            return ()
        if isinstance(self.value, dict):
            return list(self.value.items())
        if isinstance(self.value, BaseModel):
            return list(self.value)
        if dataclasses.is_dataclass(self.value):
            return [
                (field.name, getattr(self.value, field.name, None))
                for field in dataclasses.fields(self.value)
            ]
        return list(vars(self.value).items())

    def apply(self, changed: Json, removed: Iterable[str]) -> None:
        """Applies the changes of a recorded tool call."""
        if isinstance(self.value, dict):
            self.value.update(changed)
            for name in removed:
                self.value.pop(name, None)
        elif self.value is not None:
            for name, value in changed.items():
                setattr(self.value, name, self._read(name, value))
