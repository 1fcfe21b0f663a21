"""Requirements of a metric: a model and its key, a function, a usable criterion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum

from evaltui.core.metrics.declaration import MetricInfo
from evaltui.core.metrics.gemini_access import GeminiAccess, is_gemini_name
from evaltui.core.metrics.judges.judge import judge_options
from evaltui.core.metrics.judges.rubrics import criterion_rubrics
from evaltui.core.metrics.metric import (
    MISPLACED_FUNCTION,
    CriterionError,
    MetricInput,
    names_function,
    nothing_to_score,
    typed_option,
)
from evaltui.core.metrics.registry import METRICS, RUBRIC_TYPES
from evaltui.core.model.config import EvalConfig, EvalMetric, SimulatorConfig
from evaltui.core.model.modes import DEFAULT_MODE, RecordMode
from evaltui.text.values import nearest_word


class Readiness(StrEnum):
    RUNS = "RUNS"
    SOME_CASES = "SOME_CASES"
    CANNOT = "CANNOT"


@dataclass(frozen=True)
class Facts:
    """Facts about this machine and the agent's folder, found without imports or requests."""

    gemini: GeminiAccess
    has_module: Callable[[str], bool]
    """Whether the module of a custom function exists."""
    record: RecordMode = DEFAULT_MODE
    recorded: frozenset[str] = frozenset()
    """The paths of the sets with recordings."""


@dataclass(frozen=True)
class MetricReadiness:
    """Readiness of a metric in one set; see `preflight.MetricCheck`."""

    readiness: Readiness = Readiness.RUNS
    why: str = ""
    fix: str = ""
    withheld: bool = False
    is_left_out: bool = False
    without: tuple[str, ...] = field(default=(), compare=False)


def _cannot_run(why: str, fix: str = "") -> MetricReadiness:
    return MetricReadiness(Readiness.CANNOT, why, fix, withheld=True)


def unmet_by_metric(
    metric: EvalMetric, config: EvalConfig, facts: Facts, *, recorded: bool
) -> MetricReadiness | None:
    """Why a metric cannot be computed for any case, or has an invalid setting; None where it can."""
    if metric.not_evaluated:
        return _cannot_run(metric.not_evaluated)
    if metric.definition is not None and metric.definition.is_function:
        return None
    if metric.custom_function_path is not None:
        return _custom(metric, metric.custom_function_path, facts)
    if metric.prompt_template:
        return _with_judge(metric, facts, recorded)
    info = METRICS.get(metric.metric_name)
    if info is None:
        return _unknown_metric(metric.metric_name, config)
    if info.judged:
        return _with_judge(metric, facts, recorded)
    try:
        return _criterion_problem(metric, info)
    except CriterionError as error:
        return MetricReadiness(Readiness.CANNOT, str(error))


def _with_judge(metric: EvalMetric, facts: Facts, recorded: bool) -> MetricReadiness | None:
    try:
        return _judge_problem(metric, facts, recorded)
    except CriterionError as error:
        return MetricReadiness(Readiness.CANNOT, str(error))


def _judge_problem(metric: EvalMetric, facts: Facts, recorded: bool) -> MetricReadiness | None:
    if metric.metric_name in RUBRIC_TYPES:
        criterion_rubrics(metric)
    for option in METRICS[metric.metric_name].options if metric.metric_name in METRICS else ():
        if len(option.path) == 1 and option.kind in ("flag", "text"):
            typed_option(metric, option.name, option.default)
    model = judge_options(metric).judge_model
    return _model_problem(model, "judge", "judge_model_options.judge_model", facts, recorded)


def _criterion_problem(metric: EvalMetric, info: MetricInfo) -> MetricReadiness | None:
    """The readiness of a computed metric with an invalid criterion; None for a valid one."""
    if info.function is None:
        return None
    reason = info.function(MetricInput(metric=metric, expected=(), actual=())).reason
    return MetricReadiness(Readiness.CANNOT, reason) if reason != nothing_to_score(()) else None


def _custom(metric: EvalMetric, path: str, facts: Facts) -> MetricReadiness | None:
    module = path.rpartition(".")[0]
    if not module:
        return _cannot_run(
            f"{path!r} is not the path of a function, such as my_agent.metrics.{metric.metric_name}"
        )
    return None if facts.has_module(module) else _missing_module(module, f"the metric's function {path}")


def _unknown_metric(name: str, config: EvalConfig) -> MetricReadiness:
    if names_function(config.criteria.get(name)):
        return _cannot_run(MISPLACED_FUNCTION)
    hit = nearest_word(name, [*METRICS, *(config.custom_metrics or {})])
    return _cannot_run(
        f"unknown metric {name}",
        f"Did you mean {hit}?" if hit else "`evaltui metrics` lists all metrics",
    )


def _model_problem(model: str, who: str, option: str, facts: Facts, recorded: bool) -> MetricReadiness | None:
    """Why a model for a judge or a simulated user cannot be asked; None where it can."""
    module, colon, function = model.partition(":")
    if colon and module and function:
        if facts.record == "replay" or facts.has_module(module):
            return None
        return _missing_module(module, f"{option} {model}")
    if not (is_gemini_name(model) or facts.gemini.serves_other_names):
        return _cannot_run(
            f"the {who} {model} is not a Gemini model", _other_model_advice(model, who, option)
        )
    if facts.record == "replay" or not facts.gemini.problem:
        return None
    why, fix = facts.gemini.problem, facts.gemini.fix
    if facts.record == "auto" and recorded:
        return MetricReadiness(Readiness.RUNS, f"{why}, so only recorded responses are replayed", fix)
    return _cannot_run(why, f"{fix}, or list the metric under evaltui.optional" if who == "judge" else fix)


def _other_model_advice(model: str, who: str, option: str) -> str:
    own = model.rpartition("/")[2]
    if is_gemini_name(own):
        return f"Did you mean {own}? Gemini models have no provider prefix"
    if hit := nearest_word(model, _WELL_KNOWN, likeness=0.8):
        return f"Did you mean {hit}?"
    key, role = option.rpartition(".")[2], who.rpartition(" ")[2]
    return f'For other models name a function that calls them: "{key}": "my_agent.models:my_{role}"'


_WELL_KNOWN = ("gemini-2.5-flash", "gemini-2.5-flash-lite", "gemini-2.5-pro")


def _missing_module(module: str, what: str) -> MetricReadiness:
    return _cannot_run(
        f"no module {module} for {what}",
        "Create it or correct the name; searched are the agent's folder, its parent and installed packages",
    )


def functions_of(config: EvalConfig) -> Iterator[str]:
    """The dotted paths of custom functions for metrics, judges and simulated users."""
    models = [config.user_simulator_config.model] if config.user_simulator_config else []
    for metric in config.metrics():
        info, definition = METRICS.get(metric.metric_name), metric.definition
        if definition is not None and definition.is_function:
            # The code is a part of the config.
            continue
        if metric.custom_function_path is not None:
            yield metric.custom_function_path
        elif (info is not None and info.judged) or metric.prompt_template:
            with suppress(CriterionError):
                models.append(judge_options(metric).judge_model)
    yield from (model.replace(":", ".") for model in models if ":" in model)


def unmet_by_user(config: EvalConfig, facts: Facts, recorded: bool) -> MetricReadiness | None:
    simulator = config.user_simulator_config or SimulatorConfig()
    if simulator.refusal is not None:
        return _cannot_run(simulator.refusal)
    return _model_problem(simulator.model, "simulated user", "user_simulator_config.model", facts, recorded)
