import json

from example_runs import (
    adk_document,
    crashed,
    failed,
    flaky,
    mixed,
    passed,
    said,
    trajectory_metric,
    unevaluated,
)
from hypothesis import given
from hypothesis import strategies as st
from judged_metrics import (
    ANSWERS,
    DISAGREES,
    INVENTED,
    LEFT_OUT,
    POLITE,
    RUBRICS,
    SENTENCES,
    SHORT,
    SUPPORTED,
    judged_metric,
)

from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.judgement import Judgement
from evaltui.core.model.outcome import CaseResult, MetricResult, RepeatResult, Status
from evaltui.runs.adk_results import run_from_adk

CREATED = 1767323045.25


def result_of(*cases, **fields):
    return adk_document("thermostat", cases, CREATED, **fields)


def test_the_set():
    document = result_of(passed())
    assert {key: value for key, value in document.items() if key != "eval_case_results"} == {
        "eval_set_result_id": "home_thermostat_1767323045.25",
        "eval_set_result_name": "home_thermostat_1767323045.25",
        "eval_set_id": "thermostat",
        "creation_timestamp": CREATED,
    }


def test_statuses_are_those_of_adk():
    document = result_of(*mixed().cases[:4])
    assert [(one["eval_id"], one["final_eval_status"]) for one in document["eval_case_results"]] == [
        ("turn_off_bedroom", 1),
        ("thermostat_night", 2),
        ("away_for_a_week", 2),
        ("judged", 3),
    ]
    (entry,) = result_of(unevaluated())["eval_case_results"][0]["overall_eval_metric_results"]
    assert entry == {"metric_name": "safety_v1", "eval_status": 3, "threshold": 0.5}
    raised = MetricResult("judge", None, 0.5, Status.ERROR)
    measured = MetricResult("tool_call_count_v1", 2.0, None, Status.INFORMATIONAL)
    repeat = RepeatResult(Status.ERROR, (raised, measured))
    odd = CaseResult("odd", Status.ERROR, eval_set_id="thermostat", repeats=(repeat,))
    entries = result_of(odd)["eval_case_results"][0]["overall_eval_metric_results"]
    assert [entry["eval_status"] for entry in entries] == [3, 4]


def test_every_repeat_is_an_entry_with_a_session_of_its_own():
    entries = result_of(flaky())["eval_case_results"]
    assert [entry["final_eval_status"] for entry in entries] == [1, 2, 1, 2, 1]
    assert len({entry["session_id"] for entry in entries}) == 5


def test_turns_have_both_sides_and_their_scores():
    expected = EvalCase.model_validate(
        {
            "eval_id": "thermostat_night",
            "conversation": [{"user_content": {"parts": [{"text": text}]}} for text in ("hello", "and?")],
            "session_input": {"app_name": "home", "user_id": "ada"},
        }
    )
    criterion = {"threshold": 1.0, "match_type": "IN_ORDER"}
    config = {"criteria": {"response_match_score": 0.8, "tool_trajectory_avg_score": criterion}}
    (entry,) = result_of(failed(), expected=[expected], config=config)["eval_case_results"]
    assert entry["user_id"] == "ada"
    first, second = entry["eval_metric_result_per_invocation"]
    assert first["expected_invocation"] == {"user_content": {"parts": [{"text": "hello"}]}}
    assert second["actual_invocation"]["user_content"]["parts"] == [{"text": "And the kitchen?"}]
    assert second["eval_metric_results"] == [
        {
            "metric_name": "tool_trajectory_avg_score",
            "eval_status": 2,
            "score": 0.0,
            "threshold": 1.0,
            "criterion": criterion,
        },
        {"metric_name": "response_match_score", "eval_status": 2, "score": 0.77, "threshold": 0.8},
    ]


def test_where_the_tokens_went():
    details = {"total_tokens": 12.0, "cached_tokens": None}
    spent = MetricResult("token_usage_v1", 12.0, None, Status.INFORMATIONAL, details=details)
    repeat = RepeatResult(Status.PASSED, (trajectory_metric(Status.PASSED), spent))
    one = CaseResult("one", Status.PASSED, eval_set_id="thermostat", repeats=(repeat,))
    plain, tokens = result_of(one)["eval_case_results"][0]["overall_eval_metric_results"]
    assert "details" not in plain
    assert tokens["details"] == {"token_usage_details": {"total_tokens": 12.0}}


def rubric(judgement):
    return {"rubric_id": judgement.id, "rubric_content": {"text_property": judgement.subject}}


JUDGED = EvalCase.model_validate(
    {
        "eval_id": "one",
        "rubrics": [rubric(SHORT)],
        "conversation": [{"user_content": {"parts": [{"text": "hello"}]}, "rubrics": [rubric(POLITE)]}],
    }
)


def judged_entry(*metrics, turns=2):
    actual = tuple(said("hello") for _ in range(turns))
    repeat = RepeatResult(Status.FAILED, metrics, actual=actual)
    one = CaseResult("one", Status.FAILED, eval_set_id="thermostat", repeats=(repeat,))
    return result_of(one, expected=[JUDGED])["eval_case_results"][0]


def test_rubrics_stand_at_both_levels():
    entry = judged_entry(judged_metric(RUBRICS, [SHORT, POLITE], [SHORT, LEFT_OUT]))
    (overall,) = entry["overall_eval_metric_results"]
    assert overall["details"] == {
        "rubric_scores": [
            {
                "rubric_id": "short",
                "score": 1.0,
                "rationale": "turn 1, yes: It is so.\nturn 2, yes: It is so.",
            },
            {"rubric_id": "polite", "score": 0.0, "rationale": POLITE.rationale},
            {"rubric_id": "on_topic", "rationale": "TimeoutError: no response within 60 s"},
        ]
    }
    first, second = (
        turn["eval_metric_results"][0]["details"] for turn in entry["eval_metric_result_per_invocation"]
    )
    assert first == {
        "rubric_scores": [
            {"rubric_id": "short", "score": 1.0, "rationale": "It is so."},
            {"rubric_id": "polite", "score": 0.0, "rationale": POLITE.rationale},
        ]
    }
    assert [one["rubric_id"] for one in second["rubric_scores"]] == ["short", "on_topic"]


def test_what_has_no_rubrics_is_explained():
    entry = judged_entry(
        judged_metric(ANSWERS, [DISAGREES]), judged_metric(SENTENCES, [SUPPORTED, INVENTED]), turns=1
    )
    answer, sentences = (one["details"]["rubric_scores"] for one in entry["overall_eval_metric_results"])
    assert answer == [{"rubric_id": "explanation", "score": 0.0, "rationale": "19 is not 21."}]
    assert [(one["rubric_id"], one["score"]) for one in sentences] == [
        ("The kitchen is heated.", 1.0),
        ("It is 30 °C there.", 0.0),
    ]


def test_what_judges_found_is_read_back():
    metrics = judged_metric(RUBRICS, [SHORT, POLITE]), judged_metric(SENTENCES, [INVENTED])
    document = {"eval_set_id": "thermostat", "eval_case_results": [judged_entry(*metrics, turns=1)]}
    (case,) = run_from_adk(document).cases
    found = [judgement for metric in case.metrics for judgement in metric.per_invocation[0].judgements]
    assert found == [
        Judgement("short", SHORT.subject, 1.0, "It is so."),
        Judgement("polite", POLITE.subject, 0.0, POLITE.rationale),
        Judgement("", "It is 30 °C there.", 0.0, "The thermostat says 19."),
    ]


def test_what_never_ran_has_no_turns():
    (entry,) = result_of(crashed())["eval_case_results"]
    assert entry["overall_eval_metric_results"] == entry["eval_metric_result_per_invocation"] == []


@given(st.text(st.characters(codec=None), min_size=1, max_size=20))
def test_any_set_id_gives_a_file_name_and_valid_json(eval_set_id):
    one = CaseResult("c", Status.ERROR, eval_set_id=eval_set_id, repeats=(RepeatResult(Status.ERROR),))
    document = adk_document(eval_set_id, [one], CREATED)
    name = document["eval_set_result_id"]
    assert not set(name) & set("/\\\x00\n")
    name.encode("utf-8")
    json.dumps(document, allow_nan=False, ensure_ascii=False).encode("utf-8")
