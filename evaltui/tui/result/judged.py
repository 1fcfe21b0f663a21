"""The findings of metrics: judges with their rubrics and votes, and why others did not pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

from evaltui.core.compare.explain import error_text
from evaltui.core.compare.judged import (
    Finding,
    findings,
    was_judged,
)
from evaltui.core.metrics.registry import info_of
from evaltui.core.model.judgement import Vote
from evaltui.core.model.outcome import CaseResult, MetricResult, Status
from evaltui.text.figures import show_scores
from evaltui.text.lines import Line, cells, filled
from evaltui.text.outcomes import ROLES, glyph
from evaltui.text.values import visible
from evaltui.tui.result.verdict import ROOMY, short_names
from evaltui.tui.widgets.writer import Folding, Page, fold_of
from evaltui.views.cause import place_of
from evaltui.views.judged import answered, judge_line, judged, mark, shown
from evaltui.views.result import gating

_WAYS = ("EXACT", "IN_ORDER", "ANY_ORDER")
# What their failures come from stands in the turns, or in the final state.
_SHOWN_ELSEWHERE = ("tool_trajectory_avg_score", "response_match_score")


def write_metrics(page: Page, result: CaseResult, folding: Folding, *, fits: bool) -> None:
    """Writes a part for each judged metric, and for each that has a reason for not passing.

    Passed ones are open where all of the page `fits`.
    """
    metrics = gating(result)
    for metric, name in zip(
        metrics, short_names([metric.name for metric in metrics], shortest=False), strict=True
    ):
        if was_judged(metric) or metric.judge is not None:
            _write_judged(page, metric, name, folding, fits=fits)
        elif metric.name == "final_session_state" and not metric.error:
            continue
        elif _says_more(metric):
            _write_plain(page, metric, name, folding)


def _says_more(metric: MetricResult) -> bool:
    """Whether a metric without a judge has more to show than its card and the turns."""
    if metric.name not in _SHOWN_ELSEWHERE:
        return bool(metric.error or metric.reason)
    if metric.status is Status.FAILED:
        # Another way to compare calls would pass.
        return any(role == "success" for _, role in ways(metric))
    return metric.status is not Status.PASSED


def _head(page: Page, metric: MetricResult, name: str, key: str, *, is_open: bool, right: Line) -> None:
    needs = None if metric.status is Status.PASSED else metric.threshold
    figure = show_scores(metric.score, needs, metric.lower_is_better)
    left: Line = [
        ("▾ " if is_open else "▸ ", "faint"),
        (f"{name} ", "bold"),
        glyph(metric.status),
        (f" {figure}", ROLES[metric.status] if metric.score is not None else "muted"),
    ]
    full: Line = [(f"  {visible(metric.name)}", "faint")] if visible(metric.name) != name else []
    if cells(left) + cells(full) + cells(right) + 2 <= page.width:
        left += full
    page.fold(key, left, right)


def _write_judged(page: Page, metric: MetricResult, name: str, folding: Folding, *, fits: bool) -> None:
    key = f"metric {metric.name}"
    judged_turns = [turn for turn in metric.per_invocation if turn.judgements or turn.reason]
    attention = any(finding.needs_attention for finding in findings(metric)) or any(
        status is not Status.PASSED
        for status in (metric.status, *(judged_turn.status for judged_turn in judged_turns))
    )
    is_open = folding.is_open(key, usual=attention or fits)
    page.part(is_open=is_open)
    _head(page, metric, name, key, is_open=is_open, right=_judge(page, metric))
    if not is_open:
        return
    whole = info_of(metric.name).whole_conversation
    for number, scored in enumerate(metric.per_invocation):
        if not scored.judgements and not scored.reason:
            continue
        turn = judged(metric, number, every_vote=False)
        name = f"Turn {number + 1}" if len(metric.per_invocation) > 1 and not whole else ""
        if heading := "  ".join(filter(None, (name, turn.count))):
            page.row((f"  {heading}", "muted"))
        if scored.reason and not turn.needs_attention:
            page.block([(visible(scored.reason), "muted")], 4)
        for finding, rows in zip(turn.findings, turn.rows, strict=True):
            at = place_of(finding)
            with page.difference(at) if finding.needs_attention else nullcontext():
                for head, text in rows:
                    page.text(text, [("    ", ""), *head])
                if fold_of(at) in page.unfolded:
                    _write_samples(page, finding)
    if metric.reason and metric.status not in (Status.PASSED, Status.FAILED):
        page.block([(visible(metric.reason), "muted")], 4)


def _judge(page: Page, metric: MetricResult) -> Line:
    """The judge model, with the number of its answers; a complete number only where there is room."""
    judge = metric.judge
    if judge is None:
        return []
    is_detailed = page.width >= ROOMY or judge.answered < judge.asked or judge.replayed
    return [(f"judge {visible(judge.model)}{f', {answered(judge)}' if is_detailed else ''}", "muted")]


def _write_plain(page: Page, metric: MetricResult, name: str, folding: Folding) -> None:
    """Writes why a metric without a judge did not pass, and which match types would."""
    key = f"metric {metric.name}"
    usual = metric.status is not Status.PASSED and metric.name not in _SHOWN_ELSEWHERE
    is_open = folding.is_open(key, usual=usual)
    page.part(is_open=is_open)
    _head(page, metric, name, key, is_open=is_open, right=list(ways(metric)))
    reason = error_text(metric.error) if metric.error else visible(metric.reason)
    if is_open and reason:
        page.block([(reason, "muted")], 4)


def ways(metric: MetricResult) -> Iterator[tuple[str, str]]:
    """The outcome by each match type, which shows the effect of relaxing."""
    for way in _WAYS:
        if (score := metric.details.get(way)) is not None:
            passes = metric.threshold is not None and score >= metric.threshold
            yield from ((f"  {way} ", "muted"), glyph(Status.PASSED if passes else Status.FAILED))


_LONGEST = 20_000


def write_all_findings(page: Page, metric: MetricResult) -> None:
    """Writes the findings of a judge for a metric, with every vote, turn by turn."""
    _write_metric(page, metric)
    turn: int | None = None
    for finding in findings(metric):
        page.blank()
        if finding.turn != turn:
            turn = finding.turn
            whole = info_of(metric.name).whole_conversation
            page.row(("Whole conversation" if whole else f"Turn {turn + 1}", "bold"))
        _write_samples(page, finding)


def _write_metric(page: Page, metric: MetricResult) -> None:
    page.row(
        glyph(metric.status),
        (f" {visible(metric.name)}", "bold"),
        (f"  {show_scores(metric.score, metric.threshold, metric.lower_is_better)}", ""),
    )
    if metric.judge is not None:
        prompt = f"prompt {visible(metric.judge.prompt)}"
        page.block([(f"{judge_line(metric.judge)}, {prompt}", "muted")], 2)


def _write_samples(page: Page, finding: Finding) -> None:
    judgement = finding.judgement
    page.text(_subject(finding), [mark(finding.good), (f" {finding.word}  ", "")])
    if judgement.id and judgement.subject:
        page.block([(shown(judgement.subject, _LONGEST), "")], 2)
    heads = [_vote_head(finding, number, vote) for number, vote in enumerate(judgement.votes, start=1)]
    width = max(map(cells, heads), default=0)
    for head, vote in zip(heads, judgement.votes, strict=True):
        why = shown("\n".join(filter(None, (vote.rationale, vote.problem))), _LONGEST)
        page.text(
            [(why or "without a reason", "" if why else "muted")],
            filled(head, width + 2),
        )
    if not judgement.votes and judgement.rationale:
        page.block([(shown(judgement.rationale, _LONGEST), "")], 2)
    for evidence in judgement.evidence:
        page.text([(shown(evidence.text, _LONGEST), "")], [(f"  {visible(evidence.kind)}  ", "muted")])


def _subject(finding: Finding) -> Line:
    """The judged item, and its votes."""
    judgement = finding.judgement
    subject = visible(judgement.id) if judgement.id else shown(judgement.subject, _LONGEST)
    line: Line = [(subject, "bold" if judgement.id else "")] if subject else []
    votes = finding.votes_in_words or finding.tally
    gap = "  " if line else ""
    return [*line, (f"{gap}{votes}" if votes else "", "muted")]


def _vote_head(finding: Finding, number: int, vote: Vote) -> Line:
    return [
        (f"  {number:>3}  ", "muted"),
        mark(finding.favours(vote.score)),
        (f" {finding.word_of(vote)}", ""),
    ]
