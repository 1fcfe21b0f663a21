"""Runs for the tests of reports and result files."""

import json
from datetime import UTC, datetime

from evaltui.core.compare.diff import align_calls
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.eval_set import Invocation
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
    worst_status,
)
from evaltui.core.model.text_diff import AuthoredText, ResponseDiff
from evaltui.core.secrets import Secrets
from evaltui.project.configs import ConfigInUse
from evaltui.project.run_settings import RunSettings
from evaltui.reports.json_report import json_report
from evaltui.runner.plan import SetPlan
from evaltui.runs.adk_document import adk_result
from evaltui.runs.report import ReportedCases, RunReport
from evaltui.runs.run_header import SelectedSet

DEFAULTS = {"criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}}


def trajectory_metric(*statuses):
    """A trajectory metric over turns of these statuses."""
    scores = tuple(InvocationScore(float(status is Status.PASSED), status) for status in statuses)
    mean = sum(one.score for one in scores) / len(scores)
    return MetricResult("tool_trajectory_avg_score", mean, 1.0, worst_status(statuses), per_invocation=scores)


def answer_metric(*scores):
    """A response metric over turns with these scores."""
    turns = tuple(InvocationScore(score, _verdict(score)) for score in scores)
    mean = sum(scores) / len(scores)
    return MetricResult("response_match_score", mean, 0.8, _verdict(mean), per_invocation=turns)


def _verdict(score):
    return Status.PASSED if score >= 0.8 else Status.FAILED


def said(text):
    return Invocation.model_validate({"user_content": {"role": "user", "parts": [{"text": text}]}})


def case(eval_id, status, *, seconds=1.5, actual=(), **fields):
    """A case that was run once."""
    repeat = RepeatResult(status, fields.get("metrics", ()), actual=tuple(actual), seconds=seconds)
    return CaseResult(eval_id, status, **{"eval_set_id": "thermostat", "repeats": (repeat,), **fields})


def passed(eval_id="turn_off_bedroom"):
    turn = TurnResult("no calls", (), ResponseDiff("Done.", "Done."))
    metrics = (trajectory_metric(Status.PASSED), answer_metric(1.0))
    return case(eval_id, Status.PASSED, metrics=metrics, turns=(turn,))


def failed(eval_id="thermostat_night"):
    first = TurnResult("no calls", (), ResponseDiff("Hi.", "Hi."))
    calls = align_calls(
        [Call("get_mode", {}), Call("set_temperature", {"location": "Kitchen", "degrees": 19})],
        [
            Call("get_mode", {}),
            Call("set_temperature", {"location": "Kitchen", "degrees": "19"}),
            Call("notify_user", {"message": "too cold"}),
        ],
    )
    second = TurnResult(
        "these calls",
        calls,
        ResponseDiff("The kitchen is now 19 °C.", "The kitchen is set to 19 °C.", 0.77),
        unscored=(AuthoredText("root_agent", "Let me check."),),
    )
    return case(
        eval_id,
        Status.FAILED,
        metrics=(trajectory_metric(Status.PASSED, Status.FAILED), answer_metric(1.0, 0.77)),
        turns=(first, second),
        state=(StateDiff("kitchen.degrees", 19, "19"),),
        actual=(said("hello"), said("And the kitchen?")),
    )


def crashed(eval_id="away_for_a_week"):
    error = ErrorInfo(
        "TimeoutError",
        "no response within 30 s",
        'Traceback (most recent call last):\n  File "tools.py", line 41, in wait_for_boiler\n',
        "tools.py:41 in wait_for_boiler",
        kind=ErrorKind.TIMEOUT,
    )
    return case(eval_id, Status.ERROR, error=error)


def unevaluated(eval_id="judged"):
    metric = MetricResult("safety_v1", None, 0.5, Status.NOT_EVALUATED, reason="needs Vertex AI")
    return case(eval_id, Status.NOT_EVALUATED, metrics=(metric,))


def flaky(eval_id="movie_mode", *, met=False, policy="all"):
    statuses = (Status.PASSED, Status.FAILED, Status.PASSED, Status.FAILED, Status.PASSED)
    missing = TurnResult(
        "these calls", align_calls([Call("dim", {"to": 5})], []), ResponseDiff("Enjoy.", "Enjoy.")
    )
    return case(
        eval_id,
        Status.FLAKY,
        metrics=(trajectory_metric(Status.FAILED),),
        turns=(missing,),
        repeats=tuple(RepeatResult(status, seconds=0.5) for status in statuses),
        policy=policy,
        policy_met=met,
    )


def report(*cases, **fields):
    """A run of one set with the default config."""
    eval_set = SelectedSet(
        "thermostat",
        "thermostat",
        (),
        DEFAULTS,
        file="home/thermostat.evalset.json",
        defaulted=tuple(DEFAULTS["criteria"]),
    )
    status = worst_status(one.status for one in cases)
    started = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    usual = {
        "cases": ReportedCases(cases),
        "status": status,
        "agent": "home",
        "started": started,
        "seconds": 6.2,
        "sets": (eval_set,),
    }
    return RunReport(**{**usual, "settings": RunSettings(parallel=1), **fields})


def mixed():
    """A run with one case of every outcome."""
    return report(
        passed(),
        failed(),
        crashed(),
        unevaluated(),
        flaky(),
        flaky("movie_night", met=True, policy="majority"),
    )


def adk_document(eval_set_id, cases, created, *, expected=(), config=None):
    """What is kept for google-adk of cases of an agent `home`."""
    in_use = ConfigInUse(None, EvalConfig.model_validate(config or {}))
    eval_set = SetPlan(eval_set_id, eval_set_id, tuple(expected), in_use)
    result_id, pieces = adk_result(eval_set, cases, "home", created, Secrets())
    document = json.loads("".join(pieces))
    assert document["eval_set_result_id"] == result_id
    return document


def json_of(run):
    """The JSON report of a run, read back."""
    return strictly_read(json_report(run))


def strictly_read(pieces):
    """JSON text in pieces, as a reader takes it that knows no NaN and no lone surrogate."""

    def refuse(word):
        raise ValueError(word)

    return json.loads("".join(pieces).encode(), parse_constant=refuse)
