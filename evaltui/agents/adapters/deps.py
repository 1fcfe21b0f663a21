"""Creates the object that tools get beside their arguments from session state; its class is the agent's
own."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import AliasChoices, BaseModel, RootModel, TypeAdapter
from pydantic.errors import PydanticUserError

from ...core.model.events import Json
from .base import AgentLoadError, apply_changes, copy_state
from .values import jsonable


def keys_not_taken(data: Any, value: Any, path: str = "", *, by_name: bool = True) -> Iterator[str]:
    """The paths of keys in JSON data that are no field of the dataclass or model created from it.

    pydantic ignores such keys at every depth. `by_name` says whether a field that has an alias was validated
    by its name, too.
    """
    if isinstance(data, list) and isinstance(value, Sequence):
        for number, (item, item_value) in enumerate(zip(data, value, strict=False)):
            yield from keys_not_taken(item, item_value, f"{path}[{number}]", by_name=by_name)
    elif isinstance(value, RootModel):
        yield from keys_not_taken(data, value.root, path, by_name=by_name)
    elif isinstance(data, dict):
        members = _members(data, value, by_name=by_name)
        for key, item in data.items():
            key_path = f"{path}.{key}" if path else str(key)
            if key in members:
                yield from keys_not_taken(item, members[key], key_path, by_name=by_name)
            elif not _takes_more(value):
                yield key_path


def _members(data: Json, value: Any, *, by_name: bool) -> dict[str, Any]:
    """The members of a value created from JSON data, by the keys of the data that name them."""
    if isinstance(value, Mapping):
        # The keys of a dict of numbers or dates have changed, a TypedDict has lost those it does not declare.
        is_converted = len(value) == len(data) and not value.keys() & data.keys()
        return dict(zip(data, value.values(), strict=True)) if is_converted else dict(value)
    if not isinstance(value, BaseModel) and not dataclasses.is_dataclass(value):
        return {}
    fields = getattr(value, "__pydantic_fields__", None)
    if fields is None:
        return {name: getattr(value, name, None) for name in inspect.signature(type(value)).parameters}
    config = getattr(value, "model_config", None) or getattr(value, "__pydantic_config__", {})
    by_name = by_name or config.get("validate_by_name") or config.get("populate_by_name") or False
    members: dict[str, Any] = {}
    for name, field in fields.items():
        aliases = _aliases(field)
        keys = [*aliases, name] if by_name or not aliases else aliases
        if key := next((key for key in keys if key in data), None):
            members[key] = getattr(value, name, None)
    return members


def _aliases(field: Any) -> list[str]:
    """The keys of data, besides its name, that a field of a model is validated from."""
    alias = field.validation_alias or field.alias
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias] if alias else []
    # An AliasPath begins with the key.
    return [choice if isinstance(choice, str) else str(choice.path[0]) for choice in choices]


def _takes_more(value: Any) -> bool:
    """Whether a value may have taken keys that are no field: only models and dataclasses are certain."""
    if isinstance(value, BaseModel):
        return value.model_config.get("extra") == "allow"
    if dataclasses.is_dataclass(value):
        return getattr(value, "__pydantic_config__", {}).get("extra") == "allow"
    return not isinstance(value, dict)


def _validated(kind: Any, data: Any) -> Any:
    adapter = TypeAdapter(kind)
    try:
        # A past conversation has its state by the names of fields, an initial state may have their aliases.
        return adapter.validate_python(data, by_alias=True, by_name=True)
    except TypeError:
        # Before pydantic 2.11.
        return adapter.validate_python(data)


class Deps:
    """The dependencies or the context of one conversation; `what` is the framework's word for them.

    `value` is created from the initial state: a dict as it is, a dataclass or a pydantic model by its fields,
    another class without arguments, whose attributes are then set; None where `deps_type` is that of None.
    Raises AgentLoadError where it cannot be created, or has no field for a key of the state that is not in
    `optional`: those that the agent takes elsewhere, too.
    """

    def __init__(
        self, deps_type: Any, state: Json, what: str = "deps", optional: Collection[str] = ()
    ) -> None:
        self._what, self._optional = what, optional
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
            for key in (key for key in state if key not in self._optional):
                raise AgentLoadError(
                    f"the initial state has the key {key!r}, but the agent has no {self._what} "
                    f"for it. Remove the key, or declare the type of its {self._what}"
                )
            return None
        if self._is_dict:
            return state
        try:
            if hasattr(self._kind, "__pydantic_validator__"):
                # Before pydantic 2.10, models have only the latter.
                kind = self._kind
                fields = getattr(kind, "__pydantic_fields__", None) or getattr(kind, "model_fields", {})
                keys = {key for name, field in fields.items() for key in (name, *_aliases(field))}
                state = {key: state[key] for key in state if key in keys or key not in self._optional}
                value = _validated(self._kind, state)
                self._refuse(keys_not_taken(state, value))
                return value
            read = {name: self._read(name, value) for name, value in state.items()}
            init = self._initial_fields()
            value = self._kind(**{name: value for name, value in read.items() if name in init})
            # A method is no place for a value.
            attributes = [
                key for key in state if hasattr(value, key) and not inspect.isroutine(getattr(value, key))
            ]
            self._refuse(key for key in state if key not in attributes and key not in self._optional)
            self._refuse(path for key in attributes for path in keys_not_taken(state[key], read[key], key))
            for name in set(attributes) - init:
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

    def _refuse(self, unknown: Iterable[str]) -> None:
        for path in unknown:
            raise AgentLoadError(
                f"the initial state has the key {path!r}, which is no field of {self._what} of type "
                f"{self._kind.__name__}. Remove the key, or add the field"
            )

    def _read(self, name: str, value: Any) -> Any:
        try:
            return _validated(self._hints.get(name, Any), value)
        except PydanticUserError:
            return value
        except ValueError as error:
            raise ValueError(f"the key {name!r} has {error}") from error

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
            apply_changes(self.value, changed, removed)
        elif self.value is not None:
            for name, value in changed.items():
                setattr(self.value, name, self._read(name, value))
