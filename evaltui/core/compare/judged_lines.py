"""What judges found in a turn, as rows of two columns: the verdict, and what it is about and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from evaltui.core.compare.judged import Finding, answered
from evaltui.core.model.outcome import InvocationScore, JudgedBy, MetricResult, Status, Vote
from evaltui.text.lines import Line, Span, cells
from evaltui.text.outcomes import glyph
from evaltui.text.values import cut, scores, visible, visible_block

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
    """`✗ hallucinations_v1  0.67, needs 0.80  2 of 3 supported`; of what passed without what it needs."""
    needs = None if scored.status is Status.PASSED else metric.threshold
    line: Line = [
        glyph(scored.status),
        (f" {visible(metric.name)}", "bold"),
        (f"  {scores(scored.score, needs, metric.lower_is_better)}", ""),
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
    return [[Row(_filled(row.head, width), row.text) for row in some] for some in rows]


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
    for kind, text in finding.judgement.evidence if finding.needs_attention else ():
        yield Row([], [(f"{visible(kind)}  ", "muted"), (shown(text, _LONGEST_EXCERPT), "")])


def _verdict(finding: Finding) -> Line:
    """`✗ no 1:4`; the votes on an answer stand above it."""
    tally = "" if finding.subject in ("answer", "score") else f" {finding.tally}".rstrip()
    role = "warning" if finding.is_contradictory else "muted"
    return [mark(finding.good), (f" {finding.word}", ""), (tally, role)]


def _vote_head(finding: Finding, vote: Vote) -> Line:
    return [mark(finding.favours(vote.score)), (f" {finding.word_of(vote)}", "")]


def _filled(head: Line, width: int) -> Line:
    return [*head, (" " * (width - cells(head) + 2), "")]


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
