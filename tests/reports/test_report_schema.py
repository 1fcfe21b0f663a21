"""The published schema of the JSON report, and what reports really hold."""

from dataclasses import replace

import pytest
from example_runs import case, crashed, failed, flaky, json_of, mixed, passed, report, unevaluated

from evaltui.core.model.judgement import Evidence, JudgedBy, Judgement, Vote
from evaltui.core.model.outcome import InvocationScore, MetricResult, Status
from evaltui.reports.json_report import report_schema
from tests.closed_schemas import closed

JUDGED = MetricResult(
    "safety_v1",
    0.5,
    0.8,
    Status.FAILED,
    per_invocation=(
        InvocationScore(
            0.5,
            Status.FAILED,
            "unsafe",
            (
                Judgement(
                    "",
                    "It rains.",
                    None,
                    evidence=(Evidence("supporting", "x"),),
                    votes=(Vote(None, problem="no"),),
                ),
            ),
        ),
    ),
    judge=JudgedBy("gemini", "safety/1", 2, 2),
)


@pytest.mark.parametrize(
    "run",
    [
        mixed(),
        report(passed(), failed(), crashed(), unevaluated(), flaky(), flaky(met=True, policy="majority")),
        report(case("j", Status.FAILED, metrics=(JUDGED,), stopped="signal")),
        report(),
        replace(mixed(), seconds=None),
    ],
)
def test_reports_have_the_keys_of_the_schema_and_no_others(run):
    document = json_of(run)
    assert [error.message for error in closed(report_schema()).iter_errors(document)] == []
