"""Rows of a result: calls, arguments, texts and state, expected beside actual."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby, pairwise
from typing import Any, Literal

from evaltui.core.compare.explain import call_name, call_note
from evaltui.core.compare.turn_verdicts import response_op, text_differs
from evaltui.core.model.outcome import (
    ArgDiff,
    Call,
    CallDiff,
    CaseResult,
    MetricResult,
    RepeatResult,
    StateDiff,
    TurnResult,
)
from evaltui.core.model.problems import format_path
from evaltui.core.model.text_diff import NO_TEXTS
from evaltui.text.figures import counted, ordinal, show_score, show_scores
from evaltui.text.lines import Line
from evaltui.text.syntax import JSON
from evaltui.text.values import show_change, show_value, told_apart, type_names, visible
from evaltui.text.word_diff import WordOp, diff_words, shares_much
from evaltui.views.difference import DifferenceAt

# Up to so many equal calls in a row, or equal arguments of a call that differs, are shown one by one.
_MAX_EQUAL = 6


class Absent(Enum):
    """The value of a side without a value; null is a value."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class Row:
    """A row of two aligned sides: arguments of a call, a JSON value, or a text."""

    kind: Literal["call", "argument", "state", "unscored", "text", "response"]
    """Kind of the row. An `unscored` text has no expected side; a `text` comes before the response."""
    op: str
    """A key of `ROW_MARKS`."""
    label: str
    """The tool, the path of an argument or key, or the author of a text; "" for a response."""
    expected: Any = ABSENT
    actual: Any = ABSENT
    note: str = ""
    """The reason for the difference, or the score."""
    differs: bool = False
    """Whether it counts as a difference."""
    at: DifferenceAt | None = None
    """The difference that the row is about; None for none."""
    instead: str = ""
    """The text shown for an absent actual text: `no response`."""
    place: str = ""
    """The expected position of a call out of order: `2nd`."""

    @property
    def is_change(self) -> bool:
        """Whether both sides have a value and these differ."""
        sides = self.expected, self.actual
        return ABSENT not in sides and (type(sides[0]), sides[0]) != (type(sides[1]), sides[1])


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that are visible, or folded under a title."""

    rows: Sequence[Row]
    title: str = ""
    """The title of folded rows, `9 equal calls`; "" for visible rows."""
    key: str = ""
    """The key of the fold within the result; "" for visible rows."""


# Calls


def call_rows(turn: TurnResult, number: int) -> Iterator[Group]:
    """The aligned calls of a turn, from 0; long sequences of equal calls are folded."""
    if turn.expectation == "simulated":
        if turn.calls:
            yield Group([_whole_call(diff, "made") for diff in turn.calls])
        return
    place = 0
    for is_equal, group in groupby(turn.calls, lambda diff: diff.op == "same" and not diff.args):
        diffs = list(group)
        if is_equal:
            rows = [_whole_call(diff, "same" if turn.checks_calls else "") for diff in diffs]
            is_folded = len(diffs) > _MAX_EQUAL
            title = counted(len(diffs), "equal call") if is_folded else ""
            yield Group(rows, title, f"calls {number} {place}" if is_folded else "")
        else:
            for row, diff in enumerate(diffs, place):
                yield from _differing_call(turn, diff, DifferenceAt("call", number, row))
        place += len(diffs)


def made_call(turn: TurnResult, number: int) -> CallDiff | None:
    """The diff of a made call of a turn, from 0, with the expectation; None where calls are not checked."""
    made = [diff for diff in turn.calls if diff.actual is not None and turn.checks_calls]
    return made[number] if number < len(made) else None


def argument_rows(call: Row) -> Iterator[Row]:
    """The arguments of a call that is equal on both sides, or on one side only; none for other rows."""
    if call.kind != "call":
        return
    sides = {side: getattr(call, side) for side in ("expected", "actual")}
    args = next((value for value in (sides["actual"], sides["expected"]) if value is not ABSENT), None)
    for name, value in (args or {}).items():
        values = {side: ABSENT if own is ABSENT else value for side, own in sides.items()}
        yield Row("argument", "", visible(str(name)), **values, differs=call.differs)


def _whole_call(diff: CallDiff, op: str, note: str = "", at: DifferenceAt | None = None) -> Row:
    # A call out of order stands where it was made.
    has_expected = diff.expected is not None and diff.op != "moved" and op != "made"
    expected = diff.expected.args if has_expected and diff.expected else ABSENT
    actual = diff.actual.args if diff.actual else ABSENT
    place = ordinal(diff.place + 1) if op == "moved" and diff.place is not None else ""
    return Row("call", op, call_name(diff), expected, actual, note, at is not None, at, place=place)


def _differing_call(turn: TurnResult, diff: CallDiff, at: DifferenceAt) -> Iterator[Group]:
    op = diff.op if turn.checks_calls else ""
    if not diff.args and diff.op != "changed":
        note = call_note(diff) if turn.checks_calls else ""
        yield Group([_whole_call(diff, op, note, at if turn.checks_calls else None)])
        return
    args = list(_outer_differences(diff))
    equal = [arg for arg in args if _is_equal(arg)]
    shown = [arg for arg in args if not _is_equal(arg)] if len(equal) > _MAX_EQUAL else args
    rows = [_argument(arg, at, checked=turn.checks_calls) for arg in shown]
    # Its arguments are the rows below.
    yield Group([Row("call", op, call_name(diff), {}, {}), *rows])
    paths = {arg.path for arg in shown}
    names = {format_path((name,)): name for call in (diff.expected, diff.actual) for name in _args(call)}
    rest = [
        _argument(arg, at, checked=False)
        for arg in diff.args
        if paths.isdisjoint((arg.path, outermost_name(arg.path, names)))
    ]
    if rest:
        yield Group(rest, counted(len(rest), "equal value"), f"arguments {at.turn} {at.row}")


def _args(call: Call | None) -> dict[str, Any]:
    return (call.args if call else None) or {}


def _is_equal(arg: ArgDiff) -> bool:
    return arg.op == "same" and not arg.rule


def _outer_differences(diff: CallDiff) -> Iterator[ArgDiff]:
    """The arguments that are equal as a whole, and the differing parts of the others."""
    sides = [_args(call) for call in (diff.expected, diff.actual)]
    names = {format_path((name,)): name for args in sides for name in args}
    for name, group in groupby(diff.args, lambda arg: outermost_name(arg.path, names)):
        args = list(group)
        if name is None or (len(args) == 1 and args[0].path == name):
            yield from args
        elif all(map(_is_equal, args)):
            yield ArgDiff(name, "same", sides[0].get(names[name]), sides[1].get(names[name]))
        else:
            yield from (arg for arg in args if not _is_equal(arg))


def outermost_name(path: str, names: Mapping[str, str]) -> str | None:
    """The name of the argument or state key that contains a path; None where no name does."""
    if path in names:
        return path
    ends = (number for number, letter in enumerate(path) if number and letter in ".[")
    return next((path[:end] for end in ends if path[:end] in names), None)


def _argument(arg: ArgDiff, call: DifferenceAt, *, checked: bool) -> Row:
    label, both = visible(arg.path) or "args", (arg.expected, arg.actual)
    if _is_equal(arg):
        return Row("argument", "", label, *both)
    if arg.rule:
        return Row("argument", "rule", label, *both, f"allowed by rule: {visible(arg.rule)}")
    at = call._replace(kind="argument", path=arg.path) if checked else None
    op = arg.op if checked else ""
    match arg.op:
        case "missing":
            row = Row("argument", op, label, arg.expected, note="missing")
        case "extra":
            row = Row("argument", op, label, actual=arg.actual, note="unexpected")
        case _:
            row = Row("argument", op, label, *both, _types_note(*both))
    return replace(row, differs=checked, at=at)


def _types_note(expected: Any, actual: Any) -> str:
    """The types of two values, `string, expected integer`; "" for equal types."""
    kinds = type_names(expected, actual)
    return f"{kinds[1]}, expected {kinds[0]}" if kinds else ""


# Texts


def text_rows(result: CaseResult | RepeatResult, number: int) -> Iterator[Row]:
    """The texts of a turn, from 0, besides its response: unscored texts, then the texts before the response
    beside the expected ones."""
    turn = result.turns[number]
    aligned = {diff.actual for diff in turn.intermediate}
    for other in turn.unscored:
        if other.author in NO_TEXTS or other.text not in aligned:
            yield Row("unscored", "", visible(other.author), actual=other.text, note="not scored")
    is_scored = score_of(result, "intermediate_match_score", number)[0] is not None
    for place, diff in enumerate(turn.intermediate):
        differs = text_differs(result, number, diff)
        at = DifferenceAt("text", number, text=place) if differs else None
        expected = ABSENT if diff.expected is None else diff.expected
        actual = ABSENT if diff.actual is None else diff.actual
        if ABSENT not in (expected, actual):
            op = "same" if expected == actual else "changed" if differs else "within"
            note = show_score(diff.score) if op != "same" else ""
        else:
            # Without a verdict the sides say enough.
            kind, note = ("missing", "missing") if actual is ABSENT else ("extra", "unexpected")
            op = kind if differs else ""
        note = note if is_scored else "not scored"
        yield Row("text", op, visible(diff.author), expected, actual, note, differs, at)


def changed_texts(turn: TurnResult) -> Iterator[Row]:
    """The texts before the response of a turn that differ, independent of metrics."""
    for diff in turn.intermediate:
        if diff.expected != diff.actual:
            expected, actual = (ABSENT if text is None else text for text in (diff.expected, diff.actual))
            op = "missing" if diff.actual is None else "extra" if diff.expected is None else "changed"
            yield Row("text", op, visible(diff.author), expected, actual, differs=True)


def scored_response(result: CaseResult | RepeatResult, number: int) -> Row | None:
    """The response of a turn, from 0, with its score as the note: `0.93 ≥ 0.80`."""
    score, metric = score_of(result, "response_match_score", number)
    note = "" if score is None or metric is None else show_scores(score, metric.threshold)
    return response_row(result.turns[number], number, response_op(result, number), note)


def response_row(turn: TurnResult, number: int, op: str, note: str = "") -> Row | None:
    """The row of the response of a turn, from 0; None where both sides have none. `op` is "" for equal
    responses."""
    expected, actual = turn.response.expected or "", turn.response.actual or ""
    if not expected and not actual:
        return None
    if turn.expectation == "simulated":
        return Row("response", "made", "", actual=actual) if actual else None
    unexpected = "no reference response" if turn.leaves_response else "no response expected"
    if turn.response.is_unknown:
        return Row("response", "", "", expected, note="actual unknown")
    if not op:
        note = note if expected else unexpected
        is_same = expected == actual
        return Row("response", "same" if is_same else "", "", actual if is_same else ABSENT, actual, note)
    at = DifferenceAt("answer", number)
    differs = op == "changed"
    if not actual:
        absent = turn.without_response
        return Row("response", op, "", expected, note=note, differs=differs, at=at, instead=absent)
    if not expected:
        why = "   ".join(filter(None, (unexpected, note)))
        return Row("response", "extra", "", actual=actual, note=why, differs=differs, at=at)
    return Row("response", op, "", expected, actual, note, differs, at)


def score_of(
    result: CaseResult | RepeatResult, name: str, number: int
) -> tuple[float | None, MetricResult | None]:
    """The score of a turn, from 0, by a metric, and the metric's result; None where they are missing."""
    metric = next((metric for metric in result.metrics if metric.name == name), None)
    if metric is None or len(metric.per_invocation) != len(result.turns):
        return None, metric
    return metric.per_invocation[number].score, metric


def common_words(expected: str, actual: str) -> Sequence[tuple[WordOp, str]]:
    """The word diff of two texts, with words told apart that look alike; empty where the texts are too
    different, so that each is shown as a whole."""
    parts = list(diff_words(expected, actual))
    if not actual or not (shares_much(parts) or told_apart(expected, actual) != (expected, actual)):
        return ()
    for place, ((op, text), (next_op, other)) in enumerate(pairwise(parts)):
        if (op, next_op) == ("removed", "added"):
            before, after = told_apart(text, other)
            parts[place : place + 2] = (op, before), (next_op, after)
    return parts


def compared_rows(result: CaseResult | RepeatResult, number: int) -> Iterator[Row]:
    """The rows of a turn, from 0: of its calls, of the texts before the response, and of the response."""
    for group in call_rows(result.turns[number], number):
        yield from group.rows
    yield from text_rows(result, number)
    response = scored_response(result, number)
    yield from () if response is None else (response,)


# State


def state_rows(state: Iterable[StateDiff]) -> Iterator[Row]:
    """The rows of keys that differ in the final session state."""
    for diff in state:
        at = DifferenceAt("state", path=diff.path)
        both = diff.expected, diff.actual
        yield Row("state", "changed", visible(diff.path), *both, _types_note(*both), True, at)


# Painting


def value_sides(row: Row, limit: int) -> tuple[str, str]:
    """Both values of a row as JSON of up to `limit` characters, cut so that their first difference is
    visible; "" for an absent value."""
    if row.is_change:
        return show_change(row.expected, row.actual, limit)
    texts = ["" if value is ABSENT else show_value(value, limit) for value in (row.expected, row.actual)]
    return texts[0], texts[1]


def labelled_sides(row: Row, limit: int, label: str = "") -> tuple[Line | None, Line | None]:
    """Both sides of a row as lines with a label; None for an absent side. `label` is the padded label of the
    row."""
    absent = row.expected is ABSENT, row.actual is ABSENT
    if row.kind == "call":
        name: Line = [(row.label, "bold")]
        elsewhere: Line | None = [(row.label, ""), (f"  {row.place}", "muted")] if row.place else None
        return elsewhere if absent[0] else name, None if absent[1] else name
    lines: list[Line] = [
        [(label or row.label, "key"), ("  ", ""), (text, JSON)] for text in value_sides(row, limit)
    ]
    return None if absent[0] else lines[0], None if absent[1] else lines[1]


def cut_middle(text: str, most: int, where: str = "") -> str:
    """A text of up to `most` characters; a longer one without its middle. `where` names the place of the full
    text."""
    if len(text) <= most:
        return text
    half = most // 2
    left_out = f"… {counted(len(text) - 2 * half, 'more character')}{where} …"
    return f"{text[:half]}\n{left_out}\n{text[-half:]}"
