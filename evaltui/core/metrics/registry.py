"""Every metric by name: what it means, needs and lets one choose, and what computes it or has it judged."""

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
from evaltui.core.metrics.metric import (
    MISPLACED,
    CriterionError,
    MetricInput,
    failed_with,
    names_function,
    not_evaluated,
)
from evaltui.core.model.config import EvalConfig, EvalMetric
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.outcome import ErrorInfo, MetricResult
from evaltui.text.values import nearest

METRICS: dict[str, MetricInfo] = {
    info.name: info
    for info in sorted(
        DECLARED.values(), key=lambda info: (info.source != "adk", SUBJECTS.index(info.subject))
    )
}
"""Every metric by its name: ADK's, then those that only evaltui has, each by what they look at."""

_EFFICIENCY = tuple(info for info in METRICS.values() if not info.gates)
RUBRIC_TYPES = {info.name: info.rubric_type for info in METRICS.values() if info.rubric_type}
"""The type of rubrics that hold for a metric, by its name."""


_UNKNOWN = MetricInfo("")


def info_of(metric: str) -> MetricInfo:
    """The declaration of a metric by its name; of a metric that is not built in, the defaults."""
    return METRICS.get(metric, _UNKNOWN)


def is_own(name: str) -> bool:
    """Whether there is a metric of this name that ADK does not have."""
    return name in METRICS and METRICS[name].source == "evaltui"


def is_known(metric: EvalMetric) -> bool:
    """Whether there is such a metric; only one that there is may be optional."""
    return (
        metric.metric_name in METRICS
        or metric.custom_function_path is not None
        or metric.definition is not None
    )


def metrics_to_run(config: EvalConfig) -> list[EvalMetric]:
    """The metrics that the config asks for, then the efficiency metrics that it does not name."""
    configured = config.metrics()
    named = {metric.metric_name for metric in configured}
    return configured + [EvalMetric(metric_name=info.name) for info in _EFFICIENCY if info.name not in named]


def run_metric(inputs: MetricInput) -> MetricResult:
    """Compute a built-in metric. Never raises: what a metric raises becomes a result of status ERROR.

    The user's own metrics are computed where their function can be imported (see `custom`), not here.
    """
    metric = inputs.metric
    if metric.not_evaluated:
        return not_evaluated(metric, metric.not_evaluated)
    if metric.custom_function_path:
        return not_evaluated(metric, f"is computed by {metric.custom_function_path}, in the agent's process")
    if metric.definition is not None and metric.definition.prompt_template:
        return not_evaluated(metric, "is judged when the case is run")
    info = METRICS.get(metric.metric_name)
    if info is None:
        unknown = MISPLACED if names_function(metric.criterion) else _unknown(metric.metric_name)
        return not_evaluated(metric, unknown)
    if info.function is None:
        return not_evaluated(metric, "is judged when the case is run")
    try:
        return info.function(inputs)
    except Exception as error:
        return _failed(metric, error)


async def run_judged_metric(inputs: MetricInput, judged: JudgedMetric, judge: Judge) -> MetricResult:
    """Have a judge decide a metric. Never raises but for a cancel, as `run_metric`."""
    try:
        return await judged(inputs, judge)
    except Exception as error:
        return _failed(inputs.metric, error)


def _failed(metric: EvalMetric, error: Exception) -> MetricResult:
    kind = ErrorKind.CONFIG if isinstance(error, CriterionError) else ErrorKind.JUDGE
    return failed_with(metric, ErrorInfo(type(error).__name__, str(error), traceback.format_exc(), kind=kind))


def _unknown(name: str) -> str:
    hit = nearest(name, METRICS)
    hint = f"Did you mean {hit}?" if hit else "`evaltui metrics` lists all metrics."
    return f"unknown metric {name}. {hint}"
