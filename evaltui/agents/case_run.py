"""Runs a case on a loaded agent: its conversation, its events and its recording."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from time import monotonic

from ..core.conversation.waiting import CallPlace, NotWaitingError, WaitingCalls
from ..core.model.events import Event, Json, Step
from ..text.figures import counted, show_size
from .adapters.base import (
    AgentAdapter,
    AgentInfo,
    AgentInput,
    AgentSession,
    Reporter,
    SessionSpec,
    recording,
)
from .call_recorder import (
    CallRecorder,
    CaseRecording,
    NotRecordedError,
    current_call_recorder,
    recording_calls,
)
from .protocol import Message, places_of
from .threads import carry_contexts

# The parent keeps the events of a case in memory; an agent in a loop would fill it.
_MAX_EVENTS = 100_000
_MAX_BYTES = 64_000_000

SendEvent = Callable[[Json], int]
"""Takes an event as JSON data, and returns how many bytes went out."""


class TooManyEventsError(RuntimeError):
    """A case or turn has more events than the limit."""


class EventLine:
    """Sends events as JSON, for each request up to a limit. `t0` is the `time.monotonic()` that their times
    count from."""

    def __init__(self, t0: float, send: SendEvent) -> None:
        self._t0 = t0
        self.restart(send)

    def restart(self, send: SendEvent) -> None:
        """Starts counting anew for another request, whose events go to `send`."""
        self._send = send
        self._events = 0
        self._bytes = 0

    def send(self, event: Event) -> None:
        """Sends an event. Raises TooManyEventsError."""
        if self._events >= _MAX_EVENTS or self._bytes >= _MAX_BYTES:
            raise TooManyEventsError(
                f"stopped after {counted(self._events, 'event')}, {show_size(self._bytes)}: endless loop?"
            )
        data = event.to_json()
        # The parent has the repeat and counts the events itself.
        del data["repeat"], data["seq"]
        data["t"] = round(monotonic() - self._t0, 6)
        self._bytes += self._send(data)
        self._events += 1


class Conversation:
    """An open conversation with an agent."""

    def __init__(self, agent: LoadedAgent, line: EventLine, on_event: Callable[[Event], None]) -> None:
        self.line = line
        self.reporter = Reporter(self._on_event, sees_calls=not agent.info.unrecorded)
        self.session: AgentSession
        self._agent_input = agent.adapter.input
        self._listener = on_event
        # A callable gets each response in `session.content` itself.
        self._waiting = None if agent.info.framework == "function" else WaitingCalls()

    def _on_event(self, event: Event) -> None:
        self.line.send(event)
        self._listener(event)
        if self._waiting is not None:
            self._waiting.on_event(event)

    async def open(self, adapter: AgentAdapter, spec: SessionSpec, past: Sequence[Step]) -> None:
        """Opens the session. Raises ValueError for input that this kind of agent cannot take."""
        if self._waiting is not None:
            self._waiting.on_past(past)
        self._agent_input.require_session(spec, past)
        self.session = await adapter.new_session(spec, self.reporter, past)

    async def send(self, places: Mapping[str, CallPlace], turn: int, content: Json) -> None:
        """Runs a turn, counted from 0; `places` are those of the calls that its responses name."""
        if self._waiting is not None:
            try:
                content = self._waiting.resolved(content, turn, places)
            except NotWaitingError:
                self.reporter.turn = turn
                self.reporter.event("user", content, data={"timestamp": time.time()})
                raise
        await run_turn(self.session, self._agent_input, self.reporter, turn, content)


class LoadedAgent:
    """A loaded agent with its adapter."""

    def __init__(self, adapter: AgentAdapter) -> None:
        self.adapter = adapter
        self.info: AgentInfo

    async def open(self) -> Json:
        """Opens the adapter and returns the AgentInfo as JSON. Called once, in the task that will also close
        the adapter."""
        carry_contexts()
        self.info = await self.adapter.open()
        return asdict(self.info) | {
            "not_passed_on": self.adapter.input.not_passed_on,
            "python": sys.version.split()[0],
        }

    async def open_conversation(
        self,
        session: Json,
        line: EventLine,
        past: Sequence[Step] = (),
        on_event: Callable[[Event], None] = lambda event: None,
    ) -> Conversation:
        """Opens a conversation. Raises ValueError for input that this kind of agent cannot take."""
        conversation = Conversation(self, line, on_event)
        await conversation.open(self.adapter, SessionSpec(**session), past)
        return conversation

    async def run(self, request: Message, line: EventLine, on_recorded: Callable[[Json], None]) -> Message:
        """Runs the conversation of a request `run` and returns the final state.

        Raises what the agent raises, NotRecordedError, SimulatedUserError, TooManyEventsError.
        """
        simulated = request.get("simulated_user")
        turn_events: list[Event] = []
        with recording_calls(self._call_recorder(request, on_recorded)):
            conversation = await self.open_conversation(
                request["session"], line, on_event=turn_events.append if simulated else lambda event: None
            )
            send_turn = partial(conversation.send, places_of(request))
            try:
                if simulated:
                    await _simulate(simulated, conversation.reporter, turn_events, send_turn)
                else:
                    for turn, content in enumerate(request["turns"]):
                        await send_turn(turn, content)
                return {"state": await conversation.session.state()}
            finally:
                await conversation.session.close()

    def _call_recorder(self, request: Message, on_recorded: Callable[[Json], None]) -> CallRecorder | None:
        """The recorder of a run of a case; None where calls are neither recorded nor replayed. Raises
        NotRecordedError where the agent's calls cannot be replayed."""
        if "recorded" not in request:
            return None
        recorded = CaseRecording.from_json(request["recorded"])
        if self.info.unrecorded and recorded.modes.stubs:
            what = f"{self.info.unrecorded}; evaltui cannot replay or stub them"
            raise NotRecordedError(f"{what}. Run it with --record off and --tools live")
        return CallRecorder(recorded, on_recorded)


async def _simulate(
    simulated_user: Json,
    reporter: Reporter,
    turn_events: list[Event],
    send_turn: Callable[[int, Json], Awaitable[None]],
) -> None:
    # Few cases have a simulated user.
    from ..core.played_users import PlayedUser
    from .simulating import Simulation

    user = PlayedUser.from_json(simulated_user["user"])
    folder = simulated_user["agent_folder"]
    await Simulation(
        user, reporter, turn_events, send_turn, None if folder is None else Path(folder)
    ).converse()


async def run_turn(
    session: AgentSession, agent_input: AgentInput, reporter: Reporter, turn: int, content: Json
) -> None:
    """Runs a turn to its end and reports the user's message and all that follows. `turn` counts from 0."""
    recorder = current_call_recorder.get()
    if recorder is not None:
        recorder.turn = turn
    reporter.turn = turn
    try:
        with recording(reporter):
            reporter.event("user", content, data={"timestamp": time.time()})
            agent_input.require_message(content)
            await session.send(content)
    finally:
        if recorder is not None:
            recorder.check()
