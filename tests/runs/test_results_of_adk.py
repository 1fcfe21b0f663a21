import pytest

from evaltui.core.model.judgement import Judgement
from evaltui.core.model.outcome import Call, Status
from evaltui.runs.adk_results import run_from_adk


def content(text, role):
    # As a full dump has it: every field that a part may have.
    return {
        "role": role,
        "parts": [{"text": text, "thought": None, "inline_data": None, "function_call": None}],
    }


def invocation(text, *calls):
    return {
        "invocation_id": "e-1",
        "user_content": content("hi", "user"),
        "final_response": content(text, "model"),
        "intermediate_data": {
            "tool_uses": [{"id": None, "name": name, "args": args} for name, args in calls]
        },
        "rubrics": None,
        "app_details": {"agent_details": {"a": {"a_field": "of another version"}}},
    }


def metric(name, score, status):
    return {
        "metric_name": name,
        "threshold": 0.7,
        "judge_model_options": None,
        "criterion": {"threshold": 0.7},
        "score": score,
        "eval_status": status,
        "details": {"rubric_scores": None},
    }


ENTRY = {
    "eval_set_file": "lights",
    "eval_set_id": "lights",
    "eval_id": "movie_mode",
    "final_eval_status": 2,
    "eval_metric_results": None,
    "overall_eval_metric_results": [metric("response_match_score", 0.35, 2), metric("safety_v1", None, 3)],
    "eval_metric_result_per_invocation": [
        {
            "actual_invocation": invocation("yes", ("dim", {"to": 5})),
            "expected_invocation": invocation("no", ("dim", {"to": 6})),
            "eval_metric_results": [
                metric("response_match_score", 0.35, 2),
                metric("safety_v1", None, 3),
            ],
        }
    ],
    "session_id": "___eval___session___1",
    "session_details": None,
    "user_id": "test_user_id",
}


BARE = {**ENTRY, "overall_eval_metric_results": []}


def run_of(*entries):
    return run_from_adk(
        {
            "eval_set_result_id": "home_lights_1764535556.4",
            "eval_set_id": "lights",
            "eval_case_results": list(entries),
            "creation_timestamp": 1764535556.4,
        }
    )


def camel(value):
    if isinstance(value, list):
        return [camel(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        "".join(word.title() if number else word for number, word in enumerate(key.split("_"))): camel(item)
        for key, item in value.items()
    }


@pytest.mark.parametrize("entry", [ENTRY, camel(ENTRY)], ids=["snake_case", "camelCase"])
def test_a_case(entry):
    run = run_of(entry)
    assert (run.id, run.eval_set_id, run.created) == ("home_lights_1764535556.4", "lights", 1764535556.4)
    (case,) = run.cases
    assert (case.eval_set_id, case.eval_id, case.status) == ("lights", "movie_mode", Status.FAILED)
    answer, safety = case.metrics
    assert (answer.name, answer.score, answer.threshold, answer.status) == (
        "response_match_score",
        0.35,
        0.7,
        Status.FAILED,
    )
    assert [turn.score for turn in answer.per_invocation] == [0.35]
    assert (safety.score, safety.status) == (None, Status.NOT_EVALUATED)
    (repeat,) = case.repeats
    assert (repeat.session_id, repeat.user_id) == ("___eval___session___1", "test_user_id")
    assert repeat.actual[0].final_response.parts[0].text == "yes"
    (turn,) = case.turns
    assert (turn.expectation, turn.response.expected, turn.response.actual, turn.response.score) == (
        "these calls",
        "no",
        "yes",
        0.35,
    )
    (diff,) = turn.calls
    assert (diff.op, diff.expected, diff.actual) == (
        "changed",
        Call("dim", {"to": 6}),
        Call("dim", {"to": 5}),
    )


def test_entries_of_one_case_are_its_repeats():
    run = run_of(ENTRY, {**BARE, "final_eval_status": 1}, {**ENTRY, "eval_id": "other"})
    assert [(case.eval_id, case.status, len(case.repeats)) for case in run.cases] == [
        ("movie_mode", Status.FLAKY, 2),
        ("other", Status.FAILED, 1),
    ]


@pytest.mark.parametrize(
    ("value", "status"),
    [
        (1, Status.PASSED),
        ("PASSED", Status.PASSED),
        ("failed", Status.FAILED),
        (3, Status.NOT_EVALUATED),
        (99, Status.NOT_EVALUATED),
        (None, Status.NOT_EVALUATED),
        ("new in 2031", Status.NOT_EVALUATED),
    ],
)
def test_statuses(value, status):
    assert run_of({**BARE, "final_eval_status": value}).cases[0].status is status


def test_a_run_that_raised():
    empty = {"overall_eval_metric_results": [], "eval_metric_result_per_invocation": []}
    (case,) = run_of({**ENTRY, **empty}).cases
    assert case.status is Status.ERROR
    assert "google-adk keeps no message" in case.error.message


def test_what_a_later_version_writes_otherwise_is_left_out():
    turn = {**ENTRY["eval_metric_result_per_invocation"][0], "actual_invocation": {"said": "who knows"}}
    (case,) = run_of({**ENTRY, "eval_metric_result_per_invocation": [turn, None]}).cases
    assert case.repeats[0].actual == ()
    assert case.metrics[0].score == 0.35
    assert [diff.op for diff in case.turns[0].calls] == ["missing"]


RUBRIC = "rubric_based_final_response_quality_v1"
OVERALL = "This is an aggregated score derived from individual entries."


def rated(scores, name=RUBRIC):
    found = metric(name, 0.5, 2)
    found["criterion"] = {
        "rubrics": [{"rubric_id": "polite", "rubric_content": {"text_property": "Says please"}}]
    }
    found["details"] = {"rubric_scores": scores}
    return found


@pytest.mark.parametrize("spelling", [dict, camel])
def test_rubrics_of_turns_are_what_the_judge_found(spelling):
    turn = ENTRY["eval_metric_result_per_invocation"][0]
    of_turn = [
        {"rubric_id": "polite", "rationale": "it shouts", "score": 0.0},
        {"rubric_id": "short", "rationale": None, "score": 1.0},
        {"rubric_id": "odd", "rationale": "cannot tell", "score": None},
    ]
    said = {
        **turn["actual_invocation"],
        "rubrics": [{"rubric_id": "short", "rubric_content": {"text_property": "Is short"}}],
    }
    entry = {
        **ENTRY,
        "overall_eval_metric_results": [rated([{"rubric_id": "polite", "rationale": OVERALL, "score": 0.0}])],
        "eval_metric_result_per_invocation": [
            {**turn, "actual_invocation": said, "eval_metric_results": [rated(of_turn)]}
        ],
    }
    (case,) = run_of(spelling(entry)).cases
    (found,) = case.metrics
    assert found.reason == ""
    assert found.per_invocation[0].judgements == (
        Judgement("polite", "Says please", 0.0, "it shouts"),
        Judgement("short", "Is short", 1.0),
        Judgement("odd", "", None, "cannot tell"),
    )


def test_what_is_said_of_an_answer_as_a_whole_has_the_score_of_the_turn():
    turn = ENTRY["eval_metric_result_per_invocation"][0]
    explained = rated(
        [{"rubric_id": "explanation", "rationale": "hard to follow"}], "response_evaluation_score"
    )
    entry = {
        **ENTRY,
        "overall_eval_metric_results": [explained],
        "eval_metric_result_per_invocation": [{**turn, "eval_metric_results": [explained]}],
    }
    (case,) = run_of(entry).cases
    assert case.metrics[0].per_invocation[0].judgements == (Judgement("", "", 0.5, "hard to follow"),)


def test_turns_of_a_simulated_user():
    turn = {**ENTRY["eval_metric_result_per_invocation"][0], "expected_invocation": None}
    (case,) = run_of({**ENTRY, "eval_metric_result_per_invocation": [turn]}).cases
    assert [(one.expectation, one.user) for one in case.turns] == [("simulated", "hi")]


@pytest.mark.parametrize("data", [None, [], {}, "text", {"eval_case_results": {}}])
def test_anything_else_is_refused(data):
    with pytest.raises(ValueError, match="eval_case_results"):
        run_from_adk(data)
