"""Samples: asked in order and at once, failures kept, a cancel for all."""

import asyncio

import pytest
from judge_cases import failed
from scripted_judge import ScriptedJudge

from evaltui.core.metrics.judges.judge import (
    Answer,
    JudgeFailedError,
    ask_samples,
    judged_by,
)
from evaltui.core.model.criteria import JudgeModelOptions
from evaltui.core.model.judgement import JudgedBy
from evaltui.core.model.outcome import ErrorInfo
from evaltui.core.prompts import Prompt

OPTIONS = JudgeModelOptions(num_samples=2)
PROMPTS = {0: "first?", 2: "third?"}


async def test_questions_are_put_turn_by_turn_and_sample_by_sample():
    judge = ScriptedJudge("a", "b", failed(), "d")

    samples = await ask_samples(judge, "metric", PROMPTS, OPTIONS)

    assert [(one.turn, one.prompt) for one in judge.questions] == [
        (0, "first?"),
        (0, "first?"),
        (2, "third?"),
        (2, "third?"),
    ]
    assert samples[0] == [Answer("a"), Answer("b")]
    assert isinstance(samples[2][0], JudgeFailedError)
    assert samples[2][1] == Answer("d")


async def test_an_answer_that_was_cut_off_is_none_unless_it_is_read_as_by_adk():
    cut_off = Answer("valid", cut_off="MAX_TOKENS")

    samples = await ask_samples(ScriptedJudge(cut_off, "b"), "metric", {0: "?"}, OPTIONS)

    assert isinstance(samples[0][0], JudgeFailedError)
    assert str(samples[0][0]) == (
        "UnfinishedAnswerError: the judge's response was cut off (MAX_TOKENS): "
        "raise max_output_tokens or lower the thinking budget"
    )
    as_adk = await ask_samples(ScriptedJudge(cut_off, "b"), "metric", {0: "?"}, OPTIONS, as_adk=True)
    assert as_adk[0] == [cut_off, Answer("b")]


async def test_a_cancel_cancels_every_question():
    waiting, cancelled = [], []
    all_wait = asyncio.Event()

    async def judge(question):
        waiting.append(question)
        if len(waiting) == 4:
            all_wait.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(question)
            raise

    asking = asyncio.create_task(ask_samples(judge, "metric", PROMPTS, OPTIONS))
    await all_wait.wait()
    asking.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asking
    assert len(cancelled) == 4


def test_who_judged_says_how_many_answered():
    unasked = JudgeFailedError(ErrorInfo("MissError", "not recorded", kind=None), was_asked=False)
    samples = [Answer("a"), Answer("b", is_replayed=True), failed(), unasked]

    judged = judged_by(OPTIONS, Prompt("test/1", ""), samples)

    assert judged == JudgedBy("gemini-2.5-flash", "test/1", asked=4, answered=2, replayed=1, unasked=1)
