"""The workbench begins with what came of the cases when they were last run."""

import asyncio
import json

import pytest
from misbehaving_server import MisbehavingServer
from stored_runs import store_repeats
from test_freshness import page

from evaltui.core.model.case_id import CaseId
from evaltui.project.agent_address import AgentAddress
from evaltui.runs.store import RunStore
from evaltui.text.outcomes import NOT_RUN
from evaltui.workbench.messages import WorkbenchMessage
from evaltui.workbench.workbench import Workbench

ECHO = """
    def root_agent(message, session):
        return message
"""


@pytest.fixture
def echo(write_agent, write_set):
    folder = write_agent(ECHO, name="echo")
    return write_set(folder, good=("hello", "hello"), bad=("hello", "goodbye"))


@pytest.fixture
def open_workbench(echo, open_workbench):
    """Begins a sitting; what earlier ones have run is on disk only."""

    async def begin(*, restored=True):
        workbench = await open_workbench(echo.parent)
        if restored:
            await workbench.outcomes.restore()
        return workbench

    return begin


@pytest.fixture
async def ran(echo, open_workbench):
    """A sitting in which everything was run."""
    workbench = await open_workbench(restored=False)
    workbench.runs.run_all()
    await workbench.runs.finished()
    return workbench


def reasons(workbench, case):
    """What made the result of a case stale."""
    freshness = workbench.outcomes.freshness(case)
    return freshness.reasons if freshness else ()


def outcomes(workbench):
    """Each case with its status and what has changed since."""
    return {
        key.eval_id: (workbench.outcomes.status(key), reasons(workbench, key))
        for key in workbench.sets.every_case()
    }


async def test_the_last_outcomes_are_there_and_f_goes_to_those_that_failed(
    echo, ran, open_workbench, write_set, until
):
    write_set(echo.parent, "more", never=("hi", "hi"))
    workbench = await open_workbench()
    assert outcomes(workbench) == {
        "good": ("PASSED", ()),
        "bad": ("FAILED", ()),
        "never": (NOT_RUN, ()),
    }
    assert workbench.outcomes.counts_of() == {"PASSED": 1, "FAILED": 1}
    assert workbench.navigation.selection.eval_id == "good"
    workbench.navigation.select_failing(1)
    assert workbench.navigation.selection.case == CaseId(echo.name, "bad")
    scored = workbench.outcomes.get(workbench.navigation.selection.case)
    assert scored.run.name == "run 1"
    assert scored.result.turns[0].response.actual == "hello"
    # Nobody has counted its model calls: it is not run again because that was free.
    assert not scored.calls.need_no_model
    await until(lambda: workbench.outcomes.trace(workbench.navigation.selection.case) is not None)
    assert [event.kind for event in workbench.outcomes.trace(workbench.navigation.selection.case).events] == [
        "user",
        "text",
    ]


async def test_outcomes_do_not_wait_until_a_set_is_validated_that_is_what_was_run(
    echo, ran, open_workbench, monkeypatch
):
    workbench = await open_workbench(restored=False)
    monkeypatch.setattr(workbench.sets, "open", None)
    await workbench.outcomes.restore()
    assert outcomes(workbench) == {"good": ("PASSED", ()), "bad": ("FAILED", ())}
    assert await workbench.outcomes.open_run(ran.runs.current.log, "run 1")
    assert outcomes(workbench) == {"good": ("PASSED", ()), "bad": ("FAILED", ())}


@pytest.mark.parametrize(
    "config", ['{"criteria": {"response_match_score": 0.0}}', '{"criteria": {"nosuch": 1}}']
)
async def test_no_verdict_is_fresh_before_the_config_of_now_is_read(echo, ran, open_workbench, config):
    (echo.parent / "test_config.json").write_text(config)
    workbench = await open_workbench(restored=False)
    shown = []
    workbench.messages.subscribe(
        lambda _: len(workbench.outcomes.results) and shown.append(outcomes(workbench)), WorkbenchMessage
    )
    await workbench.outcomes.restore()
    assert {why for _, why in shown[0].values()} == {("config",)}


async def test_what_the_agent_was_changed_to_since_is_stale(echo, ran, open_workbench):
    agent = echo.parent / "agent.py"
    agent.write_text(agent.read_text() + "# more\n")
    workbench = await open_workbench()
    assert outcomes(workbench) == {"good": ("PASSED", ("agent.py",)), "bad": ("FAILED", ("agent.py",))}
    workbench.runs.run_cases("again", {CaseId(echo.name, "bad")})
    await workbench.runs.finished()
    assert reasons(workbench, CaseId(echo.name, "bad")) == ()


async def test_of_several_runs_the_last_one_of_each_case_counts(echo, ran, open_workbench, write_set):
    write_set(echo.parent, good=("hello", "hello"), bad=("hello", "hello"))
    workbench = await open_workbench()
    workbench.runs.run_cases("one", {CaseId(echo.name, "bad")})
    await workbench.runs.finished()
    damaged = RunStore(echo.parent).latest().with_name("20990101T000000.000Z-abcdef.sqlite")
    damaged.write_bytes(bytes(range(256)))
    workbench = await open_workbench()
    assert outcomes(workbench) == {"good": ("PASSED", ()), "bad": ("PASSED", ())}


async def test_the_last_result_counts_however_many_runs_of_other_cases_came_after(echo, ran, open_workbench):
    for _ in range(60):
        store_repeats(echo.parent, {echo.name: "greetings"}, {CaseId(echo.name, "bad"): []})
    assert outcomes(await open_workbench()) == {"good": ("PASSED", ()), "bad": ("FAILED", ())}


@pytest.mark.parametrize("how", ["restored", "opened"])
async def test_results_that_are_being_read_are_none_of_a_case_that_is_renamed(
    echo, ran, open_workbench, monkeypatch, how
):
    workbench = await open_workbench(restored=False)
    moved = {CaseId(echo.name, "bad"): CaseId(echo.name, "other")}
    workspace = type(workbench.sets.workspace)
    find = workspace.find

    def rename_after(*arguments, **options):
        case = find(*arguments, **options)
        if workbench.sets.case_now(CaseId(echo.name, "bad")):
            asyncio.run_coroutine_threadsafe(rename(), loop).result()
        return case

    async def rename():
        workbench.editing.do("rename", echo, lambda eval_set: eval_set.rename_case(1, "other"), moved=moved)

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(workspace, "find", rename_after)
    if how == "restored":
        await workbench.outcomes.restore()
    else:
        assert await workbench.outcomes.open_run(ran.runs.current.log, "run 1")
    assert workbench.outcomes.counts_of(echo.name) == {"PASSED": 1}


async def test_twins_have_their_own_outcomes(echo, open_workbench, write_set):
    write_set(echo.parent, "twin", set_id="greetings", good=("hello", "no"))
    workbench = await open_workbench(restored=False)
    workbench.runs.run_all()
    await workbench.runs.finished()
    workbench = await open_workbench()
    found = {(key.path, key.eval_id): workbench.outcomes.status(key) for key in workbench.sets.every_case()}
    assert found == {
        ("greetings.evalset.json", "good"): "PASSED",
        ("greetings.evalset.json", "bad"): "FAILED",
        ("twin.evalset.json", "good"): "FAILED",
    }


async def test_what_was_run_meanwhile_is_newer(echo, ran, open_workbench):
    workbench = await open_workbench(restored=False)
    workbench.runs.run_all()
    await workbench.runs.finished()
    await workbench.outcomes.restore()
    assert {workbench.outcomes.get(key).run.number for key in workbench.sets.every_case()} == {2}


async def test_of_an_agent_behind_a_network_no_change_of_code_is_known(tmp_path, write_set):
    write_set(tmp_path, "desk", good=("hi", "hello"))
    with MisbehavingServer() as server:
        workbench = Workbench(AgentAddress(tmp_path, url=server.url))
        await workbench.open()
        workbench.runs.run_all()
        await workbench.runs.finished()
        await workbench.close()
    (tmp_path / "notes.py").write_text("")
    others = "http://127.0.0.1:1/desk"
    for url, outcome in ((server.url, ("PASSED", ())), (others, (NOT_RUN, ()))):
        workbench = Workbench(AgentAddress(tmp_path, url=url))
        await workbench.open()
        await workbench.outcomes.restore()
        assert outcomes(workbench) == {"good": outcome}
        (case,) = workbench.sets.every_case()
        shown = "\n".join(page(workbench, *case))
        assert ("run 1: changes of the agent since are unknown" in shown) == (url == server.url)
        await workbench.close()


async def test_repeats_pass_by_the_policy_of_now_unless_the_run_had_its_own(write_agent, write_set):
    code = "from itertools import count\nN = count()\ndef root_agent(message, session):\n    "
    folder = write_agent(code + "return message * (next(N) % 2)", name="turns")
    path = write_set(folder, one=("hello", "hello"))

    async def opened(pass_if, options=None, *, runs):
        repeats = {"runs": 2, "pass_if": pass_if}
        config = {"criteria": {"response_match_score": 1}, "evaltui": {"repeats": repeats}}
        (folder / "test_config.json").write_text(json.dumps(config))
        workbench = Workbench(folder, options=options)
        await workbench.open()
        await workbench.outcomes.restore()
        if runs:
            workbench.runs.run_all()
            await workbench.runs.finished()
        await workbench.outcomes.rescored([path])
        scored = workbench.outcomes.get(CaseId(path.name, "one"))
        passed = workbench.outcomes.passed(path.name)
        await workbench.close()
        return scored.status, scored.figures.passes, passed

    assert await opened(0.5, runs=True) == ("FLAKY", True, 1)
    assert await opened("all", runs=False) == ("FLAKY", False, 0)
    assert await opened("majority", runs=False) == ("FLAKY", False, 0)
    assert await opened(0.5, runs=False) == ("FLAKY", True, 1)
    assert await opened("all", {"pass_if": 0.5}, runs=True) == ("FLAKY", True, 1)
    assert await opened("all", runs=False) == ("FLAKY", True, 1)
