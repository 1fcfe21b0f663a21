"""Graphs of LangGraph and agents of langchain, with models that answer by rules, in their own environment."""

from __future__ import annotations

import asyncio
import json
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest
from framework_hosts import Talk, recording, responds, talker
from framework_loops import Loop, example

SOURCE = '''
    import asyncio
    import json
    from dataclasses import dataclass
    from typing import Annotated

    from langchain.agents import create_agent
    from langchain.agents.middleware import HumanInTheLoopMiddleware
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
    from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
    from langchain_core.tools import InjectedToolCallId, tool
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import InjectedState
    from langgraph.runtime import Runtime
    from langgraph.types import Command, interrupt

    CALLS = {
        "wrong": [("price", {"order": "x"})],
        "remove": [("remove", {"path": "a"}), ("remove", {"path": "b"})],
        "human": [("human", {"what": "name"})],
        "hand over": [("to_writer", {})],
    }

    class Rules(BaseChatModel):
        streams: bool = False
        model: str = "rules"

        @property
        def _llm_type(self):
            return "rules"

        def bind_tools(self, tools, **settings):
            return self.bind(tools=[convert_to_openai_tool(one) for one in tools], **settings)

        def _message(self, messages):
            last = messages[-1]
            if isinstance(last, ToolMessage):
                return AIMessage(f"results: {last.text}")
            calls = CALLS.get(last.text)
            if last.text.isdigit():
                calls = [("price", {"order": int(last.text)})]
            if not calls:
                return AIMessage(f"{len(messages)} messages")
            made = [{"name": n, "args": a, "id": f"{last.text}-{i}"} for i, (n, a) in enumerate(calls)]
            return AIMessage("I look.", tool_calls=made)

        def _generate(self, messages, stop=None, run_manager=None, **settings):
            return ChatResult(generations=[ChatGeneration(message=self._message(messages))])

    class Streaming(Rules):
        async def _astream(self, messages, stop=None, run_manager=None, **settings):
            for word in ("written ", "for ", messages[-1].text):
                yield ChatGenerationChunk(message=AIMessageChunk(word))

    @dataclass
    class Context:
        currency: str = "EUR"

    @tool
    def price(order: int, state: Annotated[dict, InjectedState]) -> dict:
        """The price of an order."""
        return {"price": order + 0.5, "before": len(state["messages"])}

    @tool
    def remove(path: str) -> str:
        """Removes a file."""
        return f"removed {path}"

    @tool
    def human(what: str) -> str:
        """Asks a person."""
        return f"they said {interrupt(what)} and {interrupt({'again': what})}"

    @tool
    def to_writer(call_id: Annotated[str, InjectedToolCallId]) -> Command:
        """Hands over."""
        message = ToolMessage("handed over", tool_call_id=call_id, name="to_writer")
        return Command(goto="writer", graph=Command.PARENT, update={"messages": [message]})

    desk = create_agent(
        Rules(),
        [price, remove, human, to_writer],
        system_prompt="Be short.",
        name="desk",
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"remove": True})],
    )

    class Whole(MessagesState):
        looked_up: Annotated[list[int], lambda old, new: old + new]
        currency: str
        tool: object

    def start(state: Whole, runtime: Runtime[Context]) -> Command:
        text = state["messages"][-1].text
        found = {"looked_up": [int(text)]} if text.isdigit() else {}
        return Command(goto="desk", update={"currency": runtime.context.currency, "tool": print, **found})

    async def writer(state: Whole):
        whole = None
        async for chunk in Streaming().astream([HumanMessage("you")]):
            whole = chunk if whole is None else whole + chunk
        return {"messages": [("ai", whole.text)]}

    graph = StateGraph(Whole, context_schema=Context)
    graph.add_node(start)
    graph.add_node("desk", desk, destinations=("writer",))
    graph.add_node(writer)
    graph.add_edge(START, "start")
    root_agent = graph.compile(name="shop")
'''


async def talks(folder: Path) -> SimpleNamespace:
    made = SimpleNamespace()
    async with talker(folder, SOURCE) as shop:
        made.two = await shop.talk("7", "count", state={"looked_up": [1], "currency": "USD"})
        made.wrong = await shop.talk("wrong")
        made.removed = await shop.talk("remove", yes, no)
        made.human = await shop.talk("human", said("Ada"), said("Bob"))
        messages = ("7", "human", said("Ada"), said("Bob"), "hand over")
        made.recorded = await shop.talk(*messages, recorded=recording("record", "record"))
        kept = json.loads(json.dumps(made.recorded.lines))
        made.replayed = await shop.talk(*messages, recorded=recording("replay", "stub", kept))
        made.empty = await shop.talk({"role": "user", "parts": []})
        made.refused = await shop.talk("7", state={"looked": []})
        # A channel of the graph that is not in its input.
        made.dropped = await shop.talk("7", state={"jump_to": "end"})
    return made


# The ids of a graph's own requests are new each time, so that they are not named.
yes = responds("", "adk_request_confirmation", {"confirmed": True})
no = responds("", "adk_request_confirmation", {"confirmed": False})
yes["parts"] += no["parts"]


def said(what: str) -> dict:
    return responds("", "adk_request_input", {"result": what})


@pytest.fixture
def own_hosts(fork_hosts_of):
    fork_hosts_of("langgraph")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    return asyncio.run(talks(tmp_path_factory.mktemp("langgraph")))


def test_messages_and_state_of_inner_graphs_are_the_graph_s_own(made):
    (state, *_) = made.two.of("state")
    # The update of a node goes through the reducers of the graph. The currency is set to that of the context,
    # which has the initial state, too.
    assert state.data["delta"] == {"looked_up": [1, 7]}
    text = made.two.of("text")[0]
    assert (text.agent, text.branch) == ("desk", "desk")
    # The state that a tool gets injected is no argument of its call.
    assert made.two.calls() == [("price", {"order": 7})]
    assert made.two.results() == [{"price": 7.5, "before": 2}]
    # Values that JSON cannot hold are not part of the state.
    assert made.two.state == {"looked_up": [1, 7], "currency": "USD"}


def test_arguments_that_a_tool_refuses_are_its_error(made):
    assert "valid integer" in made.wrong.results()[0]["error"]


def test_calls_that_need_approval_wait_for_a_person(made):
    names = [name for name, _ in made.removed.calls()]
    assert names == ["remove", "remove", "adk_request_confirmation", "adk_request_confirmation"]
    asked = made.removed.calls()[2][1]["originalFunctionCall"]
    assert (asked["name"], asked["args"]) == ("remove", {"path": "a"})
    assert {event.agent for event in made.removed.of("tool_result")} == {"desk"}
    rejected, removed = made.removed.results()
    assert "User rejected" in rejected["error"]
    assert removed == {"result": "removed a"}


def asked_for(talk: Talk) -> list:
    return [args for name, args in talk.calls() if name == "adk_request_input"]


def test_an_interrupt_waits_for_its_response(made):
    assert asked_for(made.human) == [
        {"message": "name"},
        {"message": "Input requested", "payload": {"again": "name"}},
    ]
    assert made.human.results() == [{"result": "they said Ada and Bob"}]


def test_a_message_without_parts_is_refused(made):
    assert made.empty.error is not None
    assert "the message is empty" in made.empty.error.message


def test_a_replay_asks_no_model_and_calls_no_tool(made):
    replayed = made.replayed
    assert replayed.error is None
    assert replayed.texts() == made.recorded.texts()
    assert (replayed.results(), replayed.state) == (made.recorded.results(), made.recorded.state)
    assert asked_for(replayed) == asked_for(made.recorded)
    assert all(event.data["replayed"] for event in replayed.of("model_request"))
    # A tool that hands over works on the graph itself.
    stubbed = [event.data.get("stubbed") for event in replayed.of("tool_result")]
    assert stubbed[:2] == ["recording", "recording"]


STRUCTURED = """
    from langgraph.graph import START, MessagesState, StateGraph

    class Whole(MessagesState):
        structured_response: dict

    def answer(state):
        is_passed_on = state["messages"][-1].text == "pass on"
        return state if is_passed_on else {"structured_response": {"ok": True}}

    root_agent = StateGraph(Whole).add_node(answer).add_edge(START, "answer").compile()
"""


@pytest.mark.usefixtures("own_hosts")
async def test_a_structured_response_that_equals_the_one_before_is_a_response(tmp_path):
    async with talker(tmp_path, STRUCTURED) as graph:
        talk = await graph.talk("first", "second", "pass on")
    assert [(event.turn, event.data["output"]) for event in talk.of("text")] == [
        (0, {"ok": True}),
        (1, {"ok": True}),
    ]


SEARCHING = """
    from langchain_core.messages import AIMessage
    from langgraph.graph import START, MessagesState, StateGraph

    BLOCKS = {
        "anthropic": [
            {"type": "text", "text": "I look."},
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "news"}},
            {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
        ],
        "openai": [
            {"type": "web_search_call", "id": "s1", "status": "completed", "action": {"query": "news"}},
        ],
    }

    def search(state):
        provider = state["messages"][-1].text
        content = [*BLOCKS[provider], {"type": "text", "text": "Nothing new."}]
        return {"messages": [AIMessage(content, response_metadata={"model_provider": provider})]}

    root_agent = StateGraph(MessagesState).add_node(search).add_edge(START, "search").compile()
"""


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
@pytest.mark.usefixtures("own_hosts")
async def test_calls_that_the_provider_of_a_model_makes_are_calls(tmp_path, provider):
    async with talker(tmp_path, SEARCHING) as graph:
        talk = await graph.talk(provider)
    assert talk.calls() == [("web_search", {"query": "news"})]
    assert len(talk.results()) == 1
    last = talk.of("text")[-1]
    assert (last.content["parts"], last.data.get("final")) == ([{"text": "Nothing new."}], True)


def test_an_initial_state_that_the_graph_has_no_place_for_is_refused(made):
    assert "the initial state has the key 'looked'" in made.refused.error.message
    assert "the initial state has the key 'jump_to'" in made.dropped.error.message


MODEL_STATE = """
    from langchain_core.messages import AIMessage
    from langgraph.graph import START, StateGraph
    from pydantic import BaseModel, Field

    class Paint(BaseModel):
        color: str = Field(default="blue", alias="colour")

    class State(BaseModel):
        messages: list = []
        paint: Paint = Paint()
        size: int = Field(default=1, alias="Size")

    def answer(state: State):
        return {"messages": [AIMessage(f"{state.paint.color} {state.size}")]}

    root_agent = StateGraph(State).add_node(answer).add_edge(START, "answer").compile()
"""


@pytest.mark.usefixtures("own_hosts")
async def test_an_initial_state_that_the_model_of_a_graph_ignores_is_refused(tmp_path):
    async with talker(tmp_path, MODEL_STATE) as graph:
        taken = await graph.talk("hi", state={"paint": {"colour": "red"}})
        refused = [
            await graph.talk("hi", state=state) for state in ({"paint": {"color": "red"}}, {"size": 2})
        ]
    assert taken.texts() == ["red 1"]
    assert [talk.error.message.partition(", which")[0] for talk in refused] == [
        "the initial state has the key 'paint.color'",
        "the initial state has the key 'size'",
    ]


@pytest.mark.usefixtures("own_hosts")
def test_the_example_of_the_guide_in_the_whole_loop(tmp_path, capsys):
    """With a model that answers by rules."""
    rules = textwrap.dedent(SOURCE.partition("    class Streaming")[0])
    source = rules + example("LangGraph").replace('"openai:gpt-5"', "Rules()")
    loop = Loop(tmp_path, source, capsys)
    (turn,) = loop.record("7")
    assert turn["final_response"]["parts"] == [{"text": 'results: {"price": 12.5}'}]
    loop.replays_without_model_and_tool()
    loop.edit('"order": int(last.text)', '"order": 9')
    code, printed = loop.run()
    assert (code, "price: order is 9, expected 7" in printed) == (1, True), printed


GUARDED = """
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph


def call(order):
    return [{"name": "find", "args": {"order": order}, "id": "c1", "type": "tool_call"}]


def model(state):
    return {"messages": [AIMessage("card 1234", id="a", tool_calls=call(1))]}


def guard(state):
    last = state["messages"][-1]
    match state["messages"][-2].text:
        case "replace":
            return {"messages": [AIMessage("card ****", id="a", tool_calls=call(2))]}
        case "change":
            last.content, last.tool_calls = "card ****", call(2)
            return {"messages": [last]}
        case "in place":
            last.content, last.tool_calls = "card ****", call(2)


def tools(state):
    return {"messages": [ToolMessage("found", tool_call_id="c1", name="find")]}


graph = StateGraph(MessagesState).add_node(model).add_node(guard).add_node(tools)
root_agent = graph.add_edge(START, "model").add_edge("model", "guard").add_edge("guard", "tools").compile()
"""


@pytest.mark.parametrize("message", ["replace", "change", "in place"])
@pytest.mark.usefixtures("own_hosts")
def test_a_message_that_a_node_changed_counts_as_it_was_changed(tmp_path, capsys, message):
    (turn,) = Loop(tmp_path, GUARDED, capsys).record(message)
    call, result = (event["content"]["parts"] for event in turn["intermediate_data"]["invocation_events"])
    assert call[0] == {"text": "card ****"}
    assert call[1]["function_call"]["args"] == {"order": 2}
    assert result[0]["function_response"]["response"] == {"result": "found"}


SETTINGS = '''
import time

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool


class Rules(BaseChatModel):
    model: str = "rules"
    top_p: float = 0.1
    max_retries: int = 2
    num_ctx: int = 2048
    stop: list = []
    model_kwargs: dict = {}
    calls: int = 0

    @property
    def _llm_type(self):
        return "rules"

    @property
    def _identifying_params(self):
        return {"model": self.model, "top_p": self.top_p, "max_retries": self.max_retries}

    def bind_tools(self, tools, **settings):
        return self.bind(tools=tools, **settings)

    def _generate(self, messages, stop=None, run_manager=None, **settings):
        self.calls += 1
        call = {"name": "find", "args": {"order": "x"}, "id": "c1"}
        message = AIMessage([], tool_calls=[call])
        if isinstance(messages[-1], ToolMessage):
            message = AIMessage("no number" if "valid integer" in messages[-1].text else "found")
        return ChatResult(generations=[ChatGeneration(message=message)])


@tool
def find(order: int) -> str:
    """Finds an order."""
    return "found"


settings = {"extra_headers": {"id": str(time.time())}, "seed": 1}
root_agent = create_agent(Rules(num_ctx=2048, stop=["."], model_kwargs=settings), [find])
'''


@pytest.mark.usefixtures("own_hosts")
def test_a_replay_knows_calls_that_were_refused_and_notices_other_settings_of_the_model(tmp_path, capsys):
    loop = Loop(tmp_path, SETTINGS, capsys)
    (turn,) = loop.record("hi")
    assert turn["final_response"]["parts"] == [{"text": "no number"}]
    code, printed = loop.run("--record", "auto")
    assert (code, "2 live model calls" in printed) == (0, True), printed
    loop.edit("max_retries: int = 2", "max_retries: int = 3")
    code, printed = loop.run("--record", "replay")
    assert (code, "0 live model calls, 2 replayed" in printed) == (0, True), printed
    for before, after, difference in (
        ("top_p: float = 0.1", "top_p: float = 0.9", "top_p is 0.9, was 0.1"),
        ("num_ctx=2048,", "num_ctx=64,", "num_ctx is 64, was 2048"),
        ('["."]', '["!"]', 'stop.0 is "!", was "."'),
        ('"seed": 1', '"seed": 2', "model_kwargs.seed is 2, was 1"),
        ("Finds an order.", "Finds a letter.", "declaration changed find"),
    ):
        loop.edit(before, after)
        code, printed = loop.run("--record", "replay")
        assert (code, difference in printed) == (3, True), printed
        loop.edit(after, before)
