"""Findings of judges: in the turns of a case, and every vote in full."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext

from rich.cells import cell_len

from evaltui.core.compare.judged import (
    Finding,
    finding_rows,
    findings,
    findings_in,
    judge_line,
    judged_as_a_whole,
    judged_head,
    mark,
    over_conversation,
    shown,
    was_judged,
)
from evaltui.core.model.outcome import CaseResult, MetricResult, Status, Vote, worst_status
from evaltui.text.lines import Line, cells
from evaltui.text.outcomes import glyph, verdict
from evaltui.text.values import scores, visible
from evaltui.tui.pages.writer import Page


def write_judged(page: Page, metric: MetricResult, turn: int, *, unfolded: bool) -> None:
    """A metric in one turn, counted from 0. What passed without a vote against it is a line; what failed for
    another reason than what was found says so."""
    scored, found = metric.per_invocation[turn], findings_in(metric, turn)
    head = judged_head(metric, scored, found)
    attention = any(finding.needs_attention for finding in found)
    if scored.status is Status.PASSED and not attention and not unfolded:
        _write_head(page, [("  ▸ ", "muted"), *head], "  space opens")
        return
    _write_head(page, [("  ▾ ", "muted"), *head])
    if not attention and scored.reason:
        page.block([(visible(scored.reason), "muted")], 6)
    where = "whole conversation" if over_conversation(metric.name) else f"turn {turn + 1}"
    for finding, rows in zip(found, finding_rows(found, every_vote=True), strict=True):
        here = page.finding(f"{where} · {finding.name}", metric, finding)
        with here if finding.needs_attention else nullcontext():
            for first, text in rows:
                page.text(text, [("      ", ""), *first])


def _write_head(page: Page, head: Line, hint: str = "") -> None:
    """On one line, with the hint if it fits there as well; the names of metrics are long."""
    room = page.width - cells(head)
    if room >= 0:
        page.row(*head, (hint if cell_len(hint) <= room else "", "muted"))
    else:
        page.hanging(head, 6)


def write_conversation(page: Page, result: CaseResult, *, unfolded: bool) -> None:
    """What was found of all turns together, and what ended the conversation with a simulated user."""
    judged = judged_as_a_whole(result.metrics)
    if not judged and not result.stopped:
        return
    page.blank()
    status: Line = [*verdict(worst_status(one.status for one in judged)), ("  ", "")] if judged else []
    page.text([(visible(result.stopped), "muted")], [("Whole conversation", "bold"), ("  ", ""), *status])
    for metric in judged:
        for turn, scored in enumerate(metric.per_invocation):
            if scored.judgements:
                write_judged(page, metric, turn, unfolded=unfolded)


_LONGEST = 20_000


def write_finding(page: Page, metric: MetricResult, finding: Finding) -> None:
    _write_metric(page, metric)
    page.blank()
    _write_samples(page, finding)


def write_all_findings(page: Page, metrics: Iterable[MetricResult]) -> None:
    """What judges found by each of the metrics, turn by turn."""
    for metric in filter(was_judged, metrics):
        page.blank()
        _write_metric(page, metric)
        turn: int | None = None
        for finding in findings(metric):
            page.blank()
            if finding.turn != turn:
                turn = finding.turn
                whole = over_conversation(metric.name)
                page.row(("Whole conversation" if whole else f"Turn {turn + 1}", "bold"))
            _write_samples(page, finding)


def _write_metric(page: Page, metric: MetricResult) -> None:
    page.row(
        glyph(metric.status),
        (f" {visible(metric.name)}", "bold"),
        (f"  {scores(metric.score, metric.threshold, metric.lower_is_better)}", ""),
    )
    if metric.judge is not None:
        prompt = f"prompt {visible(metric.judge.prompt)}"
        page.block([(f"{judge_line(metric.judge)}, {prompt}", "muted")], 2)


def _write_samples(page: Page, finding: Finding) -> None:
    judgement = finding.judgement
    page.text(_subject(finding), [mark(finding.good), (f" {finding.word}  ", "")])
    if judgement.id and judgement.subject:
        page.block([(shown(judgement.subject, _LONGEST), "")], 2)
    heads = [_head(finding, number, vote) for number, vote in enumerate(judgement.votes, start=1)]
    width = max(map(cells, heads), default=0)
    for head, vote in zip(heads, judgement.votes, strict=True):
        why = shown("\n".join(filter(None, (vote.rationale, vote.problem))), _LONGEST)
        page.text(
            [(why or "without a reason", "" if why else "muted")],
            [*head, (" " * (width - cells(head) + 2), "")],
        )
    if not judgement.votes and judgement.rationale:
        page.block([(shown(judgement.rationale, _LONGEST), "")], 2)
    for kind, text in judgement.evidence:
        page.text([(shown(text, _LONGEST), "")], [(f"  {visible(kind)}  ", "muted")])


def _subject(finding: Finding) -> Line:
    """What was judged, and how the votes went."""
    judgement = finding.judgement
    subject = visible(judgement.id) if judgement.id else shown(judgement.subject, _LONGEST)
    line: Line = [(subject, "bold" if judgement.id else "")] if subject else []
    votes = finding.votes_in_words or finding.tally
    gap = "  " if line else ""
    return [*line, (f"{gap}{votes}" if votes else "", "muted")]


def _head(finding: Finding, number: int, vote: Vote) -> Line:
    return [
        (f"  {number:>3}  ", "muted"),
        mark(finding.favours(vote.score)),
        (f" {finding.word_of(vote)}", ""),
    ]
