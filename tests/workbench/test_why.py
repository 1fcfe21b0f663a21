"""The cause of an outcome in the list of cases."""

import pytest

from evaltui.core.model.outcome import (
    Call,
    CallDiff,
    CaseResult,
    ErrorInfo,
    ErrorKind,
    MetricResult,
    Status,
    TurnResult,
)
from evaltui.core.model.text_diff import ResponseDiff
from evaltui.views.cause import cause_text

CALL = Call("tool", {})
DIFFS = {
    "same": CallDiff("same", CALL, CALL),
    "missing": CallDiff("missing", CALL, None),
    "extra": CallDiff("extra", None, CALL),
    "moved": CallDiff("moved", CALL, CALL),
}


def result(status, *ops, metric="tool_trajectory_avg_score", score=0.0, error=None):
    turn = TurnResult("these calls", tuple(DIFFS[op] for op in ops), ResponseDiff(None, None))
    failed = MetricResult(metric, score, 1.0, Status.FAILED)
    return CaseResult("case", status, metrics=(failed,), turns=(turn,), error=error)


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (result(Status.PASSED), ""),
        (result(Status.FAILED, "same", "missing"), "1 call missing"),
        (result(Status.FAILED, "missing", "missing"), "2 missing"),
        (result(Status.FAILED, "extra"), "1 unexpected"),
        (result(Status.FAILED, "moved", "moved"), "out of order"),
        (result(Status.FAILED, "missing", "extra"), "2 differences"),
        (result(Status.FAILED, metric="response_match_score", score=0.12), "response 0.12"),
        (result(Status.FAILED, metric="final_session_state"), "final state"),
        (result(Status.ERROR, error=ErrorInfo("ValueError", "no", kind=None)), "ValueError"),
        (result(Status.ERROR, error=ErrorInfo("TimeoutError", "no", kind=None)), "timeout"),
        (result(Status.ERROR, error=ErrorInfo("_Exhausted", "429", kind=ErrorKind.RATE_LIMIT)), "rate limit"),
    ],
)
def test_why(one, text):
    assert cause_text(one) == text
    assert len(text) <= 14
