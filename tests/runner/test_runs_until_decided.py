"""Cases that are repeated until they are decided, with agents, judges and recordings that are real."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from eval_data import make_answers
from gemini_server import says

from evaltui import EvalConfig, Status, evaluate
from evaltui.core.model.errors import ErrorKind
from evaltui.runner.plan import CaseDone, CaseStarted, RepeatDone

TEXT_ONLY = EvalConfig(criteria={"response_match_score": 1.0})


def eval_set(*messages):
    return make_answers(*messages, answer="right")


class Scripted:
    """An agent that answers a message as the message says, run by run: p is right, f is wrong, e raises."""

    def __init__(self):
        self.runs = Counter()

    def __call__(self, message, session):
        outcome = message[self.runs[message] % len(message)]
        self.runs[message] += 1
        if outcome == "e":
            raise RuntimeError("out of order")
        return "right" if outcome == "p" else "wrong"


async def test_what_is_told_of_cases_that_are_repeated_at_once():
    told = []
    agent = Scripted()
    messages = ["p", "f", "e", "ppppf", "fp"]
    result = await evaluate(
        agent, eval_set(*messages), TEXT_ONLY, confidence=0.95, max_runs=30, on_update=told.append
    )
    assert [one.decision.answer for one in result.cases] == [
        "passes",
        "does not pass",
        "does not pass",
        "undecided",
        "does not pass",
    ]
    assert [one.status for one in result.cases] == [
        Status.PASSED,
        Status.FAILED,
        Status.ERROR,
        Status.NOT_EVALUATED,
        Status.FLAKY,
    ]
    assert not result.passed
    assert [one.passed for one in result.cases] == [True, False, False, False, False]
    # Not one run more than there are results, and of each case all before its own.
    assert {
        message: len(one.repeats) for message, one in zip(messages, result.cases, strict=True)
    } == agent.runs
    for case in result.cases:
        of_case = [one for one in told if getattr(one, "case", None) == case.id]
        started = [one.repeat for one in of_case if isinstance(one, CaseStarted)]
        done = [one.repeat for one in of_case if isinstance(one, RepeatDone)]
        assert started == sorted(started) == list(range(len(case.repeats)))
        assert sorted(done) == started
        at = next(n for n, one in enumerate(told) if isinstance(one, CaseDone) and one.result.id == case.id)
        assert not any(getattr(one, "case", None) == case.id for one in told[at:])


async def test_a_case_whose_answer_is_open_goes_on_before_another_begins():
    told = []
    await evaluate(
        Scripted(),
        eval_set("ppppf", "p", "f"),
        TEXT_ONLY,
        confidence=0.95,
        max_runs=20,
        parallel=1,
        on_update=told.append,
    )
    order = [one.case.eval_id for one in told if isinstance(one, CaseStarted)]
    assert order == sorted(order)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"confidence": 0.95, "runs": 3}, "leave out one of them"),
        ({"max_runs": 3}, "max_runs needs a confidence"),
        ({"confidence": 1.0}, "not between 0.5 and 1"),
        ({"confidence": 0.95, "max_runs": 11}, "no case passes in fewer than 12 runs"),
        ({"confidence": 0.95, "max_runs": 0}, "max_runs must be at least 1"),
    ],
)
async def test_what_makes_no_sense_is_refused(options, said):
    with pytest.raises(ValueError, match=said):
        await evaluate(Scripted(), eval_set("p"), TEXT_ONLY, **options)


CRASHING = """
    import os
    from pathlib import Path

    RUNS = Path(__file__).parent / "runs.txt"

    async def root_agent(message, session):
        with RUNS.open("a") as runs:
            runs.write("x")
        if message.startswith("crash") and len(RUNS.read_text()) in (4, 5):
            os._exit(7)
        return "right"
"""


@pytest.mark.usefixtures("fresh_hosts")
async def test_a_host_that_is_lost_says_nothing_of_the_pass_rate(write_agent):
    agent = write_agent(CRASHING)
    result = await evaluate(agent, eval_set("crash"), TEXT_ONLY, confidence=0.95, parallel=1)
    (case,) = result.cases
    assert case.error_kinds == (ErrorKind.HOST_LOST,)
    assert (case.status, case.passed_repeats, len(case.repeats)) == (Status.FLAKY, 12, 14)
    assert case.passed


JUDGED = """
    async def root_agent(message, session):
        return "right"
"""
JUDGE = """
from itertools import count
NUMBERS = count()

def judge(prompt):
    verdict = "invalid" if next(NUMBERS) == 2 else "valid"
    return '{"reasoning": "So it is.", "is_the_agent_response_valid": "%s"}' % verdict
"""


@pytest.mark.usefixtures("fresh_hosts")
async def test_runs_follow_from_what_a_judge_says(write_agent):
    agent = write_agent(JUDGED, judging=JUDGE)
    judged = {"judge_model": "judging:judge", "num_samples": 1}
    config = {"criteria": {"final_response_match_v2": {"threshold": 1.0, "judge_model_options": judged}}}
    result = await evaluate(agent, eval_set("hello"), config, confidence=0.95)
    (case,) = result.cases
    assert (case.decision.answer, case.passed_repeats, len(case.repeats)) == ("passes", 17, 18)


ASKING = """
    from evaltui import Agent
    root_agent = Agent(name="greeter", model="gemini-test", instruction="Greet.")
"""


@pytest.mark.thorough
@pytest.mark.usefixtures("fresh_hosts")
async def test_recorded_runs_come_to_the_same_decision(write_agent, gemini):
    agent = write_agent(ASKING)
    (agent / "basics.evalset.json").write_text(json.dumps(eval_set("hello")))
    asked = Counter()

    def respond(request):
        asked["all"] += 1
        return says("wrong" if asked["all"] == 2 else "right")

    gemini.respond = respond
    recorded = await evaluate(agent, "basics", TEXT_ONLY, confidence=0.95, parallel=1, record="record")
    assert asked["all"] == len(recorded.cases[0].repeats) == 18
    replayed = await evaluate(agent, "basics", TEXT_ONLY, confidence=0.95, record="replay")
    assert asked["all"] == 18
    before, after = recorded.cases[0], replayed.cases[0]
    assert before.decision == after.decision
    assert [one.status for one in before.repeats] == [one.status for one in after.repeats]
