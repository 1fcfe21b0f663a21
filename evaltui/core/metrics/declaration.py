"""Declaration of a metric, beside the function that computes it or has it judged."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, get_args

from evaltui.core.metrics.judges.judge import JudgedMetric
from evaltui.core.metrics.metric import Metric
from evaltui.core.model.adk_defaults import default_models
from evaltui.core.model.outcome import CallOp
from evaltui.core.model.problems import JsonPath

Need = Literal[
    "expected turns", "intermediate responses", "a scenario", "rubrics", "a tool name", "a judge model"
]
Subject = Literal["Calls", "Response", "Cost and time", "Judge", "Simulated user", "Own", "Informational"]
SUBJECTS: tuple[Subject, ...] = get_args(Subject)
"""Subjects of metrics in the order of lists; informational ones are reported, not judged."""
JudgedItem = Literal["rubric", "sentence", "answer", "user", "score"]

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


@dataclass(frozen=True)
class MetricInfo:
    """A metric: its meaning, needs, options, and how its results are read."""

    meaning: str
    needs: tuple[Need, ...] = ()
    options: tuple[Option, ...] = ()
    """The keys of its criterion besides the threshold. Source: the criterion classes of google-adk 2.13, and
    which of their keys its metrics read."""
    interval: tuple[float, float] | None = (0.0, 1.0)
    """The least and the greatest score, None where there is no greatest."""
    is_yes_or_no: bool = False
    """True where a case scores the least or the greatest, nothing between."""
    gates: bool = True
    """False for metrics that report a value and take no threshold."""
    source: Literal["adk", "evaltui"] = "adk"
    lower_is_better: bool = False
    reads_calls: bool = False
    """Whether nothing can be said of a turn whose tool calls are unknown."""
    compares: Literal["", "calls", "response", "texts"] = ""
    """The part of a turn that the metric compares with the expected one."""
    call_differences: tuple[CallOp, ...] = ()
    """The differences between calls that lower its score, the worst first."""
    judged_item: JudgedItem = "score"
    """The item that its judge gives a verdict on; the others get one score as a whole."""
    rubric_type: str = ""
    """Rubrics of a case or turn that name a type hold only for the metric of this type."""
    whole_conversation: bool = False
    """Whether it judges the conversation as one: its verdict stands at the last turn."""
    label: str = ""
    """Its name where there is little room; "" where its name without needless parts says it."""
    summed_as: str = ""
    """Its name in a result, where its figure is the sum over the turns."""
    adk_details: str = ""
    """The key of its details in google-adk's result files; "" where it has none."""
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
"""The metrics of the modules that are imported; `registry` imports them all."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


def metric(info: MetricInfo) -> Callable[[_Function], _Function]:
    """Declares a function as the metric of its name: one that computes, or, async, one that has it judged."""

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


def options_of_own(*, scores_turns: bool) -> tuple[Option, ...]:
    """The options of a metric of the user's, in short form or of ADK's."""
    return (_FUNCTION, _LOWER_IS_BETTER) if scores_turns else (_LOWER_IS_BETTER,)
