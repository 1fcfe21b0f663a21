"""What our own agents tell judges of themselves."""

from evaltui import Agent, Rule, ScriptedModel
from evaltui.agents.adapters.base import Reporter, SessionSpec, recording
from evaltui.agents.adapters.native import NativeAdapter
from evaltui.core.conversation.invocations import invocations_from_events


def look_up(order: str) -> dict:
    """Looks up an order."""
    return {"order": order}


def instruction(context) -> str:
    return f"Be kind {len(context.state)}."


async def test_instructions_and_tools_of_each_turn():
    events = []
    reporter = Reporter(events.append)
    model = ScriptedModel(
        [
            Rule(user="look", call=("look_up", {"order": "A1"})),
            Rule(after_tool="look_up", reply="found"),
            Rule(user="and", reply="No more."),
        ]
    )
    agent = Agent(
        "clerk", model, instruction=lambda context: f"Be kind {len(context.state)}.", tools=[look_up]
    )
    session = await NativeAdapter(agent).new_session(SessionSpec(), reporter)
    for number, said in enumerate(["look", "and?"]):
        reporter.turn = number
        content = {"role": "user", "parts": [{"text": said}]}
        reporter.event("user", content)
        with recording(reporter):
            await session.send(content)

    for invocation in invocations_from_events(events, app_details=True):
        (clerk,) = invocation.app_details.agent_details.values()
        assert (clerk.name, clerk.instructions) == ("clerk", "Be kind 0.")
        (tool,) = clerk.tool_declarations
        (declared,) = tool["function_declarations"]
        assert (declared["name"], declared["description"]) == ("look_up", "Looks up an order.")
