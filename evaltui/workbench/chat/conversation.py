"""What a conversation is, as plain data."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from evaltui.core.conversation.waiting import CallPlace, WaitingCall, responses_in, waiting_calls
from evaltui.core.model.events import Event, Json, describe_response
from evaltui.core.model.outcome import ErrorInfo, StateDiff, TurnResult


class TurnStage(StrEnum):
    """`WAITING` is not sent yet: it follows others that are sent first, or that failed or were cancelled."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class SessionStart:
    """Where a conversation begins. Empty names mean the agent's defaults."""

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
    """What a turn did otherwise than the turn that it repeats, which is the expected side."""

    sentence: str
    """What is different, in short; "" where it did the same."""
    turn: TurnResult
    state: tuple[StateDiff, ...] = ()


@dataclass(eq=False)
class ChatTurn:
    """One message of the user (a genai Content as JSON) and what came of it.

    A turn counts when it is done: what follows begins at its end. A turn that failed or was cancelled stays
    to be seen, and the next one begins as if it had not been. A `recorded` turn was not sent in this
    conversation: its events are those of a run or of a case, and no model or tool was asked.
    """

    content: Json
    """The user's message."""
    source: Literal["said", "recorded"] = "said"
    stage: TurnStage = TurnStage.WAITING
    events: list[Event] = field(default_factory=list)
    """What happened; the user's message comes first."""
    state_before: Json | None = None
    """The session state before the turn; None where it is not known."""
    state_after: Json | None = None
    """The session state after the turn; None where it is not known."""
    error: ErrorInfo | None = None
    """Why the turn failed."""
    began: float | None = None
    """When the agent was asked, as `time.monotonic()`."""
    spent: float | None = None
    """How many seconds it took, once it is over."""
    new_code: tuple[str, ...] = ()
    """The files that changed since the turn before: this turn was the first to run with them."""
    repeats: ChatTurn | None = None
    """The turn that this one says again after a change of the code."""
    difference: Difference | None = None
    """What is different from that turn, once this one is done."""

    @property
    def counts(self) -> bool:
        return self.stage is TurnStage.DONE

    @property
    def seconds(self) -> float | None:
        """How long it took, or takes so far; None where that is not known."""
        if self.spent is not None or self.began is None:
            return self.spent
        return time.monotonic() - self.began

    @property
    def text(self) -> str:
        """What the user says, without files and responses."""
        return text_of(self.content)

    @property
    def shown(self) -> str:
        """What the user says and responds, without files."""
        return shown_text(self.content)


@dataclass(eq=False)
class Transcript:
    """A conversation: where it began, and its turns in order."""

    title: str
    """What it is: `new conversation`, or the case that it continues."""
    session: SessionStart = field(default_factory=SessionStart)
    agent_name: str | None = None
    """The sub-agent that is talked to; None for the agent itself."""
    turns: list[ChatTurn] = field(default_factory=list)
    opened_state: Json | None = None
    """The session state before the first turn, once there is one."""
    asks: str = ""
    """Id of the call whose response is being typed; "" for none."""
    has_unknown_state: bool = False
    """Whether the agent keeps its session state to itself."""
    proposal: Json | None = None
    """A message that the user may want to send next."""
    broken: ErrorInfo | None = None
    """Why the agent cannot be talked to, as of the last attempt."""
    loading: bool = False
    """Whether the turns before are still being read: another transcript takes its place then."""
    places: Mapping[str, CallPlace] = field(default_factory=dict)
    """Where the calls were made that messages taken from elsewhere respond to."""
    _waiting: tuple[list[ChatTurn], list[WaitingCall]] = field(default=([], []), repr=False)

    def waiting(self, before: int | None = None) -> list[WaitingCall]:
        """The calls that wait for a response at the end, or before the turn at an index."""
        turns = self.counted(before)
        if turns != self._waiting[0]:
            self._waiting = turns, waiting_calls([turn.events for turn in turns])
        return self._waiting[1]

    @property
    def next_waiting(self) -> ChatTurn | None:
        """The first turn that is not sent yet."""
        return next((turn for turn in self.turns if turn.stage is TurnStage.WAITING), None)

    def counted(self, before: int | None = None) -> list[ChatTurn]:
        """The turns that count, of all or of those before the one at an index."""
        return [turn for turn in self.turns[:before] if turn.counts]

    @property
    def state(self) -> Json:
        """The session state now, as far as it is known."""
        return self.state_before(len(self.turns))

    def state_before(self, index: int) -> Json:
        """The session state that a turn at this index begins with."""
        known = [turn.state_after for turn in self.counted(index) if turn.state_after is not None]
        if known:
            return known[-1]
        return self.session.state if self.opened_state is None else self.opened_state


def shown_text(content: Json) -> str:
    """The texts of a genai Content as JSON and what it responds to calls, one per line; without files."""
    return "\n".join(filter(None, [text_of(content), *map(describe_response, responses_in(content))]))


def text_of(content: Json) -> str:
    """The texts of a genai Content as JSON, one per line; without files."""
    return "\n".join(part["text"] for part in content.get("parts") or [] if part.get("text"))
