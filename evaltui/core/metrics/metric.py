"""Common parts of metrics: input, thresholds, skipped turns, and the verdict over turns."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import ValidationError

from evaltui.core.matching.rules import CaseRules
from evaltui.core.model.config import BaseCriterion, EvalMetric
from evaltui.core.model.eval_set import ConversationScenario, EvalCase, Invocation, Rubric
from evaltui.core.model.events import TURN
from evaltui.core.model.json_values import camel
from evaltui.core.model.outcome import ErrorInfo, InvocationScore, MetricResult, Status
from evaltui.core.model.spending import Spending
from evaltui.text.figures import counted
from evaltui.text.outcomes import CALLS_NOT_CHECKED, CONTEXT_TURN, UNSPECIFIED_REASONS

_MAX_TURNS_NAMED = 3
# The score from which on an informational metric gives no reason.
_REFERENCE = 1.0
NOT_IN_TRACE = "turn not in the trace"


@dataclass(frozen=True)
class MetricInput:
    """The input of a metric.

    `expected` is None for a case without expected turns (a scenario). With `thoughts`, thoughts count as
    answer text, as in ADK. With `outputs`, `actual` has outputs of the agent as responses. Turns count from
    0: those in `context` are not scored, calls of those in `skip_calls` are not checked, and with
    `unspecified` absent responses and calls are not checked. `rules` allow differences between arguments.
    `case_rubrics` are the rubrics of the case, besides those of its turns; `scenario` is that of a simulated
    user. With `as_adk`, judges' answers are read as in ADK.
    """

    expected: Sequence[Invocation] | None
    actual: Sequence[Invocation]
    metric: EvalMetric
    thoughts: bool = False
    outputs: bool = False
    context: frozenset[int] = frozenset()
    skip_calls: frozenset[int] = frozenset()
    unspecified: bool = False
    rules: CaseRules = field(default_factory=dict)
    case_rubrics: Sequence[Rubric] = ()
    scenario: ConversationScenario | None = None
    case: EvalCase | None = None
    """The whole case, of a metric of agents-cli; None of any other metric."""
    as_adk: bool = False
    spent: Spending | None = None
    """Spending of the conversation's model calls; None where it is unknown."""


Metric = Callable[[MetricInput], MetricResult]


@dataclass(frozen=True)
class TurnScore:
    """The score of a turn, with the reason for a low score."""

    score: float
    reason: str = ""


class CriterionError(ValueError):
    """A metric cannot be computed by its criterion; the message tells the needed change."""


def criterion_extra(metric: EvalMetric) -> dict[str, Any]:
    """The keys of a criterion besides the common ones, in the config's spelling."""
    return (metric.criterion.model_extra or {}) if metric.criterion else {}


def criterion_option(metric: EvalMetric, name: str, default: Any = None) -> Any:
    """The value of a key besides the common ones, in either spelling."""
    extra = criterion_extra(metric)
    return extra.get(name, extra.get(camel(name), default))


def typed_option(metric: EvalMetric, name: str, default: Any) -> Any:
    """The value of a key as `criterion_option` gives it. Raises CriterionError where it has not the type of
    the default, or is a text without words."""
    value = criterion_option(metric, name, default)
    if type(value) is not type(default) or (isinstance(value, str) and not value.strip()):
        kind = "true or false" if isinstance(default, bool) else "a text"
        raise CriterionError(f"{name} of {metric.metric_name} must be {kind}")
    return value


def validation_text(error: ValidationError, as_a_whole: str = "") -> str:
    """The errors in words: `num_samples: Input should be a valid integer`."""
    return "; ".join(
        f"{'.'.join(str(step) for step in problem['loc']) or as_a_whole}: {problem['msg']}"
        for problem in error.errors(include_url=False)
    )


def effective_threshold(metric: EvalMetric) -> float | None:
    """The threshold that counts: that of the criterion where there is one, None without a verdict."""
    if metric.is_informational:
        return None
    return metric.criterion.threshold if metric.criterion else metric.threshold


def required_threshold(metric: EvalMetric) -> float:
    """The threshold that a score is held against. Raises CriterionError without one."""
    if metric.is_informational:
        return _REFERENCE
    threshold = effective_threshold(metric)
    if threshold is None:
        raise CriterionError(f"{metric.metric_name} has no threshold; give it one in the config's criteria")
    return threshold


def verdict(score: float, threshold: float, *, lower_is_better: bool = False) -> Status:
    passes = score <= threshold if lower_is_better else score >= threshold
    return Status.PASSED if passes else Status.FAILED


def not_evaluated(
    metric: EvalMetric, reason: str, per_invocation: tuple[InvocationScore, ...] = ()
) -> MetricResult:
    return MetricResult(
        metric.metric_name,
        None,
        effective_threshold(metric),
        Status.NOT_EVALUATED,
        per_invocation=per_invocation,
        reason=reason,
    )


def without_hint(result: MetricResult) -> str:
    """The reason of a result without the hint of `informational`."""
    return result.reason.removesuffix(_hint(result.name)).removesuffix("; ")


def threshold_hint(result: MetricResult) -> str:
    """The hint of `informational` in a result; "" for any other result."""
    hint = _hint(result.name)
    return hint if result.reason.endswith(hint) else ""


def _hint(name: str) -> str:
    return f"no threshold; set evaltui.criteria.{name}"


def informational(result: MetricResult) -> MetricResult:
    """A result without its verdict and its threshold, with a hint at the key for a threshold.

    Scores and errors stay.
    """
    turns = tuple(replace(turn, status=_measured(turn)) for turn in result.per_invocation)
    status = _measured(result)
    result = replace(result, threshold=None, status=status, per_invocation=turns)
    if status is not Status.INFORMATIONAL:
        return result
    return replace(result, reason="; ".join(filter(None, (without_hint(result), _hint(result.name)))))


def _measured(result: MetricResult | InvocationScore) -> Status:
    """The status of a result without its verdict, which is nothing where it has no score."""
    if result.status not in (Status.PASSED, Status.FAILED):
        return result.status
    return Status.NOT_EVALUATED if result.score is None else Status.INFORMATIONAL


def failed_with(metric: EvalMetric, error: ErrorInfo) -> MetricResult:
    """The result of a metric that could not be computed because of an error."""
    return MetricResult(
        metric.metric_name,
        None,
        effective_threshold(metric),
        Status.ERROR,
        reason=error.message,
        error=error,
    )


NO_EXPECTED_TURNS = "needs expected turns; this case has none"


def unpaired_reason(inputs: MetricInput) -> str:
    """Why expected and actual turns cannot be paired; "" where they can, or there are no expected turns."""
    if inputs.expected is None or len(inputs.expected) == len(inputs.actual):
        return ""
    expected, actual = counted(len(inputs.expected), "turn"), counted(len(inputs.actual), "turn")
    return f"cannot be paired: {expected} expected, {actual} run"


def left_out_turns(
    inputs: MetricInput, *, checks_calls: bool = False, compares: Literal["", "calls", "responses"] = ""
) -> dict[int, str]:
    """The turns that are not scored, from 0, with the reasons. `compares` is the kind of expectation that a
    metric needs."""
    skipped: dict[int, str] = {}
    if compares and inputs.unspecified:
        absent = {"calls": "intermediate_data", "responses": "final_response"}[compares]
        turns = (n for n, turn in enumerate(inputs.expected or ()) if getattr(turn, absent) is None)
        skipped = dict.fromkeys(turns, UNSPECIFIED_REASONS[compares])
    if checks_calls and inputs.skip_calls:
        skipped |= dict.fromkeys(inputs.skip_calls, CALLS_NOT_CHECKED)
    if inputs.context:
        skipped |= dict.fromkeys(inputs.context, CONTEXT_TURN)
    return skipped | {
        number: NOT_IN_TRACE for number, turn in enumerate(inputs.actual) if TURN in turn.untold
    }


def unscored_turn(reason: str) -> InvocationScore:
    return InvocationScore(None, Status.NOT_EVALUATED, reason)


def score_against_expected(
    inputs: MetricInput,
    score_turn: Callable[[Invocation, Invocation], TurnScore],
    without: Mapping[int, str],
) -> MetricResult:
    """The mean of `score_turn(expected, actual)` over the turns outside of `without`.

    Raises CriterionError without a threshold.
    """
    threshold = required_threshold(inputs.metric)
    if inputs.expected is None:
        return not_evaluated(inputs.metric, NO_EXPECTED_TURNS)
    if problem := unpaired_reason(inputs):
        return not_evaluated(inputs.metric, problem)
    turns: list[InvocationScore] = []
    scores: list[float] = []
    for number, (expected, actual) in enumerate(zip(inputs.expected, inputs.actual, strict=True)):
        if number in without:
            turns.append(unscored_turn(without[number]))
            continue
        turn = score_turn(expected, actual)
        turns.append(InvocationScore(turn.score, verdict(turn.score, threshold), turn.reason))
        scores.append(turn.score)
    if not scores:
        return not_evaluated(inputs.metric, nothing_to_score(turns), tuple(turns))
    score = mean(scores)
    status = verdict(score, threshold)
    failed = {number: turn.reason for number, turn in enumerate(turns) if turn.status is Status.FAILED}
    reason = turn_reasons(failed)
    if status is Status.FAILED and not reason:
        reason = f"the mean over turns, {score!r}, is below {threshold!r}"
    return MetricResult(
        inputs.metric.metric_name, score, threshold, status, per_invocation=tuple(turns), reason=reason
    )


def nothing_to_score(turns: Sequence[InvocationScore]) -> str:
    if any(turn.reason == NOT_IN_TRACE for turn in turns):
        return f"no turn to score: {NOT_IN_TRACE}"
    reasons = {turn.reason for turn in turns}
    if len(reasons) == 1 and reasons <= set(UNSPECIFIED_REASONS.values()):
        return f"no turn to score: {reasons.pop()}"
    if turns:
        return "no turn to score: all are context or not checked"
    return "no turn to score"


def mean(scores: Sequence[float]) -> float:
    # Added up plainly, as ADK does: from Python 3.12 on sum() compensates for rounding, and the last bit
    # decides the verdict of a score that is exactly at the threshold.
    return functools.reduce(operator.add, scores, 0.0) / len(scores)


def turn_reasons(reasons: Mapping[int, str]) -> str:
    """The reasons by turn (from 0) as text, with the first reasons in full."""
    texts = [f"turn {number + 1}: {reason}" for number, reason in reasons.items() if reason]
    more = len(texts) - _MAX_TURNS_NAMED
    return "; ".join(texts[:_MAX_TURNS_NAMED] + ([f"{counted(more, 'turn')} more"] if more > 0 else []))


MISPLACED_FUNCTION = (
    "a metric in short form belongs under evaltui.criteria; under criteria google-adk cannot find the metric"
)


def names_function(criterion: BaseCriterion | float | None) -> bool:
    """Whether a criterion outside of `evaltui.criteria` is written like one inside."""
    extra = criterion.model_extra if isinstance(criterion, BaseCriterion) else None
    return "function" in (extra or {})
