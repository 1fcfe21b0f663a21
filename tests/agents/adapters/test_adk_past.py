"""A conversation with a google-adk agent, cut anywhere, goes on from its past as if it had not been."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest

pytest.importorskip("google.adk")

from google.adk.agents import LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.apps import App
from google.adk.apps.app import ResumabilityConfig
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.tools import ToolContext
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st
from pydantic import PrivateAttr
from talking import assert_goes_on, repeated, talk, user, work_of

from evaltui.agents.adapters.adk.adapter import AdkAdapter
from evaltui.agents.adapters.base import SessionSpec
from evaltui.core.conversation.replay import past_of_turns, steps_of_invocation
from evaltui.core.model.eval_set import Invocation

pytestmark = [pytest.mark.adk, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


class Knowing(BaseLlm):
    """Does what the user asks for in one word, and then answers with all that it is sent."""

    model: str = "knowing"
    _sent: list = PrivateAttr(default_factory=list)

    async def generate_content_async(self, llm_request, stream=False):
        sent = [content.model_dump(mode="json", exclude_none=True) for content in llm_request.contents]
        self._sent.append(sent)
        last = llm_request.contents[-1].parts[-1]
        if last.text is not None:
            word, _, target = last.text.partition(" ")
        else:
            word, target = "", ""
        known = json.dumps([llm_request.config.system_instruction, sent], sort_keys=True)
        say = types.Part(text=hashlib.sha256(known.encode()).hexdigest()[:8])
        # ADK tells an agent whom it may hand the conversation to.
        may_go = f"`{target}`" in str(llm_request.config.system_instruction)
        calls = {
            "go" if may_go else "stay": [("transfer_to_agent", {"agent_name": target})],
            "ask": [(target, {"request": "hello"})],
            "set": [("change", {"key": key}) for key in target.split()],
            "wait": [("approve", {})],
            "finish": [("finish_task", {"result": "done"})],
        }.get(word, [])
        parts = [types.Part(function_call=types.FunctionCall(name=name, args=args)) for name, args in calls]
        yield LlmResponse(content=types.Content(role="model", parts=parts or [say]))


def change(key: str, tool_context: ToolContext) -> dict:
    """Change the state."""
    tool_context.state[key] = [*(tool_context.state.get(key) or []), len(tool_context.state.to_dict())]
    return {"state": {key: repr(value) for key, value in sorted(tool_context.state.to_dict().items())}}


def approve() -> None:
    """Ask somebody, who takes their time."""


def agent(name, **fields):
    return LlmAgent(
        name=name,
        model=Knowing(),
        instruction="You know {n?} and {app:n?} and {user:n?}",
        **({"tools": [change]} | fields),
    )


def tree():
    expert = AgentTool(agent("expert", tools=[change]))
    pipeline = SequentialAgent(
        name="pipeline", sub_agents=[agent("first", output_key="said"), agent("second")]
    )
    both = ParallelAgent(name="both", sub_agents=[agent("left"), agent("right")])
    loop = LoopAgent(name="loop", sub_agents=[agent("again")], max_iterations=2)
    billing = agent("billing", sub_agents=[agent("refunds", disallow_transfer_to_parent=True)])
    return agent(
        "root",
        tools=[change, expert, LongRunningFunctionTool(approve)],
        sub_agents=[billing, pipeline, both, loop],
    )


MESSAGES = st.sampled_from(
    [
        "hello",
        "set n",
        "set app:n user:n temp:n",
        "ask expert",
        "wait",
        "go root",
        "go billing",
        "go refunds",
        "go pipeline",
        "go both",
        "go loop",
    ]
)
START = SessionSpec(
    app_name="shop", user_id="ann", state={"n": [1], "app:n": [2], "user:n": [3], "temp:n": [4]}
)


@given(messages=st.lists(MESSAGES, min_size=1, max_size=5), data=st.data())
async def test_a_conversation_cut_anywhere_goes_on_as_if_it_had_not_been(messages, data):
    cut = data.draw(st.integers(0, len(messages)), label="cut")
    await assert_goes_on(AdkAdapter(tree()), messages, cut, START)


async def test_the_agent_that_had_the_conversation_keeps_it():
    whole, rest = await assert_goes_on(AdkAdapter(tree()), ["hello", "go billing", "more"], 2)
    assert {event.agent for event in rest.of("text")} == {"billing"}
    assert whole.of("transfer")[0].data["to"] == "billing"


async def test_state_of_the_app_and_user_is_restored_and_temporary_state_is_not():
    whole = await talk(AdkAdapter(tree()), ["set app:n user:n temp:n n"], START)
    (restored,) = (await talk(AdkAdapter(tree()), [], START, past_of_turns(whole.turns))).states
    assert sorted(restored) == ["app:n", "n", "user:n"]
    assert [len(restored[key]) for key in sorted(restored)] == [2, 2, 2]
    assert whole.of("state")


async def test_files_thoughts_and_signatures_come_back_as_they_were():
    image = {"inline_data": {"mime_type": "image/png", "data": base64.b64encode(b"\xffpng").decode()}}

    class Thinking(BaseLlm):
        model: str = "thinking"
        _sent: list = PrivateAttr(default_factory=list)

        async def generate_content_async(self, llm_request, stream=False):
            self._sent.append(llm_request.model_copy(deep=True).contents)
            parts = [
                types.Part(text="Hm.", thought=True, thought_signature=b"\xff\x00"),
                types.Part(text="Nice."),
            ]
            yield LlmResponse(content=types.Content(role="model", parts=parts))

    root = LlmAgent(name="root", model=Thinking())
    await assert_goes_on(AdkAdapter(root), [{"parts": [{"text": "look"}, image]}, "again"], 1)
    _, without, after = root.model._sent
    assert without == after
    assert after[0].parts[1].inline_data.data == b"\xffpng"


async def test_a_task_that_is_under_way_goes_on_with_its_agent_alone():
    worker = agent("worker", mode="task", description="works", tools=[])
    root = agent("root", sub_agents=[worker])
    _, rest = await assert_goes_on(AdkAdapter(root), ["hello", "ask worker", "more", "still"], 3)
    assert {event.agent for event in rest.of("text")} == {"worker"}
    before = worker.model._sent[-2]
    assert worker.model._sent[-1] == before


async def test_a_task_that_is_done_is_known_to_the_agent_that_set_it():
    root = agent("root", sub_agents=[agent("worker", mode="task", description="works", tools=[])])
    messages = ["hello", "ask worker", "finish", "and now?", "ask worker", "more"]
    for cut in range(len(messages)):
        whole, _ = await assert_goes_on(AdkAdapter(root), messages, cut)
    assert [event.content["parts"][0]["function_response"]["name"] for event in whole.of("tool_result")] == [
        "finish_task",
        "worker",
    ]


@pytest.mark.parametrize("resumable", [False, True])
async def test_what_took_longer_than_its_turn_is_answered_after_the_cut(resumable):
    config = ResumabilityConfig(is_resumable=True) if resumable else None
    adapter = AdkAdapter(App(name="shop", root_agent=tree(), resumability_config=config))
    whole = await talk(adapter, ["wait"])
    (asked,) = whole.of("tool_call")
    answer = {
        "role": "user",
        "parts": [{"function_response": {"id": asked.id, "name": "approve", "response": {"ok": True}}}],
    }
    past = past_of_turns(whole.turns)
    rest = await talk(adapter, [answer], past=past)
    sent = adapter._root.model._sent[-1]
    assert [list(content["parts"][0]) for content in sent] == [
        ["text"],
        ["function_call"],
        ["function_response"],
    ]
    assert len(rest.of("text")) == 1


async def test_what_takes_longer_than_its_turn_is_waited_for_after_the_cut():
    messages = ["wait", "hello", "set n", "wait", "hello"]
    for cut in range(1, len(messages)):
        await assert_goes_on(AdkAdapter(tree()), messages, cut)


async def test_state_that_adk_keeps_for_itself_is_restored_and_not_shown():
    def remember(tool_context: ToolContext) -> dict:
        """Remember what is hidden."""
        tool_context.state["_adk_inner"] = tool_context.state.get("_adk_inner", 0) + 1
        return {"known": tool_context.state["_adk_inner"]}

    whole, _ = await assert_goes_on(AdkAdapter(agent("root", tools=[remember])), ["ask remember"] * 3, 2)
    results = [event.content["parts"][0]["function_response"] for event in whole.of("tool_result")]
    assert [result["response"]["known"] for result in results] == [1, 2, 3]
    assert whole.states[-1] == {}


def expected(turn=0, **fields):
    return steps_of_invocation(
        Invocation.model_validate({"user_content": {"parts": [{"text": "hi"}]}, **fields}), turn
    )


async def test_an_expected_turn_is_the_agents_own_whoever_it_names():
    data = {
        "tool_uses": [{"name": "change", "args": {"key": "x"}}, {"name": "unanswered", "args": {}}],
        "tool_responses": [{"name": "change", "response": {"ok": True}}, {"name": "stray", "response": {}}],
        "intermediate_responses": [["agent", [{"text": "Wait."}]]],
    }
    root = tree()
    past = expected(intermediate_data=data, final_response={"parts": [{"text": "Done."}]})
    await talk(AdkAdapter(root), ["hello"], past=past)
    assert root.model._sent[-1] == [
        user("hi"),
        {"role": "model", "parts": [{"text": "Wait."}]},
        {"role": "model", "parts": [{"function_call": {"name": "change", "args": {"key": "x"}}}]},
        {"role": "user", "parts": [{"function_response": {"name": "change", "response": {"ok": True}}}]},
        {"role": "model", "parts": [{"text": "Done."}]},
        user("hello"),
    ]


async def test_an_expected_transfer_hands_the_conversation_on():
    transfer = {"name": "transfer_to_agent", "args": {"agent_name": "billing"}}
    for answer in ({"parts": [{"text": "Billing here."}]}, None):
        past = expected(intermediate_data={"tool_uses": [transfer]}, final_response=answer)
        went_on = await talk(AdkAdapter(tree()), ["hello"], past=past)
        assert {event.agent for event in went_on.of("text")} == {"billing"}


async def test_a_recorded_case_goes_on_with_its_agent():
    transfer = {"function_call": {"name": "transfer_to_agent", "args": {"agent_name": "billing"}, "id": "x"}}
    moved = {"function_response": {"name": "transfer_to_agent", "response": {"result": None}, "id": "x"}}
    data = {
        "invocation_events": [
            {"author": "root", "content": {"parts": [transfer], "role": "model"}},
            {"author": "root", "content": {"parts": [moved], "role": "user"}},
            {"author": "billing"},
        ]
    }
    past = expected(intermediate_data=data, final_response={"parts": [{"text": "Billing here."}]})
    past += expected(turn=1, final_response=None)
    went_on = await talk(AdkAdapter(tree()), ["hello"], past=past)
    assert {event.agent for event in went_on.of("text")} == {"billing"}
    assert [event.turn for event in went_on.of("user")] == [2]


async def test_a_past_of_twice_as_many_turns_is_twice_the_work():
    turn = await talk(AdkAdapter(tree()), ["set n"], START)
    pasts = [past_of_turns(repeated(turn.turns[0], number)) for number in (50, 100)]
    once, twice = [await work_of(talk(AdkAdapter(tree()), [], START, past)) for past in pasts]
    assert twice < 2.5 * once
    restored = await talk(AdkAdapter(tree()), [], START, pasts[1])
    assert len(restored.states[0]["n"]) == 2
