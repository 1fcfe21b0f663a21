"""The interface of adapters, and the reporter that they send events to."""

from __future__ import annotations

import asyncio
import functools
import inspect
import random
import re
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from ...core.conversation.waiting import CONFIRMATION, REQUESTS
from ...core.model.events import (
    MODEL_CALLS,
    Event,
    Json,
    Kind,
    Step,
    is_made_id,
    parts_in,
    split_step,
    with_own_id,
)
from ...core.model.problems import JsonPath, format_path
from ..errors import message_of

DEFAULT_APP_NAME = "evaltui"
DEFAULT_USER_ID = "test_user_id"
# A generator of its own, since an agent may seed the global one to be repeatable.
_RANDOM = random.Random()


class AgentLoadError(Exception):
    """The agent cannot be used; the message says what to do."""


@dataclass(frozen=True)
class ToolInfo:
    """A tool as the agent declares it; `parameters` is a JSON schema where the framework gives one."""

    name: str
    description: str = ""
    parameters: Json | None = None


@dataclass(frozen=True)
class AgentInfo:
    """The description of an imported agent, for headers, completion and reports."""

    name: str
    framework: str
    version: str = ""
    """The framework's package and version, `google-adk 2.13.0`; "" without a framework."""
    model: str = ""
    tools: tuple[ToolInfo, ...] = ()
    sub_agents: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unrecorded: str = ""
    """Why its model and tool calls are not seen, so that they cannot be recorded, replayed or stubbed: a
    clause; "" where they are seen."""
    places: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """File and first line of tools that are functions, by the tool's name."""


def source_places(functions: Mapping[str, Any]) -> dict[str, tuple[str, int]]:
    """File and first line of functions that are written in Python, by name."""
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
    """The start of a conversation. Empty names mean the adapter's defaults; `state` is the initial state."""

    app_name: str = ""
    user_id: str = ""
    session_id: str = ""
    state: Json = field(default_factory=dict)


_SESSION_NAMES = ("app_name", "user_id", "session_id")
TEXTS_AND_FILES = ("text", "inline_data", "file_data", "function_response")
"""Kinds of message parts that every framework accepts."""


@dataclass(frozen=True)
class AgentInput:
    """The input that a kind of agent accepts from a case; all of it by default."""

    kind: str = "the agent"
    """The kind of agent with its article, for error messages."""
    state: bool = True
    session: tuple[str, ...] = _SESSION_NAMES
    parts: tuple[str, ...] | None = None
    """The accepted kinds of message parts; None for all kinds of genai."""
    temporary_state: bool = True
    """Whether a session starts with `temp:` keys."""

    @property
    def not_passed_on(self) -> tuple[str, ...]:
        """Names that a session input must have although the agent does not use them."""
        return tuple(name for name in ("app_name", "user_id") if name not in self.session)

    def require_session(self, spec: SessionSpec, past: Sequence[Step]) -> None:
        """Checks the start of a conversation. Raises ValueError for input that the agent does not accept."""
        remedy = "Remove it from the case, or run the case with an agent that takes it"
        if spec.state and not self.state:
            keys = ", ".join(spec.state)
            raise ValueError(f"the session state ({keys}) cannot be set: {self.kind} takes none. {remedy}")
        if spec.session_id and "session_id" not in self.session:
            raise ValueError(
                f"the session id {spec.session_id!r} cannot be set: {self.kind} takes none. {remedy}"
            )
        temporary = [key for key in spec.state if key.startswith("temp:")]
        if temporary and not self.temporary_state:
            keys = ", ".join(temporary)
            raise ValueError(f"the session state ({keys}) cannot be set: {self.kind} drops it. {remedy}")
        for step in past:
            if step.author == "user":
                self.require_message(step.content or {})

    def require_message(self, content: Json) -> None:
        """Checks a message. Raises ValueError for a part that the agent does not accept."""
        if self.parts is None:
            return
        for number, part in enumerate(parts_in(content)):
            for name, value in part.items():
                if name not in self.parts and value not in (None, False):
                    raise ValueError(
                        f"part {number + 1} of the message has {name}: {self.kind} takes "
                        f"{', '.join(self.parts)}. Remove it from the message"
                    )


def new_event_id() -> str:
    """A unique event id."""
    return f"{_RANDOM.getrandbits(48):012x}"


class Reporter:
    """Sends the steps and events of one conversation to the host.

    The adapter reports steps and single events; ids, turn and order are filled in here. The host fills in
    case, repeat, sequence and time. Without `sees_calls`, the agent's model calls are not seen, which the
    events of the user's messages then say.
    """

    def __init__(self, sink: Callable[[Event], None], *, sees_calls: bool = True) -> None:
        self._sink = sink
        self._sees_calls = sees_calls
        self._step_ids: set[str] = set()
        self.turn: int | None = None
        self.seconds: dict[str, float] = {}
        """The duration of each call by its id, until its result is reported."""
        self.stubbed: dict[str, Json] = {}
        """Data of the results of stubbed calls, by their ids: their source, `recording` or `case`, and the
        number of model calls that the recorded call made."""
        self.sent: dict[str, Sequence[Json]] = {}
        """The contents of the last model request by agent: a request repeats the whole history, its event
        does not."""
        self.cancelled: list[asyncio.CancelledError] = []
        """The errors of the calls that were running when the current turn was cancelled."""

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
        """Reports an event, nested in the tool call that this task works for, if any. Returns the event's
        id."""
        inside = nested_in.get()
        marks: Json = {"nested": True} if inside else {}
        if kind == "user" and not self._sees_calls:
            marks["untold"] = [MODEL_CALLS]
        event_id = id or new_event_id()
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

    def step(self, step: Step) -> None:
        """Reports a step of the framework; inside a running tool call it is marked as nested.

        The results of calls get their duration, and whether they were stubbed.
        """
        for event in split_step(with_own_id(step, self._step_ids)):
            data, duration = event.data, None
            if event.kind == "tool_result":
                duration = self.seconds.pop(event.parent, None)
                data = data | self.stubbed.get(event.parent, {})
            self.event(
                event.kind,
                event.content,
                agent=event.agent,
                data=data,
                usage=event.usage,
                branch=event.branch,
                duration=duration,
                id=event.id,
                parent=event.parent,
            )


# The reporter of the conversation that the current task works for, for wrapped models and tools.
current_reporter: ContextVar[Reporter | None] = ContextVar("evaltui_recorder", default=None)
# The event id of the tool call that the current task works for, when the tool runs an agent of its own.
nested_in: ContextVar[str | None] = ContextVar("evaltui_nested_in", default=None)


@contextmanager
def recording(reporter: Reporter) -> Iterator[None]:
    """Sends all reports of this task and its children to `reporter`.

    A cancellation, such as a time-out, is chained to the call that was running: frameworks make calls in
    tasks of their own, which the traceback of a turn does not show.
    """
    reporter.cancelled.clear()
    tokens = current_reporter.set(reporter), nested_in.set(None)
    try:
        yield
    except asyncio.CancelledError as error:
        if reporter.cancelled and reporter.cancelled[0] is not error:
            raise error from reporter.cancelled[0]
        raise
    finally:
        current_reporter.reset(tokens[0])
        nested_in.reset(tokens[1])


def step_numbers(past: Sequence[Step]) -> Iterator[int]:
    """Numbers for ids `step-N` that are not used in `past`."""
    return _numbers_after("step-", (step.id for step in past))


class Steps:
    """Reports the steps of one conversation, each with the changes of state since the step before.

    `state` returns a copy of the current state.
    """

    def __init__(self, reporter: Reporter, past: Sequence[Step], state: Callable[[], Json]) -> None:
        self.reporter = reporter
        self._numbers = step_numbers(past)
        self._current_state = state
        self._reported = state()

    def report(self, agent: str, content: Json | None, **more: Any) -> str:
        """Reports a step; `more` are further fields of `Step`. Returns the id of the step."""
        before = self._reported
        # Changes of state inside a call belong to that call.
        if nested_in.get() is None:
            self._reported = self._current_state()
        changes = {
            "state": state_delta(before, self._reported) or None,
            "removed": removed_keys(before, self._reported),
        }
        step_id = f"step-{next(self._numbers)}"
        step = Step(author=agent, content=content, id=step_id, timestamp=time.time(), **changes | more)
        self.reporter.step(step)
        return step_id

    def report_late_changes(self, agent: str) -> None:
        """Reports changes of state after the last step, such as of an instruction that is a function."""
        if self._current_state() != self._reported:
            self.report(agent, None)


class AgentSession(ABC):
    """A conversation with an agent, with its own state."""

    @abstractmethod
    async def send(self, content: Json) -> None:
        """Sends a user message (a genai Content as JSON) and runs the turn to its end.

        All events are reported to the reporter, but the user's message, which the host reports. Raises any
        error of the agent.
        """

    @abstractmethod
    async def state(self) -> Json | None:
        """The current session state; None where it is unknown."""

    async def close(self) -> None:  # noqa: B027
        """Ends the session, where that is needed."""


class AgentAdapter(ABC):
    """An imported agent that can run conversations."""

    input = AgentInput()
    """The input that the agent accepts; the host refuses other input."""

    @abstractmethod
    async def open(self) -> AgentInfo:
        """Opens connections that live as long as the host. Called once, in the task that will also call
        `close`."""

    @abstractmethod
    async def new_session(
        self, spec: SessionSpec, reporter: Reporter, past: Sequence[Step] = ()
    ) -> AgentSession:
        """A session that continues from `past`: steps of whole turns in order, the user's messages included,
        each with its `turn`.

        The steps are not run again. Their changes of state are applied to `spec.state`, and new ids in the
        session differ from theirs.
        """

    async def close(self) -> None:  # noqa: B027
        """Closes what `open` has opened."""


async def close_quietly(name: str, close: Callable[[], Awaitable[object]]) -> None:
    """Closes something; an error is written to stderr only, since the results are complete by then."""
    try:
        await close()
    except Exception as error:
        sys.stderr.write(f"{name} could not be closed: {type(error).__name__}: {message_of(error)}\n")


def confirmation(call_id: str, original: Json, hint: str = "") -> Json:
    """A function call that asks a person to confirm another call, as in ADK."""
    args = {"originalFunctionCall": original, "toolConfirmation": {"hint": hint, "confirmed": False}}
    return {"id": call_id, "name": CONFIRMATION, "args": args}


def plain_json(value: Any) -> Json:
    """A genai model as JSON, in snake_case and without nulls. Raises pydantic's error for values that JSON
    cannot hold."""
    dumped: Json = value.model_dump(mode="json", exclude_none=True)
    return dumped


def plain_copy(value: Any, path: JsonPath) -> Any:
    """A deep copy of JSON data; tuples become lists. NaN and infinities stay, since the protocol allows them.

    Raises TypeError for a value that JSON cannot hold; the message names its path, `path` being that of
    `value`.
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
    """A deep copy of session state. Raises TypeError, naming the key of a value that JSON cannot hold."""
    copied: Json = plain_copy(state, ("state",))
    return copied


def state_delta(before: Json, after: Json) -> Json:
    """The top-level keys that were set, with their new values; a removed key is null."""
    changed = {key: value for key, value in after.items() if key not in before or before[key] != value}
    return changed | dict.fromkeys(removed_keys(before, after))


def removed_keys(before: Json, after: Json) -> tuple[str, ...]:
    return tuple(key for key in before if key not in after)


def state_after(state: Json, past: Sequence[Step]) -> Json:
    """A copy of `state` with the changes of the steps of `past`."""
    after = copy_state(state)
    for step in past:
        apply_changes(after, copy_state(step.state or {}), step.removed)
    return after


def apply_changes(state: Json, changed: Json, removed: Iterable[str]) -> None:
    state.update(changed)
    for key in removed:
        state.pop(key, None)


def call_numbers(past: Sequence[Step]) -> Iterator[int]:
    """Numbers for ids `call-N` that are not used in `past`."""
    return _numbers_after("call-", (call_of(part).get("id") or "" for step in past for part in step.parts))


def _numbers_after(prefix: str, ids: Iterable[str]) -> Iterator[int]:
    matches = (re.fullmatch(prefix + r"(\d{1,9})", used_id) for used_id in ids)
    return count(1 + max((int(match[1]) for match in matches if match), default=0))


def call_of(part: Json) -> Json:
    """The function call or function response in a part; `{}` for another part."""
    call: Json = part.get("function_call") or part.get("function_response") or {}
    return call


def content_of(step: Step) -> Json | None:
    """The content of a step, with the author's role where it has none."""
    if not step.content:
        return None
    users = step.author == "user" or any("function_response" in part for part in step.parts)
    return {"role": "user" if users else "model"} | step.content


def contents_of(past: Sequence[Step]) -> list[Json]:
    """The messages, calls and results of a past, in order."""
    return [content for step in past if (content := content_of(step))]


def contents_for_model(past: Sequence[Step]) -> list[Json]:
    """The contents of `past` for a request to a model, without ids that evaltui added to its calls."""
    contents: list[Json] = []
    for step, parts in paired_parts(past):
        content = content_of(step)
        if content and (parts or not step.parts):
            contents.append(content | {"parts": [_without_made_id(part) for part in parts]})
    return contents


def paired_parts(past: Sequence[Step], waiting: Collection[str] = ()) -> Iterator[tuple[Step, list[Json]]]:
    """Each step with its parts, without calls that have no result, unless their ids are in `waiting`, and
    results that have no call: models refuse them, and expected turns may have such."""
    calls, results = (
        {(step.turn, part[kind].get("id")) for step in past for part in step.parts if kind in part}
        for kind in ("function_call", "function_response")
    )
    for step in past:
        parts = []
        for part in step.parts:
            place = step.turn, call_of(part).get("id")
            if not call_of(part) or (place in calls and (place in results or place[1] in waiting)):
                parts.append(part)
        yield step, parts


def history(
    past: Sequence[Step], waiting: Collection[str] = ()
) -> Iterator[tuple[str, list[Json], list[Json]]]:
    """The role, the results and the other parts of each content of `past`, to continue from: without
    thoughts, requests to a person, and calls and results without the other, see `paired_parts`."""
    for step, parts in paired_parts(past, waiting):
        if content := content_of(step):
            shown = [
                part
                for part in parts
                if not part.get("thought") and call_of(part).get("name") not in REQUESTS
            ]
            results = [part["function_response"] for part in shown if "function_response" in part]
            yield content["role"], results, [part for part in shown if "function_response" not in part]


def _without_made_id(part: Json) -> Json:
    call = call_of(part)
    if not is_made_id(call.get("id") or ""):
        return part
    kind = "function_call" if "function_call" in part else "function_response"
    return part | {kind: {name: value for name, value in call.items() if name != "id"}}
