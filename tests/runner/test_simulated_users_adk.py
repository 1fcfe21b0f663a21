"""Cases whose user is simulated, with google-adk agents in real child processes."""

from __future__ import annotations

import json

import pytest
from gemini_server import says
from recorded_runs import run
from simulated_cases import PEOPLE, config, said, scenario, simulate

from evaltui import EvalConfig, Status
from evaltui.core.model.events import SIMULATED_USER

pytest.importorskip("google.adk")
pytestmark = pytest.mark.adk

SCRIPTED = """
    from google.adk.agents import LlmAgent
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse
    from google.genai import types

    def note(text: str) -> dict:
        return {"kept": text}

    class Clerk(BaseLlm):
        model: str = "scripted"

        async def generate_content_async(self, llm_request, stream=False):
            part = llm_request.contents[-1].parts[-1]
            if part.function_response:
                parts = [types.Part(text="hm", thought=True), types.Part(text="Noted.")]
            else:
                parts = [types.Part(function_call=types.FunctionCall(name="note", args={"text": part.text}))]
            yield LlmResponse(content=types.Content(role="model", parts=parts))

    root_agent = LlmAgent(name="clerk", model=Clerk(), instruction="Note.", tools=[note])
"""


async def test_an_adk_agent_and_its_simulated_user(write_agent):
    agent = write_agent(SCRIPTED, people=PEOPLE)
    case = scenario("a lamp|</finished>")
    ran = await simulate(agent, case)

    assert said(ran) == [("hi", "Noted."), ("a lamp", "Noted.")]
    (result,) = ran.cases
    assert result.status is Status.PASSED
    assert result.stopped == "the simulated user ended the conversation after 2 turns"
    assert [[call.actual.args for call in turn.calls] for turn in result.turns] == [
        [{"text": "hi"}],
        [{"text": "a lamp"}],
    ]
    asked = [event for event in ran.of_kind("model_request") if event.agent == SIMULATED_USER]
    assert [event.turn for event in asked] == [0, 1]


async def test_what_the_user_hears(write_agent):
    agent = write_agent(SCRIPTED, people=PEOPLE)
    by = config("people:shows", include_function_calls=True)
    ran = await simulate(agent, scenario(""), by=by)
    heard = [event.data["text"] for event in ran.of_kind("console") if event.data["source"] == "stdout"]
    assert [line for line in heard if line] == [
        "user: hi",
        'clerk calls the tool note with {"text": "hi"}',
        'the tool note returns {"kept": "hi"}',
        "clerk: Noted.",
    ]


async def test_agent_and_user_are_recorded_and_replayed(write_agent, gemini, monkeypatch):
    agent = write_agent("""
        from google.adk.agents import LlmAgent
        root_agent = LlmAgent(name="clerk", model="gemini-clerk", instruction="Answer.")
    """)
    path = agent / "talks.evalset.json"
    case = scenario("Get a lamp.").model_dump(exclude_none=True, mode="json")
    path.write_text(json.dumps({"eval_set_id": "talks", "eval_cases": [case]}))

    def respond(request):
        if request.model == "gemini-clerk":
            return says(f"You said {request.said}.")
        return says("</finished>" if "You said a lamp" in request.said else "a lamp")

    gemini.respond = respond
    by = EvalConfig.model_validate(
        {
            "criteria": {"trajectory_single_tool_use": {"threshold": 0, "tool": "note"}},
            "user_simulator_config": {"model": "gemini-user"},
        }
    )
    first = await run(path, "record", by)
    assert said(first) == [("hi", "You said hi."), ("a lamp", "You said a lamp.")]
    asked = len(gemini.requests)
    monkeypatch.delenv("GOOGLE_API_KEY")
    again = await run(path, "replay", by)
    assert (len(gemini.requests), again.calls.live, again.calls.replayed) == (asked, 0, 4)
    assert again.verdicts() == first.verdicts()
