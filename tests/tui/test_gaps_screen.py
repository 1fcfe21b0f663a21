"""The page of gaps: kinds open to their changes, cells filter the list of cases, states have their words."""

from __future__ import annotations

import pytest
from eval_data import make_case, make_turn, write_eval_set, write_test_config
from fake_runs import FakeRuns, as_expected, says
from pilots import screen_lines, screen_text, until, workbench_on

from evaltui.tui.app import WorkbenchApp

FIND = [{"name": "find_orders", "args": {"limit": 5}}]
WIDE = (160, 45)


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.setattr("evaltui.runs.execution.follow_plan", FakeRuns().follow)
    folder = tmp_path / "desk"
    folder.mkdir()
    (folder / "agent.py").write_text("def root_agent(message, session):\n    return message\n")
    turns = (
        make_turn("find the order", "I have found the order 7 for you.", FIND),
        make_turn("thanks", "You are welcome at any time.", []),
    )
    write_eval_set(
        folder, "orders", make_case("finds", *turns), make_case("hi", make_turn("hi", "hi there", []))
    )
    write_test_config(folder, tool_trajectory_avg_score=1.0, response_match_score=0.8)
    return folder


def current(app):
    return next(line for line in screen_lines(app) if "▌" in line).strip("│ ▌").removesuffix("│").strip()


async def open_gaps(app: WorkbenchApp, pilot, shows="answer negated"):
    await pilot.press("home", "M")
    await until(pilot, lambda: "evalset.json: not run" in screen_text(app))
    await pilot.press("r")
    await until(pilot, lambda: shows in screen_text(app))


@pytest.mark.parametrize("size", [(80, 24), WIDE])
async def test_a_kind_opens_to_changes_that_are_read_beside_the_recorded_turn(desk, size):
    async with workbench_on(desk, size) as (app, pilot):
        await open_gaps(app, pilot)
        await until(pilot, lambda: "▾" in current(app))
        kind = current(app)
        await pilot.press("left")
        assert current(app).startswith("▸")
        await pilot.press("enter", "right")
        change = current(app)
        assert change.startswith("orders:finds turn")
        await pilot.press("enter")
        await until(pilot, lambda: "user  find the order" in screen_text(app))
        assert "esc back" in screen_lines(app)[-1]
        assert ("recorded run 1" in screen_text(app)) == (size == WIDE)
        await pilot.press("escape")
        assert current(app) == change
        await pilot.press("left")
        assert current(app).split("   ")[0] == kind.replace("▾", "▸").split("   ")[0]
        await pilot.press("escape")
        await until(pilot, lambda: "1 Cases" in screen_text(app))


async def test_a_cell_filters_the_list_of_cases(desk):
    async with workbench_on(desk, WIDE) as (app, pilot):
        await open_gaps(app, pilot)
        await pilot.press("end", "up")
        while not current(app).startswith("▸ tools"):
            await pilot.press("up")
        await pilot.press("right", "right")
        assert current(app).startswith("✓ find_orders")
        await pilot.press("enter")
        await until(pilot, lambda: "1 Cases" in screen_text(app))
        assert app.workbench.navigation.filtered.text == 'reaches:"tool find_orders"'
        assert app.workbench.navigation.filtered.count == 1
        await pilot.press("escape")
        assert not app.workbench.navigation.filtered.filter


async def test_edits_make_the_page_stale_until_it_searches_again(desk):
    path = desk / "orders.evalset.json"
    async with workbench_on(desk, WIDE) as (app, pilot):
        await open_gaps(app, pilot)
        app.workbench.editing.do(
            "response", path, lambda eval_set: eval_set.case(0).turn(0).answer.set_text("no")
        )
        await until(pilot, lambda: "stale: orders.evalset.json or its config changed" in screen_text(app))
        await pilot.press("f5")
        await until(pilot, lambda: "does not pass by its case and config of now" in screen_text(app))
        assert "stale" not in screen_text(app)


async def test_where_all_changes_are_meant_so_there_is_a_passing_case(desk):
    write_test_config(desk, response_match_score=0.0)
    async with workbench_on(desk, WIDE) as (app, pilot):
        await open_gaps(app, pilot)
        await until(pilot, lambda: not app.workbench.gaps.is_running)
        report = app.workbench.gaps.report
        for kind, gap in [(each, gap) for each in report.kinds for gap in each.gaps]:
            app.workbench.gap_drafts.toggle_meant_so(kind, gap)
        words = f"Nothing counted: {report.changes} changes meant so"
        await until(pilot, lambda: words in screen_text(app))


@pytest.mark.parametrize("selected", [True, False])
async def test_a_set_that_cannot_be_read_is_named(desk, selected):
    (desk / "broken.evalset.json").symlink_to("nowhere")
    async with workbench_on(desk, WIDE) as (app, pilot):
        navigation = app.workbench.navigation
        path = "broken.evalset.json" if selected else ""
        navigation.select(navigation.selection._replace(path=path, eval_id=None))
        await pilot.press("M")
        await until(pilot, lambda: "link to nowhere, which does not exist" in app.workbench.gaps.problem)
        await until(pilot, lambda: "link to nowhere" in screen_text(app))


@pytest.mark.parametrize(
    ("act", "criteria", "words"),
    [
        (as_expected, {"tool_trajectory_avg_score": 1.0}, "All 6 changes noticed"),
        (says("no"), {"response_match_score": 0.8}, "Nothing to change: no passing case"),
        (as_expected, {"tool_trajectory_avg_score": 1.0, "my_metric": 0.5}, "my_metric. `evaltui gaps"),
    ],
)
async def test_every_state_has_its_words(desk, monkeypatch, act, criteria, words):
    monkeypatch.setattr("evaltui.runs.execution.follow_plan", FakeRuns(act).follow)
    write_eval_set(desk, "orders", make_case("finds", make_turn("find the order", None, FIND)))
    custom = {"my_metric": {"code_config": {"name": "metrics.mine"}}} if "my_metric" in criteria else {}
    optional = {"optional": [*custom]}
    write_test_config(desk, criteria=criteria, custom_metrics=custom, evaltui=optional)
    async with workbench_on(desk, WIDE) as (app, pilot):
        await open_gaps(app, pilot, shows=words)
