"""The cases that failed in any variant of the newest matrix: marked in the workbench, run by `--failed`."""

import json
import random

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
from evaltui.workbench.matrix.matrices import mark_failing
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


async def marked(folder, filtered=""):
    workbench = Workbench(folder)
    await workbench.open()
    workbench.navigation.set_filter(filtered)
    await mark_failing(workbench)
    cases = {f"{case.path.partition('.')[0]}:{case.eval_id}" for case in workbench.navigation.marking.marked}
    said = workbench.messages.notice.text
    await workbench.close()
    return cases, said


async def test_what_failed_in_any_variant_is_marked(folder):
    cases, said = await marked(folder)
    assert cases == not_passed(BASE, PRO)
    assert said == f"{len(cases)} cases marked that failed in any of 2 variants"
    assert (await marked(folder, "set:lights"))[0] == {one for one in cases if one.startswith("lights:")}


@pytest.mark.parametrize(
    ("pro", "cases"),
    [({"a": "p", "b": ""}, {"lights:b"}), (None, {"lights:a", "lights:b"})],
    ids=["cut off", "not begun"],
)
async def test_what_did_not_run_in_a_variant_is_marked(write_agent, pro, cases):
    folder = write_agent("root_agent = lambda message: message")
    log = write_variant(folder, "base", {"lights": {"a": "p", "b": "p"}})
    names = json.dumps([{"name": name, "changes": []} for name in ("base", "pro")])
    change(log, f"UPDATE run SET header = json_set(header, '$.variants', json('{names}'))")
    if pro is not None:
        write_variant(folder, "pro", {"lights": pro}, Change("model", "x"))
    number = f"{len(cases)} case{'s' if len(cases) > 1 else ''}"
    said = f"{number} marked that failed or did not run in any of 2 variants"
    assert await marked(folder) == (cases, said)


async def test_marked_cases_are_run(folder, until, open_workbench):
    service = FakeRuns()
    workbench = await open_workbench(folder, run_service=service)
    run = ACTIONS_BY_ID["run"]
    assert run.footer_word(workbench) == "run"
    await mark_failing(workbench)
    wanted = not_passed(BASE, PRO)
    assert run.footer_word(workbench) == "run marked"
    assert run.refusal(workbench) is None
    workbench.runs.run_chosen()
    await until(lambda: workbench.runs.current.over)
    assert workbench.runs.current.title == f"{len(wanted)} marked cases"
    [request] = service.requests
    assert wanted == {
        f"{path.name.partition('.')[0]}:{eval_id}" for path, ids in request.cases.items() for eval_id in ids
    }


async def test_without_a_matrix_it_is_what_fails_now(folder):
    for log in RunStore(folder).files():
        log.unlink()
    assert await marked(folder) == (set(), "No failing case")


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


@pytest.mark.parametrize("seed", range(6))
async def test_failed_goes_by_the_last_result_of_each_case_as_the_workbench(
    write_agent, seed, open_workbench
):
    rng = random.Random(seed)
    folder = write_agent("root_agent = lambda message: message")
    names = "abcd"
    for _ in range(5):
        chosen = {name: rng.choice("pppfe") for name in names if rng.random() < 0.5} or {"a": "p"}
        log = write_variant(folder, "base", {"lights": chosen})
        change(log, "UPDATE run SET header = json_remove(header, '$.matrix')")
    write_variant(folder, "base", {"lights": dict.fromkeys(names, "p")}).unlink()
    workbench = await open_workbench(folder)
    await workbench.outcomes.restore()
    results = workbench.outcomes.results
    cases = set(workbench.sets.every_case())
    wanted = {case for case in cases if case in results.attention or results.get(case) is None}
    await workbench.close()
    if wanted:
        assert run_again(folder) == {f"lights:{case.eval_id}" for case in wanted}
    else:
        with pytest.raises(SelectionError, match="every selected case passed in its last run"):
            run_again(folder)


async def test_the_next_failing_case_is_found_without_going_through_the_cases(
    write_agent, write_set, monkeypatch, open_workbench
):
    folder = write_agent("root_agent = lambda message, session: message", name="echo")
    path = write_set(folder, "many", **{f"c{n}": ("hi", "ho" if n % 4 == 1 else "hi") for n in range(40)})
    workbench = await open_workbench(folder)
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
