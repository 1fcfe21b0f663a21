"""Cases whose user is simulated, with google-adk agents in real child processes."""

from __future__ import annotations

import pytest
from simulated_cases import PEOPLE, said, scenario, simulate

from evaltui import Status
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
