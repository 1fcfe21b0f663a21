"""Code of the user's that reaches for what is evaltui's in the process that both live in."""

from __future__ import annotations

import json

import pytest

from evaltui import EvalConfig, EvalSet, RunResult, Status, evaluate
from evaltui.agents.protocol import DisturbedChannelError, SealedLines, encode
from evaltui.runner.plan import Happened

pytestmark = pytest.mark.usefixtures("fresh_hosts")

TEXT_ONLY = EvalConfig(criteria={"response_match_score": 0.9})


def cases_saying(*messages: str) -> EvalSet:
    cases = []
    for number, says in enumerate(messages):
        content = {"role": "user", "parts": [{"text": says}]}
        turn = {"user_content": content, "final_response": {"role": "model", "parts": [{"text": says}]}}
        cases.append({"eval_id": f"case_{number}", "conversation": [turn]})
    return EvalSet.model_validate({"eval_set_id": "basics", "eval_cases": cases})


def statuses(result: RunResult) -> list[Status]:
    return [one.status for one in result.cases]


# What user code can find: every socket among its descriptors.
FORGE = """
import json, os, socket, stat, sys

def sockets():
    for name in os.listdir("/proc/self/fd") if sys.platform == "linux" else range(3, 1024):
        try:
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                yield int(name)
        except OSError:
            pass

def forge(text):
    for fd in sockets():
        try:
            os.write(fd, text.encode())
        except OSError:
            pass
"""
LIES = {
    "done": json.dumps({"op": "done", "id": 1, "state": {}}) + "\n",
    "failed": json.dumps({"op": "failed", "id": 1}) + "\n",
    "event": json.dumps({"op": "event", "id": 1, "event": {"kind": 7}}) + "\n",
    "fatal": json.dumps({"op": "fatal", "error": 7}) + "\n",
    "no object": "[1, 2]\n",
    "no JSON": "not JSON\n",
    "no end of a line": "and then",
    "bytes": "\x00\xff\n\n\n",
}


async def test_an_agent_that_writes_lines_of_the_protocol_prints_them(write_agent):
    agent = write_agent(
        f"{FORGE}\nLIES = {LIES!r}\n\ndef root_agent(message, session):\n"
        "    forge(LIES.get(message, ''))\n    return message\n"
    )
    printed: list[str] = []

    def take(update: object) -> None:
        if isinstance(update, Happened) and update.event.kind == "console":
            printed.append(update.event.data["text"])

    result = await evaluate(agent, cases_saying(*LIES), TEXT_ONLY, parallel=1, on_update=take)
    assert statuses(result) == [Status.PASSED] * len(LIES)
    assert LIES["done"].strip() in printed
    assert "and then" in printed


async def test_a_metric_that_writes_lines_of_the_protocol_is_scored_by_what_it_returns(write_agent):
    answer = json.dumps({"op": "done", "id": 2, "result": {"overall_score": 1.0}}) + "\n"
    metrics = f"""{FORGE}
from evaltui import EvalStatus, EvaluationResult, PerInvocationResult

def honest(metric, actual, expected, scenario):
    forge({answer!r})
    failed = EvalStatus.FAILED
    turns = [PerInvocationResult(actual_invocation=one, score=0.0, eval_status=failed) for one in actual]
    return EvaluationResult(overall_score=0.0, overall_eval_status=failed, per_invocation_results=turns)
"""
    agent = write_agent("def root_agent(message, session):\n    return message\n", metrics=metrics)
    config = EvalConfig.model_validate(
        {
            "criteria": {"honest": 0.5},
            "custom_metrics": {"honest": {"code_config": {"name": "my_agent.metrics.honest"}}},
        }
    )
    result = await evaluate(agent, cases_saying("one", "two"), config)
    assert statuses(result) == [Status.FAILED] * 2, result.cases[0].repeats[0].metrics


CANCELLING = """
import asyncio

async def root_agent(message, session):
    if message == "slow":
        await asyncio.sleep(0.3)
    if message == "stubborn":
        try:
            await asyncio.sleep(0.3)
        except asyncio.CancelledError:
            return "cancelled, and goes on"
    if message == "cancels":
        await asyncio.sleep(0.05)
        for task in asyncio.all_tasks():
            {condition}task.cancel()
        await asyncio.sleep(0)
    if message == "cancels itself":
        raise asyncio.CancelledError
    return message
"""


@pytest.mark.parametrize(
    "condition",
    [
        pytest.param("", id="all"),
        pytest.param("if task is not asyncio.current_task(): ", id="others", marks=pytest.mark.thorough),
    ],
)
async def test_a_case_that_cancels_every_task_is_the_only_error(write_agent, condition):
    agent = write_agent(CANCELLING.replace("{condition}", condition))
    sets = cases_saying("slow", "cancels", "stubborn", "cancels itself")
    result = await evaluate(agent, sets, TEXT_ONLY, parallel=4, workers=1)
    assert statuses(result) == [Status.PASSED, Status.ERROR, Status.PASSED, Status.ERROR]
    cancelling, itself = result.cases[1].error, result.cases[3].error
    assert cancelling is not None
    assert itself is not None
    assert "all_tasks" in cancelling.message
    assert itself.type == "CancelledError"


def test_what_is_without_the_seal_is_no_message():
    stray: list[bytes] = []
    lines = SealedLines("seal", stray.append)
    sent = b"seal" + encode({"op": "done"})
    assert list(lines.feed(b'{"op": "done"}\nhalf a line ' + sent[:7])) == []
    assert list(lines.feed(sent[7:] + sent)) == [{"op": "done"}] * 2
    assert stray == [b'{"op": "done"}', b"half a line "]
    with pytest.raises(DisturbedChannelError):
        list(lines.feed(b'seal{"op": "do stray ne"}}\n'))
