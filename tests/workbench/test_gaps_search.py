"""The search for gaps in the workbench: followed, each gap with its change, and stale after other changes."""

from __future__ import annotations

import pytest
import waiting
from eval_data import make_case, make_turn, write_eval_set, write_test_config
from fake_runs import FakeRuns

from evaltui.tui.gaps.page import note_line
from evaltui.workbench.state import RepeatChoice

FIND = [{"name": "find_orders", "args": {"limit": 5}}]


@pytest.fixture
def desk(tmp_path):
    folder = tmp_path / "desk"
    folder.mkdir()
    (folder / "agent.py").write_text("def root_agent(message, session):\n    return message\n")
    turn = make_turn("find the order 7 that is yours", "Found the order 7 that is yours", FIND)
    write_eval_set(
        folder, "orders", make_case("finds", turn), make_case("hi", make_turn("hi there", "hi there", []))
    )
    write_test_config(folder, tool_trajectory_avg_score=1.0, response_match_score=0.8)
    return folder


@pytest.fixture
async def bench(desk, monkeypatch, open_workbench):
    monkeypatch.setattr("evaltui.runs.execution.follow_plan", FakeRuns().follow)
    return await open_workbench(desk)


async def run(bench, times=1):
    bench.runs.run_set(RepeatChoice(times, "all"))
    await waiting.until(lambda: bench.runs.has_run and not bench.is_running)


async def search(bench):
    bench.gaps.search([eval_set.path for eval_set in bench.sets.listed])
    await waiting.until(lambda: not bench.gaps.is_running)


async def test_every_gap_gives_its_change_back(desk, bench):
    await run(bench)
    await search(bench)
    gaps = [(kind, gap) for kind in bench.gaps.report.kinds for gap in kind.gaps]
    assert {"answer negated", "another number"} <= {kind.kind for kind, _ in gaps}
    for kind, gap in gaps:
        changed = bench.gaps.changed(gap)
        mutant = changed.mutant
        assert (mutant.kind, mutant.turn + 1) == (kind.kind, gap.turn)
        assert (mutant.before, mutant.after) == (gap.before, gap.after)
        assert mutant.turns != changed.recorded.turns
    assert bench.gaps.progress.done == bench.gaps.progress.total == 2


async def test_cells_know_the_cases_that_reach_them_once_each(desk, bench):
    await run(bench, 3)
    await search(bench)
    bench.gaps.show_cases(("tool", "find_orders"))
    filtered = bench.navigation.filtered
    assert filtered.text == 'reaches:"tool find_orders"'
    assert filtered.matching == {"orders.evalset.json": [0]}
    assert {cell.reached for cell in bench.gaps.report.coverage if cell.name == "find_orders"} == {1}


@pytest.mark.parametrize(
    ("text", "cases"),
    [
        ("reaches:find_orders.limit", [0]),
        ("-reaches:find_orders.*", [1]),
        ("reaches:find_orders", []),
        ("hi reaches:*", []),
    ],
)
async def test_the_filter_knows_cells_after_a_search(bench, text, cases):
    bench.navigation.set_filter(text)
    assert bench.navigation.filtered.problem == "reaches: needs a search for gaps   M"
    await run(bench)
    await search(bench)
    assert bench.navigation.filtered.problem is None
    assert bench.navigation.filtered.matching.get("orders.evalset.json", []) == cases


async def test_without_a_run_the_remedy_is_told(desk, bench):
    await search(bench)
    assert bench.gaps.report is None
    assert bench.gaps.problem == "orders.evalset.json: not run   r  Run"
    await run(bench)
    await waiting.until(lambda: bench.gaps.report)
    assert not bench.gaps.problem


async def test_unsaved_edits_make_a_search_stale_and_are_searched(desk, bench):
    await run(bench)
    await search(bench)
    assert not bench.gaps.stale
    path = desk / "orders.evalset.json"
    bench.editing.do(
        "response", path, lambda eval_set: eval_set.case(1).turn(0).answer.set_text("other words")
    )
    assert bench.gaps.stale == "orders.evalset.json or its config changed"
    await search(bench)
    assert not bench.gaps.stale
    assert [(item.eval_id, item.reason) for item in bench.gaps.report.not_counted if item.eval_id] == [
        ("hi", "does not pass by its case and config of now")
    ]


async def test_another_run_makes_a_search_stale(desk, bench):
    await run(bench)
    await search(bench)
    await run(bench)
    assert bench.gaps.stale == "another run has finished"


@pytest.mark.parametrize("is_searched_then", [False, True])
async def test_a_change_of_the_agent_makes_a_search_stale(desk, bench, is_searched_then):
    await run(bench)
    if not is_searched_then:
        await search(bench)
        assert bench.gaps.stale == bench.gaps.agent_changes == ""
    code = (desk / "agent.py").read_text()
    (desk / "agent.py").write_text(f"{code}# more\n")
    await bench.open()
    if not is_searched_then:
        assert bench.gaps.stale == "agent.py changed"
    await search(bench)
    assert (bench.gaps.stale, bench.gaps.agent_changes) == ("", "agent.py changed after run 1")
    note = "".join(text for text, _ in note_line(bench.gaps))
    assert note.split("   ") == ["stale: agent.py changed after run 1", "r  Run again"]
    (desk / "agent.py").write_text(code)
    await search(bench)
    assert not bench.gaps.agent_changes


async def test_a_search_again_ends_the_one_before(desk, bench):
    await run(bench)
    for _ in range(3):
        bench.gaps.search([desk / "orders.evalset.json"])
    await search(bench)
    assert bench.gaps.progress.done == 2


async def test_an_error_of_the_search_itself_is_the_problem(bench, monkeypatch):
    await run(bench)

    async def fail(searched, after_case):
        raise LookupError("turn 3")

    monkeypatch.setattr("evaltui.runs.gaps.GapsOfRuns.find", fail)
    await search(bench)
    assert (bench.gaps.report, bench.gaps.problem) == (None, "LookupError: turn 3")


async def test_a_config_with_errors_is_the_problem_until_it_is_mended(desk, bench):
    await run(bench)
    write_test_config(desk, response_match_score="x")
    await bench.open()
    await search(bench)
    assert bench.gaps.report is None
    assert bench.gaps.problem.startswith("test_config.json:")
    write_test_config(desk, response_match_score=0.8)
    await bench.open()
    await waiting.until(lambda: bench.gaps.report)
