"""What the criterion of each metric can say beside its threshold, for a screen that offers it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from evaltui.core.model.problems import JsonPath

Kind = Literal["choice", "flag", "text", "whole number", "rubrics"]


@dataclass(frozen=True)
class Option:
    """One key of a criterion. `path` is where it is, from the criterion, in snake_case.

    `default` is what applies where the key is absent; None where the metric cannot do without it, or takes
    nothing for it.
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
    "EXACT: these calls and no others. IN_ORDER and ANY_ORDER allow further calls in between.",
    default="EXACT",
    choices=("EXACT", "IN_ORDER", "ANY_ORDER"),
)
_IGNORE_ARGS = Option(("ignore_args",), "flag", "Compare the names of the tools only.", default=False)
_TOOL = Option(("tool",), "text", "The tool that must be called in one of the turns.")
_RUBRICS = Option(
    ("rubrics",), "rubrics", "Rubrics for every case, beside those of cases and turns.", default=[]
)
_WITH_INTERMEDIATE = Option(
    ("include_intermediate_responses_in_final",),
    "flag",
    "Show the judge what was said before the answer, too.",
    default=False,
)
_EVERY_SENTENCE = Option(
    ("evaluate_intermediate_nl_responses",),
    "flag",
    "Check what was said before the answer, too.",
    default=False,
)
_STOP_SIGNAL = Option(
    ("stop_signal",),
    "text",
    "What the simulated user says when the conversation is over.",
    default="</finished>",
)
_MODEL = Option(
    ("judge_model_options", "judge_model"),
    "text",
    "Who judges: a Gemini model, or your function as module:callable.",
    default="gemini-2.5-flash",
)
_SAMPLES = Option(
    ("judge_model_options", "num_samples"),
    "whole number",
    "How often the judge is asked for each turn; the majority decides.",
    default=5,
    least=1,
)
_RATINGS = replace(_SAMPLES, meaning="How often the judge is asked; the middle one of its ratings counts.")
# google-adk asks once, whatever the samples are.
_SAMPLES_OF_SENTENCES = replace(
    _SAMPLES, meaning="How often the judge is asked; the majority decides about each sentence.", default=1
)
_PARALLEL = Option(
    ("judge_model_options", "parallelism_limit"),
    "whole number",
    "How many questions to the judge may be under way at once.",
    default=1,
    least=1,
)

_FUNCTION = Option(
    ("function",), "text", "Your function that scores a turn, called with (actual, expected, criterion)."
)
_LOWER_IS_BETTER = Option(
    ("lower_is_better",),
    "flag",
    "Scores up to the threshold pass, not those from it on. A function with ADK's signature decides itself.",
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
