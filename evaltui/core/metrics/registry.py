"""All metrics by name, and their computation."""

from __future__ import annotations

import traceback

# Imported for the metrics that they declare.
from evaltui.core.metrics import (  # noqa: F401
    efficiency,
    intermediate_match,
    response_match,
    spent,
    trajectory,
)
from evaltui.core.metrics.declaration import DECLARED, SUBJECTS, MetricInfo
from evaltui.core.metrics.judges import (  # noqa: F401
    final_response,
    hallucinations,
    quality,
    rubric_metrics,
    user_simulator,
)
from evaltui.core.metrics.judges.judge import Judge, JudgedMetric
from evaltui.core.metrics.judges.verdicts import require_judged
from evaltui.core.metrics.metric import (
    MISPLACED_FUNCTION,
    CriterionError,
    MetricInput,
    failed_with,
    names_function,
    not_evaluated,
)
from evaltui.core.model.config import EvalConfig, EvalMetric
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.outcome import ErrorInfo, MetricResult
from evaltui.text.values import nearest_word


def _place(info: MetricInfo) -> tuple[bool, int, str]:
    # Other modules may have been imported first.
    module = (info.function or info.judged).__module__
    return info.source != "adk", SUBJECTS.index(info.subject), module


METRICS: dict[str, MetricInfo] = {info.name: info for info in sorted(DECLARED.values(), key=_place)}
"""All metrics by name: ADK's, then those of evaltui, each group by subject."""

_EFFICIENCY = tuple(info for info in METRICS.values() if not info.gates)
RUBRIC_TYPES = {info.name: info.rubric_type for info in METRICS.values() if info.rubric_type}
"""The type of rubrics that a metric judges, by name of the metric."""

NEED_EVERY_JUDGEMENT = [info.name for info in METRICS.values() if info.judged_item in ("answer", "rubric")]
"""Metrics without a score while one of their judgements is open, so that their scores do not tell what
another threshold makes of them."""


_UNKNOWN_METRIC = MetricInfo("")


def info_of(metric: str) -> MetricInfo:
    """The declaration of a metric by name; the default declaration for a custom metric."""
    return METRICS.get(metric, _UNKNOWN_METRIC)


def lower_is_better(metric: EvalMetric) -> bool:
    """Whether lower scores of a metric are better, as its criterion or its declaration says."""
    if metric.takes_direction:
        return metric.lower_is_better
    return info_of(metric.metric_name).lower_is_better


def is_own(name: str) -> bool:
    """Whether evaltui has a metric with this name that ADK does not have."""
    return name in METRICS and METRICS[name].source == "evaltui"


def is_known(metric: EvalMetric) -> bool:
    """Whether a metric exists; only an existing metric may be optional."""
    return metric.metric_name in METRICS or metric.is_defined


def metrics_to_run(config: EvalConfig) -> list[EvalMetric]:
    """The metrics of a config, then the other efficiency metrics."""
    configured = config.metrics()
    named = {metric.metric_name for metric in configured}
    return configured + [EvalMetric(metric_name=info.name) for info in _EFFICIENCY if info.name not in named]


def run_metric(inputs: MetricInput) -> MetricResult:
    """Computes a built-in metric; errors become a result with status ERROR.

    Custom metrics are computed where their function can be imported (see `custom`).
    """
    metric = inputs.metric
    if metric.not_evaluated:
        return not_evaluated(metric, metric.not_evaluated)
    if metric.custom_function_path:
        return not_evaluated(metric, f"is computed by {metric.custom_function_path}, in the agent's process")
    if metric.prompt_template:
        return not_evaluated(metric, "is judged when the case is run")
    info = METRICS.get(metric.metric_name)
    if info is None:
        unknown = (
            MISPLACED_FUNCTION if names_function(metric.criterion) else _unknown_text(metric.metric_name)
        )
        return not_evaluated(metric, unknown)
    if info.function is None:
        return not_evaluated(metric, "is judged when the case is run")
    try:
        return info.function(inputs)
    except Exception as error:
        return _error_result(metric, error)


async def run_judged_metric(inputs: MetricInput, judged: JudgedMetric, judge: Judge) -> MetricResult:
    """Computes a judged metric; errors other than cancellation become a result with status ERROR."""
    try:
        result = await judged(inputs, judge)
    except Exception as error:
        return _error_result(inputs.metric, error)
    return result if inputs.as_adk else by_open_judgements(result)


def by_open_judgements(result: MetricResult) -> MetricResult:
    """The result of a judged metric by its threshold, as far as its open judgements let it have a verdict."""
    return require_judged(result) if result.name in NEED_EVERY_JUDGEMENT else result


def _error_result(metric: EvalMetric, error: Exception) -> MetricResult:
    kind = ErrorKind.CONFIG if isinstance(error, CriterionError) else ErrorKind.JUDGE
    return failed_with(metric, ErrorInfo(type(error).__name__, str(error), traceback.format_exc(), kind=kind))


def _unknown_text(name: str) -> str:
    hit = nearest_word(name, METRICS)
    hint = f"Did you mean {hit}?" if hit else "`evaltui metrics` lists all metrics."
    return f"unknown metric {name}. {hint}"
