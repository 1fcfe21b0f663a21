"""Findings of judges: verdicts, votes and rationales."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from evaltui.core.metrics.declaration import JudgedItem
from evaltui.core.metrics.metric import verdict
from evaltui.core.metrics.registry import info_of
from evaltui.core.model.judgement import Judgement, Vote
from evaltui.core.model.outcome import InvocationScore, MetricResult, Status
from evaltui.text.figures import counted, show_number
from evaltui.text.values import cut, visible

_MAX_NAME_LENGTH = 60


@dataclass(frozen=True)
class Finding:
    """A judgement with its place: turn, and number in the turn, both from 0.

    Scores are yes or no, or ratings where it is `rated`.
    """

    metric: str
    turn: int
    number: int
    judgement: Judgement
    limit: float | None
    """The score from which on a judgement is positive; None for a rating without a threshold."""
    lower_is_better: bool
    """Whether scores up to `limit` are positive."""
    rated: bool

    @property
    def subject(self) -> JudgedItem:
        return info_of(self.metric).judged_item

    @property
    def good(self) -> bool | None:
        """Whether the judgement is positive; None where it is missing, or its score has no threshold."""
        return self.favours(self.judgement.score)

    def favours(self, score: float | None) -> bool | None:
        if score is None or self.limit is None:
            return None
        return verdict(score, self.limit, lower_is_better=self.lower_is_better) is Status.PASSED

    @property
    def is_contradictory(self) -> bool:
        """Whether some votes are positive and some negative."""
        return {True, False} <= {self.favours(vote.score) for vote in self.judgement.votes}

    @property
    def needs_attention(self) -> bool:
        return self.judgement.score is None or self.good is False or self.is_contradictory

    @property
    def name(self) -> str:
        """A few words that identify the finding among others."""
        of_answer = {"answer": "answer", "score": self.metric}.get(self.subject)
        shown = self.judgement.id or of_answer or self.judgement.subject or self.metric
        return cut(visible(" ".join(shown.split())), _MAX_NAME_LENGTH)

    @property
    def word(self) -> str:
        """The verdict in a word: `yes`, `contradictory`, `4.2`, `not judged`."""
        deciding = deciding_vote(self.judgement)
        return self._word(self.judgement.score, deciding.label if deciding else "") or "not judged"

    def word_of(self, vote: Vote) -> str:
        return self._word(vote.score, vote.label) or "no verdict"

    def _word(self, score: float | None, label: str) -> str:
        if score is None:
            return ""
        if self.rated:
            return show_number(score)
        if label and self.subject != "rubric":
            return visible(label.replace("_", " "))
        return "yes" if self.favours(score) else "no"

    @property
    def tally(self) -> str:
        """The share of votes for the verdict, `4/5`, or the ratings, `4 4 5`; "" for a single vote and for no
        votes."""
        votes = self.judgement.votes
        scores = [vote.score for vote in votes if vote.score is not None]
        if len(votes) < 2 or not scores:
            return ""
        if self.rated:
            left_out = f" of {len(votes)}" if len(scores) < len(votes) else ""
            return " ".join(map(show_number, scores)) + left_out
        return f"{sum(self.favours(score) is True for score in scores)}/{len(votes)}"

    @property
    def votes_in_words(self) -> str:
        """The votes for the verdict among those that count: `4 of 5 votes`; "" where this adds nothing."""
        valid = [vote for vote in self.judgement.votes if vote.score is not None]
        if self.rated or len(self.judgement.votes) < 2 or not valid:
            return ""
        same = sum(self.favours(vote.score) is self.good for vote in valid)
        lost = len(self.judgement.votes) - len(valid)
        tie = ", a tie" if 2 * same == len(valid) else ""
        return f"{same} of {counted(len(valid), 'vote')}{tie}{f', {lost} without a verdict' if lost else ''}"

    @property
    def why(self) -> str:
        """The rationale of the deciding vote; the problem of a missing judgement."""
        deciding = deciding_vote(self.judgement)
        problems = (vote.problem for vote in self.judgement.votes if vote.problem)
        rationale = self.judgement.rationale or (deciding.rationale if deciding else "")
        return rationale or (next(problems, "") if self.judgement.score is None else "")


def deciding_vote(judgement: Judgement) -> Vote | None:
    """The first vote with the verdict; None without one, as for a mean of ratings."""
    same = (vote for vote in judgement.votes if vote.score == judgement.score)
    return next(same, None)


def was_judged(metric: MetricResult) -> bool:
    return any(turn.judgements for turn in metric.per_invocation)


def findings(metric: MetricResult) -> Iterator[Finding]:
    """The findings of a metric, turn by turn."""
    for turn in range(len(metric.per_invocation)):
        yield from findings_in(metric, turn)


def findings_in(metric: MetricResult, turn: int) -> list[Finding]:
    """The findings on a turn, counted from 0; empty for a turn without judgement."""
    judgements = metric.per_invocation[turn].judgements if turn < len(metric.per_invocation) else ()
    if not judgements:
        return []
    rated = info_of(metric.name).judged_item == "score"
    limit = metric.threshold if rated else 1.0
    lower_is_better = rated and metric.lower_is_better
    return [
        Finding(metric.name, turn, number, judgement, limit, lower_is_better, rated)
        for number, judgement in enumerate(judgements)
    ]


def judged_metrics(metrics: Iterable[MetricResult], turn: int) -> list[MetricResult]:
    """The metrics with findings on a turn, or with a judge's failure there, without metrics of the whole
    conversation."""
    return [
        metric
        for metric in metrics
        if turn < len(metric.per_invocation)
        and _has_judgement(metric, metric.per_invocation[turn])
        and not info_of(metric.name).whole_conversation
    ]


def _has_judgement(metric: MetricResult, scored: InvocationScore) -> bool:
    failed = metric.judge is not None and scored.status in ("FAILED", "ERROR")
    return bool(scored.judgements) or failed


def conversation_metrics(metrics: Iterable[MetricResult]) -> list[MetricResult]:
    return [metric for metric in metrics if info_of(metric.name).whole_conversation and was_judged(metric)]
