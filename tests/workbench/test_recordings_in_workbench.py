"""Runs of the workbench with recordings."""

from functools import partial

import pytest
from gemini_server import says

from evaltui.core.model.case_id import CaseId
from evaltui.workbench.workbench import Workbench

AGENT = """
    from evaltui import Agent
    root_agent = Agent(name="greeter", model="gemini-test", instruction="Greet.")
"""


@pytest.fixture
def gemini(gemini):
    gemini.respond = lambda request: says(request.said)
    return gemini


async def test_a_run_again_asks_no_model_where_the_mode_is_auto(
    write_agent, write_set, gemini, until, open_workbench
):
    folder = write_agent(AGENT)
    path = write_set(folder, good=("hello", "hello"), bad=("hello", "something else"))
    workbench = await open_workbench(folder)

    workbench.runs.run_set()
    await until(lambda: workbench.runs.current.over)
    assert (workbench.runs.current.calls.live, workbench.runs.current.calls.replayed) == (2, 0)
    # Unless somebody asks for it, nothing is written beside the sets.
    assert not (path.parent / "recordings").exists()

    (folder / "pyproject.toml").write_text('[tool.evaltui]\nrecord = "auto"\n')
    for replayed in (0, 2):
        workbench.runs.run_set()
        await until(lambda: workbench.runs.current.over)
        assert (workbench.runs.current.calls.live, workbench.runs.current.calls.replayed) == (
            2 - replayed,
            replayed,
        )
    assert len(gemini.requests) == 4
    assert sorted(scored.result.status for _, scored in workbench.outcomes.results.of(path.name)) == [
        "FAILED",
        "PASSED",
    ]
    assert workbench.runs.current.remarks == []


async def test_a_result_is_stale_after_an_edit_of_the_recording_that_its_run_used(
    write_agent, write_set, gemini, until
):
    folder = write_agent(AGENT)
    path = write_set(folder, good=("hello", "hello"), other=("bye", "bye"))
    (folder / "pyproject.toml").write_text('[tool.evaltui]\nrecord = "auto"\n')
    recording = path.parent / "recordings" / f"{path.name.partition('.')[0]}.jsonl"

    async def opened():
        workbench = Workbench(folder)
        await workbench.open()
        await workbench.outcomes.restore()
        return workbench

    async def run_set():
        workbench.runs.run_set()
        await workbench.runs.finished()

    workbench, good, other = await opened(), CaseId(path.name, "good"), CaseId(path.name, "other")
    for _ in ("recorded", "replayed"):
        await run_set()
        await workbench.open()
        assert not workbench.outcomes.stale()
        await workbench.close()
        workbench = await opened()
        assert not workbench.outcomes.stale()
    recorded = recording.read_text()
    assert '"text": "hello"' in recorded
    edits = (
        (recorded.replace('"text": "hello"', '"text": "hullo"'), {good}),
        (f"<<<<<<< HEAD\n{recorded}", {good, other}),
        (recorded, set()),
    )
    workbench.following.start()
    await until(lambda: workbench.following.version)
    for text, stale in edits:
        recording.write_text(text)
        await until(lambda stale=stale: workbench.outcomes.stale() == stale)
        for case in stale:
            assert workbench.outcomes.freshness(case) == ("stale", ("recording",))
    rename = partial(workbench.editing.do, "rename", path, lambda eval_set: eval_set.rename_case(0, "new"))
    new = CaseId(path.name, "new")
    rename(moved={good: new})
    assert workbench.outcomes.freshness(new) == ("stale", ("recording",))
    workbench.editing.undo()
    assert not workbench.outcomes.stale()
    recording.unlink()
    await workbench.close()
    workbench = await opened()
    assert workbench.outcomes.stale() == {good, other}
    await run_set()
    await workbench.open()
    assert not workbench.outcomes.stale()
    await workbench.close()
