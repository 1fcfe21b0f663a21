from dataclasses import replace
from datetime import datetime, timedelta, timezone

from example_runs import DEFAULTS, case, crashed, failed, flaky, json_of, mixed, passed, report
from hypothesis import example, given
from hypothesis import strategies as st

from evaltui.core.compare.diff import align_calls
from evaltui.core.model.outcome import (
    Call,
    ErrorInfo,
    InvocationScore,
    MetricResult,
    StateDiff,
    Status,
    TurnResult,
)
from evaltui.core.model.text_diff import ResponseDiff
from evaltui.reports.json_report import case_result_json
from evaltui.runs.run_header import SelectedSet


def test_the_start_is_told_in_utc():
    elsewhere = datetime(2026, 1, 2, 5, 4, 5, tzinfo=timezone(timedelta(hours=2)))
    assert json_of(report(started=elsewhere))["started"] == "2026-01-02T03:04:05.000Z"


def test_which_config_and_what_was_defaulted():
    (one,) = json_of(mixed())["sets"]
    assert one == {
        "eval_set_id": "thermostat",
        "path": "home/thermostat.evalset.json",
        "config": {
            "path": None,
            "effective": DEFAULTS,
            "defaulted": ["tool_trajectory_avg_score", "response_match_score"],
        },
    }
    path = "thermostat"
    given_config = SelectedSet(path, path, (), {"criteria": {"x": 1}}, config_path="test_config.json")
    config = json_of(report(passed(), sets=(given_config,)))["sets"][0]["config"]
    assert config == {"path": "test_config.json", "effective": {"criteria": {"x": 1}}, "defaulted": []}


def test_errors_of_agent_and_metric_are_whole():
    document = case_result_json(crashed())
    assert document["error"] == {
        "type": "TimeoutError",
        "message": "no response within 30 s",
        "traceback": crashed().error.traceback,
        "where": "tools.py:41 in wait_for_boiler",
        "kind": "timeout",
    }
    judge = MetricResult(
        "judge", None, 0.5, Status.ERROR, error=ErrorInfo("RuntimeError", "judge 500", "trace", kind=None)
    )
    metric = case_result_json(case("c", Status.ERROR, metrics=(judge,)))["metrics"][0]
    assert (metric["status"], metric["error"]["message"], metric["error"]["traceback"]) == (
        "ERROR",
        "judge 500",
        "trace",
    )


def test_no_number_is_outside_json():
    nan, infinite = float("nan"), float("inf")
    metric = MetricResult(
        "m", nan, infinite, Status.ERROR, per_invocation=(InvocationScore(nan, Status.ERROR),)
    )
    document = case_result_json(case("c", Status.ERROR, metrics=(metric,)))["metrics"][0]
    assert (document["score"], document["threshold"], document["per_turn"][0]["score"]) == (None, None, None)


def test_what_several_runs_say():
    document = case_result_json(flaky())
    assert document["pass_rates"][:2] == [
        {"k": 1, "pass_at_k": 0.6, "pass_hat_k": 0.6},
        {"k": 2, "pass_at_k": 0.9, "pass_hat_k": 0.3},
    ]
    assert [rate["k"] for rate in document["pass_rates"]] == [1, 2, 3, 5]
    assert document["trajectories"] == [{"repeats": [0, 1, 2, 3, 4], "status": "FLAKY", "calls": []}]
    single = case_result_json(failed())
    assert (single["pass_rates"], single["trajectories"]) == ([], [])


any_text = st.text(st.characters(codec=None), max_size=12)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=6,
)


@given(any_text, anything, anything, st.floats())
@example("\ud800", {"\udfff": ["\ud800"]}, None, 1.0)
def test_any_content_is_valid_json(text, expected, actual, number):
    calls = align_calls([Call(text, {text: expected})], [Call(text, {text: actual})])
    odd = case(
        text,
        Status.FAILED,
        error=ErrorInfo(text, text, text, text, kind=None),
        metrics=(MetricResult(text, number, number, Status.FAILED, reason=text, details={text: number}),),
        turns=(TurnResult("these calls", calls, ResponseDiff(text, None, number), ((text, text),)),),
        state=(StateDiff(text, expected, actual),),
    )
    run = replace(report(odd), agent=text, log=text, notes=(text,), seconds=1.0)
    assert len(json_of(run)["cases"]) == 1
