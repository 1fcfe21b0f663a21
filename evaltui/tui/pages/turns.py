"""What happened in a turn: its calls beside the expected ones, and what judges found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Any

from rich.cells import cell_len

from evaltui.core.compare.explain import call_name
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
from evaltui.core.model.outcome import ArgDiff, CallDiff, CaseResult, MetricResult, Status, Vote, worst_status
from evaltui.text.lines import Line, Span, cells, pad, with_role
from evaltui.text.outcomes import CALL_MARKS, glyph, verdict
from evaltui.text.syntax import arguments_line, change_lines, value_line
from evaltui.text.values import scores, type_change, visible
from evaltui.tui.pages.writer import SIDE_BY_SIDE, Page
from evaltui.workbench.state import DifferenceAt

_ROLES = {note: role for _, role, note in CALL_MARKS.values()}
# The cells before the name of a call: its mark, and space around it.
MARGIN = 4
_MAX_PATH = 28
# Enter shows all of it.
_MAX_VALUE = 160
# A name at the end of a line and its value on the next one are hard to read.
_UNBROKEN = "\xa0"


def write_call(page: Page, diff: CallDiff, turn: int, row: int, *, checked: bool) -> None:
    """One row of the aligned trajectory of a turn, both from 0; a changed call has its arguments below it.

    What is not `checked` is no difference, whatever it is.
    """
    beside = page.width >= SIDE_BY_SIDE
    title = f"turn {turn + 1} · {call_name(diff)}"
    if diff.op == "changed":
        _write_name(page, diff, beside=beside)
        paths = min(_MAX_PATH, max((cell_len(visible(arg.path)) for arg in diff.args), default=4))
        for arg in diff.args:
            place = f"{title} · {visible(arg.path) or 'args'}"
            differs = checked and arg.op != "same"
            at = DifferenceAt("argument", turn, row, arg.path)
            with page.difference(at, place, _arg_sides(arg)) if differs else nullcontext():
                _write_arg(page, arg, max(paths, 4), beside=beside)
        return
    differs = checked and diff.op != "same"
    at = DifferenceAt("call", turn, row)
    with page.difference(at, f"{title} · {diff.op}", _call_sides(diff)) if differs else nullcontext():
        if beside:
            _write_beside(page, diff)
        else:
            call = diff.actual or diff.expected
            _write_inline(page, _head(diff), call.args if call else None, CALL_MARKS[diff.op][2])
    for arg in diff.args:
        if arg.rule:
            _write_arg(page, arg, cell_len(visible(arg.path)), beside=beside)


def _call_sides(diff: CallDiff) -> dict[str, Any]:
    calls = {"expected": diff.expected, "actual": diff.actual}
    if diff.op == "moved":
        calls = {"the call, which is the same on both sides": diff.actual}
    return {side: {"name": call.name, "args": call.args} for side, call in calls.items() if call}


def _arg_sides(arg: ArgDiff) -> dict[str, Any]:
    sides = {"expected": arg.expected, "actual": arg.actual}
    absent = {"extra": "expected", "missing": "actual"}.get(arg.op)
    return {side: value for side, value in sides.items() if side != absent}


def _head(diff: CallDiff) -> Line:
    mark, role, _ = CALL_MARKS[diff.op]
    return [("  ", ""), (mark, role), (" ", ""), (call_name(diff), "muted" if diff.op == "same" else "bold")]


def _write_name(page: Page, diff: CallDiff, *, beside: bool) -> None:
    *mark, name = _head(diff)
    if beside:
        page.columns([name], [name], mark)
    else:
        page.row(*mark, name)


def _write_beside(page: Page, diff: CallDiff) -> None:
    *mark, name = _head(diff)
    _, role, note = CALL_MARKS[diff.op]
    left: Line = [("nothing", "muted")]
    right: Line = [("missing", role)]
    if diff.expected:
        left = [name, *arguments_line(diff.expected.args, _MAX_VALUE, _UNBROKEN)]
    if diff.actual:
        mark_of_it: Line = [(f"  {note}", role)] if note else []
        right = [name, *mark_of_it, *arguments_line(diff.actual.args, _MAX_VALUE, _UNBROKEN)]
    page.columns(left, right, mark)


def write_made_call(page: Page, diff: CallDiff) -> None:
    """A call of which nothing was expected."""
    args = diff.actual.args if diff.actual else None
    _write_inline(page, [("  → ", "muted"), (call_name(diff), "bold")], args, "")


def _write_inline(page: Page, head: Line, args: Mapping[str, Any] | None, note: str) -> None:
    mark: Line = [(f"  {note}", _ROLES[note])] if note else []
    page.hanging([*head, *mark, *arguments_line(args, _MAX_VALUE, _UNBROKEN)], 6)


def _write_arg(page: Page, arg: ArgDiff, paths: int, *, beside: bool) -> None:
    mark, role, note = CALL_MARKS[arg.op]
    path = pad(visible(arg.path) or "args", paths)
    head: Line = [("    ", ""), (mark if arg.op != "same" else " ", role), (f" {path}  ", "key")]
    if arg.rule:
        _write_passed(page, arg, [("    ≈ ", "muted"), (f"{path}  ", "muted")], beside=beside)
    elif arg.op == "changed" and not beside:
        write_change(page, head, arg.expected, arg.actual)
    elif arg.op == "changed":
        before, after = change_lines(arg.expected, arg.actual, _MAX_VALUE)
        kind = type_change(arg.expected, arg.actual)
        right: Line = [*with_role("act", after), (f"  type: {kind}" if kind else "", "muted")]
        page.columns(with_role("exp", before), right, head)
    elif arg.op == "same":
        shown = value_line(arg.expected, _MAX_VALUE)
        page.columns(shown, shown, head) if beside else page.text(shown, head)
    else:
        gone = arg.op == "missing"
        side, of = ("exp", arg.expected) if gone else ("act", arg.actual)
        shown = with_role(side, value_line(of, _MAX_VALUE))
        absent: Span = (note if gone else "nothing", "muted")
        if not beside:
            page.text([*shown, (f"  {note}", "muted")], head)
        elif gone:
            page.columns(shown, [absent], head)
        else:
            page.columns([absent], [*shown, (f"  {note}", "muted")], head)


def _write_passed(page: Page, arg: ArgDiff, head: Line, *, beside: bool) -> None:
    """A difference that a rule lets pass: seen, and not to be looked at."""
    before, after = change_lines(arg.expected, arg.actual, _MAX_VALUE)
    rule: Span = (f"  rule: {visible(arg.rule)}", "muted")
    if beside:
        page.columns(before, [*after, rule], head)
    else:
        page.text([*before, (" ≈ ", "muted"), *after, rule], head)


def write_change(page: Page, head: Line, expected: Any, actual: Any) -> None:
    """`19 → "19"`, and the type of the new value if it is another one."""
    before, after = change_lines(expected, actual, _MAX_VALUE)
    kind = type_change(expected, actual)
    note = f"  type: {kind}" if kind else ""
    sides = [*with_role("exp", before), (" → ", "muted"), *with_role("act", after)]
    page.text([*sides, (note, "muted")], head)


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
    heads = [_vote_head(finding, number, vote) for number, vote in enumerate(judgement.votes, start=1)]
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


def _vote_head(finding: Finding, number: int, vote: Vote) -> Line:
    return [
        (f"  {number:>3}  ", "muted"),
        mark(finding.favours(vote.score)),
        (f" {finding.word_of(vote)}", ""),
    ]
