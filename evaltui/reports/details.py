"""Details of a case that did not pass, as lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.cells import cell_len

from evaltui.core.compare.explain import call_args, call_name, call_note, error_text, sentence
from evaltui.core.compare.judged import (
    finding_rows,
    findings,
    findings_in,
    judge_line,
    judged_as_a_whole,
    judged_head,
    judged_in,
    over_conversation,
    was_judged,
)
from evaltui.core.compare.repeats import in_words
from evaltui.core.model.errors import MAY_PASS
from evaltui.core.model.eval_set import user_text
from evaltui.core.model.outcome import (
    ArgDiff,
    CallDiff,
    CaseResult,
    ErrorInfo,
    Expectation,
    InvocationScore,
    MetricResult,
    Status,
    TrajectoryGroup,
    TurnResult,
)
from evaltui.core.model.text_diff import NO_TEXTS, OUTPUT, IntermediateDiff
from evaltui.reports.text_lines import changed_text, plain, shown, wrapped
from evaltui.text.figures import UNKNOWN, counted, show_number, show_score, show_scores
from evaltui.text.lines import Line, Span, cells, cut, pad
from evaltui.text.outcomes import CALL_MARKS, ROLES, glyph
from evaltui.text.values import show_change, show_value, type_change, visible, visible_lines

# More kinds of trajectories than this are noise.
_MOST_GROUPS = 8


def repeat_lines(case: CaseResult, width: int) -> list[Line]:
    """How each run came out, what that says of the next ones, and which calls they made; nothing for one."""
    if len(case.repeats) < 2 and case.decision is None:
        return []
    return [cut(line, width) for line in (*_runs(case), *_rates(case), *_trajectories(case))]


def _runs(case: CaseResult) -> Iterator[Line]:
    glyphs = [glyph(repeat.status) for repeat in case.repeats]
    flaky = f" {case.status.value}" if case.status is Status.FLAKY else ""
    meets = "" if case.decision else f", {'meets' if case.policy_met else 'fails'} policy {case.policy}"
    figure = f"  {case.passed_repeats}/{len(case.repeats)}{flaky}{meets}"
    rate = str(case.rate or UNKNOWN)
    yield [("  runs    ", ""), *glyphs, (figure, ROLES[case.status]), (f"  {rate}", "muted")]
    if case.decision is not None:
        yield [("          ", ""), (case.decision.in_words, ROLES[case.status])]
    yield [("          worst run below", "muted")]


def _rates(case: CaseResult) -> Iterator[Line]:
    rates = case.pass_rates
    yield [("  k       ", "muted"), ("".join(f"{rate.k:<6}" for rate in rates), "muted")]
    yield [("  pass@k  ", ""), ("".join(f"{show_score(rate.pass_at_k):<6}" for rate in rates), "")]
    yield [("  pass^k  ", ""), ("".join(f"{show_score(rate.pass_hat_k):<6}" for rate in rates), "")]


def _trajectories(case: CaseResult) -> Iterator[Line]:
    groups = case.trajectories
    if len(groups) == 1:
        yield [("  calls   equal in all runs", "")]
        return
    yield [(f"  calls   {len(groups)} different trajectories", "")]
    for group in groups[:_MOST_GROUPS]:
        yield [*_group_head(group), (in_words(group.calls), "")]
    if len(groups) > _MOST_GROUPS:
        yield [(f"          and {show_number(len(groups) - _MOST_GROUPS)} more", "muted")]


def _group_head(group: TrajectoryGroup) -> Line:
    glyphs = [glyph(status) for status in dict.fromkeys(group.statuses)]
    return [(f"    {len(group.repeats):>3}×  ", ""), *glyphs, (" " * (3 - len(glyphs)), "")]


_EXPECTATIONS: dict[Expectation, str] = {
    "these calls": "exactly these calls",
    "no calls": "no calls expected",
    "unspecified": "unspecified (scored as no calls)",
    "not checked": "not checked",
    "unknown": "calls unknown, the agent does not send them",
    "context": "context turn, not scored",
    "simulated": "with a simulated user",
}
_GRAVE = (Status.FAILED, Status.ERROR)

# Lines longer than this are hard to follow to the note at their end.
MAX_WIDTH = 100
_MAX_PATH = 28
_MAX_TRACEBACK_LINES = 24


def case_details(case: CaseResult, width: int) -> list[Line]:
    """Sentence, metrics, failing turns, the conversation, final state and errors of a case, in that order.

    No line is longer than `width` cells, but for those of tracebacks, which are never cut.
    """
    width = min(width, MAX_WIDTH)
    errors = (case.error, *(metric.error for metric in case.metrics))
    blocks: list[list[Line]] = [
        # An error is shown in full below.
        [] if case.error else wrapped(2, [(sentence(case), "")], width),
        repeat_lines(case, width),
        list(_metrics(case.metrics, width)),
        *([cut(line, width) for line in _turn(case, index, width)] for index in _turns_in_detail(case)),
        [cut(line, width) for line in _conversation(case, width)],
        [cut(line, width) for line in _state(case, width)],
        # The agent's error first, then those of metrics; what several have in common, once.
        *(_error(error, width) for error in dict.fromkeys(errors) if error),
    ]
    lines: list[Line] = []
    for block in blocks:
        if block:
            lines += [[], *block] if lines else block
    return lines


def _metrics(metrics: Sequence[MetricResult], width: int) -> Iterator[Line]:
    gating = [metric for metric in metrics if metric.status is not Status.INFORMATIONAL]
    names = max((cell_len(visible(metric.name)) for metric in gating), default=0)
    names = min(names, width - 24)
    for metric in gating:
        head: Line = [
            ("  ", ""),
            glyph(metric.status),
            (f" {pad(visible(metric.name), names)}  {_score(metric):<11}", ""),
        ]
        # What judges found is shown turn by turn.
        is_explained = metric.status is Status.PASSED or (
            metric.status is Status.FAILED and was_judged(metric)
        )
        why = error_text(metric.error) if metric.error else metric.reason
        reason: Span = ("" if is_explained else visible(why), "muted")
        if cells([*head, reason]) + 2 <= width:
            yield [*head, ("  ", ""), reason]
        else:
            yield head
            yield from wrapped(6, [reason], width)
        if metric.judge is not None:
            yield from wrapped(6, [(judge_line(metric.judge), "muted")], width)
    measured = [
        f"{visible(metric.name)} {show_number(metric.score)}"
        for metric in metrics
        if metric.status is Status.INFORMATIONAL and metric.score is not None
    ]
    if measured:
        yield from wrapped(4, [(", ".join(measured), "muted")], width, [("  · ", "muted")])


def _score(metric: MetricResult) -> str:
    """`0.50 < 1.00`"""
    if metric.status is Status.ERROR or metric.score is None:
        return "error" if metric.status is Status.ERROR else UNKNOWN
    return show_scores(metric.score, metric.threshold, metric.lower_is_better)


def _turns_in_detail(case: CaseResult) -> list[int]:
    """The turns that a metric failed, or a judge left open; where none says which, those that differ.

    After a crash that is the first of these, and none where the agent did not get to say anything.
    """
    to_blame = [
        metric
        for metric in case.metrics
        if metric.status in _GRAVE
        and len(metric.per_invocation) == len(case.turns)
        and not over_conversation(metric.name)
    ]
    unjudged = _unjudged_turns(case)
    if to_blame or unjudged:
        failed = {
            number
            for metric in to_blame
            for number, scored in enumerate(metric.per_invocation)
            if scored.status in _GRAVE
        }
        return sorted(failed | unjudged)
    differing = [
        number
        for number, turn in enumerate(case.turns)
        if turn.checks_calls and any(diff.op != "same" for diff in turn.calls)
    ]
    if case.error:
        return differing[:1] if any(repeat.actual for repeat in case.repeats) else []
    return differing


def _unjudged_turns(case: CaseResult) -> set[int]:
    """Those that a judge left open, which is why the metric has no verdict."""
    return {
        finding.turn
        for metric in case.metrics
        if metric.status is Status.NOT_EVALUATED and not over_conversation(metric.name)
        for finding in findings(metric)
        if finding.good is None
    }


def _turn(case: CaseResult, index: int, width: int) -> Iterator[Line]:
    turn = case.turns[index]
    yield [("  ", ""), (f"turn {index + 1}", "bold"), (f"  {_EXPECTATIONS[turn.expectation]}", "muted")]
    acted = (repeat.actual[index] for repeat in case.repeats if index < len(repeat.actual))
    if asked := turn.user or next((user_text(one.user_content) for one in acted), ""):
        yield [("    user    ", "muted"), (visible(asked), "muted")]
    for diff in turn.calls:
        yield from _call(diff, width) if turn.expectation != "simulated" else _made(diff)
    yield from _answer(turn, _answer_score(case, index), width)
    aligned = {row.actual for row in turn.intermediate}
    for before in turn.unscored:
        if before.author in NO_TEXTS or before.text not in aligned:
            label = "output  " if before.author == OUTPUT else f"before  {visible(before.author)}: "
            yield [(f"    {label}", "muted"), (visible(before.text), "muted")]
    for row in turn.intermediate:
        yield from _text_before(row, width)
    for metric in judged_in(case.metrics, index):
        yield from _judged(metric, index, width)


def _text_before(row: IntermediateDiff, width: int) -> Iterator[Line]:
    """An intermediate response, beside the expected one."""
    head: Line = [("    before  ", "muted"), (f"{visible(row.author)}: ", "muted")]
    if row.expected == row.actual:
        yield [*head, (visible(row.actual or ""), "muted")]
    elif row.actual is None:
        yield from wrapped(12, [("missing: ", "error"), *plain(row.expected or "")], width, head)
    elif row.expected is None:
        yield from wrapped(12, [("unexpected: ", "error"), *plain(row.actual)], width, head)
    else:
        yield from changed_text(row.expected, row.actual, cells(head), width, head)


def _judged(metric: MetricResult, turn: int, width: int) -> Iterator[Line]:
    """What a judge found in a turn, of which metrics that passed say only how it came out."""
    scored, found = metric.per_invocation[turn], findings_in(metric, turn)
    yield [("    ", ""), *judged_head(metric, scored, found)]
    if all(not finding.needs_attention for finding in found):
        if scored.status is not Status.PASSED and scored.reason:
            yield from wrapped(6, [(visible(scored.reason), "muted")], width)
        return
    for rows in finding_rows(found, every_vote=False):
        for head, text in rows:
            first: Line = [("      ", ""), *head]
            yield from wrapped(cells(first), text, width, first)


def _conversation(case: CaseResult, width: int) -> Iterator[Line]:
    """What was found of all turns together, and what ended the conversation with a simulated user."""
    judged = [metric for metric in judged_as_a_whole(case.metrics) if metric.status is not Status.PASSED]
    if not judged and not case.stopped:
        return
    yield [("  ", ""), ("whole conversation", "bold")]
    if case.stopped:
        yield from wrapped(12, [(visible(case.stopped), "muted")], width, [("    ended   ", "muted")])
    for metric in judged:
        for turn in range(len(metric.per_invocation)):
            if metric.per_invocation[turn].judgements:
                yield from _judged(metric, turn, width)


def _made(diff: CallDiff) -> Iterator[Line]:
    """A call of which nothing was expected."""
    args = call_args(diff)
    yield [("    · ", "muted"), (call_name(diff), ""), (f"  {args}" if args else "", "muted")]


def _call(diff: CallDiff, width: int) -> Iterator[Line]:
    mark, style, _ = CALL_MARKS[diff.op]
    row: Line = [("    ", ""), (mark, style), (f" {call_name(diff)}", "muted" if diff.op == "same" else "")]
    if diff.op in ("missing", "extra", "moved") and (args := call_args(diff)):
        row.append((f"  {args}", "muted"))
    yield _noted(row, call_note(diff), width)
    if diff.args:
        paths = min(_MAX_PATH, max(cell_len(visible(arg.path)) for arg in diff.args))
        for arg in diff.args:
            yield _arg(arg, paths, width)


def _arg(arg: ArgDiff, paths: int, width: int) -> Line:
    mark, style, note = CALL_MARKS[arg.op]
    if arg.rule:
        before, after = show_change(arg.expected, arg.actual, max(12, (width - paths - 36) // 2))
        text = f"      {mark} {pad(visible(arg.path) or 'args', max(paths, 4))}  {before}  →  {after}"
        return _noted([(text, "muted")], f"rule: {arg.rule}", width)
    if arg.op == "same":
        return [(f"        {pad(visible(arg.path), paths)}  {show_value(arg.expected)}", "muted")]
    head: Line = [
        ("      ", ""),
        (mark, style),
        (f" {pad(visible(arg.path) or 'args', max(paths, 4))}  ", ""),
    ]
    if arg.op == "changed":
        note = "type" if type_change(arg.expected, arg.actual) else ""
        return _noted([*head, *_change(arg.expected, arg.actual, width - paths - 24)], note, width)
    value = arg.expected if arg.op == "missing" else arg.actual
    return _noted([*head, (show_value(value), style)], note, width)


def _change(expected: Any, actual: Any, width: int) -> list[Span]:
    before, after = show_change(expected, actual, max(12, width // 2))
    return [(before, "error"), ("  →  ", "muted"), (after, "success")]


def _noted(row: Line, note: str, width: int) -> Line:
    """The row with its note at the right margin."""
    if not note:
        return row
    used = cells(row)
    room = width - cell_len(note) - 2
    if used > room:
        text, style = row[-1]
        row = [*row[:-1], (pad(text, max(2, cell_len(text) - (used - room))), style)]
        used = room
    return [*row, (" " * (room + 2 - used), ""), (note, "muted")]


def _answer_score(case: CaseResult, index: int) -> InvocationScore | None:
    for metric in case.metrics:
        if metric.name == "response_match_score" and len(metric.per_invocation) == len(case.turns):
            return metric.per_invocation[index]
    return None


def _answer(turn: TurnResult, score: InvocationScore | None, width: int) -> Iterator[Line]:
    expected, actual = turn.response.expected, turn.response.actual
    if turn.expectation == "simulated" and actual:
        yield from wrapped(12, plain(actual), width, [("    answer  ", "")])
    if expected is None or expected == actual:
        return
    head: Line = [("    answer  ", "")]
    indent = 12
    if score is not None and score.score is not None:
        head += [glyph(score.status), (f" {show_score(score.score)}  ", "")]
        indent += 8
    if actual is None:
        yield from wrapped(indent, [("none, expected: ", "error"), *plain(expected)], width, head)
        return
    yield from changed_text(expected, actual, indent, width, head)


def _state(case: CaseResult, width: int) -> list[Line]:
    if not case.state:
        return []
    paths = min(_MAX_PATH, max(cell_len(visible(diff.path)) for diff in case.state))
    lines: list[Line] = [[("  final state", "bold")]]
    for diff in case.state:
        head: Line = [("    ", ""), ("≠", "error"), (f" {pad(visible(diff.path), paths)}  ", "")]
        lines.append([*head, *_change(diff.expected, diff.actual, width - paths - 24)])
    return lines


def _error(error: ErrorInfo, width: int) -> list[Line]:
    head = f"{error.type}: {error.message}" if error.message else error.type
    block = wrapped(2, [(shown(head), "error")], width)
    if error.where:
        block.append([(f"  at {visible(error.where)}", "bold")])
    if error.kind in MAY_PASS:
        block.append([(f"  {error.kind}: --retry-errors runs the case again", "")])
    trace = visible_lines(error.traceback.rstrip("\n")) if error.traceback.strip() else []
    if trace and trace[-1].endswith(visible(head)):
        trace.pop()
    left_out = len(trace) - _MAX_TRACEBACK_LINES
    if left_out > 0:
        trace = [f"… {counted(left_out, 'line')} above in the JSON report", *trace[left_out:]]
    return [*block, *([("    ", ""), (line, "muted")] for line in trace)]
