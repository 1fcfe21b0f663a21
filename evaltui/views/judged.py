"""Findings of judges as rows: verdict, votes and reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evaltui.core.compare.judged import Finding, findings_in
from evaltui.core.model.judgement import JudgedBy, Vote
from evaltui.core.model.outcome import InvocationScore, MetricResult, Status
from evaltui.core.model.served import is_other_model
from evaltui.text.figures import short_list, show_scores
from evaltui.text.lines import Line, Span, cells, fill_line
from evaltui.text.outcomes import glyph
from evaltui.text.values import cut, visible, visible_block


def answers_text(judge: JudgedBy) -> str:
    """The number of answered questions of a judge: `4 of 5 answered, 2 replayed`."""
    parts = [f"{judge.answered} of {judge.asked} answered"]
    if judge.replayed:
        parts.append("all replayed" if judge.replayed == judge.answered else f"{judge.replayed} replayed")
    if judge.unasked:
        parts.append(f"{judge.unasked} not in the recording")
    return ", ".join(parts)


_VERDICT_STATUSES = {True: Status.PASSED, False: Status.FAILED, None: Status.INFORMATIONAL}
_MAX_WHY_LENGTH = 600
_MAX_SUBJECT_LENGTH = 800
_MAX_EXCERPT_LENGTH = 300
_POSITIVE_WORDS = {"rubric": "yes", "sentence": "supported"}


class Row(NamedTuple):
    """A row with a head, which has one width in all rows of a turn, and a text."""

    head: Line
    text: Line


def mark(finding: Finding, score: float | None) -> Span:
    """The glyph for fulfilled, not fulfilled, not judged, and rated without a threshold."""
    if score is None:
        return glyph(Status.NOT_EVALUATED)
    return glyph(_VERDICT_STATUSES[finding.favours(score)])


def judge_line(judge: JudgedBy) -> str:
    """The judge of a metric, and its answers: `judged by gemini-2.5-flash, 4 of 5 answered`."""
    return f"judged by {judge_name(judge)}, {answers_text(judge)}"


def judge_name(judge: JudgedBy) -> str:
    """`gemini-2.5-flash`; with other models that answered `gemini-2.5-flash (served by gemini-3.5-flash)`.

    A recording does not tell which model answers now.
    """
    others = [visible(version) for version in judge.versions if is_other_model(judge.model, version)]
    is_live = others and judge.live
    return f"{visible(judge.model)} (served by {short_list(others)})" if is_live else visible(judge.model)


@dataclass(frozen=True)
class JudgeFindings:
    """The findings of a judge on a turn, or on the whole conversation."""

    metric: MetricResult
    scored: InvocationScore
    findings: Sequence[Finding]
    rows: Sequence[Sequence[Row]]
    """The rows for each finding."""

    @property
    def head(self) -> Line:
        """The line above the findings: `✗ hallucinations_v1 0.67 < 0.80 2 of 3 supported`; without the
        threshold where the score passes."""
        metric, scored = self.metric, self.scored
        needs = None if scored.status is Status.PASSED else metric.threshold
        line: Line = [
            glyph(scored.status),
            (f" {visible(metric.name)}", "bold"),
            (f"  {show_scores(scored.score, needs, metric.lower_is_better)}", ""),
        ]
        return [*line, (f"  {self.count}".rstrip(), "muted")]

    @property
    def count(self) -> str:
        """The number of positive findings, `2 of 3 supported`; the votes for an answer, `votes 3/5`."""
        findings = self.findings
        if findings and (word := _POSITIVE_WORDS.get(findings[0].subject)):
            return f"{sum(finding.good is True for finding in findings)} of {len(findings)} {word}"
        return f"votes {findings[0].tally}" if len(findings) == 1 and findings[0].tally else ""

    @property
    def failed(self) -> bool:
        """Whether the metric failed here."""
        return self.scored.status in (Status.FAILED, Status.ERROR)

    @property
    def needs_attention(self) -> bool:
        """Whether a finding is negative, disputed or not judged."""
        return any(finding.needs_attention for finding in self.findings)


def judge_findings(metric: MetricResult, turn: int, *, every_vote: bool) -> JudgeFindings:
    """The findings of a metric on a turn, counted from 0.

    An answer, which is already shown above them, gets a row for each vote with `every_vote`; other findings
    with several votes get the deciding one and one against it.
    """
    findings = findings_in(metric, turn)
    rows = [list(_rows(finding, every_vote=every_vote)) for finding in findings]
    width = max((cells(row.head) for of_finding in rows for row in of_finding), default=0)
    padded = [[Row(fill_line(head, width + 2), text) for head, text in of_finding] for of_finding in rows]
    return JudgeFindings(metric, metric.per_invocation[turn], findings, padded)


def _rows(finding: Finding, *, every_vote: bool) -> Iterator[Row]:
    votes = finding.judgement.votes
    against = vote_against(finding)
    if finding.subject not in ("answer", "score"):
        yield Row(_verdict(finding), _subject_line(finding))
        if finding.needs_attention and finding.why:
            yield Row([], _reason_line(finding.why))
        if against is not None:
            yield Row([], [*_vote_head(finding, against), ("  ", ""), *_reason_line(against.rationale)])
    elif every_vote and len(votes) > 1:
        for vote, times in Counter(votes).items():
            often = f"{times}× " if times > 1 else ""
            yield Row(_vote_head(finding, vote), [(often, ""), *_reason_line(vote.rationale or vote.problem)])
    else:
        yield Row(_verdict(finding), _reason_line(finding.why))
        if against is not None:
            yield Row(_vote_head(finding, against), _reason_line(against.rationale))
    for evidence in finding.judgement.evidence if finding.needs_attention else ():
        excerpt = cut_block(evidence.text, _MAX_EXCERPT_LENGTH)
        yield Row([], [(f"{visible(evidence.kind)}  ", "muted"), (excerpt, "")])


def _verdict(finding: Finding) -> Line:
    """The verdict of a finding: `✗ no 1/5`; without votes for an answer, which has them in the line above."""
    tally = "" if finding.subject in ("answer", "score") else f" {finding.tally}".rstrip()
    role = "warning" if finding.is_contradictory else "muted"
    return [mark(finding, finding.judgement.score), (f" {finding.word}", ""), (tally, role)]


def _vote_head(finding: Finding, vote: Vote) -> Line:
    differ = len({other.version for other in finding.judgement.votes}) > 1
    version: Line = [(f" {visible(vote.version)}", "muted")] if differ and vote.version else []
    return [mark(finding, vote.score), (f" {finding.word_of(vote)}", ""), *version]


def _subject_line(finding: Finding) -> Line:
    judgement = finding.judgement
    name: Line = [(f"{finding.name}  ", "bold")] if judgement.id else []
    return [*name, (cut_block(judgement.subject, _MAX_SUBJECT_LENGTH), "")]


def _reason_line(text: str) -> Line:
    return [(cut_block(text, _MAX_WHY_LENGTH), "muted")]


def vote_against(finding: Finding) -> Vote | None:
    """The first vote that contradicts the verdict; None without one."""
    if not finding.is_contradictory:
        return None
    return next(vote for vote in finding.judgement.votes if finding.favours(vote.score) is (not finding.good))


def cut_block(text: str, limit: int) -> str:
    """A text from outside, cut to `limit` characters; its line ends stay."""
    return cut(visible_block(text.strip()), limit)
