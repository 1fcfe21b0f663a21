import pytest

pytest.importorskip("google.adk")
from adk_scripted import ScriptedLlm, call, chat, say
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner
from google.adk.tools import LongRunningFunctionTool
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from evaltui.agents.adapters.adk.adapter import AdkAdapter
from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.model.eval_set import tool_calls

pytestmark = pytest.mark.adk


def agent(answers, name="root", **fields):
    return LlmAgent(name=name, description=name, model=ScriptedLlm(answers=answers), **fields)


def names(invocation):
    return [made.name for made in tool_calls(invocation.intermediate_data)]


def look_up(order: str) -> dict:
    return {"order": order, "status": "shipped"}


def researcher(**fields):
    return agent({"anything": call(("look_up", {"order": "A1"}, "in-1")), "look_up()": say("it shipped")},
                 name="researcher", tools=[look_up], **fields)  # fmt: skip


async def test_agent_tools_in_agent_tools_nest_at_every_depth():
    middle = agent(
        {"anything": call(("researcher", {"request": "x"}, "mid-1")), "researcher()": say("found")},
        name="middle",
        tools=[AgentTool(researcher())],
    )
    root = agent({"go": call(("middle", {"request": "x"}, "out-1")), "middle()": say("ok")},
                 tools=[AgentTool(middle)])  # fmt: skip
    talk = await chat(AdkAdapter(root), "go")
    parents = {
        event.content["parts"][0]["function_call"]["name"]: event.parent for event in talk.of("tool_call")
    }
    assert parents == {"middle": "", "researcher": "out-1", "look_up": "mid-1"}


async def test_a_runner_that_a_tool_builds_is_seen():
    async def ask_expert(question: str) -> str:
        runner = InMemoryRunner(agent=agent({"anything": say("42")}, name="expert"), app_name="inner")
        session = await runner.session_service.create_session(app_name="inner", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text=question)])
        async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message):
            answer = event.content.parts[0].text
        return answer

    root = agent({"go": call(("ask_expert", {"question": "?"}, "out")), "ask_expert()": say("It is 42.")},
                 tools=[ask_expert])  # fmt: skip
    talk = await chat(AdkAdapter(root), "go")
    assert [(event.agent, event.parent) for event in talk.of("text")] == [("expert", "out"), ("root", "")]


async def test_what_is_no_json_inside_a_tool_does_not_end_the_run():
    class Thing:
        pass

    def make_thing() -> object:
        return Thing()

    inner = agent({"anything": call(("make_thing", {})), "make_thing()": say("made")},
                  name="maker", tools=[make_thing])  # fmt: skip
    root = agent({"go": call(("maker", {"request": "x"}, "out")), "maker()": say("done")},
                 tools=[AgentTool(inner)])  # fmt: skip
    talk = await chat(AdkAdapter(root), "go")
    assert talk.texts() == ["made", "done"]
    (error,) = talk.of("error")
    assert error.data == {
        "message": "tool make_thing returned a Thing, which cannot be written as JSON",
        "nested": True,
    }
    assert error.parent == "out"


async def test_transfer_skip_summarization_and_long_running_calls_all_appear():
    def quote(item: str, tool_context: ToolContext) -> dict:
        tool_context.actions.skip_summarization = True
        return {"price": 3}

    def ask_manager(reason: str) -> None:
        """Takes days."""

    manager = LongRunningFunctionTool(func=ask_manager)
    sales = agent(
        {
            "anything": call(("quote", {"item": "tea"}, "q-1")),
            "refund": call(("ask_manager", {"reason": "cold"}, "m-1")),
        },
        name="sales",
        tools=[quote, manager],
    )
    root = agent({"buy tea": call(("transfer_to_agent", {"agent_name": "sales"}, "t-1"))}, sub_agents=[sales])
    talk = await chat(AdkAdapter(root), "buy tea", "refund")
    assert [(event.agent, name) for event, name in zip(talk.of("tool_call"), talk.called(), strict=True)] == [
        ("root", "transfer_to_agent"),
        ("sales", "quote"),
        ("sales", "ask_manager"),
    ]
    (transfer,) = talk.of("transfer")
    assert (transfer.agent, transfer.data["to"]) == ("root", "sales")
    quoted = next(event for event in talk.of("tool_result") if event.parent == "q-1")
    assert quoted.data["final"] is True
    asked = talk.of("tool_call")[-1]
    assert asked.data["long_running"] == ("m-1",)
    bought, refund = invocations_from_events(talk.events)
    assert names(bought) == ["transfer_to_agent", "quote"]
    assert names(refund) == ["ask_manager"]


async def test_an_unknown_tool_is_answered_to_the_model():
    root = agent({"go": call(("no_such", {})), "no_such()": say("sorry")})
    talk = await chat(AdkAdapter(root), "go")
    assert talk.texts() == ["sorry"]
    assert talk.of("tool_result")[0].duration is None


async def test_a_failing_tool_that_a_plugin_answers_goes_on():
    class Rescue(BasePlugin):
        async def on_tool_error_callback(self, *, tool, tool_args, tool_context, error):
            return {"rescued": str(error)}

    def fail() -> str:
        raise LookupError("gone")

    def after() -> str:
        return "fine"

    root = agent({"go": call(("fail", {})), "fail()": call(("after", {})), "after()": say("ok")},
                 tools=[fail, after])  # fmt: skip
    talk = await chat(AdkAdapter(App(name="app", root_agent=root, plugins=[Rescue("rescue")])), "go")
    failed, fine = talk.of("tool_result")
    assert failed.content["parts"][0]["function_response"]["response"] == {"rescued": "gone"}
    assert failed.duration is not None
    assert not any(event.data.get("nested") for event in talk.events)
    assert fine.parent == "call-after"
