"""Verdicts by other thresholds, computed from existing scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from evaltui.core.compare.repeats import case_over_repeats
from evaltui.core.metrics.metric import effective_threshold, informational, verdict
from evaltui.core.metrics.normal_config import normal_form
from evaltui.core.metrics.registry import lower_is_better
from evaltui.core.metrics.spent import cost_usd
from evaltui.core.model.config import EvalConfig, EvalMetric, PassIf
from evaltui.core.model.outcome import CaseResult, MetricResult, RepeatResult, Status, worst_status

_JUDGED_STATUSES = (Status.PASSED, Status.FAILED)
_SCORED = (*_JUDGED_STATUSES, Status.INFORMATIONAL)


class Limit(NamedTuple):
    """The threshold of a metric with its direction."""

    threshold: float
    lower_is_better: bool

    def verdict(self, score: float) -> Status:
        return verdict(score, self.threshold, lower_is_better=self.lower_is_better)


def limits_of(config: EvalConfig) -> dict[str, Limit | None]:
    """The limits of the metrics of a config; None for a metric without a verdict by score."""
    return {metric.metric_name: _limit(metric) for metric in config.metrics()}


def _limit(metric: EvalMetric) -> Limit | None:
    threshold = effective_threshold(metric)
    # A function in ADK's form gives the verdict itself.
    is_decided = metric.custom_function_path is None or metric.scores_turns or metric.definition is not None
    return Limit(threshold, lower_is_better(metric)) if threshold is not None and is_decided else None


def scores_decide(scored_by: EvalConfig, config: EvalConfig) -> bool:
    """Whether scores by one config decide the verdicts by another: the configs differ only in thresholds, in
    the policy for repeats, or in metrics that the other lacks."""
    if scored_by is config:
        return True
    before, after = _scoring(scored_by), _scoring(config)
    return (
        all(
            name in before.metrics and before.metrics[name] == metric
            for name, metric in after.metrics.items()
        )
        and before.optional & after.metrics.keys() == after.optional
        and before.rest == after.rest
    )


@dataclass(frozen=True)
class _Scoring:
    """The settings of a config that affect its scores."""

    metrics: Mapping[str, Any]
    optional: set[str]
    rest: Mapping[str, Any]


def _scoring(config: EvalConfig) -> _Scoring:
    form = normal_form(config)
    functions, block = form.get("custom_metrics", {}), form.get("evaltui", {})
    metrics: dict[str, Any] = {}
    for name, criterion in {**form.get("criteria", {}), **block.get("criteria", {})}.items():
        options = {key: value for key, value in criterion.items() if key != "threshold"}
        metrics[name] = (criterion, functions[name]) if name in functions else options
    metrics |= {
        name: (definition, metrics.get(name) or None)
        for name, definition in block.get("metrics_to_run", {}).items()
    }
    if (name := cost_usd.__name__) in metrics:
        metrics[name] = metrics[name], block.get("prices")
    apart = ("criteria", "metrics_to_run", "optional", "prices", "repeats")
    rest = {key: value for key, value in block.items() if key not in apart}
    simulator = form.get("user_simulator_config")
    return _Scoring(metrics, set(block.get("optional", ())), {**rest, "simulator": simulator})


def rejudge(
    result: CaseResult, scored_by: EvalConfig, config: EvalConfig, pass_if: PassIf | None = None
) -> CaseResult:
    """A result with verdicts by another config, for which its scores suffice; `pass_if` replaces the config's
    policy."""
    limits = limits_of(config)
    removed = limits_of(scored_by).keys() - limits.keys()
    without_verdict = {metric.metric_name for metric in config.metrics() if metric.is_informational}

    def judged(metric: MetricResult) -> MetricResult:
        limit = limits.get(metric.name)
        if metric.name in without_verdict:
            return informational(metric)
        if limit is None or metric.score is None or metric.status not in _SCORED:
            return metric
        return replace(metric, threshold=limit.threshold, status=limit.verdict(metric.score))

    def judged_repeat(repeat: RepeatResult) -> RepeatResult:
        if not repeat.metrics:
            return repeat
        metrics = tuple(judged(metric) for metric in repeat.metrics if metric.name not in removed)
        return replace(
            repeat,
            metrics=metrics,
            status=worst_status(metric.status for metric in metrics if not metric.is_passed_over),
        )

    return case_over_repeats(
        result.eval_set_id,
        result.eval_id,
        [judged_repeat(repeat) for repeat in result.repeats],
        config.evaltui.repeats.pass_if if pass_if is None else pass_if,
        result.path,
    )
