"""Tool calls, as rows: aligned with what was expected, or alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.cells import cell_len

from evaltui.core.explain import call_name
from evaltui.core.outcome import ArgDiff, CallDiff
from evaltui.core.show import show_change, show_value, type_change, visible
from evaltui.reports.lines import Line, pad
from evaltui.tui.pages.writer import Page

_MARKS = {
    "same": ("=", "dim", ""),
    "changed": ("~", "yellow", ""),
    "moved": ("↕", "yellow", "moved"),
    "missing": ("-", "red", "missing"),
    "extra": ("+", "green", "extra"),
}
_TONES = {note: tone for _, tone, note in _MARKS.values()}
_MAX_PATH = 28
_MAX_VALUE = 400


def write_call(page: Page, diff: CallDiff) -> None:
    """One row of the aligned trajectory; a changed call has its arguments below it."""
    mark, tone, note = _MARKS[diff.op]
    name_tone = "dim" if diff.op == "same" else "bold"
    head: Line = [("  ", ""), (mark, tone), (" ", ""), (call_name(diff), name_tone)]
    call = diff.actual or diff.expected
    if diff.op != "changed":
        _write_inline(page, head, call.args if call else None, note)
        return
    page.row(*head)
    paths = min(_MAX_PATH, max((cell_len(visible(arg.path)) for arg in diff.args), default=4))
    for arg in diff.args:
        _write_arg(page, arg, max(paths, 4))


def write_expected_call(page: Page, name: str, args: Mapping[str, Any] | None) -> None:
    _write_inline(page, [("  · ", "dim"), (visible(name), "bold")], args, "")


def _write_inline(page: Page, head: Line, args: Mapping[str, Any] | None, note: str) -> None:
    mark: Line = [(f"  {note}", _TONES[note])] if note else []
    page.hanging([*head, *mark, (inline_args(args), "dim")], 6)


def inline_args(args: Mapping[str, Any] | None) -> str:
    """`  location "Kitchen", degrees 19`, or nothing where there are no arguments."""
    shown = ", ".join(
        f"{visible(str(name))} {show_value(value, _MAX_VALUE)}" for name, value in (args or {}).items()
    )
    return f"  {shown}" if shown else ""


def _write_arg(page: Page, arg: ArgDiff, paths: int) -> None:
    mark, tone, note = _MARKS[arg.op]
    path = pad(visible(arg.path) or "args", paths)
    if arg.op == "same":
        page.text([(show_value(arg.expected, _MAX_VALUE), "dim")], [(f"      {path}  ", "dim")])
        return
    head: Line = [("    ", ""), (mark, tone), (f" {path}  ", "")]
    if arg.op == "changed":
        write_change(page, head, arg.expected, arg.actual)
    else:
        value = arg.expected if arg.op == "missing" else arg.actual
        page.text([(show_value(value, _MAX_VALUE), tone), (f"  {note}", "dim")], head)


def write_change(page: Page, head: Line, expected: Any, actual: Any) -> None:
    """`19 → "19"`, and the type of the new value if it is another one."""
    before, after = show_change(expected, actual, _MAX_VALUE)
    kind = type_change(expected, actual)
    note = f"  type: {kind}" if kind else ""
    page.text([(before, "red"), (" → ", "dim"), (after, "green"), (note, "dim")], head)
