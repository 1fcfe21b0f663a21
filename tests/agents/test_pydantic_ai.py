"""Agents of Pydantic AI, with models that answer by rules, in an environment of their own."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from framework_hosts import recording, responds, talker
from framework_loops import Loop, example

SOURCE = '''
    import asyncio
    from dataclasses import dataclass, field

    from pydantic import BaseModel
    from pydantic_ai import Agent, ModelRetry, RunContext
    from pydantic_ai.exceptions import CallDeferred
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.tools import DeferredToolRequests

    CALLS = {
        "ask": [("ask_other", {"question": "why"})],
        "wrong": [("price", {"order": "x"}), ("price", {"order": 0})],
        "remove": [("remove", {"path": "a"}), ("remove", {"path": "b"})],
        "later": [("later", {"what": "x"})],
    }

    class City(BaseModel):
        name: str
        people: int = 0

    @dataclass
    class Desk:
        looked_up: list[int] = field(default_factory=list)
        client: object = field(default_factory=object)

    def answer(messages, info):
        last = messages[-1].parts
        if last[-1].part_kind != "user-prompt":
            text = "; ".join(str(part.content) for part in last)
            return ModelResponse(parts=[TextPart(f"results: {text}")])
        prompt = last[-1].content
        if prompt == "city":
            return ModelResponse(parts=[ToolCallPart("final_result", {"name": "Rome"})])
        if prompt == "count":
            said = sum(message.kind == "response" for message in messages)
            return ModelResponse(parts=[TextPart(f"{said} responses before")])
        calls = CALLS.get(prompt) or [("price", {"order": int(prompt)})]
        ids = [f"{prompt}-{number}" for number in range(len(calls))]
        parts = [ToolCallPart(*call, tool_call_id=one) for call, one in zip(calls, ids)]
        return ModelResponse(parts=[TextPart("I look."), *parts])

    def because(messages, info):
        return ModelResponse(parts=[TextPart("because")])

    other = Agent(FunctionModel(because), name="other")
    root_agent = Agent(
        FunctionModel(answer, model_name="rules"),
        name="desk",
        deps_type=Desk,
        instructions="Be short.",
        output_type=[str, City, DeferredToolRequests],
    )

    @root_agent.tool
    async def price(ctx: RunContext[Desk], order: int) -> dict[str, float]:
        """The price of an order."""
        ctx.deps.looked_up.append(order)
        await asyncio.sleep(0.01)
        if not order:
            raise ModelRetry("no such order")
        return {"price": order + 0.5}

    @root_agent.tool_plain
    async def ask_other(question: str) -> str:
        return (await other.run(question)).output

    @root_agent.tool_plain(requires_approval=True)
    def remove(path: str) -> str:
        return f"removed {path}"

    @root_agent.tool_plain
    def later(what: str) -> str:
        raise CallDeferred()
'''


def confirms(number: int, confirmed: bool) -> dict[str, Any]:
    return responds(f"confirm-remove-{number}", "adk_request_confirmation", {"confirmed": confirmed})


async def talks(folder: Path) -> SimpleNamespace:
    made = SimpleNamespace()
    async with talker(folder, SOURCE) as desk:
        made.wrong = await desk.talk("wrong")
        made.city = await desk.talk("city")
        made.removed = await desk.talk("remove", confirms(0, True), confirms(1, False))
        made.asked = await desk.talk("remove")
        made.answered = await desk.talk(confirms(0, True), confirms(1, True), past=made.asked.past())
        result = responds("result-later-0", "adk_request_input", {"result": "42"})
        half = await desk.talk("remove", confirms(0, True))
        made.half = await desk.talk(confirms(1, False), past=half.past())
        made.later = await desk.talk("later", result)
        made.recorded = await desk.talk("7", "wrong", "ask", recorded=recording("record", "record"))
        kept = json.loads(json.dumps(made.recorded.lines))
        made.replayed = await desk.talk("7", "wrong", "ask", recorded=recording("replay", "stub", kept))
        made.unknown = await desk.talk("7", state={"looked": []})
        made.refused = await desk.talk("7", state={"looked_up": "many"})
        code = {"executable_code": {"code": "1", "language": "PYTHON"}}
        made.part = await desk.talk({"role": "user", "parts": [{"text": "7"}, code]})
    return made


@pytest.fixture
def own_hosts(fork_hosts_of):
    fork_hosts_of("pydantic")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    return asyncio.run(talks(tmp_path_factory.mktemp("pydantic_ai")))


def test_what_a_tool_sends_back_to_the_model_is_its_error(made):
    errors = [result["error"] for result in made.wrong.results()]
    assert "valid integer" in errors[0]
    assert errors[1] == "no such order"
    assert made.wrong.state == {"looked_up": [0]}


def test_a_structured_answer_is_json_and_no_call(made):
    assert (made.city.texts(), made.city.calls()) == (['{"name":"Rome","people":0}'], [])
    assert made.city.of("text")[-1].data["output"] == {"name": "Rome", "people": 0}


def test_calls_that_need_approval_wait_for_a_person(made):
    assert [name for name, _ in made.asked.calls()] == ["remove", "remove"] + ["adk_request_confirmation"] * 2
    assert made.asked.results() == []
    assert made.removed.results() == [{"result": "removed a"}, {"error": "The tool call was denied."}]
    # One that has no response yet is asked for again.
    assert [name for name, _ in made.removed.calls()][4:] == ["adk_request_confirmation"]
    assert made.half.results() == made.removed.results()
    # In a conversation that begins where they wait.
    assert made.answered.results() == [{"result": "removed a"}, {"result": "removed b"}]


def test_a_deferred_call_gets_its_result_from_outside(made):
    assert made.later.calls()[-1][0] == "adk_request_input"
    assert made.later.results() == [{"result": "42"}]
    assert made.later.texts()[-1] == "results: 42"


def test_a_replay_asks_no_model_and_calls_no_tool(made):
    replayed = made.replayed
    assert replayed.error is None
    assert replayed.texts() == made.recorded.texts()
    assert (replayed.results(), replayed.state) == (made.recorded.results(), made.recorded.state)
    assert all(event.data["replayed"] for event in replayed.of("model_request"))
    assert [event.data.get("stubbed") for event in replayed.of("tool_result")] == [
        "recording",
        None,  # Its arguments were refused, so it was not called.
        "recording",
        "recording",
    ]
    assert replayed.of("model_request", nested=True) == []


def test_dependencies_that_cannot_be_made_are_named(made):
    assert "deps of type Desk cannot be made from the session state" in made.refused.error.message


def test_an_initial_state_that_the_dependencies_have_no_place_for_is_refused(made):
    assert "the initial state has the key 'looked'" in made.unknown.error.message


def test_a_part_that_the_agent_cannot_get_is_refused(made):
    assert made.part.error.message == (
        "part 2 of the message has executable_code: a Pydantic AI agent takes text, inline_data, file_data, "
        "function_response. Remove it from the message"
    )


@pytest.mark.usefixtures("own_hosts")
def test_the_example_of_the_guide_in_the_whole_loop(tmp_path, capsys):
    """Its model is Pydantic AI's own for tests, which calls each tool once."""
    loop = Loop(tmp_path, example("Pydantic AI").replace("openai:gpt-5", "test"), capsys)
    (turn,) = loop.record("What does order 0 cost?")
    assert turn["final_response"]["parts"] == [{"text": '{"price":{"price":12.5}}'}]
    loop.replays_without_model_and_tool()
    loop.edit("order: int", "order: str")
    code, printed = loop.run()
    assert (code, 'price: order is "a" (string), expected 0' in printed) == (1, True), printed
    loop.edit("deps_type=dict, ", "")
    loop.start_in({"looked_up": 0})
    code, printed = loop.run()
    assert (code, "the initial state has the key 'looked_up', but the agent has no deps" in printed) == (
        3,
        True,
    ), printed


SETTINGS = """
from pydantic import BaseModel
from pydantic_ai import Agent, ToolOutput
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models.function import FunctionModel


class Price(BaseModel):
    euros: float


def rules(messages, info):
    return ModelResponse(parts=[ToolCallPart("final_result", {"euros": 1}, tool_call_id="f")])


root_agent = Agent(
    FunctionModel(rules, model_name="rules"),
    output_type=[ToolOutput(Price)],
    model_settings={"top_p": 0.1, "timeout": 5, "extra_headers": {"authorization": "b"}},
)
"""
CHANGES = {
    '"top_p": 0.1': ('"top_p": 0.9', "settings.top_p is 0.9, was 0.1"),
    "(Price)]": ("(Price), str]", "text_allowed is new"),
    "euros: float": ("euros: int", "declaration changed"),
}


@pytest.mark.usefixtures("fresh_hosts")
def test_a_replay_notices_what_the_answer_depends_on_and_no_more(tmp_path, capsys):
    loop = Loop(tmp_path, SETTINGS, capsys)
    loop.record("hi")
    assert loop.run("--record", "record")[0] == 0
    assert "authorization" not in (tmp_path / "bot" / "recordings" / "a.jsonl").read_text()
    loop.edit('"timeout": 5, "extra_headers": {"authorization": "b"}', '"timeout": 6')
    code, printed = loop.run("--record", "replay")
    assert (code, "0 live model calls, 1 replayed" in printed) == (0, True), printed
    for old, (new, reason) in CHANGES.items():
        loop.edit(old, new)
        code, printed = loop.run("--record", "replay")
        assert (code, reason in " ".join(printed.split())) == (3, True), printed
        loop.edit(new, old)
