"""Turns that a judge has decided, and what the metric makes of them."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from evaltui.core.metrics.judges.judge import Answer, JudgeFailedError, JudgeModelOptions, Sample, judged_by
from evaltui.core.metrics.judges.labels import unreadable
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
from evaltui.core.prompts import Prompt


def turn_without_verdict(
    samples: Sequence[Sample], judgements: tuple[Judgement, ...], *, is_readable: Callable[[str], bool]
) -> InvocationScore:
    """A turn of which no answer says anything that counts.

    An ERROR where no question was answered, or no answer could be read; NOT_EVALUATED where the judge would
    not tell.
    """
    answers = [sample.text for sample in samples if isinstance(sample, Answer)]
    if any(is_readable(text) for text in answers):
        return InvocationScore(None, Status.NOT_EVALUATED, "the judge gave no verdict", judgements)
    reason = unreadable(answers[0]).problem if answers else str(samples[0])
    return InvocationScore(None, Status.ERROR, reason, judgements)


def voided_as_adk(
    samples: Sequence[Sample], judgements: tuple[Judgement, ...], *, is_decided: bool
) -> InvocationScore | None:
    """In google-adk 2.13 one failed question voids the turn, and one without a verdict is passed over."""
    failed = next((sample for sample in samples if isinstance(sample, JudgeFailedError)), None)
    if failed is None and is_decided:
        return None
    reason = f"a question failed, which voids the turn: {failed}" if failed else "no answer could be read"
    unscored = tuple(replace(judgement, score=None) for judgement in judgements)
    return InvocationScore(None, Status.NOT_EVALUATED, reason, unscored)


def unless_open(result: MetricResult, unasked: Container[int] = ()) -> MetricResult:
    """A metric cannot pass while a part of what should have been judged was not.

    That is, a turn with a judgement that has no score, and one that nobody could be asked about.
    """
    reasons = {
        number: turn.reason
        for number, turn in enumerate(result.per_invocation)
        if number in unasked or any(judgement.score is None for judgement in turn.judgements)
    }
    if result.status is not Status.PASSED or not reasons:
        return result
    return replace(result, status=Status.NOT_EVALUATED, reason=in_turns(reasons))


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
