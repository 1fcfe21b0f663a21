"""Thresholds that say nothing: every score reaches them, or none does."""

from __future__ import annotations

from collections.abc import Iterator

from evaltui.core.metrics.metric import effective_threshold
from evaltui.core.metrics.registry import METRICS
from evaltui.core.model.config import EvalConfig, EvalMetric, Interval
from evaltui.core.model.problems import JsonPath


def outside_of_range(config: EvalConfig) -> Iterator[tuple[JsonPath, str]]:
    """Where in a config a threshold is none of its metric's scores, and why, as a sentence."""
    for metric in config.metrics():
        why = _outside(metric)
        if why:
            name = metric.metric_name
            block: JsonPath = ("evaltui",) if name in config.evaltui.criteria else ()
            yield (*block, "criteria", name), why


def _outside(metric: EvalMetric) -> str:
    threshold, interval = effective_threshold(metric), _interval(metric)
    if threshold is None:
        return ""
    if interval is None or interval.min_value > interval.max_value:
        return f"its threshold, {threshold:g}, is below 0" if threshold < 0 else ""
    if interval.holds(threshold):
        return ""
    return f"its threshold, {threshold:g}, is outside of its range, {interval}"


def _interval(metric: EvalMetric) -> Interval | None:
    """The scores that a metric may give, None where nobody knows."""
    if metric.custom_function_path:
        return metric.interval
    info = METRICS.get(metric.metric_name)
    if info is None or info.interval is None:
        return None
    return Interval(min_value=info.interval[0], max_value=info.interval[1])
