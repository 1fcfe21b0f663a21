"""google-adk agents with google-adk's own Gemini class, in real child processes."""

from __future__ import annotations

import pytest
from eval_data import make_case, make_set, make_turn
from gemini_server import Answer, Drop, calls, chunk, fails, malformed, says

from evaltui import CaseResult, EvalConfig, Status, evaluate
from evaltui.core.model.events import Event
from evaltui.runner.plan import Happened, Update

pytest.importorskip("google.adk")
pytestmark = pytest.mark.adk

AGENT = """
    from google.adk.agents import LlmAgent

    def area(width: int, height: int) -> int:
        '''The area of a rectangle.'''
        return width * height

    root_agent = LlmAgent(name="geometer", model="gemini-test", instruction="Measure.", tools=[area])
"""
PRICES = {"gemini-test": {"input_mtok": 1, "cached_input_mtok": 0.1, "output_mtok": 10}}
OWN = {"cost_usd": 0.0003, "tokens": 58, "seconds": 60}
TWO_BY_THREE = {"width": 2, "height": 3}
CASE = make_case("two", make_turn("2 by 3?", "It is 6.", [{"name": "area", "args": TWO_BY_THREE}]))


async def run(agent) -> tuple[CaseResult, list[Event]]:
    events: list[Event] = []

    def update(update: Update) -> None:
        if isinstance(update, Happened):
            events.append(update.event)

    criteria = {"tool_trajectory_avg_score": 1.0, "response_match_score": 1.0}
    config = EvalConfig.model_validate({"criteria": criteria, "evaltui": {"prices": PRICES, "criteria": OWN}})
    result = await evaluate(agent, make_set("shapes", CASE), config, workers=1, on_update=update)
    return result.cases[0], events


async def test_calls_thoughts_and_usage_of_a_gemini_model(write_agent, gemini):
    usage = {
        "promptTokenCount": 20,
        "cachedContentTokenCount": 10,
        "thoughtsTokenCount": 5,
        "candidatesTokenCount": 4,
        "totalTokenCount": 29,
    }
    gemini.script(
        calls("area", TWO_BY_THREE, thought="A rectangle.", usage=usage, thoughtSignature="c2lnbmVk"),
        says("It is ", "6.", thought="Easy.", usage=usage),
    )

    case, events = await run(write_agent(AGENT))

    assert case.error is None
    assert case.status is Status.PASSED
    assert [request.model for request in gemini.requests] == ["gemini-test", "gemini-test"]
    assert "Measure." in gemini.requests[0].instruction
    assert [one["name"] for one in gemini.requests[0].functions] == ["area"]
    assert gemini.requests[1].results[0]["response"] == {"result": 6}
    responses = [event for event in events if event.kind == "model_response"]
    assert [event.usage["thoughts_token_count"] for event in responses] == [5, 5]
    assert [event.usage["cached_content_token_count"] for event in responses] == [10, 10]
    # Twice 10 tokens of input, 10 cached ones, and 9 of output.
    assert case.spent is not None
    [spent] = case.spent.models
    assert (spent.payer, spent.model, spent.calls, spent.unpriced) == ("agent", "gemini-test", 2, 0)
    assert (spent.tokens.input, spent.tokens.cached, spent.tokens.thoughts) == (40, 20, 10)
    assert case.metric("cost_usd").score == pytest.approx(2 * (10 * 1 + 10 * 0.1 + 9 * 10) / 1e6)
    assert case.metric("tokens").score == 58
    (invocation,) = case.repeats[0].actual
    assert [part.text for part in invocation.final_response.parts] == ["Easy.", "It is 6."]


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (fails(400, "Invalid JSON payload."), "400 INVALID_ARGUMENT: Invalid JSON payload"),
        (fails(429, "slow down"), "slow down"),
        (fails(500, "internal"), "internal"),
        (malformed(), "Expecting ':'"),
        (Answer([chunk({"text": "It is 6."}), Drop()]), ""),
    ],
    ids=["refused", "too many requests", "internal error", "no JSON", "lost in the answer"],
)
async def test_what_the_service_refuses_is_the_error_of_the_case(write_agent, gemini, failure, said):
    gemini.script(calls("area", TWO_BY_THREE), failure)

    case, events = await run(write_agent(AGENT))

    assert case.status is Status.ERROR
    assert said in case.error.message
    _, asked = [event for event in events if event.kind == "model_request"]
    assert asked.id in {event.parent for event in events if event.kind == "error"}
    # What happened before is kept.
    assert [event.kind for event in events if event.kind in ("tool_call", "tool_result")] == [
        "tool_call",
        "tool_result",
    ]
