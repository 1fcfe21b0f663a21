"""Runs an agent of Pydantic AI. Tested with versions 1.107 and 2.68."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

from pydantic_ai import __version__
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied

from ....core.conversation.waiting import CONFIRMATION, INPUT, responses_in
from ....core.model.events import Json, Step
from ....text.values import show_value
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
    Steps,
    ToolInfo,
    call_of,
    close_quietly,
    confirmation,
    source_places,
    state_after,
)
from ..deps import Deps
from ..values import output_fields, result_of
from .messages import messages_of, prompt_of
from .runs import Turn, current_run, current_turn, watch_agents

_MAX_ARGS = 200


class PydanticAIAdapter(AgentAdapter):
    """The adapter for agents of `pydantic_ai.Agent` and agents that wrap one.

    Raises AgentLoadError for another object of Pydantic AI.
    """

    input = AgentInput("a Pydantic AI agent", session=(), parts=TEXTS_AND_FILES)

    def __init__(self, agent: Any) -> None:
        if not isinstance(agent, AbstractAgent):
            raise AgentLoadError(f"root_agent is a {type(agent).__name__}, not an agent of Pydantic AI")
        self._agent = agent
        self._is_open = False
        watch_agents()

    async def open(self) -> AgentInfo:
        notes = []
        try:
            # Opens the connections of its toolsets, which stay open as long as the host.
            await self._agent.__aenter__()
            self._is_open = True
        except Exception as error:
            # Each run tries again, and its cases show the error.
            notes.append(f"toolsets could not be opened: {type(error).__name__}: {message_of(error)}")
        tools = {name: tool for toolset in self._agent.toolsets for name, tool in _tools(toolset)}
        return AgentInfo(
            name=self._agent.name or "agent",
            framework="pydantic-ai",
            version=f"pydantic-ai {__version__}",
            model=_model_name(self._agent.model),
            tools=tuple(_tool_info(name, tool) for name, tool in tools.items()),
            notes=tuple(notes),
            places=source_places(
                {name: tool.function for name, tool in tools.items() if hasattr(tool, "function")}
            ),
        )

    async def new_session(
        self, spec: SessionSpec, reporter: Reporter, past: Sequence[Step] = ()
    ) -> AgentSession:
        return PydanticAISession(self._agent, spec, reporter, past)

    async def close(self) -> None:
        if self._is_open:
            await close_quietly("toolsets", partial(self._agent.__aexit__, None, None, None))


def _model_name(model: Any) -> str:
    return model if isinstance(model, str) else getattr(model, "model_name", "")


def _tools(toolset: Any) -> Iterator[tuple[str, Any]]:
    """The tools that are known without a request to a server, by the names that models use."""
    if (wrapped := getattr(toolset, "wrapped", None)) is not None:
        prefix, names = getattr(toolset, "prefix", None), getattr(toolset, "name_map", None) or {}
        renamed = {old: new for new, old in names.items()}
        for name, tool in _tools(wrapped):
            yield f"{prefix}_{name}" if prefix else renamed.get(name, name), tool
    for part in getattr(toolset, "toolsets", ()):
        yield from _tools(part)
    tools = getattr(toolset, "tools", None)
    yield from tools.items() if isinstance(tools, dict) else ()
    for definition in getattr(toolset, "tool_defs", ()):
        yield definition.name, definition


def _tool_info(name: str, tool: Any) -> ToolInfo:
    schema = getattr(tool, "function_schema", None)
    parameters = schema.json_schema if schema else getattr(tool, "parameters_json_schema", None)
    return ToolInfo(name, tool.description or "", parameters)


class PydanticAISession(AgentSession):
    """One conversation: its messages, its dependencies, and the calls that wait for a person."""

    def __init__(self, agent: Any, spec: SessionSpec, reporter: Reporter, past: Sequence[Step]) -> None:
        self._agent = agent
        # Without `deps_type` (`object` from version 2 on) the agent has no dependencies.
        kind = type(None) if agent.deps_type is object else agent.deps_type
        self._deps = Deps(kind, state_after(spec.state, past))
        self._history = messages_of(past)
        self._steps = Steps(reporter, past, self._deps.state)
        self._results_reported: set[tuple[str, Any]] = set()
        self._waiting, self._answers = _open_requests(past)

    async def send(self, content: Json) -> None:
        """Runs a turn. Raises what the agent raises, and ValueError for a second response to a call; the
        history is then unchanged, but changes of state stay."""
        waiting = dict(self._waiting)
        answers = copy.deepcopy(self._answers)
        for response in responses_in(content):
            request = waiting.pop(str(response.get("id")), None)
            if request is None:
                raise ValueError(f"a call of {response.get('name')} takes one response, and has it")
            _answer(answers, request, response.get("response") or {})
        prompt = prompt_of(content)
        if waiting and prompt is None:
            # The agent continues when each request has its response; until then, open ones are made again.
            self._waiting, self._answers = waiting, answers
            self._report_requests(waiting)
            return
        turn = Turn(self._steps, self._deps, set(self._results_reported))
        tokens = current_turn.set(turn), current_run.set(None)
        try:
            result = await self._agent.run(
                prompt,
                message_history=self._history or None,
                deferred_tool_results=answers if answers.calls or answers.approvals else None,
                deps=self._deps.value,
                infer_name=False,
            )
            self._waiting = self._end(turn, result)
        finally:
            current_turn.reset(tokens[0])
            current_run.reset(tokens[1])
        self._answers = DeferredToolResults()
        self._history = result.all_messages()
        self._results_reported = turn.reported_results

    def _end(self, turn: Turn, result: Any) -> dict[str, _Request]:
        """Reports the answer. Returns the requests that wait for a person."""
        name = self._agent.name or "agent"
        run = turn.root
        assert run is not None
        run.report_results(result.new_messages())
        if isinstance(result.output, DeferredToolRequests):
            return self._request_responses(turn, result.output)
        # A file is not shown as text.
        value = None if hasattr(result.output, "media_type") else result.output
        if (returned := output_fields(value, run.last_text or "")) is not None:
            self._steps.report(name, usage=run.usage, **returned)
        else:
            self._steps.report_late_changes(name)
        return {}

    def _request_responses(self, turn: Turn, requests: Any) -> dict[str, _Request]:
        waiting: dict[str, _Request] = {}
        for call in requests.approvals:
            original = {"id": call.tool_call_id, "name": call.tool_name, "args": call.args_as_dict()}
            request_id = f"confirm-{call.tool_call_id}"
            request = confirmation(request_id, original)
            waiting[request_id] = _Request("approvals", call.tool_call_id, request)
        for call in requests.calls:
            if call.tool_call_id in turn.long_running:
                waiting[call.tool_call_id] = _Request("calls", call.tool_call_id)
                continue
            shown = show_value(call.args_as_dict(), _MAX_ARGS)
            args: Json = {"message": f"Result of {call.tool_name} {shown}", "callId": call.tool_call_id}
            request_id = f"result-{call.tool_call_id}"
            request = {"id": request_id, "name": INPUT, "args": args}
            waiting[request_id] = _Request("calls", call.tool_call_id, request)
        self._report_requests(waiting)
        return waiting

    def _report_requests(self, waiting: Mapping[str, _Request]) -> None:
        parts: list[Json] = [{"function_call": request.call} for request in waiting.values() if request.call]
        if parts:
            self._steps.report(
                self._agent.name or "agent",
                {"role": "model", "parts": parts},
                final=True,
                long_running=tuple(part["function_call"]["id"] for part in parts),
            )

    async def state(self) -> Json:
        return self._deps.state()


class _Request(NamedTuple):
    """A request to a person: for the approval or the result of a call."""

    kind: Literal["approvals", "calls"]
    call_id: str
    call: Json | None = None
    """The function call of the request; None where it is the waiting call itself."""


def _open_requests(past: Sequence[Step]) -> tuple[dict[str, _Request], Any]:
    """The open requests at the end of `past`, by the id of their responses, and the responses so far."""
    waiting: dict[str, _Request] = {}
    responses: list[tuple[_Request, Json]] = []
    ended: set[str] = set()
    for step in past:
        for part in step.parts:
            call = call_of(part)
            call_id, args = call.get("id") or "", call.get("args") or {}
            if "function_response" in part:
                ended.add(call_id)
                if (request := waiting.pop(call_id, None)) is not None and request.call:
                    responses.append((request, call.get("response") or {}))
            elif call.get("name") == CONFIRMATION:
                original = args.get("originalFunctionCall") or {}
                waiting[call_id] = _Request("approvals", original.get("id") or "", call)
            elif call.get("name") == INPUT:
                waiting[call_id] = _Request("calls", args.get("callId") or "", call)
            elif call_id in step.long_running:
                waiting[call_id] = _Request("calls", call_id)
    answers = DeferredToolResults()
    for request, response in responses:
        if request.call_id not in ended:
            _answer(answers, request, response)
    return waiting, answers


def _answer(answers: Any, request: _Request, response: Json) -> None:
    if request.kind == "calls":
        answers.calls[request.call_id] = result_of(response)
    elif response.get("confirmed"):
        args = response.get("payload")
        approved = ToolApproved(override_args=args if isinstance(args, dict) else None)
        answers.approvals[request.call_id] = approved
    else:
        answers.approvals[request.call_id] = ToolDenied()
