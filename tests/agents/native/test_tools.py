import asyncio
import contextvars
import threading
from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from evaltui.agents.native.agent import Tool, ToolContext

CONTEXT = ToolContext(state={}, session_id="s", user_id="u", app_name="a")


def test_the_declaration_has_types_defaults_and_required_names():
    def set_light(
        location: str, status: Literal["ON", "OFF"], level: int = 3, tags: list[str] | None = None
    ) -> str:
        """Switch a light."""
        return ""

    declaration = Tool(set_light).declaration

    assert (declaration.name, declaration.description) == ("set_light", "Switch a light.")
    schema = declaration.parameters_json_schema
    assert schema["required"] == ["location", "status"]
    assert schema["properties"]["location"] == {"type": "string"}
    assert schema["properties"]["status"] == {"enum": ["ON", "OFF"], "type": "string"}
    assert schema["properties"]["level"] == {"type": "integer", "default": 3}


def test_descriptions_of_parameters_are_declared():
    def f(degrees: Annotated[int, Field(description="in Celsius")]): ...

    properties = Tool(f).declaration.parameters_json_schema["properties"]
    assert properties["degrees"]["description"] == "in Celsius"


async def test_the_context_is_given_and_not_declared():
    seen = []

    def remember(what: str, context: ToolContext):
        seen.append(context)
        context.state["what"] = what

    tool = Tool(remember)
    context = ToolContext(state={}, session_id="s", user_id="u", app_name="a")

    assert list(tool.declaration.parameters_json_schema["properties"]) == ["what"]
    assert await tool.call({"what": "x"}, context) == {"result": None}
    assert seen == [context]
    assert context.state == {"what": "x"}


def test_a_tool_with_nothing_but_a_context_declares_no_parameters():
    def f(context: ToolContext): ...

    assert Tool(f).declaration.parameters_json_schema is None


async def test_a_method_is_a_tool():
    class House:
        name = "villa"

        def where(self, room: str) -> str:
            return f"{room} of {self.name}"

    assert await Tool(House().where).call({"room": "attic"}, CONTEXT) == {"result": "attic of villa"}


async def test_sync_tools_run_in_a_thread_that_sees_the_context_variables():
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("set")

    def f() -> list[str]:
        return [variable.get(), threading.current_thread().name]

    value, thread = (await Tool(f).call({}, CONTEXT))["result"]
    assert value == "set"
    assert thread != threading.current_thread().name


async def test_async_tools_run_in_the_event_loop():
    async def f() -> bool:
        await asyncio.sleep(0)
        return threading.current_thread() is threading.main_thread()

    assert await Tool(f).call({}, CONTEXT) == {"result": True}


async def test_an_awaitable_from_a_sync_tool_is_awaited():
    async def inner() -> int:
        return 7

    def f():
        return inner()

    assert await Tool(f).call({}, CONTEXT) == {"result": 7}


@dataclass
class Point:
    x: int


class Light(BaseModel):
    on: bool


@pytest.mark.parametrize(
    ("result", "response"),
    [
        ({"a": 1}, {"a": 1}),
        (5, {"result": 5}),
        ([1, "x"], {"result": [1, "x"]}),
        (None, {"result": None}),
        (Point(3), {"x": 3}),
        (Light(on=True), {"on": True}),
        ([Light(on=False)], {"result": [{"on": False}]}),
    ],
)
async def test_results_become_responses(result, response):
    def f():
        return result

    assert await Tool(f).call({}, CONTEXT) == response


async def test_a_result_that_json_cannot_hold_names_the_tool_and_the_type():
    def connect():
        return threading.Lock()

    with pytest.raises(TypeError, match=r"tool 'connect' returned a lock that JSON cannot hold"):
        await Tool(connect).call({}, CONTEXT)


async def test_arguments_become_what_the_annotations_say():
    def f(light: Light, degrees: int) -> list:
        return [type(light).__name__, degrees]

    assert await Tool(f).call({"light": {"on": True}, "degrees": "19"}, CONTEXT) == {"result": ["Light", 19]}


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({}, "missing a required argument: 'degrees'"),
        ({"degrees": 1, "unit": "K"}, "unexpected keyword argument 'unit'"),
        ({"degrees": "warm"}, "valid integer"),
    ],
)
async def test_arguments_that_do_not_fit_are_told_from_errors_of_the_tool(args, why):
    def heat(degrees: int):
        raise AssertionError("must not be called")

    with pytest.raises(ValueError, match="the model called tool 'heat' with") as raised:
        await Tool(heat).call(args, CONTEXT)
    assert why in str(raised.value)


async def test_further_keyword_arguments_are_passed_on():
    def f(a: int, **rest) -> dict:
        return {"a": a, **rest}

    assert await Tool(f).call({"a": 1, "b": "x"}, CONTEXT) == {"a": 1, "b": "x"}


@pytest.mark.parametrize("error", [KeyError("k"), StopIteration("done")])
async def test_what_a_tool_raises_comes_out(error):
    def f():
        raise error

    with pytest.raises((KeyError, RuntimeError)) as raised:
        await asyncio.wait_for(Tool(f).call({}, CONTEXT), 5)
    assert error in (raised.value, raised.value.__cause__)


def test_a_parameter_without_a_type_is_refused():
    def f(a): ...

    with pytest.raises(TypeError, match="tool 'f' cannot be declared to a model: give each parameter a type"):
        Tool(f)


@pytest.mark.parametrize("thing", [5, "f", Light])
def test_what_is_no_function_is_refused(thing):
    with pytest.raises(TypeError, match="a tool must be a function or a method"):
        Tool(thing)
