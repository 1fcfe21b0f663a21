"""What judges found, told alike wherever it is shown: verdict, votes, reasons, and as rows of two columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from evaltui.core.model.judgement import JudgedBy, Judgement, Vote
from evaltui.core.model.outcome import InvocationScore, MetricResult, Status
from evaltui.text.figures import counted, show_number, show_scores
from evaltui.text.lines import Line, Span, cells
from evaltui.text.outcomes import glyph
from evaltui.text.values import cut, visible, visible_block

Subject = Literal["rubric", "sentence", "answer", "user", "score"]

_SUBJECTS: dict[str, Subject] = {
    "final_response_match_v2": "answer",
    "hallucinations_v1": "sentence",
    "per_turn_user_simulator_quality_v1": "user",
}
_RUBRIC_METRICS = "rubric_based_"
_LONGEST_NAME = 60


@dataclass(frozen=True)
class Finding:
    """A judgement and where it is: the `number`-th of a turn, both counted from 0.

    Scores from `bar` on speak for the agent; they are yes and no, or ratings where it is `rated`.
    """

    metric: str
    turn: int
    number: int
    judgement: Judgement
    bar: float
    rated: bool

    @property
    def subject(self) -> Subject:
        return subject_of(self.metric)

    @property
    def good(self) -> bool | None:
        """Whether it speaks for the agent; None where it was not judged."""
        return self.favours(self.judgement.score)

    def favours(self, score: float | None) -> bool | None:
        return None if score is None else score >= self.bar

    @property
    def is_contradictory(self) -> bool:
        """Whether some votes speak for the agent and some against it."""
        return {True, False} <= {self.favours(vote.score) for vote in self.judgement.votes}

    @property
    def needs_attention(self) -> bool:
        return self.good is not True or self.is_contradictory

    @property
    def name(self) -> str:
        """A few words that tell it from others."""
        of_answer = {"answer": "answer", "score": self.metric}.get(self.subject)
        shown = self.judgement.id or of_answer or self.judgement.subject or self.metric
        return cut(visible(" ".join(shown.split())), _LONGEST_NAME)

    @property
    def word(self) -> str:
        """`yes`, `contradictory`, `4.2`, `not judged`"""
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
        """The votes for and against it, `4:1`, or the ratings, `4 4 5`; `3:1 of 5` where one gave no verdict.

        "" where there is but one, or none counts.
        """
        votes = self.judgement.votes
        counted = [vote.score for vote in votes if vote.score is not None]
        if len(votes) < 2 or not counted:
            return ""
        left_out = f" of {len(votes)}" if len(counted) < len(votes) else ""
        if self.rated:
            return " ".join(map(show_number, counted)) + left_out
        ayes = sum(score >= self.bar for score in counted)
        return f"{ayes}:{len(counted) - ayes}{left_out}"

    @property
    def votes_in_words(self) -> str:
        """`4 of 5 votes`: those that say so, of those that gave a verdict; "" where that says nothing."""
        valid = [vote for vote in self.judgement.votes if vote.score is not None]
        if self.rated or len(self.judgement.votes) < 2 or not valid:
            return ""
        same = sum(self.favours(vote.score) is self.good for vote in valid)
        lost = len(self.judgement.votes) - len(valid)
        tie = ", a tie" if 2 * same == len(valid) else ""
        return f"{same} of {counted(len(valid), 'vote')}{tie}{f', {lost} without a verdict' if lost else ''}"

    @property
    def why(self) -> str:
        """The rationale of the vote that decided; of what was not judged, why it was not. As it was given."""
        deciding = deciding_vote(self.judgement)
        problems = (vote.problem for vote in self.judgement.votes if vote.problem)
        given = self.judgement.rationale or (deciding.rationale if deciding else "")
        return given or (next(problems, "") if self.judgement.score is None else "")


def deciding_vote(judgement: Judgement) -> Vote | None:
    """The first vote that says what came out; None where none does, as of a mean of ratings."""
    same = (vote for vote in judgement.votes if vote.score == judgement.score)
    return next(same, None)


def subject_of(metric: str) -> Subject:
    """What a judge is asked about by a metric: all else is given a score as a whole."""
    return "rubric" if metric.startswith(_RUBRIC_METRICS) else _SUBJECTS.get(metric, "score")


def over_conversation(metric: str) -> bool:
    """Whether a metric judges the conversation as one: its verdict stands at the last turn."""
    return "multi_turn_" in metric


def was_judged(metric: MetricResult) -> bool:
    return any(turn.judgements for turn in metric.per_invocation)


def findings(metric: MetricResult) -> Iterator[Finding]:
    """Everything that was found, turn by turn."""
    for turn in range(len(metric.per_invocation)):
        yield from findings_in(metric, turn)


def findings_in(metric: MetricResult, turn: int) -> list[Finding]:
    """What was found in a turn, counted from 0; nothing where it was not judged, or is not there."""
    judgements = metric.per_invocation[turn].judgements if turn < len(metric.per_invocation) else ()
    if not judgements:
        return []
    rated = subject_of(metric.name) == "score"
    bar = metric.threshold if rated and metric.threshold is not None else 1.0
    return [
        Finding(metric.name, turn, number, judgement, bar, rated)
        for number, judgement in enumerate(judgements)
    ]


def judged_in(metrics: Iterable[MetricResult], turn: int) -> list[MetricResult]:
    """The metrics by which something of a turn was judged, or that a judge's metric failed without asking;
    not those that judge the whole conversation."""
    return [
        metric
        for metric in metrics
        if turn < len(metric.per_invocation)
        and _has_judgement(metric, metric.per_invocation[turn])
        and not over_conversation(metric.name)
    ]


def _has_judgement(metric: MetricResult, scored: InvocationScore) -> bool:
    failed = metric.judge is not None and scored.status in ("FAILED", "ERROR")
    return bool(scored.judgements) or failed


def judged_as_a_whole(metrics: Iterable[MetricResult]) -> list[MetricResult]:
    return [metric for metric in metrics if over_conversation(metric.name) and was_judged(metric)]


def answered(judge: JudgedBy) -> str:
    """`4 of 5 answered, 2 replayed`"""
    parts = [f"{judge.answered} of {judge.asked} answered"]
    if judge.replayed:
        parts.append("all replayed" if judge.replayed == judge.answered else f"{judge.replayed} replayed")
    if judge.unasked:
        parts.append(f"{judge.unasked} not in the recording")
    return ", ".join(parts)


_STATUS_OF = {True: Status.PASSED, False: Status.FAILED, None: Status.NOT_EVALUATED}
_LONGEST_WHY = 600
_LONGEST_SUBJECT = 800
_LONGEST_EXCERPT = 300
_FULFILLED = {"rubric": "yes", "sentence": "supported"}


class Row(NamedTuple):
    """`head` is as wide as that of the other rows of its turn."""

    head: Line
    text: Line


def mark(good: bool | None) -> Span:
    """A glyph for yes, no, and not judged."""
    return glyph(_STATUS_OF[good])


def judge_line(judge: JudgedBy) -> str:
    """`judged by gemini-2.5-flash, 4 of 5 answered`"""
    return f"judged by {visible(judge.model)}, {answered(judge)}"


def judged_head(metric: MetricResult, scored: InvocationScore, found: Sequence[Finding]) -> Line:
    """`✗ hallucinations_v1  0.67 < 0.80  2 of 3 supported`; of what passed without what it needs."""
    needs = None if scored.status is Status.PASSED else metric.threshold
    line: Line = [
        glyph(scored.status),
        (f" {visible(metric.name)}", "bold"),
        (f"  {show_scores(scored.score, needs, metric.lower_is_better)}", ""),
    ]
    return [*line, (f"  {_count(found)}".rstrip(), "muted")]


def _count(found: Sequence[Finding]) -> str:
    """`2 of 3 supported`; of an answer its votes, `votes 3:2`."""
    if found and (word := _FULFILLED.get(found[0].subject)):
        return f"{sum(finding.good is True for finding in found)} of {len(found)} {word}"
    return f"votes {found[0].tally}" if len(found) == 1 and found[0].tally else ""


def finding_rows(found: Sequence[Finding], *, every_vote: bool) -> list[list[Row]]:
    """The rows of each finding. An answer, which is seen above them, has a row for each vote with
    `every_vote`; else, as all that has several, for the one that decided and one that speaks against it."""
    rows = [list(_rows(finding, every_vote=every_vote)) for finding in found]
    width = max((cells(row.head) for some in rows for row in some), default=0)
    return [
        [Row([*head, (" " * (width - cells(head) + 2), "")], text) for head, text in some] for some in rows
    ]


def _rows(finding: Finding, *, every_vote: bool) -> Iterator[Row]:
    votes = finding.judgement.votes
    against = _against(finding)
    if finding.subject not in ("answer", "score"):
        yield Row(_verdict(finding), _about(finding))
        if finding.needs_attention and finding.why:
            yield Row([], _reason(finding.why))
        if against is not None:
            yield Row([], [*_vote_head(finding, against), ("  ", ""), *_reason(against.rationale)])
    elif every_vote and len(votes) > 1:
        for vote, times in Counter(votes).items():
            often = f"{times}× " if times > 1 else ""
            yield Row(_vote_head(finding, vote), [(often, ""), *_reason(vote.rationale or vote.problem)])
    else:
        yield Row(_verdict(finding), _reason(finding.why))
        if against is not None:
            yield Row(_vote_head(finding, against), _reason(against.rationale))
    for evidence in finding.judgement.evidence if finding.needs_attention else ():
        excerpt = shown(evidence.text, _LONGEST_EXCERPT)
        yield Row([], [(f"{visible(evidence.kind)}  ", "muted"), (excerpt, "")])


def _verdict(finding: Finding) -> Line:
    """`✗ no 1:4`; the votes on an answer stand above it."""
    tally = "" if finding.subject in ("answer", "score") else f" {finding.tally}".rstrip()
    role = "warning" if finding.is_contradictory else "muted"
    return [mark(finding.good), (f" {finding.word}", ""), (tally, role)]


def _vote_head(finding: Finding, vote: Vote) -> Line:
    return [mark(finding.favours(vote.score)), (f" {finding.word_of(vote)}", "")]


def _about(finding: Finding) -> Line:
    judgement = finding.judgement
    name: Line = [(f"{finding.name}  ", "bold")] if judgement.id else []
    return [*name, (shown(judgement.subject, _LONGEST_SUBJECT), "")]


def _reason(text: str) -> Line:
    return [(shown(text, _LONGEST_WHY), "muted")]


def _against(finding: Finding) -> Vote | None:
    """The first vote that says the opposite of what came out."""
    if not finding.is_contradictory:
        return None
    return next(vote for vote in finding.judgement.votes if finding.favours(vote.score) is (not finding.good))


def shown(text: str, limit: int) -> str:
    """A text of others, on as many lines as it has, cut to `limit` characters."""
    return cut(visible_block(text.strip()), limit)
