"""Tool calls of an ADK agent through the call recorder of the case, at the tool itself.

`run_async` is wrapped on each class of tool, not through callbacks: those of the agent and its plugins run
before and after a stubbed call, too, and tools that code of the agent calls directly are seen as well.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar
from typing import Any

from google.adk.tools.base_tool import BaseTool

from evaltui.core.model.events import Json
from evaltui.runner.call_recorder import ToolOutcome, current_call_recorder

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
