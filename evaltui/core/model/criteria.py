"""The criteria of ADK's metrics as classes, for configs in Python; config files have the same keys.

Source of names and defaults: google-adk 2.13.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, StrictStr
from pydantic.alias_generators import to_camel

from .adk_defaults import default_models
from .base_model import DataModel
from .config import BaseCriterion
from .content import GenaiType
from .eval_set import Rubric


class PrebuiltMetrics(StrEnum):
    """The names of ADK's metrics."""

    TOOL_TRAJECTORY_AVG_SCORE = "tool_trajectory_avg_score"
    RESPONSE_EVALUATION_SCORE = "response_evaluation_score"
    RESPONSE_MATCH_SCORE = "response_match_score"
    SAFETY_V1 = "safety_v1"
    FINAL_RESPONSE_MATCH_V2 = "final_response_match_v2"
    RUBRIC_BASED_FINAL_RESPONSE_QUALITY_V1 = "rubric_based_final_response_quality_v1"
    HALLUCINATIONS_V1 = "hallucinations_v1"
    RUBRIC_BASED_TOOL_USE_QUALITY_V1 = "rubric_based_tool_use_quality_v1"
    PER_TURN_USER_SIMULATOR_QUALITY_V1 = "per_turn_user_simulator_quality_v1"
    MULTI_TURN_TASK_SUCCESS_V1 = "multi_turn_task_success_v1"
    MULTI_TURN_TRAJECTORY_QUALITY_V1 = "multi_turn_trajectory_quality_v1"
    MULTI_TURN_TOOL_USE_QUALITY_V1 = "multi_turn_tool_use_quality_v1"
    RUBRIC_BASED_MULTI_TURN_TRAJECTORY_QUALITY_V1 = "rubric_based_multi_turn_trajectory_quality_v1"
    TOOL_CALL_COUNT_V1 = "tool_call_count_v1"
    INFERENCE_CALL_COUNT_V1 = "inference_call_count_v1"
    TOKEN_USAGE_V1 = "token_usage_v1"
    INVOCATION_DURATION_V1 = "invocation_duration_v1"


class JudgeModelOptions(DataModel):
    """The judge model, and the number of its answers."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")

    judge_model: StrictStr = default_models().judge
    """A Gemini model or, as `module:callable`, a function that takes the prompt and returns the answer. By
    default that of the installed google-adk."""
    judge_model_config: Annotated[Any, GenaiType("GenerateContentConfig")] | None = None
    """Generation settings of a Gemini model; None for its defaults."""
    num_samples: int = Field(default=5, ge=1)
    """Number of answers to each question; the majority decides."""
    parallelism_limit: int = Field(default=1, ge=1)
    """Number of concurrent questions."""


class MatchType(Enum):
    """EXACT allows no other calls; IN_ORDER and ANY_ORDER allow further calls in between."""

    EXACT = 0
    IN_ORDER = 1
    ANY_ORDER = 2


def _by_name(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    name = value.strip().upper().replace("-", "_").replace(" ", "_")
    return MatchType.__members__.get(name, value)


MatchTypeByName = Annotated[
    MatchType,
    BeforeValidator(_by_name),
    PlainSerializer(lambda match_type: match_type.name, when_used="json"),
]
"""A match type, also by its name."""


class ToolTrajectoryCriterion(BaseCriterion):
    """Criterion of tool trajectories: the calls that count as the expected ones."""

    MatchType: ClassVar[type[MatchType]] = MatchType
    match_type: MatchTypeByName = MatchType.EXACT
    """Whether other calls are allowed, and whether the order matters."""
    ignore_args: bool = False
    """Whether only names of tools are compared."""


class LlmAsAJudgeCriterion(BaseCriterion):
    """A criterion of a judged metric."""

    judge_model_options: JudgeModelOptions = Field(default_factory=JudgeModelOptions)
    """The judge."""


class RubricsBasedCriterion(LlmAsAJudgeCriterion):
    """A criterion of a metric that judges rubrics."""

    rubrics: list[Rubric] = Field(default_factory=list)
    """Rubrics of every case, besides those of cases and turns."""


class HallucinationsCriterion(LlmAsAJudgeCriterion):
    """A criterion of a metric that judges each sentence of an answer."""

    evaluate_intermediate_nl_responses: bool = False
    """Whether texts before the answer are also judged."""


class LlmBackedUserSimulatorCriterion(LlmAsAJudgeCriterion):
    """A criterion of a metric that judges the messages of a simulated user."""

    stop_signal: str = "</finished>"
    """Message of the simulated user that ends the conversation."""
