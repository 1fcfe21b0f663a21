"""What models were told of their agents, seen by the adapter and by google-adk's own evaluation."""

import pytest

pytest.importorskip("google.adk")
pytest.importorskip("pandas")
from adk_scripted import Chat, ScriptedLlm, call, say, user
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.evaluation.evaluation_generator import EvaluationGenerator
from google.adk.evaluation.request_intercepter_plugin import _RequestIntercepterPlugin
from google.adk.events.event import Event as AdkEvent
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.agent_tool import AgentTool

from evaltui.agents.adapters.adk.adapter import AdkAdapter
from evaltui.core.conversation.invocations import invocations_from_events

pytestmark = [pytest.mark.adk, pytest.mark.compat]


class Witness(BasePlugin):
    def __init__(self):
        super().__init__("witness")
        self.events: list[AdkEvent] = []
        self.session_id = None

    async def on_user_message_callback(self, *, invocation_context, user_message):
        self.session_id = self.session_id or invocation_context.session.id

    async def on_event_callback(self, *, invocation_context, event):
        if invocation_context.session.id == self.session_id:
            self.events.append(event)


def look_up(order: str) -> dict:
    """Looks up an order."""
    return {"order": order}


def agent(answers, name, **fields):
    return LlmAgent(name=name, description=name, model=ScriptedLlm(answers=answers), **fields)


async def test_agents_are_told_of_as_in_adk():
    sales = agent({"anything": say("Bought.")}, "sales", instruction="Sell.")
    inner = agent({"anything": say("It shipped.")}, "researcher", instruction="Search.")
    root = agent(
        {
            "hi": say("Hello."),
            "where?": call(("look_up", {"order": "A1"}), ("researcher", {"request": "A1"})),
            "researcher()": say("On its way."),
            "buy": call(("transfer_to_agent", {"agent_name": "sales"})),
        },
        "root",
        instruction="Be kind to {customer?}.",
        tools=[look_up, AgentTool(inner)],
        sub_agents=[sales],
    )
    witness, interceptor = Witness(), _RequestIntercepterPlugin(name="interceptor")
    talk = Chat(AdkAdapter(App(name="app", root_agent=root, plugins=[interceptor, witness])))
    await talk.send(*map(user, ["hi", "where?", "buy"]))

    theirs = EvaluationGenerator._get_app_details_by_invocation_id(witness.events, interceptor)
    ours = invocations_from_events(talk.events, app_details=True)
    assert [plain(one.app_details) for one in ours] == [plain(one) for one in theirs.values()]
    assert [sorted(one.app_details.agent_details) for one in ours] == [["root"], ["root"], ["root", "sales"]]


def plain(details):
    return details.model_dump(mode="json", exclude_none=True)
