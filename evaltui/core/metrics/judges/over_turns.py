"""Turns that a judge has decided, and what the metric makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from evaltui.core.metrics.judges.judge import JudgeFailedError, JudgeModelOptions
from evaltui.core.metrics.judges.prompts import Prompt
from evaltui.core.metrics.judges.sampling import Sample, judged_by
from evaltui.core.metrics.metric import (
    MetricInput,
    in_turns,
    mean,
    not_evaluated,
    nothing_to_score,
    required_threshold,
    verdict,
)
from evaltui.core.model.outcome import ErrorInfo, InvocationScore, Judgement, MetricResult, Status

NO_ANSWER = "there is no answer text"


def undecided(given: MetricInput, reason: str, judgements: tuple[Judgement, ...] = ()) -> InvocationScore:
    """A turn on which a judge was asked and gave no verdict: an error, which google-adk passes over."""
    status = Status.NOT_EVALUATED if given.as_adk else Status.ERROR
    return InvocationScore(None, status, reason, judgements)


def result_over_turns(
    given: MetricInput,
    turns: Sequence[InvocationScore],
    samples: Mapping[int, Sequence[Sample]],
    options: JudgeModelOptions,
    prompt: Prompt,
    *,
    score: float | None = None,
) -> MetricResult:
    """The verdict by `score`, else by the mean over the turns that have one; ERROR where a turn is.

    `samples` are those of each turn that was asked about. Raises CriterionError where the metric has no
    threshold.
    """
    threshold = required_threshold(given.metric)
    name, asked = given.metric.metric_name, judged_by(options, prompt, chain.from_iterable(samples.values()))
    judge = asked if asked.asked else None
    if reason := _reasons(turns, Status.ERROR):
        error = _error(turns, samples) or ErrorInfo("UnreadableAnswerError", reason)
        return MetricResult(name, None, threshold, Status.ERROR, tuple(turns), reason, error, judge=judge)
    scores = [turn.score for turn in turns if turn.score is not None]
    if not scores:
        reason = _reasons(turns, Status.NOT_EVALUATED) or nothing_to_score(turns)
        return replace(not_evaluated(given.metric, reason, tuple(turns)), judge=judge)
    overall = mean(scores) if score is None else score
    status = verdict(overall, threshold)
    reason = _reasons(turns, Status.FAILED)
    if status is Status.FAILED and not reason:
        reason = f"the mean over turns, {overall!r}, is below {threshold!r}"
    return MetricResult(name, overall, threshold, status, tuple(turns), reason, judge=judge)


def _reasons(turns: Sequence[InvocationScore], status: Status) -> str:
    return in_turns({number: turn.reason for number, turn in enumerate(turns) if turn.status is status})


def _error(turns: Sequence[InvocationScore], samples: Mapping[int, Sequence[Sample]]) -> ErrorInfo | None:
    """Why a judge did not answer, of the first turn that is without a verdict for this."""
    return next(
        (
            sample.error
            for number, turn in enumerate(turns)
            if turn.status is Status.ERROR
            for sample in samples.get(number, ())
            if isinstance(sample, JudgeFailedError)
        ),
        None,
    )
