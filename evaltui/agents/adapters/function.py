"""Runs an agent that is any callable `agent(message, session)`.

It may be sync, async, a generator or an async generator, and returns or yields text or `evaltui.events`
values. Consecutive pieces of yielded text are one text. The last text of a turn is its answer.
"""

from __future__ import annotations

import inspect
import json
import uuid
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from contextvars import Context, copy_context
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...core.model.events import Event, Json, Step, message_text, parts_in, text
from ..threads import in_thread
from .base import (
    DEFAULT_APP_NAME,
    DEFAULT_USER_ID,
    AgentAdapter,
    AgentInfo,
    AgentLoadError,
    AgentSession,
    Reporter,
    SessionSpec,
    Steps,
    call_numbers,
    contents_of,
    copy_state,
    plain_copy,
    state_after,
)

if TYPE_CHECKING:
    from google.genai import types

_YIELDED = ("text", "tool_call", "tool_result", "transfer")
_END = object()


class FunctionAdapter(AgentAdapter):
    """The adapter for agents that are a callable; `name` is the agent's name."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._function = function
        self._name = name

    async def open(self) -> AgentInfo:
        """Describes the agent. Raises AgentLoadError where the callable does not accept a message and a
        session."""
        try:
            inspect.signature(self._function).bind("message", "session")
        except TypeError as error:
            raise AgentLoadError(
                f"{self._name} cannot be called as {self._name}(message, session): {error}. "
                "An agent that is a function takes the user's message and the session."
            ) from error
        return AgentInfo(
            name=self._name,
            framework="function",
            unrecorded="the agent is a callable and calls its models and tools itself",
        )

    async def new_session(
        self, spec: SessionSpec, reporter: Reporter, past: Sequence[Step] = ()
    ) -> AgentSession:
        return FunctionSession(self._function, self._name, spec, reporter, past)


class Session:
    """The conversation, for the agent. `state` is kept between turns: change it freely."""

    def __init__(self, spec: SessionSpec, past: Sequence[Step]) -> None:
        self.id = spec.session_id or uuid.uuid4().hex
        self.user_id = spec.user_id or DEFAULT_USER_ID
        self.app_name = spec.app_name or DEFAULT_APP_NAME
        self.state = state_after(spec.state, past)
        self._past = contents_of(past)
        self._message: Json = {}

    @property
    def content(self) -> types.Content:
        """The user's complete message, with its files and images."""
        return _genai_content(self._message)

    @property
    def history(self) -> list[types.Content]:
        """The messages, calls and results of the turns before this one."""
        return [_genai_content(content) for content in self._past]


def _genai_content(content: Json) -> types.Content:
    # Imported only for agents that use content or history, since the import takes 0.4 s.
    try:
        from google.genai import types
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "session.content and session.history are those of google-genai, which is not installed for this "
            "Python: pip install google-genai",
            name=error.name,
        ) from error

    return types.Content.model_validate_json(json.dumps(content))


class FunctionSession(AgentSession):
    """One conversation; blocking code runs in a thread of its own."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        spec: SessionSpec,
        reporter: Reporter,
        past: Sequence[Step],
    ) -> None:
        self._function = function
        self._name = name
        self._session = Session(spec, past)
        self._steps = Steps(reporter, past, lambda: copy_state(self._session.state))
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._call_numbers = call_numbers(past)

    async def send(self, content: Json) -> None:
        """Runs a turn. Raises what the agent raises, and TypeError for a value that it must not return or
        yield."""
        self._session._message = {"role": "user"} | content
        turn = _Turn(self._name, self._steps, self._call_numbers)
        context = copy_context()
        # The returned value shows the kind of callable, also where it is wrapped.
        result = await self._in_thread(context, self._function, message_text(content), self._session)
        if isinstance(result, AsyncGenerator | Generator):
            async with aclosing(self._values(result, context)) as values:
                async for value in values:
                    turn.add_piece(value)
        else:
            if inspect.isawaitable(result):
                result = await result
            if result is not None:
                turn.add(result)
        turn.end()
        self._session._past += [self._session._message, *turn.contents]

    async def state(self) -> Json:
        return copy_state(self._session.state)

    async def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, context: Context, function: Callable[..., Any], *args: Any) -> Any:
        return await in_thread(function, *args, executor=self._thread, context=context)

    async def _values(
        self, generator: AsyncGenerator[Any] | Generator[Any], context: Context
    ) -> AsyncGenerator[Any]:
        if isinstance(generator, AsyncGenerator):
            async with aclosing(generator):
                async for value in generator:
                    yield value
            return
        try:
            while (value := await self._in_thread(context, next, generator, _END)) is not _END:
                yield value
        finally:
            self._thread.submit(generator.close)


class _Turn:
    """Reports the values of one turn as steps. `contents` are its part of the history."""

    def __init__(self, agent: str, steps: Steps, call_numbers: Iterator[int]) -> None:
        self.contents: list[Json] = []
        self._agent = agent
        self._steps = steps
        self._call_numbers = call_numbers
        self._pieces: list[str] = []
        self._open_calls: list[tuple[str, str]] = []

    def add_piece(self, value: object) -> None:
        """Adds a yielded value: text is also shown at once, as a partial event."""
        if isinstance(value, str) and value:
            content = text(value).content
            self._steps.reporter.event("text", content, agent=self._agent, data={"partial": True})
        self.add(value)

    def add(self, value: object) -> None:
        if isinstance(value, str):
            self._pieces.append(value)
        elif isinstance(value, Event):
            self._end_text()
            self._add_event(value)
        else:
            raise TypeError(
                f"{self._agent} returned or yielded a {type(value).__name__} ({value!r}); "
                "an agent that is a function returns or yields str or the values of evaltui.events"
            )

    def end(self) -> None:
        self._end_text()
        self._steps.report_late_changes(self._agent)

    def _end_text(self) -> None:
        if message := "".join(self._pieces):
            self._report(text(message))
        self._pieces = []

    def _add_event(self, event: Event) -> None:
        if event.kind not in _YIELDED:
            raise ValueError(
                f"{self._agent} yielded an event of kind {event.kind!r}; "
                f"it may yield those of evaltui.events: {', '.join(_YIELDED)}"
            )
        content: Json | None = plain_copy(event.content, (event.kind,))
        for part in parts_in(content):
            if call := part.get("function_call"):
                call["id"] = call.get("id") or f"call-{next(self._call_numbers)}"
                self._open_calls.append((call["name"], call["id"]))
            elif result := part.get("function_response"):
                self._pair(result)
        self._report(replace(event, content=content))

    def _pair(self, result: Json) -> None:
        """Gives a result without an id the id of the earliest open call of its tool."""
        for name, call_id in self._open_calls:
            if name == result["name"] and result.get("id") in (None, call_id):
                result["id"] = call_id
                self._open_calls.remove((name, call_id))
                return

    def _report(self, event: Event) -> None:
        if event.content is not None:
            self.contents.append(event.content)
        self._steps.report(
            event.agent or self._agent,
            event.content,
            final=event.kind == "text",
            branch=event.branch,
            transfer=event.data.get("to") if event.kind == "transfer" else None,
        )
