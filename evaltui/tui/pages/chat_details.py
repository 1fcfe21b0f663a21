"""The details of a row of a conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaltui.core.model.outcome import StateDiff
from evaltui.text.lines import Line
from evaltui.text.values import show_duration, show_value, visible, visible_lines
from evaltui.tui.pages.calls import MARGIN, write_call
from evaltui.tui.pages.case_result import write_answers
from evaltui.tui.pages.trace_details import write_event
from evaltui.tui.pages.writer import SIDE_BY_SIDE, Page, write_error, write_json
from evaltui.workbench.chat.conversation import ChatTurn, Difference, Transcript
from evaltui.workbench.chat.rows import Row

_TITLES = {
    "user": "what you said",
    "text": "what it said",
    "thought": "what it thought",
    "footer": "the turn",
}


def details_title(row: Row) -> Line:
    title: Line = [(_TITLES.get(row.kind, row.kind).capitalize(), "bold"), (f" · turn {row.turn + 1}", "")]
    return [*title, (f" · {visible(row.who)}", "muted")] if row.who and row.kind != "user" else title


def write_details(page: Page, row: Row, turn: ChatTurn) -> None:
    """For the page of details; several events one below the other, as of a call and its result."""
    if row.kind == "difference" and turn.difference is not None:
        _write_difference(page, turn.difference, row.turn)
    elif row.kind == "footer":
        _write_turn(page, turn)
    elif row.kind == "state":
        _write_changes(page, row.changes, "before", "after")
    elif row.error is not None:
        write_error(page, row.error)
    elif row.events:
        for number, event in enumerate(row.events):
            if number:
                page.blank()
                page.row((event.kind.replace("_", " ").capitalize(), "bold"))
            write_event(page, event)
    else:
        for line in visible_lines(row.text):
            page.block([(line, "")], 2)


def write_session(page: Page, transcript: Transcript) -> None:
    """The state now, what each turn changed of it, and where the conversation began."""
    session = transcript.session
    for label, value in (("user", session.user_id), ("app", session.app_name), ("id", session.session_id)):
        if value:
            page.labelled(label, [(visible(value), "")])
    _write_state(page, "State now", transcript.state)
    for number, turn in enumerate(transcript.turns):
        changed = _changed(turn.state_before or {}, turn.state_after) if turn.counts else {}
        if changed:
            page.blank()
            page.row((f"Turn {number + 1} changed", "bold"))
        for key, (before, after) in changed.items():
            page.hanging([(f"  {visible(key)}  ", ""), (before, "muted"), (" → ", "muted"), (after, "")], 4)
    _write_state(page, "State at the beginning", session.state)


def _write_state(page: Page, title: str, state: Mapping[str, object]) -> None:
    page.blank()
    page.row((title, "bold"), *([] if state else [("  empty", "muted")]))
    if state:
        write_json(page, dict(state))


def _changed(before: Mapping[str, object], after: Mapping[str, object] | None) -> dict[str, tuple[str, str]]:
    """The keys with another value, each with both values as they are shown."""
    if after is None:
        return {}
    keys = [
        key
        for key in {**before, **after}
        if (key in before, before.get(key)) != (key in after, after.get(key))
    ]
    return {key: (_value(before, key), _value(after, key)) for key in keys}


def _value(state: Mapping[str, object], key: str) -> str:
    return show_value(state[key], 200) if key in state else "nothing"


def _write_changes(page: Page, changes: Sequence[StateDiff], before: str, after: str) -> None:
    for change in changes:
        page.blank()
        page.row((visible(change.path), "bold"))
        for label, value in ((before, change.expected), (after, change.actual)):
            page.row((f"  {label}", "muted"))
            write_json(page, value, 4)


def _write_turn(page: Page, turn: ChatTurn) -> None:
    page.labelled("turn", [(str(turn.stage), "")])
    if turn.seconds is not None:
        page.labelled("took", [(show_duration(turn.seconds), "")])
    page.labelled("events", [(f"{len(turn.events):,}", "")])
    _write_state(page, "State after it", turn.state_after or {})


def _write_difference(page: Page, difference: Difference, turn: int) -> None:
    page.text([(visible(difference.sentence or "it did the same as before"), "")])
    page.blank()
    if difference.turn.calls and page.width >= SIDE_BY_SIDE:
        page.columns([("before", "muted")], [("now", "muted")], [(" " * MARGIN, "")])
    for number, diff in enumerate(difference.turn.calls):
        write_call(page, diff, turn, number, checked=True)
    write_answers(page, difference.turn, turn)
    _write_changes(page, difference.state, "state before", "state now")
