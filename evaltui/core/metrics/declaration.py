"""Declarations of metrics, beside the functions that compute them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, get_args

from evaltui.core.metrics.judges.judge import JudgedMetric
from evaltui.core.metrics.metric import Metric
from evaltui.core.model.adk_defaults import default_models
from evaltui.core.model.config import EvalMetric
from evaltui.core.model.outcome import CallOp
from evaltui.core.model.problems import JsonPath

Need = Literal[
    "expected turns", "intermediate responses", "a scenario", "rubrics", "a tool name", "a judge model"
]
Subject = Literal["Calls", "Response", "Cost and time", "Judge", "Simulated user", "Own", "Informational"]
SUBJECTS: tuple[Subject, ...] = get_args(Subject)
"""Subjects of metrics in the order of lists; informational metrics have no verdict."""
JudgedItem = Literal["rubric", "sentence", "answer", "user", "score"]

Kind = Literal["choice", "flag", "text", "whole number", "rubrics"]


@dataclass(frozen=True)
class Option:
    """A key of a criterion.

    `path` is its path in the criterion, in snake_case. `default` applies if the key is absent; None for a
    required key.
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


@dataclass(frozen=True)
class MetricInfo:
    """A metric: its meaning, its needs, its options and its scores."""

    meaning: str
    needs: tuple[Need, ...] = ()
    options: tuple[Option, ...] = ()
    """The keys of its criterion besides the threshold, as in google-adk 2.13."""
    interval: tuple[float, float] | None = (0.0, 1.0)
    """The lowest and the highest score; None without a highest one."""
    is_yes_or_no: bool = False
    """Whether a case gets either the lowest or the highest score."""
    gates: bool = True
    """Whether the metric has a threshold and a verdict; otherwise it only reports a value."""
    source: Literal["adk", "evaltui"] = "adk"
    lower_is_better: bool = False
    reads_calls: bool = False
    """Whether the metric needs the tool calls of a turn."""
    compares: Literal["", "calls", "response", "texts"] = ""
    """The part of a turn that the metric compares with the expected turn."""
    call_differences: tuple[CallOp, ...] = ()
    """The call differences that lower its score, the worst first."""
    judged_item: JudgedItem = "score"
    """The item of a judge's verdict; `score` for metrics that judge a whole turn or conversation."""
    rubric_type: str = ""
    """The type of rubrics that only this metric judges; "" for none."""
    whole_conversation: bool = False
    """Whether it judges the whole conversation, with its verdict at the last turn."""
    label: str = ""
    """A short name; "" where its name without redundant words is short enough."""
    summed_as: str = ""
    """The name of its sum over the turns; "" for a metric without a sum."""
    adk_details: str = ""
    """The key of its details in google-adk's result files; "" for none."""
    name: str = ""
    function: Metric | None = None
    judged: JudgedMetric | None = None

    @property
    def subject(self) -> Subject:
        """The subject that the metric scores."""
        if not self.gates:
            return "Informational"
        if "a scenario" in self.needs:
            return "Simulated user"
        if self.judged is not None:
            return "Judge"
        if self.lower_is_better:
            return "Cost and time"
        return "Calls" if self.reads_calls else "Response"


DECLARED: dict[str, MetricInfo] = {}
"""The metrics of imported modules by name; `registry` imports all modules."""


def built_in(metric: EvalMetric) -> MetricInfo | None:
    """The declaration of a built-in metric; None for a custom or an unknown one."""
    return DECLARED.get(metric.metric_name) if metric.custom_function_path is None else None


_Function = TypeVar("_Function", bound=Callable[..., Any])


def metric(info: MetricInfo) -> Callable[[_Function], _Function]:
    """Declares a function as the metric with its name: a function that computes it, or an async one that asks
    a judge."""

    def declare(function: _Function) -> _Function:
        named = replace(info, name=function.__name__)
        if inspect.iscoroutinefunction(function):
            named = replace(named, judged=function, needs=(*info.needs, "a judge model"))
        else:
            named = replace(named, function=function)
        DECLARED[named.name] = named
        return function

    return declare


IGNORE_ARGS = Option(("ignore_args",), "flag", "Compare tool names only.", default=False)
RUBRICS = Option(
    ("rubrics",), "rubrics", "Rubrics for every case, besides the rubrics of cases and turns.", default=[]
)
WITH_INTERMEDIATE = Option(
    ("include_intermediate_responses_in_final",),
    "flag",
    "Show the judge the intermediate responses, too.",
    default=False,
)
JUDGE_MODEL = Option(
    ("judge_model_options", "judge_model"),
    "text",
    "The judge: a Gemini model, or your function as module:callable.",
    default=default_models().judge,
)
SAMPLES = Option(
    ("judge_model_options", "num_samples"),
    "whole number",
    "Votes per turn; the majority decides.",
    default=5,
    least=1,
)
PARALLEL = Option(
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


def own_metric_options(*, scores_turns: bool) -> tuple[Option, ...]:
    """The options of a custom metric, in short form or in ADK's form."""
    return (_FUNCTION, _LOWER_IS_BETTER) if scores_turns else (_LOWER_IS_BETTER,)
