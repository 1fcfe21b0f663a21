"""Counts and totals of the results of a set: of now, and found without going through every case again."""

import random
from dataclasses import replace

import pytest
from fake_runs import FakeRuns, says

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.outcome import CaseResult, MetricResult, RepeatResult, Status
from evaltui.core.model.stored_cases import StoredCase
from evaltui.tui.main.status import run_line
from evaltui.tui.result.selected import write_set_results
from evaltui.tui.widgets.writer import Page
from evaltui.workbench.messages import WorkbenchMessage
from evaltui.workbench.result import outcomes as outcomes_module
from evaltui.workbench.result import rescoring
from evaltui.workbench.result.results import Results, Verdicts
from evaltui.workbench.result.stored_results import ResultInMemory
from evaltui.workbench.state import CaseOutcome, RunRef
from evaltui.workbench.trace import traces

NAMES = [f"case_{number}" for number in range(11)]


@pytest.fixture
def opened(tmp_path, write_set, open_workbench):
    """Opens a workbench on a set of cases that expect a greeting."""

    async def open_with(names, service=None):
        folder = tmp_path / f"of_{len(names)}"
        folder.mkdir()
        write_set(folder, "greetings", **dict.fromkeys(names, ("hi", "hello")))
        (folder / "agent.py").write_text("root_agent = None")
        return await open_workbench(folder, run_service=service or FakeRuns(says("hello")))

    return open_with


def an_outcome(chosen):
    status = chosen.choice([one for one in Status if one is not Status.INFORMATIONAL])
    metric = MetricResult("response_match_score", chosen.choice([None, 0.5, 1.0]), 0.8, status)
    repeats = (RepeatResult(status, (metric,), seconds=chosen.choice([0.0, 1.0, 2.0, 4.0])),)
    result = CaseResult("", status, repeats=repeats, metrics=(metric,))
    return CaseOutcome(ResultInMemory.of(result), RunRef(1), StoredCase("{}"), EvalConfig())


@pytest.mark.parametrize("seed", range(5))
def test_counts_are_those_of_the_results_there_are(seed):
    chosen, results, path = random.Random(seed), Results(), "a.evalset.json"
    cases, stale = [CaseId(path, name) for name in NAMES], {CaseId(path, name) for name in NAMES[::3]}
    verdicts = Verdicts(results, path, None)
    for _ in range(60):
        case = chosen.choice(cases)
        match chosen.randrange(4):
            case 0:
                results.drop(case)
            case 1:
                results.await_run(chosen.sample(cases, chosen.randrange(4)))
            case _:
                results.put(case, an_outcome(chosen))
        if chosen.random() < 0.5:
            verdicts.follow(stale.__contains__)
            counted = [(case, one) for case, one in results.of(path) if case not in results.pending]
            of_now = [(case, one) for case, one in counted if case not in stale]
            assert verdicts.counts.total() == len(counted)
            assert verdicts.counts["STALE"] == len(counted) - len(of_now)
            assert all(verdicts.counts[one.status] for _, one in of_now)
            assert verdicts.passed == {case for case, one in of_now if one.figures.passes}


async def test_totals_are_of_results_of_now(opened):
    workbench = await opened(NAMES[:4])
    outcomes, (eval_set,) = workbench.outcomes, workbench.sets.listed
    workbench.runs.run_all()
    await workbench.runs.finished()
    failing, passing, slow, stale = [CaseId(eval_set.case_path, name) for name in NAMES[:4]]
    metric = MetricResult("response_match_score", 0.25, 0.8, Status.FAILED)
    for case, seconds, is_fresh in ((failing, 1.0, 1), (passing, 2.0, 1), (slow, 4.0, 1), (stale, 8.0, 0)):
        scored = outcomes.get(case)
        result = replace(scored.result.repeats[0], seconds=seconds)
        if case in (failing, stale):
            result = replace(result, status=Status.FAILED, metrics=(metric,))
        of_case = replace(
            scored.result, status=result.status, metrics=result.metrics, repeats=(result,), policy_met=False
        )
        code = scored.code if is_fresh else -1
        outcomes.put(case, replace(scored, ref=ResultInMemory.of(of_case), code=code))
    results = outcomes.results_of_set(eval_set)
    assert outcomes.counts_of(eval_set.case_path) == {"PASSED": 2, "FAILED": 1, "STALE": 1}
    assert results.failing == [failing]
    assert results.slowest == [(4.0, slow), (2.0, passing), (1.0, failing)]
    assert (results.totals.timed, results.totals.seconds) == (3, 7.0)
    total = results.metrics["response_match_score"]
    assert (total.cases, total.passed, total.sum) == (3, 2, 2.25)
    assert outcomes.results_of_set(eval_set) is results
    page = Page(100, 40)
    write_set_results(page, eval_set, (), outcomes)
    lines = ["".join(text for text, _ in line) for line in page.lines]
    assert "2/4 passed" in lines[0]
    assert not any(NAMES[3] in line for line in lines)


@pytest.mark.parametrize("is_scored_again", [False, True])
async def test_a_case_that_is_done_is_all_that_is_gone_through(opened, monkeypatch, is_scored_again):
    looks = {}

    def counted(function):
        return lambda *args, **options: looks.update(n=looks["n"] + 1) or function(*args, **options)

    monkeypatch.setattr(rescoring, "_BATCH_SIZE", 4)
    monkeypatch.setattr(traces, "_MAX_WITHOUT_LOG", 1000)
    monkeypatch.setattr(Results, "get", counted(Results.get))
    monkeypatch.setattr(outcomes_module, "freshness", counted(outcomes_module.freshness))
    looked = []
    for count in (20, 40):
        looks["n"] = 0
        workbench = await opened([f"case_{number}" for number in range(2 * count)])
        outcomes, (eval_set,) = workbench.outcomes, workbench.sets.listed
        workbench.runs.run_all()
        await workbench.runs.finished()
        if not is_scored_again:
            workbench.agent.code_changed(["agent.py"])

        def draw(_=None, workbench=workbench, outcomes=outcomes, eval_set=eval_set):
            outcomes.counts(), outcomes.counts_of(eval_set.case_path), outcomes.passed(eval_set.case_path)
            run_line(workbench, 80)
            if is_scored_again:
                outcomes.results_of_set(eval_set)

        draw()
        looks["n"] = 0
        workbench.messages.subscribe(draw, WorkbenchMessage)
        if is_scored_again:
            path = eval_set.path.with_name("test_config.json")
            path.write_text('{"criteria": {"response_match_score": 0.5}}')
            await workbench.open()
            await outcomes.rescored([eval_set.path])
        else:
            workbench.runs.run_cases("half", [CaseId(eval_set.case_path, f"case_{n}") for n in range(count)])
            await workbench.runs.finished()
        looked.append(looks["n"])
    assert looked[1] < 2.5 * looked[0]
