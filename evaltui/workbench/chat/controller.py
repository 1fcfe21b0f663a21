"""The conversation with the agent: sending, cancelling, rewinding, continuing a case, and replaying."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Literal

from evaltui.agents.errors import AgentBrokenError
from evaltui.core.conversation.waiting import WaitingCall
from evaltui.core.cost.metering import calls_in, spent_by
from evaltui.core.cost.prices import Prices
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import Event, Json
from evaltui.core.model.spending import Spending
from evaltui.text.keys import key_of
from evaltui.workbench.agent.agent_state import AgentState, Console
from evaltui.workbench.cases.open_sets import OpenSets
from evaltui.workbench.chat.conversation import (
    ChatTurn,
    CurrentSession,
    SessionStart,
    Transcript,
    TurnStage,
    info_of,
)
from evaltui.workbench.chat.origins import Origin, difference, read_origin
from evaltui.workbench.messages import ChatProgressed, Messages
from evaltui.workbench.result.outcomes import Outcomes
from evaltui.workbench.state import CANCELLING, READ_ONLY

TurnOrigin = Literal["recorded", "live"]
Source = Literal["result", "case"]

NEW_CHAT_TITLE = "new chat"
# What the agent prints in a chat is of no run.
NO_RUN = 0
LOADING_NOTICE = "Chat is still loading"
_ENDED_STAGES = (TurnStage.DONE, TurnStage.FAILED, TurnStage.CANCELLED)


class ChatController:
    """The shown conversation, and the user's actions on it.

    Only `origin` and `close` are slow: other work runs in a task.
    """

    def __init__(
        self,
        agent: AgentState,
        sets: OpenSets,
        outcomes: Outcomes,
        console: Console,
        messages: Messages,
    ) -> None:
        self.transcript: Transcript | None = None
        """The conversation; None before the first one."""
        self.inputs: list[str] = []
        """The texts sent in this session, the last one at the end."""
        self.has_saved = False
        """Whether a conversation was saved as a case in this session."""
        self.session = CurrentSession(agent, self._on_printed, messages)
        """The agent's session for the conversation."""
        self._agent = agent
        self._sets = sets
        self._outcomes = outcomes
        self._console = console
        self._messages = messages
        self._idle_in: Transcript | None = None
        self._earlier: tuple[Transcript, list[ChatTurn]] | None = None
        # What was shown before a conversation that is being loaded.
        self._before_loading: Transcript | None = None
        # The spending of the turns that were sent and are over.
        self._priced: dict[ChatTurn, Spending] = {}
        self._pricing: asyncio.Task[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._cancelled: asyncio.Task[None] | None = None
        self._forcing: asyncio.Task[None] | None = None
        self._one_at_a_time = asyncio.Lock()

    # What there is

    @property
    def busy(self) -> bool:
        """Whether work is running: a turn, or the steps before it."""
        return self._task is not None and not self._task.done()

    @property
    def cancelling(self) -> bool:
        """Whether the running work has been cancelled, and has not ended yet."""
        return self.busy and self._cancelled is self._task

    @property
    def loading(self) -> bool:
        """Whether the first turns of the conversation are still being read."""
        return self.transcript is not None and self.transcript.loading

    @property
    def answering(self) -> bool:
        """Whether a turn is running or queued."""
        turns = self.transcript.turns if self.transcript else ()
        return self.busy and any(turn.stage in (TurnStage.RUNNING, TurnStage.WAITING) for turn in turns)

    def waiting(self, before: ChatTurn | None = None) -> list[WaitingCall]:
        """The calls that wait for a response, or waited before a turn; none while a turn runs."""
        if self.transcript is None or self.answering:
            return []
        turns = self.transcript.turns
        return self.transcript.waiting(turns.index(before) if before in turns else None)

    async def origin(self, case: CaseId) -> Origin:
        """The turns of a case from which a conversation can start. Raises ValueError, with a sentence."""

        return await asyncio.to_thread(read_origin, case, self._sets, self._outcomes)

    def take_proposal(self) -> Json | None:
        """The proposed next message; it is proposed once."""
        if self.transcript is None:
            return None
        proposal, self.transcript.proposal = self.transcript.proposal, None
        return proposal

    # Beginning

    def new(self, session: SessionStart | None = None, agent_name: str | None = None) -> None:
        """Starts a new conversation in the place of the shown one, and imports the agent."""
        transcript = Transcript(NEW_CHAT_TITLE, session or SessionStart(), agent_name)
        self._show(transcript)
        self._go(transcript)

    def continue_from(
        self, case: CaseId, turn: int | None, how: TurnOrigin = "recorded", source: Source = "result"
    ) -> None:
        """Starts a conversation at a turn of a case (from 0); None for the end of the case.

        The turns before are taken from the case's last result, or from its expectations, without a model or
        tool; `live` sends the user's messages again. The user's message of `turn` is proposed.
        """
        if not self.loading:
            self._before_loading = self.transcript
        loading = Transcript(case.eval_id, loading=True)
        task = self._start(partial(self._continue, loading, case, turn, how, source))
        task.add_done_callback(lambda _: self._stop_loading(loading))
        self.transcript = loading
        self._messages.publish(ChatProgressed())

    def play(self, case: CaseId) -> None:
        """Starts a conversation and sends all user messages of a case."""
        self.continue_from(case, None, "live", "case")

    # Talking

    def send(self, content: Json) -> None:
        """Sends a message, in a new conversation if there is none; queued messages are dropped."""
        if reason := self.refuses_to_send():
            self._messages.say(reason)
            return
        if (transcript := self.transcript) is None:
            transcript = Transcript(NEW_CHAT_TITLE)
            self._show(transcript)
        transcript.turns = [turn for turn in transcript.turns if turn.stage is not TurnStage.WAITING]
        self._send_next(transcript, content)

    def cancel(self) -> None:
        """Cancels the running turn; queued turns stay, and `retry` continues with them.

        A second call kills the agent's process, which otherwise happens after some seconds.
        """
        if self._task is None or not self.busy:
            return
        if self.cancelling:
            self._forcing = asyncio.create_task(self.session.kill())
            return
        self._cancelled = self._task
        self._task.cancel()
        self._messages.say(CANCELLING)
        self._messages.publish(ChatProgressed())

    def retry(self) -> None:
        """Sends the last sent message again, in the place of its turn, and continues."""
        if reason := self.refuses_to_repeat():
            self._messages.say(reason)
            return
        assert self.transcript is not None
        turns = self.transcript.turns
        sent = [index for index, turn in enumerate(turns) if turn.stage is not TurnStage.WAITING]
        if sent:
            self._keep()
            last = sent[-1]
            again = ChatTurn(turns[last].content, repeats=turns[last].repeats)
            self.transcript.turns = [*turns[:last], again, *turns[last + 1 :]]
        self._go(self.transcript)

    def resend(self, turn: int, content: Json) -> None:
        """Rewinds to before a turn and sends another message; that turn and the later ones are removed."""
        if (transcript := self._rewound(turn)) is not None:
            self._send_next(transcript, content)

    def rewind(self, turn: int) -> None:
        """Rewinds to before a turn; that turn and the later ones are removed, and its message is proposed."""
        if (transcript := self._rewound(turn)) is not None and self._earlier is not None:
            transcript.proposal = self._earlier[1][turn].content
            self._go(transcript)

    def restore(self) -> None:
        """Undoes the last rewind; a second call redoes it."""
        if reason := self.refuses_to_restore():
            self._messages.say(reason)
            return
        assert self._earlier is not None
        (transcript, turns), self._earlier = self._earlier, None
        self._keep()
        self.transcript, transcript.turns = transcript, turns
        self._messages.publish(ChatProgressed())

    def replay(self) -> None:
        """Sends all counting turns again, on the current code; each turn shows its differences.

        The last message is also sent if its turn has not finished.
        """
        if reason := self.refuses_to_repeat():
            self._messages.say(reason)
            return
        assert self.transcript is not None
        self._keep()
        turns = self.transcript.turns
        to_send = [turn for turn in turns if turn.counts or turn is turns[-1]]
        self.transcript.turns = [ChatTurn(turn.content, repeats=turn) for turn in to_send]
        self._go(self.transcript)

    # Why not, as sentences; None where it can be done

    def refuses_to_send(self) -> str | None:
        if self._agent.read_only:
            return READ_ONLY
        if self.loading:
            return LOADING_NOTICE
        return f"Turn in progress ({key_of('cancel_turn')} cancels)" if self.answering else None

    def refuses_to_rewind(self) -> str | None:
        if self.loading:
            return LOADING_NOTICE
        return None if self.transcript and self.transcript.turns else "No messages yet"

    def refuses_to_repeat(self) -> str | None:
        """Why the sent messages, one or all, cannot be sent again."""
        return self.refuses_to_rewind() or self.refuses_to_send()

    def refuses_to_restore(self) -> str | None:
        return "No rewind to undo" if self._earlier is None else self.refuses_to_send()

    def refuses_to_save(self) -> str | None:
        if reason := self.refuses_to_repeat():
            return reason
        if self.transcript is None or not self.transcript.counted():
            return "No finished turn to save"
        return None if self._sets.is_read else "Loading eval sets…"

    # The cost

    def spending(self) -> Spending | None:
        """The spending of the conversation so far; None where no turn is priced yet.

        Sent turns are priced in the background when they end; turns that were taken from a run or a case cost
        nothing.
        """
        turns = self.transcript.turns if self.transcript else ()
        over = [turn for turn in turns if turn.source == "said" and turn.stage in _ENDED_STAGES]
        new = [turn for turn in over if turn not in self._priced]
        if new and (self._pricing is None or self._pricing.done()):
            self._pricing = asyncio.create_task(self._price(new))
        priced = [self._priced[turn] for turn in over if turn in self._priced]
        return sum(priced, Spending()) if priced else None

    async def _price(self, turns: list[ChatTurn]) -> None:
        prices = Prices(self._agent.settings.prices)
        for turn in turns:
            calls, counts = calls_in(turn.events)
            self._priced[turn] = await spent_by(calls, prices, counts)
        self._messages.publish(ChatProgressed())

    async def close(self) -> None:
        """Ends the running work and the agent's process."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self.session.close()

    # At work

    def _show(self, transcript: Transcript) -> None:
        if self.loading:
            self.transcript = self._before_loading
        self._keep()
        self.transcript = transcript
        self._messages.publish(ChatProgressed())

    def _keep(self) -> None:
        if self.transcript is not None and self.transcript.turns:
            self._earlier = self.transcript, self.transcript.turns

    def _rewound(self, turn: int) -> Transcript | None:
        if reason := self.refuses_to_rewind():
            self._messages.say(reason)
            return None
        assert self.transcript is not None
        self._keep()
        # Messages that wait would be sent with the next one.
        before = self.transcript.turns[:turn]
        self.transcript.turns = [earlier for earlier in before if earlier.stage is not TurnStage.WAITING]
        return self.transcript

    def _send_next(self, transcript: Transcript, content: Json) -> None:
        turn = ChatTurn(content)
        transcript.turns = [*transcript.turns, turn]
        transcript.proposal = None
        if turn.text.strip() and self.inputs[-1:] != [turn.text]:
            self.inputs.append(turn.text)
        self._go(transcript)

    def _go(self, transcript: Transcript) -> None:
        """Opens a session, and sends the queued messages."""
        sends_soon = self._idle_in is transcript and self.busy and not self.cancelling
        if not sends_soon:
            self._start(partial(self._work, transcript))
        self._messages.publish(ChatProgressed())

    def _start(self, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Starts work after the current work has been cancelled."""
        if self._task is not None:
            self._task.cancel()
        self._idle_in = None
        self._task = asyncio.create_task(self._alone(work))
        self._task.add_done_callback(lambda _: self._messages.publish(ChatProgressed()))
        return self._task

    async def _alone(self, work: Callable[[], Awaitable[None]]) -> None:
        async with self._one_at_a_time:
            await work()
        self._agent.keep_host_warm()

    async def _continue(
        self, loading: Transcript, case: CaseId, turn: int | None, how: TurnOrigin, source: Source
    ) -> None:
        try:
            transcript = (await self.origin(case)).conversation(turn, source if how == "recorded" else None)
        except (OSError, ValueError) as error:
            self._stop_loading(loading)
            self._messages.say(str(error))
            return
        self._show(transcript)
        await self._work(transcript)

    def _stop_loading(self, loading: Transcript) -> None:
        """Shows the earlier conversation again if loading failed."""
        if self.transcript is loading:
            self.transcript = self._before_loading
            self._messages.publish(ChatProgressed())

    async def _work(self, transcript: Transcript) -> None:
        if transcript.next_waiting is None:
            self._idle_in = transcript
            await self._open_ahead(transcript)
            self._idle_in = None
        while (turn := transcript.next_waiting) is not None:
            await self._send(transcript, turn)
            if not turn.counts:
                return
            if turn.repeats is not None and turn.repeats.counts:
                await self._compare(turn.repeats, turn)

    async def _open_ahead(self, transcript: Transcript) -> None:
        """Imports the agent while the user writes the first message."""
        try:
            await self.session.ready(transcript, transcript.counted())
        except Exception as error:  # whatever it is, the workbench goes on and says so
            transcript.broken = info_of(error)

    async def _send(self, transcript: Transcript, turn: ChatTurn) -> None:
        past = transcript.counted(transcript.turns.index(turn))
        turn.stage = TurnStage.RUNNING
        self._messages.publish(ChatProgressed())
        try:
            await self.session.ready(transcript, past)
            if changed := self.session.take_new_code():
                await self._outcomes.compare_files()
            # At the beginning nothing was said on other code.
            turn.new_code = changed if turn is not transcript.turns[0] or turn.repeats else ()
            turn.state_before = transcript.state_before(transcript.turns.index(turn))
            turn.began = time.monotonic()
            turn.state_after = await self.session.say(transcript, past, turn, partial(self._on_event, turn))
            turn.stage = TurnStage.DONE
        except asyncio.CancelledError:
            turn.stage = TurnStage.CANCELLED
            raise
        except Exception as error:  # whatever it is, the conversation can go on
            turn.stage = TurnStage.FAILED
            turn.error = info_of(error)
            if isinstance(error, AgentBrokenError):
                transcript.broken = error.error
        finally:
            if turn.began is not None:
                turn.spent = time.monotonic() - turn.began
            self._messages.publish(ChatProgressed())

    def _on_event(self, turn: ChatTurn, event: Event) -> None:
        turn.events.append(event)
        if event.kind == "user" and event.content and not event.data.get("nested"):
            # Responses that were recorded go to the calls that wait now.
            turn.content = event.content
        self._messages.publish(ChatProgressed())

    async def _compare(self, before: ChatTurn, now: ChatTurn) -> None:

        # What the agent framework says may be more than the models know.
        with suppress(ValueError):
            now.difference = await asyncio.to_thread(difference, before, now)
        self._messages.publish(ChatProgressed())

    def _on_printed(self, source: str, line: str) -> None:
        self._console.add(NO_RUN, source, line, None)
        self._messages.publish(ChatProgressed())
