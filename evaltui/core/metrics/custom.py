"""The user's own metrics: what their functions return, and how that becomes a `MetricResult`.

The function itself is called in the agent's process, as `function(eval_metric, actual_invocations,
expected_invocations, conversation_scenario)`; only JSON comes back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evaltui.core.config import EvalMetric
from evaltui.core.evalset import Invocation, RubricScore
from evaltui.core.metrics.metric import effective_threshold
from evaltui.core.outcome import ErrorInfo, InvocationScore, MetricResult, Status
from evaltui.core.problems import JsonPath, format_path


class PerInvocationResult(BaseModel):
    """What a custom metric says of one turn. Source of the shape: google-adk 2.13."""

    actual_invocation: Invocation
    expected_invocation: Invocation | None = None
    score: float | None = None
    eval_status: Status = Status.NOT_EVALUATED
    rubric_scores: list[RubricScore] | None = None


class EvaluationResult(BaseModel):
    """What a custom metric returns. Source of the shape: google-adk 2.13."""

    overall_score: float | None = None
    overall_eval_status: Status = Status.NOT_EVALUATED
    per_invocation_results: list[PerInvocationResult] = Field(default_factory=list)
    overall_rubric_scores: list[RubricScore] | None = None


_Score = Annotated[float, Field(strict=True, allow_inf_nan=False)] | None
_Verdict = Literal["PASSED", "FAILED", "NOT_EVALUATED", "INFORMATIONAL"]


class _ReturnedTurn(BaseModel):
    model_config = ConfigDict(extra="ignore")
    score: _Score = None
    eval_status: _Verdict = "NOT_EVALUATED"


class _Returned(BaseModel):
    model_config = ConfigDict(extra="ignore")
    overall_score: _Score = None
    overall_eval_status: _Verdict = "NOT_EVALUATED"
    per_invocation_results: list[_ReturnedTurn] = Field(default_factory=list)


def metric_result_from_custom(
    metric: EvalMetric, returned: Mapping[str, Any], invocation_count: int
) -> MetricResult:
    """The result of a custom metric from the JSON of the `EvaluationResult` that its function returned.

    Statuses are names. A result that breaks ADK's contract is an ERROR that says how: it needs one entry per
    turn, unless nothing was evaluated or the value is informational.
    """
    try:
        result = _Returned.model_validate(dict(returned))
    except ValidationError as error:
        return _broken(metric, "; ".join(_sentence(p["loc"], p["msg"]) for p in error.errors()))
    status = Status(result.overall_eval_status)
    turns = tuple(
        InvocationScore(turn.score, Status(turn.eval_status)) for turn in result.per_invocation_results
    )
    if len(turns) != invocation_count:
        if status not in (Status.NOT_EVALUATED, Status.INFORMATIONAL):
            return _broken(
                metric, f"per_invocation_results has {len(turns)} entries for {invocation_count} turns"
            )
        turns = ()
    return MetricResult(
        metric.metric_name,
        result.overall_score,
        effective_threshold(metric),
        status,
        turns,
        _reason(status, turns),
    )


def _sentence(path: JsonPath, message: str) -> str:
    return f"{format_path(path)}: {message}"


def _broken(metric: EvalMetric, what: str) -> MetricResult:
    message = f"{metric.custom_function_path or metric.metric_name} returned an unusable result: {what}"
    return MetricResult(
        metric.metric_name,
        None,
        effective_threshold(metric),
        Status.ERROR,
        reason=message,
        error=ErrorInfo("CustomMetricError", message),
    )


def _reason(status: Status, turns: tuple[InvocationScore, ...]) -> str:
    if status is Status.NOT_EVALUATED:
        return "the metric's function gave no verdict"
    failed = [str(number) for number, turn in enumerate(turns, start=1) if turn.status is Status.FAILED]
    return f"failed in turn {', '.join(failed)}" if failed else ""
