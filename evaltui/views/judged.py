"""Judges' findings as rows: verdict, votes and reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evaltui.core.compare.judged import Finding, findings_in
from evaltui.core.model.judgement import JudgedBy, Vote
from evaltui.core.model.outcome import InvocationScore, MetricResult, Status
from evaltui.core.model.served import is_other_model
from evaltui.text.figures import show_scores, some_of
from evaltui.text.lines import Line, Span, cells, filled
from evaltui.text.outcomes import glyph
from evaltui.text.values import cut, visible, visible_block


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
    return f"judged by {judge_name(judge)}, {answered(judge)}"


def judge_name(judge: JudgedBy) -> str:
    """`gemini-2.5-flash`; with other models that answered `gemini-2.5-flash (served by gemini-3.5-flash)`.

    A recording does not tell which model answers now.
    """
    others = [visible(version) for version in judge.versions if is_other_model(judge.model, version)]
    is_live = others and judge.live
    return f"{visible(judge.model)} (served by {some_of(others)})" if is_live else visible(judge.model)


@dataclass(frozen=True)
class Judged:
    """A judge's findings on a turn, or on the whole conversation."""

    metric: MetricResult
    scored: InvocationScore
    findings: Sequence[Finding]
    rows: Sequence[Sequence[Row]]
    """The rows of each finding, as `judged` makes them."""

    @property
    def head(self) -> Line:
        """`✗ hallucinations_v1  0.67 < 0.80  2 of 3 supported`; of what passed without what it needs."""
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
        """`2 of 3 supported`; of an answer its votes, `votes 3/5`."""
        findings = self.findings
        if findings and (word := _FULFILLED.get(findings[0].subject)):
            return f"{sum(finding.good is True for finding in findings)} of {len(findings)} {word}"
        return f"votes {findings[0].tally}" if len(findings) == 1 and findings[0].tally else ""

    @property
    def failed(self) -> bool:
        """Whether it speaks against the case."""
        return self.scored.status in (Status.FAILED, Status.ERROR)

    @property
    def needs_attention(self) -> bool:
        """Whether a finding is bad, disputed or not judged."""
        return any(finding.needs_attention for finding in self.findings)


def judged(metric: MetricResult, turn: int, *, every_vote: bool) -> Judged:
    """`turn` is counted from 0.

    An answer, which is seen above them, has a row for each vote with `every_vote`; else, as all that has
    several, for the one that decided and one that speaks against it."""
    findings = findings_in(metric, turn)
    rows = [list(_rows(finding, every_vote=every_vote)) for finding in findings]
    width = max((cells(row.head) for of_finding in rows for row in of_finding), default=0)
    padded = [[Row(filled(head, width + 2), text) for head, text in of_finding] for of_finding in rows]
    return Judged(metric, metric.per_invocation[turn], findings, padded)


def _rows(finding: Finding, *, every_vote: bool) -> Iterator[Row]:
    votes = finding.judgement.votes
    against = vote_against(finding)
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
    """`✗ no 1/5`; the votes on an answer stand above it."""
    tally = "" if finding.subject in ("answer", "score") else f" {finding.tally}".rstrip()
    role = "warning" if finding.is_contradictory else "muted"
    return [mark(finding.good), (f" {finding.word}", ""), (tally, role)]


def _vote_head(finding: Finding, vote: Vote) -> Line:
    differ = len({other.version for other in finding.judgement.votes}) > 1
    version: Line = [(f" {visible(vote.version)}", "muted")] if differ and vote.version else []
    return [mark(finding.favours(vote.score)), (f" {finding.word_of(vote)}", ""), *version]


def _about(finding: Finding) -> Line:
    judgement = finding.judgement
    name: Line = [(f"{finding.name}  ", "bold")] if judgement.id else []
    return [*name, (shown(judgement.subject, _LONGEST_SUBJECT), "")]


def _reason(text: str) -> Line:
    return [(shown(text, _LONGEST_WHY), "muted")]


def vote_against(finding: Finding) -> Vote | None:
    """The first vote that says the opposite of what came out."""
    if not finding.is_contradictory:
        return None
    return next(vote for vote in finding.judgement.votes if finding.favours(vote.score) is (not finding.good))


def shown(text: str, limit: int) -> str:
    """A text of others, on as many lines as it has, cut to `limit` characters."""
    return cut(visible_block(text.strip()), limit)
