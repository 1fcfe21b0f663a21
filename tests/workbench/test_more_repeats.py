"""More runs of a case in a variant of a matrix."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from fake_runs import FakeRuns
from stored_matrix import write_matrix
from stored_runs import selected, store_run

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import Repeats
from evaltui.runs.matrices import open_matrix, stored_matrices
from evaltui.runs.resuming import read_resumption
from evaltui.runs.run_file import RunFile
from evaltui.runs.run_writer import begin_run
from evaltui.workbench.runs.repeats import more_problem
from evaltui.workbench.runs.running import EditedSets
from evaltui.workbench.workbench import Workbench

AGENT = """
    from evaltui.events import text, tool_call

    def root_agent(message, session):
        yield tool_call("set_temperature", {"location": "Bedroom", "degrees": 19})
        yield text("It is 19 °C now.")
"""
MOVIE = CaseId("lights.evalset.json", "movie_mode")


@pytest.fixture
def home(write_agent):
    folder = write_agent(AGENT, name="home")
    write_matrix(folder)
    return folder


async def opened(home, service=None):
    workbench = Workbench(home, run_service=service)
    await workbench.open()
    return workbench, stored_matrices(workbench.agent.store)[0]


async def test_they_are_stored_with_those_that_there_were(home, until):
    workbench, stored = await opened(home)
    base = stored.logs[0]
    workbench.runs.run_more(base.path, [MOVIE], 2, "movie_mode in base")
    assert workbench.runs.refuses_to_run().startswith("Run in progress")
    assert str(workbench.runs.more) == "movie_mode in base: 0 of 2 runs"
    await until(lambda: not workbench.runs.more)
    assert workbench.messages.notice.text == "movie_mode in base: 2 runs"
    # The list of cases is of the agent as it is.
    assert not workbench.outcomes.counts_of()
    [again] = stored_matrices(workbench.agent.store)
    assert again.paths[0] != base.path
    assert again.paths[1] == stored.paths[1]
    row = next(row for row in open_matrix(again).matrix.rows if row.case == MOVIE)
    assert [(cell.case.passed, cell.case.runs) for cell in row.cells] == [(5, 7), (5, 5)]
    assert sum(totals.runs for totals in open_matrix(again).matrix.totals) == 52
    # More of them again.
    sets, log = EditedSets(workbench.sets), again.paths[0]
    more = read_resumption(workbench.agent.address, log, sets, frozenset(), more={MOVIE: 3}).more
    assert more == {MOVIE: 10}
    await workbench.close()


async def test_one_that_was_cancelled_leaves_the_matrix_as_it_was(home, until):
    service = FakeRuns()
    service.go_on.clear()
    workbench, stored = await opened(home, service)
    workbench.runs.run_more(stored.logs[0].path, [MOVIE], 2, "movie_mode")
    await until(lambda: service.requests)
    [request] = service.requests
    assert (request.matrix, request.agent.variant.variant.name) == ("m1", "base")
    assert request.resumes.more == {MOVIE: 7}
    header = RunFile(stored.logs[0].path).header
    started = datetime(2026, 11, 23, 15, tzinfo=UTC)
    begin_run(workbench.agent.store, replace(header, started=started)).close()
    workbench.runs.cancel()
    await until(lambda: not workbench.runs.more)
    assert "cancelled" in workbench.messages.notice.text
    assert stored_matrices(workbench.agent.store)[0].paths == stored.paths
    await workbench.close()


async def test_why_they_cannot_be_run_is_a_sentence(home, until):
    workbench, stored = await opened(home, FakeRuns())
    text = (home / "lights.evalset.json").read_text()
    (home / "lights.evalset.json").write_text(text.replace("Warm the bedroom", "Cool the bedroom"))
    await workbench.open()
    workbench.runs.run_more(stored.logs[0].path, [MOVIE], 2, "movie_mode")
    await until(lambda: not workbench.runs.more)
    wanted = "Cannot run: finished cases changed: hello, movie_mode, kitchen. Run the matrix again"
    assert workbench.messages.notice.text == wanted
    # Nor is the run of a variant resumed as one of the agent as it is.
    assert not await workbench.runs.resume(stored.logs[1].path)
    assert not workbench.runs.is_running
    await workbench.close()


def test_a_log_says_which_cases_are_run_more_often(tmp_path):
    log = store_run(tmp_path, [replace(selected("a", "xy"), more={"x": 7})], ())
    header = RunFile(log).header
    [read] = header.sets
    assert [header.repeat_rule(read, eval_id, Repeats(runs=5)).most for eval_id in "xy"] == [7, 5]


def test_runs_are_typed():
    assert more_problem("12") is None
    assert {more_problem(text) for text in ("", "0", "-1", "1001", "a", "1.5")} == {"A number from 1 to 1000"}
