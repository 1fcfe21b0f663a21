"""Runs a case on a loaded agent: its conversation, its events and its recording."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from time import monotonic

from ..core.conversation.waiting import WaitingCalls, responses_in
from ..core.model.events import Event, Json, Step
from ..text.figures import counted, show_size
from .adapters.base import (
    AgentAdapter,
    AgentInput,
    AgentSession,
    Reporter,
    SessionSpec,
    addressed,
    recording,
)
from .call_recorder import CallRecorder, CaseRecording, NotRecordedError, recording_calls
from .protocol import Message, places_of

# The parent keeps the events of a case in memory; an agent in a loop would fill it.
_MOST_EVENTS = 100_000
_MOST_BYTES = 64_000_000

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
        if self._events >= _MOST_EVENTS or self._bytes >= _MOST_BYTES:
            raise TooManyEventsError(
                f"stopped after {counted(self._events, 'event')}, {show_size(self._bytes)}: endless loop?"
            )
        data = event.to_json()
        # The parent has the repeat and counts the events itself.
        del data["repeat"], data["seq"]
        data["t"] = round(monotonic() - self._t0, 6)
        self._bytes += self._send(data)
        self._events += 1


class LoadedAgent:
    """A loaded agent with its adapter."""

    def __init__(self, adapter: AgentAdapter) -> None:
        self.adapter = adapter
        self._framework = self._unrecorded = ""

    async def open(self) -> Json:
        """Opens the adapter and returns the AgentInfo as JSON. Called once, in the task that will also close
        the adapter."""
        info = asdict(await self.adapter.open()) | {
            "not_passed_on": self.adapter.input.not_passed_on,
            "python": sys.version.split()[0],
        }
        self._framework, self._unrecorded = info["framework"], info["unrecorded"]
        return info

    def reporter(self, on_event: Callable[[Event], None]) -> Reporter:
        return Reporter(on_event, sees_calls=not self._unrecorded)

    async def new_session(
        self, spec: SessionSpec, reporter: Reporter, past: Sequence[Step] = ()
    ) -> AgentSession:
        """Opens a session on the adapter. Raises ValueError for input that this kind of agent cannot take."""
        self.adapter.input.require_session(spec, past)
        return await self.adapter.new_session(spec, reporter, past)

    def waiting_calls(self) -> WaitingCalls | None:
        """A tracker of the calls that wait for a response; None for a callable, which gets each response in
        `session.content` itself."""
        return None if self._framework == "function" else WaitingCalls()

    async def run(self, request: Message, line: EventLine, on_recorded: Callable[[Json], None]) -> Message:
        """Runs the conversation of a request `run` and returns the final state.

        Raises what the agent raises, NotRecordedError, SimulatedUserError, TooManyEventsError.
        """
        simulated = request.get("simulated_user")
        turn_events: list[Event] = []
        places = places_of(request)
        # Only needed to address responses.
        waiting = self.waiting_calls() if any(map(responses_in, request.get("turns", ()))) else None

        def on_event(event: Event) -> None:
            line.send(event)
            if simulated:
                turn_events.append(event)
            if waiting is not None:
                waiting.on_event(event)

        reporter = self.reporter(on_event)
        recorder = self._call_recorder(request, on_recorded)
        with recording_calls(recorder):
            session = await self.new_session(SessionSpec(**request["session"]), reporter)
            send_turn = partial(_recorded_turn, session, self.adapter.input, reporter, recorder)
            try:
                if simulated:
                    await _simulate(simulated, reporter, turn_events, send_turn)
                else:
                    for turn, content in enumerate(request["turns"]):
                        await send_turn(turn, addressed(content, turn, waiting, places, reporter))
                return {"state": await session.state()}
            finally:
                await session.close()

    def _call_recorder(self, request: Message, on_recorded: Callable[[Json], None]) -> CallRecorder | None:
        """The recorder of a run of a case; None where calls are neither recorded nor replayed. Raises
        NotRecordedError where the agent's calls cannot be replayed."""
        if "recorded" not in request:
            return None
        recorded = CaseRecording.from_json(request["recorded"])
        if self._unrecorded and recorded.modes.stubs:
            what = f"{self._unrecorded}; evaltui cannot replay or stub them"
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


async def _recorded_turn(
    session: AgentSession,
    agent_input: AgentInput,
    reporter: Reporter,
    recorder: CallRecorder | None,
    turn: int,
    content: Json,
) -> None:
    if recorder is None:
        await run_turn(session, agent_input, reporter, turn, content)
        return
    recorder.turn = turn
    try:
        await run_turn(session, agent_input, reporter, turn, content)
    finally:
        recorder.check()


async def run_turn(
    session: AgentSession, agent_input: AgentInput, reporter: Reporter, turn: int, content: Json
) -> None:
    """Runs a turn to its end and reports the user's message and all that follows. `turn` counts from 0."""
    reporter.turn = turn
    with recording(reporter):
        reporter.event("user", content, data={"timestamp": time.time()})
        agent_input.require_message(content)
        await session.send(content)
