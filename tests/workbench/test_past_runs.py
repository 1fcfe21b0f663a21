"""Runs of earlier sittings: in the history of a case, opened, and brought to their end."""

import asyncio
import json
from functools import partial

import pytest
from eval_data import make_turn
from fake_runs import run_without_processes, says
from stored_runs import FOREIGN

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import Status
from evaltui.runs.history import name_run
from evaltui.runs.listing import stored_runs
from evaltui.runs.resuming import read_resumption
from evaltui.runs.run_file import RunFile
from evaltui.runs.store import RunStore
from evaltui.workbench.actions import ACTIONS_BY_ID
from evaltui.workbench.messages import Messages
from evaltui.workbench.result.acceptable import choices_in_result
from evaltui.workbench.result.accepting import propose
from evaltui.workbench.runs.compared_runs import KindTitle, compare_runs, comparison_rows
from evaltui.workbench.runs.run_list import RunList
from evaltui.workbench.runs.running import EditedSets
from evaltui.workbench.state import RepeatChoice, Selection
from tests.commands.command_line import call

GREETER = """
    import asyncio
    from pathlib import Path
    from evaltui.events import text, tool_call

    GREETING = "hello"

    async def root_agent(message, session):
        while message == "wait" and (Path(__file__).parents[1] / "hold").exists():
            await asyncio.sleep(0.01)
        if message == "call":
            yield tool_call("ring", {"times": 2})
        yield text(GREETING)
"""


@pytest.fixture
def greeter(write_agent, write_set):
    folder = write_agent(GREETER, name="greeter")
    cases = {
        "good": ("hi", "hello"),
        "bad": ("hi", "goodbye"),
        "slow": ("wait", "hello"),
        "call": ("call", "hello"),
    }
    return write_set(folder, "greetings", **cases)


@pytest.fixture
def open_workbench(greeter, open_workbench):
    """Begins a sitting; what earlier ones have run is on disk only."""
    return partial(open_workbench, greeter.parent)


async def run_all(workbench):
    workbench.runs.run_all()
    await workbench.runs.finished()
    assert workbench.runs.current.log, workbench.runs.current.remarks
    return workbench.runs.current.log


async def history(workbench, key, until, runs=1):
    await until(lambda: (known := workbench.outcomes.history(key)) is not None and len(known.points) == runs)
    return workbench.outcomes.history(key)


def rewrite_agent(greeter, greeting):
    agent = greeter.with_name("agent.py")
    agent.write_text(agent.read_text().replace('"hello"', f'"{greeting}"', 1))


async def test_results_of_a_sub_agent_are_none_of_the_root_agent(greeter, open_workbench, monkeypatch, until):
    run_without_processes(monkeypatch, says("hello"))
    assert await asyncio.to_thread(call, "run", greeter.parent, "--agent", "other") == 1
    workbench = await open_workbench()
    await workbench.outcomes.restore()
    assert workbench.outcomes.counts_of() == {}
    assert await asyncio.to_thread(call, "run", greeter.parent) == 1
    workbench = await open_workbench()
    await workbench.outcomes.restore()
    assert workbench.outcomes.counts_of() == {"PASSED": 3, "FAILED": 1}
    await history(workbench, CaseId(greeter.name, "good"), until, runs=1)


# History


async def test_after_a_restart_a_case_still_has_its_history(greeter, open_workbench, until):
    key = CaseId(greeter.name, "good")
    log = await run_all(await open_workbench())
    name_run(RunStore(greeter.parent), log.stem, "baseline")
    rewrite_agent(greeter, "good day")
    await run_all(await open_workbench())
    workbench = await open_workbench()
    past = await history(workbench, key, until, runs=2)
    assert [point.summary.status for point in past.points] == [Status.PASSED, Status.FAILED]
    assert past.last_passed.title == "run 1 baseline"
    assert past.changed_since == ("agent: agent.py",)
    assert past.values("response_match_score") == [1.0, 0.0]


async def test_nothing_waits_for_the_history(greeter, open_workbench, until):
    workbench = await open_workbench()
    keys = list(workbench.sets.every_case())
    assert [workbench.outcomes.history(key) for key in keys] == [None] * len(keys)
    # Only the case that was looked at last is read.
    await until(lambda: workbench.outcomes.history(keys[-1]) is not None)
    assert workbench.outcomes._histories.values.keys() == {keys[-1]}


# Opening


async def test_an_earlier_run_is_shown_until_one_leaves_it(greeter, open_workbench, until):
    first = await run_all(await open_workbench())
    workbench, key = await open_workbench(), CaseId(greeter.name, "call")
    rewrite_agent(greeter, "good day")
    await run_all(workbench)
    latest = workbench.outcomes.get(key)
    assert await workbench.outcomes.open_run(first, "run of yesterday")
    shown = workbench.outcomes.get(key)
    assert (shown.run.name, shown.result.status) == ("run of yesterday", Status.FAILED)
    assert shown.result.turns[0].response.actual == "hello"
    assert not workbench.outcomes.is_stale(key)
    await until(lambda: workbench.outcomes.trace(key) is not None)
    assert "tool_call" in [event.kind for event in workbench.outcomes.trace(key).events]
    assert ACTIONS_BY_ID["step_back"].footer_word(workbench) == "close run"
    workbench.step_back()
    assert workbench.outcomes.previous_run is None
    assert workbench.outcomes.get(key) is latest
    assert workbench.outcomes.get(CaseId(greeter.name, "good")).result.status is Status.FAILED


async def test_what_an_earlier_run_did_can_be_accepted(greeter, open_workbench, until):
    log = await run_all(await open_workbench())
    workbench, key = await open_workbench(), CaseId(greeter.name, "call")
    workbench.navigation.select(Selection(*key))
    assert await workbench.outcomes.open_run(log, "run of yesterday")
    made = await propose(workbench.editing, choices_in_result(workbench.editing)[0])
    assert made.problem == ""
    assert any("ring" in str(line) for change in made.changes for line in change.lines)


async def test_an_edit_scores_an_earlier_run_again_and_the_last_one_when_it_is_back(
    greeter, open_workbench, until
):
    log = await run_all(await open_workbench())
    workbench, key = await open_workbench(), CaseId(greeter.name, "bad")
    await run_all(workbench)
    await workbench.outcomes.open_run(log, "run of yesterday")
    assert not workbench.outcomes.get(key).case_changed
    number = workbench.sets.by_case_path(key.path).number(key.eval_id)
    workbench.editing.do(
        "answer", greeter, lambda eval_set: eval_set.case(number).turn(0).answer.set_text("hello")
    )
    await until(lambda: workbench.outcomes.get(key).result.status is Status.PASSED)
    workbench.outcomes.leave_previous_run()
    await until(lambda: workbench.outcomes.get(key).result.status is Status.PASSED)


async def test_cases_that_are_gone_are_told(greeter, open_workbench):
    log = await run_all(await open_workbench())
    data = json.loads(greeter.read_text())
    del data["eval_cases"][1]
    greeter.write_text(json.dumps(data))
    workbench = await open_workbench()
    await workbench.outcomes.open_run(log, "run of yesterday")
    assert workbench.outcomes.previous_run.gone == 1
    assert workbench.messages.notice.text == "1 case no longer in the eval sets"
    assert workbench.outcomes.counts_of() == {"PASSED": 2, "FAILED": 1}


async def test_a_new_run_leaves_the_earlier_one(greeter, open_workbench):
    workbench = await open_workbench()
    log = await run_all(workbench)
    await workbench.outcomes.open_run(log, "run of yesterday")
    workbench.navigation.select(Selection(greeter.name, "good"))
    workbench.runs.run_case()
    assert workbench.outcomes.previous_run is None
    await workbench.runs.finished()
    assert workbench.outcomes.get(CaseId(greeter.name, "good")).run.number == 2
    assert workbench.outcomes.get(CaseId(greeter.name, "bad")).run.number == 1


async def test_repeats_of_an_earlier_run_are_there(greeter, open_workbench):
    first = await open_workbench()
    first.navigation.select(Selection(greeter.name, "bad"))
    first.runs.run_case(RepeatChoice(3, "majority"))
    await first.runs.finished()
    workbench, key = await open_workbench(), CaseId(greeter.name, "bad")
    await workbench.outcomes.open_run(first.runs.current.log, "run of yesterday")
    result = workbench.outcomes.get(key).result
    assert (len(result.repeats), result.policy) == (3, "majority")


async def test_a_broken_log_is_said_and_nothing_changes(greeter, open_workbench, tmp_path):
    workbench = await open_workbench()
    broken = tmp_path / "20260101T000000.000Z-abc.sqlite"
    broken.write_bytes(FOREIGN["a database of something else"])
    assert not await workbench.outcomes.open_run(broken, "run of yesterday")
    assert workbench.messages.notice.text == f"{broken} is not a run of evaltui"
    assert workbench.outcomes.previous_run is None


@pytest.mark.parametrize("encodings", [1, 2], ids=["plain", "double-encoded"])
async def test_a_result_file_of_adk_opens_as_a_run(greeter, open_workbench, encodings):
    """As google-adk 2.13 writes it; the first versions wrote it as JSON inside a JSON text."""
    said = make_turn("call", "good day", [{"name": "ring", "args": {"times": 3}}])
    expected = said | {
        "final_response": {"role": "model", "parts": [{"text": "hello"}]},
        "intermediate_data": {},
    }
    scores = {"metric_name": "response_match_score", "threshold": 0.8, "score": 0.0, "eval_status": 2}
    data = {
        "eval_set_result_id": "greeter_greetings_1700000000.5",
        "eval_set_id": "greetings",
        "creation_timestamp": 1700000000.5,
        "eval_case_results": [
            {
                "eval_set_id": "greetings",
                "eval_id": "call",
                "final_eval_status": 2,
                "overall_eval_metric_results": [scores],
                "eval_metric_result_per_invocation": [
                    {
                        "actual_invocation": said,
                        "expected_invocation": expected,
                        "eval_metric_results": [scores],
                    }
                ],
                "session_id": "___eval___session___1",
            }
        ],
    }
    folder = greeter.parent / ".adk" / "eval_history"
    folder.mkdir(parents=True)
    path = folder / "greeter_greetings_1700000000.5.evalset_result.json"
    text = json.dumps(data)
    path.write_text(text if encodings == 1 else json.dumps(text))
    workbench, key = await open_workbench(), CaseId(greeter.name, "call")
    assert stored_runs(RunStore(greeter.parent)) == [path]
    assert await workbench.outcomes.open_run(path, "run of ADK")
    assert workbench.outcomes.get(key).result.status is Status.FAILED
    calls = [event for event in workbench.outcomes.trace(key).events if event.kind == "tool_call"]
    assert len(calls) == 1
    workbench.navigation.select(Selection(*key))
    made = await propose(workbench.editing, choices_in_result(workbench.editing)[0])
    assert made.problem == ""


# The list


async def rows(kept, until):
    await kept.load()
    await until(lambda: all(kept.row(path) is not None for path in kept.paths))
    return [kept.row(path) for path in kept.paths]


async def test_the_list_has_every_run_the_newest_first(greeter, open_workbench, until):
    agent = greeter.with_name("agent.py")
    remember = '    print(message, file=open(Path(__file__).with_name("memory.txt"), "a"))\n    while'
    agent.write_text(agent.read_text().replace("    while", remember))
    workbench = await open_workbench()
    first = await run_all(workbench)
    name_run(RunStore(greeter.parent), first.stem, "baseline")
    rewrite_agent(greeter, "good day")
    second = await run_all(workbench)
    (second.parent / "20200101T000000.000Z-abc.sqlite").write_bytes(FOREIGN["text"])
    kept = RunList(lambda: RunStore(greeter.parent), Messages())
    newest, named, broken = await rows(kept, until)
    assert [newest.path, named.path] == [second, first]
    assert (named.name, named.totals.counts, named.selected) == ("baseline", {"PASSED": 2, "FAILED": 2}, 4)
    assert (newest.changed, named.changed) == ((), ("agent.py",))
    assert (newest.ending, newest.status) == ("over", Status.FAILED)
    assert broken.problem == f"{broken.path} is not a run of evaltui"
    assert (named.number, named.title, newest.title) == (1, "run 1 baseline", "run 2")
    await kept.close()


async def test_a_list_of_ten_thousand_runs_reads_what_is_looked_at(greeter, open_workbench, until):
    log = await run_all(await open_workbench())
    for number in range(10_000):
        (log.parent / f"20250101T{number // 100:06}.{number % 100:03}Z-abc.sqlite").hardlink_to(log)
    kept = RunList(lambda: RunStore(greeter.parent), Messages())
    await kept.load()
    assert len(kept.paths) == 10_001
    seen = kept.paths[5_000:5_020]
    await until(lambda: all(kept.row(path) is not None for path in seen))
    assert len(kept._rows.values) == len(seen)
    await kept.close()


# Comparing


async def test_two_runs_side_by_side(greeter, open_workbench):
    workbench = await open_workbench()
    base = await run_all(workbench)
    rewrite_agent(greeter, "goodbye")
    candidate = await run_all(workbench)
    compared = await asyncio.to_thread(compare_runs, base, candidate)
    assert compared.between == ("agent: agent.py",)
    seen = [
        (row.kind, row.count, row.folded) if isinstance(row, KindTitle) else row.case[1]
        for row in comparison_rows(compared.comparison, {"unchanged"})
    ]
    assert seen == [("broken", 2, False), "good", "slow", ("fixed", 1, False), "bad", ("unchanged", 1, True)]


async def test_two_workbenches_at_once_number_their_runs_as_the_files_do(greeter, open_workbench, until):
    (greeter.parents[1] / "hold").touch()
    first, second = await open_workbench(), await open_workbench()
    first.runs.run_all()
    # Nothing is in the folder yet.
    second.runs.run_all()
    await until(lambda: all(len(bench.runs.current.done) == 3 for bench in (first, second)))
    (greeter.parents[1] / "hold").unlink()
    for bench in (first, second):
        await bench.runs.finished()
        run = bench.runs.current
        assert run.number == RunFile(run.log).number
        assert bench.outcomes.get(CaseId(greeter.name, "good")).run.name == f"run {run.number}"
    assert {bench.runs.current.number for bench in (first, second)} == {1, 2}


# Going on


async def interrupted(workbench, greeter, until):
    """A run of which one case was not finished."""
    hold = greeter.parents[1] / "hold"
    hold.touch()
    workbench.runs.run_all()
    await until(lambda: len(workbench.runs.current.done) == 3)
    workbench.runs.cancel()
    await workbench.runs.finished()
    hold.unlink()
    return workbench.runs.current.log


async def test_an_interrupted_run_goes_on_with_what_is_missing(greeter, open_workbench, until):
    log = await interrupted(await open_workbench(), greeter, until)
    workbench = await open_workbench()
    kept = RunList(lambda: RunStore(greeter.parent), Messages())
    (row,) = await rows(kept, until)
    assert (row.ending, row.totals.cases, row.selected) == ("interrupted", 3, 4)
    await kept.close()
    assert await workbench.runs.resume(log)
    await workbench.runs.finished()
    assert workbench.runs.current.remarks == []
    assert workbench.outcomes.counts_of() == {"PASSED": 2, "FAILED": 2}
    assert RunFile(workbench.runs.current.log).header.resumed == log.stem
    # What was carried over has its trace, too.
    key = CaseId(greeter.name, "call")
    await until(lambda: workbench.outcomes.trace(key) is not None)
    assert "tool_call" in [event.kind for event in workbench.outcomes.trace(key).events]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("agent", "Cannot resume: agent.py changed"),
        ("case", "Cannot resume: finished cases changed: bad"),
        ("gone", "Cannot resume: greetings no longer has bad"),
        ("set", "Cannot resume: greetings.evalset.json no longer has the set greetings"),
        ("config", "Cannot resume: the scoring of greetings changed"),
    ],
)
async def test_a_run_does_not_go_on_with_something_else(greeter, open_workbench, until, change, why):
    log = await interrupted(await open_workbench(), greeter, until)
    if change == "agent":
        rewrite_agent(greeter, "good day")
    elif change == "case":
        greeter.write_text(greeter.read_text().replace("goodbye", "farewell"))
    elif change == "gone":
        greeter.write_text(greeter.read_text().replace('"bad"', '"worse"'))
    elif change == "set":
        greeter.write_text(greeter.read_text().replace('"greetings"', '"others"'))
    else:
        greeter.with_name("test_config.json").write_text('{"criteria": {"response_match_score": 0.1}}')
    workbench = await open_workbench()
    with pytest.raises(ValueError, match=why.removeprefix("Cannot resume: ")):
        await asyncio.to_thread(read_resumption, workbench.agent.address, log, EditedSets(workbench.sets))
    assert not await workbench.runs.resume(log)
    assert workbench.messages.notice.text.startswith(why)


async def test_a_complete_run_has_nothing_left(greeter, open_workbench):
    workbench = await open_workbench()
    log = await run_all(workbench)
    assert not await workbench.runs.resume(log)
    assert workbench.messages.notice.text == "Nothing to resume: run is complete"
