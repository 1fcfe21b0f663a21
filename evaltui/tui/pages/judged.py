"""What judges found, beside the calls and the answer of a turn; folded where there is nothing to look at."""

from __future__ import annotations

from contextlib import nullcontext

from rich.cells import cell_len

from evaltui.core.compare.judged import findings_in, judged_as_a_whole, over_conversation
from evaltui.core.compare.judged_lines import finding_rows, judged_head
from evaltui.core.model.outcome import CaseResult, MetricResult, Status, worst_status
from evaltui.text.lines import Line, cells
from evaltui.text.outcomes import verdict
from evaltui.text.values import visible
from evaltui.tui.pages.writer import Page


def write_judged(page: Page, metric: MetricResult, turn: int, *, unfolded: bool) -> None:
    """A metric in one turn, counted from 0. What passed without a vote against it is a line; what failed for
    another reason than what was found says so."""
    scored, found = metric.per_invocation[turn], findings_in(metric, turn)
    head = judged_head(metric, scored, found)
    told = any(finding.needs_attention for finding in found)
    if scored.status is Status.PASSED and not told and not unfolded:
        _write_head(page, [("  ▸ ", "dim"), *head], "  space opens")
        return
    _write_head(page, [("  ▾ ", "dim"), *head])
    if not told and scored.reason:
        page.block([(visible(scored.reason), "dim")], 6)
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
        page.row(*head, (hint if cell_len(hint) <= room else "", "dim"))
    else:
        page.hanging(head, 6)


def write_conversation(page: Page, result: CaseResult, *, unfolded: bool) -> None:
    """What was found of all turns together, and what ended the conversation with a simulated user."""
    judged = judged_as_a_whole(result.metrics)
    if not judged and not result.stopped:
        return
    page.blank()
    status: Line = [*verdict(worst_status(one.status for one in judged)), ("  ", "")] if judged else []
    page.text([(visible(result.stopped), "dim")], [("Whole conversation", "bold"), ("  ", ""), *status])
    for metric in judged:
        for turn, scored in enumerate(metric.per_invocation):
            if scored.judgements:
                write_judged(page, metric, turn, unfolded=unfolded)
