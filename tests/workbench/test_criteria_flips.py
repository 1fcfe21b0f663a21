"""The cases that would have another outcome by the criteria as they are edited, scored without a run."""

import asyncio
import json
from random import Random
from types import SimpleNamespace

import pytest
from eval_data import make_case, make_set, make_turn
from fake_runs import FakeRuns, says

from evaltui.core.model.eval_set import Invocation
from evaltui.core.model.outcome import Status
from evaltui.documents.edits import Put
from evaltui.workbench.criteria.criteria import Criteria
from evaltui.workbench.criteria.effect import effect_of, flips_of
from evaltui.workbench.criteria.rows import MetricRow, OptionRow, SettingRow
from evaltui.workbench.result import rescoring
from evaltui.workbench.workbench import Workbench

CONFIG = {"criteria": {"response_match_score": 0.8, "tool_trajectory_avg_score": 1.0}}


@pytest.fixture(params=["in a file", "in memory"])
async def run(write_agent, until, request, monkeypatch):
    """Every case gets the same response, so that their scores are 1, 0.5 and 0; two expect a call."""
    folder = write_agent("def root_agent(message, session):\n    return 'good morning'\n")
    call = [{"name": "find", "args": {"id": 1}}]
    cases = {"fine": ("good morning", []), "half": ("good evening", []), "none": ("bye", [])}
    cases |= {"calls": ("good morning", call), "both": ("good evening", call)}
    data = make_set("talk", *(_case(eval_id, *one) for eval_id, one in cases.items()))
    path = folder / "talk.evalset.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    config = folder / "test_config.json"
    config.write_text(json.dumps(CONFIG, indent=2), encoding="utf-8")
    runs = FakeRuns(says("good morning"))
    monkeypatch.setattr("evaltui.runs.execution.follow_plan", runs.follow)
    bench = Workbench(folder, run_service=runs if request.param == "in memory" else None)
    await bench.open()
    bench.runs.run_all()
    await until(lambda: bench.runs.current and bench.runs.current.over)
    criteria = Criteria(bench.editing, path)
    yield SimpleNamespace(bench=bench, criteria=criteria, path=path, config=config, where=request.param)
    await bench.close()


def _case(eval_id, response, calls):
    turn = make_turn("hello", response, calls)
    return make_case(eval_id, turn)


def row_of(run, kind, name):
    rows = (row for section in run.criteria.sections() for row in section.rows if isinstance(row, kind))
    return next(row for row in rows if row.name == name)


async def scored(run):
    """What is known once everything has been scored again."""
    run.criteria.end_move()
    await run.bench.outcomes.rescored([run.config])
    return flips_of(run.criteria)


def changed(flips):
    return {flip.case.eval_id: (flip.before, flip.after) for flip in flips.cases}


async def test_nothing_flips_without_a_change(run):
    flips = flips_of(run.criteria)
    assert (flips.cases, flips.waiting, flips.unknown) == ((), 0, 0)


async def test_a_default_that_is_written_out_flips_none_of_the_scored_cases(run):
    criteria = {**CONFIG["criteria"], "tool_trajectory_avg_score": {"threshold": 1.0, "match_type": "EXACT"}}
    run.bench.editing.do_edits("edit", {run.config: [Put(("criteria",), criteria)]})
    flips = await scored(run)
    assert run.criteria.change()
    assert (flips.cases, flips.scored, flips.waiting, flips.unknown) == ((), 5, 0, 0)


async def test_a_threshold_that_is_moved_flips_cases_at_once_and_scores_none_until_it_is_applied(
    run, monkeypatch
):
    scored_again = []
    score_again = rescoring.score_again

    async def counted(known, *given):
        scored_again.append(known.stored.eval_id)
        return await score_again(known, *given)

    monkeypatch.setattr(rescoring, "score_again", counted)
    for threshold in (0.7, 0.6, 0.5):
        row = row_of(run, MetricRow, "response_match_score")
        assert run.criteria.set_threshold(row, threshold)
        await asyncio.sleep(0)
    flips = flips_of(run.criteria)
    assert changed(flips) == {"half": (Status.FAILED, Status.PASSED)}
    assert (flips.scored, flips.waiting, flips.unknown, scored_again) == (5, 0, 0, [])
    half = next(case for case, _ in run.bench.outcomes.results.of("talk.evalset.json") if case[1] == "half")
    assert run.bench.outcomes.status(half) == "FAILED"
    assert not run.bench.outcomes.stale()
    run.criteria.end_move()
    await run.bench.outcomes.rescored([])
    assert run.bench.outcomes.status(half) == "PASSED"
    assert sorted(scored_again) == ["both", "calls", "fine", "half", "none"]
    assert changed(flips_of(run.criteria)) == {"half": (Status.FAILED, Status.PASSED)}
    run.bench.editing.undo()
    assert (await scored(run)).cases == ()


async def test_a_choice_that_scores_do_not_tell_of_is_scored_again(run):
    flips_of(run.criteria)
    rows = [row for section in run.criteria.sections() for row in section.rows]
    match_type = next(row for row in rows if isinstance(row, OptionRow) and row.option.name == "match_type")
    calls = next(row for row in rows if getattr(row, "name", "") == "tool_trajectory_avg_score")
    assert run.criteria.type(calls, "0.5")
    assert run.criteria.move(match_type, -1)
    assert flips_of(run.criteria).waiting == 5
    flips = await scored(run)
    assert (flips.scored, flips.waiting, flips.unknown) == (5, 0, 0)


async def test_what_passes_then_comes_before_what_fails(run):
    run.criteria.type(row_of(run, MetricRow, "tool_trajectory_avg_score"), "0")
    assert changed(await scored(run)) == {"calls": (Status.FAILED, Status.PASSED)}
    await run.bench.editing.save_all()
    run.criteria.type(row_of(run, MetricRow, "tool_trajectory_avg_score"), "1")
    run.criteria.type(row_of(run, MetricRow, "response_match_score"), "0.5")
    assert list(changed(await scored(run)).items()) == [
        ("half", (Status.FAILED, Status.PASSED)),
        ("calls", (Status.PASSED, Status.FAILED)),
    ]


async def test_what_scores_do_not_tell_of_a_moved_threshold_is_scored_when_it_is_applied(run):
    """A function in ADK's form gives the verdict itself."""
    own = {"mine": {"codeConfig": {"name": "my_agent.metrics.mine"}}}
    changes = [Put(("criteria", "mine"), 0.5), Put(("customMetrics",), own)]
    run.bench.editing.do_edits("add", {run.config: changes})
    await run.bench.editing.save_all()
    await scored(run)
    run.criteria.set_threshold(row_of(run, MetricRow, "mine"), 0.6)
    flips = flips_of(run.criteria)
    assert (flips.cases, flips.waiting, flips.is_held) == ((), 5, True)
    flips = await scored(run)
    assert (flips.waiting, flips.is_held) == (0, False)


RUBRICS = [
    {"rubric_id": name, "rubric_content": {"text_property": f"is {name}"}}
    for name in ("kind", "short", "true")
]
JUDGE = """
    import json

    def ask(prompt):
        verdicts = {"kind": "no", "short": "yes", "true": "unknown"}
        rubrics = [{"id": name, "rationale": "so", "verdict": verdict} for name, verdict in verdicts.items()]
        return json.dumps({"rubrics": rubrics})
"""


async def test_a_failure_with_open_judgements_is_previewed_as_it_is_applied(
    write_agent, until, open_workbench
):
    folder = write_agent("def root_agent(message, session):\n    return 'good morning'\n", judge=JUDGE)
    path = folder / "talk.evalset.json"
    cases = [_case("one", "good morning", [])]
    path.write_text(json.dumps(make_set("talk", *cases)), encoding="utf-8")
    options = {"judge_model": "my_agent.judge:ask", "num_samples": 1}
    metric = "rubric_based_final_response_quality_v1"
    criterion = {"threshold": 0.8, "rubrics": RUBRICS, "judge_model_options": options}
    config = folder / "test_config.json"
    config.write_text(json.dumps({"criteria": {metric: criterion}}, indent=2), encoding="utf-8")
    bench = await open_workbench(folder)
    bench.runs.run_all()
    await until(lambda: bench.runs.current and bench.runs.current.over)
    run = SimpleNamespace(bench=bench, criteria=Criteria(bench.editing, path), path=path, config=config)
    ((case, scored_case),) = bench.outcomes.results.of("talk.evalset.json")
    assert scored_case.result.metrics[0].score is None
    assert bench.outcomes.status(case) == "FAILED"
    run.criteria.set_threshold(row_of(run, MetricRow, metric), 0.5)
    flips = flips_of(run.criteria)
    assert (changed(flips), flips.scored, flips.waiting) == ({}, 0, 1)
    flips = await scored(run)
    assert bench.outcomes.status(case) == "NOT_EVALUATED"
    assert changed(flips) == {"one": (Status.FAILED, Status.NOT_EVALUATED)}


async def test_a_metric_that_is_removed_counts_no_more(run):
    run.criteria.remove(row_of(run, MetricRow, "tool_trajectory_avg_score"))
    assert changed(await scored(run)) == {"calls": (Status.FAILED, Status.PASSED)}


async def test_what_passes_the_metric_and_fails_by_another_is_named(run):
    run.criteria.type(row_of(run, MetricRow, "response_match_score"), "0.5")
    flips = await scored(run)
    effect = effect_of(run.criteria, flips, row_of(run, MetricRow, "response_match_score"))
    ((case, status),) = effect.still_failing
    assert (case.eval_id, status, effect.why[case]) == ("both", Status.FAILED, "1 call missing")
    assert [line.text.strip() for line in effect.change] == [
        '"response_match_score": 0.8,',
        '"response_match_score": 0.5,',
    ]
    assert effect.written == {"response_match_score": 0.5}


async def test_opened_with_unsaved_changes_cases_are_compared_with_the_criteria_on_disk(run):
    run.criteria.remove(row_of(run, MetricRow, "tool_trajectory_avg_score"))
    await scored(run)
    bench = run.bench
    criteria = Criteria(bench.editing, run.path)
    flips = flips_of(criteria)
    if run.where == "in a file":
        assert (changed(flips), flips.scored) == ({"calls": (Status.FAILED, Status.PASSED)}, 5)
    else:
        # Nothing has the scores of the metric that was removed.
        assert (flips.cases, flips.scored, flips.unknown) == ((), 0, 5)


async def test_what_cannot_be_scored_again_is_told_by_scores_until_it_is_stale(run, monkeypatch):
    monkeypatch.setattr(type(run.bench.outcomes.traces), "events_of", lambda traces, case: None)
    row = row_of(run, MetricRow, "response_match_score")
    run.criteria.set_threshold(row, 0.5)
    assert changed(flips_of(run.criteria)) == {"half": (Status.FAILED, Status.PASSED)}
    flips = await scored(run)
    assert (flips.cases, flips.scored, effect_of(run.criteria, flips, row).stale) == ((), 0, 5)


async def test_a_stale_result_is_not_counted(run):
    """A case that expects something else now, of which nobody knows what the agent does."""
    run.bench.editing.do("say", run.path, lambda one: one.case(1).turn(0).user.set_text("bye"))
    run.criteria.type(row_of(run, MetricRow, "response_match_score"), "0.5")
    flips, row = flips_of(run.criteria), row_of(run, MetricRow, "response_match_score")
    assert (flips.cases, flips.scored, row.trial.scored) == ((), 4, 4)
    assert effect_of(run.criteria, flips, row).stale == 1


async def test_scores_by_what_was_expected_before_are_not_counted(run):
    assert row_of(run, MetricRow, "response_match_score").trial.passing == 2
    run.bench.editing.do("expect", run.path, lambda one: one.case(1).turn(0).answer.set_text("good morning"))
    assert row_of(run, MetricRow, "response_match_score").trial.scored == 4
    await scored(run)
    trial = row_of(run, MetricRow, "response_match_score").trial
    assert (trial.scored, trial.passing) == (5, 3)


async def test_a_config_with_errors_says_nothing_of_results(run):
    run.criteria.type(row_of(run, SettingRow, "runs"), "2")
    assert not flips_of(run.criteria).problem
    run.config.write_text('{"criteria": {"response_match_score": "high"}}', encoding="utf-8")
    run.bench.editing.undo()
    await run.bench.open()
    assert flips_of(run.criteria).problem == "Config has errors; results stay as they were"


WORDS = "abcdefghij"


def answers(case, repeat):
    """More or fewer of the words that are expected, and of the calls; nothing in every ninth case."""
    number = int(case.eval_id)
    if number % 9 == 4:
        raise ValueError("no")
    (turn,) = case.conversation
    text = {"role": "model", "parts": [{"text": " ".join(WORDS[: number % 11 + repeat]) or "-"}]}
    calls = {"tool_uses": [{"name": "find", "args": {"id": at}} for at in range(number % 3)]}
    done = {"final_response": text, "intermediate_data": calls}
    return [Invocation.model_validate({"user_content": turn.user_content, **done})]


@pytest.mark.parametrize("seed", [0, 2])
async def test_cases_flip_by_their_scores_as_when_they_are_scored_again(
    write_agent, until, monkeypatch, seed, open_workbench
):
    random = Random(seed)
    folder = write_agent("def root_agent(message, session):\n    return message\n")
    calls = [{"name": "find", "args": {"id": at}} for at in range(2)]
    cases = [_case(str(number), " ".join(random.sample(WORDS, 5)), calls) for number in range(27)]
    path, config = folder / "talk.evalset.json", folder / "test_config.json"
    path.write_text(json.dumps(make_set("talk", *cases)), encoding="utf-8")
    criteria = {"response_match_score": 0.5, "tool_trajectory_avg_score": 0.5}
    block = {
        "criteria": {"trajectory_recall": 0.5},
        "repeats": {"runs": 1 + seed, "pass_if": random.choice(["all", "majority", 0.3])},
    }
    config.write_text(json.dumps({"criteria": criteria, "evaltui": block}), encoding="utf-8")
    monkeypatch.setattr("evaltui.runs.execution.follow_plan", FakeRuns(answers).follow)
    bench = await open_workbench(folder)
    bench.runs.run_all()
    await until(lambda: bench.runs.current and bench.runs.current.over)
    tried = Criteria(bench.editing, path)
    run = SimpleNamespace(bench=bench, criteria=tried, config=config)
    results = bench.outcomes.results
    flipped = 0
    for _ in range(4):
        before = {case.eval_id: one.status for case, one in results.of("talk.evalset.json")}
        for name in random.sample([*criteria, "trajectory_recall"], 2):
            tried.set_threshold(row_of(run, MetricRow, name), random.choice([0.2, 0.5, 0.67, 1.0]))
        told = changed(flips_of(tried))
        await scored(run)
        after = {case.eval_id: one.status for case, one in results.of("talk.evalset.json")}
        assert told == {
            name: (status, after[name]) for name, status in before.items() if status != after[name]
        }
        assert changed(flips_of(tried)) == told
        flipped += len(told)
        await bench.editing.save_all()
    assert flipped > 3
