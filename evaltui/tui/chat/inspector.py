"""The inspector of a conversation: a row, the session state, and totals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from evaltui.core.compare.turn_verdicts import answer_differs
from evaltui.core.conversation.responding import asker_of, request_of
from evaltui.core.conversation.waiting import WaitingCall
from evaltui.core.cost.cost_lines import is_worth_telling
from evaltui.core.model.outcome import StateDiff
from evaltui.core.model.spending import Spending
from evaltui.text.figures import UNKNOWN, counted, show_duration, show_number
from evaltui.text.lines import Line, Span
from evaltui.text.syntax import value_line
from evaltui.text.values import visible
from evaltui.tui.result.rows import write_calls, write_heads, write_text
from evaltui.tui.trace.span import write_events
from evaltui.tui.widgets.writer import Folding, Page, write_code, write_error, write_json
from evaltui.views.rows import response_row
from evaltui.workbench.chat.conversation import ChatTurn, Difference, Transcript
from evaltui.workbench.chat.rows import Row

_KINDS = {
    "user": "message",
    "text": "response",
    "call": "tool call",
    "result": "tool response",
    "state": "session state",
    "footer": "turn",
}
_MOST_PATHS = 60


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
        ("Session state", "bold"), *([] if paths else [_without_state(transcript.has_unknown_state)])
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
    for path, value in list(paths.items())[:_MOST_PATHS]:
        left: Line = [(" ", ""), (visible(path), "key"), (" " * max(2, room - len(path)), "")]
        right: Line = [(f"turn {changed[path]}", "warning")] if path in changed else []
        page.ends([*left, *value_line(value, 200)], right)
    if len(paths) > _MOST_PATHS:
        page.row((f" … {counted(len(paths) - _MOST_PATHS, 'more value')}", "muted"))


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
        "cost": str(spent.cost) if spent is not None and is_worth_telling(spent) else "",
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
        changed = _changed(turn.state_before or {}, turn.state_after) if turn.counts else {}
        if changed:
            page.section((f"Turn {number + 1} changed", "bold"))
        for key, (before, after) in changed.items():
            page.hanging([(f"  {visible(key)}  ", "key"), *before, (" → ", "muted"), *after], 4)
    _write_state(page, "State at the beginning", session.state)


def _without_state(unknown: bool) -> tuple[str, str]:
    return (f"  {UNKNOWN}" if unknown else "  empty", "muted")


def _write_state(page: Page, title: str, state: Mapping[str, object] | None) -> None:
    page.section((title, "bold"), *([] if state else [_without_state(state is None)]))
    if state:
        write_json(page, dict(state))


def _changed(
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
    op = "changed" if answer_differs(difference.turn) else ""
    if (response := response_row(difference.turn, turn, op)) is not None:
        write_text(page, response)
    _write_changes(page, difference.state, "state before", "state now")
