"""The conversation as plain data, and the session of the agent that it is held in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Literal

from evaltui.agents.errors import AgentBrokenError, HostLostError, RequestFailedError
from evaltui.agents.protocol import FilesOpened
from evaltui.core.conversation.replay import past_of_turns
from evaltui.core.conversation.waiting import (
    CallPlace,
    WaitingCall,
    places_of_events,
    responses_in,
    waiting_calls,
)
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.events import Event, Json, describe_response, message_text
from evaltui.core.model.outcome import ErrorInfo, StateDiff, TurnResult
from evaltui.project.agent_files import AgentFiles, Contents, changed_files, used_files
from evaltui.project.watching import Changed
from evaltui.runner.conversation import Conversation
from evaltui.runner.starting import HostSettings
from evaltui.workbench.agent.agent_state import AgentState
from evaltui.workbench.messages import ChatProgressed, CodeSaved, Messages


class TurnStage(StrEnum):
    """The stage of a turn. `WAITING` is not sent yet: it follows turns that are sent first, or that failed or
    were cancelled."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class SessionStart:
    """The session at the start of a conversation. Empty names mean the agent's defaults."""

    app_name: str = ""
    user_id: str = ""
    session_id: str = ""
    state: Json = field(default_factory=dict)
    """The initial session state."""

    def to_json(self) -> Json:
        return {
            "app_name": self.app_name,
            "user_id": self.user_id,
            "session_id": self.session_id,
            "state": self.state,
        }


@dataclass(frozen=True)
class Difference:
    """The difference between a turn and the turn that it repeats, which is the expected side."""

    sentence: str
    """The difference in short; "" for none."""
    turn: TurnResult
    state: tuple[StateDiff, ...] = ()


@dataclass(eq=False)
class ChatTurn:
    """A message of the user (a genai Content as JSON) and the agent's turn.

    A turn counts when it is done: the next turn starts at its end. A turn that failed or was cancelled stays
    visible, and the next one starts before it. A `recorded` turn was not sent in this conversation: its
    events are those of a run or of a case, without a model or tool.
    """

    content: Json
    """The user's message."""
    source: Literal["said", "recorded"] = "said"
    stage: TurnStage = TurnStage.WAITING
    events: list[Event] = field(default_factory=list)
    """The events; the user's message comes first."""
    state_before: Json | None = None
    """The session state before the turn; None where it is not known."""
    state_after: Json | None = None
    """The session state after the turn; None where it is not known."""
    error: ErrorInfo | None = None
    """Why the turn failed."""
    began: float | None = None
    """Time of the request to the agent, as `time.monotonic()`."""
    spent: float | None = None
    """Duration in seconds, once it is over."""
    new_code: tuple[str, ...] = ()
    """The files that changed since the turn before: this turn is the first to run with them."""
    repeats: ChatTurn | None = None
    """The turn that this one repeats after a change of the code."""
    difference: Difference | None = None
    """The difference from that turn, once this one is done."""

    @property
    def counts(self) -> bool:
        return self.stage is TurnStage.DONE

    @property
    def seconds(self) -> float | None:
        """Duration in seconds, up to now while it runs; None where it is unknown."""
        if self.spent is not None or self.began is None:
            return self.spent
        return time.monotonic() - self.began

    @property
    def text(self) -> str:
        """The text of the user's message, without files and responses."""
        return message_text(self.content)

    @property
    def shown(self) -> str:
        """The text of the user's message and its responses, without files."""
        return shown_text(self.content)


@dataclass(eq=False)
class Transcript:
    """A conversation: its start, and its turns in order."""

    title: str
    """`new conversation`, or the name of the case that it continues."""
    session: SessionStart = field(default_factory=SessionStart)
    agent_name: str | None = None
    """The sub-agent that answers; None for the agent itself."""
    turns: list[ChatTurn] = field(default_factory=list)
    opened_state: Json | None = None
    """The session state before the first turn, once there is one."""
    asks: str = ""
    """Id of the call whose response is being typed; "" for none."""
    has_unknown_state: bool = False
    """Whether the agent does not report its session state."""
    proposal: Json | None = None
    """The proposed next message."""
    broken: ErrorInfo | None = None
    """Why the agent could not be used at the last attempt."""
    loading: bool = False
    """Whether the turns before are still being read: another transcript replaces this one then."""
    places: Mapping[str, CallPlace] = field(default_factory=dict)
    """The places of the calls that messages from a case or run respond to."""
    _waiting: tuple[list[ChatTurn], list[WaitingCall]] = field(default=([], []), repr=False)

    def waiting(self, before: int | None = None) -> list[WaitingCall]:
        """The calls that wait for a response at the end, or before the turn at an index."""
        turns = self.counted(before)
        if turns != self._waiting[0]:
            self._waiting = turns, waiting_calls([turn.events for turn in turns])
        return self._waiting[1]

    @property
    def next_waiting(self) -> ChatTurn | None:
        """The first queued turn."""
        return next((turn for turn in self.turns if turn.stage is TurnStage.WAITING), None)

    def counted(self, before: int | None = None) -> list[ChatTurn]:
        """The turns that count; only those before an index, if there is one."""
        return [turn for turn in self.turns[:before] if turn.counts]

    @property
    def state(self) -> Json:
        """The current session state, as far as it is known."""
        return self.state_before(len(self.turns))

    def state_before(self, index: int) -> Json:
        """The session state at the start of the turn at this index."""
        states = [turn.state_after for turn in self.counted(index) if turn.state_after is not None]
        if states:
            return states[-1]
        return self.session.state if self.opened_state is None else self.opened_state

    def given_before(self, index: int) -> Json:
        """The initial state of a case that starts at the turn at this index: what was given and what turns
        have changed. Defaults stay in the agent's code, which the case tests, and may be keys."""
        return state_after(
            self.session.state, [event for turn in self.counted(index) for event in turn.events]
        )


def state_after(state: Json, events: Sequence[Event]) -> Json:
    """The session state after the events; changes inside a tool are in the result of its call."""
    now = dict(state)
    for event in events:
        if event.kind == "state" and not event.data.get("nested"):
            now.update(event.data.get("delta") or {})
            for key in event.data.get("removed") or ():
                now.pop(key, None)
    return now


def shown_text(content: Json) -> str:
    """The texts and responses of a genai Content as JSON, one per line; without files."""
    return "\n".join(filter(None, [message_text(content), *map(describe_response, responses_in(content))]))


class CurrentSession:
    """The one open session: opened for a transcript and renewed when the agent's files change.

    `printed` is called with each line that the agent prints, and the stream.
    """

    def __init__(self, agent: AgentState, printed: Callable[[str, str], None], messages: Messages) -> None:
        self.info: Json | None = None
        """The metadata of the agent or sub-agent (AgentInfo as JSON); None before it is imported."""
        self.code_changes: tuple[str, ...] = ()
        """The files that changed since the agent was imported, such as `("agent.py",)`: the next turn is the
        first to run with them."""
        self.opening = False
        """Whether a session is being opened."""
        self._agent = agent
        self._printed = printed
        self._messages = messages
        messages.subscribe(lambda _: self.check_code(), CodeSaved)
        self._files = AgentFiles(agent.dir, only_env=bool(agent.address.url))
        # The agent or sub-agent of the conversation, the contents of its files when it was imported, and the
        # transcript and turns at whose end the session is.
        self._address = agent.address
        self._conversation: Conversation | None = None
        self._code: Contents | None = None
        # What its process has read outside of its folder.
        self._read: dict[str, Path] = {}
        # What its process has written, as far as the agent's state knows it.
        self._written = frozenset[Path]()
        self._held: tuple[Transcript, list[ChatTurn]] | None = None
        self._new_code: tuple[str, ...] = ()
        self._checking: asyncio.Task[None] | None = None
        self._following: asyncio.Task[None] | None = None

    # The code

    def take_new_code(self) -> tuple[str, ...]:
        """The files that changed since the last call."""
        changed, self._new_code = self._new_code, ()
        return changed

    def check_code(self) -> None:
        """Checks in a thread whether the agent's files have changed."""
        if self._code is not None and self._checking is None:
            self._checking = asyncio.create_task(self._check_code(self._code))

    async def _check_code(self, code: Contents) -> None:
        try:
            now = await asyncio.to_thread(self._contents)
        finally:
            self._checking = None
        # Meanwhile the agent may have been imported again.
        if code is self._code and (changes := self._changed_files(now)) != self.code_changes:
            self.code_changes = changes
            self._messages.publish(ChatProgressed())

    def _contents(self) -> Contents:
        """In a thread."""
        return self._files.contents([*self._read.values()])

    async def _note_read(self) -> None:
        """Compares the files that the process has read elsewhere in the project from now on, too."""
        if self._conversation is None or self._code is None:
            return
        read = used_files(self._address.code, self._conversation.opened.read)
        new = {name: path for name, path in read.items() if name not in self._code}
        self._read |= new
        if new:
            self._code = {**self._code, **await asyncio.to_thread(self._files.read, new)}

    def _note_written(self) -> None:
        """Makes the files that the process has written data of the agent, as those of a run."""
        if self._conversation is not None:
            new = self._conversation.opened.written - self._written
            self._written |= new
            self._agent.opened(FilesOpened(written=new), time.time())

    def _changed_files(self, now: Contents) -> tuple[str, ...]:
        """The files that others than the agent have changed since it was imported."""
        if self._code is None:
            return ()
        own = self._conversation.opened.written if self._conversation else ()
        written = used_files(self._address.code, own)
        return tuple(name for name in changed_files(self._code, now) if name not in written)

    async def _follow_files(self) -> None:
        """Checks the code again whenever a file in the agent's folders changes."""

        async def on_change(_: Changed) -> None:
            self.check_code()

        # Where the system cannot watch the folders, the next turn tells of new code.
        with suppress(OSError):
            await self._agent.watched_files().follow(on_change, self.check_code)

    # The session

    async def ready(self, transcript: Transcript, past: Sequence[ChatTurn]) -> None:
        """Opens a session at the end of `past`, on the current code, unless it is there.

        Raises AgentBrokenError, RequestFailedError, HostLostError, and ValueError for an invalid past.
        """
        address = self._agent.address
        address = replace(address, name=transcript.agent_name or address.name)
        if address != self._address:
            await self._end()
            self._address, self._code = address, None
        if self._following is None:
            self._following = asyncio.create_task(self._follow_files())
        now = await asyncio.to_thread(self._contents)
        changed, self._code = self._changed_files(now), now
        if changed:
            await self._end()
            self._new_code = tuple(sorted({*self._new_code, *changed}))
        self.code_changes = ()
        if self._held != (transcript, [*past]):
            self.opening = True
            self._messages.publish(ChatProgressed())
            try:
                await self._open(transcript, past)
            finally:
                self.opening = False

    async def _open(self, transcript: Transcript, past: Sequence[ChatTurn]) -> None:
        self._held = None
        if self._conversation is None:
            settings = HostSettings(self._address, self._agent.settings.timeout)
            self._conversation = Conversation(settings, self._printed, self._agent.warm_hosts.start)
        steps = await asyncio.to_thread(past_of_turns, [turn.events for turn in past])
        try:
            state = await self._conversation.open(transcript.session.to_json(), steps)
        except AgentBrokenError as broken:
            await self._end()
            if transcript.agent_name is None:
                self._agent.failed(broken.error)
            raise
        self._held = transcript, [*past]
        transcript.broken = None
        self.info = self._conversation.info
        transcript.has_unknown_state = state is None
        if transcript.agent_name is None and self.info is not None:
            self._agent.imported(self.info)
        if not past:
            transcript.opened_state = state
        elif past[-1].source == "recorded":
            past[-1].state_after = state

    async def say(
        self,
        transcript: Transcript,
        past: Sequence[ChatTurn],
        turn: ChatTurn,
        on_event: Callable[[Event], None],
    ) -> Json | None:
        """Runs a turn in a session that is ready at the end of `past`; returns the state after it, None where
        it is unknown.

        Raises RequestFailedError, HostLostError.
        """
        assert self._conversation is not None
        self._held = None
        repeated = [turn.repeats.events for turn in transcript.turns if turn.repeats and turn.repeats.counts]
        # The places of the calls to which a repeated message responds.
        places = {**transcript.places, **places_of_events(repeated)}
        say = partial(self._conversation.say, len(past), turn.content, on_event, places)
        try:
            state = await say()
        except HostLostError:
            if turn.events:
                raise
            # It died between turns: this one has not begun, and is not to blame.
            await self._open(transcript, past)
            self._held = None
            state = await say()
        finally:
            self._note_written()
        self._held = transcript, [*past, turn]
        await self._note_read()
        return state

    async def kill(self) -> None:
        """Ends the agent's process by force; the next turn starts another one."""
        if self._conversation is not None:
            await self._conversation.kill()

    async def close(self) -> None:
        """Ends the agent's process."""
        if tasks := [task for task in (self._checking, self._following) if task is not None]:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        await self._end()

    async def _end(self) -> None:
        self._held = None
        if self._conversation is None:
            return
        ended, self._conversation = self._conversation, None
        self._written = frozenset()
        closing = asyncio.create_task(ended.close())
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            # Nobody knows of the process any more: it must not be left behind.
            await closing
            raise


def info_of(error: Exception) -> ErrorInfo:
    """The error of a failed session or turn."""
    if isinstance(error, AgentBrokenError | RequestFailedError | HostLostError):
        return error.error
    return ErrorInfo(type(error).__name__, str(error), kind=ErrorKind.AGENT)
