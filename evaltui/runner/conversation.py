"""A conversation with an agent, turn by turn, in a host of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from evaltui.agents.errors import AgentBrokenError, RequestFailedError
from evaltui.agents.protocol import FilesOpened, decode_event, places_to_json
from evaltui.core.conversation.model_failures import unanswered_failure
from evaltui.core.conversation.waiting import CallPlace
from evaltui.core.model.events import Event, Json, Step
from evaltui.runner.starting import HostSettings, RunningHost, StartedHost, start_host


class Conversation:
    """A conversation with an agent, one turn at a time."""

    def __init__(
        self,
        settings: HostSettings,
        on_console: Callable[[str, str], None],
        start: Callable[[HostSettings], StartedHost] = start_host,
    ) -> None:
        """`settings.timeout` is that of each turn, in seconds. `on_console` gets ("stdout" or "stderr", line)
        for all that the agent prints, also between turns. `start` starts its hosts."""
        self.info: Json | None = None
        """The AgentInfo as JSON; None until the agent is imported."""
        self._start = start
        self._settings = settings
        self._on_console = on_console
        self._started: StartedHost | None = None
        self._chat: int | None = None
        self._events = 0

    @property
    def opened(self) -> FilesOpened:
        """The user's own files that its host has opened."""
        return self._started.host.opened if self._started else FilesOpened()

    async def open(self, session: Json, past: Sequence[Step] = ()) -> Json | None:
        """Start anew at the end of `past`, whose turns are not run again; returns the session state there,
        None where it is unknown.

        Imports the agent first where its host is not there or has died. `session` may have `app_name`,
        `user_id`, `session_id` and `state`, the state before `past`. May be called again at any time but
        during a turn: the conversation so far is then over. Raises AgentBrokenError where the agent cannot be
        imported, RequestFailedError where the session cannot be made, HostLostError.
        """
        host = await self._loaded_host()
        if self._chat is not None:
            ended, self._chat = self._chat, None
            await host.request({"op": "end", "chat": ended}, self._settings.timeout)
        steps = [step.to_json() for step in past]
        message = {"op": "chat", "session": session, "past": steps}
        answer = await host.request(message, self._settings.timeout)
        self._chat = answer["id"]
        state: Json | None = answer["state"]
        return state

    async def say(
        self,
        turn: int,
        content: Json,
        on_event: Callable[[Event], None],
        places: Mapping[str, CallPlace] | None = None,
    ) -> Json | None:
        """One turn through to its end, `turn` counting from 0; returns the session state after it, None where
        it is unknown.

        Responses in `content` go to the calls that wait now; `places` says where the calls that they name by
        id were made, if that was in another conversation (see `WaitingCalls.resolved`).

        `on_event` gets everything that happens, the user's message first; `seq` counts through all turns.
        Raises RequestFailedError for what the agent raises, for a model that failed without a response after
        it, and for a turn that takes too long; HostLostError.
        Cancelling the task cancels the turn. After either, what the session holds is not known: `open` it
        again at the end of the turns that count. RuntimeError where no session is open.
        """
        if self._started is None or self._chat is None:
            raise RuntimeError("no open conversation")

        events: list[Event] = []

        def on_text(text: str) -> None:
            self._events += 1
            events.append(Event.from_json({**decode_event(text), "seq": self._events}))
            on_event(events[-1])

        message: Json = {"op": "say", "chat": self._chat, "turn": turn, "content": content}
        if places:
            message["places"] = places_to_json(places)
        answer = await self._started.host.request(message, self._settings.timeout, on_text)
        if (failure := unanswered_failure(events)) is not None:
            raise RequestFailedError(failure)
        state: Json | None = answer["state"]
        return state

    async def close(self) -> None:
        """End the host, and with it the conversation; `open` begins again."""
        started, self._started, self._chat = self._started, None, None
        if started is not None:
            await started.end()

    async def kill(self) -> None:
        """Ends the host by force, without the agent closing what it has opened."""
        if self._started is not None:
            await self._started.host.kill()

    async def _loaded_host(self) -> RunningHost:
        if self._started is not None and not self._started.host.alive:
            # What it started may have outlived it.
            await self.close()
        if self._started is None:
            self._started = self._start(self._settings)
            self._started.host.listen(self._on_console)
        try:
            # Cancelling whoever waits for the import does not end it: the next one finds it further on.
            self.info = await asyncio.shield(self._started.loading)
        except AgentBrokenError:
            await self.close()
            raise
        return self._started.host
