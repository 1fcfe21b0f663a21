"""A judge, as the metrics see one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from google.genai import types
from pydantic import BaseModel, ConfigDict, Field, StrictStr, ValidationError
from pydantic.alias_generators import to_camel

from evaltui.core.metrics.metric import CriterionError, MetricInput
from evaltui.core.model.config import EvalMetric
from evaltui.core.model.outcome import ErrorInfo, MetricResult


class JudgeModelOptions(BaseModel):
    """`judge_model` names a Gemini model or, as `module:callable`, a function that takes the prompt and
    returns the answer. Source of the shape: google-adk 2.13."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")

    judge_model: StrictStr = "gemini-2.5-flash"
    judge_model_config: types.GenerateContentConfig | None = None
    num_samples: int = Field(default=5, ge=1)
    parallelism_limit: int = Field(default=1, ge=1)


Schema = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """One request to a judge. `turn` counts from 0; of the questions of one metric, at most
    `options.parallelism_limit` are under way at once, however many cases are being judged. `schema` is the
    form of the answer, as Gemini's `response_schema` has it; None where it is not JSON."""

    metric: str
    turn: int
    prompt: str
    options: JudgeModelOptions
    schema: Schema | None = None


@dataclass(frozen=True)
class Answer:
    """What a judge said. `cut_off` is why it says no more, such as `MAX_TOKENS`; "" where it is whole."""

    text: str
    is_replayed: bool = False
    cut_off: str = ""


class JudgeFailedError(Exception):
    """A question that got no answer, after all the attempts that made sense.

    `was_asked` is false where nobody was asked: a replay has no answer, or has that there was none.
    """

    def __init__(self, error: ErrorInfo, *, was_asked: bool = True) -> None:
        super().__init__(str(error))
        self.error = error
        self.was_asked = was_asked


Judge = Callable[[Question], Awaitable[Answer]]
"""Answers a question, or raises JudgeFailedError. Questions asked at once are asked in that order."""

JudgedMetric = Callable[[MetricInput, Judge], Awaitable[MetricResult]]


def judge_options(metric: EvalMetric) -> JudgeModelOptions:
    """The criterion's `judge_model_options`, else ADK's defaults. Raises CriterionError."""
    extra: dict[str, Any] = (metric.criterion.model_extra or {}) if metric.criterion else {}
    given = extra.get("judge_model_options", extra.get("judgeModelOptions")) or {}
    try:
        return JudgeModelOptions.model_validate(given)
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(str(step) for step in problem['loc'])}: {problem['msg']}"
            for problem in error.errors(include_url=False)
        )
        raise CriterionError(f"judge_model_options of {metric.metric_name}: {wrong}") from None
