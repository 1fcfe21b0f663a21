"""A conversation as lines: its rows, and the page before the first message."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from rich.cells import cell_len

from evaltui.text.figures import counted, show_duration, show_size
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, Span, cells, pad, wrap
from evaltui.text.lines import cut as cut_line
from evaltui.text.markdown import markdown
from evaltui.text.syntax import arguments_line, change_lines, code, colored, value_line
from evaltui.text.values import cut, visible, visible_block, visible_lines
from evaltui.tui.widgets.writer import Page, write_error
from evaltui.workbench.chat.conversation import Transcript
from evaltui.workbench.chat.rows import FileShown, Row, RowKind

# Longer lines are hard to read.
_MAX_WIDTH = 104
_LEAST_WHO, _MOST_WHO = 12, 18
_MOST_INDENT = 4
# Enter shows all of it.
_LONGEST_TEXT = 12_000
_LONGEST_CALL = 400
_MOST_STATE = 400
_MOST_CHANGES = 8
_MOST_RESULT_LINES = 14
_MOST_THOUGHT_LINES = 3

# What takes one line whatever is in it.
ONE_LINE: frozenset[RowKind] = frozenset({"result", "transfer", "thinking", "footer", "note", "code"})


def who_width(names: Iterable[str]) -> int:
    """The cells of the longest shown name."""
    return min(_MOST_WHO, max((cell_len(visible(name)) for name in names), default=0))


def write_row(row: Row, width: int, column: int, before: Row | None, *, unfolded: bool) -> list[Line]:
    """Writes a row; `column` is the width of the names; a name is not repeated in the next row."""
    if row.kind == "code":
        return [_code_changed(row, width)]
    width = min(width, _MAX_WIDTH + column)
    column = min(column, max(_LEAST_WHO, width // 5))
    is_same = before is not None and before.who == row.who and row.kind != "user"
    who = "" if is_same else visible(row.who)
    indent = "  " * min(_MOST_INDENT, row.depth)
    head: Line = [(f"{pad(who, column)}  ", "bold" if row.kind == "user" else "bold agent"), (indent, "")]
    room = max(12, width - cells(head))
    lines = list(_body(row, room, unfolded=unfolded))
    margin: Span = (" " * cells(head), "")
    written = [[*(head if number == 0 else [margin]), *line] for number, line in enumerate(lines)]
    # A message of the user begins something new.
    apart = row.kind == "user" and before is not None and before.kind != "code"
    return [[], *written] if apart else written


def _body(row: Row, room: int, *, unfolded: bool) -> Iterator[Line]:
    match row.kind:
        case "user":
            number: Line = [(f"turn {row.turn + 1}", "muted")]
            lines = list(_text(row.text, "bold", room - cells(number) - 2)) or [[]]
            yield from _beside(lines, number, room)
            yield from _files(row.files)
        case "text":
            yield from _beside(list(_answer(row, room)), _took(row), room)
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
                ("  ", ""),
                *value_line(row.result, _LONGEST_CALL),
            ]
        case "output":
            shown = visible_block(row.text[:_LONGEST_TEXT].rstrip("\n"))
            yield from wrap([("output  ", "muted"), (shown, "")], room)
            yield from _left_out(row.text)
        case "request":
            yield from _request(row, room)
        case "transfer":
            yield [("⇄ ", "muted"), ("transfer to ", "muted"), (visible(row.text), "bold agent")]
        case "state":
            yield from _changes(row, room)
        case "difference":
            yield from _difference(row.text, room)
        case "error":
            yield [("! ", "error"), (_first_line(row), "error")]
            if row.error is not None and row.error.where:
                yield [("  ", ""), (_one_line(row.error.where), "underline function")]
        case "thinking":
            yield [("◐ thinking…", "bold accent")]
        case "footer":
            yield _ended([], _took(row), room)
        case _:
            yield [(visible(row.text), "muted")]


def _took(row: Row) -> Line:
    """Duration and tokens of a turn; empty while it runs."""
    facts = [show_duration(row.duration)] if row.duration is not None else []
    facts += [counted(row.tokens, "token")] if row.tokens else []
    return [("  ".join(facts), "muted")] if facts else []


def _beside(lines: Sequence[Line], right: Line, room: int) -> Iterator[Line]:
    """Lines with a remark at the right of the first or of the last one, or else below them."""
    ends = (0, len(lines) - 1) if lines else ()
    place = next((n for n in ends if cells(lines[n]) + cells(right) + 2 <= room), None)
    for number, line in enumerate(lines):
        yield _ended(line, right, room) if number == place and right else line
    if place is None and right:
        yield _ended([], right, room)


def _text(text: str, role: str, room: int) -> Iterator[Line]:
    if not text:
        return
    shown = visible_block(text[:_LONGEST_TEXT].rstrip("\n"))
    yield from wrap([(shown, role)], room)
    yield from _left_out(text)


def _answer(row: Row, room: int) -> Iterator[Line]:
    """The text of an agent, as Markdown; while it is streamed, with a cursor at its end."""
    lines = markdown(row.text[:_LONGEST_TEXT].rstrip("\n"), room)
    if row.partial and lines:
        lines[-1] = [*cut_line(lines[-1], room - 1), ("▋", "accent")]
    yield from lines
    yield from _left_out(row.text)


def _left_out(text: str) -> Iterator[Line]:
    if len(text) > _LONGEST_TEXT:
        yield [(f"… {counted(len(text) - _LONGEST_TEXT, 'more character')} (enter)", "warning")]


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
    """The chip of a file: `[image/png 34 KB photo.png]`."""
    size = "linked" if file.size is None else show_size(file.size)
    parts = (visible(file.mime_type) or "file", size, visible(file.name))
    return f"[{' '.join(part for part in parts if part)}]"


def _called(row: Row) -> Line:
    return [("→ ", "tool"), (visible(row.text), "bold"), *arguments_line(row.args, _LONGEST_CALL)]


REQUESTED = {
    "confirmation": "Confirmation requested",
    "input": "Input requested",
    "credential": "Credential requested",
    "long-running": "Response awaited",
}


def full_line(row: Row, number: int) -> str:
    """The whole text of a line that is cut, a call or a change of the state; "" for a line that wraps."""
    line: Line = []
    if row.kind == "call" and number == 0:
        line = [("→ ", ""), (visible(row.text), ""), *arguments_line(row.args, _LONGEST_TEXT)]
    elif row.kind == "state" and number < min(len(row.changes), _MOST_CHANGES):
        change = row.changes[number]
        before, after = change_lines(change.expected, change.actual, _LONGEST_TEXT)
        line = [("Δ ", ""), (visible(change.path), ""), ("  ", ""), *before, (" → ", ""), *after]
    return "".join(text for text, _ in colored(line))


def _request(row: Row, room: int) -> Iterator[Line]:
    """A request of the agent with its details, beside an amber bar."""
    lines: list[Line] = [[(REQUESTED.get(row.asks, "Requested"), "bold warning")]]
    lines += wrap([(visible_block(row.text[:_LONGEST_TEXT]), "bold")], room - 2)
    for name, data in (row.args or {}).items():
        lines += wrap([(f"{visible(name)}  ", "key"), *value_line(data, _LONGEST_CALL)], room - 2)
    for number, line in enumerate(lines):
        yield [("● " if number == 0 else "│ ", "warning"), *line]


def _outcome(row: Row, room: int, *, unfolded: bool) -> Line:
    if row.result is None:
        return [("◐", "bold accent")] if row.partial else []
    took = "" if row.duration is None else f"{show_duration(row.duration)}  "
    return [(f"{took}{'▾' if unfolded else '▸'}", "muted")]


def _result(result: Mapping[str, object], room: int) -> Iterator[Line]:
    text = json.dumps(result, ensure_ascii=False, indent=2, default=repr)
    written = code(text[:_LONGEST_TEXT], "json")[: 2 * _MOST_RESULT_LINES]
    lines = [line for code_line in written for line in _wrap_code(code_line, room - 2)]
    for line in lines[:_MOST_RESULT_LINES]:
        yield [("  ", ""), *line]
    if len(lines) > _MOST_RESULT_LINES:
        yield [(f"  …   {key_of('open_details')} show all", "muted")]


def _wrap_code(line: Line, room: int) -> list[Line]:
    """A wrapped line of code; continuation lines keep its indentation."""
    first = line[0][0] if line else ""
    indent = len(first) - len(first.lstrip(" "))
    first_line, *more = wrap(line, room)
    rest = wrap([span for part in more for span in part], max(8, room - indent)) if more else []
    return [first_line, *([(" " * indent, ""), *wrapped] for wrapped in rest)]


def _changes(row: Row, room: int) -> Iterator[Line]:
    for change in row.changes[:_MOST_CHANGES]:
        before, after = change_lines(change.expected, change.actual, max(16, room // 2))
        shown: Line = [("Δ ", "warning"), (visible(change.path), "key"), ("  ", "")]
        shown += [*(before if change.expected is not None else [("—", "muted")]), (" → ", "muted")]
        yield cut_line([*shown, *(after if change.actual is not None else [("removed", "")])], room)
    if len(row.changes) > _MOST_CHANGES:
        more = counted(len(row.changes) - _MOST_CHANGES, "more key")
        yield [(f"Δ … {more}   {key_of('open_details')} show", "muted")]


def _difference(text: str, room: int) -> Iterator[Line]:
    if text:
        yield from wrap([("≠ now different: ", "warning"), (visible(text), "")], room)
    else:
        yield [("= as before", "muted")]


def _first_line(row: Row) -> str:
    error = row.error
    if error is None:
        return _one_line(row.text)
    message = error.message.strip().partition("\n")[0]
    return _one_line(replace(error, message=message).text)


def _one_line(text: str) -> str:
    return visible(cut(text[: 4 * _LONGEST_CALL].replace("\t", "    "), _LONGEST_CALL))


def _code_changed(row: Row, width: int) -> Line:
    text = f"── {visible(row.text)} changed: from here on the new code "
    return [(text, "muted"), ("─" * max(0, width - cell_len(text)), "muted")]


def _ended(left: Line, right: Line, room: int) -> Line:
    """A left and a right text in one line; the left one is cut where they would meet."""
    if not cells(right):
        return cut_line(left, room)
    shown = cut_line(left, max(8, room - cells(right) - 2)) if left else []
    return [*shown, (" " * max(1, room - cells(shown) - cells(right)), ""), *right]


def write_empty_chat(page: Page, transcript: Transcript | None) -> None:
    """Writes the start of a conversation: its settings, the possible actions, and why the agent cannot be
    used."""
    if transcript is not None and transcript.broken is not None:
        page.text([("Cannot load agent", "bold")])
        page.blank()
        write_error(page, transcript.broken)
        page.blank()
        page.text([("The next message tries again on the current code.", "muted")])
        return
    if transcript is not None and transcript.loading:
        page.text([(f"Loading {visible(transcript.title)}…", "muted")])
        return
    page.text([("No messages yet", "bold")])
    page.blank()
    page.text([(f"Write a message below   {key_of('send')} send", "")])
    page.blank()
    if transcript is not None:
        _write_start(page, transcript)
    for key, what in (
        ("ctrl+n", "start with a state, a user or a sub-agent"),
        ("ctrl+t", "save the chat as a case"),
        ("c", "on a case: chat from its selected turn"),
    ):
        page.labelled(key, [(what, "muted")], "bold")


def _write_start(page: Page, transcript: Transcript) -> None:
    """Writes the settings of the conversation."""
    session = transcript.session
    chosen = {"agent": transcript.agent_name or "", "user": session.user_id, "app": session.app_name}
    for label, value in chosen.items():
        if value:
            page.labelled(label, [(visible(value), "")])
    if session.state:
        page.labelled("state", value_line(session.state, _MOST_STATE))
    page.blank()
