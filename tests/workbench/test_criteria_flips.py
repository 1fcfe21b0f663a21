"""The cases that would have another outcome by the criteria as they are edited, scored without a run."""

import asyncio
import json
import threading
from types import SimpleNamespace

import pytest
from fake_runs import FakeRuns, says

from evaltui.core.jsondoc.edits import Put
from evaltui.core.model.outcome import Status
from evaltui.workbench.criteria import Criteria
from evaltui.workbench.criteria_flips import FlipSearch
from evaltui.workbench.criteria_rows import MetricRow, SettingRow
from evaltui.workbench.workbench import Workbench

CONFIG = {"criteria": {"response_match_score": 0.8, "tool_trajectory_avg_score": 1.0}}


@pytest.fixture
async def run(write_agent, until):
    """Every case gets the same response, so that their scores are 1, 0.5 and 0; two expect a call."""
    folder = write_agent("def root_agent(message, session):\n    return 'good morning'\n")
    call = [{"name": "find", "args": {"id": 1}}]
    cases = {"fine": ("good morning", []), "half": ("good evening", []), "none": ("bye", [])}
    cases |= {"calls": ("good morning", call), "both": ("good evening", call)}
    data = {"eval_set_id": "talk", "eval_cases": [_case(eval_id, *one) for eval_id, one in cases.items()]}
    path = folder / "talk.evalset.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    config = folder / "test_config.json"
    config.write_text(json.dumps(CONFIG, indent=2), encoding="utf-8")
    bench = Workbench(folder, run_service=FakeRuns(says("good morning")))
    await bench.open()
    bench.runs.run_all()
    await until(lambda: bench.runs.current and bench.runs.current.over)
    criteria = Criteria(bench.sets, bench.outcomes, bench.editing, path, bench.say)
    search = FlipSearch(bench.agent, bench.outcomes, criteria)
    yield SimpleNamespace(bench=bench, criteria=criteria, search=search, path=path, config=config)
    await bench.close()


def _case(eval_id, response, calls):
    turn = {
        "user_content": {"role": "user", "parts": [{"text": "hello"}]},
        "final_response": {"role": "model", "parts": [{"text": response}]},
        "intermediate_data": {"tool_uses": calls},
    }
    return {"eval_id": eval_id, "conversation": [turn]}


def row_of(run, kind, name):
    rows = (row for section in run.criteria.sections() for row in section.rows if isinstance(row, kind))
    return next(row for row in rows if row.name == name)


async def flips_of(run):
    """What is known once everything has been scored again."""
    run.search.now()
    await run.bench.outcomes.rescored([run.config])
    await run.search.score_by_saved()
    return run.search.now()


def changed(flips):
    return {flip.case.eval_id: (flip.before.status, flip.after.status) for flip in flips.cases}


async def test_nothing_flips_without_a_change(run):
    flips = run.search.now()
    assert (flips.cases, flips.waiting, flips.unknown) == ((), 0, 0)


async def test_a_default_that_is_written_out_flips_none_of_the_scored_cases(run):
    criteria = {**CONFIG["criteria"], "tool_trajectory_avg_score": {"threshold": 1.0, "match_type": "EXACT"}}
    run.bench.editing.do_edits("edit", {run.config: [Put(("criteria",), criteria)]})
    flips = await flips_of(run)
    assert run.criteria.change()
    assert (flips.cases, flips.scored, flips.waiting, flips.unknown) == ((), 5, 0, 0)


async def test_a_lower_threshold_flips_what_passes_then(run):
    run.search.now()
    run.criteria.type(row_of(run, MetricRow, "response_match_score"), "0.5")
    assert run.search.now().waiting == 5
    flips = await flips_of(run)
    assert changed(flips) == {"half": (Status.FAILED, Status.PASSED)}
    assert (flips.scored, flips.waiting, flips.unknown) == (5, 0, 0)
    run.bench.editing.undo()
    assert (await flips_of(run)).cases == ()


async def test_what_passes_then_comes_before_what_fails(run):
    run.criteria.type(row_of(run, MetricRow, "tool_trajectory_avg_score"), "0")
    assert changed(await flips_of(run)) == {"calls": (Status.FAILED, Status.PASSED)}
    await run.bench.editing.save_all()
    run.criteria.type(row_of(run, MetricRow, "tool_trajectory_avg_score"), "1")
    run.criteria.type(row_of(run, MetricRow, "response_match_score"), "0.5")
    assert list(changed(await flips_of(run)).items()) == [
        ("half", (Status.FAILED, Status.PASSED)),
        ("calls", (Status.PASSED, Status.FAILED)),
    ]


async def test_a_metric_that_is_removed_counts_no_more(run):
    run.criteria.remove(row_of(run, MetricRow, "tool_trajectory_avg_score"))
    assert changed(await flips_of(run)) == {"calls": (Status.FAILED, Status.PASSED)}


async def test_what_passes_the_metric_and_fails_by_another_is_named(run):
    run.criteria.type(row_of(run, MetricRow, "response_match_score"), "0.5")
    flips = await flips_of(run)
    effect = run.search.effect(flips, row_of(run, MetricRow, "response_match_score"))
    assert [(case.eval_id, result.status) for case, result in effect.still_failing] == [
        ("both", Status.FAILED)
    ]
    assert [line.text.strip() for line in effect.change] == [
        '"response_match_score": 0.8,',
        '"response_match_score": 0.5,',
    ]
    assert effect.written == {"response_match_score": 0.5}


async def test_opened_with_unsaved_changes_the_criteria_on_disk_are_scored_too(run):
    run.criteria.type(row_of(run, MetricRow, "response_match_score"), "0.5")
    await run.bench.outcomes.rescored([run.config])
    search = FlipSearch(run.bench.agent, run.bench.outcomes, run.criteria)
    assert search.now().waiting == 5
    await search.score_by_saved()
    assert changed(search.now()) == {"half": (Status.FAILED, Status.PASSED)}


async def test_without_a_run_log_a_case_is_unknown(run, monkeypatch):
    monkeypatch.setattr(type(run.bench.outcomes.traces), "events_of", lambda traces, case: None)
    run.criteria.type(row_of(run, MetricRow, "response_match_score"), "0.5")
    flips = await flips_of(run)
    assert (flips.cases, flips.waiting, flips.unknown) == ((), 0, 5)


async def test_a_config_with_errors_says_nothing_of_results(run):
    run.criteria.type(row_of(run, SettingRow, "runs"), "2")
    assert not run.search.now().problem
    run.config.write_text('{"criteria": {"response_match_score": "high"}}', encoding="utf-8")
    run.bench.editing.undo()
    await run.bench.open()
    assert run.search.now().problem == "Config has errors; results stay as they were"


async def test_what_happened_in_each_case_is_read_beside_the_screen_and_others_go_on(run, monkeypatch):
    traces, read, turns = run.bench.outcomes.traces, [], 0
    known = traces.events_of

    def events_of(case):
        read.append((case.eval_id, threading.current_thread() is threading.main_thread()))
        return known(case)

    async def count():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(traces, "events_of", events_of)
    other = asyncio.create_task(count())
    run.search.now()
    run.criteria.type(row_of(run, MetricRow, "response_match_score"), "0.5")
    flips = await flips_of(run)
    other.cancel()
    assert changed(flips) == {"half": (Status.FAILED, Status.PASSED)}
    assert {eval_id for eval_id, _ in read} == {"fine", "half", "none", "calls", "both"}
    assert not any(on_the_loop for _, on_the_loop in read)
    assert turns > len(read)
