"""The agent's session of the conversation that is shown, on the code as it is now."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.events import Json
from evaltui.core.model.outcome import ErrorInfo
from evaltui.files.agent_files import AgentFiles
from evaltui.runner.errors import AgentBrokenError, HostLostError, RequestFailedError
from evaltui.workbench.agent.agent_state import AgentState
from evaltui.workbench.chat.conversation import ChatTurn, Transcript
from evaltui.workbench.messages import ChatProgressed, CodeSaved, Messages

if TYPE_CHECKING:
    from evaltui.workbench.chat.live_session import LiveSession


class CurrentSession:
    """One session at a time, opened where a transcript needs it and renewed when the agent's files change.

    `printed` is given each line that the agent prints, with the stream.
    """

    def __init__(self, agent: AgentState, printed: Callable[[str, str], None], messages: Messages) -> None:
        self.info: Json | None = None
        """What the agent or sub-agent says of itself (AgentInfo as JSON); None before it is imported."""
        self.code_changes: tuple[str, ...] = ()
        """The files that changed since the agent was imported, such as `("agent.py",)`: the next turn is the
        first that runs with them."""
        self.opening = False
        """Whether a session is being opened."""
        self._agent = agent
        self._printed = printed
        self._messages = messages
        messages.subscribe(lambda _: self.look_at_code(), CodeSaved)
        self._files = AgentFiles(agent.dir, only_env=bool(agent.address.url))
        self._live: LiveSession | None = None
        self._new_code: tuple[str, ...] = ()
        self._looking: asyncio.Task[None] | None = None
        self._following: asyncio.Task[None] | None = None

    def take_new_code(self) -> tuple[str, ...]:
        """The files that changed since this was asked last."""
        changed, self._new_code = self._new_code, ()
        return changed

    def look_at_code(self) -> None:
        """Looks whether the agent's files have changed, in a thread."""
        if self._live is not None and self._live.code is not None and self._looking is None:
            self._looking = asyncio.create_task(self._look_at_code(self._live))

    def _follow_code(self) -> None:
        """Looks at the code from now on whenever a file in the agent's folders changes."""
        if self._following is None:
            self._following = asyncio.create_task(self._follow_files())

    async def _follow_files(self) -> None:
        from evaltui.files.watching import Changed, WatchedFiles

        async def on_change(_: Changed) -> None:
            self.look_at_code()

        # Where the system cannot watch the folders, the next turn tells of new code.
        with suppress(OSError):
            is_remote = bool(self._agent.address.url)
            files = WatchedFiles(self._agent.dir, only_env=is_remote)
            await files.follow(on_change, self.look_at_code)

    async def _look_at_code(self, live: LiveSession) -> None:
        code = live.code
        try:
            now = await asyncio.to_thread(self._files.contents)
        finally:
            self._looking = None
        # Meanwhile the agent may have been imported again.
        if code is not None and live is self._live and code is live.code:
            self._set_code_changes(live.changed_files(now))

    def _set_code_changes(self, changes: tuple[str, ...]) -> None:
        if changes != self.code_changes:
            self.code_changes = changes
            self._messages.publish(ChatProgressed())

    async def close(self) -> None:
        """Ends the agent's process."""
        if tasks := [task for task in (self._looking, self._following) if task is not None]:
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
        """A session at the end of `past`, on the code as it is now. Raises as `LiveSession.open`."""
        await asyncio.to_thread(importlib.import_module, "evaltui.workbench.chat.live_session")
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
        from evaltui.workbench.chat.live_session import LiveSession

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
    """What a session or a turn of it failed with."""
    if isinstance(error, AgentBrokenError | RequestFailedError | HostLostError):
        return error.error
    return ErrorInfo(type(error).__name__, str(error), kind=ErrorKind.AGENT)
