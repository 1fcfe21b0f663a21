"""Tool calls of an ADK agent: how long each took, and what happens inside it.

A tool may run an agent of its own (`AgentTool`, or a tool that builds a `Runner`). The events of such a run
reach nobody but the tool, so `Runner.run_async` is wrapped to report them as they pass.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

from google.adk.events.event import Event
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext

from .....core.model.events import Json, split
from ....call_recorder import ToolOutcome, current_call_recorder
from ..base import Reporter, current_reporter, nested_in
from .events import step_of

# Seconds that each call took, by call id, until its result is reported.
_spent: WeakKeyDictionary[Reporter, dict[str, float]] = WeakKeyDictionary()


def report(reporter: Reporter, event: Event) -> None:
    """Hand one ADK event on. Raises TypeError for a content that cannot be written as JSON."""
    if event.author == "user" and not event.get_function_responses():
        return
    spent, recorder = _spent.get(reporter, {}), current_call_recorder.get()
    for part in split(step_of(event)):
        mark = recorder.stub_mark(part.parent) if recorder and part.kind == "tool_result" else {}
        reporter.event(
            part.kind,
            part.content,
            agent=part.agent,
            data=part.data | mark,
            usage=part.usage,
            branch=part.branch,
            duration=spent.pop(part.parent, None) if part.kind == "tool_result" else None,
            id=part.id,
            parent=part.parent,
        )


class ToolWatch(BasePlugin):
    """Times tool calls and marks what runs inside them.

    ADK runs each call in a task of its own, so parallel calls have contexts of their own.
    """

    def __init__(self) -> None:
        super().__init__(name="evaltui_tool_watch")
        self._running: dict[int, tuple[float, str | None]] = {}

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> None:
        outer = nested_in.get()
        self._running[id(tool_context)] = (time.perf_counter(), outer)
        nested_in.set(tool_context.function_call_id or outer)

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: dict[str, Any]
    ) -> None:
        self._end(tool_context)

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> None:
        self._end(tool_context)

    def _end(self, tool_context: ToolContext) -> None:
        # A failed call that an error callback answers ends twice: its time is that of the failure.
        started = self._running.pop(id(tool_context), None)
        if started is None:
            return
        since, outer = started
        nested_in.set(outer)
        reporter, call_id = current_reporter.get(), tool_context.function_call_id
        if reporter is not None and call_id is not None:
            _spent.setdefault(reporter, {})[call_id] = time.perf_counter() - since


@functools.cache
def watch_nested_runs() -> None:
    """From now on, whatever a runner yields inside a tool call is reported as well."""
    runner: Any = Runner
    runner.run_async = _watched(Runner.run_async)


def _watched(run_async: Callable[..., AsyncGenerator[Event, None]]) -> Any:
    @functools.wraps(run_async)
    def watched(self: Runner, *args: Any, **kwargs: Any) -> AsyncGenerator[Event, None]:
        events = run_async(self, *args, **kwargs)
        reporter = current_reporter.get()
        if reporter is None or nested_in.get() is None:
            return events
        return _reporting(events, reporter)

    return watched


async def _reporting(events: AsyncGenerator[Event, None], reporter: Reporter) -> AsyncGenerator[Event, None]:
    async with aclosing(events):
        async for event in events:
            try:
                report(reporter, event)
            except TypeError as error:
                # Inside a tool such a value harms nobody, so it must not end the user's run.
                reporter.event("error", agent=event.author, data={"message": str(error)})
            yield event


_METHOD = "run_async"
# What a tool asks of ADK itself. Requests for credentials are none of it: there are keys in them.
_ACTIONS = ("skip_summarization", "transfer_to_agent", "transfer_reason", "escalate")

# Parts of the agent that look like tools: they hand over to other agents, whose own calls are recorded, or
# work on the session alone. They run in a replay, unless the config names one.
_PARTS_OF_AGENTS = {
    "google.adk.agents.llm.task._finish_task_tool",
    "google.adk.tools._request_input_tool",
    "google.adk.tools.agent_tool",
    "google.adk.tools.example_tool",
    "google.adk.tools.exit_loop_tool",
    "google.adk.tools.get_user_choice_tool",
    "google.adk.tools.load_artifacts_tool",
    "google.adk.tools.load_memory_tool",
    "google.adk.tools.preload_memory_tool",
    "google.adk.tools.set_model_response_tool",
    "google.adk.tools.transfer_to_agent_tool",
}

_Run = Callable[..., Awaitable[Any]]

# The call that is running: a subclass calls its parent's method, which is the same call.
_running: ContextVar[tuple[BaseTool, object] | None] = ContextVar("evaltui_tool_call", default=None)


@functools.cache
def record_tools() -> None:
    """From now on, calls go through their task's call recorder; those of classes defined later included."""
    base: Any = BaseTool
    for tool in {base, *_subclasses(base)}:
        _wrap(tool)

    def wrap_when_defined(cls: type, /, **kwargs: Any) -> None:
        super(base, cls).__init_subclass__(**kwargs)
        _wrap(cls)

    base.__init_subclass__ = classmethod(wrap_when_defined)


def _subclasses(tool: type[Any]) -> Iterator[type[Any]]:
    for subclass in tool.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _wrap(tool: type) -> None:
    run = vars(tool).get(_METHOD)
    if inspect.iscoroutinefunction(run):
        setattr(tool, _METHOD, _recorded(run))


def _recorded(run: _Run) -> _Run:
    @functools.wraps(run)
    async def recorded(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
        recorder, context = current_call_recorder.get(), kwargs.get("tool_context")
        call = self, context
        if recorder is None or context is None or _running.get() == call:
            return await run(self, *args, **kwargs)
        if _is_part_of_agent(self) and self.name not in recorder.modes.by_tool:
            return await run(self, *args, **kwargs)
        exchange = recorder.tool_call(self.name, kwargs.get("args") or {}, context.function_call_id or "")
        if exchange is None:
            return await run(self, *args, **kwargs)
        exchange.check()
        if exchange.recorded is not None:
            context.state.update(exchange.recorded.state)
            for name, value in exchange.recorded.actions.items():
                setattr(context.actions, name, value)
            return exchange.end()
        before = dict(context.actions.state_delta)
        token = _running.set(call)
        try:
            result = await run(self, *args, **kwargs)
        except Exception as error:
            exchange.keep(_outcome(before, context.actions, error=error))
            raise
        finally:
            _running.reset(token)
        exchange.keep(_outcome(before, context.actions, result=result))
        return result

    return recorded


def _is_part_of_agent(tool: BaseTool) -> bool:
    homes = {kind.__module__ for kind in type(tool).__mro__}
    homes.add(getattr(getattr(tool, "func", None), "__module__", ""))
    return not homes.isdisjoint(_PARTS_OF_AGENTS)


def _outcome(before: Json, actions: Any, **came: Any) -> ToolOutcome:
    changed = actions.state_delta.items()
    asked = {name: getattr(actions, name, None) for name in _ACTIONS}
    return ToolOutcome(
        state={key: value for key, value in changed if key not in before or before[key] != value},
        actions={name: value for name, value in asked.items() if value is not None},
        **came,
    )
