"""Turns that a judge did not decide, or not in full."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import replace

from evaltui.core.metrics.judges.judge import Answer, JudgeFailedError
from evaltui.core.metrics.judges.labels import unreadable
from evaltui.core.metrics.judges.sampling import Sample
from evaltui.core.metrics.metric import in_turns
from evaltui.core.model.outcome import InvocationScore, Judgement, MetricResult, Status


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
