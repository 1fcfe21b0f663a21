"""A conversation as lines: rows, details of a row, the session, and the page before the first message."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rich.cells import cell_len

from evaltui.core.compare.turn_verdicts import answer_differs
from evaltui.core.conversation.responding import asker_of, request_of
from evaltui.core.conversation.waiting import WaitingCall
from evaltui.core.cost.cost_lines import may_cost
from evaltui.core.model.outcome import StateDiff
from evaltui.core.model.spending import Spending
from evaltui.text.figures import UNKNOWN, counted, show_duration, show_number, show_size
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, Span, cells, pad, wrap, wrap_behind
from evaltui.text.lines import cut as cut_line
from evaltui.text.markdown import markdown_lines
from evaltui.text.syntax import arguments_line, change_lines, code_lines, color_json, value_line
from evaltui.text.values import cut, visible, visible_block, visible_lines
from evaltui.tui.result.rows import write_calls, write_heads, write_text
from evaltui.tui.trace.span import write_events
from evaltui.tui.widgets.lines import plain_text
from evaltui.tui.widgets.writer import Folding, Page, write_code, write_error, write_json
from evaltui.views.rows import changed_texts, response_row
from evaltui.workbench.chat.conversation import ChatTurn, Difference, Transcript
from evaltui.workbench.chat.rows import FileShown, Row, RowKind

# Longer lines are hard to read.
_MAX_WIDTH = 104
_MIN_WHO, _MAX_WHO = 12, 18
_MAX_INDENT = 4
# Enter shows all of it.
_MAX_TEXT_LENGTH = 12_000
_MAX_CALL_LENGTH = 400
_MAX_STATE = 400
_MAX_CHANGES = 8
# Cells of a change of the state besides its key and its values.
_AROUND_CHANGE = 8
_MAX_RESULT_LINES = 14
_MAX_THOUGHT_LINES = 3

# What takes one line whatever is in it.
ONE_LINE: frozenset[RowKind] = frozenset({"result", "transfer", "thinking", "footer", "note", "code"})


def who_width(names: Iterable[str]) -> int:
    """The cells of the longest shown name."""
    return min(_MAX_WHO, max((cell_len(visible(name)) for name in names), default=0))


def write_row(row: Row, width: int, column: int, before: Row | None, *, unfolded: bool) -> list[Line]:
    """Writes a row; `column` is the width of the names; a name is not repeated in the next row."""
    if row.kind == "code":
        return [_code_changed(row, width)]
    width = min(width, _MAX_WIDTH + column)
    column = min(column, max(_MIN_WHO, width // 5))
    is_same = before is not None and before.who == row.who and row.kind != "user"
    who = "" if is_same else visible(row.who)
    indent = "  " * min(_MAX_INDENT, row.depth)
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
            yield from _lines_with_remark(lines, number, room)
            yield from _files(row.files)
        case "text":
            yield from _lines_with_remark(list(_answer_lines(row, room)), _duration_line(row), room)
        case "thought":
            yield from _thought_lines(row.text, room)
        case "file":
            yield from _files(row.files)
        case "call":
            yield _join_cut(_call_line(row), _outcome(row, unfolded=unfolded), room)
            if unfolded and row.result is not None:
                yield from _result(row.result, room)
        case "result":
            yield [
                ("← ", "muted"),
                (visible(row.text), "bold"),
                ("  ", ""),
                *value_line(row.result, _MAX_CALL_LENGTH),
            ]
        case "output":
            shown = visible_block(row.text[:_MAX_TEXT_LENGTH].rstrip("\n"))
            yield from wrap([("output  ", "muted"), (shown, "")], room)
            yield from _left_out_lines(row.text)
        case "request":
            yield from _request(row, room)
        case "transfer":
            yield [("⇄ ", "muted"), ("transfer to ", "muted"), (visible(row.text), "bold agent")]
        case "state":
            yield from _changes(row, room)
        case "difference":
            yield from _difference(row.text, room)
        case "error":
            yield from wrap_behind([("! ", "error")], [(_first_line(row), "error")], room)
            if row.error is not None and row.error.where:
                yield [("  ", ""), (_one_line(row.error.where), "underline function")]
        case "thinking":
            yield [("◐ thinking…", "bold accent")]
        case "footer":
            yield _join_cut([], _duration_line(row), room)
        case _:
            yield [(visible(row.text), "muted")]


def _duration_line(row: Row) -> Line:
    """Duration and tokens of a turn; empty while it runs."""
    facts = [show_duration(row.duration)] if row.duration is not None else []
    facts += [counted(row.tokens, "token")] if row.tokens else []
    return [("  ".join(facts), "muted")] if facts else []


def _lines_with_remark(lines: Sequence[Line], right: Line, room: int) -> Iterator[Line]:
    """Lines with a remark at the right of the first or of the last one, or else below them."""
    ends = (0, len(lines) - 1) if lines else ()
    place = next((n for n in ends if cells(lines[n]) + cells(right) + 2 <= room), None)
    for number, line in enumerate(lines):
        yield _join_cut(line, right, room) if number == place and right else line
    if place is None and right:
        yield _join_cut([], right, room)


def _text(text: str, role: str, room: int) -> Iterator[Line]:
    if not text:
        return
    shown = visible_block(text[:_MAX_TEXT_LENGTH].rstrip("\n"))
    yield from wrap([(shown, role)], room)
    yield from _left_out_lines(text)


def _answer_lines(row: Row, room: int) -> Iterator[Line]:
    """The text of an agent, as Markdown; while it is streamed, with a cursor at its end."""
    lines = markdown_lines(row.text[:_MAX_TEXT_LENGTH].rstrip("\n"), room)
    if row.partial and lines:
        lines[-1] = [*cut_line(lines[-1], room - 1), ("▋", "accent")]
    yield from lines
    yield from _left_out_lines(row.text)


def _left_out_lines(text: str) -> Iterator[Line]:
    if len(text) > _MAX_TEXT_LENGTH:
        yield [(f"… {counted(len(text) - _MAX_TEXT_LENGTH, 'more character')} (enter)", "warning")]


def _thought_lines(text: str, room: int) -> Iterator[Line]:
    shown = " ".join(visible_lines(text[:_MAX_TEXT_LENGTH]))
    lines = wrap([("thinks  ", "muted"), (shown, "muted")], room)
    yield from lines[:_MAX_THOUGHT_LINES]
    if len(lines) > _MAX_THOUGHT_LINES:
        yield [("…", "muted")]


def _files(files: Sequence[FileShown]) -> Iterator[Line]:
    for file in files:
        yield [(file_chip(file), "bold accent")]


def file_chip(file: FileShown) -> str:
    """The chip of a file: `[image/png 34 KB photo.png]`."""
    size = "linked" if file.size is None else show_size(file.size)
    parts = (visible(file.mime_type) or "file", size, visible(file.name))
    return f"[{' '.join(part for part in parts if part)}]"


def _call_line(row: Row) -> Line:
    return [("→ ", "tool"), (visible(row.text), "bold"), *arguments_line(row.args, _MAX_CALL_LENGTH)]


REQUEST_TITLES = {
    "confirmation": "Confirmation requested",
    "input": "Input requested",
    "credential": "Credential requested",
    "long-running": "Response awaited",
}


def full_line(row: Row, number: int) -> str:
    """The whole text of a line that is cut, a call or a change of the state; "" for a line that wraps."""
    line: Line = []
    if row.kind == "call" and number == 0:
        line = [("→ ", ""), (visible(row.text), ""), *arguments_line(row.args, _MAX_TEXT_LENGTH)]
    elif row.kind == "state" and number < min(len(row.changes), _MAX_CHANGES):
        change = row.changes[number]
        before, after = change_lines(change.expected, change.actual, _MAX_TEXT_LENGTH)
        line = [("Δ ", ""), (visible(change.path), ""), ("  ", ""), *before, (" → ", ""), *after]
    return plain_text(color_json(line))


def _request(row: Row, room: int) -> Iterator[Line]:
    """A request of the agent with its details, beside an amber bar."""
    lines: list[Line] = [[(REQUEST_TITLES.get(row.asks, "Requested"), "bold warning")]]
    lines += wrap([(visible_block(row.text[:_MAX_TEXT_LENGTH]), "bold")], room - 2)
    for name, data in (row.args or {}).items():
        lines += wrap([(f"{visible(name)}  ", "key"), *value_line(data, _MAX_CALL_LENGTH)], room - 2)
    for number, line in enumerate(lines):
        yield [("● " if number == 0 else "│ ", "warning"), *line]


def _outcome(row: Row, *, unfolded: bool) -> Line:
    if row.result is None:
        return [("◐", "bold accent")] if row.partial else []
    took = "" if row.duration is None else f"{show_duration(row.duration)}  "
    return [(f"{took}{'▾' if unfolded else '▸'}", "muted")]


def _result(result: Mapping[str, object], room: int) -> Iterator[Line]:
    text = json.dumps(result, ensure_ascii=False, indent=2, default=repr)
    written = code_lines(text[:_MAX_TEXT_LENGTH], "json")[: 2 * _MAX_RESULT_LINES]
    lines = [line for code_line in written for line in _wrap_code(code_line, room - 2)]
    for line in lines[:_MAX_RESULT_LINES]:
        yield [("  ", ""), *line]
    if len(lines) > _MAX_RESULT_LINES:
        yield [(f"  …   {key_of('open_details')} show all", "muted")]


def _wrap_code(line: Line, room: int) -> list[Line]:
    """A wrapped line of code; continuation lines keep its indentation."""
    first = line[0][0] if line else ""
    indent = len(first) - len(first.lstrip(" "))
    first_line, *more = wrap(line, room)
    rest = wrap([span for part in more for span in part], max(8, room - indent)) if more else []
    return [first_line, *([(" " * indent, ""), *wrapped] for wrapped in rest)]


def _changes(row: Row, room: int) -> Iterator[Line]:
    for change in row.changes[:_MAX_CHANGES]:
        # A value that is new, or that goes, has the room of both.
        sides = 1 if None in (change.expected, change.actual) else 2
        least = (room - cells([(visible(change.path), "")]) - _AROUND_CHANGE) // sides
        before, after = change_lines(change.expected, change.actual, max(16, least))
        shown: Line = [("Δ ", "warning"), (visible(change.path), "key"), ("  ", "")]
        shown += [*(before if change.expected is not None else [("—", "muted")]), (" → ", "muted")]
        yield cut_line([*shown, *(after if change.actual is not None else [("removed", "")])], room)
    if len(row.changes) > _MAX_CHANGES:
        more = counted(len(row.changes) - _MAX_CHANGES, "more key")
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
    return visible(cut(text[: 4 * _MAX_CALL_LENGTH].replace("\t", "    "), _MAX_CALL_LENGTH))


def _code_changed(row: Row, width: int) -> Line:
    text = f"── {visible(row.text)} changed: from here on the new code "
    return [(text, "muted"), ("─" * max(0, width - cell_len(text)), "muted")]


def _join_cut(left: Line, right: Line, room: int) -> Line:
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
        page.labelled("state", value_line(session.state, _MAX_STATE))
    page.blank()


_KINDS = {
    "user": "message",
    "text": "response",
    "call": "tool call",
    "result": "tool response",
    "state": "session state",
    "footer": "turn",
}
_MAX_PATHS = 60


class ChatTotals(NamedTuple):
    """The totals of a conversation so far."""

    tokens: int
    spent: Spending | None = None
    """The cost of its models, None where it is unknown yet."""


def write_inspected(
    page: Page,
    row: Row,
    turn: ChatTurn,
    transcript: Transcript,
    waiting: Sequence[WaitingCall],
    totals: ChatTotals,
) -> None:
    """Writes a row in full, then the session state with the turn of each change, waiting calls, and totals.

    `turn` is the turn of the row, which a rewind may have removed from the conversation.
    """
    name = visible(row.text) if row.kind in ("call", "result") else visible(row.who)
    took = "" if row.duration is None else show_duration(row.duration)
    kind = _KINDS.get(row.kind, row.kind)
    turn_number = "" if row.kind in ("call", "result") else f"turn {row.turn + 1}"
    where = turn_number if row.kind == "footer" else f"{kind}  {turn_number}".rstrip()
    page.ends([(name, "bold"), (f"  {where}" if name else where, "muted")], [(took, "muted")] if took else [])
    if row.kind in ("call", "result"):
        _write_call(page, row)
    elif row.kind in ("user", "text", "thought", "request", "output"):
        page.section(("Text", "bold"))
        write_code(page, row.text, "markdown", 1)
    else:
        page.blank()
        write_details(page, row, turn)
    _write_paths(page, transcript)
    _write_waiting(page, waiting)
    _write_totals(page, row, transcript, waiting, totals)
    if row.events and row.kind not in ("error", "state", "difference", "footer"):
        page.section(("Events", "bold"))
        write_events(page, row.events)


def _write_call(page: Page, row: Row) -> None:
    if row.args is not None:
        page.section(("Arguments", "bold"))
        write_json(page, row.args, 1)
    page.section(("Response", "bold"))
    if row.result is None:
        page.row((" waiting" if row.partial else " —", "muted"))
    else:
        write_json(page, row.result, 1)


def _write_paths(page: Page, transcript: Transcript) -> None:
    """Writes every value of the session state by path, with the turn that changed it last."""
    paths = dict(_paths(transcript.state))
    page.section(
        ("Session state", "bold"), *([] if paths else [_no_state_text(transcript.has_unknown_state)])
    )
    changed: dict[str, int] = {}
    before = dict(_paths(transcript.session.state))
    for number, turn in enumerate(transcript.turns, 1):
        if turn.counts and turn.state_after is not None:
            after = dict(_paths(turn.state_after))
            changed |= {
                path: number for path, value in after.items() if path not in before or before[path] != value
            }
            before = after
    room = min(24, max((len(path) for path in paths), default=0)) + 2
    for path, value in list(paths.items())[:_MAX_PATHS]:
        left: Line = [(" ", ""), (visible(path), "key"), (" " * max(2, room - len(path)), "")]
        right: Line = [(f"turn {changed[path]}", "warning")] if path in changed else []
        page.ends([*left, *value_line(value, 200)], right)
    if len(paths) > _MAX_PATHS:
        page.row((f" … {counted(len(paths) - _MAX_PATHS, 'more value')}", "muted"))


def _paths(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested objects by their paths, such as `lights.Kitchen`; lists stay whole."""
    if isinstance(value, Mapping) and (value or not path):
        for name, inner in value.items():
            yield from _paths(inner, f"{path}.{name}" if path else str(name))
    else:
        yield path, value


def _write_waiting(page: Page, waiting: Sequence[WaitingCall]) -> None:
    if waiting:
        page.section(("Waiting", "bold"))
    for call in waiting:
        kind: Span = (f"  {request_of(call).kind}", "muted")
        page.row((" ● ", "warning"), (visible(asker_of(call)), "bold"), kind)


def _write_totals(
    page: Page, row: Row, transcript: Transcript, waiting: Sequence[WaitingCall], totals: ChatTotals
) -> None:
    spent = totals.spent
    page.section(("Conversation", "bold"))
    turns = show_number(len(transcript.counted()))
    calls = sum(event.kind == "tool_call" for turn in transcript.turns for event in turn.events)
    facts = {
        "agent": visible(transcript.agent_name or ("" if row.kind == "user" else row.who)),
        "turns": f"{turns}, and {show_number(len(waiting))} waiting" if waiting else turns,
        "calls": show_number(calls),
        "tokens": show_number(totals.tokens) if totals.tokens else UNKNOWN,
        "cost": str(spent.cost) if spent is not None and may_cost(spent) else "",
        "user": visible(transcript.session.user_id),
    }
    for label, value in facts.items():
        if value:
            page.labelled(label, [(value, "")])


def write_details(page: Page, row: Row, turn: ChatTurn) -> None:
    """Writes all details of a row: the events of a call and its result, an error, a change of the state."""
    if row.kind == "difference" and turn.difference is not None:
        _write_difference(page, turn.difference, row.turn)
    elif row.kind == "footer":
        _write_turn(page, turn)
    elif row.kind == "state":
        _write_changes(page, row.changes, "before", "after")
    elif row.error is not None:
        write_error(page, row.error)
    elif row.events:
        write_events(page, row.events)
    else:
        write_code(page, row.text, "markdown")


def write_session(page: Page, transcript: Transcript) -> None:
    """Writes the current state, the changes of each turn, and the start of the conversation."""
    session = transcript.session
    for label, value in (("user", session.user_id), ("app", session.app_name), ("id", session.session_id)):
        if value:
            page.labelled(label, [(visible(value), "")])
    _write_state(page, "State now", None if transcript.has_unknown_state else transcript.state)
    for number, turn in enumerate(transcript.turns):
        changed = _changed_keys(turn.state_before or {}, turn.state_after) if turn.counts else {}
        if changed:
            page.section((f"Turn {number + 1} changed", "bold"))
        for key, (before, after) in changed.items():
            page.hanging([(f"  {visible(key)}  ", "key"), *before, (" → ", "muted"), *after], 4)
    _write_state(page, "State at the beginning", session.state)


def _no_state_text(unknown: bool) -> tuple[str, str]:
    return (f"  {UNKNOWN}" if unknown else "  empty", "muted")


def _write_state(page: Page, title: str, state: Mapping[str, object] | None) -> None:
    page.section((title, "bold"), *([] if state else [_no_state_text(state is None)]))
    if state:
        write_json(page, dict(state))


def _changed_keys(
    before: Mapping[str, object], after: Mapping[str, object] | None
) -> dict[str, tuple[Line, Line]]:
    """The keys with another value, each with both values as text."""
    if after is None:
        return {}
    keys = [
        key
        for key in {**before, **after}
        if (key in before, before.get(key)) != (key in after, after.get(key))
    ]
    return {key: (_value(before, key), _value(after, key)) for key in keys}


def _value(state: Mapping[str, object], key: str) -> Line:
    return value_line(state[key], 200) if key in state else [("—", "muted")]


def _write_changes(page: Page, changes: Sequence[StateDiff], before: str, after: str) -> None:
    for change in changes:
        page.section((visible(change.path), "bold"))
        for label, value in ((before, change.expected), (after, change.actual)):
            page.row((f"  {label}", "muted"))
            write_json(page, value, 4)


def _write_turn(page: Page, turn: ChatTurn) -> None:
    page.labelled("turn", [(str(turn.stage), "")])
    if turn.seconds is not None:
        page.labelled("took", [(show_duration(turn.seconds), "")])
    page.labelled("events", [(show_number(len(turn.events)), "")])
    _write_state(page, "State after it", turn.state_after)


def _write_difference(page: Page, difference: Difference, turn: int) -> None:
    page.text([(visible(difference.sentence or "no difference to the turn before"), "")])
    page.blank()
    write_heads(page, ("before", ""), ("now", ""))
    write_calls(page, difference.turn, turn, Folding())
    for text in changed_texts(difference.turn):
        write_text(page, text)
    op = "changed" if answer_differs(difference.turn) else ""
    if (response := response_row(difference.turn, turn, op)) is not None:
        write_text(page, response)
    _write_changes(page, difference.state, "state before", "state now")
