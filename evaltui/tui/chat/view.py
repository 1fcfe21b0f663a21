"""The chat pane: the conversation with the agent, and the message field."""

from __future__ import annotations

import json
from collections.abc import Hashable
from functools import partial

from textual import events
from textual.message import Message
from textual.widget import Widget

from evaltui.core.model.events import Event
from evaltui.project.agent_source import SourcePlace, frame_place
from evaltui.text.lines import Line, Span
from evaltui.text.values import visible
from evaltui.tui.action_screen import bindings
from evaltui.tui.chat.message import ChatMessage
from evaltui.tui.chat.page import (
    ONE_LINE,
    ChatTotals,
    full_line,
    who_width,
    write_empty_chat,
    write_inspected,
    write_row,
    write_session,
)
from evaltui.tui.dialogs.details import DetailsScreen
from evaltui.tui.inspector import Inspected, InspectedPane, InspectorTab, Room
from evaltui.tui.pane import CopiedText
from evaltui.tui.widgets.block_lines import BlockLines
from evaltui.tui.widgets.writer import Page
from evaltui.workbench.actions import Scope
from evaltui.workbench.case.editors import place_of_agent, place_of_tool
from evaltui.workbench.chat.conversation import ChatTurn, Transcript
from evaltui.workbench.chat.rows import ChatRows, Row
from evaltui.workbench.chat.trace import ChatPlace, row_of
from evaltui.workbench.messages import AgentChanged, ChatProgressed, SelectionChanged
from evaltui.workbench.workbench import Workbench

# The cells at the end of a call that fold and unfold its response.
_FOLD_WIDTH = 4


class ChatView(InspectedPane, BlockLines, can_focus=True, inherit_bindings=False):
    """The chat pane. Only visible rows are written, because a conversation may have ten thousand rows of many
    lines."""

    BINDINGS = bindings(Scope.CHAT)
    SHOWS = (ChatProgressed, SelectionChanged, AgentChanged)
    INSPECTOR_ROOM = Room(from_width=140, least=42, most=42)

    class Moved(Message):
        """The user has moved to another row."""

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(workbench, id=id)
        self._chat = workbench.chat
        self._rows = ChatRows()
        self._message = ChatMessage(workbench, self, id="message")
        self._shown: Transcript | None = None
        # Of the calls: they stay what they are when their results come and their rows are replaced.
        self._unfolded: list[Event] = []
        self._names: set[str] = set()
        self._column = 0
        self._empty: list[Line] = []
        self._drawn: Hashable = None
        self._showed_cursor = True
        self._rows_seen = 0

    def below(self) -> Widget | None:
        return self._message

    @property
    def entry(self) -> Widget:
        return super().entry if self._inspector.in_place else self._message.entry

    # Around the rows

    @property
    def lines_below(self) -> int:
        return super().lines_below if self._rows.rows else 0

    @property
    def new_rows(self) -> int:
        """The number of new rows below the visible part."""
        return len(self._rows.rows) - self._rows_seen if self.lines_below else 0

    def heading(self) -> Line:
        transcript = self._chat.transcript
        if transcript is None:
            return []
        line: Line = [(visible(transcript.title), "")]
        if transcript.agent_name:
            line += [(f"   with {visible(transcript.agent_name)}", "muted")]
        if transcript.session.user_id:
            line += [(f"   user {visible(transcript.session.user_id)}", "muted")]
        return line

    def source(self) -> SourcePlace | None:
        """The source of the called tool, of an error, or of the instruction of the agent."""
        row, agent = self._current, self._workbench.agent
        if row is None or row.kind == "user":
            return None
        if row.error is not None:
            return frame_place(agent.dir, row.error.traceback)
        return place_of_tool(agent, row.text) if row.kind == "call" else place_of_agent(agent, row.who)

    def mark(self) -> Span | None:
        if self._chat.busy:
            return "◐", "bold accent"
        return ("●", "warning") if self._chat.waiting() else None

    def copied(self) -> CopiedText | None:
        """The text or data of the current row."""
        row = self._current
        if row is None:
            return None
        holds = row.result if row.result is not None else row.args
        if row.kind == "state":
            holds = {change.path: change.actual for change in row.changes}
        text = row.text if holds is None else json.dumps(holds, ensure_ascii=False, indent=2, default=repr)
        if row.error is not None:
            text = row.error.traceback or str(row.error)
        return CopiedText(f"this {row.kind}", text) if text else None

    # Following the workbench

    def follow(self) -> None:
        transcript = self._chat.transcript
        is_another = transcript is not self._shown
        if is_another:
            self._shown = transcript
            self._unfolded.clear()
            self._names.clear()
            self._column = 0
        first = self._rows.follow(transcript)
        if is_another:
            first = 0
        changed = first < len(self._rows.rows) or is_another or len(self._rows.rows) != self.block_count
        if self._widen(first):
            first = 0
        if not self._rows.rows:
            self._show_empty()
        elif changed:
            self.blocks_changed(first, len(self._rows.rows))
        if is_another:
            self.call_after_refresh(self.show_end)
        if not self.lines_below:
            self._rows_seen = len(self._rows.rows)
        self._message.take_proposal()
        self._message.follow()
        self._inspector.follow()
        if self.shows_cursor != self._showed_cursor:
            self._showed_cursor = self.shows_cursor
            self.refresh()

    def _widen(self, first: int) -> bool:
        """Widens the column of names; returns whether it has changed."""
        new = {row.who for row in self._rows.rows[first:]} - self._names
        self._names |= new
        before, self._column = self._column, max(self._column, who_width(new))
        return self._column != before

    def _show_empty(self) -> None:
        """Shows the page of a conversation without messages."""
        state = (
            self.line_width,
            self._shown,
            self._shown and self._shown.broken,
            self._chat.session.opening,
        )
        if state == self._drawn and self.block_count == 1:
            return
        self._drawn = state
        page = Page(max(20, self.line_width - 2))
        write_empty_chat(page, self._shown)
        self._empty = list(page.lines)
        self.blocks_changed(0, 1)
        self.scroll_to(y=0, animate=False, force=True)

    # Drawing

    @property
    def _current(self) -> Row | None:
        rows = self._rows.rows
        return rows[self.cursor] if self.cursor < len(rows) else None

    @property
    def shows_cursor(self) -> bool:
        # While one writes, it would only be in the way of reading.
        return not self._message.has_focus_within

    def height(self, number: int) -> int:
        rows = self._rows.rows
        if rows:
            row = rows[number]
            if row.kind in ONE_LINE or (row.kind == "call" and not self._is_unfolded(row)):
                return 1
        return super().height(number)

    def block(self, number: int) -> list[Line]:
        rows = self._rows.rows
        if not rows:
            return self._empty
        row, before = rows[number], rows[number - 1] if number else None
        return write_row(row, self.line_width - 2, self._column, before, unfolded=self._is_unfolded(row))

    def full_text(self, number: int) -> str:
        if not self._rows.rows or not any("…" in text for text, _ in self.line(number)):
            return ""
        at = self.number_at(number)
        above = sum(not line for line in self._block(at)[:1])
        return full_line(self._rows.rows[at], number - self.top_of(at) - above)

    def line(self, number: int) -> Line:
        return super().line(number) if self._rows.rows else [(" ", ""), *self._empty[number]]

    def row_role(self, number: int) -> str:
        return super().row_role(number) if self._rows.rows else ""

    def _is_unfolded(self, row: Row) -> bool:
        return bool(row.events) and row.events[0] in self._unfolded

    def on_resize(self) -> None:
        if self._rows.rows:
            super().on_resize()
        else:
            self._show_empty()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._message.follow()

    # Rows

    def on_click(self, event: events.Click) -> None:
        super().on_click(event)
        # Textual would hand the click to the class above once more.
        event.prevent_default()
        row = self._current
        line = self.scroll_offset.y + event.y
        if row is not None and row.error is not None and event.chain == 1 and line > self.top_of(self.cursor):
            self.call_later(self.screen.run_action, "open_source")
        if (
            row is not None
            and row.kind == "call"
            and event.chain == 1
            and event.x >= self.line_width - _FOLD_WIDTH
        ):
            self.action_toggle_fold()

    def action_toggle_fold(self) -> None:
        row = self._current
        if row is None or row.kind != "call" or not row.events:
            self._workbench.say("No call selected")
            return
        if row.result is None:
            self._workbench.say("No response to this call yet")
            return
        if self._is_unfolded(row):
            self._unfolded.remove(row.events[0])
        else:
            self._unfolded.append(row.events[0])
        at_end = self.cursor == self.block_count - 1
        self.blocks_changed(self.cursor, self.block_count)
        if not at_end:
            self.move_to(self.cursor)

    def move_to(self, number: int) -> None:
        super().move_to(number)
        self._inspector.follow()
        if self.has_focus:
            self.post_message(self.Moved())

    def chat_place(self) -> ChatPlace | None:
        """The place of the current row in the conversation."""
        row = self._current
        return None if row is None else ChatPlace(row.turn, row.events)

    def show_place(self, place: ChatPlace) -> None:
        """Goes to the row of a place."""
        self.follow()
        transcript = self._chat.transcript
        if transcript is None or place.turn >= len(transcript.turns):
            return
        if (at := row_of(self._rows.rows, transcript.turns[place.turn], place)) is not None:
            self.move_to(at)

    def inspected(self) -> Inspected | None:
        row, transcript = self._current, self._shown
        if row is None or transcript is None or row.turn >= len(transcript.turns):
            return None
        waiting = self._chat.waiting()
        tokens = sum(chat_row.tokens or 0 for chat_row in self._rows.rows)
        turn = transcript.turns[row.turn]
        totals = ChatTotals(tokens, self._chat.spending())
        write = partial(
            write_inspected, row=row, turn=turn, transcript=transcript, waiting=waiting, totals=totals
        )
        what = id(turn), self.cursor
        stages = tuple(turn.stage for turn in transcript.turns)
        state = id(row), stages, len(waiting), totals
        return Inspected(what, state, [InspectorTab("Row", write)])

    def action_session_state(self) -> None:
        if (transcript := self._chat.transcript) is not None:
            title: Line = [("Session", "bold"), (f" · {visible(transcript.title)}", "muted")]
            self.app.push_screen(DetailsScreen(title, partial(write_session, transcript=transcript)))

    # Going back

    def action_edit_message(self) -> None:
        turn = self._turn_of_current()
        if turn is not None:
            self._message.edit(turn)

    def action_rewind(self) -> None:
        row = self._current
        if row is not None:
            self._chat.rewind(row.turn)

    def _turn_of_current(self) -> ChatTurn | None:
        row, transcript = self._current, self._chat.transcript
        return transcript.turns[row.turn] if row is not None and transcript is not None else None

    def action_write_message(self) -> None:
        self._message.write()
