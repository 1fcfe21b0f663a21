import base64
import json
from datetime import date

import pytest

pytest.importorskip("google.adk")
from adk_scripted import Chat, ScriptedLlm, call, chat, say
from google.adk.agents import BaseAgent, LlmAgent, SequentialAgent
from google.adk.apps import App
from google.adk.events.event import Event as AdkEvent
from google.adk.events.event_actions import EventActions
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import Workflow, node

from evaltui.agents.adapters.adk.adapter import AdkAdapter, agent_from_yaml
from evaltui.agents.adapters.base import AgentLoadError, SessionSpec
from evaltui.core.conversation.invocations import invocations_from_events

pytestmark = pytest.mark.adk


def agent(answers=None, name="helper", **fields):
    return LlmAgent(name=name, model=ScriptedLlm(answers=answers or {"anything": say("hello")}), **fields)


def add(a: int, b: int) -> dict:
    """Adds two numbers."""
    return {"sum": a + b}


async def test_a_model_given_by_name_and_one_inherited_from_the_parent():
    child = LlmAgent(name="child")
    LlmAgent(name="root", model="gemini-2.5-flash", sub_agents=[child])
    assert (await AdkAdapter(child).open()).model == "gemini-2.5-flash"


class Stateful(BaseAgent):
    """Says what it finds in the state and leaves a mark everywhere."""

    async def _run_async_impl(self, ctx):
        keys = ("plain", "app:shared", "user:shared")
        found = {key: ctx.session.state[key] for key in keys if key in ctx.session.state}
        yield AdkEvent(
            author=self.name,
            invocation_id=ctx.invocation_id,
            content=say(json.dumps(found)).content,
            actions=EventActions(state_delta=dict.fromkeys(keys, "mark") | {"_adk_inner": 2}),
        )


async def test_state_is_kept_across_turns_and_never_across_sessions():
    adapter = AdkAdapter(Stateful(name="stateful"))
    first = await chat(adapter, "a", "b")
    second = await chat(adapter, "a", spec=SessionSpec(user_id="test_user_id"))
    assert [len(json.loads(text)) for text in first.texts()] == [0, 3]
    assert [len(json.loads(text)) for text in second.texts()] == [0]
    assert await first.session.state() == dict.fromkeys(["plain", "app:shared", "user:shared"], "mark")


async def test_state_deltas_are_reported_without_adk_s_own_keys():
    talk = await chat(AdkAdapter(Stateful(name="stateful")), "a")
    (state,) = talk.of("state")
    assert set(state.data["delta"]) == {"plain", "app:shared", "user:shared"}


async def test_the_initial_state_is_copied(monkeypatch):
    # With this switch of ADK, what a tool gets is the very object that the session began with.
    monkeypatch.setenv("ADK_ENABLE_IN_MEMORY_SESSION_SERVICE_LIGHT_COPY", "1")
    given = {"cart": ["tea"], "user:name": "Ada"}

    def buy(tool_context: ToolContext) -> str:
        tool_context.state["cart"].append("milk")
        return "bought"

    root = agent({"buy": call(("buy", {})), "anything": say("ok")}, tools=[buy])
    talk = await chat(AdkAdapter(root), "buy", spec=SessionSpec(state=given))
    assert given == {"cart": ["tea"], "user:name": "Ada"}
    assert (await talk.session.state())["user:name"] == "Ada"


class Thing:
    pass


async def test_state_that_is_no_json_is_refused_with_its_path():
    def keep(tool_context: ToolContext) -> str:
        tool_context.state["cart"] = {"day": date(2026, 1, 2), "items": [1, Thing()]}
        return "kept"

    talk = await chat(AdkAdapter(agent({"go": call(("keep", {})), "keep()": say("ok")}, tools=[keep])), "go")
    (delta,) = [event.data["delta"] for event in talk.of("state")]
    assert delta == {"cart": {"day": "2026-01-02", "items": [1, "<Thing>"]}}
    with pytest.raises(TypeError, match=r"cart\.items\[1\] is a Thing"):
        await talk.session.state()


async def test_names_of_app_user_and_session_reach_the_agent():
    seen = []

    def who(tool_context: ToolContext) -> str:
        session = tool_context.session
        seen.append((session.app_name, session.user_id, session.id))
        return "noted"

    root = agent({"who": call(("who", {})), "anything": say("ok")}, tools=[who])
    spec = SessionSpec(app_name="my_app", user_id="ada", session_id="s-1")
    await chat(AdkAdapter(root), "who", spec=spec)
    await chat(AdkAdapter(root), "who")
    await chat(AdkAdapter(App(name="shop", root_agent=root)), "who")
    await chat(AdkAdapter(App(name="shop", root_agent=root)), "who", spec=spec)
    assert seen[0] == seen[3] == ("my_app", "ada", "s-1")
    assert seen[1][:2] == ("evaltui", "test_user_id")
    assert seen[2][:2] == ("shop", "test_user_id")
    assert len({identity for _, _, identity in seen}) == 3


async def test_a_sub_agent_by_name_keeps_the_app():
    counted = []

    class Counter(BasePlugin):
        async def before_agent_callback(self, *, agent, callback_context):
            counted.append(agent.name)

    root = agent(
        {"anything": say("root")},
        sub_agents=[agent({"anything": say("deep")}, name="billing")],
    )
    app = App(name="shop", root_agent=root, plugins=[Counter("counter")])
    adapter = AdkAdapter(app, "billing")
    assert (await adapter.open()).name == "billing"
    assert (await chat(adapter, "hi")).texts() == ["deep"]
    assert counted == ["billing"]
    assert app.root_agent is root


def test_an_unknown_sub_agent_names_the_nearest():
    root = agent(sub_agents=[agent(name="shipping"), agent(name="billing")])
    with pytest.raises(AgentLoadError, match=r"no agent 'biling'. Did you mean billing\?"):
        AdkAdapter(root, "biling")


def test_something_else_is_refused():
    with pytest.raises(AgentLoadError, match="the agent is a dict"):
        AdkAdapter({"name": "x"}, None)


async def test_agents_without_a_model_run():
    steps = [agent({"anything": say("one")}, name="one"), agent({"anything": say("two")}, name="two")]
    talk = await chat(AdkAdapter(SequentialAgent(name="both", sub_agents=steps)), "go")
    assert talk.texts() == ["one", "two"]
    assert [event.agent for event in talk.of("text")] == ["one", "two"]


async def test_a_workflow_runs_and_describes_itself():
    @node
    def shout(node_input: str) -> AdkEvent:
        return AdkEvent(author="shout", content=say(node_input.upper()).content)

    writer = agent({"anything": say("hello")}, name="writer")
    adapter = AdkAdapter(Workflow(name="flow", edges=[("START", writer, shout)]))
    info = await adapter.open()
    assert (info.name, info.sub_agents) == ("flow", ("writer",))
    assert (await chat(adapter, "hi")).texts()[-1] == "HELLO"


async def test_a_yaml_agent(tmp_path):
    config = tmp_path / "root_agent.yaml"
    config.write_text("name: from_yaml\nmodel: gemini-2.5-flash\ninstruction: Help.\n")
    info = await AdkAdapter(agent_from_yaml(config)).open()
    assert (info.name, info.model) == ("from_yaml", "gemini-2.5-flash")


@pytest.mark.parametrize("text", ["", "name: not a name\nmodel: m\ninstruction: x\n"])
def test_a_bad_yaml_agent_is_told_by_its_path(tmp_path, text):
    config = tmp_path / "root_agent.yaml"
    config.write_text(text)
    with pytest.raises(AgentLoadError, match=r"root_agent\.yaml: ADK cannot load this agent"):
        agent_from_yaml(config)


@pytest.mark.parametrize(
    "reference", ["agent_class: broken_yaml_code.MyAgent", "tools:\n  - name: broken_yaml_code.look"]
)
def test_an_error_in_code_that_a_yaml_agent_names_is_not_hidden(tmp_path, monkeypatch, reference):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "broken_yaml_code.py").write_text("1 / 0\n")
    config = tmp_path / "root_agent.yaml"
    config.write_text(f"name: x\nmodel: m\ninstruction: x\n{reference}\n")
    with pytest.raises((ZeroDivisionError, ValueError)) as raised:
        agent_from_yaml(config)
    assert isinstance(raised.value.__cause__ or raised.value, ZeroDivisionError)


async def test_a_tool_result_that_is_no_json_names_the_tool():
    def make_thing() -> object:
        return Thing()

    root = agent(
        {"go": call(("make_thing", {})), "make_thing()": say("ok"), "on": say("on")}, tools=[make_thing]
    )
    talk = Chat(AdkAdapter(root))
    message = r"^tool make_thing returned a Thing, which cannot be written as JSON$"
    with pytest.raises(TypeError, match=message):
        await talk.send("go")


async def test_a_call_that_is_no_json_names_the_agent():
    root = agent({"go": call(("add", {"a": Thing(), "b": 1}))}, tools=[add])
    with pytest.raises(TypeError, match=r"^agent helper called add with a Thing, which cannot"):
        await Chat(AdkAdapter(root)).send("go")


async def test_an_error_event_of_the_model_is_an_event_not_an_exception():
    from google.adk.models.llm_response import LlmResponse

    talk = await chat(
        AdkAdapter(agent({"anything": LlmResponse(error_code="SAFETY", error_message="blocked")})), "hi"
    )
    (error,) = talk.of("error")
    assert (error.data["message"], error.data["error_code"]) == ("blocked", "SAFETY")
    (invocation,) = invocations_from_events(talk.events)
    assert invocation.final_response is None


async def test_bytes_travel_as_base64_both_ways():
    pixel = base64.b64encode(b"\x89PNG\xff").decode()
    image = {"inline_data": {"mime_type": "image/png", "data": pixel}}

    class Echo(BaseAgent):
        async def _run_async_impl(self, ctx):
            parts = ctx.user_content.parts
            content = say("").content.model_copy(update={"parts": parts})
            yield AdkEvent(author=self.name, invocation_id=ctx.invocation_id, content=content)

    talk = await chat(AdkAdapter(Echo(name="echo")), {"role": "user", "parts": [image]})
    (echoed,) = talk.of("text")
    sent = base64.urlsafe_b64decode(echoed.content["parts"][0]["inline_data"]["data"])
    assert sent == b"\x89PNG\xff"


async def test_plugins_and_callbacks_of_the_app_are_in_force():
    class Polite(BasePlugin):
        async def after_model_callback(self, *, callback_context, llm_response):
            return say(llm_response.content.parts[0].text + ", please")

    def stamp(callback_context):
        callback_context.state["stamped"] = True

    root = agent({"anything": say("sit down")}, before_agent_callback=stamp)
    talk = await chat(AdkAdapter(App(name="shop", root_agent=root, plugins=[Polite("polite")])), "hi")
    assert talk.texts() == ["sit down, please"]
    assert await talk.session.state() == {"stamped": True}


async def test_a_plugin_that_answers_a_call_does_not_hide_it():
    class Stub(BasePlugin):
        async def before_tool_callback(self, *, tool, tool_args, tool_context):
            return {"stubbed": True}

    root = agent({"go": call(("add", {"a": 1, "b": 1})), "add()": say("ok")}, tools=[add])
    talk = await chat(AdkAdapter(App(name="shop", root_agent=root, plugins=[Stub("stub")])), "go")
    (result,) = talk.of("tool_result")
    assert result.content["parts"][0]["function_response"]["response"] == {"stubbed": True}
    # No tool ran for it.
    assert result.duration is None


async def test_plugins_are_closed_once_with_the_adapter_and_an_error_only_told(capsys):
    closed = []

    class Exporter(BasePlugin):
        async def close(self):
            closed.append(self.name)
            raise RuntimeError("nobody listens")

    adapter = AdkAdapter(App(name="shop", root_agent=agent(), plugins=[Exporter("exporter")]))
    await adapter.open()
    talk = await chat(adapter, "hi")
    await talk.session.close()
    assert closed == []
    await adapter.close()
    assert closed == ["exporter"]
    assert "plugin exporter could not be closed: RuntimeError: nobody listens" in capsys.readouterr().err
