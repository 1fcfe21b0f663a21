"""The calls of a turn, expected and actual: two columns where there is room, else one below the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice
from typing import Any

from rich.cells import cell_len

from evaltui.core.compare.explain import call_name, call_note
from evaltui.core.model.outcome import ArgDiff, Call, CallDiff, TurnResult
from evaltui.core.model.problems import format_path
from evaltui.text.figures import counted
from evaltui.text.lines import Line, both_ends, cells, characters, pad, with_role
from evaltui.text.outcomes import ROW_MARKS
from evaltui.text.syntax import JSON, arguments_line
from evaltui.text.values import show_change, show_value, type_names, visible
from evaltui.tui.pages.writer import Folding, Page
from evaltui.workbench.state import DifferenceAt

# From here on what is expected and what is actual stand beside each other: in a pane of 110 cells.
BESIDE = 106
# The cells between the two columns, with the mark of a row in their middle, and those before the first one.
GUTTER, MARGIN = 5, 2
_MAX_PATH = 28
# So many equal calls, or equal arguments of a call that differs, are shown one by one.
_MOST_EQUAL = 6
# Enter shows all of it.
_MAX_VALUE = 400


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
    notes: tuple[str, str] = ("", "")
    """The same for one side below the other, the expected one first."""
    differs: bool = False
    """Whether it counts, and is tinted."""


def column_width(page: Page) -> int:
    """The cells of each of the two columns."""
    return (page.width - MARGIN - GUTTER) // 2


def write_row(page: Page, row: Row) -> None:
    if page.width >= BESIDE:
        page.lines.append(_beside(page, row, len(page.lines)))
    else:
        page.lines += _below(page.width, row)


def put_off_row(page: Page, make: Callable[[], Row], height: int = 1) -> None:
    """A row that is made when it is first looked at; below each other its sides take `height` lines."""
    first = len(page.lines)
    if page.width >= BESIDE:
        page.lines.put_off(lambda: _beside(page, make(), first))
        return
    for place in range(height):
        page.lines.put_off(partial(_drawn, page.width, make, place))


def _drawn(width: int, make: Callable[[], Row], place: int) -> Line:
    return list(_below(width, make()))[place]


def _beside(page: Page, row: Row, number: int) -> Line:
    """Line `number` of the page."""
    room = column_width(page)
    mark, role = ROW_MARKS[row.op]
    left = _tinted(row.expected or [], [], room, "exp" if row.differs and row.expected else "")
    noted = row.actual if row.actual is not None else row.expected
    note: Line = [(row.note, _note_role(row))] if row.note and noted is not None else []
    if row.actual is None and row.expected is not None:
        left = _tinted(row.expected, note, room, "exp" if row.differs else "")
        note = []
    right = _tinted(row.actual or [], note, room, "act" if row.differs and row.actual is not None else "")
    gutter: Line = [("  ", ""), (mark, role), (" " * (GUTTER - 3), "")]
    before: Line = [(" " * MARGIN, ""), *left]
    page.sides[number] = characters(before), characters([*before, *gutter])
    return [*before, *gutter, *right]


def _note_role(row: Row) -> str:
    return "" if row.differs and row.op == "changed" else "error" if row.differs else "muted"


def _tinted(line: Line, note: Line, room: int, tint: str) -> Line:
    """Exactly `room` cells, with a note at the right end."""
    ends: Line = [(" ", ""), *note, (" ", "")] if note else []
    drawn = both_ends(line, ends, room, gap=1)
    drawn.append((" " * (room - cells(drawn)), ""))
    return with_role(tint, drawn) if tint else drawn


def _below(width: int, row: Row) -> Iterator[Line]:
    room = width - MARGIN - 2
    if (
        row.op in ("changed", "rule")
        and row.expected is not None
        and row.actual is not None
        and any(row.notes)
    ):
        sides = (("−", "success", "exp", row.expected), ("+", "error", "act", row.actual))
        for (mark, role, tint, line), note in zip(sides, row.notes, strict=True):
            if row.op == "rule":
                mark, role = ("≃", "muted") if line is row.expected else (" ", "")
            drawn = _tinted(line, [(note, "")] if note else [], room, "")
            whole: Line = [(" " * MARGIN, ""), (mark, role), (" ", ""), *drawn]
            yield with_role(tint, whole) if row.differs else whole
        return
    mark, role = ROW_MARKS[row.op]
    side = row.actual if row.actual is not None else row.expected or []
    drawn = _tinted(side, [(row.note, _note_role(row))] if row.note else [], room, "")
    whole = [(" " * MARGIN, ""), (mark, role), (" ", ""), *drawn]
    tint = "act" if row.actual is not None else "exp"
    yield with_role(tint, whole) if row.differs and row.op != "changed" else whole


# The calls of a turn


@dataclass(frozen=True)
class TurnCalls:
    """The calls of a turn, and what is known besides."""

    turn: TurnResult
    number: int
    """Which turn, from 0."""
    folding: Folding
    is_brief: bool = False
    """Whether equal calls take one line each."""


def write_calls(page: Page, calls: TurnCalls) -> None:
    """Row by row; many equal calls in a row are one line."""
    number = 0
    for is_equal, group in groupby(calls.turn.calls, lambda diff: diff.op == "same" and not diff.args):
        diffs = list(group)
        key = f"calls {calls.number} {number}"
        if is_equal and len(diffs) > _MOST_EQUAL and not calls.folding.is_open(key, usual=False):
            page.fold(key, [("  ▸ ", "faint"), ("= ", "muted"), (counted(len(diffs), "equal call"), "muted")])
        else:
            for place, diff in enumerate(diffs, number):
                _write_call(page, calls, diff, place)
        number += len(diffs)


def write_made_calls(page: Page, turn: TurnResult) -> None:
    """Calls of which nothing is expected."""
    for diff in turn.calls:
        page.lines.extend(_below(page.width, Row("made", actual=_in_a_line(diff.actual))))


def _write_call(page: Page, calls: TurnCalls, diff: CallDiff, row: int) -> None:
    checked = calls.turn.checks_calls
    title = f"turn {calls.number + 1} · {call_name(diff)}"
    name: Line = [(call_name(diff), "bold" if checked else "")]
    if diff.op == "changed":
        note = "argument differs" if page.width < BESIDE and checked else ""
        put_off_row(page, lambda: Row("changed" if checked else "", name, name, note))
        _write_arguments(page, calls, diff, row, title)
        return
    differs = checked and diff.op != "same"
    at = DifferenceAt("call", calls.number, row)
    op = diff.op if checked else ""
    with page.difference(at, f"{title} · {diff.op}", _call_sides(diff)) if differs else nullcontext():
        if diff.op == "same" and calls.is_brief and not diff.args:
            put_off_row(page, lambda: Row(op, _in_a_line(diff.actual), _in_a_line(diff.actual)))
            return
        note = call_note(diff) if checked else ""
        put_off_row(page, lambda: Row(op, *_sides(diff, name), note, differs=differs))
        if not diff.args:
            _put_off_arguments(page, diff, differs=differs)
    if diff.args:
        _write_arguments(page, calls, diff, row, title)


def _put_off_arguments(page: Page, diff: CallDiff, *, differs: bool) -> None:
    """The arguments of a call that is the same on both sides, or on one only."""
    call = diff.actual or diff.expected
    args = (call and call.args) or {}

    def row(number: int) -> Row:
        line = next(islice(argument_lines(args), number, None))
        return Row("", *_sides(diff, line), differs=differs)

    for number in range(len(args)):
        put_off_row(page, partial(row, number))


def _sides(diff: CallDiff, line: Line) -> tuple[Line | None, Line | None]:
    """A call out of order stands where it was made."""
    expected = diff.expected is not None and diff.op != "moved"
    return line if expected else None, line if diff.actual is not None else None


def _call_sides(diff: CallDiff) -> dict[str, Any]:
    calls = {"expected": diff.expected, "actual": diff.actual}
    if diff.op == "moved":
        calls = {"the call, which is the same on both sides": diff.actual}
    return {side: {"name": call.name, "args": call.args} for side, call in calls.items() if call}


def _in_a_line(call: Call | None) -> Line:
    if call is None:
        return []
    return [(visible(call.name), "bold"), *arguments_line(call.args, _MAX_VALUE)]


def argument_lines(args: Mapping[str, Any] | None) -> Iterator[Line]:
    names = {name: visible(str(name)) for name in args or {}}
    width = min(_MAX_PATH, max(map(cell_len, names.values()), default=0))
    for name, data in (args or {}).items():
        yield _argument(names[name], width, show_value(data, _MAX_VALUE))


def _argument(path: str, width: int, value: str) -> Line:
    return [("  ", ""), (pad(path, width), "key"), ("  ", ""), (value, JSON)]


# Arguments that differ


def _write_arguments(page: Page, calls: TurnCalls, diff: CallDiff, row: int, title: str) -> None:
    """Every argument of a call that has differences; of nested ones only what differs."""
    key = f"arguments {calls.number} {row}"
    is_open = calls.folding.is_open(key, usual=False)
    rows = list(diff.args) if is_open else list(_outer(diff))
    equal = [arg for arg in rows if arg.op == "same" and not arg.rule]
    folds = len(equal) > _MOST_EQUAL and not is_open
    shown = [arg for arg in rows if arg.op != "same" or arg.rule] if folds else rows
    width = max(4, min(_MAX_PATH, max((cell_len(visible(arg.path)) for arg in shown), default=4)))
    for arg in shown:
        differs = calls.turn.checks_calls and arg.op != "same"
        at = DifferenceAt("argument", calls.number, row, arg.path)
        place = f"{title} · {visible(arg.path) or 'args'}"
        with page.difference(at, place, _arg_sides(arg)) if differs else nullcontext():
            both = arg.op == "changed" or arg.rule
            put_off_row(page, partial(_argument_row, page, arg, width, differs=differs), 2 if both else 1)
    if folds or len(rows) < len(diff.args):
        left_out = len(diff.args) - len(shown) if folds else len(diff.args) - len(rows)
        equal_line = f"{counted(left_out, 'equal value')}"
        page.fold(key, [("    ▸ ", "faint"), ("= ", "muted"), (equal_line, "muted")])


def _outer(diff: CallDiff) -> Iterator[ArgDiff]:
    """The arguments, those that are equal as a whole, and in the others what differs."""
    sides = [(call.args if call else None) or {} for call in (diff.expected, diff.actual)]
    names = {format_path((name,)): name for args in sides for name in args}
    for name, group in groupby(diff.args, lambda arg: outermost(arg.path, names)):
        args = list(group)
        if name is None or (len(args) == 1 and args[0].path == name):
            yield from args
        elif all(arg.op == "same" and not arg.rule for arg in args):
            yield ArgDiff(name, "same", sides[0].get(names[name]), sides[1].get(names[name]))
        else:
            yield from (arg for arg in args if arg.op != "same" or arg.rule)


def outermost(path: str, names: Mapping[str, str]) -> str | None:
    """The argument that a path leads into."""
    if path in names:
        return path
    ends = (number for number, letter in enumerate(path) if number and letter in ".[")
    return next((path[:end] for end in ends if path[:end] in names), None)


def _arg_sides(arg: ArgDiff) -> dict[str, Any]:
    sides = {"expected": arg.expected, "actual": arg.actual}
    absent = {"extra": "expected", "missing": "actual"}.get(arg.op)
    return {side: value for side, value in sides.items() if side != absent}


def _argument_row(page: Page, arg: ArgDiff, width: int, *, differs: bool) -> Row:
    path = visible(arg.path) or "args"
    room = max(12, (column_width(page) if page.width >= BESIDE else page.width) - width - 6)
    if arg.op == "same" and not arg.rule:
        line = _argument(path, width, show_value(arg.expected, _MAX_VALUE))
        return Row("", line, line)
    before, after = (_argument(path, width, text) for text in show_change(arg.expected, arg.actual, room))
    if arg.rule:
        note = f"allowed by rule: {visible(arg.rule)}"
        return Row("rule", before, after, note, (note, ""))
    match arg.op:
        case "missing":
            line = _argument(path, width, show_value(arg.expected, _MAX_VALUE))
            return Row("missing", line, None, "missing", differs=differs)
        case "extra":
            line = _argument(path, width, show_value(arg.actual, _MAX_VALUE))
            return Row("extra", None, line, "unexpected", differs=differs)
        case _:
            kinds = type_names(arg.expected, arg.actual)
            note = f"{kinds[1]}, expected {kinds[0]}" if kinds else ""
            notes = (f"expected {kinds[0]}", f"actual {kinds[1]}") if kinds else ("expected", "actual")
            return Row("changed", before, after, note, notes, differs=differs)
