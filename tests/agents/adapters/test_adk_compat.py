"""The same run, seen by the adapter and by google-adk's own evaluation: the same invocations."""

import pytest

pytest.importorskip("google.adk")
pytest.importorskip("pandas")
from adk_scripted import Chat, ScriptedLlm, call, say, user
from google.adk.agents import BaseAgent, LlmAgent
from google.adk.apps import App
from google.adk.evaluation.evaluation_generator import EvaluationGenerator
from google.adk.events.event import Event as AdkEvent
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools import LongRunningFunctionTool
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import Workflow
from google.genai import types

from evaltui.agents.adapters.adk.adapter import AdkAdapter
from evaltui.core.conversation.invocations import invocations_from_events

pytestmark = [pytest.mark.adk, pytest.mark.compat]


class Witness(BasePlugin):
    """Keeps the events of the conversation, as ADK's evaluation would collect them."""

    def __init__(self):
        super().__init__("witness")
        self.events = []
        self.session_id = None

    async def on_user_message_callback(self, *, invocation_context, user_message):
        self.session_id = self.session_id or invocation_context.session.id
        if invocation_context.session.id == self.session_id:
            self.events.append(
                AdkEvent(author="user", content=user_message, invocation_id=invocation_context.invocation_id)
            )

    async def on_event_callback(self, *, invocation_context, event):
        if invocation_context.session.id == self.session_id:
            self.events.append(event)


def agent(answers, name="root", **fields):
    return LlmAgent(name=name, description=name, model=ScriptedLlm(answers=answers), **fields)


def parts(*made):
    return LlmResponse(content=types.Content(role="model", parts=list(made)))


def look_up(order: str) -> dict:
    return {"order": order, "found": [1, {"deep": None}]}


def quote(item: str, tool_context: ToolContext) -> dict:
    tool_context.actions.skip_summarization = True
    return {"price": 3}


def ask_manager(reason: str) -> None:
    """Takes days."""


class Chatty(BaseAgent):
    async def _run_async_impl(self, ctx):
        contents = [
            types.Content(role="model", parts=[types.Part(text="thinking", thought=True)]),
            types.Content(role="model", parts=[types.Part(text="first"), types.Part(text="second")]),
            types.Content(
                role="model", parts=[types.Part.from_bytes(data=b"\x00\xff", mime_type="image/png")]
            ),
            types.Content(role="model", parts=[]),
            None,
        ]
        for content in contents:
            yield AdkEvent(author=self.name, invocation_id=ctx.invocation_id, content=content)


def everything():
    thought = parts(
        types.Part(text="hm", thought=True),
        types.Part(text="I look it up."),
        types.Part(function_call=types.FunctionCall(id="l-1", name="look_up", args={"order": "A1"})),
    )
    grounding = types.GroundingMetadata(web_search_queries=["tea"])
    usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=5, total_token_count=6)
    sales = agent(
        {
            "anything": call(("quote", {"item": "tea"}, "q-1")),
            "refund": call(("ask_manager", {"reason": "cold"}, "m-1")),
            "bye": say("Bye.", usage_metadata=usage, model_version="m-2"),
        },
        name="sales",
        tools=[quote, LongRunningFunctionTool(func=ask_manager)],
    )
    inner = agent({"anything": call(("look_up", {"order": "A1"})), "look_up()": say("it shipped")},
                  name="researcher", tools=[look_up])  # fmt: skip
    root = agent(
        {
            "where?": thought,
            "look_up()": say("It shipped.", grounding_metadata=grounding),
            "both": call(("look_up", {"order": "A"}, "p-1"), ("researcher", {"request": "?"}, "p-2")),
            "researcher()": say("Both."),
            "blocked": LlmResponse(error_code="SAFETY", error_message="no"),
            "code": parts(types.Part(executable_code=types.ExecutableCode(code="1", language="PYTHON"))),
            "buy": call(("transfer_to_agent", {"agent_name": "sales"}, "t-1")),
        },
        tools=[look_up, AgentTool(inner)],
        sub_agents=[sales],
    )
    return root, ["where?", "both", "blocked", "code", "buy", "refund", "bye"]


def pieces():
    """A model that returns several responses to one request, which ADK gives the same event id."""
    order = types.Part(function_call=types.FunctionCall(id="l-1", name="look_up", args={"order": "A1"}))
    answers = {
        "hi": [say("hel", partial=True), say("hello")],
        "where?": [say("I look it up."), parts(order)],
        "look_up()": [say("It "), say("shipped.")],
    }
    return agent(answers, tools=[look_up]), ["hi", "where?"]


class Again(BaseAgent):
    async def _run_async_impl(self, ctx):
        for text in ("draft", "final text"):
            content = types.Content(role="model", parts=[types.Part(text=text)])
            yield AdkEvent(id="mine", author=self.name, invocation_id=ctx.invocation_id, content=content)


def flow():
    first = agent({"anything": say("draft")}, name="first")
    second = agent({"anything": say("final text")}, name="second")
    return Workflow(name="flow", edges=[("START", first, second)]), ["go", "on"]


@pytest.mark.parametrize(
    "made",
    [
        everything,
        flow,
        lambda: (Chatty(name="chatty"), ["hi"]),
        pieces,
        lambda: (Again(name="again"), ["hi", "hi"]),
    ],
    ids=["everything", "flow", "chatty", "pieces", "again"],
)
async def test_invocations_are_those_of_adk(made):
    root, messages = made()
    witness = Witness()
    talk = Chat(AdkAdapter(App(name="app", root_agent=root, plugins=[witness])))
    await talk.send(*map(user, messages))
    theirs = EvaluationGenerator.convert_events_to_eval_invocations(witness.events)
    ours = invocations_from_events(talk.events)
    assert len(ours) == len(messages)
    assert [_comparable(one) for one in ours] == [_comparable(one) for one in theirs]


def _comparable(invocation):
    unlike = {"invocation_id", "creation_timestamp", "duration", "model_duration", "tool_duration"}
    return invocation.model_dump(mode="json", exclude_none=True, exclude=unlike)
