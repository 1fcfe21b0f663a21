"""What is drafted from a conversation with a google-adk agent passes when it is run at once."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("google.adk")

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.tools import ToolContext
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from hypothesis import given
from pydantic import PrivateAttr
from scripts import (
    SECRET,
    Round,
    Turn,
    assert_passed,
    conversations,
    draft_and_run,
    specs,
)

from evaltui.agents.adapters.adk.adapter import AdkAdapter
from evaltui.agents.adapters.base import SessionSpec

EvalSet = pytest.importorskip("google.adk.evaluation.eval_set").EvalSet

pytestmark = pytest.mark.compat


class Playback(BaseLlm):
    """A model that says what is written, one response after the other."""

    model: str = "playback"
    _responses: Any = PrivateAttr()

    async def generate_content_async(self, llm_request, stream=False):
        yield LlmResponse(content=types.Content(role="model", parts=next(self._responses)))


def playback(turns):
    model = Playback()
    model._responses = iter(
        [[part.model_copy(deep=True) for part in one.parts] for turn in turns for one in turn.rounds]
    )
    return model


def put(key: str, value: Any, tool_context: ToolContext) -> dict:
    """Keep a value."""
    tool_context.state[key] = value
    return {"kept": value}


def house(turns):
    return AdkAdapter(LlmAgent(name="house", model=playback(turns), tools=[put]))


@given(conversation=conversations, spec=specs)
async def test_an_adk_agent_passes_at_once(conversation, spec):
    turns, first = conversation
    draft, result = await draft_and_run(house, turns, spec, first)
    assert_passed(result)
    assert SECRET not in json.dumps(draft.case)
    EvalSet.model_validate_json(json.dumps({"eval_set_id": "s", "eval_cases": [draft.case]}))


def say(text):
    return Round((types.Part(text=text),))


def call(name, **args):
    return Round((types.Part(function_call=types.FunctionCall(name=name, args=args)),))


def hears(text, *rounds):
    return Turn({"role": "user", "parts": [{"text": text}]}, rounds)


async def test_what_happens_inside_an_agent_tool_is_not_expected():
    def desk(turns):
        inner = [hears("", call("put", key="weather", value="rain"), say("Take an umbrella."))]
        guide = LlmAgent(name="guide", description="Knows.", model=playback(inner), tools=[put])
        return AdkAdapter(LlmAgent(name="desk", model=playback(turns), tools=[AgentTool(guide)]))

    turns = [hears("a tip", call("guide", request="a tip"), say("The guide says: umbrella."))]
    draft, result = await draft_and_run(desk, turns, SessionSpec(), 0)
    assert_passed(result)
    events = draft.case["conversation"][0]["intermediate_data"]["invocation_events"]
    assert [event["author"] for event in events] == ["desk", "desk"]
    assert "weather" not in json.dumps(events)


async def test_a_transfer_is_expected_with_who_did_what():
    def desk(turns):
        upstairs = [hears("", call("put", key="a", value=1), say("It is dark there."))]
        floor = LlmAgent(name="floor", description="Knows.", model=playback(upstairs), tools=[put])
        return AdkAdapter(LlmAgent(name="desk", model=playback(turns), sub_agents=[floor]))

    turns = [hears("upstairs", call("transfer_to_agent", agent_name="floor"))]
    draft, result = await draft_and_run(desk, turns, SessionSpec(), 0)
    assert_passed(result)
    events = draft.case["conversation"][0]["intermediate_data"]["invocation_events"]
    assert [event["author"] for event in events] == ["desk", "desk", "floor", "floor"]
