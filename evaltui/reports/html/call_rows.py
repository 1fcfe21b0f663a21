"""The calls of a turn, its texts and the final state as rows of two sides, expected and actual."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from evaltui.core.compare.explain import call_name, call_note
from evaltui.core.compare.turn_verdicts import (
    INTERMEDIATE_METRIC,
    answer_differs,
    response_op,
    text_differs,
)
from evaltui.core.model.outcome import ArgDiff, Call, CallDiff, CaseResult, RepeatResult, StateDiff
from evaltui.text.figures import counted, show_score, show_scores
from evaltui.text.lines import Line
from evaltui.text.outcomes import ROW_MARKS
from evaltui.text.syntax import change_lines, value_line
from evaltui.text.values import type_names, visible
from evaltui.text.word_diff import WordOp, much_in_common, words

# So many equal calls, or equal arguments of a call that differs, are shown one by one.
_MOST_EQUAL = 6
# The JSON report has longer ones in full.
_MAX_VALUE = 2_000
_MAX_TEXT = 20_000
_MAX_SAME = 1_000
_WORD_ROLES: Mapping[WordOp, str] = {"same": "", "removed": "exp-hi", "added": "act-hi"}


@dataclass(frozen=True)
class Row:
    """A line of two aligned sides."""

    op: str
    """A key of `ROW_MARKS`."""
    expected: Line | None = None
    """None where this side has nothing."""
    actual: Line | None = None
    note: str = ""
    """Why it differs."""
    differs: bool = False
    """Whether it counts as a difference."""
    indented: bool = False
    """Whether it belongs to the row above, as an argument to its call."""
    prose: bool = False
    """Whether it is a text that people write, in lines of its own."""

    @property
    def mark(self) -> tuple[str, str]:
        return ROW_MARKS[self.op]


@dataclass(frozen=True)
class Rows:
    """Rows that are shown, or folded away under a title."""

    rows: tuple[Row, ...]
    title: str = ""
    """What is folded away, `9 equal calls`; "" for rows that are shown."""


def call_rows(calls: Sequence[CallDiff], *, checked: bool) -> Iterator[Rows]:
    """The aligned calls of a turn; many equal ones in a row are folded."""
    for is_equal, group in groupby(calls, lambda diff: diff.op == "same" and not diff.args):
        diffs = list(group)
        if not is_equal:
            for diff in diffs:
                yield from _differing_call(diff, checked=checked)
            continue
        folded = len(diffs) > _MOST_EQUAL
        rows = tuple(row for diff in diffs for row in _whole_call(diff, "same" if checked else ""))
        yield Rows(rows, counted(len(diffs), "equal call") if folded else "")


def made_rows(calls: Sequence[CallDiff]) -> Rows:
    """Calls of which nothing is expected."""
    return Rows(tuple(row for diff in calls for row in _whole_call(diff, "made")))


def _whole_call(diff: CallDiff, op: str, note: str = "", *, differs: bool = False) -> Iterator[Row]:
    """A call that is the same on both sides, or on one only, and its arguments."""
    # A call out of order stands where it was made.
    has_expected = diff.expected is not None and diff.op != "moved" and op != "made"
    name: Line = [(call_name(diff), "bold")]
    for number, line in enumerate([name, *_argument_lines(diff.actual or diff.expected)]):
        sides = (line if has_expected else None, line if diff.actual is not None else None)
        first = number == 0
        yield Row(op if first else "", *sides, note if first else "", differs=differs, indented=not first)


def _argument_lines(call: Call | None) -> Iterator[Line]:
    for name, value in ((call and call.args) or {}).items():
        yield [(visible(str(name)), "key"), ("  ", ""), *value_line(value, _MAX_VALUE)]


def _differing_call(diff: CallDiff, *, checked: bool) -> Iterator[Rows]:
    if not diff.args:
        differs = checked and diff.op != "same"
        op, note = (diff.op, call_note(diff)) if checked else ("", "")
        yield Rows(tuple(_whole_call(diff, op, note, differs=differs)))
        return
    name: Line = [(call_name(diff), "bold")]
    op = diff.op if checked else ""
    equal = [arg for arg in diff.args if arg.op == "same" and not arg.rule]
    folded = len(equal) > _MOST_EQUAL
    shown = [arg for arg in diff.args if not folded or arg.op != "same" or arg.rule]
    yield Rows((Row(op, name, name), *(_argument(arg, checked=checked) for arg in shown)))
    if folded:
        rows = tuple(_argument(arg, checked=checked) for arg in equal)
        yield Rows(rows, counted(len(equal), "equal argument"))


def _argument(arg: ArgDiff, *, checked: bool) -> Row:
    path: Line = [(visible(arg.path) or "args", "key"), ("  ", "")]
    differs = checked and arg.op != "same"
    if arg.op == "same" and not arg.rule:
        line = [*path, *value_line(arg.expected, _MAX_VALUE)]
        return Row("", line, line, indented=True)
    if arg.op == "missing":
        line = [*path, *value_line(arg.expected, _MAX_VALUE)]
        return Row("missing", line, None, "missing", differs=differs, indented=True)
    if arg.op == "extra":
        line = [*path, *value_line(arg.actual, _MAX_VALUE)]
        return Row("extra", None, line, "unexpected", differs=differs, indented=True)
    before, after = ([*path, *line] for line in change_lines(arg.expected, arg.actual, _MAX_VALUE))
    if arg.rule:
        return Row("rule", before, after, f"allowed by rule: {visible(arg.rule)}", indented=True)
    kinds = type_names(arg.expected, arg.actual)
    note = f"{kinds[1]}, expected {kinds[0]}" if kinds else ""
    return Row("changed" if checked else "", before, after, note, differs=differs, indented=True)


def response_row(result: CaseResult | RepeatResult, number: int) -> Row | None:
    """The response of a turn, from 0, on both sides; None where there is none on either."""
    turn = result.turns[number]
    expected, actual = turn.response.expected or "", turn.response.actual or ""
    if turn.expectation == "simulated":
        return Row("made", None, text_line(actual), prose=True) if actual else None
    if not expected and not actual:
        return None
    if not answer_differs(turn):
        same = expected == actual
        note = _score(result, number) if expected else "no response expected"
        return Row(
            "same" if same else "", text_line(actual) if same else None, text_line(actual), note, prose=True
        )
    op, score = response_op(result, number), _score(result, number)
    differs = op == "changed"
    if not actual:
        missing: Line = [(turn.without_response, "error")]
        return Row(op, text_line(expected), missing, score, differs=differs, prose=True)
    return Row(op, *_changed_text(expected, actual), score, differs=differs, prose=True)


def rows_before(result: CaseResult | RepeatResult, number: int) -> Iterator[Row]:
    """The texts before the response of a turn, from 0, on both sides; nothing where none is expected."""
    scored = _score_of(result, INTERMEDIATE_METRIC, number)[0] is not None
    for diff in result.turns[number].intermediate:
        author: Line = [(f"{visible(diff.author)}: ", "muted")]
        differs = text_differs(result, number, diff)
        if diff.expected is not None and diff.actual is not None:
            op = "same" if diff.expected == diff.actual else "changed" if differs else "within"
            note = show_score(diff.score) if op != "same" else ""
            left, right = ([*author, *line] for line in _changed_text(diff.expected, diff.actual))
            sides: tuple[Line | None, Line | None] = (left, right)
        else:
            # Without a verdict the sides say enough.
            kind, note = ("missing", "missing") if diff.actual is None else ("extra", "unexpected")
            op = kind if differs else ""
            line = [*author, *text_line(diff.expected or diff.actual or "")]
            sides = (line, None) if diff.actual is None else (None, line)
        yield Row(op, *sides, note if scored else "not scored", differs=differs, prose=True)


def _changed_text(expected: str, actual: str) -> tuple[Line, Line]:
    """Both sides, word for word where they have much in common."""
    parts = words(expected, actual)
    if not much_in_common(parts):
        return text_line(expected), text_line(actual)
    left, right = ([one for one in parts if one[0] != other] for other in ("added", "removed"))
    return _marked(left), _marked(right)


def _marked(parts: Sequence[tuple[WordOp, str]]) -> Line:
    """Of long texts, what is the same between two differences is left out before anything else."""
    most = _MAX_SAME if sum(len(text) for _, text in parts) > _MAX_TEXT else _MAX_TEXT
    return [(shown_text(text, most if op == "same" else _MAX_TEXT), _WORD_ROLES[op]) for op, text in parts]


def text_line(text: str) -> Line:
    return [(shown_text(text), "")]


def shown_text(text: str, most: int = _MAX_TEXT) -> str:
    """A text of several lines, its middle left out where it is very long."""
    if len(text) <= most:
        return text
    half = most // 2
    left_out = f"… {counted(len(text) - 2 * half, 'more character')}, in the JSON report …"
    return f"{text[:half]}\n{left_out}\n{text[-half:]}"


def _score(result: CaseResult | RepeatResult, number: int) -> str:
    """`0.93 ≥ 0.80`; "" where the response has no score."""
    score, threshold = _score_of(result, "response_match_score", number)
    return "" if score is None else show_scores(score, threshold)


def _score_of(result: CaseResult | RepeatResult, name: str, number: int) -> tuple[float | None, float | None]:
    """The score that a metric gives a turn, and the threshold; None where there is none."""
    for metric in result.metrics:
        if metric.name == name and len(metric.per_invocation) == len(result.turns):
            return metric.per_invocation[number].score, metric.threshold
    return None, None


def state_rows(state: Sequence[StateDiff]) -> tuple[Row, ...]:
    """Where the final session state is not as expected."""
    rows = []
    for diff in state:
        sides = change_lines(diff.expected, diff.actual, _MAX_VALUE)
        before, after = ([(visible(diff.path), "key"), ("  ", ""), *line] for line in sides)
        rows.append(Row("changed", before, after, differs=True, indented=True))
    return tuple(rows)
