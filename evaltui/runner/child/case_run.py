"""An agent that is loaded, and a run of a case on it: the conversation, what is told of it, its recording."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from time import monotonic

from ...core.conversation.waiting import WaitingCalls, responses_in
from ...core.model.events import Event, Json, Step
from ...text.figures import counted, show_size
from ..call_recorder import CallRecorder, CaseRecording, NotRecordedError, recording_calls
from ..protocol import Message, places_of
from .adapters.base import (
    AgentAdapter,
    AgentInput,
    AgentSession,
    Reporter,
    SessionSpec,
    addressed,
    recording,
)

# The parent keeps the events of a case in memory; an agent in a loop would fill it.
_MOST_EVENTS = 100_000
_MOST_BYTES = 64_000_000

SendEvent = Callable[[Json], int]
"""Takes an event as JSON data, and returns how many bytes went out."""


class TooManyEventsError(RuntimeError):
    """A case or turn went on for longer than anyone could look at."""


class EventLine:
    """Hands events on, those of each request up to a limit. `t0` is the `time.monotonic()` that their times
    count from."""

    def __init__(self, t0: float, send: SendEvent) -> None:
        self._t0 = t0
        self.begin(send)

    def begin(self, send: SendEvent) -> None:
        """Another request begins, of which `send` takes the events."""
        self._send = send
        self._events = 0
        self._bytes = 0

    def send(self, event: Event) -> None:
        """Raises TooManyEventsError."""
        if self._events >= _MOST_EVENTS or self._bytes >= _MOST_BYTES:
            raise TooManyEventsError(
                f"stopped after {counted(self._events, 'event')}, {show_size(self._bytes)}: endless loop?"
            )
        data = event.to_json()
        # Which case it is and in what order the parent knows.
        del data["repeat"], data["seq"]
        data["t"] = round(monotonic() - self._t0, 6)
        self._bytes += self._send(data)
        self._events += 1


class LoadedAgent:
    """An agent that is there, with its adapter."""

    def __init__(self, adapter: AgentAdapter) -> None:
        self.adapter = adapter
        self._framework = self._unrecorded = ""

    async def open(self) -> Json:
        """The AgentInfo as JSON. Called once, in the task that will also close the adapter."""
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
        """As of the adapter. Raises ValueError for input that this kind of agent cannot get."""
        self.adapter.input.require_session(spec, past)
        return await self.adapter.new_session(spec, reporter, past)

    def waiting_calls(self) -> WaitingCalls | None:
        """None where it is not known which calls wait: a callable gets each response in `session.content`."""
        return None if self._framework == "function" else WaitingCalls()

    async def run(self, request: Message, line: EventLine, on_recorded: Callable[[Json], None]) -> Message:
        """Run what a request `run` asks for; the final state.

        Raises what the agent raises, NotRecordedError, SimulatedUserError, TooManyEventsError.
        """
        simulated = request.get("simulated_user")
        heard: list[Event] = []
        places = places_of(request)
        # Only a response has to know which calls wait.
        waiting = self.waiting_calls() if any(map(responses_in, request.get("turns", ()))) else None

        def on_event(event: Event) -> None:
            line.send(event)
            if simulated:
                heard.append(event)
            if waiting is not None:
                waiting.on_event(event)

        reporter = self.reporter(on_event)
        recorder = self._call_recorder(request, on_recorded)
        with recording_calls(recorder):
            session = await self.new_session(SessionSpec(**request["session"]), reporter)
            say = partial(_recorded_turn, session, self.adapter.input, reporter, recorder)
            try:
                if simulated:
                    await _simulate(simulated, reporter, heard, say)
                else:
                    for turn, content in enumerate(request["turns"]):
                        await say(turn, addressed(content, turn, waiting, places, reporter))
                return {"state": await session.state()}
            finally:
                await session.close()

    def _call_recorder(self, request: Message, on_recorded: Callable[[Json], None]) -> CallRecorder | None:
        """The recording that a run of a case goes by. Raises NotRecordedError where there can be none."""
        if "recorded" not in request:
            return None
        recorded = CaseRecording.from_json(request["recorded"])
        if self._unrecorded and recorded.modes.stubs:
            what = f"{self._unrecorded}; evaltui cannot replay or stub them"
            raise NotRecordedError(f"{what}. Run it with --record off and --tools live")
        return CallRecorder(recorded, on_recorded)


async def _simulate(
    given: Json, reporter: Reporter, heard: list[Event], say: Callable[[int, Json], Awaitable[None]]
) -> None:
    # Few cases have one.
    from ...core.played_users import PlayedUser
    from .simulating import Simulation

    user = PlayedUser.from_json(given["user"])
    folder = given["agent_folder"]
    await Simulation(user, reporter, heard, say, None if folder is None else Path(folder)).converse()


async def _recorded_turn(
    session: AgentSession,
    takes: AgentInput,
    reporter: Reporter,
    recorder: CallRecorder | None,
    turn: int,
    content: Json,
) -> None:
    if recorder is None:
        await take_turn(session, takes, reporter, turn, content)
        return
    recorder.turn = turn
    try:
        await take_turn(session, takes, reporter, turn, content)
    finally:
        recorder.check()


async def take_turn(
    session: AgentSession, takes: AgentInput, reporter: Reporter, turn: int, content: Json
) -> None:
    """A turn, from 0, through to its end: the user's message and all that follows is reported."""
    reporter.turn = turn
    with recording(reporter):
        reporter.event("user", content, data={"timestamp": time.time()})
        takes.require_message(content)
        await session.send(content)
