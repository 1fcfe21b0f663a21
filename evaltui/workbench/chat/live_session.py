"""The agent's side of a conversation. Importing this loads the models: do it in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from evaltui.core.conversation.replay import past_of_turns
from evaltui.core.conversation.waiting import CallPlace, places_of_events
from evaltui.core.model.events import Event, Json
from evaltui.files.agent_address import AgentAddress
from evaltui.files.agent_files import AgentFiles, Contents, changed_files, used_files
from evaltui.runner.errors import AgentBrokenError, HostLostError
from evaltui.runner.parent.conversation import Conversation
from evaltui.runner.parent.starting import HostSettings, StartedHost
from evaltui.workbench.chat.conversation import ChatTurn, Transcript


class LiveSession:
    """A session in a host. Wherever it does not hold what a transcript says, another one is opened.

    `start` is where hosts come from. `code` is what the agent's files held when its host was started, None
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
        """The files that have changed since the agent was imported; with them, it is imported again."""
        now = await asyncio.to_thread(self._files.contents)
        changed = self.changed_files(now)
        self.code = now
        if changed:
            await self.close()
        return changed

    def changed_files(self, now: Contents) -> tuple[str, ...]:
        """The files that somebody else than the agent has changed since it was imported."""
        if self.code is None:
            return ()
        own = self._conversation.opened.written if self._conversation else ()
        written = used_files(self.agent.code, own)
        return tuple(name for name in changed_files(self.code, now) if name not in written)

    def holds(self, transcript: Transcript, past: Sequence[ChatTurn]) -> bool:
        """Whether the session is at the end of `past`."""
        return self._held == (transcript, [*past])

    async def open(self, transcript: Transcript, past: Sequence[ChatTurn]) -> Json | None:
        """Have another session, at the end of `past`; returns the state there, None where it is unknown.

        Raises AgentBrokenError, RequestFailedError, HostLostError, and ValueError for a past that cannot be.
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
        """One turn in a session that is open at the end of `past`; the state after it, None where it is
        unknown.

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
    """Where the calls were made that a message responds to which is sent again."""
    before = [turn.repeats.events for turn in transcript.turns if turn.repeats and turn.repeats.counts]
    return {**transcript.places, **places_of_events(before)}
