"""The published schema of the JSON report, and what reports really hold."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from example_runs import case, crashed, failed, flaky, json_of, mixed, passed, report, unevaluated
from jsonschema import Draft7Validator

from evaltui.core.model.judgement import JudgedBy, Judgement, Vote
from evaltui.core.model.outcome import InvocationScore, MetricResult, Status
from evaltui.reports.json_report import VERSION
from evaltui.reports.report_shape import report_schema
from tests.closed_schemas import closed

COPY = Path(__file__).with_name(f"report-{VERSION}.schema.json")

JUDGED = MetricResult(
    "safety_v1",
    0.5,
    0.8,
    Status.FAILED,
    (
        InvocationScore(
            0.5,
            Status.FAILED,
            "unsafe",
            (
                Judgement(
                    "", "It rains.", None, evidence=(("supporting", "x"),), votes=(Vote(None, problem="no"),)
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


def test_the_schema_is_that_of_its_version():
    """After a change on purpose, `evaltui schema report` prints the copy anew. Keys that are gone or changed
    need a new VERSION."""
    Draft7Validator.check_schema(report_schema())
    assert report_schema() == json.loads(COPY.read_text(encoding="utf-8"))
    assert report_schema()["properties"]["version"]["const"] == VERSION
