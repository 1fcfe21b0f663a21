"""Expected case, actual invocations and config to a verdict: pure, but for custom metrics.

Where this differs from google-adk on purpose, `adk_verdicts` switches the difference off: thoughts are
scored, `final_session_state` and the `evaltui` block are not looked at, and metrics without a verdict do
not keep a case from passing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from evaltui.core.config import EvalConfig, EvalMetric, EvaltuiBlock
from evaltui.core.diff import diff_state, expectation_of, turn_result
from evaltui.core.evalset import EvalCase, Invocation
from evaltui.core.metrics.judges.judge import Judge
from evaltui.core.metrics.registry import METRICS, MetricInput, metrics_to_run, run_judged_metric, run_metric
from evaltui.core.metrics.response_match import scored_text, unscored_texts
from evaltui.core.metrics.trajectory import ignores_args
from evaltui.core.outcome import (
    CaseResult,
    ErrorInfo,
    Expectation,
    InvocationScore,
    MetricResult,
    RepeatResult,
    StateDiff,
    Status,
    TurnResult,
    gravest,
)
from evaltui.core.repeats import case_over_repeats
from evaltui.core.rules import CaseRules, rules_of_case
from evaltui.core.validation import case_warnings

CustomScorer = Callable[
    [EvalMetric, Sequence[Invocation], Sequence[Invocation] | None], Awaitable[MetricResult]
]


@dataclass(frozen=True)
class Expected:
    """A case, the set it belongs to, and the config that it is scored by."""

    eval_set_id: str
    case: EvalCase
    config: EvalConfig
    adk_verdicts: bool = False

    @property
    def effective_config(self) -> EvalConfig:
        if not self.adk_verdicts:
            return self.config
        return self.config.model_copy(update={"evaltui": EvaltuiBlock()})

    @property
    def score_thoughts(self) -> bool:
        return self.adk_verdicts or self.config.evaltui.thoughts == "score"

    @cached_property
    def rules(self) -> CaseRules:
        """The rules for arguments that hold in this case."""
        return rules_of_case(self.effective_config.evaltui.rules, self.eval_set_id, self.case.eval_id)

    def turns_marked(self, mode: str) -> frozenset[int]:
        config = self.effective_config
        if not config.evaltui.turns:
            return frozenset()
        turns = range(len(self.case.conversation or []))
        return frozenset(
            turn for turn in turns if config.turn_mode(self.eval_set_id, self.case.eval_id, turn) == mode
        )


async def score_case(
    expected: EvalCase,
    actual: Sequence[Invocation],
    config: EvalConfig,
    *,
    eval_set_id: str = "",
    final_state: Mapping[str, Any] | None = None,
    adk_verdicts: bool = False,
) -> CaseResult:
    """Score what an agent did against a case. `final_state` is the session state after the last turn.

    Custom metrics are NOT_EVALUATED here: they run the user's code, which only `evaluate` does.
    """
    wanted = Expected(eval_set_id, expected, config, adk_verdicts)
    repeat = await score_repeat(wanted, actual, final_state=final_state, custom=None)
    return case_over_repeats(wanted.eval_set_id, expected.eval_id, [repeat], "all")


async def score_repeat(
    expected: Expected,
    actual: Sequence[Invocation],
    *,
    final_state: Mapping[str, Any] | None,
    custom: CustomScorer | None,
    judge: Judge | None = None,
    seconds: float = 0.0,
) -> RepeatResult:
    """The verdict on one run of a case. Without a `judge`, what one has to decide is NOT_EVALUATED."""
    if expected.case.conversation is None:
        return not_evaluated(expected, "conversation_scenario", _SCENARIO)
    metrics = [
        await _metric_result(metric, expected, actual, custom, judge)
        for metric in metrics_to_run(expected.effective_config)
    ]
    state: tuple[StateDiff, ...] = ()
    if expected.case.final_session_state and not expected.adk_verdicts:
        state = diff_state(expected.case.final_session_state, dict(final_state or {}))
        metrics.append(_state_result(state, known=final_state is not None))
    metrics += _reservations(expected)
    return RepeatResult(
        status=_verdict(metrics, expected),
        metrics=tuple(metrics),
        actual=tuple(actual),
        turns=turn_results(expected, actual, metrics),
        state=state,
        seconds=seconds,
        final_state=None if final_state is None else dict(final_state),
    )


_SCENARIO = "the user of this case is simulated by a model, which this version of evaltui does not do yet"
_LIVE = "live (audio) runs are not done by this version of evaltui; the case was run with text"


def not_evaluated(expected: Expected, name: str, reason: str) -> RepeatResult:
    """A case that cannot be run here, with the reason where a metric would stand."""
    result = MetricResult(name, None, None, Status.NOT_EVALUATED, reason=reason)
    return RepeatResult(Status.NOT_EVALUATED, metrics=(result,))


def failed_repeat(
    expected: Expected, error: ErrorInfo, actual: Sequence[Invocation], seconds: float
) -> RepeatResult:
    """A run that the agent did not survive; what it did before is kept."""
    return RepeatResult(
        Status.ERROR,
        error=error,
        actual=tuple(actual),
        turns=turn_results(expected, actual, ()),
        seconds=seconds,
    )


async def _metric_result(
    metric: EvalMetric,
    expected: Expected,
    actual: Sequence[Invocation],
    custom: CustomScorer | None,
    judge: Judge | None,
) -> MetricResult:
    wanted = expected.case.conversation
    if metric.custom_function_path is None:
        info = METRICS.get(metric.metric_name)
        given = MetricInput(
            metric=metric,
            expected=wanted,
            actual=actual,
            thoughts=expected.score_thoughts,
            skip_calls=expected.turns_marked("skip"),
            context=expected.turns_marked("context"),
            rules=expected.rules,
            case_rubrics=expected.case.rubrics or (),
            scenario=expected.case.conversation_scenario,
            as_adk=expected.adk_verdicts,
        )
        if info is None or info.judged is None or judge is None:
            return run_metric(given)
        return await run_judged_metric(given, info.judged, judge)
    if custom is None:
        reason = "custom metrics run in the agent's own process: use evaluate()"
        return MetricResult(metric.metric_name, None, metric.threshold, Status.NOT_EVALUATED, reason=reason)
    return await custom(metric, actual, wanted)


def _state_result(state: Sequence[StateDiff], *, known: bool) -> MetricResult:
    if not known:
        return MetricResult(
            "final_session_state",
            None,
            None,
            Status.NOT_EVALUATED,
            reason="the session state at the end is not known",
        )
    if not state:
        return MetricResult(
            "final_session_state", 1.0, 1.0, Status.PASSED, reason="every expected key is equal"
        )
    keys = ", ".join(difference.path for difference in state)
    return MetricResult("final_session_state", 0.0, 1.0, Status.FAILED, reason=f"not as expected: {keys}")


def _reservations(expected: Expected) -> list[MetricResult]:
    """What keeps a case from passing although nothing failed."""
    if expected.adk_verdicts:
        return []
    reasons = [("eval_case", str(problem)) for problem in case_warnings(expected.case)]
    if expected.config.live_model_config is not None:
        reasons.append(("live_model_config", _LIVE))
    return [MetricResult(name, None, None, Status.NOT_EVALUATED, reason=reason) for name, reason in reasons]


def _verdict(metrics: Sequence[MetricResult], expected: Expected) -> Status:
    statuses = {metric.status for metric in metrics}
    if expected.adk_verdicts:
        # As google-adk 2.13: what has no verdict is passed over.
        statuses &= {Status.PASSED, Status.FAILED}
    return gravest(statuses)


def turn_results(
    expected: Expected, actual: Sequence[Invocation], metrics: Sequence[MetricResult]
) -> tuple[TurnResult, ...]:
    """Expectation and reality turn by turn; turns that were not reached have no actual side."""
    wanted = expected.case.conversation or []
    scores = _turn_scores(metrics)
    ignore_args = any(ignores_args(metric) for metric in expected.effective_config.metrics())
    turns = []
    for number, want in enumerate(wanted):
        did = actual[number] if number < len(actual) else None
        thoughts = expected.score_thoughts
        wanted_text = scored_text(want, thoughts=thoughts)
        said = scored_text(did, thoughts=thoughts) if did else None
        turns.append(
            turn_result(
                want,
                did,
                expectation=_expectation(expected, number, want),
                expected_text=wanted_text or None,
                # Most answers are those expected: of thousands of results, each text is in memory once.
                actual_text=wanted_text if said == wanted_text else said,
                response_score=scores[number].score if number < len(scores) else None,
                unscored=unscored_texts(did, thoughts=thoughts) if did else (),
                ignore_args=ignore_args,
                rules=expected.rules,
            )
        )
    return tuple(turns)


def _turn_scores(metrics: Sequence[MetricResult]) -> tuple[InvocationScore, ...]:
    named = (m.per_invocation for m in metrics if m.name == "response_match_score")
    return next(named, ())


def _expectation(expected: Expected, turn: int, invocation: Invocation) -> Expectation:
    if turn in expected.turns_marked("context"):
        return "context"
    if turn in expected.turns_marked("skip"):
        return "not checked"
    return expectation_of(invocation)
