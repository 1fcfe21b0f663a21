"""A case as rows: its session, and the messages, calls and responses of every turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaltui.core.model.problems import Problem, Severity, format_path
from evaltui.text.lines import Line, Span, cells, cut, join_ends, pad
from evaltui.text.syntax import value_line
from evaltui.text.values import visible, visible_block
from evaltui.tui.widgets.writer import Page
from evaltui.workbench.case.fields import Part, Row, RowId

# Cells. The longest label, `intermediate`, and one more.
_LABEL_WIDTH = 13
_MAX_VALUE = 400
_MARGIN = 2
_ARGUMENT_INDENT = 6
_INDENT = 2
# Cells. Values begin behind the longest name in their column, up to this one.
_MAX_NAME_LENGTH = 16
# Cells. A preview of a folded value is never shorter.
_MIN_PREVIEW = 20
# Cells. A field is never made shorter for what is declared of it.
_MIN_FIELD = 16
# Cells. A list of choices is never wider.
_MAX_CHOICE = 60


@dataclass(frozen=True)
class OpenField:
    """The space on a page for the open field."""

    row: RowId
    part: Part
    """Value or name of the row."""
    height: int
    """Lines of the field."""
    wide: bool
    """Whether it starts on a new line, to be as wide as possible."""
    choices: Sequence[tuple[Line, Line]]
    """The completions below it: the left and right part of each."""
    chosen: int | None
    """Index of the selected completion; None for none."""
    below: Sequence[Line]
    """The problem, below the completions."""
    remark: str = ""
    """The declared type of its value, at the right; "" for none."""
    adding: bool = False
    """Whether it is below the row, to choose an addition."""
    is_new: bool = False
    """Whether its row was just added: missing parts are not reported then."""


@dataclass(frozen=True)
class Placed:
    """The place of a row on a page."""

    first: int
    """Its first line, 0-based."""
    last: int
    """The line after its last one."""
    x: int = 0
    """Column of its field, if that is open."""
    y: int = 0
    """Line of its field."""
    width: int = 0
    """Cells of its field."""


def write_rows(
    page: Page,
    rows: Sequence[Row],
    opened: OpenField | None = None,
    outcomes: Mapping[int, Span] | None = None,
) -> list[Placed]:
    """Writes the rows and returns their places. `outcomes` are glyphs of turns that ran."""
    columns = _columns(rows)
    placed = []
    before: Row | None = None
    for row in rows:
        if _begins_block(row, before):
            page.blank()
        if row.role == "turn" and row.turn is not None:
            page.turns[row.turn] = len(page.lines)
        glyph = (outcomes or {}).get(row.turn) if row.role == "turn" and row.turn is not None else None
        column = columns.get(_column_of(row), 0)
        placed.append(
            _write_row(page, row, column, glyph, opened if opened and opened.row == row.id else None)
        )
        before = row
    return placed


def _begins_block(row: Row, before: Row | None) -> bool:
    """Whether an empty line separates a row from the previous one."""
    if row.role in ("turn", "section", "hint", "call"):
        return True
    of_call = before is not None and before.id[2:3] == ("call",)
    return of_call and row.turn is not None and row.id[2:3] != ("call",) and row.role != "response"


def _column_of(row: Row) -> RowId:
    """A key for rows whose values start in the same column."""
    return row.id[:4] if row.id[0] == "turn" else row.id[:1]


def _columns(rows: Sequence[Row]) -> dict[RowId, int]:
    """The width of each column: of its longest name, with the indentation."""
    columns: dict[RowId, int] = {}
    for row in rows:
        if row.name and (row.is_json or row.level) and row.role != "response":
            width = min(len(visible(row.name)), _MAX_NAME_LENGTH) + _INDENT * row.level
            columns[_column_of(row)] = max(width, columns.get(_column_of(row), 0))
    return columns


def _write_row(page: Page, row: Row, column: int, glyph: Span | None, opened: OpenField | None) -> Placed:
    first = len(page.lines)
    x, y, field_width = _write_open(page, row, column, opened) if opened else (0, first, 0)
    if not opened:
        _write_closed(page, row, column, glyph)
    if not (opened and opened.is_new):
        for problem in row.findings:
            write_finding(page, row, problem)
    return Placed(first, len(page.lines), x, y, field_width)


def _write_closed(page: Page, row: Row, column: int, glyph: Span | None = None) -> None:
    if row.role == "turn":
        _write_turn(page, row, glyph)
        return
    head = _head(row, column)
    value = _value(row, page.width - cells(head))
    if row.level:
        page.text(value, head)
        return
    if row.fold == "closed" and not row.is_json:
        page.row(*head, *value)
        return
    match row.role:
        case "hint":
            page.text(value)
        case "section":
            page.row((row.label, "bold"))
        case "call" | "response":
            page.hanging([*head, *value], 6)
        case _:
            page.text(value, head)


def _write_turn(page: Page, row: Row, glyph: Span | None) -> None:
    left: Line = [(f"{_mark(row)}{row.label}", "bold"), *([(" ", ""), glyph] if glyph else [])]
    if row.fold == "closed":
        left += [("  ", ""), (visible(str(row.preview or "")), "muted")]
    page.ends(left, [(row.shown or "", "muted")])


def _mark(row: Row) -> str:
    """The fold mark of a row."""
    return {"open": "▾ ", "closed": "▸ ", None: ""}[row.fold]


def _head(row: Row, column: int = 0) -> Line:
    """The text before the value of a row, in its first line."""
    name = visible(row.name)
    if row.level or row.role == "argument":
        named = pad(name, column - _INDENT * row.level) if len(name) <= _MAX_NAME_LENGTH else name
        label = visible(row.label) if row.id[-1] == 0 else ""
        margin = value_margin(row)
        role = "muted" if row.quiet else "key"
        return [(pad(f"  {label}", margin), "muted"), *([(f"{named}  ", role)] if name else [])]
    match row.role:
        case "call":
            return [("  ", ""), (_mark(row) or "· ", "muted")]
        case "response":
            return [("  ← ", "muted"), (f"{name}  ", "muted")]
        case "part":
            named = pad(name, column) if row.is_json and len(name) <= _MAX_NAME_LENGTH else name
            role = "key" if row.is_json else "muted"
            return [("  " + pad(visible(row.label), _LABEL_WIDTH), "muted"), (f"{named}  ", role)]
        case _:
            return [("  " + pad(visible(row.label), _LABEL_WIDTH), "muted")]


def value_margin(row: Row) -> int:
    """The column in which the value of a row, or its name, starts."""
    inside = _INDENT * row.level
    match row.role:
        case "call" | "response":
            return 4 + inside
        case "argument":
            return _ARGUMENT_INDENT + inside
        case _:
            return _MARGIN + _LABEL_WIDTH + inside


def _preview(row: Row, room: int) -> Line:
    """Whether an object or array is shown in one line as a preview, or by its members below."""
    if row.fold == "open":
        count = len(row.value)
        return [(f"▾ {{{count}}}" if isinstance(row.value, dict) else f"▾ [{count}]", "muted")]
    return [("▸ ", "muted"), *value_line(row.value, max(_MIN_PREVIEW, room - 2))]


def _value(row: Row, room: int) -> Line:
    """The value of a row, in `room` cells where it is folded."""
    if row.role == "call":
        return _call_line(row, room)
    if row.fold is not None and row.is_json:
        shown = _preview(row, room)
        return [(text, "muted") for text, _ in shown] if row.quiet else shown
    if row.shown is not None:
        media = row.field is None and not row.quiet and row.value is None and row.role == "fact"
        mark: Line = [(_mark(row), "muted")] if row.fold else []
        return [*mark, (visible_block(row.shown), "bold accent" if media else "muted" if row.quiet else "")]
    if row.is_json:
        shown = value_line(row.value, _MAX_VALUE)
        return [(text, "muted") for text, _ in shown] if row.quiet else shown
    role = "bold" if row.id == ("id",) else "muted" if row.quiet else ""
    return [(visible_block(str(row.value)), role)]


def _call_line(row: Row, room: int) -> Line:
    """The name of a call; in a folded one, followed by its arguments in one line."""
    if row.shown is not None:
        return [(row.shown, "muted")]
    line: Line = [(visible(str(row.value)), "bold")]
    if row.fold == "closed" and isinstance(row.preview, dict):
        for name, value in row.preview.items():
            line += [(f"  {visible(str(name))} ", "key"), *value_line(value, _MAX_VALUE)]
        return cut(line, max(_MIN_PREVIEW, room))
    return line


def _write_open(page: Page, row: Row, column: int, opened: OpenField) -> tuple[int, int, int]:
    """Leaves space for the field of a row; returns column and line of its first cell, and its width."""
    margin = value_margin(row)
    head = _head(row, column)
    if opened.adding:
        _write_closed(page, row, column)
        head = [(" " * margin, "")]
    if opened.part == "name":
        # In place of the name, which stands before the value.
        is_labelled = row.role == "part" and not row.level
        head = (
            [("  " + pad(visible(row.label), _LABEL_WIDTH), "muted")] if is_labelled else [(" " * margin, "")]
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
    _write_choices(page, opened, x)
    for line in opened.below:
        page.text(line, [(" " * margin, "")])
    return x, y, width


def _write_choices(page: Page, opened: OpenField, x: int) -> None:
    """Writes the completions, one per line, on a surface as wide as the widest."""
    if not opened.choices:
        return
    longest = max(cells(left) + (cells(right) + 2 if right else 0) for left, right in opened.choices)
    width = min(max(longest + 4, _MIN_FIELD), _MAX_CHOICE, page.width - x)
    for number, (left, right) in enumerate(opened.choices):
        chosen = number == opened.chosen
        line = join_ends([("▌" if chosen else " ", "bold accent"), *left], [*right, (" ", "")], width)
        fill = "sel" if chosen else "surface"
        filled = [(text, f"{fill} {role}".rstrip()) for text, role in line]
        rest = width - cells(line)
        page.lines.append([(" " * x, ""), *filled, *([(" " * rest, fill)] if rest > 0 else [])])


def write_finding(page: Page, row: Row, problem: Problem) -> None:
    role = "error" if problem.severity is Severity.ERROR else "warning"
    where = format_path(problem.path) if row.path is None or problem.path[: len(row.path)] != row.path else ""
    inside = format_path(problem.path[len(row.path) :]) if row.path and not where else where
    text = f"{visible(inside)}: {visible(problem.message)}" if inside else visible(problem.message)
    page.text([(text, role)], [(" " * value_margin(row), ""), ("! ", role)])
