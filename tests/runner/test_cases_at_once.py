"""Cases side by side in one host: no more than `parallel`, and no case is blamed for another one."""

from __future__ import annotations

import pytest

from evaltui import EvalConfig, EvalSet, Status, evaluate

pytestmark = pytest.mark.usefixtures("fresh_hosts")

TEXT_ONLY = EvalConfig(criteria={"response_match_score": 0.9})
AGENT = """
import asyncio

under_way = 0

async def root_agent(message, session):
    global under_way
    under_way += 1
    try:
        if message.startswith("late"):
            await asyncio.sleep(60)
        if message == "slow":
            await asyncio.sleep(0.6)
        if message == "cancel":
            me = asyncio.current_task()
            for task in asyncio.all_tasks() - {me}:
                task.cancel()
        await asyncio.sleep(0)
        return "ok" if under_way <= 2 else f"{under_way} at once"
    finally:
        under_way -= 1
"""


def cases(*messages: str) -> EvalSet:
    def content(role: str, text: str) -> dict[str, object]:
        return {"role": role, "parts": [{"text": text}]}

    turns = [
        {"user_content": content("user", says), "final_response": content("model", "ok")} for says in messages
    ]
    made = [{"eval_id": f"{number}", "conversation": [turn]} for number, turn in enumerate(turns)]
    return EvalSet.model_validate({"eval_set_id": "basics", "eval_cases": made})


async def test_no_more_cases_run_at_once_than_parallel_says_and_only_late_ones_time_out(write_agent):
    messages = [*["hi"] * 20, "late1", "late2", "slow", *["hi"] * 20]
    agent = write_agent(AGENT)
    result = await evaluate(agent, cases(*messages), TEXT_ONLY, parallel=2, workers=1, timeout=1.0)
    by_message = zip(messages, result.cases, strict=True)
    assert {message for message, one in by_message if one.status is not Status.PASSED} == {"late1", "late2"}
    late = [repeat.error.message for one in result.cases for repeat in one.repeats if repeat.error]
    assert len(late) == 2
    assert all("no response within 1 s" in message for message in late)


async def test_a_case_that_cancels_others_is_alone_to_blame(write_agent):
    messages = [*["hi"] * 20, "cancel", *["hi"] * 20]
    agent = write_agent(AGENT)
    result = await evaluate(agent, cases(*messages), TEXT_ONLY, parallel=2, workers=1)
    by_message = zip(messages, result.cases, strict=True)
    assert {message for message, one in by_message if one.status is not Status.PASSED} <= {"cancel"}
