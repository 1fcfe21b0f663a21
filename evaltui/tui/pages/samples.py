"""Every answer that a judge gave, in full: on one thing that it judged, or on all of them."""

from __future__ import annotations

from collections.abc import Iterable

from evaltui.core.compare.judged import Finding, findings, over_conversation, was_judged
from evaltui.core.compare.judged_lines import judge_line, mark, shown
from evaltui.core.model.outcome import MetricResult, Vote
from evaltui.text.lines import Line, cells
from evaltui.text.outcomes import glyph
from evaltui.text.values import scores, visible
from evaltui.tui.pages.writer import Page

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
        page.block([(f"{judge_line(metric.judge)}, {prompt}", "dim")], 2)


def _write_samples(page: Page, finding: Finding) -> None:
    judgement = finding.judgement
    page.text(_said(finding), [mark(finding.good), (f" {finding.word}  ", "")])
    if judgement.id and judgement.subject:
        page.block([(shown(judgement.subject, _LONGEST), "")], 2)
    heads = [_head(finding, number, vote) for number, vote in enumerate(judgement.votes, start=1)]
    width = max(map(cells, heads), default=0)
    for head, vote in zip(heads, judgement.votes, strict=True):
        why = shown("\n".join(filter(None, (vote.rationale, vote.problem))), _LONGEST)
        page.text(
            [(why or "without a reason", "" if why else "dim")],
            [*head, (" " * (width - cells(head) + 2), "")],
        )
    if not judgement.votes and judgement.rationale:
        page.block([(shown(judgement.rationale, _LONGEST), "")], 2)
    for kind, text in judgement.evidence:
        page.text([(shown(text, _LONGEST), "")], [(f"  {visible(kind)}  ", "dim")])


def _said(finding: Finding) -> Line:
    """What was judged, and how the votes went."""
    judgement = finding.judgement
    subject = visible(judgement.id) if judgement.id else shown(judgement.subject, _LONGEST)
    line: Line = [(subject, "bold" if judgement.id else "")] if subject else []
    votes = finding.votes_in_words or finding.tally
    gap = "  " if line else ""
    return [*line, (f"{gap}{votes}" if votes else "", "dim")]


def _head(finding: Finding, number: int, vote: Vote) -> Line:
    return [(f"  {number:>3}  ", "dim"), mark(finding.favours(vote.score)), (f" {finding.word_of(vote)}", "")]
