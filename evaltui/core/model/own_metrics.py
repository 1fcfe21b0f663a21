"""What a config says of the user's own metrics, where it cannot work as it seems to be meant."""

from __future__ import annotations

from collections.abc import Iterator

from evaltui.core.model.config import BaseCriterion, CustomMetric, EvalConfig, OwnCriterion
from evaltui.core.model.problems import JsonPath, Problem, Severity

MISPLACED = (
    "a metric in short form stands under evaltui.criteria: under criteria its function is called by nobody, "
    "and google-adk cannot find the metric"
)
_NOT_ASKED_FOR = (
    "is computed neither here nor by google-adk, because it is not asked for: add it to criteria, with its "
    "threshold"
)
_NOT_LOOKED_AT = "only metrics of your own may have it; this one is better where it is higher"


def own_metric_warnings(config: EvalConfig) -> list[Problem]:
    """What google-adk takes without a word although it does not mean it; snake_case paths."""
    return [
        Problem(Severity.WARNING, path, message)
        for found in (_misplaced(config), _of_custom_metrics(config), _empty_intervals(config))
        for path, message in found
    ]


def names_function(criterion: BaseCriterion | float | None) -> bool:
    """Whether a criterion that is not one of `evaltui.criteria` is written as if it were."""
    extra = criterion.model_extra if isinstance(criterion, BaseCriterion) else None
    return "function" in (extra or {})


def _misplaced(config: EvalConfig) -> Iterator[tuple[JsonPath, str]]:
    custom = config.custom_metrics or {}
    for name, criterion in config.criteria.items():
        if isinstance(criterion, BaseCriterion) and name not in custom:
            if names_function(criterion):
                yield ("criteria", name, "function"), MISPLACED
            elif criterion.lower_is_better:
                yield ("criteria", name, "lower_is_better"), _NOT_LOOKED_AT
    for name, criterion in config.evaltui.criteria.items():
        path: JsonPath = ("evaltui", "criteria", name)
        if not isinstance(criterion, OwnCriterion):
            continue
        if criterion.function is not None and name in custom:
            yield (*path, "function"), f"custom_metrics has a {name} too; this one counts"
        elif criterion.function is None and name not in custom and criterion.lower_is_better:
            yield (*path, "lower_is_better"), _NOT_LOOKED_AT
        if criterion.interval is not None and criterion.function is None:
            yield (*path, "interval"), "is for metrics that name their function here, and this one does not"


def _of_custom_metrics(config: EvalConfig) -> Iterator[tuple[JsonPath, str]]:
    for name, custom in (config.custom_metrics or {}).items():
        path: JsonPath = ("custom_metrics", name)
        if name not in config.criteria and name not in config.evaltui.criteria:
            yield path, _NOT_ASKED_FOR
        code = custom.code_config.name
        if not code.rpartition(".")[0]:
            such_as = f"is not the path of a function, such as my_agent.metrics.{code or name}"
            yield (*path, "code_config", "name"), such_as
        yield from _of_metric_info(name, custom, (*path, "metric_info"))


def _of_metric_info(name: str, custom: CustomMetric, path: JsonPath) -> Iterator[tuple[JsonPath, str]]:
    info = custom.metric_info
    if info is not None and info.metric_name != name:
        yield (*path, "metric_name"), f"is {info.metric_name!r}, but the metric is called {name!r}"


def _empty_intervals(config: EvalConfig) -> Iterator[tuple[JsonPath, str]]:
    """Intervals in which there is no score."""
    for metric in config.metrics():
        interval, name = metric.interval, metric.metric_name
        if interval is None:
            continue
        place: JsonPath = ("evaltui", "criteria", name, "interval")
        if not metric.scores_turns:
            place = ("custom_metrics", name, "metric_info", "metric_value_info", "interval")
        if interval.min_value > interval.max_value:
            yield place, f"no score is {interval}: min_value is greater than max_value"
