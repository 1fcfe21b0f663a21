"""The conversation with the agent: sent, cancelled, gone back in, continued from a case, and repeated."""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Literal

from evaltui.core.model.events import Event, Json
from evaltui.core.model.outcome import ErrorInfo
from evaltui.core.recording.waiting import WaitingCall
from evaltui.files.agent_files import AgentFiles, changed_files
from evaltui.runner.parent.failures import AgentBrokenError, HostLostError, RequestFailedError
from evaltui.workbench.chat.conversation import (
    ChatTurn,
    SessionStart,
    Transcript,
    TurnStage,
)
from evaltui.workbench.state import CaseKey

if TYPE_CHECKING:
    from evaltui.workbench.chat.live_session import LiveSession
    from evaltui.workbench.chat.origins import Origin
    from evaltui.workbench.workbench import Workbench

How = Literal["recorded", "live"]
Source = Literal["result", "case"]

NEW = "new conversation"
# What the agent prints in a chat is of no run.
NO_RUN = 0

_ANSWERING = "the agent is still answering: esc cancels the turn"


class Chat:
    """`workbench` is told of everything; what cannot be done is said there as a sentence.

    Only `origin` and `close` take their time: other work goes on in a task, and `changed` is called whenever
    something has changed. `transcript` is the conversation that is shown, None before there is one. `info` is
    what is known of the agent (AgentInfo as JSON), None before it is imported. `inputs` are the texts sent in
    this sitting, the last one at the end. `code_changes` are the files that changed since the agent was
    imported, such as `("agent.py",)`: the next turn is the first that runs with them.
    """

    def __init__(self, workbench: Workbench, changed: Callable[[], None]) -> None:
        self.transcript: Transcript | None = None
        self.info: Json | None = None
        self.inputs: list[str] = []
        self.code_changes: tuple[str, ...] = ()
        self.opening = False
        self._workbench = workbench
        self._changed = changed
        self._files = AgentFiles(workbench.agent.dir)
        self._live: LiveSession | None = None
        self._new_code: tuple[str, ...] = ()
        self._idle_in: Transcript | None = None
        self._earlier: tuple[Transcript, list[ChatTurn]] | None = None
        self._task: asyncio.Task[None] | None = None
        self._cancelled: asyncio.Task[None] | None = None
        self._one_at_a_time = asyncio.Lock()
        self._looking: asyncio.Task[None] | None = None

    # What there is

    @property
    def busy(self) -> bool:
        """Whether anything is going on: a turn, or what comes before it."""
        return self._task is not None and not self._task.done()

    @property
    def cancelling(self) -> bool:
        """Whether what is going on has been cancelled, and has not ended yet."""
        return self.busy and self._cancelled is self._task

    @property
    def answering(self) -> bool:
        """Whether a turn is running, or will be as soon as it can."""
        turns = self.transcript.turns if self.transcript else ()
        return self.busy and any(turn.stage in (TurnStage.RUNNING, TurnStage.WAITING) for turn in turns)

    def waiting(self, before: ChatTurn | None = None) -> list[WaitingCall]:
        """The calls that wait for a response, or waited before a turn; none while a turn runs."""
        transcript = self.transcript
        if transcript is None or self.answering:
            return []
        turns = transcript.turns
        return transcript.waiting(turns.index(before) if before in turns else None)

    async def origin(self, key: CaseKey) -> Origin:
        """What a conversation can begin from in a case. Raises ValueError, with a sentence."""
        return await asyncio.to_thread(self._read_origin, key)

    def take_proposal(self) -> Json | None:
        """The message that the user may want to send next; it is proposed once."""
        if self.transcript is None:
            return None
        proposal, self.transcript.proposal = self.transcript.proposal, None
        return proposal

    # Beginning

    def new(self, session: SessionStart | None = None, agent_name: str | None = None) -> None:
        """A new conversation in place of the one that is shown; the agent is imported at once."""
        transcript = Transcript(NEW, session or SessionStart(), agent_name)
        self._show(transcript)
        self._go(transcript)

    def continue_from(
        self, key: CaseKey, turn: int, how: How = "recorded", source: Source = "result"
    ) -> None:
        """A new conversation that begins where the case's turn (from 0) would; after the last, at its end.

        The turns before are taken from the case's last result, or as the case expects them, without asking a
        model or tool; `live` sends the user's messages again. What the user says in `turn` is proposed.
        """
        self._start(partial(self._continue, key, turn, how, source))

    def play(self, key: CaseKey) -> None:
        """A new conversation in which everything that the user says in a case is sent."""
        self._start(partial(self._continue, key, None, "live", "case"))

    # Talking

    def send(self, content: Json) -> None:
        """Say something, in a new conversation if there is none; messages that still waited are dropped."""
        if reason := self.refuses_to_send():
            self._workbench.say(reason)
            return
        transcript = self.transcript
        if transcript is None:
            transcript = Transcript(NEW)
            self._show(transcript)
        transcript.turns = [turn for turn in transcript.turns if turn.stage is not TurnStage.WAITING]
        self._say_next(transcript, content)

    def cancel(self) -> None:
        """End the turn that runs; those that wait stay, and `retry` goes on with them."""
        if self._task is None or not self.busy:
            return
        if self.cancelling:
            self._workbench.say("already cancelling: an agent that does not answer is ended within seconds")
            return
        self._cancelled = self._task
        self._task.cancel()
        self._changed()

    def retry(self) -> None:
        """Send the last message that was sent again, in place of what came of it, and go on from there."""
        if reason := self.refuses_to_retry():
            self._workbench.say(reason)
            return
        assert self.transcript is not None
        turns = self.transcript.turns
        sent = [index for index, turn in enumerate(turns) if turn.stage is not TurnStage.WAITING]
        if sent:
            self._keep()
            again = turns[sent[-1]]
            self.transcript.turns = [
                *turns[: sent[-1]],
                ChatTurn(again.content, repeats=again.repeats),
                *turns[sent[-1] + 1 :],
            ]
        self._go(self.transcript)

    def resend(self, turn: int, content: Json) -> None:
        """Go back to before a turn and say this instead; that turn and what followed are gone."""
        if (transcript := self._rewound(turn)) is not None:
            self._say_next(transcript, content)

    def rewind(self, turn: int) -> None:
        """Go back to before a turn; that turn and what followed are gone, what was said there is proposed."""
        if (transcript := self._rewound(turn)) is not None and self._earlier is not None:
            transcript.proposal = self._earlier[1][turn].content
            self._go(transcript)

    def restore(self) -> None:
        """Bring back what was taken away last; done again, it is away again."""
        if reason := self.refuses_to_restore():
            self._workbench.say(reason)
            return
        assert self._earlier is not None
        (transcript, turns), self._earlier = self._earlier, None
        self._keep()
        self.transcript = transcript
        transcript.turns = turns
        self._changed()

    def replay(self) -> None:
        """Send everything that counts again, on the code as it is now; each turn tells what is different.

        So is the last message where nothing has come of it yet.
        """
        if reason := self.refuses_to_replay():
            self._workbench.say(reason)
            return
        assert self.transcript is not None
        self._keep()
        turns = self.transcript.turns
        meant = [turn for turn in turns if turn.counts or turn is turns[-1]]
        self.transcript.turns = [ChatTurn(turn.content, repeats=turn) for turn in meant]
        self._go(self.transcript)

    # Why not, as sentences; None where it can be done

    def refuses_to_send(self) -> str | None:
        return _ANSWERING if self.answering else None

    def refuses_to_retry(self) -> str | None:
        return self._refuses_without_turns() or self.refuses_to_send()

    def refuses_to_replay(self) -> str | None:
        return self._refuses_without_turns() or self.refuses_to_send()

    def refuses_to_rewind(self) -> str | None:
        return self._refuses_without_turns()

    def refuses_to_restore(self) -> str | None:
        if self._earlier is None:
            return "nothing was taken away from a conversation"
        return self.refuses_to_send()

    def refuses_to_save(self) -> str | None:
        if reason := self._refuses_without_turns() or self.refuses_to_send():
            return reason
        if self.transcript is None or not self.transcript.counted():
            return "no turn went through to its end: there is nothing to make a case of"
        if self._workbench.sets.workspace is None:
            return "the eval sets are still being read"
        return None

    def _refuses_without_turns(self) -> str | None:
        return None if self.transcript and self.transcript.turns else "nothing has been said yet"

    # The code

    def look_at_code(self) -> None:
        """Look whether the agent's files have changed, in a thread: about once a second while one looks."""
        if self._live is not None and self._live.code is not None and self._looking is None:
            self._looking = asyncio.create_task(self._look_at_code(self._live))

    async def _look_at_code(self, live: LiveSession) -> None:
        code = live.code
        try:
            now = await asyncio.to_thread(self._files.look)
        finally:
            self._looking = None
        # Meanwhile the agent may have been imported again.
        if code is not None and live is self._live and code is live.code:
            self._set_code_changes(changed_files(code, now))

    def _set_code_changes(self, changes: tuple[str, ...]) -> None:
        if changes != self.code_changes:
            self.code_changes = changes
            self._changed()

    async def close(self) -> None:
        """End what runs, the agent's process included."""
        running = [task for task in (self._task, self._looking) if task is not None]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
        if self._live is not None:
            await self._live.close()

    # At work

    def _show(self, transcript: Transcript) -> None:
        self._keep()
        self.transcript = transcript
        self._changed()

    def _keep(self) -> None:
        """What is shown now can be brought back."""
        if self.transcript is not None and self.transcript.turns:
            self._earlier = self.transcript, self.transcript.turns

    def _rewound(self, turn: int) -> Transcript | None:
        if reason := self.refuses_to_rewind():
            self._workbench.say(reason)
            return None
        assert self.transcript is not None
        self._keep()
        # Messages that wait would be sent with the next one.
        before = self.transcript.turns[:turn]
        self.transcript.turns = [one for one in before if one.stage is not TurnStage.WAITING]
        return self.transcript

    def _say_next(self, transcript: Transcript, content: Json) -> None:
        turn = ChatTurn(content)
        transcript.turns = [*transcript.turns, turn]
        transcript.proposal = None
        if turn.text.strip() and self.inputs[-1:] != [turn.text]:
            self.inputs.append(turn.text)
        self._go(transcript)

    def _go(self, transcript: Transcript) -> None:
        """Have a session, and send what waits to be sent."""
        if self._idle_in is not transcript or self.cancelling or not self.busy:
            self._start(partial(self._work, transcript))
        self._changed()

    def _start(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do this once what is done now has been ended."""
        if self._task is not None:
            self._task.cancel()
        self._idle_in = None
        self._task = asyncio.create_task(self._alone(work))
        self._task.add_done_callback(lambda _: self._changed())

    async def _alone(self, work: Callable[[], Awaitable[None]]) -> None:
        async with self._one_at_a_time:
            await work()
        self._workbench.agent.keep_host_warm()

    async def _continue(self, key: CaseKey, turn: int | None, how: How, source: Source) -> None:
        try:
            origin = await self.origin(key)
            at = len(origin.messages) if turn is None else turn
            if reason := origin.refuses(at, source if how == "recorded" else None):
                raise ValueError(reason)
        except (OSError, ValueError) as error:
            self._workbench.say(str(error))
            return
        transcript = origin.transcript(at, source) if how == "recorded" else origin.to_be_sent(at)
        self._show(transcript)
        await self._work(transcript)

    def _read_origin(self, key: CaseKey) -> Origin:
        """In a thread: imports the models, reads the set and the log."""
        from evaltui.workbench.chat.origins import origin

        opened = self._workbench.sets.documents.open(key.path)
        case = opened.case(key.eval_id)
        if case is None:
            why = str(opened.errors[0]) if opened.errors else f"it is no longer in {key.path.name}"
            raise ValueError(f"{key.eval_id} cannot be continued: {why}")
        scored = self._workbench.outcomes.get(key)
        if scored is None:
            return origin(key, case)
        events = (self._workbench.outcomes.traces.events_of(key) or {}).get(scored.repeat, ())
        return origin(key, case, scored, events)

    async def _work(self, transcript: Transcript) -> None:
        if _next_waiting(transcript) is None:
            self._idle_in = transcript
            await self._open_ahead(transcript)
            self._idle_in = None
        while (turn := _next_waiting(transcript)) is not None:
            await self._say(transcript, turn)
            if not turn.counts:
                return
            if turn.repeats is not None and turn.repeats.counts:
                await self._compare(turn.repeats, turn)

    async def _open_ahead(self, transcript: Transcript) -> None:
        """Importing the agent takes as long as writing the first message."""
        try:
            await self._ready(transcript, transcript.counted())
        except Exception as error:  # whatever it is, the workbench goes on and says so
            transcript.broken = _info_of(error)

    async def _say(self, transcript: Transcript, turn: ChatTurn) -> None:
        past = transcript.counted(transcript.turns.index(turn))
        turn.stage = TurnStage.RUNNING
        self._changed()
        try:
            live = await self._ready(transcript, past)
            changed, self._new_code = self._new_code, ()
            # At the beginning nothing was said on other code.
            turn.new_code = changed if turn is not transcript.turns[0] or turn.repeats else ()
            turn.state_before = transcript.state_before(transcript.turns.index(turn))
            turn.began = time.monotonic()
            turn.state_after = await live.say(transcript, past, turn, partial(self._take, turn))
            turn.stage = TurnStage.DONE
        except asyncio.CancelledError:
            turn.stage = TurnStage.CANCELLED
            raise
        except Exception as error:  # whatever it is, the conversation can go on
            turn.stage = TurnStage.FAILED
            turn.error = _info_of(error)
            if isinstance(error, AgentBrokenError):
                transcript.broken = error.error
        finally:
            if turn.began is not None:
                turn.spent = time.monotonic() - turn.began
            self._changed()

    def _take(self, turn: ChatTurn, event: Event) -> None:
        turn.events.append(event)
        if event.kind == "user" and event.content and not event.data.get("nested"):
            # Responses that were recorded go to the calls that wait now.
            turn.content = event.content
        self._changed()

    async def _compare(self, before: ChatTurn, now: ChatTurn) -> None:
        from evaltui.workbench.chat.comparing import difference

        # What the agent framework says may be more than the models know.
        with suppress(ValueError):
            now.difference = await asyncio.to_thread(difference, before, now)
        self._changed()

    async def _ready(self, transcript: Transcript, past: Sequence[ChatTurn]) -> LiveSession:
        """A session at the end of `past`, on the code as it is now. Raises as `LiveSession.open`."""
        await asyncio.to_thread(importlib.import_module, "evaltui.workbench.chat.live_session")
        live = await self._live_session(transcript.agent_name)
        if changed := await live.renew():
            self._new_code = tuple(sorted({*self._new_code, *changed}))
        self.code_changes = ()
        if not live.holds(transcript, past):
            self.opening = True
            self._changed()
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
                self._workbench.agent.failed(broken.error)
            raise
        transcript.broken = None
        self.info = live.info
        if transcript.agent_name is None and live.info is not None:
            self._workbench.agent.imported(live.info)
        if not past:
            transcript.opened_state = state
        elif past[-1].source == "recorded":
            past[-1].state_after = state

    async def _live_session(self, agent_name: str | None) -> LiveSession:
        from evaltui.workbench.chat.live_session import LiveSession

        if self._live is not None and self._live.agent_name != agent_name:
            ended, self._live = self._live, None
            await ended.close()
        if self._live is None:
            self._live = LiveSession(
                self._workbench.agent.dir,
                agent_name,
                self._files,
                self._printed,
                self._workbench.agent.warm_hosts.start,
            )
        return self._live

    def _printed(self, source: str, line: str) -> None:
        self._workbench.console.add(NO_RUN, source, line, None)
        self._changed()


def _next_waiting(transcript: Transcript) -> ChatTurn | None:
    return next((turn for turn in transcript.turns if turn.stage is TurnStage.WAITING), None)


def _info_of(error: Exception) -> ErrorInfo:
    if isinstance(error, AgentBrokenError | RequestFailedError | HostLostError):
        return error.error
    return ErrorInfo(type(error).__name__, str(error))
