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


def by_calls(*turns, statuses=None, name="tool_trajectory_avg_score"):
    return case(BAD, metric(name, *(statuses or [BAD] * len(turns))), turns=turns)


def flaky(**fields):
    repeats = tuple(RepeatResult(status) for status in (OK, BAD, OK, BAD, OK))
    return replace(by_calls(turn([call("f")], [])), status=Status.FLAKY, repeats=repeats, **fields)


def unchecked(expectation):
    turns = (replace(KITCHEN, expectation=expectation), KITCHEN)
    return case(BAD, metric("tool_trajectory_avg_score", reason="r"), turns=turns)


KITCHEN_DIFFERS = 'set_temperature: degrees is "19" (string), expected 19; unexpected call notify_user'
ARGS = turn([call("f", a=1, b=2, c=3)], [call("f", a=1, c=None, d=[4])])
MOVED = turn([call("f"), call("g"), call("h"), call("i")], [call("g"), call("h"), call("f")])
LIGHTS = turn([call("dim", room="Hall"), call("dim", room="Bath")], [call("dim", room="Hall")])
MANY_ARGS = turn([call("f", **dict.fromkeys("abcdefgh", 1))], [call("f", **dict.fromkeys("abcdefgh", 2))])
SWAPPED, SILENT = turn([call("f")], [call("g")]), turn([call("f")], [], said="nope")
TIMEOUT = ErrorInfo(
    "TimeoutError",
    "no response within 30 s\nmore",
    "Traceback ...",
    "tools.py:41 in wait_for_boiler",
    kind=None,
)
TIMED_OUT = "no response within 30 s (tools.py:41 in wait_for_boiler). Raise --timeout or fix the tool"
ANSWER, COUNT = "response_match_score", metric("tool_call_count_v1", status=Status.INFORMATIONAL)
PASSED = metric(ANSWER, OK, status=OK)
RAISED = MetricResult(
    "judge", None, 0.5, Status.ERROR, error=ErrorInfo("RuntimeError", "judge 500", kind=None)
)
UNKNOWN = metric("safety_v1", status=Status.NOT_EVALUATED, reason="needs Vertex AI")
SENTENCES = {
    "calls of a turn": (NIGHT, f"turn 2: {KITCHEN_DIFFERS}"),
    "a single turn needs no number": (by_calls(KITCHEN), KITCHEN_DIFFERS),
    "a turn that passed": (replace(NIGHT, turns=(KITCHEN, KITCHEN)), f"turn 2: {KITCHEN_DIFFERS}"),
    "a turn that is not checked": (unchecked("not checked"), f"turn 2: {KITCHEN_DIFFERS}"),
    "a context turn": (unchecked("context"), f"turn 2: {KITCHEN_DIFFERS}"),
    "recall and extra calls": (by_calls(SWAPPED, name="trajectory_recall"), "missing call f"),
    "precision and missing calls": (by_calls(SWAPPED, name="trajectory_precision"), "unexpected call g"),
    "arguments": (by_calls(ARGS), "f: missing b; c is null, expected 3; unexpected d [4]"),
    "order": (by_calls(MOVED), "missing call i; f out of order"),
    "one of two calls of a name": (by_calls(LIGHTS), 'missing call dim (room "Bath")'),
    "an answer": (
        case(BAD, metric(ANSWER, BAD, OK, threshold=0.8), turns=(turn(said="nope"), turn())),
        "turn 1: response 0.00 < 0.80",
    ),
    "no answer": (case(BAD, metric(ANSWER, BAD), turns=(turn(said=None),)), "no response"),
    "reasons follow the turns": (
        case(BAD, metric(ANSWER, BAD, BAD), *by_calls(SILENT, SILENT).metrics, turns=(SILENT, SILENT)),
        "turn 1: missing call f; response 0.00 < 1.00; turn 2: missing call f; response 0.00 < 1.00",
    ),
    "many reasons": (
        by_calls(turn([call(name) for name in "abcdef"], [])),
        "missing call a; missing call b; missing call c; 3 more",
    ),
    "many arguments": (
        by_calls(MANY_ARGS),
        "f: a is 2, expected 1; b is 2, expected 1; c is 2, expected 1; 5 more",
    ),
    "another metric": (
        case(BAD, metric("politeness", BAD, score=0.25, threshold=0.5, reason="rude\x1b[0m")),
        "politeness 0.25 < 0.50: rude\\x1b[0m",
    ),
    "a metric without a difference": (
        case(BAD, metric("tool_trajectory_avg_score", score=0.0), turns=(turn(),)),
        "tool_trajectory_avg_score 0.00 < 1.00",
    ),
    "the final state": (
        case(BAD, metric("final_session_state"), state=(StateDiff("lights.hall", "on", "off"),)),
        'final state lights.hall is "off", expected "on"',
    ),
    "an error of the agent": (
        case(Status.ERROR, metric(ANSWER, status=Status.NOT_EVALUATED), error=TIMEOUT, turns=(SILENT,)),
        TIMED_OUT,
    ),
    "an error of a metric beside a failure": (
        case(BAD, RAISED, metric("politeness", score=0.1, threshold=0.5)),
        "politeness 0.10 < 0.50; judge: RuntimeError: judge 500",
    ),
    "an error of a metric": (case(Status.ERROR, RAISED), "judge: RuntimeError: judge 500"),
    "not evaluated": (case(Status.NOT_EVALUATED, UNKNOWN), "safety_v1 not evaluated: needs Vertex AI"),
    "no metric": (case(Status.NOT_EVALUATED), "no metric evaluated"),
    "informational metrics only": (case(Status.NOT_EVALUATED, COUNT), "no metric evaluated"),
    "passed": (case(OK, PASSED, PASSED, PASSED, COUNT), "3/3 metrics passed"),
    "passed by one metric": (case(OK, PASSED), ""),
    "several runs": (flaky(policy="majority"), "3/5 repeats passed, policy majority met: missing call f"),
    "a single run": (RepeatResult(BAD, NIGHT.metrics, turns=NIGHT.turns), f"turn 2: {KITCHEN_DIFFERS}"),
}
# Where the summary, which stands in a list, says less.
SUMMARIES = {
    "not evaluated": "safety_v1: needs Vertex AI",
    "passed": "",
    "several runs": "policy majority met: missing call f",
}


@pytest.mark.parametrize("name", SENTENCES)
def test_a_result_in_one_sentence(name):
    result, said = SENTENCES[name]
    assert sentence(result) == said
    assert summary(result) == SUMMARIES.get(name, said)


def test_a_policy_that_is_not_met():
    assert summary(flaky(policy="all", policy_met=False)) == "policy all not met: missing call f"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (ARGS.calls[0], SENTENCES["arguments"][1]),
        (align_calls([Call("f", {})], [Call("f", None)])[0], "f: args is null, expected {}"),
        (MOVED.calls[0], "g as expected"),
        (LIGHTS.calls[1], "missing call dim"),
        (MANY_ARGS.calls[0], SENTENCES["many arguments"][1]),
    ],
    ids=["arguments", "no arguments", "the same", "missing", "many arguments"],
)
def test_a_call_in_words(row, words):
    assert describe_call(row) == words


def test_a_crash_in_words():
    assert crash_text(TIMEOUT) == TIMED_OUT
