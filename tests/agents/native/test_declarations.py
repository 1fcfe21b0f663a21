"""What a model is told of a tool is what google-genai would tell it."""

import inspect
import json
from enum import Enum
from typing import Annotated, Any, Literal, Optional

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from evaltui.agents.native.agent import Tool


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Light(BaseModel):
    """A lamp."""

    color: Color = Color.RED
    rooms: list[str]


class House(BaseModel):
    light: Light
    next_to: Optional["House"] = None


ANNOTATIONS = [
    str,
    int,
    float,
    bool,
    Any,
    None,
    dict[str, int],
    list[Light],
    Light,
    House,
    Color,
    Literal["ON", "OFF"],
    tuple[int, str],
    tuple[int, ...],
    tuple[int, int] | None,
    int | str,
    Light | None,
    Annotated[int, Field(description="in Celsius", ge=0)],
]
DEFAULTS = [inspect.Parameter.empty, None, 1, "a", Color.BLUE, [1, (2,)], {"a": Color.RED}]
DOCS = st.sampled_from([None, "", "Says.", "Says\n\n        more.\n    "])
KINDS = [
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
]


@st.composite
def functions(draw):
    def tool(): ...

    given_kinds = sorted(draw(st.lists(st.sampled_from(KINDS), max_size=4)))
    has_default = draw(st.integers(0, len(given_kinds)))
    parameters = [
        inspect.Parameter(
            f"p{number}",
            kind,
            annotation=draw(st.sampled_from(ANNOTATIONS)),
            default=draw(st.sampled_from(DEFAULTS[1:])) if number >= has_default else inspect.Parameter.empty,
        )
        for number, kind in enumerate(given_kinds)
    ]
    tool.__signature__ = inspect.Signature(parameters)
    tool.__annotations__ = {one.name: one.annotation for one in parameters}
    tool.__doc__ = draw(DOCS)
    return tool


@given(functions())
def test_declarations_are_those_of_google_genai(tool):
    ours = Tool(tool).declaration.as_json()
    theirs = types.FunctionDeclaration.from_callable_with_api_option(callable=tool, use_json_schema=True)
    for declaration in (theirs, types.FunctionDeclaration.model_validate(ours)):
        assert json.dumps(ours) == json.dumps(declaration.model_dump(mode="json", exclude_none=True))


@pytest.mark.parametrize("default", [object(), lambda: 1])
def test_a_default_that_json_cannot_hold_is_refused(default):
    def tool(a: Any = default): ...

    with pytest.raises(TypeError, match="tool 'tool' cannot be declared to a model"):
        Tool(tool)
