"""Details of a case that did not pass, as lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from evaltui.core.compare.explain import args_in_words, policy_in_words, sentence
from evaltui.core.model.errors import TRANSIENT_KINDS
from evaltui.core.model.eval_set import user_text
from evaltui.core.model.outcome import CaseResult, Status
from evaltui.core.model.text_diff import NO_TEXTS
from evaltui.text.figures import counted
from evaltui.text.lines import Line, Span, cells, cut, pad, wrap_behind
from evaltui.text.outcomes import ROLES, ROW_MARKS, glyph
from evaltui.text.values import MAX_VALUE, visible, visible_block, visible_lines
from evaltui.text.word_diff import MARKS, WordOp
from evaltui.views.judged import JudgeFindings
from evaltui.views.repeats import repeat_rows, repeat_title
from evaltui.views.result import (
    ErrorRow,
    TurnRows,
    conversation_findings,
    detailed_turns,
    error_rows,
    expectation_facts,
    informational_rows,
    metric_rows,
    turn_rows,
)
from evaltui.views.rows import ABSENT, Row, common_words, state_rows, value_sides

_MAX_SAME_TEXT = 160
_MAX_TEXT = 800


def wrap_indented(indent: int, spans: Sequence[Span], width: int, first: Sequence[Span] = ()) -> list[Line]:
    """Wraps a text behind a margin; `first` is the text in the margin of the first line, as wide as the
    margin."""
    return wrap_behind(first or [(" " * indent, "")], spans, width, least=20)


def plain_spans(text: str) -> list[Span]:
    return [(cut_long_text(text), "")]


def cut_long_text(text: str, limit: int = _MAX_TEXT) -> str:
    """A text of several lines; a long one without its middle."""
    if len(text) > limit:
        text = f"{text[: limit // 2]} … {text[-limit // 2 :]}"
    return visible_block(text)


def mark_words(parts: Sequence[tuple[WordOp, str]]) -> list[Span]:
    """A word diff with marks: `The kitchen is [-now -]set to 19 °C.`"""
    spans: list[Span] = []
    before: WordOp = "same"
    for op, text in parts:
        start, end, style = MARKS[op]
        # In the text they touch; for the eye they are two words.
        gap = " " if op == "added" and before == "removed" else ""
        limit = _MAX_SAME_TEXT if op == "same" else _MAX_TEXT
        spans.append((f"{gap}{start}{cut_long_text(text, limit)}{end}", style))
        before = op
    return spans


# Lines longer than this are hard to follow to the note at their end.
MAX_WIDTH = 100
_MAX_PATH = 28
_MAX_TRACEBACK_LINES = 24


def case_details(case: CaseResult, width: int) -> list[Line]:
    """The details of a case: reason, metrics, failing turns, conversation, final state and errors, in this
    order.

    A case whose model lacks a key has only its error, which is the same for other cases. Lines have at most
    `width` cells, except those of tracebacks, which are not cut.
    """
    width = min(width, MAX_WIDTH)
    errors = [_error(row, width) for row in error_rows(case)]
    repeat: list[Line] = (
        [_labelled_line("shown", [(repeat_title(case), "")])] if len(case.repeats) > 1 else []
    )
    turns = (
        turn_rows(case, number, _message(case, number), every_vote=False)
        for number in sorted(detailed_turns(case))
    )
    blocks: list[list[Line]] = [
        # An error is shown in full below.
        [] if case.error else wrap_indented(2, [(sentence(case), "")], width),
        [*repeat_lines(case, width), *repeat],
        list(_metrics(case, width)),
        *([cut(line, width) for line in _turn(case, turn, width)] for turn in turns),
        [cut(line, width) for line in _conversation(case, width)],
        [cut(line, width) for line in _state(case, width)],
        *errors,
    ]
    is_no_key = case.error is not None and case.error.is_no_key
    lines: list[Line] = []
    for block in errors if is_no_key else blocks:
        if block:
            lines += [[], *block] if lines else block
    return lines


def repeat_lines(case: CaseResult, width: int) -> list[Line]:
    """The outcomes of the repeats, the estimate for further repeats, and their calls; [] for a single run."""
    rows = list(repeat_rows(case))
    if not rows:
        return []
    role = ROLES[case.status]
    figure = f"  {case.passed_repeats}/{len(case.repeats)}"
    outcomes = _labelled_line("repeats", [*(glyph(repeat.status) for repeat in case.repeats), (figure, role)])
    policy: Line = [(policy_in_words(case), role)]
    lines = [outcomes, _labelled_line("", policy)]
    if cells([*outcomes, *policy]) + 2 <= width:
        lines = [[*outcomes, (", ", role), *policy]]
    lines += [_labelled_line(row.label, [*row.head, *row.line]) for row in rows]
    return [cut(line, width) for line in lines]


def _labelled_line(label: str, line: Line) -> Line:
    return [(f"  {label:<11}", "muted"), *line]


def _metrics(case: CaseResult, width: int) -> Iterator[Line]:
    rows = metric_rows(case)
    names = min(max((cell_len(row.name) for row in rows), default=0), width - 24)
    scores = max((cell_len(row.scores) for row in rows), default=0)
    for row in rows:
        figures = f" {pad(row.name, names)}  {pad(row.scores, scores)}"
        head: Line = [("  ", ""), glyph(row.status), (figures, "")]
        why: Span = (row.why, "muted")
        if cells([*head, why]) + 2 <= width:
            yield [*head, ("  ", ""), why]
        else:
            yield head
            yield from wrap_indented(6, [why], width)
        if row.judge:
            yield from wrap_indented(6, [(row.judge, "muted")], width)
    if measured := ", ".join(f"{row.name} {row.figure}" for row in informational_rows(case)):
        yield from wrap_indented(4, [(measured, "muted")], width, [("  · ", "muted")])


def _message(case: CaseResult, number: int) -> str:
    """The user's message in a turn, from 0; "" where no repeat reached the turn."""
    acted = (repeat.actual[number] for repeat in case.repeats if number < len(repeat.actual))
    return next((user_text(invocation.user_content) for invocation in acted), "")


def _turn(case: CaseResult, turn: TurnRows, width: int) -> Iterator[Line]:
    facts = "   ".join(expectation_facts(case.turns[turn.number]))
    yield [("  ", ""), (f"turn {turn.number + 1}", "bold"), (f"  {facts}", "muted")]
    if turn.user:
        yield [(_label("user"), "muted"), (visible(turn.user), "muted")]
    for group in turn.calls:
        if group.title:
            yield [("    ", ""), ROW_MARKS["same"], (f" {group.title}", "muted")]
            continue
        labels = max((cell_len(row.label) for row in group.rows if row.kind == "argument"), default=0)
        for row in group.rows:
            yield _call(row, width) if row.kind == "call" else _value(row, 6, labels, width)
    for row in turn.texts:
        yield from _text(row, width)
    if turn.response is not None and turn.response.op not in ("", "same"):
        yield from _text(turn.response, width)
    for judged in turn.judged:
        yield from _judge_lines(judged, width)


def _label(label: str) -> str:
    return f"    {label:<10}"


def _call(row: Row, width: int) -> Line:
    mark, role = ROW_MARKS[row.op]
    line: Line = [("    ", ""), (mark, role), (f" {row.label}", "muted" if row.op == "same" else "")]
    if row.op != "same" and (args := args_in_words(row.expected if row.actual is ABSENT else row.actual)):
        line.append((f"  {args}", "muted"))
    return _add_note(line, row.note, width)


def _value(row: Row, indent: int, labels: int, width: int) -> Line:
    """An argument or a state key: the expected value, then the actual one."""
    labels = min(labels, _MAX_PATH)
    head: Line = [(" " * indent, ""), ROW_MARKS[row.op], (f" {pad(row.label, labels)}  ", "")]
    before, after = "success" if row.differs else "muted", "error" if row.differs else "muted"
    room = max(12, (width - labels - len(row.note) - 16) // 2) if row.is_change else MAX_VALUE
    expected, actual = value_sides(row, room)
    if row.is_change:
        return _add_note([*head, (expected, before), ("  →  ", "muted"), (actual, after)], row.note, width)
    value = (actual, after) if row.expected is ABSENT else (expected, before)
    return _add_note([*head, value], row.note, width)


def _add_note(row: Line, note: str, width: int) -> Line:
    """The line with a note at the right margin."""
    if not note:
        return row
    used = cells(row)
    room = width - cell_len(note) - 2
    if used > room:
        text, style = row[-1]
        row = [*row[:-1], (pad(text, max(2, cell_len(text) - (used - room))), style)]
        used = room
    return [*row, (" " * (room + 2 - used), ""), (note, "muted")]


def _text(row: Row, width: int) -> Iterator[Line]:
    """A response or a text before it; as a word diff where both sides are similar."""
    is_apart = row.kind == "unscored" and row.label in NO_TEXTS
    label = row.label if is_apart else "response" if row.kind == "response" else "before"
    head: Line = [(_label(label), "muted"), *([ROW_MARKS[row.op], (" ", "")] if row.op else [])]
    head += [(f"{row.note}  ", "muted")] if row.note else []
    head += [(f"{row.label}: ", "muted")] if row.label and not is_apart else []
    indent = cells(head)
    if row.is_change:
        if parts := common_words(row.expected, row.actual):
            yield from wrap_indented(indent, mark_words(parts), width, head)
        else:
            yield from wrap_indented(indent, mark_words([("removed", row.expected)]), width, head)
            yield from wrap_indented(indent, mark_words([("added", row.actual)]), width)
        return
    text = row.expected if row.actual is ABSENT else row.actual
    if row.instead:
        absent: Line = [(row.instead, "error"), (", expected: ", "muted")]
        yield from wrap_indented(indent, [*absent, *plain_spans(text)], width, head)
    elif row.op in ("", "same"):
        yield [*head, (visible(text), "muted")]
    else:
        yield from wrap_indented(indent, plain_spans(text), width, head)


def _judge_lines(judged: JudgeFindings, width: int) -> Iterator[Line]:
    """The findings of a judge; a single line for a passed metric."""
    yield [("    ", ""), *judged.head]
    if not judged.needs_attention:
        if judged.scored.status is not Status.PASSED and judged.scored.reason:
            yield from wrap_indented(6, [(visible(judged.scored.reason), "muted")], width)
        return
    for rows in judged.rows:
        for head, text in rows:
            first: Line = [("      ", ""), *head]
            yield from wrap_indented(cells(first), text, width, first)


def _conversation(case: CaseResult, width: int) -> Iterator[Line]:
    """The findings on the whole conversation, and the end of a conversation with a simulated user."""
    whole = conversation_findings(case, every_vote=False)
    judgements = [judged for judged in whole if judged.metric.status is not Status.PASSED]
    if not judgements and not case.stopped:
        return
    yield [("  ", ""), ("whole conversation", "bold")]
    if case.stopped:
        head: Line = [(_label("ended"), "muted")]
        yield from wrap_indented(cells(head), [(visible(case.stopped), "muted")], width, head)
    for judged in judgements:
        yield from _judge_lines(judged, width)


def _state(case: CaseResult, width: int) -> Iterator[Line]:
    rows: Sequence[Row] = list(state_rows(case.state))
    if rows:
        yield [("  final state", "bold")]
    labels = max((cell_len(row.label) for row in rows), default=0)
    for row in rows:
        yield _value(row, 4, labels, width)


def _error(row: ErrorRow, width: int) -> list[Line]:
    error = row.error
    block = wrap_indented(2, [(row.title, "bold")], width) if row.title else []
    block += wrap_indented(2, [(cut_long_text(error.text), "error")], width)
    if error.is_no_key:
        return block
    if error.where:
        block.append([(f"  at {visible(error.where)}", "bold")])
    if error.kind in TRANSIENT_KINDS:
        block.append([(f"  {error.kind}: --retry-errors runs the case again", "")])
    trace = visible_lines(error.traceback.rstrip("\n")) if error.traceback.strip() else []
    if trace and trace[-1].endswith(visible(error.text)):
        trace.pop()
    left_out = len(trace) - _MAX_TRACEBACK_LINES
    if left_out > 0:
        trace = [f"… {counted(left_out, 'line')} above in the JSON report", *trace[left_out:]]
    return [*block, *([("    ", ""), (line, "muted")] for line in trace)]
