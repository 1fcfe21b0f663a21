"""Function tools of the Agents SDK: what they are, and each call of one through the call recorder."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from typing import Any, get_args, get_origin, get_type_hints

from agents import (
    FunctionTool,
    Handoff,
    ItemHelpers,
    RunContextWrapper,
    ToolErrorFormatterArgs,
    handoff,
)
from agents.tool_context import ToolContext

from .....core.model.events import Json
from .....core.recordings.entry import ToolCall
from ....call_recorder import ToolOutcome
from ....errors import describe_error
from ..base import ToolInfo, current_reporter, nested_in, removed_keys, state_delta
from ..frameworks.tools import call_tool, response_of, result_of
from .items import arguments_of
from .log import ConversationLog, current_log

_Invoke = Callable[..., Awaitable[Any]]

# What the SDK shows of a result to a model, where that is not the text of what is recorded.
_SHOWN = "shown"
# The call that is running: a subclass calls its parent's method, which is the same call.
_running: ContextVar[object] = ContextVar("evaltui_agents_tool_call", default=None)
_WATCHED = "__evaltui_watched__"


def watch_tool(tool: object) -> None:
    """From now on, calls of the tool go through their task's call recorder.

    Where the SDK calls an object of its own that wraps the function, the class of that object is watched: the
    SDK looks at the object, and its kind, when it decides on approvals.
    """
    if not isinstance(tool, FunctionTool):
        return
    invoke, kind = tool.on_invoke_tool, type(tool.on_invoke_tool)
    if hasattr(invoke, _WATCHED) or hasattr(kind.__call__, _WATCHED):
        return
    if inspect.isfunction(kind.__call__):
        kind.__call__ = _watched(kind.__call__, lambda args: args[1:])
    else:
        tool.on_invoke_tool = _watched(invoke, lambda args: args)


def _watched(invoke: _Invoke, given: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> _Invoke:
    async def watched(*args: Any) -> Any:
        context, arguments = given(args)
        log = current_log.get()
        if log is None or not isinstance(context, ToolContext) or _running.get() is context:
            return await invoke(*args)
        token = _running.set(context)
        try:
            return await _call(log, context, arguments, functools.partial(invoke, *args))
        finally:
            _running.reset(token)

    # A partial function has no name.
    functools.update_wrapper(watched, invoke)
    setattr(watched, _WATCHED, True)
    return watched


async def _call(
    log: ConversationLog, context: ToolContext[Any], arguments: str, invoke: Callable[[], Awaitable[Any]]
) -> Any:
    tool, event_id = _tool_of(context), log.event_id(context.tool_call_id)
    before = log.context.state()

    def write(*, result: Any = None, error: Exception | None = None) -> ToolOutcome:
        after = log.context.state()
        removed = removed_keys(before, after)
        changed = {key: one for key, one in state_delta(before, after).items() if key not in removed}
        if error is not None:
            return ToolOutcome(error=error, state=changed, removed=removed)
        shown = _shown(context, result) if tool is None or tool.output_json_schema is None else {}
        return ToolOutcome(response_of(result), state=changed, removed=removed, actions=shown)

    return await call_tool(
        context.tool_name,
        arguments_of(arguments),
        event_id,
        invoke,
        write=write,
        read=functools.partial(_read, log, event_id),
        seconds=log.seconds,
        recorded=tool is None or agent_in(tool) is None,
    )


def _tool_of(context: ToolContext[Any]) -> FunctionTool | None:
    tools = () if context.agent is None else context.agent.tools
    return next(
        (one for one in tools if isinstance(one, FunctionTool) and one.name == context.tool_name), None
    )


def _shown(context: ToolContext[Any], result: Any) -> Json:
    """The text of a result that a model sees, where that is not the one of what is recorded."""
    if context.tool_call is None:
        return {}
    of_result, of_recorded = (
        ItemHelpers.tool_call_output_item(context.tool_call, one)["output"]
        for one in (result, result_of(response_of(result)))
    )
    return {_SHOWN: of_result} if isinstance(of_result, str) and of_result != of_recorded else {}


def _read(log: ConversationLog, event_id: str, recorded: ToolCall) -> Any:
    log.context.apply(recorded.state, recorded.removed)
    given = recorded.actions.get(_SHOWN, result_of(recorded.result))
    log.recorded[event_id] = given, recorded.result
    return given


def report_error(args: ToolErrorFormatterArgs[Any]) -> None:
    """The SDK's own hook for what a tool raised: the model is told as little as without it."""
    reporter = current_reporter.get()
    if reporter is not None and args.error is not None:
        agent = getattr(getattr(args.run_context, "agent", None), "name", "")
        reporter.event("error", agent=agent, data=describe_error(args.error), parent=nested_in.get() or "")


def agent_in(tool: object) -> Any:
    """The agent that a tool is made of, None for any other tool."""
    return getattr(tool, "_agent_instance", None)


def functions_of(agents: Iterable[Any]) -> dict[str, Any]:
    """The functions that tools are made of, by the tools' names; of two of one name the first agent's."""
    found: dict[str, Any] = {}
    for agent in agents:
        for tool in agent.tools:
            if (function := getattr(tool, "__wrapped__", None)) is not None:
                found.setdefault(tool.name, function)
    return found


def tool_info(tool: Any) -> ToolInfo:
    schema = tool.params_json_schema if isinstance(tool, FunctionTool) else None
    return ToolInfo(str(tool.name), getattr(tool, "description", None) or "", schema)


def describe_tools(agent: Any) -> list[ToolInfo]:
    """The tools and hand-offs of an agent and of those that may take over from it, as they are declared to
    models; of two of one name the first."""
    found: dict[str, ToolInfo] = {}
    for one in (agent, *_reached(agent, lambda above: map(_target, above.handoffs))):
        for info in (*map(tool_info, one.tools), *map(_handoff_info, one.handoffs)):
            found.setdefault(info.name, info)
    return list(found.values())


def _handoff_info(one: Any) -> ToolInfo:
    made = one if isinstance(one, Handoff) else handoff(one)
    return ToolInfo(made.tool_name, made.tool_description, made.input_json_schema)


def agents_below(agent: Any) -> list[Any]:
    """The agents that an agent hands over to and those that are its tools, each once, and theirs."""
    return _reached(agent, lambda above: (*map(_target, above.handoffs), *map(agent_in, above.tools)))


def _reached(agent: Any, next_to: Callable[[Any], Iterable[Any]]) -> list[Any]:
    found: list[Any] = []
    waiting = [agent]
    while waiting:
        for one in next_to(waiting.pop(0)):
            if one is not None and one is not agent and all(one is not other for other in found):
                found.append(one)
                waiting.append(one)
    return found


def _target(one: Any) -> Any:
    """The agent of a hand-off, None where nobody holds it any more."""
    if not isinstance(one, Handoff):
        return one
    held = getattr(one, "_agent_ref", None)
    return None if held is None else held()


def context_type(agent: Any, functions: Iterable[Any]) -> Any:
    """The T of `Agent[T](…)`, else that of the `RunContextWrapper[T]` which a tool takes; dict where neither
    names a class."""
    declared = get_args(getattr(agent, "__orig_class__", None))
    for kind in (*declared, *(kind for function in functions for kind in _taken(function))):
        if isinstance(get_origin(kind) or kind, type) and kind is not object:
            return kind
    return dict


def _taken(function: Any) -> list[Any]:
    first = next(iter(inspect.signature(function).parameters), None)
    try:
        hints = get_type_hints(function)
    except Exception:
        # Names that are imported for type checkers only.
        return []
    hint = hints.get(first) if first else None
    return list(get_args(hint)) if get_origin(hint) in (RunContextWrapper, ToolContext) else []
