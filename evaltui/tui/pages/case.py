"""A case as rows: where it begins, and the messages, calls and responses of every turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaltui.core.model.problems import Problem, Severity, format_path
from evaltui.text.lines import Line, cells, pad
from evaltui.text.syntax import value_line
from evaltui.text.values import visible, visible_block
from evaltui.tui.pages.writer import LABEL, Page
from evaltui.workbench.fields import Part, Row, RowId

_MAX_VALUE = 400
_MARGIN = 2
_ARGUMENT = 6
_STEP = 2
# Cells. A preview of a folded value is never shorter.
_MIN_PREVIEW = 20
# Cells. A field is never made shorter for what is declared of it.
_MIN_FIELD = 16


@dataclass(frozen=True)
class OpenField:
    """The room on a page for a field that is being edited."""

    row: RowId
    part: Part
    """Value or name of the row."""
    height: int
    """Lines of the field."""
    wide: bool
    """Whether it begins in a new line, so that it is as wide as possible."""
    below: Sequence[Line]
    """Completions and the problem, drawn under it."""
    remark: str = ""
    """What is declared of its value, right of it; "" for nothing."""
    adding: bool = False
    """Whether it stands below the row, for what is added there."""


@dataclass(frozen=True)
class Placed:
    """Where a row is on a page."""

    first: int
    """Its first line, 0-based."""
    last: int
    """The line after its last one."""
    x: int = 0
    """Column of its field, if that is open."""
    y: int = 0
    """Line of its field."""
    width: int = 0
    """Cells for its field."""


def write_rows(page: Page, rows: Sequence[Row], opened: OpenField | None = None) -> list[Placed]:
    """The rows one below the other, and where each of them is."""
    return [_write_row(page, row, opened if opened and opened.row == row.id else None) for row in rows]


def _write_row(page: Page, row: Row, opened: OpenField | None) -> Placed:
    if row.role in ("turn", "section", "hint"):
        page.blank()
    if row.role == "turn" and row.turn is not None:
        page.turns[row.turn] = len(page.lines)
    first = len(page.lines)
    x, y, field_width = _write_open(page, row, opened) if opened else (0, first, 0)
    if not opened:
        _write_closed(page, row)
    for problem in row.findings:
        write_finding(page, row, problem)
    return Placed(first, len(page.lines), x, y, field_width)


def _write_closed(page: Page, row: Row) -> None:
    value = _value(row, page.width)
    if row.level:
        page.text(value, _head(row))
        return
    match row.role:
        case "hint":
            page.text(value)
        case "section":
            page.row((row.label, "bold"))
        case "turn":
            page.ends([(row.label, "bold")], value)
        case "call" | "response":
            page.hanging([*_head(row), *value], 6)
        case "argument" | "fact":
            page.text(value, _head(row))
        case "part":
            page.labelled(visible(row.label), [(f"{visible(row.name)}  ", "muted"), *value])


def _head(row: Row) -> Line:
    """What stands before the value of a row, in its first line."""
    if row.level:
        return [(" " * value_margin(row), ""), (f"{visible(row.name)}  ", "muted" if row.quiet else "key")]
    match row.role:
        case "call":
            return [("  · ", "muted")]
        case "response":
            return [("  ← ", "muted"), (f"{visible(row.name)}  ", "muted")]
        case "argument":
            return [(" " * _ARGUMENT, ""), *([(f"{visible(row.name)}  ", "key")] if row.name else [])]
        case "part":
            return [("  " + pad(visible(row.label), LABEL), "muted"), (f"{visible(row.name)}  ", "muted")]
        case _:
            return [("  " + pad(visible(row.label), LABEL), "muted")]


def value_margin(row: Row) -> int:
    """The column in which the value of a row, or its name, begins."""
    inside = _STEP * row.level
    match row.role:
        case "call" | "response":
            return 4 + inside
        case "argument":
            return _ARGUMENT + inside
        case _:
            return _MARGIN + LABEL + inside


def _folded(row: Row, width: int) -> Line:
    """An object or array: its members are below it, or it has a preview in one line."""
    if row.fold == "open":
        count = len(row.value)
        return [(f"▾ {{{count}}}" if isinstance(row.value, dict) else f"▾ [{count}]", "muted")]
    room = width - cells(_head(row)) - 2
    return [("▸ ", "muted"), *value_line(row.value, max(_MIN_PREVIEW, room))]


def _value(row: Row, width: int) -> Line:
    if row.fold is not None:
        shown = _folded(row, width)
        return [(text, "muted") for text, _ in shown] if row.quiet else shown
    if row.shown is not None:
        media = row.field is None and not row.quiet and row.value is None and row.role == "fact"
        return [(visible_block(row.shown), "bold accent" if media else "muted" if row.quiet else "")]
    if row.is_json:
        shown = value_line(row.value, _MAX_VALUE)
        return [(text, "muted") for text, _ in shown] if row.quiet else shown
    role = "bold" if row.role == "call" or row.id == ("id",) else "muted" if row.quiet else ""
    return [(visible_block(str(row.value)), role)]


def _write_open(page: Page, row: Row, opened: OpenField) -> tuple[int, int, int]:
    """Leaves room for the field of a row; column and line of its first cell, and its width."""
    margin = value_margin(row)
    head = _head(row)
    if opened.adding:
        _write_closed(page, row)
        head = [(" " * margin, "")]
    if opened.part == "name":
        # In place of the name, which stands before the value.
        head = (
            [("  " + pad(visible(row.label), LABEL), "muted")]
            if row.role == "part" and not row.level
            else [(" " * margin, "")]
        )
    page.row(*head)
    x, y = cells(head), len(page.lines) - 1
    if (opened.wide and x > margin) or x > page.width // 2:
        x, y = margin + 2, y + 1
        page.lines.append([])
    width = page.width - x
    if opened.remark and (room := width - len(opened.remark) - 2) >= _MIN_FIELD:
        page.lines[y] += [(" " * (room + 2), ""), (opened.remark, "muted")]
        width = room
    page.lines += [[] for _ in range(opened.height - 1)]
    for line in opened.below:
        page.text(line, [(" " * margin, "")])
    return x, y, width


def write_finding(page: Page, row: Row, problem: Problem) -> None:
    role = "error" if problem.severity is Severity.ERROR else "warning"
    where = format_path(problem.path) if row.path is None or problem.path[: len(row.path)] != row.path else ""
    inside = format_path(problem.path[len(row.path) :]) if row.path and not where else where
    text = f"{visible(inside)}: {visible(problem.message)}" if inside else visible(problem.message)
    page.text([(text, role)], [(" " * value_margin(row), ""), ("! ", role)])
