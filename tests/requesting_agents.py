"""google-adk agents that ask a person: to confirm a call, for input, to wait for a tool that takes longer."""

from __future__ import annotations

from pathlib import Path

# Calls what the user names: `pay`, `wire` and `approve`. With anything else it says what came back.
DESK = '''
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.tools import FunctionTool, ToolContext
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.genai import types

ARGS = {"pay": {"amount": 3}, "wire": {"amount": 5}, "approve": {"what": "trip"}}


class Scripted(BaseLlm):
    model: str = "scripted"

    async def generate_content_async(self, llm_request, stream=False):
        last = llm_request.contents[-1].parts[-1]
        if last.function_response:
            parts = [types.Part(text=f"{last.function_response.name}: {last.function_response.response}")]
        else:
            named = [word for word in last.text.split() if word in ARGS]
            calls = [types.FunctionCall(name=word, args=ARGS[word]) for word in named]
            parts = [types.Part(function_call=call) for call in calls] or [types.Part(text="Nothing to do.")]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def pay(amount: int) -> dict:
    """Pay."""
    return {"paid": amount}


def wire(amount: int, tool_context: ToolContext) -> dict:
    """Wire as much as is allowed."""
    confirmation = tool_context.tool_confirmation
    if confirmation is None:
        tool_context.request_confirmation(hint="How much is allowed?", payload={"at_most": 0})
        return {"status": "pending"}
    return {"wired": min(amount, (confirmation.payload or {}).get("at_most", 0))}


def approve(what: str) -> None:
    """Ask somebody, who takes their time."""


root_agent = LlmAgent(
    name="desk",
    model=Scripted(),
    tools=[FunctionTool(pay, require_confirmation=True), wire, LongRunningFunctionTool(approve)],
)
'''

# Asks for a name, then for a traveller of that name, and counts how often it begins.
BOOKING = """
from google.adk import Event
from google.adk.events.request_input import RequestInput
from google.adk.workflow import Workflow
from google.genai import types
from pydantic import BaseModel


class Traveller(BaseModel):
    name: str
    age: int


def begin(ctx, node_input):
    begun = ctx.state.get("begun", 0) + 1
    yield Event(state={"begun": begun}, output="begun")


def ask_city(node_input):
    yield RequestInput(message="Where to?")


def ask_traveller(node_input: str):
    message = f"Who goes to {node_input}?"
    yield RequestInput(message=message, payload={"to": node_input}, response_schema=Traveller)


def book(node_input: dict):
    text = f"Booked for {node_input['name']}, {node_input['age']}."
    yield Event(content=types.Content(role="model", parts=[types.Part(text=text)]))


root_agent = Workflow(name="booking", edges=[("START", begin, ask_city, ask_traveller, book)])
"""


def write_agent(folder: Path, source: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "agent.py").write_text(source, encoding="utf-8")
    return folder


def response(name: str, given: dict, call_id: str = "recorded") -> dict:
    part = {"function_response": {"id": call_id, "name": name, "response": given}}
    return {"role": "user", "parts": [part]}


def root_agent(source: str):
    """The agent of a source, in this process."""
    space: dict = {"__name__": "requesting"}
    exec(source, space)
    return space["root_agent"]
