"""What every adapter offers to the host, and what the host gives it to report with."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

from evaltui.core.model.events import Event, Json, Kind, Step, split
from evaltui.core.recording.waiting import CallPlace, NotWaitingError, WaitingCalls

DEFAULT_APP_NAME = "evaltui"
DEFAULT_USER_ID = "test_user_id"


class AgentLoadError(Exception):
    """The agent cannot be used as it is; the message is a sentence for the user that says what to do."""


@dataclass(frozen=True)
class ToolInfo:
    """A tool as the agent declares it; `parameters` is a JSON schema where the framework gives one."""

    name: str
    description: str = ""
    parameters: Json | None = None


@dataclass(frozen=True)
class AgentInfo:
    """What is known of an agent once it is imported, for headers, completion and reports."""

    name: str
    framework: str
    model: str = ""
    tools: tuple[ToolInfo, ...] = ()
    sub_agents: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SessionSpec:
    """Where a conversation starts. Empty names mean the adapter's defaults; `state` is the initial state."""

    app_name: str = ""
    user_id: str = ""
    session_id: str = ""
    state: Json = field(default_factory=dict)


class Reporter:
    """Takes what an adapter reports of one conversation and hands it on as events.

    The adapter gives steps and single events; ids, turn and order are filled in here. The host fills in
    case, repeat, sequence and time.
    """

    def __init__(self, sink: Callable[[Event], None]) -> None:
        self._sink = sink
        self.turn: int | None = None

    def event(
        self,
        kind: Kind,
        content: Json | None = None,
        *,
        agent: str = "",
        data: Json | None = None,
        usage: Json | None = None,
        branch: str = "",
        duration: float | None = None,
        id: str = "",
        parent: str = "",
    ) -> str:
        """Report one thing, nested in the tool call that this task works for, if any; returns its id."""
        inside = nested_in.get()
        event_id = id or uuid.uuid4().hex[:12]
        self._sink(
            Event(
                kind,
                content,
                agent=agent,
                data=(data or {}) | ({"nested": True} if inside else {}),
                usage=usage,
                branch=branch,
                duration=duration,
                id=event_id,
                parent=parent or inside or "",
                turn=self.turn,
            )
        )
        return event_id

    def step(self, step: Step) -> None:
        """Report a step of the framework; inside a running tool call it is marked as nested."""
        for event in split(step):
            self.event(
                event.kind,
                event.content,
                agent=event.agent,
                data=event.data,
                usage=event.usage,
                branch=event.branch,
                id=event.id,
                parent=event.parent,
            )


def addressed(
    content: Json,
    turn: int,
    waiting: WaitingCalls | None,
    places: Mapping[str, CallPlace],
    reporter: Reporter,
) -> Json:
    """The message of a turn (from 0), its responses those of the calls that wait.

    Without `waiting` it stays as it is. Raises NotWaitingError, the message then being part of what happened.
    """
    if waiting is None:
        return content
    try:
        return waiting.resolved(content, turn, places)
    except NotWaitingError:
        reporter.turn = turn
        reporter.event("user", content, data={"timestamp": time.time()})
        raise


# The recorder of the conversation that the current task works for: wrapped models and tools find it here.
current_reporter: ContextVar[Reporter | None] = ContextVar("evaltui_recorder", default=None)
# The event id of the tool call inside which an agent of its own is running.
nested_in: ContextVar[str | None] = ContextVar("evaltui_nested_in", default=None)


@contextmanager
def recording(reporter: Reporter) -> Iterator[None]:
    """Everything that this task and its children report goes to `recorder`."""
    token = current_reporter.set(reporter)
    try:
        yield
    finally:
        current_reporter.reset(token)


class AgentSession(Protocol):
    """One conversation with its own state."""

    async def send(self, content: Json) -> None:
        """Take one user message (a genai Content as JSON) through to the end of the turn.

        Everything that happens is reported to the recorder; the user's message itself is reported by the
        host. Raises whatever the agent raises.
        """
        ...

    async def state(self) -> Json:
        """The session state now."""
        ...

    async def close(self) -> None: ...


class AgentAdapter(Protocol):
    """An imported agent, ready to talk."""

    async def open(self) -> AgentInfo:
        """Called once, in the task that will also call `close`: opens what lives as long as the host."""
        ...

    async def new_session(
        self, spec: SessionSpec, reporter: Reporter, past: Sequence[Step] = ()
    ) -> AgentSession:
        """A session at the end of `past`: steps of whole turns, the user's included, in order, each with its
        `turn`. Nothing of them is run again. Their changes of state come on top of `spec.state`, and ids that
        the session makes are none of theirs.
        """
        ...

    async def close(self) -> None: ...


def plain_json(value: Any) -> Json:
    """A genai model as JSON, snake_case and without nulls. Raises pydantic's error for the unserialisable."""
    dumped: Json = value.model_dump(mode="json", exclude_none=True)
    return dumped
