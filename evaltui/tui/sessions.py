"""The sessions that agents send, opened as runs and saved as cases; and traces imported as cases."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import ClassVar, Generic, NamedTuple, TypeVar

from textual import on
from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.widget import Widget

from evaltui.core.model.events import Event
from evaltui.core.secrets import Secrets
from evaltui.runs.sessions import Pattern, ScoredSession, pattern_in_words
from evaltui.text.figures import UNKNOWN, counted, show_moment
from evaltui.text.keys import key_of
from evaltui.text.lines import Line, join_ends, pad, wrap
from evaltui.text.outcomes import GLYPHS, glyph
from evaltui.text.values import cut, visible
from evaltui.traces.conversations import RecordedConversation
from evaltui.tui.action_screen import ask, bindings, start_work
from evaltui.tui.chat.save_case import SaveCaseScreen
from evaltui.tui.dialogs.finding import PreviewScreen, has_words
from evaltui.tui.dialogs.framed import SESSIONS, TRAJECTORIES, FramedScreen
from evaltui.tui.dialogs.prompt import Hint, PromptScreen, QuestionInput, dialog_name
from evaltui.tui.trace.page import Columns, is_named, span_line
from evaltui.tui.widgets.lines import CursorLines
from evaltui.tui.widgets.writer import Page, PageLines
from evaltui.workbench.actions import Scope
from evaltui.workbench.chat.imported import path_problem, read_conversations
from evaltui.workbench.messages import FilesChanged, SessionsReceived
from evaltui.workbench.runs.run_list import RunTarget
from evaltui.workbench.trace.sessions import NewTrajectory, transcript_of
from evaltui.workbench.trace.traces import GAP, Outline
from evaltui.workbench.workbench import Workbench

# Cells of the columns, in a line from `_WIDE_SCREEN` cells on, and in one with fewer.
_WIDE_SCREEN, _WIDE_COLUMNS, _NARROW_COLUMNS = 110, (20, 26), (12, 20)
_COUNT_WIDTH = len("500 sessions")
_MAX_MESSAGE = 400


def session_line(
    session: ScoredSession, width: int, secrets: Secrets, *, is_new: bool, outdated_by: str
) -> Line:
    """A session: `✗ talk-7  like where_is_order  find_order: order_id is "1003", expected "1002"`.

    `is_new` tells that no case has the trajectory of one of its turns, `outdated_by` what has changed since
    it was scored; "" for nothing.
    """
    name, case = _WIDE_COLUMNS if width >= _WIDE_SCREEN else _NARROW_COLUMNS
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
    return [
        *line,
        (secrets.mask_text(session.why), "" if session.result is not None and not outdated_by else "muted"),
    ]


def trajectory_line(trajectory: NewTrajectory) -> Line:
    """A trajectory: ` 12 sessions  find_order → refund`."""
    count = counted(trajectory.sessions, "session").rjust(_COUNT_WIDTH)
    return [(f"{count}  ", "muted"), (pattern_in_words(trajectory.calls), "bold")]


def write_session(page: Page, session: ScoredSession, new: Sequence[Pattern], secrets: Secrets) -> None:
    """Writes the user messages, the `new` trajectories, which no case has, and further notes."""
    for number, message in enumerate(secrets.masked(session.messages), start=1):
        page.lines += wrap(
            [(f"turn {number}  ", "muted"), (visible(cut(message, _MAX_MESSAGE)), "")], page.width
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


_NO_SESSIONS_TEXT = "No sessions yet"
_NO_TRAJECTORIES_TEXT = "Cases have all trajectories of the sessions"


Item = TypeVar("Item")


class SessionChoice(NamedTuple):
    """The result of the screen."""

    target: RunTarget | None
    """The session to open; None where a case was made of one."""


class SessionsScreen(FramedScreen[SessionChoice | None], inherit_bindings=False):
    """Starts to listen when it is opened, and goes on when it is closed. The keys of the main screen are off
    meanwhile."""

    BINDINGS = bindings(Scope.SESSIONS)
    SHOWS = (FilesChanged, SessionsReceived)
    AUTO_FOCUS = "#sessions-rows"
    tab, scope = SESSIONS, Scope.SESSIONS
    tabs = ((SESSIONS, "T", "Sessions"), (TRAJECTORIES, "n", "New trajectories"))

    def parts(self) -> Iterator[Widget]:
        yield self.rows
        yield self.trajectories
        yield PageLines(self._write, can_focus=False, id="sessions-details")

    def __init__(self, workbench: Workbench) -> None:
        super().__init__(workbench)
        received = workbench.received
        self.rows = ReceivedRows(
            lambda: received.sessions,
            lambda session: session.id,
            self._session_line,
            lambda: _NO_SESSIONS_TEXT,
            id="sessions-rows",
        )
        self.trajectories = ReceivedRows(
            lambda: received.new_trajectories,
            lambda trajectory: trajectory.calls,
            lambda trajectory, width: trajectory_line(trajectory),
            lambda: _NO_TRAJECTORIES_TEXT if received.sessions else _NO_SESSIONS_TEXT,
            id="trajectories-rows",
        )
        self.trajectories.display = False

    def on_mount(self) -> None:
        super().on_mount()
        self.workbench.received.start()
        self._read_cases()

    def _read_cases(self) -> None:
        self._listed = self.workbench.sets.listed
        start_work(self, self.workbench.received.read_cases, group="cases")

    def _session_line(self, session: ScoredSession, width: int) -> Line:
        received = self.workbench.received
        is_new = bool(received.new_patterns(session))
        outdated_by = received.outdated_by(session)
        secrets = self.workbench.agent.secrets
        return session_line(session, width, secrets, is_new=is_new, outdated_by=outdated_by)

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
        if self.rows.is_attached and self.trajectories.is_attached:
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
            return (self.rows if self.on_top == SESSIONS else self.trajectories).nothing()
        if action_id == "save_as_case":
            return None
        if session.log is None or session.case is None or session.result is None:
            save = key_of("save_as_case")
            return f"{session.problem or 'Not stored'}: no result to show   {save} save as case"
        return self.workbench.outcomes.refuses_to_open()

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
            self.dismiss(
                SessionChoice(RunTarget(session.log, title, session.case, session.result.eval_set_id))
            )

    def action_save_as_case(self) -> None:
        if (session := self.session) is None:
            return
        try:
            screen = SaveCaseScreen(self.workbench, transcript_of(session))
        except ValueError as error:
            self.workbench.say(f"Cannot save as case: {error}")
            return
        ask(self, screen, self._saved)

    def _saved(self, _: bool) -> None:
        if self.on_top == SESSIONS:
            self.dismiss(SessionChoice(None))
        else:
            # The next one may be saved as well.
            self._read_cases()


class ReceivedRows(CursorLines, Generic[Item], can_focus=True, inherit_bindings=False):
    """A list whose items change while it is open; the cursor stays with its item.

    `draw` returns the line of an item for a width, `nothing` why there is none.
    """

    def __init__(
        self,
        items: Callable[[], Sequence[Item]],
        key: Callable[[Item], object],
        draw: Callable[[Item, int], Line],
        nothing: Callable[[], str],
        *,
        id: str,
    ) -> None:
        super().__init__(id=id)
        self.nothing = nothing
        self._items = items
        self._key = key
        self._draw_item = draw
        self._at: object = None

    @property
    def current(self) -> Item | None:
        items = self._items()
        return items[self.cursor] if self.cursor < len(items) else None

    def follow(self) -> None:
        keys = [self._key(item) for item in self._items()]
        self.lines_changed(max(1, len(keys)))
        if self._at in keys:
            self.cursor = keys.index(self._at)
        self.cursor = min(self.cursor, self.line_count - 1)
        self.refresh()

    on_mount = follow

    def line(self, number: int) -> Line:
        items = self._items()
        if number >= len(items):
            return [("  ", ""), (f"{self.nothing()}   {key_of('close')} back", "muted")]
        marker = ("▌" if number == self.cursor else " ", "bold accent")
        return [marker, (" ", ""), *self._draw_item(items[number], self.line_width)]

    def move_to(self, number: int) -> None:
        super().move_to(number)
        self._at = None if (item := self.current) is None else self._key(item)


Conversations = Sequence[RecordedConversation]
_WHEN_WIDTH = 13


class ConversationScreen(PreviewScreen[Conversations, RecordedConversation]):
    """A list of conversations with a preview of the trace; returns the marked ones, else the current one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Scope.PROMPT),
        Binding("space", "form_toggle", id="form_toggle", priority=True),
    ]
    box = "#pick-conversation"
    title_text = dialog_name("import_traces")
    placeholder = "type a word of its messages"
    take_word = "import"

    def __init__(self, conversations: Conversations, secrets: Secrets) -> None:
        super().__init__()
        self._secrets = secrets
        self._conversations = conversations
        self._marked: list[RecordedConversation] = []

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one(QuestionInput).takes_space = False

    def hints(self) -> list[Hint]:
        choose, cancel = super().hints()
        return [choose, Hint("form_toggle", "mark"), cancel]

    def find(self, query: str) -> list[RecordedConversation]:
        return [
            conversation
            for conversation in self._conversations
            if has_words(query, " ".join([conversation.id, *(turn.user for turn in conversation.turns)]))
        ]

    def match_line(self, match: RecordedConversation, width: int) -> Line:
        began = datetime.fromtimestamp(match.began, UTC) if match.began else None
        when = show_moment(began, datetime.now(UTC)) if began else UNKNOWN
        message = next((turn.user for turn in match.turns if turn.user), match.id)
        errors = sum(turn.error is not None for turn in match.turns)
        left: Line = [
            ("◆ " if match in self._marked else "  ", "bold accent"),
            (f"{when:<{_WHEN_WIDTH}}", "muted"),
            (visible(" ".join(message.split())), ""),
        ]
        right: Line = [(f"{counted(errors, 'error')}  ", "error")] if errors else []
        return join_ends(left, [*right, (f"{counted(len(match.turns), 'turn')} ", "muted")], width)

    def write_preview(self, page: Page, match: RecordedConversation, height: int) -> None:
        outline = Outline()
        outline.add(Event.from_json(self._secrets.masked(event.to_json())) for event in match.events)
        columns, spans = Columns.of(outline.tree), outline.tree.spans
        page.row(("session ", "muted"), (visible(match.id), "bold"))
        page.blank()
        for row in outline.rows:
            if row == GAP:
                page.blank()
            else:
                named = is_named(spans, spans[row])
                page.lines.append(span_line(spans[row], columns, page.width, folded=False, named=named))

    def action_form_toggle(self) -> None:
        if (current := self.current) is not None:
            self._marked = [
                conversation
                for conversation in self._conversations
                if (conversation in self._marked) != (conversation is current)
            ]
            self.action_step_line(1)
            self.answers.refresh()

    def result_of(self, match: RecordedConversation) -> Conversations:
        return self._marked or [match]


def ask_for_traces(asker: DOMNode, read: Callable[[str], None]) -> None:
    """Asks for the path of a file or folder of traces or sessions."""
    hint = "File or folder: traces (OTLP, Tempo, Jaeger), sessions of ADK"
    name = dialog_name("import_traces")
    ask(asker, PromptScreen(name, check=path_problem, hint=hint, is_path=True), read)


async def choose_conversations(
    asker: DOMNode, workbench: Workbench, path: str, choose: Callable[[Conversations], None]
) -> None:
    """Reads traces, and asks which of their conversations to import."""
    workbench.say(f"Reading {visible(path)}…")
    try:
        conversations = await asyncio.to_thread(read_conversations, path)
    except (OSError, ValueError) as error:
        workbench.say(str(error))
        return
    workbench.say("")
    ask(asker, ConversationScreen(conversations, workbench.agent.secrets), choose)
