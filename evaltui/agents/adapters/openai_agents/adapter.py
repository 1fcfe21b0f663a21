"""Runs an agent of the OpenAI Agents SDK. All facts on the SDK here are of version 0.24."""

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

from ....core.conversation.waiting import responses_in
from ....core.model.events import Json, Step
from ...errors import message_of
from ..base import (
    TEXTS_AND_FILES,
    AgentAdapter,
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
from ..deps import Deps
from ..values import output_fields
from .items import arguments_of, input_message, past_items, with_results
from .models import RecordedProvider, model_name, watch_models
from .runs import ConversationLog, RunWatch, agent_in, current_log, report_error, watch_runs


class OpenAIAgentsAdapter(AgentAdapter):
    """The adapter for an `agents.Agent`; `agent_name` starts with the agent of that name below it.

    Raises AgentLoadError where there is no such agent.
    """

    input = AgentInput("an OpenAI agent", session=(), parts=TEXTS_AND_FILES)

    def __init__(self, agent: Agent[Any], agent_name: str | None = None) -> None:
        self._agents = {member.name: member for member in (*reversed(_agents_below(agent)), agent)}
        if agent_name is not None and agent_name not in self._agents:
            names = ", ".join(sorted(self._agents))
            raise AgentLoadError(f"--agent {agent_name}: no such agent; there are {names}")
        self._root = agent if agent_name is None else self._agents[agent_name]
        functions = _functions_of([self._root, *self._agents.values()])
        self._places = source_places(functions)
        self._context_type = _context_type(agent, functions.values())
        self._servers: Any = None
        # One provider for all conversations, so that they share connections.
        self._provider = RecordedProvider()
        self._config = RunConfig(model_provider=self._provider, tool_error_formatter=report_error)
        watch_models()
        watch_runs()
        self._traces = _TraceExportOff()

    async def open(self) -> AgentInfo:
        """Connects MCP servers that are not connected yet, until `close`, and describes the agent."""
        notes = await self._connect()
        declared = [*_describe_tools(self._root), *await self._tools_of_servers(notes)]
        model = self._root.model
        return AgentInfo(
            name=self._root.name,
            framework="openai-agents",
            model=model_name(get_default_model() if model is None else model),
            tools=tuple(declared),
            sub_agents=tuple(below.name for below in _agents_below(self._root)),
            notes=tuple(notes),
            places=self._places,
        )

    async def _connect(self) -> list[str]:
        """Connects the MCP servers. Returns a sentence on each that failed: runs that need it fail."""
        servers = [server for agent in self._agents.values() for server in agent.mcp_servers]
        waiting = [server for server in servers if getattr(server, "session", None) is None]
        if not waiting:
            return []
        from agents.mcp import MCPServerManager

        self._servers = MCPServerManager(waiting)
        await self._servers.__aenter__()
        errors = self._servers.errors.items()
        return [
            f"MCP server {server.name} could not be connected: {message_of(error)}"
            for server, error in errors
        ]

    async def _tools_of_servers(self, notes: list[str]) -> list[ToolInfo]:
        if not self._root.mcp_servers or notes:
            return []
        try:
            tools = await self._root.get_mcp_tools(RunContextWrapper(None))
        except Exception as error:
            # Each run requests them again, and its case shows the error.
            notes.append(f"tools of MCP servers are not known: {type(error).__name__}: {message_of(error)}")
            return []
        return [_tool_info(tool) for tool in tools]

    async def new_session(
        self, spec: SessionSpec, reporter: Reporter, past: Sequence[Step] = ()
    ) -> AgentSession:
        """Opens a session. Raises AgentLoadError where no context for the agent can be created from the
        session state."""
        context = Deps(self._context_type, state_after(spec.state, past), "context")
        return OpenAIAgentsSession(self._root, self._agents, self._config, context, reporter, past)

    async def close(self) -> None:
        if self._servers is not None:
            await self._servers.__aexit__(None, None, None)
        await self._provider.aclose()
        self._traces.end()


class _TraceExportOff:
    """Keeps traces of evaluated conversations from OpenAI; the user's own trace processors still get them.

    After `end`, traces of other conversations of this process are sent again.
    """

    _active = 0

    def __init__(self) -> None:
        type(self)._active += 1
        exporter: Any = default_exporter()
        exporter.export = lambda items: None

    def end(self) -> None:
        type(self)._active -= 1
        if not self._active:
            # Traces that wait to be sent are of evaluated conversations.
            default_processor().force_flush()
            vars(default_exporter()).pop("export", None)


class OpenAIAgentsSession(AgentSession):
    """One conversation: its history, the agent of the next turn, and the calls that wait."""

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
        # The stored state of a run that waits, in the past that this conversation continues from.
        self._stored = next((stored for step in reversed(past) if (stored := _stored_state(step))), None)

    async def send(self, content: Json) -> None:
        """Runs a turn. Raises what the agent raises; the history is then unchanged, but changes of state
        stay."""
        with self._logged():
            run_input = await self._input(content)
            watch = RunWatch(self._log, is_root=True)
            self._log.ended_with_text = False
            try:
                result = await Runner.run(
                    self._agent, run_input, context=self._context.value, hooks=watch, run_config=self._config
                )
            except asyncio.CancelledError:
                # The SDK has cancelled the calls that are running, but does not wait for them.
                await asyncio.sleep(0)
                raise
            watch.report_outputs(item.raw_item for item in result.new_items)
            self._agent = result.last_agent
            self._history = result.to_input_list()
            self._state, self._stored = result.to_state() if result.interruptions else None, None
            self._report_end(result)

    async def state(self) -> Json:
        return self._context.state()

    @contextmanager
    def _logged(self) -> Iterator[None]:
        token = current_log.set(self._log)
        try:
            yield
        finally:
            current_log.reset(token)

    async def _input(self, content: Json) -> Any:
        """The input of the next run: the history and a message, or the waiting run with its decisions."""
        responses = responses_in(content)
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
        waiting = {_request_id(item): item for item in state.get_interruptions()}
        for response in responses:
            if (item := waiting.get(str(response.get("id")))) is not None:
                _decide(state, item, response.get("response") or {})
        return state

    def _report_end(self, result: Any) -> None:
        agent = result.last_agent.name
        if result.interruptions:
            self._report_requests(result.interruptions)
        elif not self._log.ended_with_text and (returned := output_fields(result.final_output)) is not None:
            # The result of a tool may be the final response, without a further model call.
            self._log.report(agent, **returned)
        self._log.steps.report_late_changes(agent)

    def _report_requests(self, waiting: Sequence[Any]) -> None:
        """Reports calls that wait for an approval as requests for a confirmation, as in ADK.

        Calls of earlier turns that still wait are not requested again.
        """
        assert self._state is not None
        new = [item for item in waiting if _request_id(item) not in self._requested]
        parts = [{"function_call": _request(item)} for item in new]
        ids = tuple(map(_request_id, new))
        self._requested.update(ids)
        self._log.report(
            waiting[0].agent.name,
            {"role": "model", "parts": parts} if parts else None,
            long_running=ids,
            framework=_state_data(self._state),
        )


def _request_id(item: Any) -> str:
    return f"confirm-{item.call_id}"


def _request(item: Any) -> Json:
    call = {"id": item.call_id, "name": item.name, "args": arguments_of(item.arguments)}
    return confirmation(_request_id(item), call, f"Approve {item.name}?")


def _decide(state: RunState[Any], item: Any, response: Json) -> None:
    """Approves or rejects a call. A rejection may have a reason for the model: `{"confirmed": false,
    "payload": "too expensive"}`."""
    if response.get("confirmed") is True:
        state.approve(item)
        return
    reason = response.get("payload")
    shown = reason if isinstance(reason, str) else json.dumps(reason)
    state.reject(item, rejection_message=None if reason is None else shown)


def _state_data(state: RunState[Any]) -> Json | None:
    """The state of a run, for another session to continue from; None where the SDK cannot write it."""
    try:
        return {"run_state": state.to_json(context_serializer=lambda _: {})}
    except Exception:
        return None


def _stored_state(step: Step) -> Json | None:
    stored: Json | None = (step.framework or {}).get("run_state")
    return stored


def _functions_of(agents: Iterable[Any]) -> dict[str, Any]:
    """The functions of tools by the tools' names; for equal names that of the first agent."""
    functions: dict[str, Any] = {}
    for agent in agents:
        for tool in agent.tools:
            if (function := getattr(tool, "__wrapped__", None)) is not None:
                functions.setdefault(tool.name, function)
    return functions


def _tool_info(tool: Any) -> ToolInfo:
    schema = tool.params_json_schema if isinstance(tool, FunctionTool) else None
    return ToolInfo(str(tool.name), getattr(tool, "description", None) or "", schema)


def _describe_tools(agent: Any) -> list[ToolInfo]:
    """The tools and hand-offs of an agent and of agents that may take over from it, as models see them; for
    equal names the first."""
    infos: dict[str, ToolInfo] = {}
    for member in (agent, *_reached(agent, lambda above: map(_target, above.handoffs))):
        for info in (*map(_tool_info, member.tools), *map(_handoff_info, member.handoffs)):
            infos.setdefault(info.name, info)
    return list(infos.values())


def _handoff_info(target: Any) -> ToolInfo:
    declared = target if isinstance(target, Handoff) else handoff(target)
    return ToolInfo(declared.tool_name, declared.tool_description, declared.input_json_schema)


def _agents_below(agent: Any) -> list[Any]:
    """The agents below an agent: those it hands over to, those that are its tools, and theirs, each once."""
    return _reached(agent, lambda above: (*map(_target, above.handoffs), *map(agent_in, above.tools)))


def _reached(agent: Any, next_to: Callable[[Any], Iterable[Any]]) -> list[Any]:
    reached: list[Any] = []
    waiting = [agent]
    while waiting:
        for neighbour in next_to(waiting.pop(0)):
            is_new = neighbour is not agent and all(neighbour is not other for other in reached)
            if neighbour is not None and is_new:
                reached.append(neighbour)
                waiting.append(neighbour)
    return reached


def _target(hand_off: Any) -> Any:
    """The agent of a hand-off; None where it does not exist any more."""
    if not isinstance(hand_off, Handoff):
        return hand_off
    reference = getattr(hand_off, "_agent_ref", None)
    return None if reference is None else reference()


def _context_type(agent: Any, functions: Iterable[Any]) -> Any:
    """The class of the context: T of `Agent[T](…)`, else of a tool's `RunContextWrapper[T]`; dict where
    neither names a class."""
    declared = get_args(getattr(agent, "__orig_class__", None))
    for kind in (*declared, *(kind for function in functions for kind in _context_classes(function))):
        if isinstance(get_origin(kind) or kind, type) and kind is not object:
            return kind
    return dict


def _context_classes(function: Any) -> list[Any]:
    first = next(iter(inspect.signature(function).parameters), None)
    try:
        hints = get_type_hints(function)
    except Exception:
        # The hints name types that are imported for type checkers only.
        return []
    hint = hints.get(first) if first else None
    return list(get_args(hint)) if get_origin(hint) in (RunContextWrapper, ToolContext) else []
