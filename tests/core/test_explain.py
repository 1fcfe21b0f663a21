from dataclasses import replace

import pytest

from evaltui.core.compare.diff import align_calls
from evaltui.core.compare.explain import crash_text, describe_call, sentence, summary
from evaltui.core.model.outcome import (
    Call,
    CaseResult,
    ErrorInfo,
    InvocationScore,
    MetricResult,
    RepeatResult,
    StateDiff,
    Status,
    TurnResult,
)
from evaltui.core.model.text_diff import ResponseDiff

OK = Status.PASSED
BAD = Status.FAILED


def turn(expected=(), actual=(), *, expectation="these calls", said="fine", wanted="fine"):
    return TurnResult(expectation, align_calls(expected, actual), ResponseDiff(wanted, said))


def metric(name, *statuses, score=0.5, threshold=1.0, status=BAD, reason=""):
    per_turn = tuple(InvocationScore(1.0 if one is OK else 0.0, one) for one in statuses)
    return MetricResult(name, score, threshold, status, per_invocation=per_turn, reason=reason)


def case(status, *metrics, **fields):
    return CaseResult("c", status, metrics, **fields)


def call(name, **args):
    return Call(name, args)


KITCHEN = turn(
    [call("get_mode"), call("set_temperature", location="Kitchen", degrees=19)],
    [call("get_mode"), call("set_temperature", location="Kitchen", degrees="19"), call("notify_user")],
)
NIGHT = case(BAD, metric("tool_trajectory_avg_score", OK, BAD), turns=(turn(), KITCHEN))


def test_calls_of_a_turn_in_one_sentence():
    assert sentence(NIGHT) == (
        'turn 2: set_temperature: degrees is "19" (string), expected 19; unexpected call notify_user'
    )
    assert summary(NIGHT) == sentence(NIGHT)


def test_a_single_turn_needs_no_number():
    only = case(BAD, metric("tool_trajectory_avg_score", BAD), turns=(KITCHEN,))
    assert sentence(only).startswith("set_temperature: degrees is")
    assert summary(only).startswith("set_temperature: degrees is")


def test_turns_that_the_metric_passed_are_not_blamed():
    result = replace(NIGHT, turns=(KITCHEN, KITCHEN))
    assert "turn 1" not in sentence(result)


@pytest.mark.parametrize("expectation", ["not checked", "context"])
def test_calls_that_are_not_checked_are_not_blamed(expectation):
    unchecked = replace(KITCHEN, expectation=expectation)
    result = case(BAD, metric("tool_trajectory_avg_score", reason="r"), turns=(unchecked, KITCHEN))
    assert sentence(result).startswith("turn 2: ")


def test_recall_does_not_mind_extra_calls_and_precision_not_missing_ones():
    both = turn([call("f")], [call("g")])
    assert sentence(case(BAD, metric("trajectory_recall", BAD), turns=(both,))) == "missing call f"
    assert sentence(case(BAD, metric("trajectory_precision", BAD), turns=(both,))) == "unexpected call g"


def test_every_kind_of_argument_difference():
    changed = turn([call("f", a=1, b=2, c=3)], [call("f", a=1, c=None, d=[4])])
    result = case(BAD, metric("tool_trajectory_avg_score", BAD), turns=(changed,))
    assert sentence(result) == "f: missing b; c is null, expected 3; unexpected d [4]"
    assert describe_call(changed.calls[0]) == sentence(result)


def test_no_arguments_instead_of_empty_ones():
    (row,) = align_calls([Call("f", {})], [Call("f", None)])
    assert describe_call(row) == "f: args is null, expected {}"


def test_calls_in_another_order_and_missing_calls():
    moved = turn([call("f"), call("g"), call("h"), call("i")], [call("g"), call("h"), call("f")])
    result = case(BAD, metric("tool_trajectory_avg_score", BAD), turns=(moved,))
    assert sentence(result) == "missing call i; f out of order"
    assert summary(result) == sentence(result)
    assert describe_call(moved.calls[0]) == "g as expected"


def test_a_call_that_is_not_the_only_one_of_its_name_is_told_with_its_arguments():
    lights = turn([call("dim", room="Hall"), call("dim", room="Bath")], [call("dim", room="Hall")])
    result = case(BAD, metric("tool_trajectory_avg_score", BAD), turns=(lights,))
    assert sentence(result) == 'missing call dim (room "Bath")'
    assert summary(result) == sentence(result)
    assert describe_call(lights.calls[1]) == "missing call dim"


def test_an_answer_with_its_score():
    two = (turn(said="nope"), turn())
    result = case(BAD, metric("response_match_score", BAD, OK, threshold=0.8), turns=two)
    assert sentence(result) == "turn 1: response 0.00 < 0.80"
    assert summary(result) == sentence(result)


def test_no_answer():
    result = case(BAD, metric("response_match_score", BAD), turns=(turn(said=None),))
    assert sentence(result) == "no response"


def test_reasons_follow_the_turns():
    metrics = (metric("response_match_score", BAD, BAD), metric("tool_trajectory_avg_score", BAD, BAD))
    missing = turn([call("f")], [], said="nope")
    assert sentence(case(BAD, *metrics, turns=(missing, missing))) == (
        "turn 1: missing call f; response 0.00 < 1.00; turn 2: missing call f; response 0.00 < 1.00"
    )


def test_more_reasons_than_anyone_reads_are_counted():
    many = turn([call(name) for name in "abcdef"], [])
    result = case(BAD, metric("tool_trajectory_avg_score", BAD), turns=(many,))
    assert sentence(result) == "missing call a; missing call b; missing call c; 3 more"
    assert summary(result) == sentence(result)


def test_more_arguments_than_anyone_reads_are_counted():
    many = turn([call("f", **dict.fromkeys("abcdefgh", 1))], [call("f", **dict.fromkeys("abcdefgh", 2))])
    assert describe_call(many.calls[0]).endswith("c is 2, expected 1; 5 more")
    assert sentence(case(BAD, metric("tool_trajectory_avg_score", BAD), turns=(many,))).endswith("; 5 more")


def test_other_metrics_by_their_score_and_reason():
    result = case(BAD, metric("politeness", BAD, score=0.25, threshold=0.5, reason="rude\x1b[0m"))
    assert sentence(result) == "politeness 0.25 < 0.50: rude\\x1b[0m"


def test_a_failed_call_metric_without_a_difference_is_told_by_its_score():
    result = case(BAD, metric("tool_trajectory_avg_score", score=0.0), turns=(turn(),))
    assert sentence(result) == "tool_trajectory_avg_score 0.00 < 1.00"


def test_the_final_state():
    result = case(BAD, metric("final_session_state"), state=(StateDiff("lights.hall", "on", "off"),))
    assert sentence(result) == 'final state lights.hall is "off", expected "on"'


def test_an_error_of_the_agent_is_the_reason_for_all_that_follows():
    error = ErrorInfo(
        "TimeoutError",
        "no response within 30 s\nmore",
        "Traceback ...",
        "tools.py:41 in wait_for_boiler",
        kind=None,
    )
    unevaluated = metric("response_match_score", status=Status.NOT_EVALUATED)
    expected = "no response within 30 s (tools.py:41 in wait_for_boiler). Raise --timeout or fix the tool"
    result = case(Status.ERROR, unevaluated, error=error, turns=(turn([call("f")], []),))
    assert sentence(result) == summary(result) == crash_text(error) == expected


def test_an_error_of_a_metric_and_a_failure_are_both_told():
    raised = MetricResult(
        "judge", None, 0.5, Status.ERROR, error=ErrorInfo("RuntimeError", "judge 500", kind=None)
    )
    result = case(BAD, raised, metric("politeness", score=0.1, threshold=0.5))
    assert sentence(result) == "politeness 0.10 < 0.50; judge: RuntimeError: judge 500"
    assert sentence(case(Status.ERROR, raised)) == "judge: RuntimeError: judge 500"


def test_why_a_metric_was_not_evaluated():
    result = case(
        Status.NOT_EVALUATED, metric("safety_v1", status=Status.NOT_EVALUATED, reason="needs Vertex AI")
    )
    assert sentence(result) == "safety_v1 not evaluated: needs Vertex AI"
    assert summary(result) == "safety_v1: needs Vertex AI"


def test_no_metric_at_all():
    count = metric("tool_call_count_v1", status=Status.INFORMATIONAL)
    assert sentence(case(Status.NOT_EVALUATED)) == "no metric evaluated"
    assert sentence(case(Status.NOT_EVALUATED, count)) == "no metric evaluated"


def test_a_passed_case():
    passed = metric("response_match_score", OK, status=OK)
    count = metric("tool_call_count_v1", status=Status.INFORMATIONAL)
    assert sentence(case(OK, passed, passed, passed, count)) == "3/3 metrics passed"
    assert sentence(case(OK, passed)) == summary(case(OK, passed)) == ""


def test_several_runs():
    repeats = tuple(RepeatResult(status) for status in (OK, BAD, OK, BAD, OK))
    missing = turn([call("f")], [])
    flaky = case(
        Status.FLAKY,
        metric("tool_trajectory_avg_score", BAD),
        turns=(missing,),
        repeats=repeats,
        policy="majority",
    )
    assert sentence(flaky) == "3/5 repeats passed, policy majority met: missing call f"
    assert summary(flaky) == "policy majority met: missing call f"
    assert summary(replace(flaky, policy="all", policy_met=False)) == "policy all not met: missing call f"


def test_a_single_run_is_explained_alike():
    repeat = RepeatResult(BAD, NIGHT.metrics, turns=NIGHT.turns)
    assert sentence(repeat) == sentence(NIGHT)
