"""Wraps Pydantic AI's agents, models and toolsets, to see the calls of runs.

`Agent.iter` (which every other way to run an agent uses), `request` and `request_stream` of each class of
model, and `call_tool` of each class of toolset are wrapped. So agents that tools run are seen too, and no
agent is forced to stream or to run in another way than elsewhere.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ToolReturn
from pydantic_ai.models import Model
from pydantic_ai.toolsets import AbstractToolset
from pydantic_core import to_jsonable_python

from ....core.model.events import Json
from ....core.recordings.entry import JsonRequest, ToolCall
from ...call_recorder import ToolOutcome
from ..base import Steps, nested_in
from ..calls import (
    ModelCall,
    ResponseFormat,
    ToolForm,
    ask_model,
    call_tool,
    running_request,
    wrap_methods,
)
from ..deps import Deps
from ..values import answer_settings, declaration, response_of, result_of, text_of
from .messages import (
    contents_of,
    described,
    instruction_of,
    is_result,
    response_from_json,
    response_to_json,
    result_part,
    user_items,
    user_parts,
)

_FORMAT: ResponseFormat[Any] = ResponseFormat(response_to_json, response_from_json, described)


@dataclass
class Turn:
    """A turn of the agent, with what is reported of it."""

    steps: Steps
    deps: Deps
    reported_results: set[tuple[str, Any]]
    """Keys of the results reported in the whole conversation: a request repeats those of earlier requests."""
    root: Run | None = None
    """The run of the agent itself; None before it starts."""
    long_running: set[str] = field(default_factory=set)
    """The ids of calls whose results come from outside."""


@dataclass
class Run:
    """A run of an agent: of the agent itself, or of one inside it, such as a tool's."""

    agent: str
    turn: Turn
    is_root: bool
    output_tools: set[str] = field(default_factory=set)
    """The names of tools that a model calls to give a structured answer."""
    usage: Json | None = None
    """The token counts of the last response, if it had no step of its own."""
    last_text: str | None = None
    """The text of the last response; None where it called an output tool."""

    @property
    def is_shown(self) -> bool:
        # A run outside of a tool, such as a summary of the history, is not part of the conversation; only its
        # model requests are reported.
        return self.is_root or nested_in.get() is not None

    def report_results(self, messages: Sequence[Any]) -> None:
        """Reports the results of tools since the last response."""
        results: list[Json] = []
        for part in _since_response(messages):
            key = getattr(part, "tool_call_id", ""), getattr(part, "timestamp", None)
            if not is_result(part) or part.tool_name in self.output_tools:
                continue
            if key not in self.turn.reported_results:
                self.turn.reported_results.add(key)
                results.append(result_part(part))
        if results and self.is_shown:
            self.turn.steps.report(self.agent, {"role": "user", "parts": results})

    def report_response(self, response: Any, external: set[str]) -> None:
        """Reports a model's response, without calls that are its structured answer."""
        calls = [part for part in response.parts if part.part_kind == "tool-call"]
        own = [part for part in calls if part.tool_name not in self.output_tools]
        parts = [part for part in response.parts if part not in calls or part in own]
        shown = described(replace(response, parts=parts))
        texts = [part.content for part in parts if part.part_kind == "text"]
        self.last_text = None if len(own) < len(calls) else "".join(texts)
        self.usage = None if shown.content else shown.usage
        if shown.content and self.is_shown:
            waiting = tuple(part.tool_call_id for part in own if part.tool_name in external)
            self.turn.long_running |= set(waiting)
            self.turn.steps.report(
                self.agent,
                shown.content,
                final=not calls,
                usage=shown.usage,
                model_version=response.model_name,
                long_running=waiting,
            )


def _since_response(messages: Sequence[Any]) -> list[Any]:
    parts: list[Any] = []
    for message in reversed(messages):
        if message.kind == "response":
            break
        parts = [*message.parts, *parts]
    return parts


current_turn: ContextVar[Turn | None] = ContextVar("evaltui_pydantic_ai_turn", default=None)
# The innermost run that the current task works for; the first one in a turn is the agent's own.
current_run: ContextVar[Run | None] = ContextVar("evaltui_pydantic_ai_run", default=None)


@functools.cache
def watch_agents() -> None:
    """Wraps agents, models and toolsets, also of classes that are defined later."""
    agent: Any = Agent
    agent.iter = _watched_iter(Agent.iter)
    wrap_methods(Model, {"request": _watched_request, "request_stream": _watched_stream})
    wrap_methods(AbstractToolset, {"call_tool": _watched_call})


def _watched_iter(iterate: Callable[..., Any]) -> Any:
    @functools.wraps(iterate)
    @asynccontextmanager
    async def watched(self: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        turn, outer, request = current_turn.get(), current_run.get(), running_request.get()
        if turn is not None:
            run = Run(self.name or "agent", turn, is_root=outer is None)
            turn.root = turn.root or run
            current_run.set(run)
            running_request.set(None)
        try:
            async with iterate(self, *args, **kwargs) as running:
                yield running
        finally:
            current_run.set(outer)
            running_request.set(request)

    return watched


def _watched_request(request: Callable[..., Awaitable[Any]]) -> Any:
    @functools.wraps(request)
    async def watched(self: Any, messages: Any, settings: Any, parameters: Any) -> Any:
        if current_turn.get() is None or running_request.get():
            return await request(self, messages, settings, parameters)
        return await _ask(self, messages, settings, parameters, request)

    return watched


def _watched_stream(stream: Callable[..., Any]) -> Any:
    @functools.wraps(stream)
    @asynccontextmanager
    async def watched(
        self: Any, messages: Any, settings: Any, parameters: Any, *more: Any, **named: Any
    ) -> AsyncIterator[Any]:
        if current_turn.get() is None or running_request.get():
            async with stream(self, messages, settings, parameters, *more, **named) as streamed:
                yield streamed
            return

        async def whole(*request: Any) -> Any:
            async with stream(*request, *more, **named) as streamed:
                async for _ in streamed:
                    pass
                return streamed.get()

        # In one piece, as in a replay.
        response = await _ask(self, messages, settings, parameters, whole)
        yield _completed_stream(response, parameters)

    return watched


def _completed_stream(response: Any, parameters: Any) -> Any:
    """A stream of a response that is complete."""
    try:
        from pydantic_ai.models import CompletedStreamedResponse
    except ImportError:
        # Version 1, in which the stream has no events.
        from pydantic_ai.models.wrapper import CompletedStreamedResponse

        return CompletedStreamedResponse(parameters, response)
    return CompletedStreamedResponse(response, model_request_parameters=parameters, replay_events=True)


async def _ask(
    model: Any, messages: Any, settings: Any, parameters: Any, ask: Callable[..., Awaitable[Any]]
) -> Any:
    run = current_run.get()
    if run is not None:
        run.output_tools |= {tool.name for tool in parameters.output_tools}
        run.report_results(messages)
    response = await ask_model(
        ModelCall(
            model.model_name,
            run.agent if run else "",
            functools.partial(_request, model, messages, settings, parameters),
            (model, messages),
        ),
        functools.partial(ask, model, messages, settings, parameters),
        _FORMAT,
    )
    if run is not None:
        external = {tool.name for tool in parameters.function_tools if tool.kind == "external"}
        run.report_response(response, external)
    return response


def _request(model: Any, messages: Any, settings: Any, parameters: Any) -> JsonRequest:
    tools = [*parameters.function_tools, *parameters.output_tools]
    request_config = {
        "settings": answer_settings(settings or {}),
        "output_mode": parameters.output_mode,
        # Without an output tool, a text is the only answer.
        "text_allowed": bool(parameters.output_tools) and parameters.allow_text_output,
    }
    # The name differs between versions, and the older one warns when it is read.
    name = "native_tools" if hasattr(parameters, "native_tools") else "builtin_tools"
    native = getattr(parameters, name, None)
    if parameters.output_object is not None:
        request_config["output"] = parameters.output_object
    if native:
        request_config["native_tools"] = native
    return JsonRequest(
        model=model.model_name,
        instruction=instruction_of(messages),
        tools=[declaration(tool.name, tool.description, tool.parameters_json_schema) for tool in tools],
        contents=contents_of(messages),
        config={
            key: value
            for key, value in to_jsonable_python(request_config, fallback=text_of).items()
            if value and value != "text"
        },
    )


def _watched_call(call: Callable[..., Awaitable[Any]]) -> Any:
    @functools.wraps(call)
    async def watched(self: Any, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
        run, make = current_run.get(), functools.partial(call, self, name, tool_args, ctx, tool)
        if run is None or tool.tool_def.kind == "output":
            return await make()
        return await call_tool(
            # A combined toolset passes a call on to its parts.
            (id(ctx.messages), ctx.tool_call_id),
            name,
            functools.partial(_args, tool_args, ctx),
            ctx.tool_call_id or "",
            make,
            ToolForm(_outcome, _recorded, run.turn.deps.state, run.turn.deps.apply),
        )

    return watched


def _args(tool_args: Any, ctx: Any) -> Json:
    """The arguments that the model gave; a person who approves a call may change them."""
    if not ctx.tool_call_approved:
        for part in reversed(ctx.messages[-1].parts if ctx.messages else ()):
            if part.part_kind == "tool-call" and part.tool_call_id == ctx.tool_call_id:
                return dict(part.args_as_dict())
    plain: Json = to_jsonable_python(tool_args, fallback=str)
    return plain


def _outcome(result: Any) -> ToolOutcome:
    actions: Json = {}
    if isinstance(result, ToolReturn):
        actions = {"content": list(user_parts(result.content or []))}
        result = result.return_value
    return ToolOutcome(response_of(result), actions=actions)


def _recorded(recorded: ToolCall) -> Any:
    value = result_of(recorded.result)
    if "content" in recorded.actions:
        return ToolReturn(return_value=value, content=user_items(recorded.actions["content"]) or None)
    return value
