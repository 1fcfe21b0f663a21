"""The criteria of a set without a screen: rows, trials, and changes that leave the rest of the file alone."""

import json
from types import SimpleNamespace

import pytest

from evaltui.core.metrics.config_validation import validate_config
from evaltui.core.metrics.registry import METRICS
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.outcome import CaseResult, MetricResult, RepeatResult, Status
from evaltui.workbench.criteria.criteria import Criteria
from evaltui.workbench.criteria.rows import MetricRow, OptionRow, ReferenceRow, RubricRow, SettingRow
from evaltui.workbench.result.stored_results import ResultInMemory
from evaltui.workbench.state import CaseOutcome, RunRef

CONFIG = """{
  "criteria": {
    "tool_trajectory_avg_score": {"threshold": 1, "matchType": "IN_ORDER"},
    "response_match_score": 0.80
  },
  "own": [1.0, 2]
}
"""


@pytest.fixture
async def greetings(write_agent, write_set, open_workbench):
    """A folder with a set of three cases, and a workbench on it."""
    folder = write_agent("def root_agent(message, session):\n    return message\n")
    path = write_set(folder, one=("hello", "hello"), two=("hi", "hi"), three=("hey", "hey"))
    workbench = await open_workbench(folder)
    return SimpleNamespace(path=path, workbench=workbench, config=folder / "test_config.json")


def criteria_of(greetings, text=None):
    if text is not None:
        greetings.config.write_text(text, encoding="utf-8")
    bench = greetings.workbench
    return Criteria(bench.editing, greetings.path)


def rows(criteria, kind):
    return [row for section in criteria.sections() for row in section.rows if isinstance(row, kind)]


def metric(criteria, name):
    return next(row for row in rows(criteria, MetricRow) if row.name == name)


def option(criteria, owner, name):
    return next(row for row in rows(criteria, OptionRow) if (row.metric, row.option.name) == (owner, name))


def setting(criteria, name):
    return next(row for row in rows(criteria, SettingRow) if row.name == name)


def text_of(greetings):
    return greetings.workbench.editing.open_file(greetings.config).document.text


def scored(greetings, scores, config, name="response_match_score"):
    """Have the last run by a config give these scores, for each case those of its repeats."""
    bench = greetings.workbench
    eval_set = bench.sets.open(greetings.path)
    for eval_id, of_repeats in scores.items():
        repeats = [
            RepeatResult(Status.PASSED, (MetricResult(name, score, 0.8, Status.PASSED),))
            for score in of_repeats
        ]
        result = CaseResult(
            eval_id,
            Status.PASSED,
            repeats[0].metrics,
            repeats=tuple(repeats),
            eval_set_id=eval_set.eval_set_id,
        )
        by = EvalConfig.model_validate(json.loads(config))
        outcome = CaseOutcome(
            ResultInMemory.of(result), RunRef(1), eval_set.case(eval_id), by, code=bench.agent.code_version
        )
        bench.outcomes.results.put(CaseId(greetings.path.name, eval_id), outcome)


async def test_without_a_file_the_defaults_apply_and_the_first_change_makes_it(greetings):
    criteria = criteria_of(greetings)
    assert not criteria.exists
    assert criteria.sections()[0].title == "In use: ADK defaults"
    assert [row.name for row in rows(criteria, MetricRow) if row.in_use] == [
        "tool_trajectory_avg_score",
        "response_match_score",
    ]
    assert criteria.add(metric(criteria, "trajectory_recall"))
    assert criteria.exists
    assert not greetings.config.exists()
    assert await greetings.workbench.editing.save_all()
    assert json.loads(greetings.config.read_text()) == {
        "criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8},
        "evaltui": {"criteria": {"trajectory_recall": 0.8}},
    }


async def test_every_metric_of_the_registry_is_there_with_why_it_cannot_run(greetings):
    criteria = criteria_of(greetings, CONFIG)
    assert metric(criteria, "trajectory_precision").why_not is None
    assert metric(criteria, "final_response_match_v2").needs == ("expected turns", "a judge model")
    assert metric(criteria, "response_evaluation_score").interval == (1.0, 5.0)
    assert not metric(criteria, "token_usage_v1").gates
    others = [row.why_not is None for row in criteria.sections()[1].rows]
    assert others == sorted(others, reverse=True)


async def test_a_threshold_moves_in_steps_and_all_steps_are_undone_at_once(greetings):
    criteria = criteria_of(greetings, CONFIG)
    for _ in range(3):
        criteria.move(metric(criteria, "response_match_score"), -1)
    criteria.move(metric(criteria, "response_match_score"), -1, far=True)
    row = metric(criteria, "response_match_score")
    assert (row.threshold, row.saved) == (0.67, 0.8)
    assert text_of(greetings) == CONFIG.replace("0.80", "0.67")
    assert greetings.workbench.editing.undo_label == "change threshold of response_match_score"
    greetings.workbench.editing.undo()
    assert text_of(greetings) == CONFIG
    assert not greetings.workbench.editing.is_dirty(greetings.config)


@pytest.mark.parametrize(
    ("name", "start", "direction", "far", "ends"),
    [
        ("response_match_score", 0.95, 1, True, 1.0),
        ("response_match_score", 0.05, -1, True, 0.0),
        ("response_match_score", 7, -1, False, 1.0),
        ("response_evaluation_score", 3.0, 1, False, 3.1),
        ("response_evaluation_score", 1.2, -1, True, 1.0),
    ],
)
async def test_a_threshold_stays_within_what_can_be_scored(greetings, name, start, direction, far, ends):
    criteria = criteria_of(greetings, json.dumps({"criteria": {name: start}}))
    criteria.move(metric(criteria, name), direction, far=far)
    assert metric(criteria, name).threshold == ends


async def test_trying_a_threshold_shows_which_cases_flip(greetings):
    criteria = criteria_of(greetings, CONFIG)
    scored(greetings, {"one": [0.9], "two": [0.75], "three": [None]}, CONFIG)
    trial = metric(criteria, "response_match_score").trial
    assert (trial.scored, trial.passing, trial.now_pass) == (2, 1, ())
    assert trial.mean == pytest.approx(0.825)
    criteria.set_threshold(metric(criteria, "response_match_score"), 0.7)
    trial = metric(criteria, "response_match_score").trial
    assert (trial.passing, [key.eval_id for key in trial.now_pass]) == (2, ["two"])
    criteria.set_threshold(metric(criteria, "response_match_score"), 0.95)
    trial = metric(criteria, "response_match_score").trial
    assert (trial.passing, trial.now_pass) == (0, ())
    assert greetings.config.read_text() == CONFIG


@pytest.mark.parametrize(("pass_if", "passing"), [("all", 0), ("majority", 1), (0.3, 2)])
async def test_of_several_runs_the_policy_decides(greetings, pass_if, passing):
    config = {"criteria": {"response_match_score": 0.8}, "evaltui": {"repeats": {"pass_if": pass_if}}}
    criteria = criteria_of(greetings, json.dumps(config))
    scored(greetings, {"one": [0.9, 0.9, 0.1], "two": [0.1, 0.9, 0.1]}, json.dumps(config))
    assert metric(criteria, "response_match_score").trial.passing == passing


async def test_options_are_set_in_the_file_s_own_spelling_and_taken_out_again(greetings):
    criteria = criteria_of(greetings, CONFIG)
    match = option(criteria, "tool_trajectory_avg_score", "match_type")
    assert (match.value, match.is_set) == ("IN_ORDER", True)
    criteria.move(match, 1)
    assert '"matchType": "ANY_ORDER"' in text_of(greetings)
    criteria.move(option(criteria, "tool_trajectory_avg_score", "ignore_args"), 1)
    assert '"ignoreArgs": true' in text_of(greetings)
    criteria.remove(option(criteria, "tool_trajectory_avg_score", "match_type"))
    assert not option(criteria, "tool_trajectory_avg_score", "match_type").is_set
    EvalConfig.model_validate(json.loads(text_of(greetings)))


async def test_options_of_a_judge_are_typed(greetings):
    criteria = criteria_of(greetings, json.dumps({"criteria": {"final_response_match_v2": 0.5}}))
    samples = option(criteria, "final_response_match_v2", "num_samples")
    assert criteria.check(samples, "none") == "must be an integer, at least 1"
    assert criteria.check(samples, "0") is not None
    criteria.type(samples, "3")
    criteria.type(option(criteria, "final_response_match_v2", "judge_model"), "my-model")
    assert greetings.workbench.editing.data(greetings.config) == {
        "criteria": {
            "final_response_match_v2": {
                "threshold": 0.5,
                "judge_model_options": {"num_samples": 3, "judge_model": "my-model"},
            }
        }
    }


async def test_rubrics_are_added_edited_and_removed(greetings):
    name = "rubric_based_tool_use_quality_v1"
    criteria = criteria_of(greetings, json.dumps({"criteria": {name: 0.5}}))
    criteria.add_rubric(name, -1, "is polite")
    criteria.add_rubric(name, 0, "asks back")
    assert [row.text for row in rows(criteria, RubricRow)] == ["is polite", "asks back"]
    criteria.type(rows(criteria, RubricRow)[0], "is kind")
    rubrics = greetings.workbench.editing.data(greetings.config)["criteria"][name]["rubrics"]
    assert rubrics == [
        {"rubric_id": "rubric_1", "rubric_content": {"text_property": "is kind"}},
        {"rubric_id": "rubric_2", "rubric_content": {"text_property": "asks back"}},
    ]
    for row in reversed(rows(criteria, RubricRow)):
        criteria.remove(row)
    assert greetings.workbench.editing.data(greetings.config) == {"criteria": {name: {"threshold": 0.5}}}


async def test_runs_verdicts_and_thoughts_go_into_the_block(greetings):
    criteria = criteria_of(greetings, CONFIG)
    criteria.move(setting(criteria, "runs"), 1)
    assert (
        criteria.check(setting(criteria, "pass_if"), "most")
        == "must be all, majority or a pass rate, e.g. 0.6"
    )
    assert criteria.check(setting(criteria, "pass_if"), "1.5") is not None
    criteria.type(setting(criteria, "pass_if"), "0.6")
    criteria.move(setting(criteria, "thoughts"), 1)
    block = {"repeats": {"runs": 2, "pass_if": 0.6}, "thoughts": "score"}
    assert greetings.workbench.editing.data(greetings.config)["evaltui"] == block
    criteria.move(setting(criteria, "pass_if"), 1)
    assert setting(criteria, "pass_if").value == "all"
    criteria.remove(setting(criteria, "runs"))
    criteria.remove(setting(criteria, "pass_if"))
    assert greetings.workbench.editing.data(greetings.config)["evaltui"] == {"thoughts": "score"}
    criteria.move(setting(criteria, "runs"), -1)
    assert setting(criteria, "runs").value == 1


async def test_marks_that_name_nothing_are_told_and_removed(greetings):
    marks = [
        {"set": "greetings", "case": "one", "turn": 0, "mode": "context"},
        {"set": "greetings", "case": "ones", "turn": 0, "mode": "skip"},
        {"set": "greetings", "case": "two", "turn": 4, "mode": "skip"},
    ]
    rules = [{"tool": "find", "arg": "query", "match": {"regex": "a+"}, "case": "nobody"}]
    config = {"criteria": {"response_match_score": 0.5}, "evaltui": {"turns": marks, "rules": rules}}
    criteria = criteria_of(greetings, json.dumps(config))
    fine, gone, late, rule = rows(criteria, ReferenceRow)
    assert fine.text == "context  greetings › one › turn 1"
    assert fine.dangling is None
    assert gone.dangling == "no case 'ones' in greetings. Did you mean one?"
    assert late.dangling == "no turn 4: two has 1 turn, counted from 0"
    assert rule.text == "find query  regex a+  nobody"
    assert rule.dangling == "no case 'nobody' in the eval sets beside this config"
    criteria.remove(gone)
    assert greetings.workbench.editing.data(greetings.config)["evaltui"]["turns"] == [marks[0], marks[2]]
    criteria.remove(rows(criteria, ReferenceRow)[2])
    assert "rules" not in greetings.workbench.editing.data(greetings.config)["evaltui"]


async def test_own_metrics_are_offered_with_their_range(greetings):
    custom = {
        "kindness": {
            "code_config": {"name": "mine.kindness"},
            "metric_info": {
                "metric_name": "kindness",
                "description": "How kind it is.",
                "metric_value_info": {"interval": {"min_value": -10, "max_value": 10}},
            },
        }
    }
    config = {"criteria": {"response_match_scor": 0.5}, "custom_metrics": custom}
    criteria = criteria_of(greetings, json.dumps(config))
    row = metric(criteria, "kindness")
    assert (row.meaning, row.interval) == ("How kind it is. Computed by mine.kindness.", (-10.0, 10.0))
    typo = metric(criteria, "response_match_scor")
    assert typo.why_not == "Unknown metric. Did you mean response_match_score?"
    criteria.add(row)
    assert greetings.workbench.editing.data(greetings.config)["criteria"]["kindness"] == 6.0
    assert criteria.check(metric(criteria, "kindness"), "11") == "must be from -10 to 10"
    criteria.remove(typo)
    assert list(greetings.workbench.editing.data(greetings.config)["criteria"]) == ["kindness"]


def shorts(**criteria):
    function = {"function": "mine.words"}
    own = {name: {"threshold": 2, **function, **more} for name, more in criteria.items()}
    return json.dumps({"criteria": {}, "evaltui": {"criteria": own}})


async def test_metrics_in_short_form_are_changed_as_others_are(greetings):
    interval = {"interval": {"min_value": 0, "max_value": 50}}
    criteria = criteria_of(greetings, shorts(words={"lower_is_better": True, **interval}, free={}))
    words, free = metric(criteria, "words"), metric(criteria, "free")
    assert words.meaning == "Custom metric. Computed turn by turn by mine.words."
    assert (words.interval, words.assumed, words.lower_is_better, words.ours) == ((0, 50), False, True, True)
    assert (free.interval, free.assumed, free.lower_is_better) == (None, True, False)
    assert criteria.check(words, "51") == "must be from 0 to 50"
    # A run refuses a threshold below 0 where the range is not known.
    assert criteria.check(free, "-7") == "must be at least 0"
    assert criteria.check(free, "70") is None
    scored(greetings, {"one": [3.0], "two": [1.0]}, greetings.config.read_text(), "words")
    assert metric(criteria, "words").trial.passing == 1
    criteria.type(words, "4")
    assert metric(criteria, "words").trial.now_pass == (CaseId(greetings.path.name, "one"),)
    criteria.move(option(criteria, "words", "lower_is_better"), 1)
    assert not metric(criteria, "words").lower_is_better
    criteria.type(option(criteria, "free", "function"), "mine.other")
    criteria.move(metric(criteria, "free"), -1, far=True)
    block = greetings.workbench.editing.data(greetings.config)["evaltui"]["criteria"]
    assert block == {
        "words": {"threshold": 4.0, "function": "mine.words", "lower_is_better": False, **interval},
        "free": {"threshold": 0.0, "function": "mine.other"},
    }
    EvalConfig.model_validate(json.loads(text_of(greetings)))


async def test_a_function_under_criteria_is_told_to_be_misplaced(greetings):
    misplaced = {"criteria": {"words": {"threshold": 1, "function": "mine.words"}}}
    criteria = criteria_of(greetings, json.dumps(misplaced))
    assert metric(criteria, "words").why_not.startswith(
        "a metric in short form belongs under evaltui.criteria"
    )


async def test_what_adk_assumes_of_a_range_does_not_bind(greetings):
    custom = {"kindness": {"code_config": {"name": "mine.kindness"}}}
    criteria = criteria_of(greetings, json.dumps({"criteria": {"kindness": 0.5}, "custom_metrics": custom}))
    row = metric(criteria, "kindness")
    assert (row.interval, row.assumed) == ((0.0, 1.0), True)
    criteria.type(row, "7")
    assert metric(criteria, "kindness").interval is None


@pytest.mark.parametrize("text", ["{", "[]", '{"criteria": {}}  x'])
async def test_a_config_that_is_broken_is_told_and_left_alone(greetings, text):
    criteria = criteria_of(greetings, text)
    assert criteria.unreadable()
    assert greetings.config.read_text() == text


@pytest.mark.parametrize(
    "text",
    [
        '{"criteria": []}',
        '{"criteria": {"response_match_score": "high"}, "evaltui": []}',
        '{"criteria": {"tool_trajectory_avg_score": {"match_type": 3}}, "evaltui": {"repeats": 2}}',
        '{"custom_metrics": {"mine": null}, "evaltui": {"turns": [1, {"turn": "x"}], "rules": [{}]}}',
    ],
)
async def test_a_config_with_errors_can_be_seen(greetings, text):
    criteria = criteria_of(greetings, text)
    assert criteria.unreadable() is None
    assert criteria.problems()
    assert criteria.sections()


async def test_which_sets_it_applies_to(greetings, write_set):
    write_set(greetings.path.parent, "farewells", one=("bye", "bye"))
    await greetings.workbench.open()
    criteria = criteria_of(greetings)
    assert sorted(entry.eval_set_id for entry in criteria.sets) == ["farewells", "greetings"]


@pytest.mark.compat
async def test_adk_loads_what_was_saved(greetings):
    pytest.importorskip("google.adk")
    from google.adk.evaluation.eval_config import (
        get_eval_metrics_from_config,
        get_evaluation_criteria_or_default,
    )

    criteria = criteria_of(greetings)
    for name in ("final_response_match_v2", "trajectory_recall", "rubric_based_tool_use_quality_v1"):
        assert criteria.add(metric(criteria, name))
    criteria.move(option(criteria, "tool_trajectory_avg_score", "match_type"), 1)
    criteria.add_rubric("rubric_based_tool_use_quality_v1", -1, "asks back")
    criteria.type(option(criteria, "final_response_match_v2", "num_samples"), "3")
    criteria.move(setting(criteria, "runs"), 1)
    await greetings.workbench.editing.save_all()
    config = get_evaluation_criteria_or_default(str(greetings.config))
    metrics = {one.metric_name: one for one in get_eval_metrics_from_config(config)}
    # Behind what is asked for stands what ADK measures in every run.
    assert list(metrics)[:4] == [
        "tool_trajectory_avg_score",
        "response_match_score",
        "final_response_match_v2",
        "rubric_based_tool_use_quality_v1",
    ]
    assert metrics["final_response_match_v2"].criterion.judge_model_options["num_samples"] == 3


async def test_a_config_whose_first_change_was_undone_is_not_unsaved(greetings):
    criteria, editing = criteria_of(greetings), greetings.workbench.editing
    assert criteria.add(metric(criteria, "trajectory_precision"))
    assert editing.unsaved() == [greetings.config]
    editing.undo()
    assert editing.unsaved() == []
    assert await editing.save_all()
    assert not greetings.config.exists()
    editing.redo()
    assert editing.unsaved() == [greetings.config]


async def test_what_a_case_may_take_is_a_group_of_its_own(greetings):
    sections = criteria_of(greetings).sections()
    rows = [row for section in sections for row in section.rows if isinstance(row, MetricRow)]
    found = [row.name for row in rows if row.subject == "Cost and time"]
    assert found == ["cost_usd", "seconds", "tokens"]
    assert not {row.name for row in rows if row.subject == "Response"} & {*found}


@pytest.mark.parametrize("name", [name for name, info in METRICS.items() if info.gates])
async def test_whatever_is_added_makes_a_config_that_a_run_takes(greetings, name):
    criteria = criteria_of(greetings, '{"criteria": {}}')
    criteria.add(metric(criteria, name))
    if name == "trajectory_single_tool_use":
        criteria.type(option(criteria, name, "tool"), "find")

    def is_valid():
        return validate_config(greetings.workbench.editing.data(greetings.config))[0] is not None

    assert metric(criteria, name).in_use
    assert is_valid()
    # Whatever is taken out of it again, too.
    for row in rows(criteria, OptionRow):
        criteria.remove(row)
        assert is_valid()
