import asyncio
import json
import subprocess
import sys

import pytest
from google.genai import types

from evaltui import Agent, Rule, ScriptedModel
from evaltui.agents.adapters.base import (
    Reporter,
    SessionSpec,
    current_reporter,
    nested_in,
    recording,
)
from evaltui.agents.adapters.native import MAX_MODEL_CALLS, NativeAdapter
from evaltui.agents.native.agent import ToolContext
from evaltui.agents.native.models import ModelResponse
from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.model.content import Content, Part
from evaltui.core.model.eval_set import intermediate_texts


class Conversation:
    """An agent that is talked to, and everything that it reported."""

    @classmethod
    async def with_agent(cls, agent, spec=SessionSpec()):  # noqa: B008
        self = cls()
        self.events = []
        self.reporter = Reporter(self.events.append)
        self.session = await NativeAdapter(agent).new_session(spec, self.reporter)
        return self

    async def say(self, text):
        self.reporter.turn = 0 if self.reporter.turn is None else self.reporter.turn + 1
        content = {"role": "user", "parts": [{"text": text}]}
        self.reporter.event("user", content)
        with recording(self.reporter):
            await self.session.send(content)

    def kinds(self):
        return [event.kind for event in self.events]

    def of_kind(self, kind):
        return [event for event in self.events if event.kind == kind]

    @property
    def invocations(self):
        for event in self.events:
            json.dumps(event.to_json(), allow_nan=False)
        return invocations_from_events(self.events)


def agent(*rules, tools=(), **more):
    return Agent("host", ScriptedModel(rules), tools=tools, **more)


def double(n: int) -> int:
    """Twice a number."""
    return 2 * n


async def test_a_gemini_agent_is_opened_and_closed_without_credentials(monkeypatch):
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    adapter = NativeAdapter(Agent("host", "gemini-2.5-flash"))
    assert (await adapter.open()).model == "gemini-2.5-flash"
    await adapter.close()


async def test_state_that_json_cannot_hold_is_named():
    def spoil(context: ToolContext):
        context.state["seen"] = {"rooms": {"a"}}

    chat = await Conversation.with_agent(agent(Rule(user="x", call=("spoil", {})), tools=[spoil]))
    with pytest.raises(TypeError, match=r"state\.seen\.rooms is a set"):
        await chat.say("x")


async def test_tools_and_instruction_know_the_conversation():
    def who(context: ToolContext) -> str:
        return f"{context.app_name}/{context.user_id}/{context.session_id}"

    rules = [
        Rule(user="who", call=("who", {})),
        Rule(after_tool="who", reply=lambda s: s.results[-1]["result"]),
    ]
    made = agent(*rules, tools=[who], instruction=lambda context: f"You serve {context.user_id}.")
    chat = await Conversation.with_agent(made, SessionSpec("app", "ann", "s1"))
    await chat.say("who")
    assert chat.invocations[0].final_response.parts[0].text == "app/ann/s1"
    assert chat.of_kind("model_request")[0].data["system_instruction"] == "You serve ann."


async def test_tools_find_the_recorder_and_what_they_report_is_inside_their_call():
    def report():
        current_reporter.get().event("console", data={"line": "hello"})

    rules = [Rule(user="x", call=("report", {})), Rule(after_tool="report", reply="ok")]
    chat = await Conversation.with_agent(agent(*rules, tools=[report]))
    await chat.say("x")
    (line,) = chat.of_kind("console")
    assert (line.parent, line.data["nested"]) == ("call-1", True)
    assert current_reporter.get() is None
    assert nested_in.get() is None
    assert not any(event.data.get("nested") for event in chat.events if event is not line)


async def test_an_exception_in_a_tool_comes_out_with_its_own_traceback():
    def broken():
        raise KeyError("boiler")

    async def patient():
        await asyncio.sleep(60)

    rules = [Rule(user="x", call=[("patient", {}), ("broken", {})])]
    chat = await Conversation.with_agent(agent(*rules, tools=[broken, patient]))
    with pytest.raises(KeyError, match="boiler") as raised:
        await asyncio.wait_for(chat.say("x"), 10)
    assert raised.traceback[-1].name == "broken"
    # What led to it was reported before.
    assert [event.content["parts"][0]["function_call"]["name"] for event in chat.of_kind("tool_call")] == [
        "patient",
        "broken",
    ]


async def test_a_call_of_a_tool_that_is_not_there():
    rules = [Rule(user="x", call=("duoble", {})), Rule(user="y", reply="ok")]
    chat = await Conversation.with_agent(agent(*rules, tools=[double]))
    with pytest.raises(
        ValueError, match="called tool 'duoble', which agent 'host' does not have; it has double"
    ):
        await chat.say("x")
    # The turn is forgotten.
    await chat.say("y")
    asked = chat.of_kind("model_request")[-1].data
    assert (asked["contents_before"], len(asked["contents"])) == (0, 1)


async def test_an_agent_that_goes_round_in_circles():
    rules = [Rule(user="x", call=("double", {"n": 1})), Rule(after_tool="double", call=("double", {"n": 1}))]
    chat = await Conversation.with_agent(agent(*rules, tools=[double]))
    with pytest.raises(RuntimeError, match=f"made {MAX_MODEL_CALLS} model calls in one turn"):
        await chat.say("x")
    assert len(chat.of_kind("model_request")) == MAX_MODEL_CALLS


class Replies:
    """A model that gives what it was made with, text and call in one response first."""

    name = "replies"

    def __init__(self, *responses):
        self._responses = list(responses)
        self.asked = []

    async def generate(self, request, on_text):
        self.asked.append(request)
        response = self._responses.pop(0)
        for part in response.parts:
            if part.text:
                on_text(part.text)
        return response


async def test_any_model_will_do_and_its_call_ids_are_kept():
    call = types.FunctionCall(id="its-own", name="double", args={"n": 4})
    model = Replies(
        ModelResponse([types.Part(text="One moment."), types.Part(function_call=call)]),
        ModelResponse([types.Part(text="8")]),
    )
    chat = await Conversation.with_agent(Agent("host", model, tools=[double]))

    await chat.say("double 4")

    (invocation,) = chat.invocations
    assert intermediate_texts(invocation.intermediate_data) == [("host", "One moment.")]
    assert invocation.final_response.parts[0].text == "8"
    (result,) = model.asked[1].contents[-1].parts
    assert result.function_response.id == "its-own"
    assert [event.content["parts"][0]["text"] for event in chat.events if event.data.get("partial")] == [
        "One moment.",
        "8",
    ]


async def test_text_beside_a_call_is_not_the_answer():
    call = types.FunctionCall(name="double", args={"n": 4})
    model = Replies(
        ModelResponse([types.Part(text="One moment."), types.Part(function_call=call)]), ModelResponse()
    )
    chat = await Conversation.with_agent(Agent("host", model, tools=[double]))
    await chat.say("double 4")
    assert chat.invocations[0].final_response is None


async def test_a_response_without_parts_ends_the_turn():
    chat = await Conversation.with_agent(
        Agent("host", Replies(ModelResponse(), ModelResponse([types.Part(text="a")])))
    )
    await chat.say("one")
    await chat.say("two")
    assert [i.final_response for i in chat.invocations] == [
        None,
        Content(role="model", parts=[Part(text="a")]),
    ]


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(ValueError, match="agent 'host' has two tools named 'double'"):
        agent(tools=[double, double])


def test_google_adk_is_not_imported():
    code = (
        "import sys, evaltui.agents.adapters.native, evaltui.agents.adapters.function;"
        "print([name for name in sys.modules if name.startswith('google.adk')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
