"""Metrics with limits for a case: US dollars, seconds, tokens; lower is better, unknown is not evaluated.

They cover a whole repeat with context turns, and the agent alone, without judges and simulated users. A
replayed call counts with its original cost.
"""

from __future__ import annotations

from collections.abc import Callable

from evaltui.core.metrics.declaration import MetricInfo, metric
from evaltui.core.metrics.metric import (
    Metric,
    MetricInput,
    not_evaluated,
    nothing_to_score,
    required_threshold,
    verdict,
)
from evaltui.core.model.outcome import MetricResult, Status
from evaltui.core.model.spending import Spending
from evaltui.text.figures import counted, show_money, show_number


def _limit_metric(meaning: str) -> Callable[[Metric], Metric]:
    """Declares a metric that limits a value of a case."""
    return metric(MetricInfo(meaning, interval=None, source="evaltui", lower_is_better=True))


@_limit_metric("US dollars that the agent may spend on a case; lower is better.")
def cost_usd(inputs: MetricInput) -> MetricResult:
    """US dollars of the agent's model calls. Raises CriterionError without a threshold."""
    spent = _agent_spending(inputs)
    if isinstance(spent, str):
        return not_evaluated(inputs.metric, spent)
    cost = spent.cost
    unknown = cost.unpriced + sum(model.replayed for model in spent.models if model.saved_usd is None)
    if unknown or cost.usd is None:
        what = counted(unknown, "unpriced call") if unknown else "no price"
        reason = f"the cost is unknown: {what}. Give prices in evaltui.prices, or install evaltui[prices]"
        return not_evaluated(inputs.metric, reason)
    return _verdict(inputs, cost.usd + (cost.saved_usd or 0.0), show_money)


@_limit_metric("Seconds that the turns of a case may take; lower is better.")
def seconds(inputs: MetricInput) -> MetricResult:
    """Seconds of all turns. Raises CriterionError without a threshold."""
    if not inputs.actual:
        return not_evaluated(inputs.metric, _nothing_reason(inputs))
    durations = [turn.duration for turn in inputs.actual]
    if inputs.spent is not None and inputs.spent.stubbed:
        reason = (
            f"{counted(inputs.spent.stubbed, 'tool call')} stubbed, so the time of the tools is unknown; "
            "run without stubs"
        )
        return not_evaluated(inputs.metric, reason)
    if inputs.spent is not None and inputs.spent.of("agent").replayed:
        reason = "model calls are replayed, so the time they took is unknown; run without recordings"
        return not_evaluated(inputs.metric, reason)
    timed = [duration for duration in durations if duration is not None]
    if len(timed) < len(durations):
        return not_evaluated(inputs.metric, "the time of a turn is unknown")
    return _verdict(inputs, round(sum(timed), 3), show_number)


@_limit_metric("Tokens that the agent may use in a case; lower is better.")
def tokens(inputs: MetricInput) -> MetricResult:
    """Input and output tokens of the agent's model calls. Raises CriterionError without a threshold."""
    spent = _agent_spending(inputs)
    if isinstance(spent, str):
        return not_evaluated(inputs.metric, spent)
    counts = [entry.tokens + entry.saved_tokens for entry in spent.models]
    if spent.unmetered or any(entry.input is None or entry.output is None for entry in counts):
        return not_evaluated(inputs.metric, "the tokens are unknown: the model does not report them")
    total = sum((entry.input or 0) + (entry.output or 0) for entry in counts)
    return _verdict(inputs, float(total), show_number)


def _nothing_reason(inputs: MetricInput) -> str:
    """Why nothing can be scored; "" where it can. Raises CriterionError without a threshold."""
    required_threshold(inputs.metric)
    return nothing_to_score(())


def _agent_spending(inputs: MetricInput) -> Spending | str:
    """The agent's spending, or the reason why it is unknown."""
    if not inputs.actual:
        return _nothing_reason(inputs)
    if inputs.spent is None:
        return "the model calls are unknown"
    spent = inputs.spent.of("agent")
    if spent.unseen:
        return "model calls of the agent cannot be seen"
    if spent.stubbed_models:
        calls = counted(spent.stubbed_models, "model call")
        return f"tokens and cost of {calls} inside stubbed tools are unknown; run without stubs"
    return spent


def _verdict(inputs: MetricInput, value: float, show: Callable[[float], str]) -> MetricResult:
    most = required_threshold(inputs.metric)
    status = verdict(value, most, lower_is_better=True)
    return MetricResult(
        inputs.metric.metric_name,
        value,
        most,
        status,
        reason="" if status is Status.PASSED else f"{show(value)} is above {show(most)}",
        lower_is_better=True,
    )
