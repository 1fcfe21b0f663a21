"""What a case may take at most: US dollars, seconds, tokens. Lower is better; unknown is not evaluated.

Of a repeat as a whole, context turns included, and of the agent alone: judges and simulated users do not
count. A replayed call counts with what it would have cost, so that a replay does not pass whatever it
holds.
"""

from __future__ import annotations

from collections.abc import Callable

from evaltui.core.metrics.declaration import MetricInfo, metric
from evaltui.core.metrics.metric import MetricInput, not_evaluated, nothing_to_score, required_threshold
from evaltui.core.model.outcome import MetricResult, Status
from evaltui.core.model.spending import Spending
from evaltui.text.figures import counted, show_money, show_number


@metric(
    MetricInfo(
        "US dollars that the agent may spend on a case; lower is better.",
        interval=None,
        source="evaltui",
        lower_is_better=True,
    )
)
def cost_usd(given: MetricInput) -> MetricResult:
    """US dollars of the agent's model calls. Raises CriterionError without a threshold."""
    spent = _known(given)
    if isinstance(spent, str):
        return not_evaluated(given.metric, spent)
    cost = spent.cost
    unknown = cost.unpriced + sum(one.replayed for one in spent.models if one.saved_usd is None)
    if unknown or cost.usd is None:
        what = counted(unknown, "unpriced call") if unknown else "no price"
        reason = f"the cost is unknown: {what}. Give prices in evaltui.prices, or install evaltui[prices]"
        return not_evaluated(given.metric, reason)
    return _verdict(given, cost.usd + (cost.saved_usd or 0.0), show_money)


@metric(
    MetricInfo(
        "Seconds that the turns of a case may take; lower is better.",
        interval=None,
        source="evaltui",
        lower_is_better=True,
    )
)
def seconds(given: MetricInput) -> MetricResult:
    """Seconds of all turns. Raises CriterionError without a threshold."""
    if not given.actual:
        return not_evaluated(given.metric, _nothing(given))
    durations = [turn.duration for turn in given.actual]
    if given.spent is not None and given.spent.of("agent").replayed:
        reason = "model calls are replayed, so the time they took is unknown; run without recordings"
        return not_evaluated(given.metric, reason)
    known = [one for one in durations if one is not None]
    if len(known) < len(durations):
        return not_evaluated(given.metric, "the time of a turn is unknown")
    return _verdict(given, round(sum(known), 3), show_number)


@metric(
    MetricInfo(
        "Tokens that the agent may use in a case; lower is better.",
        interval=None,
        source="evaltui",
        lower_is_better=True,
    )
)
def tokens(given: MetricInput) -> MetricResult:
    """Input and output tokens of the agent's model calls. Raises CriterionError without a threshold."""
    spent = _known(given)
    if isinstance(spent, str):
        return not_evaluated(given.metric, spent)
    counts = [one.tokens + one.saved_tokens for one in spent.models]
    if spent.unmetered or any(one.input is None or one.output is None for one in counts):
        return not_evaluated(given.metric, "the tokens are unknown: the model does not report them")
    total = sum((one.input or 0) + (one.output or 0) for one in counts)
    return _verdict(given, float(total), show_number)


def _nothing(given: MetricInput) -> str:
    """Why nothing is scored of no turn. Raises CriterionError without a threshold."""
    required_threshold(given.metric)
    return nothing_to_score(())


def _known(given: MetricInput) -> Spending | str:
    """What the agent spent, or why nobody knows."""
    if not given.actual:
        return _nothing(given)
    if given.spent is None:
        return "the model calls are unknown"
    spent = given.spent.of("agent")
    return "model calls of the agent cannot be seen" if spent.unseen else spent


def _verdict(given: MetricInput, value: float, show: Callable[[float], str]) -> MetricResult:
    most = required_threshold(given.metric)
    is_passed = value <= most
    return MetricResult(
        given.metric.metric_name,
        value,
        most,
        Status.PASSED if is_passed else Status.FAILED,
        reason="" if is_passed else f"{show(value)} is above {show(most)}",
        lower_is_better=True,
    )
