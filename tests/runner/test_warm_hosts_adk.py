"""A google-adk agent in a host that was started beforehand: its first turn needs nothing else."""

from __future__ import annotations

import pytest

from evaltui.agents.protocol import decode_event
from evaltui.project.agent_address import AgentAddress
from evaltui.runner.starting import HostSettings, WarmHosts

pytest.importorskip("google.adk")
pytestmark = [pytest.mark.adk, pytest.mark.usefixtures("fresh_hosts")]

AGENT = """
    import sys
    EARLY = "google.adk.runners" in sys.modules
    from google.adk.agents import LlmAgent
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse
    from google.genai import types
    from pydantic import BaseModel

    def incomplete(model=BaseModel):
        here = not vars(model).get("__pydantic_complete__", True)
        return here + sum(incomplete(one) for one in model.__subclasses__())

    class Curious(BaseLlm):
        async def generate_content_async(self, llm_request, stream=False):
            said = f"{EARLY} {BEFORE - incomplete()}"
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=said)]))

    root_agent = LlmAgent(name="curious", model=Curious(model="curious"))
    BEFORE = incomplete()
"""


@pytest.fixture
def no_warm_hosts() -> None:
    """There are some."""


async def test_modules_and_models_of_the_first_turn_are_there_before_it(write_agent):
    folder = write_agent(AGENT)
    warm_hosts = WarmHosts(AgentAddress(folder))
    said, brought_in = [], []
    for _ in range(2):
        started = warm_hosts.start(HostSettings(AgentAddress(folder), 30.0))
        await started.loading
        lines: list[str] = []
        turn = {"role": "user", "parts": [{"text": "hello"}]}
        request = {"op": "run", "session": {}, "turns": [turn]}
        await started.host.request(request, 30.0, lines.append)
        texts = [event for event in map(decode_event, lines) if event["kind"] == "text"]
        await started.end()
        warm_hosts.prepare()
        await warm_hosts.ready()
        said.append(texts[-1]["content"]["parts"][0]["text"].split())
        brought_in.append(set(started.host.brought_in))
    await warm_hosts.close()
    (cold, completed_cold), (warm, completed_warm) = said
    assert (cold, warm) == ("False", "True")
    assert int(completed_cold) > int(completed_warm) == 0
    assert brought_in[1] == brought_in[0]
