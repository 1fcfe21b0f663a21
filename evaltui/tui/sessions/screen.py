"""The sessions that agents send: a growing list, opened as runs and saved as cases."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from textual import on, work
from textual.widget import Widget

from evaltui.core.secrets import Secrets
from evaltui.runs.sessions import Pattern, ScoredSession, pattern_in_words
from evaltui.text.figures import counted
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, pad, wrap
from evaltui.text.outcomes import GLYPHS, glyph
from evaltui.text.values import cut, visible
from evaltui.tui.action_screen import bindings
from evaltui.tui.chat.save_case import SaveCaseScreen
from evaltui.tui.dialogs.framed import SESSIONS, TRAJECTORIES, FramedScreen
from evaltui.tui.widgets.lines import CursorLines
from evaltui.tui.widgets.writer import Page, PageLines
from evaltui.workbench.actions import Scope
from evaltui.workbench.messages import FilesChanged, SessionsReceived
from evaltui.workbench.runs.run_list import RunTarget
from evaltui.workbench.trace.sessions import NewTrajectory, transcript_of
from evaltui.workbench.workbench import Workbench

# Cells of the columns, in a line from `_WIDE` cells on, and in one with fewer.
_WIDE, _COLUMNS, _NARROW_COLUMNS = 110, (20, 26), (12, 20)
_COUNT = len("500 sessions")
_MOST_MESSAGE = 400


def session_line(
    session: ScoredSession, width: int, secrets: Secrets, *, is_new: bool, outdated_by: str
) -> Line:
    """A session: `✗ talk-7  like where_is_order  find_order: order_id is "1003", expected "1002"`.

    `is_new` tells that no case has the trajectory of one of its turns, `outdated_by` what has changed since
    it was scored; "" for nothing.
    """
    name, case = _COLUMNS if width >= _WIDE else _NARROW_COLUMNS
    line: Line = [
        glyph(session.status),
        (f" {pad(visible(session.id), name)}  ", "bold"),
        (f"{pad(session.case_in_words, case)}  ", "" if session.case else "warning"),
    ]
    if is_new:
        line.append(("new trajectory  ", "warning"))
    if outdated_by:
        line[0] = (GLYPHS[session.status], "muted")
        line.append((f"stale: {outdated_by}  ", "warning"))
    return [*line, (secrets.in_text(session.why), "" if session.result and not outdated_by else "muted")]


def trajectory_line(trajectory: NewTrajectory) -> Line:
    """A trajectory: ` 12 sessions  find_order → refund`."""
    count = counted(trajectory.sessions, "session").rjust(_COUNT)
    return [(f"{count}  ", "muted"), (pattern_in_words(trajectory.calls), "bold")]


def write_session(page: Page, session: ScoredSession, new: Sequence[Pattern], secrets: Secrets) -> None:
    """Writes the user messages, the `new` trajectories, which no case has, and further notes."""
    for number, message in enumerate(secrets.masked(session.messages), start=1):
        page.lines += wrap(
            [(f"turn {number}  ", "muted"), (visible(cut(message, _MOST_MESSAGE)), "")], page.width
        )
    for pattern in new:
        page.lines += wrap([("new trajectory  ", "warning"), (pattern_in_words(pattern), "bold")], page.width)
    for remark in secrets.masked([*([session.problem] if session.problem else ()), *session.remarks]):
        page.lines += wrap([("note  ", "warning"), (visible(remark), "muted")], page.width)


def write_address(page: Page, url: str, problem: str) -> None:
    """Writes the address for agents, before the first session; "" while not listening."""
    if problem:
        page.lines += wrap([(visible(problem), "warning")], page.width)
    if not url:
        key = key_of("toggle_listening")
        page.lines += wrap([("Not listening   ", "muted"), (key, "key"), (" listen", "muted")], page.width)
        return
    page.lines += [
        [("Agents send their traces here when they are started with", "muted")],
        [(f"OTEL_EXPORTER_OTLP_ENDPOINT={url}", "")],
        [("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_AND_EVENT", "")],
    ]


_NO_SESSIONS = "No sessions yet"
_NO_TRAJECTORIES = "Cases have all trajectories of the sessions"


class Left(NamedTuple):
    """The result of the screen."""

    target: RunTarget | None
    """The session to open; None where a case was made of one."""


class SessionsScreen(FramedScreen[Left | None], inherit_bindings=False):
    """Starts to listen when it is opened, and goes on when it is closed. The keys of the main screen are off
    meanwhile."""

    BINDINGS = bindings(Scope.SESSIONS)
    SHOWS = (FilesChanged, SessionsReceived)
    AUTO_FOCUS = "#sessions-rows"
    tab, scope = SESSIONS, Scope.SESSIONS
    tabs = ((SESSIONS, "T", "Sessions"), (TRAJECTORIES, "n", "New trajectories"))

    def parts(self) -> Iterator[Widget]:
        yield SessionRows(self.workbench, id="sessions-rows")
        rows = TrajectoryRows(self.workbench, id="trajectories-rows")
        rows.display = False
        yield rows
        yield PageLines(self._write, can_focus=False, id="sessions-details")

    def on_mount(self) -> None:
        super().on_mount()
        self.workbench.received.start()
        self._read_cases()

    def _read_cases(self) -> None:
        self._listed = self.workbench.sets.listed
        self._read()

    @work(group="cases", exclusive=True)
    async def _read(self) -> None:
        await self.workbench.received.read_cases()

    @property
    def rows(self) -> SessionRows:
        return self.query_one(SessionRows)

    @property
    def trajectories(self) -> TrajectoryRows:
        return self.query_one(TrajectoryRows)

    @property
    def on_top(self) -> str:
        return TRAJECTORIES if self.trajectories.display else SESSIONS

    @property
    def session(self) -> ScoredSession | None:
        """The session at the cursor; the example of a trajectory."""
        if self.on_top == SESSIONS:
            return self.rows.current
        trajectory = self.trajectories.current
        return trajectory.example if trajectory else None

    def follow(self) -> None:
        # What is read beside the screen may be there only when the rows are gone, as the program ends.
        if len(self.query(SessionRows)) and len(self.query(TrajectoryRows)):
            if self._listed is not self.workbench.sets.listed:
                self._read_cases()
            self.rows.follow()
            self.trajectories.follow()
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
        sessions = (counted(len(self.workbench.received.sessions), "session"), "muted")
        new = len(self.workbench.received.new_trajectories)
        if not new:
            return [sessions]
        notice = f"{counted(new, 'trajectory', 'trajectories')} that no case has"
        return [sessions, ("   ", ""), (notice, "warning")]

    def other_tab(self) -> None:
        self.action_toggle_trajectories()

    def _write(self, page: Page) -> None:
        received = self.workbench.received
        if (session := self.session) is not None:
            write_session(page, session, received.new_patterns(session), self.workbench.agent.secrets)
        elif not received.is_on or received.url:
            write_address(page, received.url, received.problem)

    # Actions

    def refusal(self, action_id: str) -> str | None:
        if reason := super().refusal(action_id):
            return reason
        if action_id not in ("open", "save_as_case"):
            return None
        if (session := self.session) is None:
            return self._nothing()
        if action_id == "save_as_case":
            return None
        if session.log is None or session.case is None or session.result is None:
            save = key_of("save_as_case")
            return f"{session.problem or 'Not stored'}: no result to show   {save} save as case"
        return self.workbench.outcomes.refuses_to_open()

    def action_close(self) -> None:
        self.dismiss(None)

    def action_toggle_trajectories(self) -> None:
        rows, others = self.rows, self.trajectories
        rows.display, others.display = others.display, rows.display
        (others if others.display else rows).focus()
        self.draw_around()

    async def action_toggle_listening(self) -> None:
        if self.workbench.received.is_on:
            await self.workbench.received.stop()
        else:
            self.workbench.received.start()

    @on(CursorLines.Opened)
    def action_open(self) -> None:
        session = self.session
        if self.refuse("open") or session is None or session.log is None:
            return
        if session.case is not None and session.result is not None:
            title = f"session {visible(session.id)}"
            self.dismiss(Left(RunTarget(session.log, title, session.case, session.result.eval_set_id)))

    def action_save_as_case(self) -> None:
        if (session := self.session) is None:
            return
        try:
            screen = SaveCaseScreen(self.workbench, transcript_of(session))
        except ValueError as error:
            self.workbench.say(f"Cannot save as case: {error}")
            return
        self.app.push_screen(screen, self._saved)

    def _nothing(self) -> str:
        return self.rows.nothing if self.on_top == SESSIONS else self.trajectories.nothing

    def _saved(self, saved: bool | None) -> None:
        if saved and self.on_top == SESSIONS:
            self.dismiss(Left(None))
        elif saved:
            # The next one may be saved as well.
            self._read_cases()


class _Rows(CursorLines, can_focus=True, inherit_bindings=False):
    """A list whose items change while it is open; the cursor stays with its item."""

    def __init__(self, workbench: Workbench, *, id: str) -> None:
        super().__init__(id=id)
        self.received = workbench.received
        self.agent = workbench.agent
        self._at: object = None

    @property
    @abstractmethod
    def nothing(self) -> str:
        """Why the list is empty."""

    @abstractmethod
    def keys(self) -> Sequence[object]:
        """The identities of the lines."""

    @abstractmethod
    def row(self, number: int) -> Line:
        """A line without the cursor mark."""

    def follow(self) -> None:
        keys = self.keys()
        self.lines_changed(max(1, len(keys)))
        if self._at in keys:
            self.cursor = keys.index(self._at)
        self.cursor = min(self.cursor, self.line_count - 1)
        self.refresh()

    def on_mount(self) -> None:
        self.follow()

    def line(self, number: int) -> Line:
        if number >= len(self.keys()):
            return [("  ", ""), (f"{self.nothing}   {key_of('close')} back", "muted")]
        marker = ("▌" if number == self.cursor else " ", "bold accent")
        return [marker, (" ", ""), *self.row(number)]

    def move_to(self, number: int) -> None:
        super().move_to(number)
        keys = self.keys()
        self._at = keys[self.cursor] if self.cursor < len(keys) else None


class SessionRows(_Rows, inherit_bindings=False):
    """The sessions, the newest first."""

    @property
    def nothing(self) -> str:
        return _NO_SESSIONS

    @property
    def current(self) -> ScoredSession | None:
        sessions = self.received.sessions
        return sessions[self.cursor] if self.cursor < len(sessions) else None

    def keys(self) -> Sequence[object]:
        return [session.id for session in self.received.sessions]

    def row(self, number: int) -> Line:
        session = self.received.sessions[number]
        is_new = bool(self.received.new_patterns(session))
        outdated_by = self.received.outdated_by(session)
        return session_line(
            session, self.line_width, self.agent.secrets, is_new=is_new, outdated_by=outdated_by
        )


class TrajectoryRows(_Rows, inherit_bindings=False):
    """The trajectories that no case has, the most frequent first."""

    @property
    def nothing(self) -> str:
        return _NO_TRAJECTORIES if self.received.sessions else _NO_SESSIONS

    @property
    def current(self) -> NewTrajectory | None:
        trajectories = self.received.new_trajectories
        return trajectories[self.cursor] if self.cursor < len(trajectories) else None

    def keys(self) -> Sequence[object]:
        return [trajectory.calls for trajectory in self.received.new_trajectories]

    def row(self, number: int) -> Line:
        return trajectory_line(self.received.new_trajectories[number])
