"""What native and function agents continue from; that they go on is asked of all kinds of agents."""

from __future__ import annotations

import pytest
from google.genai import types
from talking import talk

from evaltui import Agent, Rule, ScriptedModel, ToolContext
from evaltui.agents.adapters.base import SessionSpec
from evaltui.agents.adapters.function import FunctionAdapter
from evaltui.agents.adapters.native import NativeAdapter
from evaltui.agents.native.models import ModelResponse
from evaltui.core.conversation.replay import past_of_turns, steps_of_invocation
from evaltui.core.model.eval_set import Invocation


def dumped(contents):
    return [content.model_dump(mode="json", exclude_none=True) for content in contents]


class Listening:
    """A model that keeps what it is sent."""

    name = "listening"

    def __init__(self):
        self.sent = []

    async def generate(self, request, on_text):
        self.sent = dumped(request.contents)
        return ModelResponse([types.Part(text="ok")])


async def sent_after(past):
    model = Listening()
    await talk(NativeAdapter(Agent("bot", model=model)), ["go on"], past=past)
    return model.sent[:-1]


def expected(**fields):
    return steps_of_invocation(
        Invocation.model_validate({"user_content": {"parts": [{"text": "hi"}]}, **fields}), 0
    )


async def test_a_model_is_not_sent_calls_without_results_nor_results_without_calls():
    data = {
        "tool_uses": [{"name": "f", "args": {}, "id": "x"}, {"name": "g", "args": {}, "id": "y"}],
        "tool_responses": [{"name": "g", "response": {}, "id": "y"}, {"name": "h", "response": {}}],
    }
    sent = await sent_after(expected(intermediate_data=data))
    assert [part for content in sent for part in content["parts"]] == [
        {"text": "hi"},
        {"function_call": {"name": "g", "args": {}, "id": "y"}},
        {"function_response": {"name": "g", "response": {}, "id": "y"}},
    ]


@pytest.mark.parametrize("kind", ["native", "function"])
async def test_a_removed_key_is_told_from_one_that_is_null(kind):
    def change(word: str, state: dict) -> None:
        if word == "null":
            state["gone"] = None
        else:
            state.pop("gone")

    def forget(word: str, context: ToolContext) -> None:
        change(word, context.state)

    def function(message, session):
        change(message, session.state)

    rules = [
        Rule(user=".", call=lambda s: ("forget", {"word": s.message})),
        Rule(after_tool="forget", reply="ok"),
    ]
    adapter = FunctionAdapter(function, "bot")
    if kind == "native":
        adapter = NativeAdapter(Agent("bot", ScriptedModel(rules), tools=[forget]))
    start = SessionSpec(state={"gone": True})
    whole = await talk(adapter, ["null", "del", "null"], start)
    assert whole.states == [{"gone": True}, {"gone": None}, {}, {"gone": None}]
    for cut, state in enumerate(whole.states):
        assert (await talk(adapter, [], start, past_of_turns(whole.turns[:cut]))).states == [state]
