"""A case that is run several times: which of its runs is shown, and what is done to its differences."""

import asyncio
import json

import pytest

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import Status
from evaltui.views.cause import differences_of
from evaltui.workbench.actions import ACTIONS_BY_ID
from evaltui.workbench.result.acceptable import choices_in_result
from evaltui.workbench.result.accepting import propose
from evaltui.workbench.runs.repeats import parse_repeated, repeat_problem, repeat_title, usual_repeat
from evaltui.workbench.state import RepeatChoice, Selection

# Every other time it calls a tool that nothing expects.
COIN = """
    import os
    from pathlib import Path
    from evaltui.events import text, tool_call

    def times():
        file = os.open(Path(__file__).with_name("times"), os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.write(file, b"x")
        return os.lseek(file, 0, os.SEEK_CUR)

    def root_agent(message, session):
        if message == "toss" and times() % 2:
            yield tool_call("pick_up", {"coin": "euro"})
        yield text("done")
"""


@pytest.fixture
async def coin(write_agent, write_set, open_workbench):
    folder = write_agent(COIN, name="coin")
    path = write_set(folder, "coins", toss=("toss", "done"), other=("hello", "done"))
    workbench = await open_workbench(folder)
    workbench.navigation.select(Selection(path.name, "toss"))
    return workbench


async def run(workbench):
    workbench.runs.run_case(RepeatChoice(5, "majority"))
    await workbench.runs.finished()
    scored = workbench.outcomes.get(workbench.navigation.selection.case)
    assert scored is not None, workbench.runs.current.remarks
    return scored


def of_status(scored, status):
    return next(number for number, one in enumerate(scored.result.repeats) if one.status is status)


async def trace_of(workbench, key, until):
    await until(lambda: workbench.outcomes.trace(key) is not None)
    return workbench.outcomes.trace(key)


async def test_a_case_is_run_several_times_and_judged_by_the_policy(coin):
    scored = await run(coin)
    assert (scored.result.status, scored.result.passed_repeats) == (Status.FLAKY, 2)
    assert (scored.result.policy, scored.result.policy_met) == ("majority", False)
    assert scored.repeat == of_status(scored, Status.FAILED)
    assert coin.outcomes.get(CaseId(coin.navigation.selection.path, "other")) is None
    coin.runs.run_again()
    await coin.runs.finished()
    again = coin.outcomes.get(coin.navigation.selection.case)
    assert (len(again.result.repeats), again.run.number) == (5, 2)


async def test_differences_and_trace_are_those_of_the_run_that_is_shown(coin, until):
    scored = await run(coin)
    key = coin.navigation.selection.case
    failed, passed = of_status(scored, Status.FAILED), of_status(scored, Status.PASSED)
    at = next(differences_of(scored.shown))
    coin.navigation.select_difference(at)
    assert coin.navigation.difference == at
    trace = await trace_of(coin, key, until)
    assert trace.repeat == failed
    assert "tool_call" in [event.kind for event in trace.events]
    coin.navigation.show_repeat(passed)
    assert coin.navigation.difference is None
    trace = await trace_of(coin, key, until)
    assert trace.repeat == passed
    assert "tool_call" not in [event.kind for event in trace.events]
    shown = coin.outcomes.get(key).shown
    assert list(differences_of(shown)) == []
    assert shown.status is Status.FLAKY
    assert ACTIONS_BY_ID["accept"].refusal(coin) == "No difference in calls, response or state"


async def test_the_next_and_the_previous_run_go_around(coin):
    scored = await run(coin)
    first = scored.repeat
    seen = []
    for _ in range(5):
        coin.navigation.step_repeat(1)
        seen.append(coin.outcomes.get(coin.navigation.selection.case).repeat)
    assert seen == [(first + step) % 5 for step in range(1, 6)]
    coin.navigation.step_repeat(-1)
    assert coin.outcomes.get(coin.navigation.selection.case).repeat == (first - 1) % 5


async def test_what_is_accepted_is_what_the_shown_run_did(coin, until):
    scored = await run(coin)
    other = [n for n, one in enumerate(scored.result.repeats) if one.status is Status.FAILED][1]
    coin.navigation.show_repeat(other)
    assert other != scored.repeat
    coin.navigation.select_difference(
        next(differences_of(coin.outcomes.get(coin.navigation.selection.case).shown))
    )
    made = await propose(coin.editing, choices_in_result(coin.editing)[0])
    assert made.problem == ""
    assert f"2 of 5 repeats passed; accepting run {other + 1}" in made.remarks


async def test_the_shown_run_and_the_policy_survive_an_edit(coin, until):

    scored = await run(coin)
    passed = of_status(scored, Status.PASSED)
    coin.navigation.show_repeat(passed)
    key = coin.navigation.selection.case
    number = coin.sets.by_case_path(key.path).number(key.eval_id)
    coin.editing.do(
        "say",
        coin.navigation.file,
        lambda eval_set: eval_set.case(number).turn(0).answer.set_text("x"),
    )
    await until(lambda: coin.outcomes.get(key).stored is not scored.stored)
    new = coin.outcomes.get(key)
    assert (new.repeat, new.result.policy) == (passed, "majority")


async def test_where_a_case_was_run_once_there_is_no_other_run(coin):
    coin.runs.run_case()
    await coin.runs.finished()
    assert ACTIONS_BY_ID["next_repeat"].refusal(coin) == "No repeats of this case"
    before = coin.outcomes.get(coin.navigation.selection.case)
    coin.navigation.step_repeat(1)
    assert coin.outcomes.get(coin.navigation.selection.case) is before


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("5", RepeatChoice(5, "all")),
        (" 3  majority ", RepeatChoice(3, "majority")),
        ("10 0.6", RepeatChoice(10, 0.6)),
        ("1 1", RepeatChoice(1, 1.0)),
        ("50 all 0.95", RepeatChoice(50, "all", 0.95)),
        ("12  0.9  0.95", RepeatChoice(12, 0.9, 0.95)),
    ],
)
def test_how_often_is_said_in_a_line(text, meant):
    assert parse_repeated(text) == meant
    assert repeat_problem(text) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "Start with a number from 1 to 1000, e.g. 5 all"),
        ("0", "Start with a number from 1 to 1000, e.g. 5 all"),
        ("-1 all", "Start with a number from 1 to 1000, e.g. 5 all"),
        ("²", "Start with a number from 1 to 1000, e.g. 5 all"),
        ("5 most", "The pass rule is all, majority or a pass rate above 0 up to 1, e.g. 0.6"),
        ("5 0", "The pass rule is all, majority or a pass rate above 0 up to 1, e.g. 0.6"),
        ("5 nan", "The pass rule is all, majority or a pass rate above 0 up to 1, e.g. 0.6"),
        ("50 all sure", "The confidence is a number above 0.5 and below 1, e.g. 0.95"),
        ("50 all nan", "The confidence is a number above 0.5 and below 1, e.g. 0.95"),
        ("50 all 1", "The confidence is a number above 0.5 and below 1, e.g. 0.95"),
        ("11 all 0.95", "With this confidence no case passes in fewer than 12 runs"),
        ("50 all 0.95 x", "Give a number, a pass rule and a confidence, e.g. 50 all 0.95"),
    ],
)
def test_what_is_no_number_of_runs_is_refused(text, problem):
    assert repeat_problem(text) == problem


async def test_what_is_proposed(coin):
    assert usual_repeat(coin.sets, coin.navigation.selection, coin.runs.current) == "5 all"
    assert repeat_title(coin.sets, coin.navigation.selection) == "toss"
    coin.navigation.select(Selection(coin.navigation.selection.path))
    assert repeat_title(coin.sets, coin.navigation.selection) == "coins, 2 cases"
    config = coin.navigation.file.with_name("test_config.json")
    config.write_text(json.dumps({"evaltui": {"repeats": {"runs": 3, "pass_if": "majority"}}}))
    await coin.open()
    await asyncio.to_thread(coin.sets.open, coin.navigation.file)
    assert usual_repeat(coin.sets, coin.navigation.selection, coin.runs.current) == "3 majority"
    coin.runs.run_case(RepeatChoice(2, 0.5))
    await coin.runs.finished()
    of_set = coin.outcomes.results.of(coin.navigation.selection.path)
    assert [len(scored.result.repeats) for _, scored in of_set] == [2, 2]
    assert usual_repeat(coin.sets, coin.navigation.selection, coin.runs.current) == "2 0.5"
