"""What every adapter offers to the host, and what the host gives it to report with."""

from __future__ import annotations

import asyncio
import functools
import inspect
import random
import re
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from ....core.conversation.waiting import CONFIRMATION, CallPlace, NotWaitingError, WaitingCalls
from ....core.model.events import MODEL_CALLS, Event, Json, Kind, Step, is_made_id, split
from ....core.model.problems import JsonPath, format_path
from ...call_recorder import current_call_recorder
from ...errors import message_of

DEFAULT_APP_NAME = "evaltui"
DEFAULT_USER_ID = "test_user_id"
# Its own, which nobody seeds: an agent may seed that of all to be repeatable.
_RANDOM = random.Random()


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
    version: str = ""
    """Of the framework, with its package: `google-adk 2.13.0`; "" where it is none."""
    model: str = ""
    tools: tuple[ToolInfo, ...] = ()
    sub_agents: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unrecorded: str = ""
    """Why none of its model and tool calls is seen where it happens, so that none can be recorded, replayed
    or stubbed: a clause; "" where they are seen."""
    places: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """File and first line of tools that are functions, by the tool's name."""


def source_places(functions: Mapping[str, Any]) -> dict[str, tuple[str, int]]:
    """Where functions are defined, those that are written in Python."""
    places = {}
    for name, function in functions.items():
        while isinstance(function, functools.partial):
            function = function.func
        code = getattr(inspect.unwrap(function), "__code__", None)
        if code is not None:
            places[name] = code.co_filename, code.co_firstlineno
    return places


@dataclass(frozen=True)
class SessionSpec:
    """Where a conversation starts. Empty names mean the adapter's defaults; `state` is the initial state."""

    app_name: str = ""
    user_id: str = ""
    session_id: str = ""
    state: Json = field(default_factory=dict)


_SESSION_NAMES = ("app_name", "user_id", "session_id")
TEXTS_AND_FILES = ("text", "inline_data", "file_data", "function_response")
"""Parts of a message that every framework takes."""


@dataclass(frozen=True)
class AgentInput:
    """Input of a case that a kind of agent takes; all of it by default."""

    kind: str = "the agent"
    """Of the agent, for messages, with its article."""
    state: bool = True
    session: tuple[str, ...] = _SESSION_NAMES
    parts: tuple[str, ...] | None = None
    """Kinds of message parts; None for all that genai has."""

    @property
    def not_passed_on(self) -> tuple[str, ...]:
        """Names that a session input must have although the agent has no place for them."""
        return tuple(name for name in ("app_name", "user_id") if name not in self.session)

    def require_session(self, spec: SessionSpec, past: Sequence[Step]) -> None:
        """Raises ValueError for a start of a conversation that the agent cannot get."""
        remedy = "Remove it from the case, or run the case with an agent that takes it"
        if spec.state and not self.state:
            keys = ", ".join(spec.state)
            raise ValueError(f"the session state ({keys}) cannot be set: {self.kind} takes none. {remedy}")
        if spec.session_id and "session_id" not in self.session:
            raise ValueError(
                f"the session id {spec.session_id!r} cannot be set: {self.kind} takes none. {remedy}"
            )
        for step in past:
            if step.author == "user":
                self.require_message(step.content or {})

    def require_message(self, content: Json) -> None:
        """Raises ValueError for a message with a part that the agent cannot get."""
        if self.parts is None:
            return
        for number, part in enumerate(content.get("parts") or []):
            for name, value in part.items():
                if name not in self.parts and value not in (None, False):
                    raise ValueError(
                        f"part {number + 1} of the message has {name}: {self.kind} takes "
                        f"{', '.join(self.parts)}. Remove it from the message"
                    )


def made_event_id() -> str:
    """An id that no other event has."""
    return f"{_RANDOM.getrandbits(48):012x}"


class Reporter:
    """Takes what an adapter reports of one conversation and hands it on as events.

    The adapter gives steps and single events; ids, turn and order are filled in here. The host fills in
    case, repeat, sequence and time. Without `sees_calls`, the model calls of the agent are not seen where
    they happen, which the user's messages then say.
    """

    def __init__(self, sink: Callable[[Event], None], *, sees_calls: bool = True) -> None:
        self._sink = sink
        self._sees_calls = sees_calls
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
        marks: Json = {"nested": True} if inside else {}
        if kind == "user" and not self._sees_calls:
            marks["untold"] = [MODEL_CALLS]
        event_id = id or made_event_id()
        self._sink(
            Event(
                kind,
                content,
                agent=agent,
                data=(data or {}) | marks,
                usage=usage,
                branch=branch,
                duration=duration,
                id=event_id,
                parent=parent or inside or "",
                turn=self.turn,
            )
        )
        return event_id

    def step(self, step: Step, seconds: MutableMapping[str, float] | None = None) -> None:
        """Report a step of the framework; inside a running tool call it is marked as nested.

        Results of calls are reported with how long these took, which is taken out of `seconds`, and whether
        they were stubbed.
        """
        recorder = current_call_recorder.get()
        for event in split(step):
            is_result = event.kind == "tool_result"
            self.event(
                event.kind,
                event.content,
                agent=event.agent,
                data=event.data | (recorder.stub_mark(event.parent) if recorder and is_result else {}),
                usage=event.usage,
                branch=event.branch,
                duration=seconds.pop(event.parent, None) if seconds and is_result else None,
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


# What ended the calls of the current turn that were running when it was cancelled.
cancelled_calls: ContextVar[list[asyncio.CancelledError] | None] = ContextVar(
    "evaltui_cancelled", default=None
)


@contextmanager
def recording(reporter: Reporter) -> Iterator[None]:
    """Everything that this task and its children report goes to `reporter`.

    A cancellation, such as a time-out, names the call that was running: frameworks make calls in tasks of
    their own, of which the traceback of a turn knows nothing.
    """
    inside: list[asyncio.CancelledError] = []
    tokens = current_reporter.set(reporter), cancelled_calls.set(inside), nested_in.set(None)
    try:
        yield
    except asyncio.CancelledError as error:
        if inside and inside[0] is not error:
            raise error from inside[0]
        raise
    finally:
        current_reporter.reset(tokens[0])
        cancelled_calls.reset(tokens[1])
        nested_in.reset(tokens[2])


def step_numbers(past: Sequence[Step]) -> Iterator[int]:
    """Numbers for ids `step-N` that no step of `past` has."""
    return _numbers_after("step-", (step.id for step in past))


class Steps:
    """Reports the steps of one conversation, each with what has changed of the state since the one before.

    `state` gives a copy of the state as it is now. `seconds` is how long calls took, by their ids.
    """

    def __init__(self, reporter: Reporter, past: Sequence[Step], state: Callable[[], Json]) -> None:
        self.reporter = reporter
        self.seconds: dict[str, float] = {}
        self._numbers = step_numbers(past)
        self._now = state
        self._reported = state()

    def report(self, agent: str, content: Json | None, **more: Any) -> None:
        """Reports a step; `more` are further fields of `Step`."""
        before = self._reported
        # What happens inside a call does to the state is part of what that call does.
        if nested_in.get() is None:
            self._reported = self._now()
        changes = {
            "state": state_delta(before, self._reported) or None,
            "removed": removed_keys(before, self._reported),
        }
        step_id = f"step-{next(self._numbers)}"
        step = Step(author=agent, content=content, id=step_id, timestamp=time.time(), **changes | more)
        self.reporter.step(step, self.seconds)

    def report_late_changes(self, agent: str) -> None:
        """Instructions that are functions may change the state, too."""
        if self._now() != self._reported:
            self.report(agent, None)


class AgentSession(Protocol):
    """One conversation with its own state."""

    async def send(self, content: Json) -> None:
        """Take one user message (a genai Content as JSON) through to the end of the turn.

        Everything that happens is reported to the recorder; the user's message itself is reported by the
        host. Raises whatever the agent raises.
        """
        ...

    async def state(self) -> Json | None:
        """The session state now; None where nobody knows."""
        ...

    async def close(self) -> None: ...


class AgentAdapter(Protocol):
    """An imported agent, ready to talk."""

    @property
    def input(self) -> AgentInput:
        """Nothing else of a case gets here."""
        ...

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


async def close_quietly(name: str, close: Callable[[], Awaitable[object]]) -> None:
    """An error is written to stderr: the results are in by then."""
    try:
        await close()
    except Exception as error:
        sys.stderr.write(f"{name} could not be closed: {type(error).__name__}: {message_of(error)}\n")


def confirmation(call_id: str, original: Json, hint: str = "") -> Json:
    """A call that asks a person to confirm another call, as in ADK."""
    args = {"originalFunctionCall": original, "toolConfirmation": {"hint": hint, "confirmed": False}}
    return {"id": call_id, "name": CONFIRMATION, "args": args}


def plain_json(value: Any) -> Json:
    """A genai model as JSON, snake_case and without nulls. Raises pydantic's error for the unserialisable."""
    dumped: Json = value.model_dump(mode="json", exclude_none=True)
    return dumped


def plain_copy(value: Any, path: JsonPath) -> Any:
    """A deep copy of JSON data; tuples become lists. NaN and infinities stay: the protocol knows them.

    Raises TypeError for what JSON cannot hold, and says where it is: `path` is the place of `value`.
    """
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, list | tuple):
        return [plain_copy(item, (*path, index)) for index, item in enumerate(value)]
    if isinstance(value, dict):
        return {_text_key(key, path): plain_copy(item, (*path, key)) for key, item in value.items()}
    raise TypeError(f"{format_path(path)} is a {type(value).__name__}, which JSON cannot hold")


def _text_key(key: object, path: JsonPath) -> str:
    if isinstance(key, str):
        return key
    raise TypeError(f"{format_path(path)} has the key {key!r}, but JSON keys are strings")


def copy_state(state: Json) -> Json:
    """Raises TypeError that names the key whose value JSON cannot hold."""
    copied: Json = plain_copy(state, ("state",))
    return copied


def state_delta(before: Json, after: Json) -> Json:
    """The top-level keys that were set, with their new values; a key that was removed is null."""
    changed = {key: value for key, value in after.items() if key not in before or before[key] != value}
    return changed | dict.fromkeys(removed_keys(before, after))


def removed_keys(before: Json, after: Json) -> tuple[str, ...]:
    return tuple(key for key in before if key not in after)


def state_after(state: Json, past: Sequence[Step]) -> Json:
    """A copy of `state`, changed as the steps of `past` changed it."""
    changed = copy_state(state)
    for step in past:
        changed |= copy_state(step.state or {})
        for key in step.removed:
            changed.pop(key, None)
    return changed


def call_numbers(past: Sequence[Step]) -> Iterator[int]:
    """Numbers for ids `call-N` that no call of `past` has."""
    return _numbers_after("call-", (call_of(part).get("id") or "" for step in past for part in step.parts))


def _numbers_after(prefix: str, ids: Iterable[str]) -> Iterator[int]:
    matches = (re.fullmatch(prefix + r"(\d{1,9})", one) for one in ids)
    return count(1 + max((int(match[1]) for match in matches if match), default=0))


def call_of(part: Json) -> Json:
    """The call or the result that a part is; `{}` where it is neither."""
    call: Json = part.get("function_call") or part.get("function_response") or {}
    return call


def content_of(step: Step) -> Json | None:
    """The content of a step, with the role of whose it is where it has none."""
    if not step.content:
        return None
    users = step.author == "user" or any("function_response" in part for part in step.parts)
    return {"role": "user" if users else "model"} | step.content


def contents_of(past: Sequence[Step]) -> list[Json]:
    """What was said, called and returned, in order."""
    return [content for step in past if (content := content_of(step))]


def contents_for_model(past: Sequence[Step]) -> list[Json]:
    """The contents of `past` as a model takes them. Ids that its calls were given afterwards are not known to
    it."""
    contents: list[Json] = []
    for step, parts in paired_parts(past):
        content = content_of(step)
        if content and (parts or not step.parts):
            contents.append(content | {"parts": [_without_made_id(part) for part in parts]})
    return contents


def _call_ids(past: Sequence[Step], kind: str) -> set[tuple[int | None, str | None]]:
    return {(step.turn, part[kind].get("id")) for step in past for part in step.parts if kind in part}


def paired_parts(past: Sequence[Step]) -> Iterator[tuple[Step, list[Json]]]:
    """Each step with its parts, but for calls without results and results without calls: models refuse
    them, and an expected turn may well have such."""
    answered = _call_ids(past, "function_call") & _call_ids(past, "function_response")
    for step in past:
        yield (
            step,
            [
                part
                for part in step.parts
                if not _is_call(part) or (step.turn, call_of(part).get("id")) in answered
            ],
        )


def _is_call(part: Json) -> bool:
    return "function_call" in part or "function_response" in part


def _without_made_id(part: Json) -> Json:
    call = call_of(part)
    if not is_made_id(call.get("id") or ""):
        return part
    kind = "function_call" if "function_call" in part else "function_response"
    return part | {kind: {name: value for name, value in call.items() if name != "id"}}
