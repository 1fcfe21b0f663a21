"""The object that an agent's tools get besides their arguments, made of session state and written as one."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import pydantic
import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, Field, RootModel
from typing_extensions import TypedDict

from evaltui.agents.adapters.base import AgentLoadError
from evaltui.agents.adapters.deps import Deps


class Order(BaseModel):
    id: int


@dataclass
class Desk:
    user: str
    orders: list[Order] = field(default_factory=list)
    client: object = field(default_factory=object)
    seen: int = field(default=0, init=False)


class Model(BaseModel):
    user: str = "Ada"
    orders: list[Order] = []


class Open(BaseModel, extra="allow"):
    user: str = "Ada"


class Typed(TypedDict):
    user: str


class Aliased(BaseModel):
    color: str = Field(default="blue", alias="colour")
    size: int = Field(default=1, validation_alias=AliasChoices("Size", AliasPath("sizes", 0)))


@pydantic.dataclasses.dataclass
class AliasedDataclass:
    color: str = Field(default="blue", alias="colour")


@dataclass
class Inner:
    color: str = "blue"
    fixed: int = field(default=0, init=False)


@dataclass
class Outer:
    p: Inner = field(default_factory=Inner)
    q: Aliased = field(default_factory=Aliased)
    many: list[Aliased] = field(default_factory=list)
    by_number: dict[int, Inner] = field(default_factory=dict)
    queue: deque[Inner] = field(default_factory=deque)
    typed: Typed | None = None
    root: RootModel[list[Inner]] | None = None
    open: Open | None = None
    free: object = None


class OuterModel(BaseModel):
    p: Inner = Inner()
    q: Aliased = Aliased()
    many: list[Aliased] = []
    by_number: dict[int, Inner] = {}
    queue: deque[Inner] = deque()
    typed: Typed | None = None
    root: RootModel[list[Inner]] | None = None
    open: Open | None = None
    free: object = None


class Plain:
    def __init__(self) -> None:
        self.user = "Ada"
        self.client = object()


@pytest.mark.parametrize("kind", [dict, Typed, dict[str, int], object])
def test_a_dict_is_the_state_itself(kind):
    given = {"user": "Bob", "orders": [1]}
    deps = Deps(kind, given)
    deps.value["orders"].append(2)
    assert deps.state() == {"user": "Bob", "orders": [1, 2]}
    assert given["orders"] == [1]


def test_a_dataclass_has_the_state_as_its_fields():
    deps = Deps(Desk, {"user": "Bob", "orders": [{"id": 7}], "seen": 3})
    assert (deps.value.orders, deps.value.seen) == ([Order(id=7)], 3)
    deps.value.orders.append(Order(id=8))
    # The client is nothing that JSON can hold.
    assert deps.state() == {"user": "Bob", "orders": [{"id": 7}, {"id": 8}], "seen": 3}


def test_a_model_has_the_state_as_its_fields():
    deps = Deps(Model, {"orders": [{"id": 7}]})
    deps.apply({"orders": []}, ())
    assert deps.state() == {"user": "Ada", "orders": []}
    assert Deps(Open, {"more": 1}).state() == {"user": "Ada", "more": 1}


def test_any_other_class_has_the_state_as_its_attributes():
    deps = Deps(Plain, {"user": "Bob"})
    deps.value.n = 1
    assert deps.state() == {"user": "Bob", "n": 1}


@pytest.mark.parametrize("kind", [Desk, Model, Plain])
def test_a_key_that_has_no_place_is_refused(kind):
    with pytest.raises(AgentLoadError, match=f"'age', which is no field of context of type {kind.__name__}"):
        Deps(kind, {"user": "Bob", "age": 3}, "context")


@pytest.mark.parametrize("kind", [Aliased, AliasedDataclass])
@pytest.mark.parametrize("key", ["color", "colour"])
def test_a_field_is_named_by_its_name_or_its_alias(kind, key):
    assert Deps(kind, {key: "red"}).state()["color"] == "red"
    with pytest.raises(AgentLoadError, match="session state"):
        Deps(kind, {key: 7})


def test_further_aliases_name_a_field():
    assert Deps(Aliased, {"sizes": [3]}).value.size == Deps(Aliased, {"Size": 3}).value.size == 3


TAKEN = [
    {"p": {"color": "red"}, "q": {"colour": "red"}, "many": [{"color": "red"}]},
    {"by_number": {"7": {"color": "red"}}, "typed": {"user": "Bob"}, "root": [{"color": "red"}]},
    {"open": {"more": 1}, "free": {"any": {"thing": 1}}},
]
NOT_TAKEN = {
    "p.colour": {"p": {"colour": "red"}},
    "p.fixed": {"p": {"fixed": 1}},
    "q.couleur": {"q": {"color": "red", "couleur": "red"}},
    "q.color": {"q": {"color": "red", "colour": "green"}},
    "many[1].couleur": {"many": [{"color": "red"}, {"couleur": "red"}]},
    "by_number.7.colour": {"by_number": {"7": {"colour": "red"}}},
    "typed.age": {"typed": {"user": "Bob", "age": 3}},
    "queue[0].colour": {"queue": [{"colour": "red"}]},
    "root[0].colour": {"root": [{"colour": "red"}]},
}


@pytest.mark.parametrize("kind", [Outer, OuterModel])
@pytest.mark.parametrize("state", TAKEN)
def test_nested_keys_that_are_fields_are_taken(kind, state):
    value = Deps(kind, state).value
    assert (value.p.color, value.q.color) == ("red", "red") if "p" in state else ("blue", "blue")


@pytest.mark.parametrize("kind", [Outer, OuterModel])
@pytest.mark.parametrize("path", NOT_TAKEN)
def test_a_nested_key_that_is_no_field_is_refused_by_its_path(kind, path):
    with pytest.raises(AgentLoadError, match=f"the key {path!r}, which is no field".replace("[", r"\[")):
        Deps(kind, NOT_TAKEN[path])


class Strict(BaseModel, extra="forbid"):
    user: str = "Ada"


@dataclass
class WithMethod:
    user: str = "Ada"

    def messages(self) -> str:
        return self.user


@pytest.mark.parametrize("kind", [Desk, Model, Open, Strict, WithMethod, Plain, dict])
def test_keys_that_the_agent_takes_elsewhere_need_no_field(kind):
    deps = Deps(kind, {"user": "Bob", "messages": []}, "context", ["user", "messages"])
    assert deps.state()["user"] == "Bob"
    assert ("messages" in deps.state()) == (kind is dict)
    assert callable(getattr(deps.value, "messages", len))
    assert Deps(type(None), {"user": "Bob"}, "context", ["user"]).value is None


def test_an_agent_without_any_takes_no_state():
    assert Deps(type(None), {}).state() == {}
    with pytest.raises(AgentLoadError, match="'age', but the agent has no deps for it"):
        Deps(type(None), {"age": 3})


@pytest.mark.parametrize("kind", [Desk, Model, Outer])
def test_a_key_whose_value_is_of_another_type_is_named(kind):
    key = "q" if kind is Outer else "user"
    with pytest.raises(AgentLoadError, match=rf"cannot be made from the session state(.|\n)*\b{key}\b"):
        Deps(kind, {key: 7})


def test_what_is_missing_is_named():
    with pytest.raises(AgentLoadError, match=r"deps of type Desk .*'user'"):
        Deps(Desk, {})


def test_a_call_that_is_not_made_changes_what_it_changed():
    deps = Deps(Desk, {"user": "Bob"})
    deps.apply({"orders": [{"id": 1}]}, ())
    assert deps.value.orders == [Order(id=1)]
    held = Deps(dict, {"user": "Bob", "old": 1})
    held.apply({"new": 2}, ("old",))
    assert held.state() == {"user": "Bob", "new": 2}
