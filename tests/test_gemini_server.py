"""The Gemini API on this machine against the real google-genai client, where nothing is streamed."""

import threading

import pytest
from gemini_server import (
    USAGE,
    Answer,
    Drop,
    GeminiServer,
    Hold,
    calls,
    chunk,
    fails,
    malformed,
    says,
)
from google import genai
from google.genai import errors, types


@pytest.fixture
def gemini(monkeypatch):
    with GeminiServer(models=["gemini-test"]) as server:
        server.use(monkeypatch)
        yield server


def ask(contents="Hello", model="gemini-test"):
    with genai.Client() as client:
        return client.models.generate_content(model=model, contents=contents)


def test_chunks_are_one_response(gemini):
    gemini.script(says("Good ", "day", "!", thought="Who is it?"))

    response = ask()

    assert [(part.text, part.thought) for part in response.candidates[0].content.parts] == [
        ("Who is it?", True),
        ("Good day!", None),
    ]
    assert response.candidates[0].finish_reason is types.FinishReason.STOP
    assert response.usage_metadata.total_token_count == USAGE["totalTokenCount"]
    (asked,) = gemini.requests
    assert not asked.streaming
    assert asked.said == "Hello"


def test_a_call_and_a_conversation_that_leaves_it_unanswered(gemini):
    gemini.script(calls("area", {"width": 2}))
    call = ask().candidates[0].content
    assert call.parts[0].function_call.args == {"width": 2}

    hello = types.Content(role="user", parts=[types.Part(text="Hello")])
    with pytest.raises(errors.ClientError, match="number of function response parts"):
        ask([hello, call, hello])


def test_the_address_may_be_given_in_the_http_options(gemini, monkeypatch):
    monkeypatch.delenv("GOOGLE_GEMINI_BASE_URL")
    gemini.script(says("Hello."))
    with genai.Client(http_options=types.HttpOptions(base_url=gemini.url)) as client:
        assert client.models.generate_content(model="gemini-test", contents="Hello").text == "Hello."


def test_answers_may_depend_on_the_request(gemini):
    gemini.respond = lambda request: says(f"echo {request.said}")
    assert [ask(text).text for text in ("one", "two")] == ["echo one", "echo two"]


def test_what_is_not_scripted_is_refused(gemini):
    with pytest.raises(errors.ClientError, match="the test has no answer to 'Hello'"):
        ask()


def test_a_wrong_key_and_an_unknown_model_are_refused(gemini, monkeypatch):
    with pytest.raises(errors.ClientError, match="models/gemini-old is not found"):
        ask(model="gemini-old")
    monkeypatch.setenv("GOOGLE_API_KEY", "wrong")
    with pytest.raises(errors.ClientError, match="API_KEY_INVALID"):
        ask()


def test_failures_come_as_the_service_words_them(gemini):
    gemini.script(fails(429, "slow down", retry_delay="3s"))
    with pytest.raises(errors.ClientError) as raised:
        ask()
    assert (raised.value.code, raised.value.status, raised.value.message) == (
        429,
        "RESOURCE_EXHAUSTED",
        "slow down",
    )
    (detail,) = raised.value.details["error"]["details"]
    assert detail == {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3s"}


@pytest.mark.parametrize(
    "answer",
    [malformed(), Answer([Drop()]), Answer([chunk({"text": "Good m"}), Drop()])],
    ids=["no JSON", "lost before the answer", "lost in the answer"],
)
def test_what_breaks_does_not_look_like_an_answer(gemini, answer):
    gemini.script(answer, says("still there"))
    with pytest.raises(Exception, match=r"delimiter|isconnected|closed connection"):
        ask()
    assert ask().text == "still there"


def test_a_held_answer_comes_when_it_is_released(gemini):
    hold = Hold()
    gemini.script(says("late").after(hold))
    said = []
    thread = threading.Thread(target=lambda: said.append(ask().text))
    thread.start()
    assert hold.reached.wait(10)
    gemini.wait_for_requests(1)
    assert said == []
    hold.release()
    thread.join(10)
    assert said == ["late"]
