"""Verdicts on single turns, and differences of responses.

Statuses are compared as texts, so that a case without a result can be drawn without importing the models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from evaltui.text.outcomes import LEFT_OUT_REASONS

if TYPE_CHECKING:
    from evaltui.core.metrics.declaration import MetricInfo
    from evaltui.core.model.outcome import CaseResult, InvocationScore, MetricResult, RepeatResult, TurnResult
    from evaltui.core.model.text_diff import IntermediateDiff


def metric_info(name: str) -> MetricInfo:
    """The declaration of a metric; only a result needs the metrics, which build on the models."""
    from evaltui.core.metrics.registry import info_of

    return info_of(name)


def turn_status(result: CaseResult | RepeatResult, turn: int) -> str | None:
    """The worst verdict of metrics on a turn, from 0; None where no metric gives one.

    A metric that leaves the turn out counts only where no other metric scores the turn.
    """
    if turn < len(result.turns) and result.turns[turn].expectation == "context":
        return None
    deciding = [
        (metric, metric.per_invocation[turn])
        for metric in result.metrics
        if metric.status != "INFORMATIONAL"
        and turn < len(metric.per_invocation) == len(result.turns)
        and not metric_info(metric.name).whole_conversation
    ]
    is_scored = any(score.score is not None for _, score in deciding)
    statuses = {score.status for metric, score in deciding if not (is_scored and _leaves_out(metric, score))}
    return next(
        (status for status in ("FAILED", "ERROR", "NOT_EVALUATED", "PASSED") if status in statuses), None
    )


def _leaves_out(metric: MetricResult, score: InvocationScore) -> bool:
    """Whether a metric decides by other turns, as it is not to score this one."""
    has_verdict = metric.score is not None or metric.is_passed_over
    return has_verdict and score.reason in LEFT_OUT_REASONS


def response_op(result: CaseResult | RepeatResult, number: int) -> Literal["", "within", "changed"]:
    """How the response of a turn, from 0, differs: not at all, within the threshold of a metric that compares
    responses, or more than that."""
    from evaltui.core.metrics.answer_rules import ANSWER_RULES

    turn = result.turns[number]
    by_metric = {
        metric.name: metric.per_invocation[number].status
        for metric in result.metrics
        if len(metric.per_invocation) == len(result.turns)
    }
    if by_metric.get(ANSWER_RULES) == "FAILED":
        return "changed"
    statuses = {status for name, status in by_metric.items() if metric_info(name).compares == "response"}
    if not answer_differs(turn):
        # Without an expected response none can match.
        is_unexpected = bool(turn.response.actual) and not turn.response.expected
        return "changed" if is_unexpected and "FAILED" in statuses else ""
    return "within" if statuses == {"PASSED"} else "changed"


def text_differs(result: CaseResult | RepeatResult, number: int, diff: IntermediateDiff) -> bool:
    """Whether a text before the response of a turn, from 0, is a reason why its metric failed."""
    return diff.expected != diff.actual and any(
        metric.per_invocation[number].status == "FAILED"
        for metric in result.metrics
        if metric_info(metric.name).compares == "texts" and len(metric.per_invocation) == len(result.turns)
    )


def answer_differs(turn: TurnResult) -> bool:
    """Whether the actual answer is known to differ from an expected one."""
    response = turn.response
    is_compared = bool(response.expected) and turn.expectation != "context" and not response.is_unknown
    return is_compared and response.expected != response.actual
