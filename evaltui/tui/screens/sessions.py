"""Sessions that agents send: a list that grows as they complete, opened as runs and saved as cases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from textual import on
from textual.widget import Widget

from evaltui.runs.sessions import ScoredSession
from evaltui.text.figures import counted
from evaltui.text.keys import key_of
from evaltui.text.lines import Line
from evaltui.text.values import visible
from evaltui.tui.action_screen import bindings
from evaltui.tui.pages.sessions import session_line, write_address, write_session
from evaltui.tui.pages.writer import Page
from evaltui.tui.screens.framed import SESSIONS, FramedScreen
from evaltui.tui.screens.runs import Wanted
from evaltui.tui.widgets.lines import CursorLines, PageLines
from evaltui.workbench.actions import Scope
from evaltui.workbench.sessions import transcript_of
from evaltui.workbench.workbench import Workbench


class Left(NamedTuple):
    """Why the list was left."""

    wanted: Wanted | None
    """The session to be shown; None for the case that was made of one."""


class SessionsScreen(FramedScreen[Left | None], inherit_bindings=False):
    """Listens when it is opened. No key of the main screen works until it is left; listening goes on."""

    BINDINGS = bindings(Scope.SESSIONS)
    AUTO_FOCUS = "#sessions-rows"
    tab, scope = SESSIONS, Scope.SESSIONS
    tabs = ((SESSIONS, "T", "Sessions"),)

    def parts(self) -> Iterator[Widget]:
        yield SessionRows(self.workbench, id="sessions-rows")
        yield PageLines(self._write, can_focus=False, id="sessions-details")

    def on_mount(self) -> None:
        super().on_mount()
        self.workbench.received.start()
        self.workbench.subscribe(self.follow)

    def on_unmount(self) -> None:
        self.workbench.unsubscribe(self.follow)

    @property
    def rows(self) -> SessionRows:
        return self.query_one(SessionRows)

    def follow(self) -> None:
        if self.is_mounted:
            self.rows.follow()
            self.draw_around()

    @on(CursorLines.Moved)
    def draw_around(self) -> None:
        self.query_one("#sessions-details", PageLines).write_page()
        self.draw_frame()

    def where(self) -> Line:
        received = self.workbench.received
        state = f"listening on {received.url}" if received.url else "not listening"
        return [(state, "" if received.url else "warning"), ("   ", ""), *self._count()]

    def _count(self) -> Line:
        return [(counted(len(self.workbench.received.sessions), "session"), "muted")]

    def other_tab(self) -> None:
        """There is one tab."""

    def _write(self, page: Page) -> None:
        received = self.workbench.received
        if (session := self.rows.current) is not None:
            write_session(page, session)
        elif received.url or received.problem:
            write_address(page, received.url, received.problem)

    # Actions

    def action_close_sessions(self) -> None:
        self.dismiss(None)

    async def action_toggle_listening(self) -> None:
        if self.workbench.received.is_on:
            await self.workbench.received.stop()
        else:
            self.workbench.received.start()

    @on(CursorLines.Opened)
    def action_open_session(self) -> None:
        session = self.rows.current
        if session is None:
            self.workbench.say("No sessions yet")
        elif session.log is None or session.case is None or session.result is None:
            save = key_of("session_to_case")
            self.workbench.say(f"{session.problem or 'Not stored'}: no result to show   {save} save as case")
        elif reason := self.workbench.outcomes.refuses_to_open():
            self.workbench.say(reason)
        else:
            title = f"session {visible(session.id)}"
            self.dismiss(Left(Wanted(session.log, title, session.case, session.result.eval_set_id)))

    def action_session_to_case(self) -> None:
        from evaltui.tui.screens.save_case import SaveCaseScreen

        session = self.rows.current
        if session is None:
            self.workbench.say("No sessions yet")
            return
        try:
            screen = SaveCaseScreen(self.workbench, transcript_of(session))
        except ValueError as error:
            self.workbench.say(f"Cannot save as case: {error}")
            return
        self.app.push_screen(screen, lambda saved: saved and self.dismiss(Left(None)))


class SessionRows(CursorLines, can_focus=True, inherit_bindings=False):
    """A line per session, the newest first; the cursor stays with its session."""

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(id=id)
        self._workbench = workbench
        self._at = ""

    @property
    def current(self) -> ScoredSession | None:
        sessions = self._workbench.received.sessions
        return sessions[self.cursor] if self.cursor < len(sessions) else None

    def follow(self) -> None:
        ids = [one.id for one in self._workbench.received.sessions]
        self.lines_changed(max(1, len(ids)))
        if self._at in ids:
            self.cursor = ids.index(self._at)
        self.cursor = min(self.cursor, self.line_count - 1)
        self.refresh()

    def on_mount(self) -> None:
        self.follow()

    def line(self, number: int) -> Line:
        sessions = self._workbench.received.sessions
        if not sessions:
            return [("  ", ""), (f"No sessions yet   {key_of('close_sessions')} back", "muted")]
        marker = ("▌" if number == self.cursor else " ", "bold accent")
        return [marker, (" ", ""), *session_line(sessions[number], self.line_width)]

    def move_to(self, number: int) -> None:
        super().move_to(number)
        current = self.current
        self._at = current.id if current else ""
