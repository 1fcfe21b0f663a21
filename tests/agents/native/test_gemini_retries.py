"""What the service and the network do to a request: sent again where that may help, told in any case."""

import asyncio

import pytest
from gemini_server import (
    USAGE,
    Answer,
    Drop,
    GeminiServer,
    Hold,
    chunk,
    drops,
    error,
    fails,
    malformed,
    says,
)
from hypothesis import given
from hypothesis import strategies as st

from evaltui import Agent
from evaltui.agents.adapters.base import Reporter, SessionSpec, recording
from evaltui.agents.adapters.native import NativeAdapter
from evaltui.agents.native import gemini as gemini_model
from evaltui.agents.native.gemini import ATTEMPTS, GeminiModel, ModelError
from evaltui.agents.native.models import ModelRequest
from evaltui.core.conversation.invocations import invocations_from_events
from evaltui.core.model.content import Content, Part

HELLO = ModelRequest("", [Content(role="user", parts=[Part(text="Hello")])], [])
BROKEN_OFF = Answer([chunk({"text": "Good m"}, usageMetadata=USAGE), Drop()])
# The whole text, for all that anybody knows, without the end of the answer.
CUT_OFF = Answer([chunk({"text": "Good m"}, usageMetadata=USAGE)])

PASSING = {
    "too many requests": (fails(429, "slow down"), "429 RESOURCE_EXHAUSTED: slow down"),
    "internal error": (fails(500, "oh"), "500 INTERNAL: oh"),
    "overloaded": (fails(503, "The model is overloaded."), "503 UNAVAILABLE: The model is overloaded"),
    "a proxy's own page": (Answer(["<h1>Bad gateway</h1>"], 502), "502 Bad Gateway: <h1>Bad gateway</h1>"),
    "lost before the answer": (drops(), "isconnected"),
    "lost in the answer": (BROKEN_OFF, "the response restarts in"),
    "an error in the stream": (
        says("Good m").then(error(503, "stopped")),
        "503 UNAVAILABLE: stopped; the response restarts in",
    ),
    "no JSON": (malformed(), 'not JSON, or was cut off: {"candidates": [{"content"'),
    "nothing at all": (Answer([]), "the response was empty"),
    "cut off by a proxy": (
        CUT_OFF,
        "the response was cut off: it ended without a finish reason; the response restarts in",
    ),
}


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(gemini_model, "FIRST_WAIT", 0.001)


class Asked:
    """One request to a model and all that came of it."""

    def __init__(self, name="gemini-test"):
        self.model = GeminiModel(name)
        self.pieces = []
        self.failed = []

    async def answer(self):
        try:
            return await self.model.generate(HELLO, self.pieces.append, self.failed.append)
        finally:
            await self.model.close()


async def refusal(name="gemini-test"):
    asked = Asked(name)
    with pytest.raises(ModelError) as raised:
        await asked.answer()
    return str(raised.value)


@pytest.mark.parametrize("what", PASSING)
async def test_what_may_pass_is_asked_again_and_told(gemini, impatient, what):
    failure, said = PASSING[what]
    gemini.script(failure, says("Good morning"))
    asked = Asked()

    response = await asked.answer()

    assert response.parts == [Part(text="Good morning")]
    assert len(gemini.requests) == 2
    assert gemini.requests[0].body == gemini.requests[1].body
    (failed,) = asked.failed
    assert said in str(failed)
    assert "(attempt 2 of 5)" in str(failed)
    assert failed.text_is_void == (len(asked.pieces) == 2)


async def test_an_answer_that_stays_cut_off_is_an_error_of_the_network(gemini, impatient):
    gemini.respond = lambda request: CUT_OFF
    with pytest.raises(ModelError, match="ended without a finish reason") as raised:
        await Asked().answer()
    assert raised.value.__cause__.error_kind == "network"


async def test_what_a_broken_answer_cost_is_known_and_its_text_is_void(gemini, impatient):
    gemini.script(BROKEN_OFF, says("Good ", "morning"))
    asked = Asked()

    response = await asked.answer()

    assert asked.pieces == ["Good m", "Good ", "morning"]
    assert response.parts == [Part(text="Good morning")]
    (failed,) = asked.failed
    assert failed.text_is_void
    assert failed.usage.total_token_count == 13
    assert response.usage.total_token_count == 13


@given(st.lists(st.sampled_from(sorted(PASSING)), max_size=ATTEMPTS - 1))
async def test_however_it_fails_before_the_answer_is_the_same(failures):
    with GeminiServer() as server, pytest.MonkeyPatch.context() as patch:
        server.use(patch)
        patch.setattr(gemini_model, "FIRST_WAIT", 0.001)
        server.script(*(PASSING[what][0] for what in failures), says("Good ", "morning"))
        asked = Asked()

        response = await asked.answer()

        assert response.parts == [Part(text="Good morning")]
        assert [failed.number for failed in asked.failed] == list(range(1, len(failures) + 1))
        assert server.unused == 0


@pytest.mark.parametrize("what", PASSING)
async def test_in_the_end_it_gives_up(gemini, impatient, what):
    failure, _ = PASSING[what]
    gemini.respond = lambda request: failure

    said = await refusal()

    assert len(gemini.requests) == ATTEMPTS
    assert said.startswith("model 'gemini-test' gave no response (tried 5 times): ")


async def test_each_wait_is_about_twice_the_one_before(gemini, monkeypatch):
    monkeypatch.setattr(gemini_model, "FIRST_WAIT", 0.01)
    gemini.respond = lambda request: fails(503)
    asked = Asked()
    with pytest.raises(ModelError):
        await asked.answer()
    for failed, least in zip(asked.failed, [0.01, 0.02, 0.04, 0.08], strict=True):
        assert least <= failed.wait <= least + 0.01


@pytest.mark.parametrize(
    "failure",
    [fails(429, retry_delay="0.25s"), fails(503, headers={"Retry-After": "0"})],
    ids=["RetryInfo", "Retry-After"],
)
async def test_it_waits_as_long_as_the_service_asks(gemini, failure):
    gemini.script(failure, says("Good morning"))
    asked = Asked()
    loop = asyncio.get_running_loop()
    began = loop.time()

    await asked.answer()

    (failed,) = asked.failed
    least = 0.25 if failure.status == 429 else 0.0
    assert least <= failed.wait <= 1.2 * least
    assert loop.time() - began >= least


LASTING = {
    "a wait of an hour": (
        fails(429, "quota exceeded", retry_delay="3600s"),
        "429 RESOURCE_EXHAUSTED: quota exceeded. Wait 1 h",
    ),
    "the quota of a day": (
        fails(429, quota="GenerateRequestsPerDayPerProjectPerModel-FreeTier", retry_delay="1s"),
        "The daily quota is used up",
    ),
    "a request that is refused": (
        fails(400, "Invalid JSON payload."),
        "400 INVALID_ARGUMENT: Invalid JSON payload. The service refused the request",
    ),
    "a key without rights": (fails(403, "The API is disabled."), "Check the key in GOOGLE_API_KEY"),
}


@pytest.mark.parametrize("what", LASTING)
async def test_what_will_not_pass_is_not_asked_again(gemini, what):
    failure, said = LASTING[what]
    gemini.script(failure)

    assert said in await refusal()
    assert len(gemini.requests) == 1


async def test_a_wrong_key_is_told_and_where_to_set_it(gemini, monkeypatch):
    monkeypatch.setenv("GOOGLE_API_KEY", "another-key")
    said = await refusal()
    assert said.startswith(
        "model 'gemini-test' gave no response: 400 INVALID_ARGUMENT: API key not valid. Please pass a valid "
        "API key. Check the key in GOOGLE_API_KEY or GEMINI_API_KEY"
    )
    assert "another-key" not in said


async def test_an_unknown_model_is_told_and_where_it_is_set(gemini):
    gemini.models = ["gemini-test"]
    said = await refusal("gemini-tset")
    assert said.startswith(
        "model 'gemini-tset' gave no response: 404 NOT_FOUND: models/gemini-tset is not found"
    )
    assert "Check the agent's `model` for a misspelt or retired name" in said


async def test_an_address_where_nobody_answers_is_told(gemini, monkeypatch, impatient):
    with GeminiServer() as gone:
        pass
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", gone.url)
    said = await refusal()
    assert "gave no response (tried 5 times): " in said
    assert f"whether GOOGLE_GEMINI_BASE_URL={gone.url} is right" in said


async def test_an_address_that_is_none_is_not_tried_again(gemini, monkeypatch):
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "localhost:8080")
    said = await refusal()
    assert "tried" not in said
    assert "whether GOOGLE_GEMINI_BASE_URL=localhost:8080 is right" in said


async def test_vertex_without_credentials_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.delenv("GOOGLE_GENAI_USE_ENTERPRISE", raising=False)
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "a-project")
    # Neither a file of credentials nor a machine of Google Cloud.
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    assert "gcloud auth application-default login" in await refusal()


async def test_cancelling_ends_a_wait_at_once(gemini):
    gemini.script(fails(503, retry_delay="50s"))
    waits = asyncio.Event()
    model = GeminiModel("gemini-test")
    task = asyncio.create_task(model.generate(HELLO, print, lambda failed: waits.set()))
    await asyncio.wait_for(waits.wait(), 10)

    task.cancel()

    async with asyncio.timeout(5):
        with pytest.raises(asyncio.CancelledError):
            await task
    await model.close()


@pytest.mark.parametrize("spoken", [(), ("Good m",)], ids=["before the answer", "in the answer"])
async def test_cancelling_ends_a_request_at_once(gemini, spoken):
    hold = Hold()
    gemini.script(Answer([*(chunk({"text": text}) for text in spoken), hold, chunk({"text": "late"})]))
    asked = Asked()
    task = asyncio.create_task(asked.answer())
    assert await asyncio.to_thread(hold.reached.wait, 10)

    task.cancel()

    async with asyncio.timeout(5):
        with pytest.raises(asyncio.CancelledError):
            await task
    assert asked.failed == []
    assert len(gemini.requests) == 1


async def test_an_agent_reports_failed_attempts_and_goes_on(gemini, impatient):
    gemini.script(fails(503, "busy"), BROKEN_OFF, says("Good ", "morning"))
    events = []
    reporter = Reporter(events.append)
    reporter.turn = 0
    adapter = NativeAdapter(Agent("host", "gemini-test"))
    session = await adapter.new_session(SessionSpec(), reporter)
    reporter.event("user", {"role": "user", "parts": [{"text": "Hello"}]})

    with recording(reporter):
        await session.send({"parts": [{"text": "Hello"}]})
    await adapter.close()

    assert [event.kind for event in events] == [
        "user",
        "model_request",
        "error",
        "text",
        "error",
        "text",
        "text",
        "model_response",
        "text",
    ]
    (request,) = [event for event in events if event.kind == "model_request"]
    busy, broken = [event for event in events if event.kind == "error"]
    assert busy.parent == broken.parent == request.id
    assert busy.data["message"].startswith("503 UNAVAILABLE: busy; retrying in ")
    assert (busy.data["retrying"], busy.data["attempt"], busy.data["text_is_void"]) == (True, 1, False)
    assert (broken.data["retrying"], broken.data["attempt"], broken.data["text_is_void"]) == (True, 2, True)
    assert broken.usage["total_token_count"] == 13
    assert broken.duration > 0
    (invocation,) = invocations_from_events(events)
    assert invocation.final_response.parts == [Part(text="Good morning")]
    (answer,) = invocation.intermediate_data.invocation_events
    assert answer.usage_metadata.total_token_count == 13
