"""Rows of a conversation as lines: messages, calls with their results, changes of the state."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.cells import cell_len

from evaltui.text.lines import Line, Span, cells, pad, wrap
from evaltui.text.lines import cut as cut_line
from evaltui.text.values import (
    cut,
    show_change,
    show_duration,
    show_size,
    show_value,
    visible,
    visible_block,
    visible_lines,
)
from evaltui.tui.pages.calls import inline_args
from evaltui.workbench.chat.rows import FileShown, Row, RowKind

# Longer lines are hard to read.
_MAX_WIDTH = 104
_LEAST_WHO, _MOST_WHO = 12, 18
_MOST_INDENT = 4
# Where there is less room, it goes to the arguments.
_WITH_WORDS = 56
# Enter shows all of it.
_LONGEST_TEXT = 12_000
_LONGEST_CALL = 400
_MOST_CHANGES = 8
_MOST_RESULT_LINES = 14
_MOST_THOUGHT_LINES = 3

# What takes one line whatever is in it.
ONE_LINE: frozenset[RowKind] = frozenset(
    {"result", "transfer", "error", "thinking", "footer", "note", "code"}
)


def who_width(names: Iterable[str]) -> int:
    """The cells that the longest name takes, as far as it is shown."""
    return min(_MOST_WHO, max((cell_len(visible(name)) for name in names), default=0))


def write_row(row: Row, width: int, column: int, before: Row | None, *, unfolded: bool) -> list[Line]:
    """The lines of a row; `column` is the width of the names; a name is not repeated in the next row."""
    if row.kind == "code":
        return [_code_changed(row, width)]
    width = min(width, _MAX_WIDTH + column)
    column = min(column, max(_LEAST_WHO, width // 5))
    is_same = before is not None and before.who == row.who and row.kind != "user"
    who = "" if is_same else visible(row.who)
    indent = "  " * min(_MOST_INDENT, row.depth)
    head: Line = [(f"{pad(who, column)}  ", "bold" if row.kind == "user" else "muted"), (indent, "")]
    room = max(12, width - cells(head))
    lines = list(_body(row, room, unfolded=unfolded))
    margin: Span = (" " * cells(head), "")
    written = [[*(head if number == 0 else [margin]), *line] for number, line in enumerate(lines)]
    # A message of the user begins something new; the end of a turn is as good as an empty line.
    apart = row.kind == "user" and before is not None and before.kind not in ("footer", "code")
    return [[], *written] if apart else written


def _body(row: Row, room: int, *, unfolded: bool) -> Iterator[Line]:
    match row.kind:
        case "user":
            yield from _text(row.text, "bold", room)
            yield from _files(row.files)
        case "text":
            yield from _text(row.text, "", room)
        case "thought":
            yield from _thought(row.text, room)
        case "file":
            yield from _files(row.files)
        case "call":
            yield _ended(_called(row), _outcome(row, room, unfolded=unfolded), room)
            if unfolded and row.result is not None:
                yield from _result(row.result, room)
        case "result":
            yield [
                ("← ", "muted"),
                (visible(row.text), "bold"),
                (f"  {show_value(row.result, _LONGEST_CALL)}", "muted"),
            ]
        case "request":
            yield from _request(row, room)
        case "transfer":
            yield [("↳ transfer to ", "muted"), (visible(row.text), "bold")]
        case "state":
            yield from _changes(row, room)
        case "difference":
            yield from _difference(row.text, room)
        case "error":
            yield [("! ", "error"), (_first_line(row), "error")]
        case "thinking":
            yield [("◐ thinking …", "bold accent")]
        case "footer":
            facts = [show_duration(row.duration)] if row.duration is not None else []
            facts += [f"{row.tokens:,} tokens"] if row.tokens else []
            yield _ended([], [(" · ".join(facts), "muted")], room)
        case _:
            yield [(visible(row.text), "muted")]


def _text(text: str, role: str, room: int) -> Iterator[Line]:
    if not text:
        return
    shown = visible_block(text[:_LONGEST_TEXT].rstrip("\n"))
    yield from wrap([(shown, role)], room)
    if len(text) > _LONGEST_TEXT:
        yield [(f"… {len(text) - _LONGEST_TEXT:,} more characters: enter shows them", "warning")]


def _thought(text: str, room: int) -> Iterator[Line]:
    shown = " ".join(visible_lines(text[:_LONGEST_TEXT]))
    lines = wrap([("thinks  ", "muted"), (shown, "muted")], room)
    yield from lines[:_MOST_THOUGHT_LINES]
    if len(lines) > _MOST_THOUGHT_LINES:
        yield [("…", "muted")]


def _files(files: Sequence[FileShown]) -> Iterator[Line]:
    for file in files:
        yield [(file_chip(file), "bold accent")]


def file_chip(file: FileShown) -> str:
    """`[image/png 34 KB photo.png]`"""
    size = "linked" if file.size is None else show_size(file.size)
    known = (visible(file.mime_type) or "file", size, visible(file.name))
    return f"[{' '.join(part for part in known if part)}]"


def _called(row: Row) -> Line:
    args = cut(inline_args(row.args), _LONGEST_CALL)
    return [("→ ", "muted"), (visible(row.text), "bold"), (args, "muted")]


def _request(row: Row, room: int) -> Iterator[Line]:
    """What is asked, what comes with it, and what may be typed."""
    asked = visible_block(row.text[:_LONGEST_TEXT])
    yield from wrap([("? ", "warning"), (asked, "bold")], room)
    for name, value in (row.args or {}).items():
        shown = show_value(value, _LONGEST_CALL)
        yield from wrap([(f"  {visible(name)}  ", "muted"), (shown, "")], room)
    yield from wrap([("  takes  ", "muted"), (visible(row.takes), "muted")], room)


def _outcome(row: Row, room: int, *, unfolded: bool) -> Line:
    if row.result is None:
        return [("…", "bold accent")] if row.partial else []
    took = "" if row.duration is None else f"{show_duration(row.duration)}  "
    word = " result" if room >= _WITH_WORDS else ""
    return [(f"{took}{'▾' if unfolded else '▸'}{word}", "muted")]


def _result(result: Mapping[str, object], room: int) -> Iterator[Line]:
    text = json.dumps(result, ensure_ascii=False, indent=2, default=repr)
    lines = [
        line for written in text.split("\n")[: 2 * _MOST_RESULT_LINES] for line in _hung(written, room - 2)
    ]
    for line in lines[:_MOST_RESULT_LINES]:
        yield [("  ", ""), *line]
    if len(lines) > _MOST_RESULT_LINES:
        yield [("  … enter shows all of it", "muted")]


def _hung(text: str, room: int) -> list[Line]:
    shown = visible(text[:_LONGEST_TEXT])
    indent = len(shown) - len(shown.lstrip(" "))
    lines = wrap([(shown.lstrip(" "), "")], max(8, room - indent))
    return [[(" " * indent, ""), *line] for line in lines]


def _changes(row: Row, room: int) -> Iterator[Line]:
    for change in row.changes[:_MOST_CHANGES]:
        before, after = show_change(change.expected, change.actual, max(16, room // 2))
        shown: Line = [("state  ", "muted"), (visible(change.path), ""), ("  ", "")]
        if change.expected is not None:
            shown += [(before, "muted"), (" → ", "muted")]
        yield cut_line([*shown, (after if change.actual is not None else "removed", "")], room)
    if len(row.changes) > _MOST_CHANGES:
        yield [(f"state  … {len(row.changes) - _MOST_CHANGES} more keys: enter shows them", "muted")]


def _difference(text: str, room: int) -> Iterator[Line]:
    if text:
        yield from wrap([("~ now different: ", "warning"), (visible(text), "")], room)
    else:
        yield [("= as before", "muted")]


def _first_line(row: Row) -> str:
    error = row.error
    if error is None:
        return _one_line(row.text)
    message = error.message.strip().partition("\n")[0]
    return _one_line(f"{error.type}: {message}" if message else error.type)


def _one_line(text: str) -> str:
    return visible(cut(text[: 4 * _LONGEST_CALL].replace("\t", "    "), _LONGEST_CALL))


def _code_changed(row: Row, width: int) -> Line:
    text = f"── {visible(row.text)} changed: from here on the new code "
    return [(text, "muted"), ("─" * max(0, width - cell_len(text)), "muted")]


def _ended(left: Line, right: Line, room: int) -> Line:
    """One text on the left, one at the end of the line, the left one cut where they would meet."""
    if not cells(right):
        return cut_line(left, room)
    kept = cut_line(left, max(8, room - cells(right) - 2)) if left else []
    return [*kept, (" " * max(1, room - cells(kept) - cells(right)), ""), *right]
