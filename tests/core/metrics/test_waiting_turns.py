"""How a turn is scored that ends with a request to the user."""

import pytest
from eval_data import make_case, make_turn

from evaltui import EvalCase, EvalConfig, Invocation, Status
from evaltui.core.scoring import score_case

CONFIRM = "adk_request_confirmation"


def asking(call_id, amount=3, text=None, name=CONFIRM):
    original = {"id": call_id, "name": "pay", "args": {"amount": amount}}
    args = {"originalFunctionCall": original, "toolConfirmation": {"confirmed": False}}
    return make_turn("pay", calls=[{"name": name, "args": args}]) | (
        {"final_response": {"parts": [{"text": text}]}} if text else {}
    )


async def scored(expected, actual, **options):
    case = EvalCase.model_validate(make_case("one", *expected))
    did = [Invocation.model_validate(turn) for turn in actual]
    result = await score_case(case, did, EvalConfig.default(), **options)
    return {metric.name: metric.status for metric in result.repeats[0].metrics}


async def test_ids_made_for_a_request_and_saying_nothing_are_no_difference():
    statuses = await scored([asking("adk-1")], [asking("adk-2")])
    assert statuses["tool_trajectory_avg_score"] is Status.PASSED
    assert statuses["response_match_score"] is Status.PASSED


@pytest.mark.parametrize(
    ("actual", "failed"),
    [
        (asking("adk-2", amount=4), "tool_trajectory_avg_score"),
        (asking("adk-2", name="pay"), "tool_trajectory_avg_score"),
        (asking("adk-2", text="Something"), "response_match_score"),
    ],
)
async def test_what_else_differs_fails(actual, failed):
    assert (await scored([asking("adk-1")], [actual]))[failed] is Status.FAILED


@pytest.mark.parametrize(
    ("actual", "status", "reason"),
    [
        (None, Status.NOT_EVALUATED, "the tool calls of turn 1 are unknown: the agent does not send them"),
        ([], Status.FAILED, f"turn 1: no response text and no call of {CONFIRM}"),
        (["pay"], Status.FAILED, f"turn 1: no response text and no call of {CONFIRM}"),
        ([CONFIRM], Status.PASSED, ""),
    ],
)
async def test_a_turn_without_a_text_matches_if_it_waits(actual, status, reason):
    case = EvalCase.model_validate(make_case("one", asking("adk-1")))
    turn = make_turn("pay")
    if actual is not None:
        turn["intermediate_data"] = {"tool_uses": [{"name": name, "args": {}} for name in actual]}
    config = EvalConfig(criteria={"response_match_score": 0.8})
    result = (await score_case(case, [Invocation.model_validate(turn)], config)).metrics[0]
    assert (result.status, result.reason) == (status, reason)


async def test_a_turn_that_is_responded_to_needs_no_answer():
    waits = make_turn("go", calls=["approve"])
    response = {"function_response": {"name": "approve", "response": {}}}
    done = {
        "user_content": {"parts": [response]},
        "final_response": {"parts": [{"text": "done"}]},
        "intermediate_data": {"tool_uses": []},
    }
    statuses = await scored([waits, done], [waits, done])
    assert statuses["response_match_score"] is Status.PASSED
    assert (await scored([waits], [waits]))["response_match_score"] is Status.FAILED


async def test_adk_compares_ids_and_wants_an_answer():
    statuses = await scored([asking("adk-1")], [asking("adk-2")], adk_verdicts=True)
    assert statuses["tool_trajectory_avg_score"] is Status.FAILED
    assert statuses["response_match_score"] is Status.FAILED
