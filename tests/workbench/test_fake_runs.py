"""The run service without processes, which screens are tested with, tells what the real one tells."""

import pytest
from fake_runs import FakeRuns, says

from evaltui.core.model.outcome import Status
from evaltui.workbench.state import Repeated, Selection, Stage
from evaltui.workbench.workbench import Workbench


@pytest.fixture
async def begin(tmp_path, write_set):
    """Opens a workbench on two cases; there is no agent, and no process is started."""
    opened = []

    async def open_with(service):
        path = write_set(tmp_path, "greetings", good=("hi", "hello"), other=("ho", "bye"))
        workbench = Workbench(tmp_path, run_service=service)
        opened.append(workbench)
        await workbench.open()
        workbench.navigation.select(Selection(path.name))
        return workbench

    yield open_with
    for workbench in opened:
        await workbench.close()


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


async def test_errors_and_repeats(begin):
    def act(case, repeat):
        if repeat:
            raise RuntimeError("no")
        return list(case.conversation)

    workbench = await begin(FakeRuns(act))
    workbench.runs.run_case(Repeated(2, "all"))
    await workbench.runs.finished()
    scored = workbench.outcomes.get(next(workbench.sets.every_case()))
    assert [repeat.status for repeat in scored.result.repeats] == [Status.PASSED, Status.ERROR]


async def test_a_run_can_be_held_and_cancelled(begin, until):
    service = FakeRuns()
    service.go_on.clear()
    workbench = await begin(service)
    workbench.runs.run_all()
    await until(lambda: workbench.runs.current.stage is Stage.STARTING)
    workbench.runs.cancel()
    await workbench.runs.finished()
    assert workbench.runs.current.stage is Stage.CANCELLED
    assert statuses(workbench) == {"good": "NOT_RUN", "other": "NOT_RUN"}
    (request,) = service.requests
    assert list(request.cases.values()) == [None]
