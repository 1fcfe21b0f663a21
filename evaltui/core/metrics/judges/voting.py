"""Asks a judge several times, and what the votes come to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from evaltui.core.metrics.judges.judge import (
    Answer,
    Judge,
    JudgeFailedError,
    JudgeModelOptions,
    Question,
    Schema,
)
from evaltui.core.model.outcome import ErrorInfo, JudgedBy, Judgement, Vote
from evaltui.core.prompts import Prompt

Sample = Answer | JudgeFailedError
"""What came of one question: an answer, or why there is none."""


async def ask_samples(
    judge: Judge,
    metric: str,
    prompts: Mapping[int, str],
    options: JudgeModelOptions,
    schema: Schema | None = None,
    *,
    as_adk: bool = False,
) -> dict[int, list[Sample]]:
    """Ask `options.num_samples` times about each turn, all at once; `prompts` and the samples are by turn.

    Turns count from 0; questions are put turn by turn, sample by sample. A cancel cancels them all.
    """
    questions = [
        Question(metric, turn, text, options, None if as_adk else schema)
        for turn, text in prompts.items()
        for _ in range(options.num_samples)
    ]
    samples: dict[int, list[Sample]] = {turn: [] for turn in prompts}
    for question, sample in zip(questions, await ask_all(judge, questions, as_adk=as_adk), strict=True):
        samples[question.turn].append(sample)
    return samples


async def ask_all(judge: Judge, questions: Iterable[Question], *, as_adk: bool = False) -> list[Sample]:
    """What came of each of the questions, in their order; all are put at once, and a cancel cancels all.

    An answer that was cut off is none: what it holds may be a quotation. google-adk reads it.
    """
    tasks = [asyncio.ensure_future(_ask(judge, question)) for question in questions]
    try:
        samples = await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    return samples if as_adk else [_whole(sample) for sample in samples]


def judged_by(options: JudgeModelOptions, prompt: Prompt, samples: Iterable[Sample]) -> JudgedBy:
    """Who judged, and how many of the questions were answered."""
    all_samples = list(samples)
    answers = [sample for sample in all_samples if isinstance(sample, Answer)]
    return JudgedBy(
        model=options.judge_model,
        prompt=prompt.id,
        asked=len(all_samples),
        answered=len(answers),
        replayed=sum(answer.is_replayed for answer in answers),
        unasked=sum(isinstance(sample, JudgeFailedError) and not sample.was_asked for sample in all_samples),
    )


async def _ask(judge: Judge, question: Question) -> Sample:
    try:
        return await judge(question)
    except JudgeFailedError as error:
        return error


def _whole(sample: Sample) -> Sample:
    if not isinstance(sample, Answer) or not sample.cut_off:
        return sample
    advice = (
        "give it more max_output_tokens or a smaller thinking budget"
        if sample.cut_off == "MAX_TOKENS"
        else "ask another model"
    )
    return JudgeFailedError(
        ErrorInfo("UnfinishedAnswerError", f"the judge's answer was cut off ({sample.cut_off}): {advice}"),
        was_asked=not sample.is_replayed,
    )


def deciding(votes: Sequence[Vote]) -> Vote | None:
    """The first vote of the majority among those with a verdict; None where none has one.

    A tie is negative, as in google-adk 2.13.
    """
    positive = [vote for vote in votes if vote.score == 1.0]
    negative = [vote for vote in votes if vote.score is not None and vote.score != 1.0]
    if len(positive) > len(negative):
        return positive[0]
    return negative[0] if negative else None


def judgement(subject_id: str, subject: str, votes: Sequence[Vote]) -> Judgement:
    """What the votes find of a subject; without a score where none of them has a verdict."""
    decided = deciding(votes)
    if decided is None:
        return Judgement(subject_id, subject, None, votes=tuple(votes))
    return Judgement(subject_id, subject, decided.score, decided.rationale, votes=tuple(votes))


def votes_of(samples: Sequence[Sample], read: Callable[[str], Vote]) -> tuple[Vote, ...]:
    """A vote for each sample; one that failed is a vote without a verdict."""
    return tuple(
        read(sample.text) if isinstance(sample, Answer) else Vote(None, problem=str(sample))
        for sample in samples
    )


def counted(votes: Sequence[Vote]) -> str:
    """`4 of 5 answers counted`; "" where all did."""
    valid = sum(vote.score is not None for vote in votes)
    return "" if valid == len(votes) else f"{valid} of {len(votes)} answers counted"
