"""What is drafted from a conversation passes when it is run at once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from scripts import SECRET, assert_passed, conversations, draft_and_run, specs

from evaltui import Agent, ToolContext, events
from evaltui.agents.adapters.function import FunctionAdapter
from evaltui.agents.adapters.native import NativeAdapter
from evaltui.agents.native.models import ModelResponse
from evaltui.core.model.events import Event

few = settings(max_examples=60, deadline=None)


def put(key: str, value: Any, context: ToolContext):
    """Keep a value."""
    context.state[key] = value
    return {"kept": value}


class Playback:
    """A model that says what is written, one response after the other."""

    name = "playback"

    def __init__(self, turns):
        self._responses = iter([list(one.parts) for turn in turns for one in turn.rounds])

    async def generate(self, request, on_text):
        parts = next(self._responses)
        for part in parts:
            if part.text and not part.thought:
                on_text(part.text)
        return ModelResponse(parts, model_version="playback", finish_reason="STOP")


def native(turns):
    return NativeAdapter(Agent("house", Playback(turns), tools=[put]))


def function(turns):
    playing = iter(turns)

    async def house(message, session):
        for one in next(playing).rounds:
            for part in one.parts:
                content = {"role": "model", "parts": [part.model_dump(mode="json", exclude_none=True)]}
                if part.function_call is None:
                    yield Event("text", content)
                    continue
                args = part.function_call.args
                yield events.tool_call("put", args)
                session.state[args["key"]] = args["value"]
                yield events.tool_result("put", {"kept": args["value"]})

    return FunctionAdapter(house, "house")


@pytest.mark.parametrize("agent", [native, function])
@few
@given(conversation=conversations, spec=specs)
async def test_an_agent_passes_at_once(agent, conversation, spec):
    turns, first = conversation
    draft, result = await draft_and_run(agent, turns, spec, first)
    assert_passed(result)
    assert SECRET not in json.dumps(draft.case)
