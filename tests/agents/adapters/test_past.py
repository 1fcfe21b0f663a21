"""A conversation cut anywhere goes on from its past as if it had not been: native and function agents."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st
from talking import assert_goes_on, talk, user, work_of

from evaltui import Agent, ToolContext
from evaltui.agents.adapters.base import SessionSpec
from evaltui.agents.adapters.function import FunctionAdapter
from evaltui.agents.adapters.native import NativeAdapter
from evaltui.agents.native.models import ModelResponse
from evaltui.core.conversation.replay import past_of_turns, steps_of_invocation
from evaltui.core.model.eval_set import Invocation
from evaltui.events import text, tool_call, tool_result, transfer


def digest(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]


def dumped(contents):
    return [content.model_dump(mode="json", exclude_none=True) for content in contents]


# What one word of a message makes an agent do; its answer tells all that it knows of the conversation.
WORDS = ("set", "null", "del", "nest", "call", "twice", "image", "quiet", "think", "move")


def change(state, word, turn):
    if word == "set":
        state["n"] = state.get("n", 0) + 1
        state[f"temp:{turn}"] = turn
    elif word == "null":
        state["gone"] = None
    elif word == "del":
        state.pop("gone", None)
        state.pop("given", None)
    elif word == "nest":
        state.setdefault("list", []).append({"turn": turn})


def known(state):
    return {key: repr(state[key]) for key in sorted(state)}


async def function_agent(message, session):
    history = dumped(session.history)
    for word in message.split():
        change(session.state, word, len(history))
        if word == "call":
            yield tool_call("f", {"n": len(history)})
            yield tool_result("f", digest(history))
        elif word == "twice":
            yield tool_call("f", {"n": 1})
            yield tool_call("f", {"n": 2}, id=f"own-{len(history)}")
            yield tool_result("f", 1)
            yield tool_result("f", 2)
        elif word == "think":
            yield text("I wonder.", agent="thinker")
        elif word == "move":
            yield transfer("writer")
    if "quiet" not in message:
        yield digest([history, known(session.state)])


class Knowing:
    """A model that answers by the words of the user and by all that it is sent."""

    name = "knowing"

    async def generate(self, request, on_text):
        sent = [request.system_instruction, dumped(request.contents)]
        last = request.contents[-1]
        if any(part.function_response for part in last.parts):
            return ModelResponse([types.Part(text=digest(sent))], finish_reason="STOP")
        words = "".join(part.text or "" for part in last.parts).split()
        if "quiet" in words:
            return ModelResponse(finish_reason="SAFETY", finish_message="Not that.")
        calls = [
            types.Part(function_call=types.FunctionCall(name="change", args={"word": word}, id=given_id))
            for word in words
            for given_id in ((None, "of-the-model") if word == "twice" else (None,))
            if word in ("set", "null", "del", "nest", "call", "twice")
        ]
        said = (
            [types.Part(text="Hm.", thought=True, thought_signature=b"\xff\x00")] if "think" in words else []
        )
        return ModelResponse([*said, *(calls or [types.Part(text=digest(sent))])])


def change_state(word: str, context: ToolContext) -> dict:
    """Change the state."""
    change(context.state, word, len(context.state))
    return {"state": known(context.state)}


change_state.__name__ = "change"


def instruction(context):
    context.state["asked"] = context.state.get("asked", 0) + 1
    return f"You know {known(context.state)}"


def native():
    return NativeAdapter(Agent("bot", model=Knowing(), instruction=instruction, tools=[change_state]))


def function():
    return FunctionAdapter(function_agent, "bot")


ADAPTERS = pytest.mark.parametrize("adapter", [native, function])
IMAGE = {"inline_data": {"mime_type": "image/png", "data": base64.b64encode(b"\xffpng").decode()}}
MESSAGES = st.lists(st.sampled_from(WORDS), max_size=3).map(
    lambda words: {"parts": [{"text": " ".join(words) or "hello"}, *([IMAGE] if "image" in words else [])]}
)
START = SessionSpec(
    app_name="shop", user_id="ann", state={"given": [1], "gone": True, "user:name": "Ann", "app:x": 1}
)


@ADAPTERS
@given(messages=st.lists(MESSAGES, min_size=1, max_size=5), data=st.data())
async def test_a_conversation_cut_anywhere_goes_on_as_if_it_had_not_been(adapter, messages, data):
    cut = data.draw(st.integers(0, len(messages)), label="cut")
    whole, rest = await assert_goes_on(adapter(), messages, cut, START)
    before = past_of_turns(whole.turns[:cut])
    assert not {step.id for step in before} & set(rest.steps())
    made = {call for call in rest.ids() if call.startswith("call-")}
    assert not made & {part.get("function_call", {}).get("id") for step in before for part in step.parts}


@ADAPTERS
async def test_a_removed_key_is_told_from_one_that_is_null(adapter):
    whole = await talk(adapter(), ["null", "del", "null"], START)
    assert [("gone" in state, state.get("gone")) for state in whole.states] == [
        (True, True),
        (True, None),
        (False, None),
        (True, None),
    ]
    for cut, state in enumerate(whole.states):
        rest = await talk(adapter(), [], START, past_of_turns(whole.turns[:cut]))
        assert rest.states == [state]


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


async def test_a_model_is_sent_what_is_expected_as_it_would_have_said_it():
    data = {
        "tool_uses": [{"name": "f", "args": {"n": 1}}],
        "tool_responses": [{"name": "f", "response": {"ok": True}}],
        "intermediate_responses": [["bot", [{"text": "Wait."}]]],
    }
    past = expected(intermediate_data=data, final_response={"parts": [{"text": "Done."}]})
    assert await sent_after(past) == [
        user("hi"),
        {"role": "model", "parts": [{"text": "Wait."}]},
        {"role": "model", "parts": [{"function_call": {"name": "f", "args": {"n": 1}}}]},
        {"role": "user", "parts": [{"function_response": {"name": "f", "response": {"ok": True}}}]},
        {"role": "model", "parts": [{"text": "Done."}]},
    ]


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


@ADAPTERS
async def test_a_past_of_twice_as_many_turns_is_twice_the_work(adapter):
    turn = await talk(adapter(), ["set call twice think"], START)
    pasts = [past_of_turns(turn.turns * number) for number in (50, 100)]
    once, twice = [await work_of(talk(adapter(), [], START, past)) for past in pasts]
    assert twice < 2.5 * once
