"""The report for other programs, as JSON. Its keys are a promise: they may grow in number, never change."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from evaltui.core.evalset import dump
from evaltui.core.outcome import (
    ArgDiff,
    Call,
    CallDiff,
    CaseResult,
    ErrorInfo,
    MetricResult,
    RepeatResult,
    StateDiff,
    Status,
    TurnResult,
)
from evaltui.reports.model import RunReport, SetInfo, count
from evaltui.reports.valid_json import valid_json

VERSION = 1

Json = dict[str, Any]


def json_report(report: RunReport) -> Json:
    """The report as data that any JSON writer takes: no NaN or infinity (null instead), no lone surrogate."""
    cases = report.result.cases
    document: Json = valid_json(
        {
            "version": VERSION,
            "status": report.result.status.value,
            "agent": report.agent,
            "started": _utc(report.started),
            "seconds": round(report.seconds, 3),
            "totals": {
                "cases": len(cases),
                "passed": count(cases, Status.PASSED),
                "failed": count(cases, Status.FAILED),
                "error": count(cases, Status.ERROR),
                "not_evaluated": count(cases, Status.NOT_EVALUATED),
                "flaky": count(cases, Status.FLAKY),
            },
            "log": report.log,
            "notes": report.notes,
            "sets": [_set(one) for one in report.sets],
        }
    )
    return document | {"cases": [case_result_json(case) for case in cases]}


def case_result_json(case: CaseResult, *, with_actual: bool = True) -> Json:
    """One case as it stands in the report; without what the agent did, where its events stand beside it."""
    document: Json = valid_json(
        {
            "eval_set_id": case.eval_set_id,
            "eval_id": case.eval_id,
            "status": case.status.value,
            "policy": {"pass_if": case.policy, "met": case.policy_met},
            "error": _error(case.error),
            "metrics": [_metric(metric) for metric in case.metrics],
            "repeats": [_repeat(repeat, with_actual) for repeat in case.repeats],
            "turns": [_turn(turn) for turn in case.turns],
            "state": [_state(diff) for diff in case.state],
        }
    )
    return document


def _set(info: SetInfo) -> Json:
    return {
        "eval_set_id": info.eval_set_id,
        "path": str(info.path),
        "config": {
            "path": None if info.config_path is None else str(info.config_path),
            "effective": info.effective,
            "defaulted": info.defaulted,
        },
    }


def _error(error: ErrorInfo | None) -> Json | None:
    if error is None:
        return None
    return {
        "type": error.type,
        "message": error.message,
        "traceback": error.traceback,
        "where": error.where,
    }


def _metric(metric: MetricResult) -> Json:
    return {
        "name": metric.name,
        "score": metric.score,
        "threshold": metric.threshold,
        "status": metric.status.value,
        "reason": metric.reason,
        "error": _error(metric.error),
        "details": metric.details,
        "per_turn": [
            {"score": turn.score, "status": turn.status.value, "reason": turn.reason}
            for turn in metric.per_invocation
        ],
    }


def _repeat(repeat: RepeatResult, with_actual: bool) -> Json:
    actual = {"actual": [dump(invocation) for invocation in repeat.actual]} if with_actual else {}
    return {
        "status": repeat.status.value,
        "error": _error(repeat.error),
        "metrics": [_metric(metric) for metric in repeat.metrics],
        "seconds": round(repeat.seconds, 3),
        **actual,
    }


def _turn(turn: TurnResult) -> Json:
    return {
        "expectation": turn.expectation,
        "calls": [_call_diff(diff) for diff in turn.calls],
        "response": {
            "expected": turn.response.expected,
            "actual": turn.response.actual,
            "score": turn.response.score,
        },
        "unscored": [{"author": author, "text": text} for author, text in turn.unscored],
    }


def _call_diff(diff: CallDiff) -> Json:
    return {
        "op": diff.op,
        "expected": _call(diff.expected),
        "actual": _call(diff.actual),
        "args": [_arg_diff(arg) for arg in diff.args],
    }


def _call(call: Call | None) -> Json | None:
    return None if call is None else {"name": call.name, "args": call.args}


def _arg_diff(arg: ArgDiff) -> Json:
    return {"path": arg.path, "op": arg.op, "expected": arg.expected, "actual": arg.actual}


def _state(diff: StateDiff) -> Json:
    return {"path": diff.path, "expected": diff.expected, "actual": diff.actual}


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
