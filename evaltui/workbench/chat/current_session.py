"""The agent's session for the shown conversation, on the current code."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from evaltui.agents.errors import AgentBrokenError, HostLostError, RequestFailedError
from evaltui.core.conversation.replay import past_of_turns
from evaltui.core.conversation.waiting import CallPlace, places_of_events
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.events import Event, Json
from evaltui.core.model.outcome import ErrorInfo
from evaltui.project.agent_address import AgentAddress
from evaltui.project.agent_files import AgentFiles, Contents, changed_files, used_files
from evaltui.project.watching import Changed, WatchedFiles
from evaltui.runner.conversation import Conversation
from evaltui.runner.starting import HostSettings, StartedHost
from evaltui.workbench.agent.agent_state import AgentState
from evaltui.workbench.chat.conversation import ChatTurn, Transcript
from evaltui.workbench.messages import ChatProgressed, CodeSaved, Messages


class LiveSession:
    """A session in a host. Where it differs from the transcript, another session is opened.

    `start` returns a new host. `code` are the contents of the agent's files when its host was started; None
    before that.
    """

    def __init__(
        self,
        agent: AgentAddress,
        timeout: float,
        files: AgentFiles,
        on_console: Callable[[str, str], None],
        start: Callable[[HostSettings], StartedHost],
    ) -> None:
        self._start = start
        self.agent = agent
        self._timeout = timeout
        self.code: Contents | None = None
        self._files = files
        self._on_console = on_console
        self._conversation: Conversation | None = None
        self._held: tuple[Transcript, list[ChatTurn]] | None = None

    @property
    def info(self) -> Json | None:
        return self._conversation.info if self._conversation else None

    async def renew(self) -> tuple[str, ...]:
        """Imports the agent again if its files have changed; returns the changed files."""
        now = await asyncio.to_thread(self._files.contents)
        changed = self.changed_files(now)
        self.code = now
        if changed:
            await self.close()
        return changed

    def changed_files(self, now: Contents) -> tuple[str, ...]:
        """The files that others than the agent have changed since it was imported."""
        if self.code is None:
            return ()
        own = self._conversation.opened.written if self._conversation else ()
        written = used_files(self.agent.code, own)
        return tuple(name for name in changed_files(self.code, now) if name not in written)

    def holds(self, transcript: Transcript, past: Sequence[ChatTurn]) -> bool:
        """Whether the session is at the end of `past`."""
        return self._held == (transcript, [*past])

    async def open(self, transcript: Transcript, past: Sequence[ChatTurn]) -> Json | None:
        """Opens another session, at the end of `past`; returns the state there, None where it is unknown.

        Raises AgentBrokenError, RequestFailedError, HostLostError, and ValueError for an invalid past.
        """
        self._held = None
        if self._conversation is None:
            settings = HostSettings(self.agent, self._timeout)
            self._conversation = Conversation(settings, self._on_console, self._start)
        steps = await asyncio.to_thread(past_of_turns, [turn.events for turn in past])
        try:
            state = await self._conversation.open(transcript.session.to_json(), steps)
        except AgentBrokenError:
            await self.close()
            raise
        self._held = transcript, [*past]
        return state

    async def say(
        self,
        transcript: Transcript,
        past: Sequence[ChatTurn],
        turn: ChatTurn,
        on_event: Callable[[Event], None],
    ) -> Json | None:
        """Runs a turn in a session that is open at the end of `past`; returns the state after it, None where
        it is unknown.

        Raises RequestFailedError, HostLostError.
        """
        assert self._conversation is not None
        self._held = None
        say = partial(self._conversation.say, len(past), turn.content, on_event, _places(transcript))
        try:
            state = await say()
        except HostLostError:
            if turn.events:
                raise
            # It died between turns: this one has not begun, and is not to blame.
            await self.open(transcript, past)
            self._held = None
            state = await say()
        self._held = transcript, [*past, turn]
        return state

    async def kill(self) -> None:
        """Ends the host by force."""
        if self._conversation is not None:
            await self._conversation.kill()

    async def close(self) -> None:
        """End the host."""
        self._held = None
        if self._conversation is None:
            return
        ended, self._conversation = self._conversation, None
        closing = asyncio.create_task(ended.close())
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            # Nobody knows of the process any more: it must not be left behind.
            await closing
            raise


def _places(transcript: Transcript) -> dict[str, CallPlace]:
    """The places of the calls to which a repeated message responds."""
    before = [turn.repeats.events for turn in transcript.turns if turn.repeats and turn.repeats.counts]
    return {**transcript.places, **places_of_events(before)}


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
        self._live: LiveSession | None = None
        self._new_code: tuple[str, ...] = ()
        self._checking: asyncio.Task[None] | None = None
        self._following: asyncio.Task[None] | None = None

    def take_new_code(self) -> tuple[str, ...]:
        """The files that changed since the last call."""
        changed, self._new_code = self._new_code, ()
        return changed

    def check_code(self) -> None:
        """Checks in a thread whether the agent's files have changed."""
        if self._live is not None and self._live.code is not None and self._checking is None:
            self._checking = asyncio.create_task(self._check_code(self._live))

    def _follow_code(self) -> None:
        """Checks the code again whenever a file in the agent's folders changes."""
        if self._following is None:
            self._following = asyncio.create_task(self._follow_files())

    async def _follow_files(self) -> None:

        async def on_change(_: Changed) -> None:
            self.check_code()

        # Where the system cannot watch the folders, the next turn tells of new code.
        with suppress(OSError):
            is_remote = bool(self._agent.address.url)
            files = WatchedFiles(self._agent.dir, only_env=is_remote)
            await files.follow(on_change, self.check_code)

    async def _check_code(self, live: LiveSession) -> None:
        code = live.code
        try:
            now = await asyncio.to_thread(self._files.contents)
        finally:
            self._checking = None
        # Meanwhile the agent may have been imported again.
        if code is not None and live is self._live and code is live.code:
            self._set_code_changes(live.changed_files(now))

    def _set_code_changes(self, changes: tuple[str, ...]) -> None:
        if changes != self.code_changes:
            self.code_changes = changes
            self._messages.publish(ChatProgressed())

    async def close(self) -> None:
        """Ends the agent's process."""
        if tasks := [task for task in (self._checking, self._following) if task is not None]:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        if self._live is not None:
            await self._live.close()

    async def kill(self) -> None:
        """Ends the agent's process by force; the next turn starts another one."""
        if self._live is not None:
            await self._live.kill()

    async def ready(self, transcript: Transcript, past: Sequence[ChatTurn]) -> LiveSession:
        """Returns a session at the end of `past`, on the current code. Raises the errors of
        `LiveSession.open`."""
        await asyncio.to_thread(importlib.import_module, "evaltui.workbench.chat.current_session")
        live = await self._live_session(transcript.agent_name)
        self._follow_code()
        if changed := await live.renew():
            self._new_code = tuple(sorted({*self._new_code, *changed}))
        self.code_changes = ()
        if not live.holds(transcript, past):
            self.opening = True
            self._messages.publish(ChatProgressed())
            try:
                await self._open(live, transcript, past)
            finally:
                self.opening = False
        return live

    async def _open(self, live: LiveSession, transcript: Transcript, past: Sequence[ChatTurn]) -> None:
        try:
            state = await live.open(transcript, past)
        except AgentBrokenError as broken:
            if transcript.agent_name is None:
                self._agent.failed(broken.error)
            raise
        transcript.broken = None
        self.info = live.info
        transcript.has_unknown_state = state is None
        if transcript.agent_name is None and live.info is not None:
            self._agent.imported(live.info)
        if not past:
            transcript.opened_state = state
        elif past[-1].source == "recorded":
            past[-1].state_after = state

    async def _live_session(self, agent_name: str | None) -> LiveSession:
        address = self._agent.address
        agent = replace(address, name=agent_name or address.name)
        if self._live is not None and self._live.agent != agent:
            ended, self._live = self._live, None
            await ended.close()
        if self._live is None:
            start, timeout = self._agent.warm_hosts.start, self._agent.settings.timeout
            self._live = LiveSession(agent, timeout, self._files, self._printed, start)
        return self._live


def info_of(error: Exception) -> ErrorInfo:
    """The error of a failed session or turn."""
    if isinstance(error, AgentBrokenError | RequestFailedError | HostLostError):
        return error.error
    return ErrorInfo(type(error).__name__, str(error), kind=ErrorKind.AGENT)
