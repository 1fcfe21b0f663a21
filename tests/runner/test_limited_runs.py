"""Runs of agents of ours whose model calls are limited, in a process of their own and in this one."""

from __future__ import annotations

import pytest
from eval_data import make_answers
from gemini_server import Answer, GeminiServer, fails, says
from quotas import Pairs

from evaltui import Agent, EvalConfig, RunResult, Status, evaluate
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.events import Event
from evaltui.runner.plan import Happened, Update

AGENT = """
    from evaltui import Agent

    root_agent = Agent("parrot", "gemini-test")
"""
CONFIG = EvalConfig(criteria={"response_match_score": 1.0})


async def run(
    agent: object, count: int, limits: dict[str, dict[str, float]], **options: object
) -> tuple[RunResult, list[Event]]:
    events: list[Event] = []

    def on_update(update: Update) -> None:
        if isinstance(update, Happened):
            events.append(update.event)

    result = await evaluate(
        agent,
        make_answers(*["say it"] * count, answer="well"),
        CONFIG,
        limits=limits,
        on_update=on_update,
        **options,
    )
    return result, events


def in_process() -> Agent:
    return Agent("parrot", "gemini-test")


async def test_calls_wait_for_each_other(write_agent, gemini: GeminiServer):
    # Two are there at once, and never a third.
    gemini.respond = pairs = Pairs()
    limits = {"gemini-*": {"concurrent": 2, "rpm": 1000}}

    result, _ = await run(write_agent(AGENT), 4, limits, parallel=4, workers=1)

    assert result.status is Status.PASSED
    assert pairs.most == 2
    assert len(gemini.requests) == 4


@pytest.mark.parametrize("refusal", [fails(429, retry_delay="3600s"), fails(429, quota="RequestsPerDay")])
async def test_a_quota_that_is_used_up_is_not_waited_for(gemini: GeminiServer, refusal: Answer):
    gemini.respond = lambda request: refusal

    result, _ = await run(in_process(), 2, {"*": {"rpm": 1000}}, parallel=1)

    assert [case.repeats[0].error.kind for case in result.cases] == [ErrorKind.RATE_LIMIT] * 2
    assert len(gemini.requests) == 2


async def test_models_without_a_limit_tell_nothing(gemini: GeminiServer):
    gemini.script(fails(429, retry_delay="0s"), says("well"))

    result, events = await run(in_process(), 1, {"gpt-*": {"rpm": 1}})

    assert result.status is Status.PASSED
    # Sent again by the model itself, as without any limit.
    assert [event.data["retrying"] for event in events if event.kind == "error"] == [True]


async def test_a_refused_call_is_made_again_and_the_wait_is_told(gemini: GeminiServer):
    gemini.script(fails(429, "slow down", retry_delay="0.2s"))
    gemini.respond = lambda request: says("well")

    result, events = await run(in_process(), 3, {"*": {"concurrent": 1}}, parallel=3)

    assert result.status is Status.PASSED
    assert len(gemini.requests) == 4
    assert all(case.repeats[0].throttled > 0.1 for case in result.cases)
    assert all(event.data["throttled"] > 0.1 for event in events if event.kind == "model_response")
    assert not [event for event in events if event.kind == "error"]
