"""Stored runs on the screen that compares them: what each of them lacks, and the columns that fit."""

import asyncio

import pytest
from pilots import screen_lines, screen_text, until

from evaltui.tui.app import WorkbenchApp
from evaltui.workbench.workbench import Workbench
from tests.commands.command_line import call
from tests.eval_data import make_case, make_turn, write_eval_set, write_test_config
from tests.gemini_server import GeminiServer, says
from tests.stored_runs import selected, store_run, summary


@pytest.fixture
def agent(write_agent):
    return write_agent("")


def keep(agent, cases, *done):
    """A run of cases of which some have a result."""
    results = [summary("lights", case, "PASSED", expects="1") for case in done]
    return store_run(agent, [selected("lights", cases, whole=True)], results)


async def compare(app, pilot):
    """The newest run with the one before it."""
    await until(pilot, lambda: app.workbench.sets.workspace is not None)
    await pilot.press("H")
    await until(pilot, lambda: "= compare" in screen_lines(app)[-1])
    await pilot.press("equals_sign")
    await until(pilot, lambda: "base → now" in screen_text(app))


async def test_a_case_that_neither_run_came_to_has_no_verdict(agent):
    cases = {"early": "PASSED", "late": ""}
    for _ in range(2):
        keep(agent, cases, "early")
    app = WorkbenchApp(Workbench(agent))
    async with app.run_test(size=(160, 45)) as pilot:
        await compare(app, pilot)
        await until(pilot, lambda: "late" in screen_text(app))
        line = next(line for line in screen_lines(app) if "late" in line)
        assert line.replace("▌", " ").split()[1:3] == ["late", "○"]


@pytest.mark.parametrize("width", [80, 120, 135, 160])
async def test_what_has_a_head_has_figures(agent, width):
    name = "a_case_with_quite_a_long_id_that_takes_its_room"
    for _ in range(2):
        keep(agent, {name: "PASSED"}, name)
    app = WorkbenchApp(Workbench(agent))
    async with app.run_test(size=(width, 45)) as pilot:
        await compare(app, pilot)
        await until(pilot, lambda: "✓ → ✓" in screen_text(app))
        heads = next(line for line in screen_lines(app) if "base → now" in line)
        row = next(line for line in screen_lines(app) if "✓ → ✓" in line)
        assert "score" not in heads
        # Nothing is known of the time of these runs.
        assert ("time" in heads) == ("—" in row)


@pytest.mark.parametrize(
    ("thoughts", "options", "differ"),
    [("ignore", (), False), ("score", (), True), ("ignore", ("--adk-verdicts",), True)],
)
async def test_responses_differ_by_thoughts_where_these_are_scored(
    write_agent, monkeypatch, thoughts, options, differ
):
    folder = write_agent('from evaltui import Agent\nroot_agent = Agent(name="a", model="gemini-2.5-flash")')
    write_eval_set(folder, "greetings", make_case("hi", make_turn("hi", "Hello", intermediate_data={})))
    write_test_config(folder, criteria={"response_match_score": 0.1}, evaltui={"thoughts": thoughts})
    with GeminiServer() as server:
        server.use(monkeypatch)
        for thought in ("A greeting.", "Who is this?"):
            server.respond = lambda request, thought=thought: says("Hello", thought=thought)
            await asyncio.to_thread(call, "run", folder, *options)
    app = WorkbenchApp(Workbench(folder))
    async with app.run_test(size=(160, 45)) as pilot:
        await compare(app, pilot)
        await pilot.press("down")
        await until(pilot, lambda: ("Turn 1 ≠" if differ else "Turn 1 =") in screen_text(app))


@pytest.mark.parametrize(("runs", "words"), [((1, 0), "0 calls → not run"), ((0, 1), "not run → 0 calls")])
async def test_a_case_without_a_result_in_one_run_made_no_calls_there(write_agent, runs, words):
    folder = write_agent("def root_agent(message, session):\n    return message\n", name="house")
    cases = [make_case(name, make_turn("hello", "hello", [])) for name in ("early", "late")]
    for is_whole in runs:
        write_eval_set(folder, "lights", *cases[: 1 + is_whole])
        await asyncio.to_thread(call, "run", folder)
    app = WorkbenchApp(Workbench(folder))
    async with app.run_test(size=(160, 45)) as pilot:
        await compare(app, pilot)
        await until(pilot, lambda: words in screen_text(app))
