"""The context object of a run of the Agents SDK as session state, and back."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Sequence
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

from agents import RunContextWrapper
from agents.tool_context import ToolContext
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from ....core.model.events import Json
from ....text.figures import some_of
from .base import copy_state


class RunContext:
    """What tools and instructions get as `context`, made of a session state.

    `kind` is its type: None or a mapping for the state itself, else a dataclass or a pydantic model with the
    keys of the state as fields, or a class that is made without arguments, whose state nobody knows. Raises
    ValueError where no such object can be made of the state.
    """

    def __init__(self, kind: type | None, state: Json) -> None:
        self._kind = None if kind is None or _is_mapping(kind) else kind
        self.value: Any = copy_state(state) if self._kind is None else _made(self._kind, state)

    def state(self) -> Json | None:
        """The state now, without what JSON cannot hold; None where the object does not tell."""
        if self._kind is None:
            held = self.value
        elif (names := _fields(self._kind)) is None:
            return None
        else:
            held = {name: getattr(self.value, name) for name in names if hasattr(self.value, name)}
        return {str(name): plain for name, one in held.items() if (plain := _plain(one)) is not _UNFIT}

    def change(self, delta: Json, removed: Sequence[str]) -> None:
        """Does what a call did that is not made again. Raises ValueError for what its type refuses."""
        if self._kind is None:
            self.value.update(copy_state(delta))
            for key in removed:
                self.value.pop(key, None)
        elif delta:
            changed = _made(self._kind, (self.state() or {}) | delta)
            for name in delta:
                setattr(self.value, name, getattr(changed, name))


_UNFIT = object()


def _plain(value: Any) -> Any:
    try:
        return to_jsonable_python(value, bytes_mode="base64")
    except ValueError:
        return _UNFIT


def _is_mapping(kind: Any) -> bool:
    origin = get_origin(kind) or kind
    return is_typeddict(origin) or (isinstance(origin, type) and issubclass(origin, dict))


def _fields(kind: Any) -> list[str] | None:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return list(kind.model_fields)
    return [one.name for one in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else None


def _made(kind: Any, state: Json) -> Any:
    names = _fields(kind)
    if names is None:
        return _made_without_arguments(kind, state)
    if unknown := [key for key in state if key not in names]:
        raise ValueError(
            f"the agent's context is a {kind.__name__}, which has no field {some_of(unknown)}; "
            "remove it from the session state"
        )
    config = None if issubclass(kind, BaseModel) else ConfigDict(arbitrary_types_allowed=True)
    try:
        return TypeAdapter(kind, config=config).validate_python(copy_state(state))
    except ValidationError as error:
        details = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise ValueError(
            f"the session state makes no {kind.__name__}, which is the agent's context: {details}"
        ) from None


def _made_without_arguments(kind: Any, state: Json) -> Any:
    if not state:
        try:
            return kind()
        except TypeError:
            pass
    raise ValueError(
        f"the agent's context is a {kind.__name__}, which cannot be made of a session state. Make it a "
        "dataclass or a pydantic model whose fields are the keys of the state"
    )


def context_type(agent: Any, functions: Iterable[Any]) -> Any:
    """The type of the context: of `Agent[T](…)`, else that which tools take as RunContextWrapper[T]; None
    where neither says one."""
    declared = get_args(getattr(agent, "__orig_class__", None))
    for kind in (*declared, *(kind for function in functions for kind in _taken(function))):
        if _is_mapping(kind) or (isinstance(kind, type) and kind is not object):
            return kind
    return None


def _taken(function: Any) -> list[Any]:
    first = next(iter(inspect.signature(function).parameters), None)
    try:
        hints = get_type_hints(function)
    except Exception:
        # Names that are imported for type checkers only.
        return []
    hint = hints.get(first) if first else None
    return list(get_args(hint)) if get_origin(hint) in (RunContextWrapper, ToolContext) else []
