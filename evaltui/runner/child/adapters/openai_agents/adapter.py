"""Drives an agent of the OpenAI Agents SDK. Source of all that is said of it: version 0.24."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, get_args, get_origin, get_type_hints

from agents import Agent, FunctionTool, Handoff, RunConfig, RunContextWrapper, Runner, RunState, handoff
from agents.models import get_default_model
from agents.tool_context import ToolContext
from agents.tracing.processors import default_exporter, default_processor

from .....core.model.events import Json, Step
from ....errors import message_of
from ..base import (
    TEXTS_AND_FILES,
    AgentInfo,
    AgentInput,
    AgentLoadError,
    AgentSession,
    Reporter,
    SessionSpec,
    ToolInfo,
    call_of,
    confirmation,
    source_places,
    state_after,
)
from ..calls import output_fields
from ..deps import Deps
from .items import arguments_of, input_message, past_items, with_results
from .models import RecordedProvider, model_name, watch_models
from .runs import ConversationLog, RunWatch, agent_in, current_log, report_error, watch_runs, watch_tool


class OpenAIAgentsAdapter:
    """The way in for an `agents.Agent`; `agent_name` begins with the agent of that name below it.

    Raises AgentLoadError where there is none.
    """

    input = AgentInput("an OpenAI agent", session=(), parts=TEXTS_AND_FILES)

    def __init__(self, agent: Agent[Any], agent_name: str | None = None) -> None:
        self._agents = {one.name: one for one in (*reversed(_agents_below(agent)), agent)}
        if agent_name is not None and agent_name not in self._agents:
            known = ", ".join(sorted(self._agents))
            raise AgentLoadError(f"--agent {agent_name}: no such agent; there are {known}")
        self._root = agent if agent_name is None else self._agents[agent_name]
        functions = _functions_of([self._root, *self._agents.values()])
        self._places = source_places(functions)
        self._context_type = _context_type(agent, functions.values())
        for one in self._agents.values():
            for tool in one.tools:
                watch_tool(tool)
        self._servers: Any = None
        # Of all conversations, so that they share connections.
        self._provider = RecordedProvider()
        self._config = RunConfig(model_provider=self._provider, tool_error_formatter=report_error)
        watch_models()
        watch_runs()
        self._traces = _TracesKeptHere()

    async def open(self) -> AgentInfo:
        """Connects the MCP servers that are not, as long as the host lives."""
        notes = await self._connect()
        declared = [*_describe_tools(self._root), *await self._tools_of_servers(notes)]
        model = self._root.model
        return AgentInfo(
            name=self._root.name,
            framework="openai-agents",
            model=model_name(get_default_model() if model is None else model),
            tools=tuple(declared),
            sub_agents=tuple(one.name for one in _agents_below(self._root)),
            notes=tuple(notes),
            places=self._places,
        )

    async def _connect(self) -> list[str]:
        """What could not be connected, a sentence each: runs that need such a server fail."""
        servers = [server for one in self._agents.values() for server in one.mcp_servers]
        waiting = [server for server in servers if getattr(server, "session", None) is None]
        if not waiting:
            return []
        from agents.mcp import MCPServerManager

        self._servers = MCPServerManager(waiting)
        await self._servers.__aenter__()
        errors = self._servers.errors.items()
        return [f"MCP server {one.name} could not be connected: {message_of(error)}" for one, error in errors]

    async def _tools_of_servers(self, notes: list[str]) -> list[ToolInfo]:
        if not self._root.mcp_servers or notes:
            return []
        try:
            tools = await self._root.get_mcp_tools(RunContextWrapper(None))
        except Exception as error:
            # Each run asks for them again, and its case shows it.
            notes.append(f"tools of MCP servers are not known: {type(error).__name__}: {message_of(error)}")
            return []
        return [_tool_info(tool) for tool in tools]

    async def new_session(
        self, spec: SessionSpec, reporter: Reporter, past: Sequence[Step] = ()
    ) -> AgentSession:
        """Raises AgentLoadError where the session state makes no context for the agent."""
        context = Deps(self._context_type, state_after(spec.state, past), "context")
        return OpenAIAgentsSession(self._root, self._agents, self._config, context, reporter, past)

    async def close(self) -> None:
        if self._servers is not None:
            await self._servers.__aexit__(None, None, None)
        await self._provider.aclose()
        self._traces.end()


class _TracesKeptHere:
    """Traces of evaluated conversations do not go to OpenAI; what the user's own processors do with them
    stays as it is. After `end`, those of other conversations of this process do again."""

    _at_once = 0

    def __init__(self) -> None:
        type(self)._at_once += 1
        exporter: Any = default_exporter()
        exporter.export = lambda items: None

    def end(self) -> None:
        type(self)._at_once -= 1
        if not self._at_once:
            # Those that wait to be sent are of evaluated conversations.
            default_processor().force_flush()
            vars(default_exporter()).pop("export", None)


class OpenAIAgentsSession:
    """One conversation: its history, the agent that has the next turn, and the calls that wait."""

    def __init__(
        self,
        root: Agent[Any],
        agents: dict[str, Agent[Any]],
        config: RunConfig,
        context: Deps,
        reporter: Reporter,
        past: Sequence[Step],
    ) -> None:
        self._root = root
        self._context = context
        self._log = ConversationLog(reporter, context, past)
        self._config = config
        self._history = past_items(past)
        transfers = [agents[step.transfer] for step in past if step.transfer in agents]
        self._agent = transfers[-1] if transfers else root
        self._state: RunState[Any] | None = None
        self._requested = {call_of(part).get("id") for step in past for part in step.parts}
        # What a run that waited was written down as, in the past that this conversation continues from.
        self._stored = next((kept for step in reversed(past) if (kept := _stored_state(step))), None)

    async def send(self, content: Json) -> None:
        """Raises what the agent raises; but for the state, the turn is then forgotten."""
        with self._logged():
            given = await self._input(content)
            watch = RunWatch(self._log, is_root=True)
            self._log.ended_with_text = False
            try:
                result = await Runner.run(
                    self._agent, given, context=self._context.value, hooks=watch, run_config=self._config
                )
            except asyncio.CancelledError:
                # The SDK has cancelled the calls that are running, but does not wait for them.
                await asyncio.sleep(0)
                raise
            watch.report_outputs(one.raw_item for one in result.new_items)
            self._agent = result.last_agent
            self._history = result.to_input_list()
            self._state, self._stored = result.to_state() if result.interruptions else None, None
            self._report_end(result)

    async def state(self) -> Json:
        return self._context.state()

    async def close(self) -> None: ...

    @contextmanager
    def _logged(self) -> Iterator[None]:
        token = current_log.set(self._log)
        try:
            yield
        finally:
            current_log.reset(token)

    async def _input(self, content: Json) -> Any:
        """What the next run gets: the history and a message, or the run that waits with its decisions."""
        responses = [one for part in content.get("parts") or [] if (one := part.get("function_response"))]
        if not responses:
            return [*with_results(self._history), input_message(content)]
        state = self._state
        if state is None and self._stored is not None:
            state = await RunState.from_json(self._root, self._stored)
        if state is None:
            raise ValueError(
                "no run of the agent waits for this response: a conversation continues from expected turns "
                "or after another message without it. Run the case and continue from its result, or send "
                "its turns again"
            )
        waiting = {_request_id(one): one for one in state.get_interruptions()}
        for response in responses:
            if (item := waiting.get(str(response.get("id")))) is not None:
                _decide(state, item, response.get("response") or {})
        return state

    def _report_end(self, result: Any) -> None:
        agent = result.last_agent.name
        if result.interruptions:
            self._report_requests(result.interruptions)
        elif not self._log.ended_with_text and (returned := output_fields(result.final_output)) is not None:
            # The result of a tool may be the response, unseen by a model.
            self._log.report(agent, **returned)
        self._log.steps.report_late_changes(agent)

    def _report_requests(self, waiting: Sequence[Any]) -> None:
        """Calls that wait for an approval are requests for a confirmation, as in ADK.

        Those of earlier turns that still wait are not requested again.
        """
        assert self._state is not None
        new = [one for one in waiting if _request_id(one) not in self._requested]
        parts = [{"function_call": _request(one, self._log)} for one in new]
        ids = tuple(map(_request_id, new))
        self._requested.update(ids)
        self._log.report(
            waiting[0].agent.name,
            {"role": "model", "parts": parts} if parts else None,
            long_running=ids,
            framework=_written(self._state),
        )


def _request_id(item: Any) -> str:
    return f"confirm-{item.call_id}"


def _request(item: Any, log: ConversationLog) -> Json:
    call = {"id": log.event_id(item.call_id), "name": item.name, "args": arguments_of(item.arguments)}
    return confirmation(_request_id(item), call, f"Approve {item.name}?")


def _decide(state: RunState[Any], item: Any, response: Json) -> None:
    """A rejection may have a reason for the model, `{"confirmed": false, "payload": "too expensive"}`."""
    if response.get("confirmed") is True:
        state.approve(item)
        return
    reason = response.get("payload")
    shown = reason if isinstance(reason, str) else json.dumps(reason)
    state.reject(item, rejection_message=None if reason is None else shown)


def _written(state: RunState[Any]) -> Json | None:
    """What another session goes on from; None where the SDK cannot write the run: this one still can."""
    try:
        return {"run_state": state.to_json(context_serializer=lambda _: {})}
    except Exception:
        return None


def _stored_state(step: Step) -> Json | None:
    stored: Json | None = (step.framework or {}).get("run_state")
    return stored


def _functions_of(agents: Iterable[Any]) -> dict[str, Any]:
    """The functions that tools are made of, by the tools' names; of two of one name the first agent's."""
    found: dict[str, Any] = {}
    for agent in agents:
        for tool in agent.tools:
            if (function := getattr(tool, "__wrapped__", None)) is not None:
                found.setdefault(tool.name, function)
    return found


def _tool_info(tool: Any) -> ToolInfo:
    schema = tool.params_json_schema if isinstance(tool, FunctionTool) else None
    return ToolInfo(str(tool.name), getattr(tool, "description", None) or "", schema)


def _describe_tools(agent: Any) -> list[ToolInfo]:
    """The tools and hand-offs of an agent and of those that may take over from it, as they are declared to
    models; of two of one name the first."""
    found: dict[str, ToolInfo] = {}
    for one in (agent, *_reached(agent, lambda above: map(_target, above.handoffs))):
        for info in (*map(_tool_info, one.tools), *map(_handoff_info, one.handoffs)):
            found.setdefault(info.name, info)
    return list(found.values())


def _handoff_info(one: Any) -> ToolInfo:
    made = one if isinstance(one, Handoff) else handoff(one)
    return ToolInfo(made.tool_name, made.tool_description, made.input_json_schema)


def _agents_below(agent: Any) -> list[Any]:
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


def _context_type(agent: Any, functions: Iterable[Any]) -> Any:
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
