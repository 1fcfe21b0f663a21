"""Several answers of a judge on one subject, and the one that decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evaltui.core.metrics.judges.judge import Answer
from evaltui.core.metrics.judges.sampling import Sample
from evaltui.core.model.outcome import Judgement, Vote


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
