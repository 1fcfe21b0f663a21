"""The real google-genai client, as an agent of ours uses it, against a Gemini API on this machine."""

import asyncio

import pytest
from gemini_server import USAGE, Answer, Hold, calls, chunk, says
from google import genai

from evaltui import Agent
from evaltui.agents.adapters.base import Reporter, SessionSpec, recording
from evaltui.agents.adapters.native import NativeAdapter
from evaltui.agents.native.gemini import GeminiModel, join_texts
from evaltui.agents.native.models import ModelRequest
from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.model.content import Content, FunctionCall, Part


async def converse(agent, *messages):
    events = []
    reporter = Reporter(events.append)
    adapter = NativeAdapter(agent)
    await adapter.open()
    try:
        session = await adapter.new_session(SessionSpec(), reporter)
        for turn, message in enumerate(messages):
            reporter.turn = turn
            content = {"role": "user", "parts": [{"text": message}]}
            reporter.event("user", content)
            with recording(reporter):
                await session.send(content)
    finally:
        await adapter.close()
    return events


async def test_a_streamed_answer_with_usage(gemini):
    gemini.script(says("Good ", "day", "!"))

    events = await converse(Agent("host", "gemini-test", instruction="Be kind."), "Hello")

    (asked,) = gemini.requests
    assert asked.streaming
    assert asked.model == "gemini-test"
    assert asked.version == ("v1beta" if genai.__version__.startswith("2.") else "v1")
    assert asked.instruction == "Be kind."
    assert asked.contents == [{"role": "user", "parts": [{"text": "Hello"}]}]
    assert [event.content["parts"][0]["text"] for event in events if event.data.get("partial")] == [
        "Good ",
        "day",
        "!",
    ]
    (invocation,) = invocations_from_events(events)
    assert invocation.final_response.parts == [Part(text="Good day!")]
    (answer,) = invocation.intermediate_data.invocation_events
    assert answer.model_version == "gemini-test-001"
    assert (answer.usage_metadata.prompt_token_count, answer.usage_metadata.total_token_count) == (9, 13)
    (response,) = [event for event in events if event.kind == "model_response"]
    assert response.usage["candidates_token_count"] == 4
    assert response.data["finish_reason"] == "STOP"
    assert response.duration > 0


async def test_every_kind_of_token_is_kept_whichever_chunk_it_came_with(gemini):
    gemini.script(
        Answer(
            [
                chunk({"text": "Hm.", "thought": True}, usageMetadata={"promptTokenCount": 120}),
                chunk(
                    {"text": "Yes"},
                    usageMetadata={
                        "promptTokenCount": 120,
                        "cachedContentTokenCount": 100,
                        "thoughtsTokenCount": 7,
                        "candidatesTokenCount": 1,
                    },
                ),
                chunk(
                    {"text": "."},
                    finishReason="STOP",
                    usageMetadata={"candidatesTokenCount": 2, "totalTokenCount": 129},
                ),
            ]
        )
    )

    events = await converse(Agent("host", "gemini-test"), "Is it?")

    counted = {
        "prompt_token_count": 120,
        "cached_content_token_count": 100,
        "thoughts_token_count": 7,
        "candidates_token_count": 2,
        "total_token_count": 129,
    }
    assert [event.usage for event in events if event.usage] == [counted, counted]
    assert {event.kind for event in events if event.usage} == {"model_response", "text"}


async def test_pieces_are_shown_while_the_rest_is_still_to_come(gemini):
    hold = Hold()
    gemini.script(Answer([chunk({"text": "First"}), hold, *says(", second").pieces]))
    pieces = asyncio.Queue()
    request = ModelRequest("", [Content(role="user", parts=[Part(text="Hello")])], [])

    model = GeminiModel("gemini-test")
    answer = asyncio.create_task(model.generate(request, pieces.put_nowait))
    assert await asyncio.wait_for(pieces.get(), 10) == "First"
    assert not answer.done()
    hold.release()

    assert (await answer).parts == [Part(text="First, second")]
    assert pieces.get_nowait() == ", second"
    await model.close()


async def test_a_function_call_and_back(gemini):
    def area(width: int, height: int) -> int:
        """The area of a rectangle."""
        return width * height

    gemini.script(
        calls("area", {"width": 3, "height": 4}, thought="Let me see.", thoughtSignature="c2lnbmVk"),
        says("It is 12."),
    )

    events = await converse(Agent("host", "gemini-test", tools=[area]), "3 by 4?")

    first, second = gemini.requests
    (declared,) = first.functions
    assert declared["name"] == "area"
    # google-genai spells this key in snake_case; the service reads both.
    schema = declared.get("parametersJsonSchema") or declared["parameters_json_schema"]
    assert schema["required"] == ["width", "height"]
    user, model, tool = second.contents
    assert user == first.contents[0]
    # What the model sent goes back as it came, the signature too, and no id that it did not give.
    assert model["parts"] == [
        {"text": "Let me see.", "thought": True},
        {
            "functionCall": {"name": "area", "args": {"width": 3, "height": 4}},
            "thoughtSignature": "c2lnbmVk",
        },
    ]
    assert tool == {
        "role": "user",
        "parts": [{"functionResponse": {"name": "area", "response": {"result": 12}}}],
    }
    (invocation,) = invocations_from_events(events)
    assert invocation.final_response.parts[0].text == "It is 12."
    called, returned, _ = invocation.intermediate_data.invocation_events
    assert (
        called.content.parts[1].function_call.id == returned.content.parts[0].function_response.id == "call-1"
    )


async def test_a_refused_prompt_is_an_error_event_and_no_answer(gemini):
    gemini.script(Answer([{"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": USAGE}]))

    events = await converse(Agent("host", "gemini-test"), "Something bad")

    (error,) = [event for event in events if event.kind == "error"]
    assert error.data["message"] == "SAFETY"
    (invocation,) = invocations_from_events(events)
    assert invocation.final_response is None


async def test_without_a_key_it_says_which_variables_to_set(monkeypatch):
    monkeypatch.delenv("GOOGLE_GENAI_USE_ENTERPRISE", raising=False)
    with pytest.raises(
        ValueError, match=r"model 'gemini-test' cannot be used: .* Set GOOGLE_API_KEY or GEMINI_API_KEY"
    ):
        await converse(Agent("host", "gemini-test"), "Hello")


def test_pieces_of_text_are_joined_where_nothing_lies_between():
    parts = [
        Part(text="a", thought=True),
        Part(text="b", thought=True),
        Part(text="c"),
        Part(text=""),
        Part(text="d"),
        Part(function_call=FunctionCall(name="f")),
        Part(text="e"),
        Part(text="", thought_signature=b"s"),
        Part(text="f"),
        Part(text="g", thought_signature=b"s"),
        Part(text="h"),
    ]
    assert join_texts(parts) == [
        Part(text="ab", thought=True),
        Part(text="cd"),
        Part(function_call=FunctionCall(name="f")),
        Part(text="e"),
        Part(text="", thought_signature=b"s"),
        Part(text="f"),
        Part(text="g", thought_signature=b"s"),
        Part(text="h"),
    ]
