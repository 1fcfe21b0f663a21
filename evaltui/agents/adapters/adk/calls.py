"""Wraps the classes of models and tools of google-adk, to see the calls of an agent.

`generate_content_async` is wrapped on each class of model instead of using callbacks: so the agent's own
callbacks have already run, and models that tools call directly are seen too. Live connections (`connect`) are
not. A tool may run an agent of its own (`AgentTool`, or a tool that builds a `Runner`). The events of such a
run reach only the tool, so `Runner.run_async` is wrapped to report them.
"""

from __future__ import annotations

import functools
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, get_args

from google.adk.events.event import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from ....core.model.events import Json
from ....core.recordings.entry import UNASKED_CONFIG, JsonRequest, ToolCall
from ...call_recorder import ToolOutcome
from ..base import Reporter, current_reporter, nested_in, plain_json
from ..calls import (
    Described,
    ModelCall,
    ResponseFormat,
    ToolForm,
    call_tool,
    copied,
    is_same_request,
    model_responses,
    wrap_methods,
)
from ..values import answer_settings, own_settings, text_of
from .events import step_of

_Generate = Callable[..., AsyncIterator[LlmResponse]]
_Run = Callable[..., Awaitable[Any]]
# ADK 2.13 labels each request with the agent that makes it.
_AGENT_LABEL = "adk_agent_name"


@functools.cache
def watch_calls() -> None:
    """Wraps models, tools and runs, also of classes that are defined later."""
    wrap_methods(BaseLlm, {"generate_content_async": _watched_model})
    wrap_methods(BaseTool, {"run_async": _watched_tool})
    runner: Any = Runner
    runner.run_async = _watched_run(Runner.run_async)


def report(reporter: Reporter, event: Event) -> None:
    """Reports an ADK event. Raises TypeError for a content that JSON cannot hold."""
    if event.author != "user" or event.get_function_responses():
        reporter.step(step_of(event))


def _watched_run(run_async: Callable[..., AsyncGenerator[Event, None]]) -> Any:
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
                # Inside a tool such a value does no harm, so it must not end the run.
                reporter.event("error", agent=event.author, data={"message": str(error)})
            yield event


def _watched_model(generate: _Generate) -> _Generate:
    @functools.wraps(generate)
    async def watched(self: BaseLlm, *args: Any, **kwargs: Any) -> AsyncIterator[LlmResponse]:
        request = args[0] if args else kwargs.get("llm_request")

        async def ask() -> list[LlmResponse]:
            return [response async for response in generate(self, *args, **kwargs)]

        if not isinstance(request, LlmRequest) or is_same_request(self, request):
            async for response in generate(self, *args, **kwargs):
                yield response
            return
        streamed = bool(args[1] if len(args) > 1 else kwargs.get("stream"))
        name = request.model or self.model
        call = ModelCall(
            name,
            (request.config.labels or {}).get(_AGENT_LABEL, "") if request.config else "",
            functools.partial(_request, name, request, _settings(self), streamed),
            (self, request),
        )
        # In one piece, as in a replay.
        for response in await model_responses(call, ask, _FORMAT):
            yield response

    return watched


# The attribute of ADK's `LiteLlm` with the settings that it adds to each request.
_OF_LITELLM = "_additional_args"


def _settings(model: BaseLlm) -> Json:
    """The settings that a model adds to each request."""
    return (getattr(model, _OF_LITELLM, None) or {}) | own_settings(model, BaseLlm.model_fields)


def _request(name: str, request: LlmRequest, settings: Json, streamed: bool) -> JsonRequest:
    """The request as JSON; `settings` are those that the model adds to it."""
    # The headers may contain keys.
    config: Json = request.config.model_dump(
        mode="json", exclude_none=True, exclude=set(UNASKED_CONFIG), fallback=text_of, warnings=False
    )
    return JsonRequest(
        model=name,
        instruction=config.pop("system_instruction", ""),
        tools=_declarations(config.pop("tools", [])),
        config=answer_settings(settings) | config | ({"stream": True} if streamed else {}),
        contents=[_written(content) for content in request.contents],
    )


def _written(model: BaseModel) -> Json:
    """A genai model as JSON, also with values of users that JSON cannot hold."""
    data: Json = model.model_dump(mode="json", exclude_none=True, fallback=text_of, warnings=False)
    return data


def _declarations(tools: list[Any]) -> list[Any]:
    """Function declarations one by one; built-in tools of the model, such as its search, as they are."""
    declared: list[Any] = []
    for tool in tools:
        functions = tool.get("function_declarations") if isinstance(tool, dict) else None
        declared += functions or [tool]
    return declared


def _response_to_json(response: LlmResponse) -> Json:
    # Field by field: the outermost model decides how bytes are written, and only genai's models use base64.
    return {
        name: _written(value) if isinstance(value, BaseModel) else to_jsonable_python(value, fallback=text_of)
        for name, value in response
        if value is not None
    }


def _response_from_json(data: Json) -> LlmResponse:
    """Reads a response. Raises pydantic's error for fields of another version of ADK."""
    return LlmResponse(**{name: _field(name, value) for name, value in data.items()})


def _field(name: str, value: Any) -> Any:
    field = LlmResponse.model_fields.get(name)
    for kind in get_args(field.annotation) if field else ():
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind.model_validate_json(json.dumps(value))
    return value


def _described(response: LlmResponse) -> Described:
    data = {
        "model_version": response.model_version,
        "finish_reason": response.finish_reason and response.finish_reason.name,
        "error_code": response.error_code,
        "error_message": response.error_message,
    }
    return Described(
        _written(response.content) if response.content else None,
        plain_json(response.usage_metadata) if response.usage_metadata else None,
        {key: value for key, value in data.items() if value is not None},
        is_partial=bool(response.partial),
    )


_FORMAT = ResponseFormat(_response_to_json, _response_from_json, _described)
# Actions that a tool requests of ADK.
_ACTIONS = ("skip_summarization", "transfer_to_agent", "transfer_reason", "escalate")
# The action of a recorded call that asked a person to confirm it.
_CONFIRMATION = "confirmation"
_HAS_KEYS = "the call requests a credential, which contains keys"

# Tools that are parts of the agent: they transfer to other agents, whose own calls are recorded, or change
# only the session. They run in a replay, unless the config names one.
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


def _watched_tool(run: _Run) -> _Run:
    @functools.wraps(run)
    async def watched(self: BaseTool, *args: Any, **kwargs: Any) -> Any:
        context = kwargs.get("tool_context")
        call = functools.partial(run, self, *args, **kwargs)
        if context is None:
            return await call()
        actions = context.actions
        form = ToolForm(
            functools.partial(_outcome, actions),
            functools.partial(_recorded, context),
            # Asked each time: ADK then looks for values that were changed in place.
            lambda: copied(dict(context.actions.state_delta)),
            lambda changed, _: context.state.update(changed),
            has_own_state=True,
            is_recorded=not _is_part_of_agent(self),
        )
        return await call_tool(
            (id(self), id(context)),
            self.name,
            lambda: kwargs.get("args") or {},
            context.function_call_id or "",
            call,
            form,
        )

    return watched


def _is_part_of_agent(tool: BaseTool) -> bool:
    homes = {kind.__module__ for kind in type(tool).__mro__}
    homes.add(getattr(getattr(tool, "func", None), "__module__", ""))
    return not homes.isdisjoint(_PARTS_OF_AGENTS)


def _outcome(actions: Any, result: Any) -> ToolOutcome:
    requested = {name: getattr(actions, name, None) for name in _ACTIONS}
    actions_set = {name: value for name, value in requested.items() if value is not None}
    for request in actions.requested_tool_confirmations.values():
        actions_set[_CONFIRMATION] = _written(request)
    unrecordable = _HAS_KEYS if actions.requested_auth_configs else ""
    return ToolOutcome(_sent(result), actions=actions_set, unrecordable=unrecordable)


def _sent(result: Any) -> Any:
    """A tool's result as JSON of which ADK makes the same response again: objects of classes are no dicts,
    which it sends as they are."""
    if result is None or isinstance(result, str | int):
        return result
    response = types.FunctionResponse(response=result if isinstance(result, dict) else {"result": result})
    try:
        sent = plain_json(response)["response"]
    except ValueError:
        # The recorder says why it cannot be written.
        return result
    return sent if isinstance(result, dict) or isinstance(sent["result"], dict) else sent["result"]


def _recorded(context: Any, recorded: ToolCall) -> Any:
    # Of calls side by side, ADK merges the changes of each; the session has those of the last to end.
    context.actions.state_delta.update(recorded.state)
    for name, value in recorded.actions.items():
        if name == _CONFIRMATION:
            request = ToolConfirmation.model_validate(value)
            context.actions.requested_tool_confirmations[context.function_call_id] = request
        else:
            setattr(context.actions, name, value)
    return recorded.result
