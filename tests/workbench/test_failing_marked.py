"""Failing cases: marked in the workbench; by `--failed`, those of any variant of a matrix."""

import pytest
from fake_runs import FakeRuns
from stored_matrix import BASE, PRO, write_matrix, write_variant
from stored_runs import change

from evaltui.core.model.problems import SelectionError
from evaltui.core.model.variants import Change
from evaltui.project.agent_address import AgentAddress
from evaltui.project.eval_set_file import EvalSetFile
from evaltui.runs.matrices import newest_runs
from evaltui.runs.selection import RunRequest, select
from evaltui.runs.sets import FileSets
from evaltui.runs.store import RunStore
from evaltui.workbench.actions import ACTIONS_BY_ID
from evaltui.workbench.state import Selection
from evaltui.workbench.workbench import Workbench


@pytest.fixture
def folder(write_agent):
    """Of an agent with a matrix of two variants."""
    folder = write_agent("root_agent = lambda message: message")
    write_matrix(folder)
    return folder


def not_passed(*variants):
    """The cases of variants with a run that did not pass."""
    return {
        f"{name}:{case}"
        for one in variants
        for name, cases in one.items()
        for case, runs in cases.items()
        if set(runs) - {"p"}
    }


async def test_marked_cases_are_run(folder, until):
    service = FakeRuns()
    workbench = Workbench(folder, run_service=service)
    await workbench.open()
    run = ACTIONS_BY_ID["run"]
    assert run.footer_word(workbench) == "run"
    await workbench.outcomes.restore()
    ACTIONS_BY_ID["mark_failing"].do(workbench)
    wanted = {
        f"{case.path.partition('.')[0]}:{case.eval_id}" for case in workbench.outcomes.results.attention
    }
    assert run.footer_word(workbench) == "run marked"
    assert run.refusal(workbench) is None
    workbench.runs.run_chosen()
    await until(lambda: workbench.runs.current.over)
    assert workbench.runs.current.title == f"{len(wanted)} marked cases"
    [request] = service.requests
    assert wanted == {
        f"{path.name.partition('.')[0]}:{eval_id}" for path, ids in request.cases.items() for eval_id in ids
    }
    await workbench.close()


def run_again(folder, matrix=""):
    files = dict.fromkeys(sorted(folder.glob("*.evalset.json")))
    request = RunRequest(AgentAddress(folder), files, only_failed=True, matrix=matrix)
    plan = select(request, FileSets(folder)).plan
    return {f"{one.eval_set_id}:{case.eval_id}" for one in plan.sets for case in one.cases}


def test_failed_runs_what_did_not_pass_in_any_variant(folder):
    assert run_again(folder) == not_passed(BASE, PRO)


def test_a_matrix_does_not_look_at_its_own_runs(folder):
    with pytest.raises(SelectionError, match="no runs of"):
        run_again(folder, "m1")
    assert newest_runs(RunStore(folder), besides="m1") == ()


def test_a_later_run_that_is_no_matrix_counts_alone(folder):
    log = write_variant(folder, "pro", PRO, Change("model", "x"))
    change(log, "UPDATE run SET header = json_remove(header, '$.matrix')")
    assert newest_runs(RunStore(folder)) == (log,)


async def test_the_next_failing_case_is_found_without_going_through_the_cases(
    write_agent, write_set, monkeypatch
):
    folder = write_agent("root_agent = lambda message, session: message", name="echo")
    path = write_set(folder, "many", **{f"c{n}": ("hi", "ho" if n % 4 == 1 else "hi") for n in range(40)})
    workbench = Workbench(folder)
    await workbench.open()
    workbench.runs.run_all()
    await workbench.runs.finished()
    navigation = workbench.navigation
    navigation.select(Selection(workbench.sets.by_path(path).case_path, "c0"))
    navigation.select_failing(1)
    asked, number = [], EvalSetFile.number

    def count(eval_set, eval_id):
        asked.append(eval_id)
        return number(eval_set, eval_id)

    monkeypatch.setattr(EvalSetFile, "number", count)
    seen = []
    for step in (1, 1, -1, -1, -1):
        navigation.select_failing(step)
        seen.append(navigation.selection.eval_id)
    assert seen == ["c5", "c9", "c5", "c1", "c37"]
    assert len(asked) <= 2 * len(seen)
    await workbench.close()
