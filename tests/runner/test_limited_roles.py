"""Agents, simulated users and judges of one run share a quota: nobody is refused for good."""

from __future__ import annotations

import pytest
from gemini_server import Answer, GeminiServer, Request, calls, says
from quotas import Quota

from evaltui import EvalConfig, EvalSet, RunResult, Status, evaluate
from evaltui.core.model.events import Event
from evaltui.runner.plan import Happened, Update

NATIVE = """
    from evaltui import Agent

    def area(width: int) -> int:
        '''The area of a square.'''
        return width * width

    root_agent = Agent("geometer", "gemini-agent", "Measure.", [area])
"""
ADK = NATIVE.replace("from evaltui import Agent", "from google.adk.agents import LlmAgent").replace(
    'Agent("geometer", "gemini-agent", "Measure.", [area])',
    'LlmAgent(name="geometer", model="gemini-agent", instruction="Measure.", tools=[area])',
)
CONFIG = EvalConfig.model_validate(
    {
        "criteria": {
            "rubric_based_final_response_quality_v1": {
                "threshold": 1.0,
                "judge_model_options": {"judge_model": "gemini-judge", "num_samples": 1},
                "rubrics": [{"rubric_id": "number", "rubric_content": {"text_property": "It is a number."}}],
            }
        },
        "user_simulator_config": {"model": "gemini-user"},
    }
)


def eval_set(count: int) -> EvalSet:
    scenario = {"starting_prompt": "How large?", "conversation_plan": "Ask for the area of a square."}
    cases = [{"eval_id": f"case_{number}", "conversation_scenario": scenario} for number in range(count)]
    return EvalSet.model_validate({"eval_set_id": "talks", "eval_cases": cases})


def respond(request: Request) -> Answer:
    if request.model == "gemini-agent":
        return says("It is 9.") if request.results else calls("area", {"width": 3})
    if request.model == "gemini-user":
        return says("</finished>" if "9" in request.said else "Three wide.")
    return says("Property: It is a number.\nRationale: 9 is one.\nVerdict: yes")


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(ADK, marks=pytest.mark.adk, id="google-adk"),
        pytest.param(NATIVE, marks=pytest.mark.thorough, id="native"),
    ],
)
async def test_a_quota_is_shared_by_agent_user_and_judge(write_agent, gemini: GeminiServer, source: str):
    quota = gemini.respond = Quota(4, 0.4, respond)
    events: list[Event] = []

    def on_update(update: Update) -> None:
        if isinstance(update, Happened):
            events.append(update.event)

    result: RunResult = await evaluate(
        write_agent(source),
        eval_set(4),
        CONFIG,
        workers=1,
        limits={"gemini-*": {"rpm": 1000}},
        on_update=on_update,
    )

    assert [case.error for case in result.cases] == [None] * 4
    assert result.status is Status.PASSED
    assert quota.refused
    assert {request.model for request in gemini.requests} == {"gemini-agent", "gemini-user", "gemini-judge"}
    # Every one that was refused was asked again at the gate: nothing of it is an error of anybody's.
    assert not [event for event in events if event.kind == "error"]
    assert any(case.repeats[0].throttled for case in result.cases)
