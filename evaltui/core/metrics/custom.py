"""Custom metrics: the data that their functions return, as a `MetricResult`.

The functions are called in a process of their own, which returns JSON. ADK's form is `function(eval_metric,
actual_invocations, expected_invocations, conversation_scenario)`, which returns a verdict; the short form is
`function(actual, expected, criterion)`, which returns the score of a turn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from evaltui.core.metrics.metric import (
    MetricInput,
    criterion_extra,
    effective_threshold,
    failed_with,
    left_out_turns,
    mean,
    not_evaluated,
    nothing_to_score,
    required_threshold,
    unscored_turn,
    verdict,
    without_hint,
)
from evaltui.core.model.base_model import DataModel
from evaltui.core.model.config import EvalMetric
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.eval_set import Invocation, Rubric, RubricScore
from evaltui.core.model.json_values import list_or_empty
from evaltui.core.model.judgement import Judgement
from evaltui.core.model.outcome import ErrorInfo, InvocationScore, MetricResult, Status
from evaltui.core.model.problems import format_path
from evaltui.text.figures import counted
from evaltui.text.outcomes import NO_SCORE

# The name that ADK has for it; a metric may say PASSED, FAILED, NOT_EVALUATED or INFORMATIONAL.
EvalStatus = Status


def _foreign_data(value: Any) -> Any:
    """The data of a model from another package with the same fields, such as ADK's."""
    if isinstance(value, BaseModel) and not isinstance(value, Invocation | RubricScore):
        return value.model_dump(exclude_none=True)
    return value


_AnyInvocation = Annotated[Invocation, BeforeValidator(_foreign_data)]
_AnyRubricScore = Annotated[RubricScore, BeforeValidator(_foreign_data)]


class PerInvocationResult(DataModel):
    """Result of a custom metric for one turn. Source of the shape: google-adk 2.13."""

    actual_invocation: _AnyInvocation
    expected_invocation: _AnyInvocation | None = None
    score: float | None = None
    eval_status: Status = Status.NOT_EVALUATED
    rubric_scores: list[_AnyRubricScore] | None = None


class EvaluationResult(DataModel):
    """Result that a custom metric returns. Source of the shape: google-adk 2.13."""

    overall_score: float | None = None
    overall_eval_status: Status = Status.NOT_EVALUATED
    per_invocation_results: list[PerInvocationResult] = Field(default_factory=list)
    overall_rubric_scores: list[_AnyRubricScore] | None = None


_Score = Annotated[float, Field(strict=True, allow_inf_nan=False)] | None
_Verdict = Literal["PASSED", "FAILED", "NOT_EVALUATED", "INFORMATIONAL"]


class _Returned(DataModel):
    model_config = ConfigDict(extra="ignore")


class _ReturnedRubric(_Returned):
    rubric_id: str
    rationale: str | None = None
    score: _Score = None


class _ReturnedTurn(_Returned):
    score: _Score = None
    eval_status: _Verdict = "NOT_EVALUATED"
    rubric_scores: list[_ReturnedRubric] | None = None


class _ReturnedResult(_Returned):
    overall_score: _Score = None
    overall_eval_status: _Verdict = "NOT_EVALUATED"
    per_invocation_results: list[_ReturnedTurn] = Field(default_factory=list)
    overall_rubric_scores: list[_ReturnedRubric] | None = None


class _ReturnedScore(_Returned):
    score: _Score = None
    error: ErrorInfo | None = None


def result_of_evaluation(inputs: MetricInput, returned: Mapping[str, Any], where: str = "") -> MetricResult:
    """The result of a metric from the JSON of the `EvaluationResult` that its function returned.

    The function decides its statuses and thresholds. A result that breaks ADK's contract is an ERROR with the
    reason: it needs one entry per turn, unless nothing was evaluated or the value is informational. A score
    that is no number, or outside of the interval in the config, is also an ERROR, except for ADK's verdicts.
    `where` is the place of the function in its file.
    """
    metric, count = inputs.metric, len(inputs.actual)
    try:
        result = _ReturnedResult.model_validate(
            _drop_non_finite(returned) if inputs.as_adk else dict(returned)
        )
    except ValidationError as error:
        return _malformed(metric, error, where)
    status = Status(result.overall_eval_status)
    entries = result.per_invocation_results
    if len(entries) != count:
        if status not in (Status.NOT_EVALUATED, Status.INFORMATIONAL):
            counts = f"{counted(len(entries), 'entry', 'entries')} for {counted(count, 'turn')}"
            return _broken_contract(metric, f"per_invocation_results has {counts}", where)
        entries = []
    scores = [result.overall_score, *(turn.score for turn in entries)]
    if wrong := _outside_text(inputs, scores):
        return _broken_contract(metric, wrong, where)
    rubrics = _rubric_texts(inputs)
    turns = [
        InvocationScore(
            turn.score, Status(turn.eval_status), judgements=_judgements(turn.rubric_scores, rubrics)
        )
        for turn in entries
    ]
    if turns and not any(turn.judgements for turn in turns):
        # As metrics that judge the conversation as one: what they found stands at the last turn.
        turns[-1] = replace(turns[-1], judgements=_judgements(result.overall_rubric_scores, rubrics))
    return MetricResult(
        metric.metric_name,
        result.overall_score,
        effective_threshold(metric),
        status,
        per_invocation=tuple(turns),
        reason=_reason(status, turns, result.overall_score),
    )


def _drop_non_finite(value: Any) -> Any:
    """The data without NaN and infinite scores, for which google-adk keeps the status."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {name: _drop_non_finite(item) for name, item in value.items()}
    return [_drop_non_finite(item) for item in value] if isinstance(value, list) else value


def result_of_turns(inputs: MetricInput, returned: Sequence[Mapping[str, Any]]) -> MetricResult:
    """The result of a metric in short form: the mean of the turn scores, compared with the threshold.

    `returned` has for each turn its `score`, None for no score, or the `error` that the function raised. An
    error in a turn makes the metric an ERROR; context turns are skipped.
    """
    metric, threshold = inputs.metric, required_threshold(inputs.metric)
    try:
        parsed = [_ReturnedScore.model_validate(dict(turn)) for turn in returned]
    except ValidationError as error:
        return _malformed(metric, error)
    without = left_out_turns(inputs)
    turns = [
        unscored_turn(without[number]) if number in without else _scored_turn(turn, metric, threshold)
        for number, turn in enumerate(parsed)
    ]
    for number, turn in enumerate(parsed):
        if turn.error is not None and number not in without:
            return MetricResult(
                metric.metric_name,
                None,
                threshold,
                Status.ERROR,
                per_invocation=tuple(turns),
                reason=f"turn {number + 1}: {turn.error}",
                error=turn.error.of_judge,
            )
    scores = [turn.score for turn in turns if turn.score is not None]
    if wrong := _outside_text(inputs, scores):
        return replace(_broken_contract(metric, wrong), per_invocation=tuple(turns))
    if not scores:
        why = nothing_to_score(turns) if len(without) == len(turns) else "no score from its function"
        return not_evaluated(metric, why, tuple(turns))
    score = mean(scores)
    return MetricResult(
        metric.metric_name,
        score,
        threshold,
        _verdict(score, metric, threshold),
        per_invocation=tuple(turns),
        reason=_failed_turns(turns),
    )


def result_of_instance(inputs: MetricInput, returned: Mapping[str, Any], where: str = "") -> MetricResult:
    """The result of a function of agents-cli from its `score` and its `explanation`, as JSON.

    `where` is the place of the function in its file.
    """
    metric = inputs.metric
    try:
        score = _ReturnedScore.model_validate(dict(returned)).score
    except ValidationError as error:
        return _malformed(metric, error, where)
    explanation = str(returned.get("explanation") or "")
    if score is None:
        return not_evaluated(metric, explanation or "no score from its function")
    threshold = required_threshold(metric)
    return MetricResult(
        metric.metric_name,
        score,
        effective_threshold(metric),
        _verdict(score, metric, threshold),
        reason=explanation,
    )


def rejudge(earlier: MetricResult, metric: EvalMetric) -> MetricResult:
    """An earlier result of a metric that gives scores alone, by the threshold that it has now."""
    threshold = required_threshold(metric)
    turns = tuple(
        turn if turn.score is None else replace(turn, status=_verdict(turn.score, metric, threshold))
        for turn in earlier.per_invocation
    )
    if earlier.score is None:
        return replace(earlier, threshold=threshold, per_invocation=turns)
    return replace(
        earlier,
        threshold=threshold,
        status=_verdict(earlier.score, metric, threshold),
        per_invocation=turns,
        # Of a function that scores the conversation as one, its explanation.
        reason=_failed_turns(turns) if turns else without_hint(earlier),
    )


def _scored_turn(turn: _ReturnedScore, metric: EvalMetric, threshold: float) -> InvocationScore:
    if turn.error is not None:
        return InvocationScore(None, Status.ERROR, str(turn.error))
    if turn.score is None:
        return unscored_turn(NO_SCORE)
    return InvocationScore(turn.score, _verdict(turn.score, metric, threshold))


def _verdict(score: float, metric: EvalMetric, threshold: float) -> Status:
    return verdict(score, threshold, lower_is_better=metric.lower_is_better)


def _outside_text(inputs: MetricInput, scores: Sequence[float | None]) -> str:
    interval = inputs.metric.interval
    if interval is None or inputs.as_adk:
        return ""
    wrong = next((score for score in scores if score is not None and not interval.holds(score)), None)
    return "" if wrong is None else f"the score {wrong:g}, where the config promises {interval}"


def _rubric_texts(inputs: MetricInput) -> dict[str, str]:
    """The texts of rubrics by id; of two with one id, the one of a turn, then the one of the case."""
    texts: dict[str, str] = {}
    for raw in list_or_empty(criterion_extra(inputs.metric).get("rubrics")):
        try:
            rubric = Rubric.model_validate(raw)
        except ValidationError:
            continue
        texts[rubric.rubric_id] = rubric.rubric_content.text_property or ""
    of_turns = [rubric for turn in inputs.expected or () for rubric in turn.rubrics or ()]
    for rubric in (*inputs.case_rubrics, *of_turns):
        texts[rubric.rubric_id] = rubric.rubric_content.text_property or ""
    return texts


def _judgements(scores: Sequence[_ReturnedRubric] | None, texts: Mapping[str, str]) -> tuple[Judgement, ...]:
    return tuple(
        Judgement(rubric.rubric_id, texts.get(rubric.rubric_id, ""), rubric.score, rubric.rationale or "")
        for rubric in scores or ()
    )


def _malformed(metric: EvalMetric, error: ValidationError, where: str = "") -> MetricResult:
    problems = [f"{format_path(problem['loc'])}: {problem['msg']}" for problem in error.errors()]
    return _broken_contract(metric, "; ".join(problems), where)


def _broken_contract(metric: EvalMetric, what: str, where: str = "") -> MetricResult:
    message = f"{metric.custom_function_path or metric.metric_name} returned an unusable result: {what}"
    return failed_with(metric, ErrorInfo("CustomMetricError", message, where=where, kind=ErrorKind.JUDGE))


def _reason(status: Status, turns: Sequence[InvocationScore], score: float | None) -> str:
    if status is not Status.NOT_EVALUATED:
        return _failed_turns(turns)
    if score is None:
        return "no verdict from the metric's function"
    return "the metric's function returned no overall_eval_status"


def _failed_turns(turns: Sequence[InvocationScore]) -> str:
    failed = [str(number) for number, turn in enumerate(turns, start=1) if turn.status is Status.FAILED]
    return f"failed in turn {', '.join(failed)}" if failed else ""
