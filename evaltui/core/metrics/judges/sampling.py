"""Asking a judge several times about each turn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from evaltui.core.metrics.judges.judge import Answer, Judge, JudgeFailedError, JudgeModelOptions, Question
from evaltui.core.metrics.judges.prompts import Prompt
from evaltui.core.outcome import JudgedBy

Sample = Answer | JudgeFailedError
"""What came of one question: an answer, or why there is none."""


async def ask_samples(
    judge: Judge, metric: str, prompts: Mapping[int, str], options: JudgeModelOptions
) -> dict[int, list[Sample]]:
    """Ask `options.num_samples` times about each turn, all at once; `prompts` and the samples are by turn.

    Turns count from 0; questions are put turn by turn, sample by sample. A cancel cancels them all.
    """
    questions = [
        Question(metric, turn, text, options)
        for turn, text in prompts.items()
        for _ in range(options.num_samples)
    ]
    samples: dict[int, list[Sample]] = {turn: [] for turn in prompts}
    for question, sample in zip(questions, await ask_all(judge, questions), strict=True):
        samples[question.turn].append(sample)
    return samples


async def ask_all(judge: Judge, questions: Iterable[Question]) -> list[Sample]:
    """What came of each of the questions, in their order; all are put at once, and a cancel cancels all."""
    tasks = [asyncio.ensure_future(_ask(judge, question)) for question in questions]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


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
