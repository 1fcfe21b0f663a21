"""Every metric by name: what it means, needs and lets one choose, and what computes it or has it judged."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, replace
from typing import Any, Literal

from evaltui.core.metrics import efficiency, intermediate_match, response_match, spent, trajectory
from evaltui.core.metrics.judges import rubric_metrics
from evaltui.core.metrics.judges.final_response import final_response_match_v2
from evaltui.core.metrics.judges.hallucinations import hallucinations_v1
from evaltui.core.metrics.judges.judge import Judge, JudgedMetric
from evaltui.core.metrics.judges.quality import (
    multi_turn_task_success_v1,
    multi_turn_tool_use_quality_v1,
    multi_turn_trajectory_quality_v1,
    response_evaluation_score,
    safety_v1,
)
from evaltui.core.metrics.judges.user_simulator import per_turn_user_simulator_quality_v1
from evaltui.core.metrics.metric import (
    MISPLACED,
    CriterionError,
    Metric,
    MetricInput,
    failed_with,
    names_function,
    not_evaluated,
)
from evaltui.core.model.config import EvalConfig, EvalMetric
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.outcome import ErrorInfo, MetricResult
from evaltui.core.model.problems import JsonPath
from evaltui.text.values import nearest

Need = Literal[
    "expected turns", "intermediate responses", "a scenario", "rubrics", "a tool name", "a judge model"
]


@dataclass(frozen=True)
class MetricInfo:
    """A metric, with the function that computes it or the one that has it judged."""

    name: str
    meaning: str
    needs: tuple[Need, ...]
    function: Metric | None = None
    judged: JudgedMetric | None = None
    interval: tuple[float, float] | None = (0.0, 1.0)
    """The least and the greatest score, None where there is no greatest."""
    gates: bool = True
    """False for metrics that report a value and take no threshold."""
    source: Literal["adk", "evaltui"] = "adk"
    lower_is_better: bool = False

    @property
    def reads_calls(self) -> bool:
        """Whether nothing can be said of a turn whose tool calls are unknown."""
        return self.name in _READ_CALLS


_READ_CALLS = frozenset(
    (
        "tool_trajectory_avg_score",
        "trajectory_precision",
        "trajectory_recall",
        "trajectory_single_tool_use",
        "multi_turn_trajectory_quality_v1",
        "multi_turn_tool_use_quality_v1",
        "rubric_based_tool_use_quality_v1",
        "rubric_based_multi_turn_trajectory_quality_v1",
        # Responses are held against what tools returned.
        "hallucinations_v1",
    )
)


def _computed(function: Metric, meaning: str, *needs: Need, own: bool = False) -> MetricInfo:
    """A metric by the name of its function; `own` is whether only evaltui has it."""
    return MetricInfo(function.__name__, meaning, needs, function, source="evaltui" if own else "adk")


def _judged(
    judged: JudgedMetric, meaning: str, *needs: Need, interval: tuple[float, float] = (0.0, 1.0)
) -> MetricInfo:
    return MetricInfo(judged.__name__, meaning, (*needs, "a judge model"), judged=judged, interval=interval)


_EFFICIENCY = tuple(
    MetricInfo(function.__name__, meaning, (), function, interval=None, gates=False)
    for function, meaning in (
        (efficiency.tool_call_count_v1, "Tool calls per turn."),
        (efficiency.inference_call_count_v1, "Model calls per turn."),
        (efficiency.token_usage_v1, "Tokens per turn, input and output."),
        (efficiency.invocation_duration_v1, "Seconds per turn."),
    )
)

# Those of ADK in the order of its own registry, then those that only evaltui has.
_ALL = (
    _computed(
        trajectory.tool_trajectory_avg_score,
        "Rate of turns whose calls match the expected calls.",
        "expected turns",
    ),
    _judged(
        response_evaluation_score,
        "Quality of the responses.",
        interval=(1.0, 5.0),
    ),
    _computed(
        response_match.response_match_score,
        "Word overlap with the expected response (ROUGE-1 F).",
        "expected turns",
    ),
    _judged(safety_v1, "Harmlessness of the responses."),
    _judged(
        multi_turn_task_success_v1,
        "Rate of the user's goals that the conversation reached.",
    ),
    _judged(
        multi_turn_trajectory_quality_v1,
        "Quality of the trajectory of the whole conversation.",
    ),
    _judged(
        multi_turn_tool_use_quality_v1,
        "Quality of tool use in the whole conversation.",
    ),
    _judged(
        final_response_match_v2,
        "Rate of turns whose response agrees with the expected one.",
        "expected turns",
    ),
    _judged(
        rubric_metrics.rubric_based_final_response_quality_v1,
        "Rate of rubrics that the responses fulfil.",
        "rubrics",
    ),
    _judged(
        hallucinations_v1,
        "Rate of sentences in the responses that the context supports.",
    ),
    _judged(
        rubric_metrics.rubric_based_tool_use_quality_v1,
        "Rate of rubrics that the calls fulfil.",
        "rubrics",
    ),
    _judged(
        per_turn_user_simulator_quality_v1,
        "Rate of turns in which the simulated user kept to the scenario.",
        "a scenario",
    ),
    _judged(
        rubric_metrics.rubric_based_multi_turn_trajectory_quality_v1,
        "Rate of rubrics that the whole conversation fulfils.",
        "rubrics",
    ),
    *_EFFICIENCY,
    _computed(
        trajectory.trajectory_precision,
        "Rate of actual calls that are expected.",
        "expected turns",
        own=True,
    ),
    _computed(
        trajectory.trajectory_recall,
        "Rate of expected calls that were made.",
        "expected turns",
        own=True,
    ),
    _computed(
        trajectory.trajectory_single_tool_use,
        "1 if a turn calls the tool named in the criterion, else 0.",
        "a tool name",
        own=True,
    ),
    _computed(
        intermediate_match.intermediate_match_score,
        "Word overlap with the expected intermediate responses (ROUGE-1 F).",
        "expected turns",
        "intermediate responses",
        own=True,
    ),
    *(
        MetricInfo(
            function.__name__, meaning, (), function, interval=None, source="evaltui", lower_is_better=True
        )
        for function, meaning in (
            (spent.cost_usd, "US dollars that the agent may spend on a case; lower is better."),
            (spent.seconds, "Seconds that the turns of a case may take; lower is better."),
            (spent.tokens, "Tokens that the agent may use in a case; lower is better."),
        )
    ),
)

METRICS: dict[str, MetricInfo] = {info.name: info for info in _ALL}


def is_own(name: str) -> bool:
    """Whether there is a metric of this name that ADK does not have."""
    return name in METRICS and METRICS[name].source == "evaltui"


def is_known(metric: EvalMetric) -> bool:
    """Whether there is such a metric; only one that there is may be optional."""
    return metric.metric_name in METRICS or metric.custom_function_path is not None


def metrics_to_run(config: EvalConfig) -> list[EvalMetric]:
    """The metrics that the config asks for, then the efficiency metrics that it does not name."""
    asked = config.metrics()
    named = {metric.metric_name for metric in asked}
    return asked + [EvalMetric(metric_name=info.name) for info in _EFFICIENCY if info.name not in named]


def run_metric(given: MetricInput) -> MetricResult:
    """Compute a built-in metric. Never raises: what a metric raises becomes a result of status ERROR.

    The user's own metrics are computed where their function can be imported (see `custom`), not here.
    """
    metric = given.metric
    if metric.not_evaluated:
        return not_evaluated(metric, metric.not_evaluated)
    if metric.custom_function_path:
        return not_evaluated(metric, f"is computed by {metric.custom_function_path}, in the agent's process")
    info = METRICS.get(metric.metric_name)
    if info is None:
        unknown = MISPLACED if names_function(metric.criterion) else _unknown(metric.metric_name)
        return not_evaluated(metric, unknown)
    if info.function is None:
        return not_evaluated(metric, "is judged when the case is run")
    try:
        return info.function(given)
    except Exception as error:
        return _failed(metric, error)


async def run_judged_metric(given: MetricInput, judged: JudgedMetric, judge: Judge) -> MetricResult:
    """Have a judge decide a metric. Never raises but for a cancel, as `run_metric`."""
    try:
        return await judged(given, judge)
    except Exception as error:
        return _failed(given.metric, error)


def _failed(metric: EvalMetric, error: Exception) -> MetricResult:
    kind = ErrorKind.CONFIG if isinstance(error, CriterionError) else ErrorKind.JUDGE
    return failed_with(metric, ErrorInfo(type(error).__name__, str(error), traceback.format_exc(), kind=kind))


def _unknown(name: str) -> str:
    hit = nearest(name, METRICS)
    hint = f"Did you mean {hit}?" if hit else "`evaltui metrics` lists all metrics."
    return f"unknown metric {name}. {hint}"


Kind = Literal["choice", "flag", "text", "whole number", "rubrics"]


@dataclass(frozen=True)
class Option:
    """One key of a criterion. `path` is where it is, from the criterion, in snake_case.

    `default` is what applies where the key is absent; None where the metric cannot do without it.
    """

    path: JsonPath
    kind: Kind
    meaning: str
    default: Any = None
    choices: tuple[str, ...] = ()
    least: int | None = None

    @property
    def name(self) -> str:
        return str(self.path[-1])


_MATCH_TYPE = Option(
    ("match_type",),
    "choice",
    "EXACT: these calls and no others. IN_ORDER and ANY_ORDER allow further calls.",
    default="EXACT",
    choices=("EXACT", "IN_ORDER", "ANY_ORDER"),
)
_IGNORE_ARGS = Option(("ignore_args",), "flag", "Compare tool names only.", default=False)
_TOOL = Option(("tool",), "text", "The tool to be called in any turn.")
_RUBRICS = Option(
    ("rubrics",), "rubrics", "Rubrics for every case, besides the rubrics of cases and turns.", default=[]
)
_WITH_INTERMEDIATE = Option(
    ("include_intermediate_responses_in_final",),
    "flag",
    "Show the judge the intermediate responses, too.",
    default=False,
)
_EVERY_SENTENCE = Option(
    ("evaluate_intermediate_nl_responses",),
    "flag",
    "Check the intermediate responses, too.",
    default=False,
)
_STOP_SIGNAL = Option(
    ("stop_signal",),
    "text",
    "Message of the simulated user that ends the conversation.",
    default="</finished>",
)
_MODEL = Option(
    ("judge_model_options", "judge_model"),
    "text",
    "The judge: a Gemini model, or your function as module:callable.",
    default="gemini-2.5-flash",
)
_SAMPLES = Option(
    ("judge_model_options", "num_samples"),
    "whole number",
    "Votes per turn; the majority decides.",
    default=5,
    least=1,
)
_RATINGS = replace(_SAMPLES, meaning="Number of ratings; the median counts.")
# google-adk asks once, whatever the samples are.
_SAMPLES_OF_SENTENCES = replace(_SAMPLES, meaning="Votes per sentence; the majority decides.", default=1)
_PARALLEL = Option(
    ("judge_model_options", "parallelism_limit"),
    "whole number",
    "Questions to the judge at once.",
    default=1,
    least=1,
)

_FUNCTION = Option(
    ("function",), "text", "Your function that scores a turn, called with (actual, expected, criterion)."
)
_LOWER_IS_BETTER = Option(
    ("lower_is_better",),
    "flag",
    "Pass at or below the threshold. A function with ADK's signature decides itself.",
    default=False,
)

# Source: the criterion classes of google-adk 2.13, and which of their keys its metrics read.
_OPTIONS: dict[str, tuple[Option, ...]] = {
    "tool_trajectory_avg_score": (_MATCH_TYPE, _IGNORE_ARGS),
    "final_response_match_v2": (_MODEL, _SAMPLES, _PARALLEL, _WITH_INTERMEDIATE),
    "rubric_based_final_response_quality_v1": (_RUBRICS, _MODEL, _SAMPLES, _PARALLEL, _WITH_INTERMEDIATE),
    "rubric_based_tool_use_quality_v1": (_RUBRICS, _MODEL, _SAMPLES, _PARALLEL),
    "rubric_based_multi_turn_trajectory_quality_v1": (_RUBRICS, _MODEL, _SAMPLES, _PARALLEL),
    "hallucinations_v1": (_MODEL, _SAMPLES_OF_SENTENCES, _PARALLEL, _EVERY_SENTENCE),
    # google-adk has Vertex AI rate these, and reads a threshold only.
    "response_evaluation_score": (_MODEL, _RATINGS, _PARALLEL),
    "safety_v1": (_MODEL, _RATINGS, _PARALLEL),
    "multi_turn_task_success_v1": (_MODEL, _RATINGS, _PARALLEL),
    "multi_turn_trajectory_quality_v1": (_MODEL, _RATINGS, _PARALLEL),
    "multi_turn_tool_use_quality_v1": (_MODEL, _RATINGS, _PARALLEL),
    "per_turn_user_simulator_quality_v1": (_MODEL, _SAMPLES, _PARALLEL, _STOP_SIGNAL),
    "trajectory_precision": (_IGNORE_ARGS,),
    "trajectory_recall": (_IGNORE_ARGS,),
    "trajectory_single_tool_use": (_TOOL,),
}


def options_of(metric: str) -> tuple[Option, ...]:
    """The options of a metric by its name; none for a metric that has only a threshold."""
    return _OPTIONS.get(metric, ())


def options_of_own(*, scores_turns: bool) -> tuple[Option, ...]:
    """The options of a metric of the user's, in short form or of ADK's."""
    return (_FUNCTION, _LOWER_IS_BETTER) if scores_turns else (_LOWER_IS_BETTER,)
