"""The conversation as plain data."""

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
    """The stage of a turn. `WAITING` is not sent yet: it follows turns that are sent first, or that failed or
    were cancelled."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class SessionStart:
    """The session at the start of a conversation. Empty names mean the agent's defaults."""

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
    """The difference between a turn and the turn that it repeats, which is the expected side."""

    sentence: str
    """The difference in short; "" for none."""
    turn: TurnResult
    state: tuple[StateDiff, ...] = ()


@dataclass(eq=False)
class ChatTurn:
    """A message of the user (a genai Content as JSON) and the agent's turn.

    A turn counts when it is done: the next turn starts at its end. A turn that failed or was cancelled stays
    visible, and the next one starts before it. A `recorded` turn was not sent in this conversation: its
    events are those of a run or of a case, without a model or tool.
    """

    content: Json
    """The user's message."""
    source: Literal["said", "recorded"] = "said"
    stage: TurnStage = TurnStage.WAITING
    events: list[Event] = field(default_factory=list)
    """The events; the user's message comes first."""
    state_before: Json | None = None
    """The session state before the turn; None where it is not known."""
    state_after: Json | None = None
    """The session state after the turn; None where it is not known."""
    error: ErrorInfo | None = None
    """Why the turn failed."""
    began: float | None = None
    """Time of the request to the agent, as `time.monotonic()`."""
    spent: float | None = None
    """Duration in seconds, once it is over."""
    new_code: tuple[str, ...] = ()
    """The files that changed since the turn before: this turn is the first to run with them."""
    repeats: ChatTurn | None = None
    """The turn that this one repeats after a change of the code."""
    difference: Difference | None = None
    """The difference from that turn, once this one is done."""

    @property
    def counts(self) -> bool:
        return self.stage is TurnStage.DONE

    @property
    def seconds(self) -> float | None:
        """Duration in seconds, up to now while it runs; None where it is unknown."""
        if self.spent is not None or self.began is None:
            return self.spent
        return time.monotonic() - self.began

    @property
    def text(self) -> str:
        """The text of the user's message, without files and responses."""
        return text_of(self.content)

    @property
    def shown(self) -> str:
        """The text of the user's message and its responses, without files."""
        return shown_text(self.content)


@dataclass(eq=False)
class Transcript:
    """A conversation: its start, and its turns in order."""

    title: str
    """`new conversation`, or the name of the case that it continues."""
    session: SessionStart = field(default_factory=SessionStart)
    agent_name: str | None = None
    """The sub-agent that answers; None for the agent itself."""
    turns: list[ChatTurn] = field(default_factory=list)
    opened_state: Json | None = None
    """The session state before the first turn, once there is one."""
    asks: str = ""
    """Id of the call whose response is being typed; "" for none."""
    has_unknown_state: bool = False
    """Whether the agent does not report its session state."""
    proposal: Json | None = None
    """The proposed next message."""
    broken: ErrorInfo | None = None
    """Why the agent could not be used at the last attempt."""
    loading: bool = False
    """Whether the turns before are still being read: another transcript replaces this one then."""
    places: Mapping[str, CallPlace] = field(default_factory=dict)
    """The places of the calls that messages from a case or run respond to."""
    _waiting: tuple[list[ChatTurn], list[WaitingCall]] = field(default=([], []), repr=False)

    def waiting(self, before: int | None = None) -> list[WaitingCall]:
        """The calls that wait for a response at the end, or before the turn at an index."""
        turns = self.counted(before)
        if turns != self._waiting[0]:
            self._waiting = turns, waiting_calls([turn.events for turn in turns])
        return self._waiting[1]

    @property
    def next_waiting(self) -> ChatTurn | None:
        """The first queued turn."""
        return next((turn for turn in self.turns if turn.stage is TurnStage.WAITING), None)

    def counted(self, before: int | None = None) -> list[ChatTurn]:
        """The turns that count; only those before an index, if there is one."""
        return [turn for turn in self.turns[:before] if turn.counts]

    @property
    def state(self) -> Json:
        """The current session state, as far as it is known."""
        return self.state_before(len(self.turns))

    def state_before(self, index: int) -> Json:
        """The session state at the start of the turn at this index."""
        states = [turn.state_after for turn in self.counted(index) if turn.state_after is not None]
        if states:
            return states[-1]
        return self.session.state if self.opened_state is None else self.opened_state


def shown_text(content: Json) -> str:
    """The texts and responses of a genai Content as JSON, one per line; without files."""
    return "\n".join(filter(None, [text_of(content), *map(describe_response, responses_in(content))]))


def text_of(content: Json) -> str:
    """The texts of a genai Content as JSON, one per line; without files."""
    return "\n".join(part["text"] for part in content.get("parts") or [] if part.get("text"))
