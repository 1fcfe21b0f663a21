"""The run service without processes, which screens are tested with, tells what the real one tells."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest
from fake_runs import FakeRuns, NoHost, says

from evaltui.core.model.outcome import Status
from evaltui.runs import execution
from evaltui.runs.listing import newest_run
from evaltui.runs.run_kind import ROOT_AGENT
from evaltui.tui.main.status import run_line
from evaltui.workbench.state import RepeatChoice, Selection, Stage


@pytest.fixture
def begin(tmp_path, write_set, open_workbench):
    """Opens a workbench on two cases; there is no agent, and no process is started."""

    async def open_with(service):
        path = write_set(tmp_path, "greetings", good=("hi", "hello"), other=("ho", "bye"))
        workbench = await open_workbench(tmp_path, run_service=service)
        workbench.navigation.select(Selection(path.name))
        return workbench

    return open_with


def statuses(workbench):
    return {key.eval_id: workbench.outcomes.status(key) for key in workbench.sets.every_case()}


async def test_results_and_traces_are_shown(begin, tmp_path):
    workbench = await begin(FakeRuns(says("hello")))
    workbench.runs.run_all()
    await workbench.runs.finished()
    assert workbench.runs.current.stage is Stage.FINISHED
    assert workbench.runs.current.remarks == []
    assert statuses(workbench) == {"good": "PASSED", "other": "FAILED"}
    key = next(workbench.sets.every_case())
    kinds = [event.kind for event in workbench.outcomes.trace(key).events]
    assert kinds[0] == "user"
    assert len(kinds) > 1
    assert workbench.agent.info["name"] == "fake"
    assert [path.name for path in tmp_path.iterdir()] == ["greetings.evalset.json"]


async def test_data_that_a_run_wrote_before_it_failed_by_itself_makes_no_result_stale(begin, tmp_path):
    """Such as where the disk is full."""
    service = FakeRuns()
    workbench = await begin(service)
    workbench.runs.run_all()
    await workbench.runs.finished()

    async def fail(*_):
        (tmp_path / "notes.json").write_text("{}")
        raise OSError(28, "No space left on device")

    service._run = fail
    workbench.runs.run_all()
    await workbench.runs.finished()
    assert workbench.runs.current.stage is Stage.FAILED
    await workbench.outcomes.compare_files()
    cases = [*workbench.sets.every_case()]
    assert [workbench.outcomes.freshness(case).reasons for case in cases] == [(), ()]


async def test_errors_and_repeats(begin):
    def act(case, repeat):
        if repeat:
            raise RuntimeError("no")
        return list(case.conversation)

    workbench = await begin(FakeRuns(act))
    workbench.runs.run_case(RepeatChoice(2, "all"))
    await workbench.runs.finished()
    scored = workbench.outcomes.get(next(workbench.sets.every_case()))
    assert [repeat.status for repeat in scored.result.repeats] == [Status.PASSED, Status.ERROR]


async def test_a_flaky_case_that_passes_by_its_policy_counts_as_passed(begin):
    def act(case, repeat):
        if repeat == 1:
            raise RuntimeError("no")
        return list(case.conversation)

    workbench = await begin(FakeRuns(act))
    (eval_set,) = workbench.sets.listed
    for policy, passed in (("majority", 2), ("all", 0)):
        workbench.runs.run_case(RepeatChoice(3, policy))
        await workbench.runs.finished()
        assert workbench.outcomes.counts_of() == {"FLAKY": 2}
        assert workbench.outcomes.passed(eval_set.case_path) == passed


@pytest.mark.parametrize("where", ["while hosts end", "after that"])
async def test_a_run_with_all_its_results_was_not_cancelled(begin, until, monkeypatch, where):
    fakes, never = FakeRuns(), asyncio.Event()

    async def follow(plan, on_update, **options):
        status = await fakes.follow(plan, on_update, **options)
        if where == "while hosts end":
            await never.wait()
        return status

    async def run(request, sets, on_update, start_host):
        settings = SimpleNamespace(agent=SimpleNamespace(variant=None))
        executed = await execution.run(request, sets, on_update, lambda: NoHost(settings))
        if where == "after that":
            await never.wait()
        return executed

    monkeypatch.setattr("evaltui.runs.execution.follow_plan", follow)
    workbench = await begin(run)
    workbench.runs.run_all()
    await until(lambda: len(workbench.runs.current.done) == 2)
    workbench.runs.cancel()
    await workbench.runs.finished()
    assert workbench.runs.current.stage is Stage.FINISHED
    line = "".join(text for text, _ in run_line(workbench, 80))
    assert line.startswith("✓ Run 1: 2 passed in ")
    # As the list of runs, and a report of it, have it.
    assert newest_run(workbench.agent.store, ROOT_AGENT).ending == "over"


async def test_a_case_that_passed_and_fails_now_is_newly_failing(begin):
    fakes = FakeRuns()
    workbench = await begin(fakes)
    workbench.runs.run_all()
    await workbench.runs.finished()
    assert not workbench.outcomes.newly_failing
    fakes.act = says("no")
    workbench.runs.run_all()
    await workbench.runs.finished()
    newly = workbench.outcomes.newly_failing
    assert newly == set(workbench.sets.every_case())
    (eval_set,) = workbench.sets.listed
    changes = workbench.outcomes.results_of_set(eval_set).changes
    moved = {(change.case, change.before.status, change.status) for change in changes}
    assert moved == {(case, "PASSED", "FAILED") for case in newly}
    assert workbench.runs.current.failures == list(workbench.sets.every_case())
    workbench.runs.run_all()
    await workbench.runs.finished()
    assert not workbench.outcomes.newly_failing


async def test_a_run_that_fails_says_what_failed_and_prints_where(begin):
    async def service(*args):
        async with asyncio.TaskGroup() as group:
            group.create_task(divide())

    async def divide():
        return 1 / 0

    workbench = await begin(service)
    workbench.runs.run_all()
    await workbench.runs.finished()
    run = workbench.runs.current
    assert run.stage is Stage.FAILED
    assert run.remarks == ["ZeroDivisionError: division by zero"]
    assert [line for line in workbench.console if "1 / 0" in line.text]


async def test_a_run_that_loses_its_machines_was_not_cancelled(begin):
    fake = FakeRuns(says("hello"))

    async def service(*args):
        return replace(await fake(*args), status=None, problem="the scheduler was lost")

    workbench = await begin(service)
    workbench.runs.run_all()
    await workbench.runs.finished()
    run = workbench.runs.current
    assert (run.stage, run.is_stopped) == (Stage.CANCELLED, True)
    assert [line.text for line in workbench.console] == ["the scheduler was lost"]
    assert statuses(workbench) == {"good": "PASSED", "other": "FAILED"}
