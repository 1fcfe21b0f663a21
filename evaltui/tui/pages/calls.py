"""Tool calls as rows: aligned with the expected ones, or alone."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from rich.cells import cell_len

from evaltui.core.compare.explain import call_name
from evaltui.core.model.outcome import ArgDiff, CallDiff
from evaltui.text.lines import Line, Span, pad
from evaltui.text.outcomes import CALL_MARKS
from evaltui.text.values import show_change, show_value, type_change, visible
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
        left = [name, (inline_args(diff.expected.args, _UNBROKEN), "muted")]
    if diff.actual:
        right = [
            name,
            (f"  {note}" if note else "", role),
            (inline_args(diff.actual.args, _UNBROKEN), "muted"),
        ]
    page.columns(left, right, mark)


def write_made_call(page: Page, diff: CallDiff) -> None:
    """A call of which nothing was expected."""
    args = diff.actual.args if diff.actual else None
    _write_inline(page, [("  → ", "muted"), (call_name(diff), "bold")], args, "")


def _write_inline(page: Page, head: Line, args: Mapping[str, Any] | None, note: str) -> None:
    mark: Line = [(f"  {note}", _ROLES[note])] if note else []
    page.hanging([*head, *mark, (inline_args(args, _UNBROKEN), "muted")], 6)


def inline_args(args: Mapping[str, Any] | None, joint: str = " ") -> str:
    """`  location "Kitchen", degrees 19`, or nothing where there are no arguments."""
    shown = (
        f"{visible(str(name))}{joint}{show_value(value, _MAX_VALUE)}" for name, value in (args or {}).items()
    )
    return f"  {', '.join(shown)}" if args else ""


def _write_arg(page: Page, arg: ArgDiff, paths: int, *, beside: bool) -> None:
    mark, role, note = CALL_MARKS[arg.op]
    path = pad(visible(arg.path) or "args", paths)
    head: Line = [("    ", ""), (mark if arg.op != "same" else " ", role), (f" {path}  ", "")]
    if arg.rule:
        _write_passed(page, arg, [("    ≈ ", "muted"), (f"{path}  ", "muted")], beside=beside)
    elif arg.op == "changed" and not beside:
        write_change(page, head, arg.expected, arg.actual)
    elif arg.op == "changed":
        before, after = show_change(arg.expected, arg.actual, _MAX_VALUE)
        kind = type_change(arg.expected, arg.actual)
        page.columns(
            [(before, "error")], [(after, "success"), (f"  type: {kind}" if kind else "", "muted")], head
        )
    elif arg.op == "same":
        value = (show_value(arg.expected, _MAX_VALUE), "muted")
        head = [(text, "muted") for text, _ in head]
        page.columns([value], [value], head) if beside else page.text([value], head)
    else:
        value = (show_value(arg.expected if arg.op == "missing" else arg.actual, _MAX_VALUE), role)
        absent: Span = (note if arg.op == "missing" else "nothing", "muted")
        if not beside:
            page.text([value, (f"  {note}", "muted")], head)
        elif arg.op == "missing":
            page.columns([value], [absent], head)
        else:
            page.columns([absent], [value, (f"  {note}", "muted")], head)


def _write_passed(page: Page, arg: ArgDiff, head: Line, *, beside: bool) -> None:
    """A difference that a rule lets pass: seen, and not to be looked at."""
    before, after = show_change(arg.expected, arg.actual, _MAX_VALUE)
    rule: Span = (f"  rule: {visible(arg.rule)}", "muted")
    if beside:
        page.columns([(before, "muted")], [(after, "muted"), rule], head)
    else:
        page.text([(before, "muted"), (" ≈ ", "muted"), (after, "muted"), rule], head)


def write_change(page: Page, head: Line, expected: Any, actual: Any) -> None:
    """`19 → "19"`, and the type of the new value if it is another one."""
    before, after = show_change(expected, actual, _MAX_VALUE)
    kind = type_change(expected, actual)
    note = f"  type: {kind}" if kind else ""
    page.text([(before, "error"), (" → ", "muted"), (after, "success"), (note, "muted")], head)
