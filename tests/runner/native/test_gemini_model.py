"""The real google-genai client against a small server on this machine."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from google.genai import types

from evaltui import Agent
from evaltui.core.record import invocations_from_events
from evaltui.runner.adapters.base import Recorder, SessionSpec
from evaltui.runner.adapters.native import NativeAdapter
from evaltui.runner.native.models import join_texts


class Service:
    """Answers each request with the next of `answers`, a list of chunks each; `asked` keeps (path, body)."""

    def __init__(self):
        self.answers = []
        self.asked = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                service.asked.append((self.path, body))
                chunks = service.answers.pop(0)
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                for chunk in chunks:
                    self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\r\n\r\n")

            def log_message(self, *args): ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def service(monkeypatch):
    service = Service()
    thread = threading.Thread(target=service.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    for name in ("GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GOOGLE_API_KEY", "no-key")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", service.url)
    yield service
    service.server.shutdown()
    thread.join()
    service.server.server_close()


def chunk(*parts, **more):
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "index": 0}], **more}


LAST = {
    "modelVersion": "gemini-test-001",
    "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 4, "totalTokenCount": 13},
}


async def converse(agent, *messages):
    events = []
    recorder = Recorder(events.append)
    adapter = NativeAdapter(agent)
    await adapter.open()
    try:
        session = await adapter.new_session(SessionSpec(), recorder)
        for turn, message in enumerate(messages):
            recorder.turn = turn
            content = {"role": "user", "parts": [{"text": message}]}
            recorder.event("user", content)
            await session.send(content)
    finally:
        await adapter.close()
    return events


async def test_a_streamed_answer_with_usage(service):
    service.answers = [[chunk({"text": "Good "}), chunk({"text": "day"}), chunk({"text": "!"}, **LAST)]]

    events = await converse(Agent("host", "gemini-test", instruction="Be kind."), "Hello")

    ((path, body),) = service.asked
    assert path.endswith("/models/gemini-test:streamGenerateContent?alt=sse")
    assert body["systemInstruction"]["parts"] == [{"text": "Be kind."}]
    assert body["contents"] == [{"role": "user", "parts": [{"text": "Hello"}]}]
    assert [event.content["parts"][0]["text"] for event in events if event.data.get("partial")] == [
        "Good ",
        "day",
        "!",
    ]
    (invocation,) = invocations_from_events(events)
    assert invocation.final_response.parts == [types.Part(text="Good day!")]
    (answer,) = invocation.intermediate_data.invocation_events
    assert answer.model_version == "gemini-test-001"
    assert (answer.usage_metadata.prompt_token_count, answer.usage_metadata.total_token_count) == (9, 13)
    (response,) = [event for event in events if event.kind == "model_response"]
    assert response.usage["candidates_token_count"] == 4
    assert response.duration > 0


async def test_a_function_call_and_back(service):
    def area(width: int, height: int) -> int:
        """The area of a rectangle."""
        return width * height

    service.answers = [
        [
            chunk({"text": "Let me see.", "thought": True}),
            chunk(
                {
                    "functionCall": {"name": "area", "args": {"width": 3, "height": 4}},
                    "thoughtSignature": "c2lnbmVk",
                },
                **LAST,
            ),
        ],
        [chunk({"text": "It is 12."}, **LAST)],
    ]

    events = await converse(Agent("host", "gemini-test", tools=[area]), "3 by 4?")

    first, second = (body for _, body in service.asked)
    (declared,) = first["tools"][0]["functionDeclarations"]
    assert declared["name"] == "area"
    # google-genai spells this key in snake_case; the service reads both.
    schema = declared.get("parametersJsonSchema") or declared["parameters_json_schema"]
    assert schema["required"] == ["width", "height"]
    user, model, tool = second["contents"]
    assert user == first["contents"][0]
    # What the model sent goes back as it came, the signature too, and no id that it did not give.
    assert model["parts"][0] == {"text": "Let me see.", "thought": True}
    assert model["parts"][1] == {
        "functionCall": {"name": "area", "args": {"width": 3, "height": 4}},
        "thoughtSignature": "c2lnbmVk",
    }
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


async def test_a_refused_prompt_is_an_error_event_and_no_answer(service):
    service.answers = [[{"promptFeedback": {"blockReason": "SAFETY"}, **LAST}]]

    events = await converse(Agent("host", "gemini-test"), "Something bad")

    (error,) = [event for event in events if event.kind == "error"]
    assert error.data["message"] == "SAFETY"
    (invocation,) = invocations_from_events(events)
    assert invocation.final_response is None


async def test_without_a_key_it_says_which_variables_to_set(monkeypatch):
    for name in (
        "GOOGLE_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_GENAI_USE_VERTEXAI",
        "GOOGLE_GENAI_USE_ENTERPRISE",
    ):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(
        ValueError, match=r"model 'gemini-test' cannot be used: .* Set GOOGLE_API_KEY or GEMINI_API_KEY"
    ):
        await converse(Agent("host", "gemini-test"), "Hello")


def test_pieces_of_text_are_joined_where_nothing_lies_between():
    parts = [
        types.Part(text="a", thought=True),
        types.Part(text="b", thought=True),
        types.Part(text="c"),
        types.Part(text=""),
        types.Part(text="d"),
        types.Part(function_call=types.FunctionCall(name="f")),
        types.Part(text="e"),
        types.Part(text="", thought_signature=b"s"),
        types.Part(text="f"),
        types.Part(text="g", thought_signature=b"s"),
        types.Part(text="h"),
    ]
    assert join_texts(parts) == [
        types.Part(text="ab", thought=True),
        types.Part(text="cd"),
        types.Part(function_call=types.FunctionCall(name="f")),
        types.Part(text="e"),
        types.Part(text="", thought_signature=b"s"),
        types.Part(text="f"),
        types.Part(text="g", thought_signature=b"s"),
        types.Part(text="h"),
    ]
