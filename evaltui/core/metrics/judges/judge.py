"""Asking a judge: questions, sampled answers, and the vote over them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import ValidationError

from evaltui.core.metrics.judges.answers import Schema, without_quotations
from evaltui.core.metrics.metric import CriterionError, MetricInput, criterion_option, validation_text
from evaltui.core.model.config import EvalMetric
from evaltui.core.model.criteria import JudgeModelOptions
from evaltui.core.model.errors import NOT_RECORDED, ErrorKind
from evaltui.core.model.events import Json
from evaltui.core.model.judgement import Evidence, JudgedBy, Judgement, Vote
from evaltui.core.model.outcome import ErrorInfo, MetricResult
from evaltui.core.prompts import Prompt
from evaltui.text.figures import counted


@dataclass(frozen=True)
class Question:
    """A request to a judge.

    `turn` counts from 0. At most `options.parallelism_limit` questions of a metric are in progress at once,
    over all cases. `schema` is the format of the answer, as Gemini's `response_schema`; None for an answer
    that is no JSON. `material` is the part of the prompt that an answer may quote; None for all of it.
    """

    metric: str
    turn: int
    prompt: str
    options: JudgeModelOptions
    schema: Schema | None = None
    material: str | None = None


@dataclass(frozen=True)
class Answer:
    """The answer of a judge."""

    text: str
    is_replayed: bool = False
    cut_off: str = ""
    """Why the answer is incomplete, such as `MAX_TOKENS`; "" for a complete one."""
    usages: tuple[Json, ...] = ()
    """Tokens of each attempt as genai's usage metadata, if reported; the last one belongs to the text."""
    version: str = ""
    """The model that the response names; "" where it names none."""


class JudgeFailedError(Exception):
    """A question has no answer after all useful attempts.

    `was_asked` is false where no judge was asked, because a replay has no answer or a recorded failure.
    `usages` are the tokens of the attempts, as in `Answer`.
    """

    def __init__(self, error: ErrorInfo, *, was_asked: bool = True, usages: Sequence[Json] = ()) -> None:
        super().__init__(str(error))
        self.usages = usages
        self.error = error
        self.was_asked = was_asked

    @property
    def is_missed(self) -> bool:
        """Whether a replay has no response to the question."""
        return self.error.type == NOT_RECORDED


Judge = Callable[[Question], Awaitable[Answer]]
"""Answers a question, or raises JudgeFailedError. Concurrent questions are asked in their order."""

JudgedMetric = Callable[[MetricInput, Judge], Awaitable[MetricResult]]


def judge_options(metric: EvalMetric) -> JudgeModelOptions:
    """The judge options of a criterion, with ADK's defaults. Raises CriterionError."""
    try:
        options = criterion_option(metric, "judge_model_options")
        return JudgeModelOptions.model_validate({} if options is None else options)
    except ValidationError as error:
        wrong = validation_text(error, "the options")
        raise CriterionError(f"judge_model_options of {metric.metric_name}: {wrong}") from None


Sample = Answer | JudgeFailedError
"""The outcome of a question: an answer or an error."""


async def ask_samples(
    judge: Judge,
    metric: str,
    prompts: Mapping[int, str],
    options: JudgeModelOptions,
    schema: Schema | None = None,
    *,
    material: str | None = None,
    as_adk: bool = False,
) -> dict[int, list[Sample]]:
    """Asks `options.num_samples` times about each turn, concurrently; `prompts` and the result are by turn,
    from 0.

    `material` is that of `Question`. Questions are ordered by turn, then by sample. Cancelling the task
    cancels all questions.
    """
    questions = [
        Question(metric, turn, text, options, None if as_adk else schema, material)
        for turn, text in prompts.items()
        for _ in range(options.num_samples)
    ]
    samples: dict[int, list[Sample]] = {turn: [] for turn in prompts}
    for question, sample in zip(questions, await ask_all(judge, questions, as_adk=as_adk), strict=True):
        samples[question.turn].append(sample)
    return samples


async def ask_all(judge: Judge, questions: Iterable[Question], *, as_adk: bool = False) -> list[Sample]:
    """Asks all questions concurrently and returns their outcomes in order; cancelling the task cancels them.

    An incomplete answer counts as an error, because it may be a quotation. Verdicts that are quoted from the
    question are marked. google-adk reads both unchanged.
    """
    questions = list(questions)
    tasks = [asyncio.ensure_future(_ask(judge, question)) for question in questions]
    try:
        samples = await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    if as_adk:
        return samples
    return [
        _mark_own_quotes(sample, question.prompt if question.material is None else question.material)
        for question, sample in zip(questions, samples, strict=True)
    ]


def judged_by(options: JudgeModelOptions, prompt: Prompt, samples: Iterable[Sample]) -> JudgedBy:
    """The judge of a metric, with the numbers of its questions and answers."""
    all_samples = list(samples)
    answers = [sample for sample in all_samples if isinstance(sample, Answer)]
    return JudgedBy(
        model=options.judge_model,
        prompt=prompt.id,
        asked=len(all_samples),
        answered=len(answers),
        replayed=sum(answer.is_replayed for answer in answers),
        unasked=sum(isinstance(sample, JudgeFailedError) and not sample.was_asked for sample in all_samples),
        versions=tuple(dict.fromkeys(answer.version for answer in answers if answer.version)),
    )


async def _ask(judge: Judge, question: Question) -> Sample:
    try:
        return await judge(question)
    except JudgeFailedError as error:
        return error


def _mark_own_quotes(sample: Sample, material: str) -> Sample:
    if not isinstance(sample, Answer):
        return sample
    if not sample.cut_off:
        return replace(sample, text=without_quotations(sample.text, material))
    advice = (
        "raise max_output_tokens or lower the thinking budget"
        if sample.cut_off == "MAX_TOKENS"
        else "ask another model"
    )
    message = f"the judge's response was cut off ({sample.cut_off}): {advice}"
    error = ErrorInfo("UnfinishedAnswerError", message, kind=ErrorKind.JUDGE)
    return JudgeFailedError(error, was_asked=not sample.is_replayed)


def deciding_vote(votes: Sequence[Vote]) -> Vote | None:
    """The first vote of the majority among votes with a verdict; None without a verdict.

    A tie is negative, as in google-adk 2.13.
    """
    positive = [vote for vote in votes if vote.score == 1.0]
    negative = [vote for vote in votes if vote.score is not None and vote.score != 1.0]
    if len(positive) > len(negative):
        return positive[0]
    return negative[0] if negative else None


def judgement(subject_id: str, subject: str, votes: Sequence[Vote]) -> Judgement:
    """The judgement of a subject by its votes; without a score where no vote has a verdict."""
    decided = deciding_vote(votes)
    if decided is None:
        return Judgement(subject_id, subject, None, votes=tuple(votes))
    return Judgement(subject_id, subject, decided.score, decided.rationale, votes=tuple(votes))


def votes_of(samples: Sequence[Sample], read: Callable[[str], Vote]) -> tuple[Vote, ...]:
    """A vote for each sample; a failed sample becomes a vote without a verdict."""
    return tuple(
        replace(read(sample.text), version=sample.version)
        if isinstance(sample, Answer)
        else Vote(None, problem=str(sample))
        for sample in samples
    )


@dataclass(frozen=True)
class Statement:
    """The reading of an answer: its vote, and the quoted passages for and against."""

    vote: Vote
    evidence: tuple[Evidence, ...] = ()

    def by(self, version: str) -> Statement:
        """The statement as that of a version of a model."""
        return replace(self, vote=replace(self.vote, version=version)) if version else self


def votes_counted(votes: Sequence[Vote]) -> str:
    """The number of votes that count: `4 of 5 answers counted`; "" where all do."""
    valid = sum(vote.score is not None for vote in votes)
    return "" if valid == len(votes) else f"{valid} of {counted(len(votes), 'vote')} counted"


def _object(**properties: Schema) -> Schema:
    names = list(properties)
    return {"type": "OBJECT", "properties": properties, "required": names, "property_ordering": names}


def _list(items: Schema) -> Schema:
    return {"type": "ARRAY", "items": items}


def _one_of(*words: str) -> Schema:
    return {"type": "STRING", "enum": list(words)}


_TEXT: Schema = {"type": "STRING"}
_TEXT_OR_NULL: Schema = {"type": "STRING", "nullable": True}
_YES_OR_NO: Schema = {"type": "BOOLEAN"}

VALIDITY = _object(reasoning=_TEXT, is_the_agent_response_valid=_one_of("valid", "invalid"))
FULFILMENT = _object(
    rubrics=_list(_object(id=_TEXT, rationale=_TEXT, verdict=_one_of("yes", "no", "unknown")))
)
RATING = _object(**{"for": _list(_TEXT), "against": _list(_TEXT)}, reason=_TEXT, score={"type": "NUMBER"})
SENTENCES = _object(
    sentences=_list(
        _object(
            sentence={"type": "INTEGER"},
            reason=_TEXT,
            supporting=_TEXT_OR_NULL,
            contradicting=_TEXT_OR_NULL,
            label=_one_of("supported", "unsupported", "contradictory", "disputed", "not_applicable"),
        )
    )
)
SIMULATED_USER = _object(
    criteria=_list(_object(name=_TEXT, reason=_TEXT, passes=_YES_OR_NO)), reason=_TEXT, is_valid=_YES_OR_NO
)
