"""Wraps LangChain's classes of chat models and tools, to see the calls of a graph.

Of chat models, `_generate`, `_stream` and their asynchronous forms are wrapped: every class defines them and
every call uses them. Of tools, `run` and `arun` are wrapped. So calls are seen however a node makes them.
Completion models (`BaseLLM`) and models that are called without LangChain are not seen.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.errors import GraphInterrupt
from langgraph.types import Command, interrupt
from pydantic_core import to_jsonable_python

from ....core.model.events import Json
from ....core.recordings.entry import JsonRequest, ToolCall
from ...call_recorder import ToolOutcome
from ...model_gate import blocking
from ..calls import (
    ModelCall,
    ResponseFormat,
    ToolForm,
    ask_model,
    call_tool,
    running_request,
    wrap_methods,
)
from ..values import answer_settings, declaration, own_settings, response_of, result_of, text_of
from .messages import (
    content_of_message,
    content_of_response,
    described,
    instruction_of,
    message_from_json,
    message_to_json,
    response_of_content,
)

Result = TypeVar("Result")


# The `Turn` that the current task works for.
current_turn: ContextVar[Any] = ContextVar("evaltui_langgraph_turn", default=None)


def agent_of(places: list[str], message: Any = None) -> str:
    """The author at a place in a graph (nodes from the outermost in): the agent that a message names, else
    the node that is a graph of its own, else the node."""
    name = getattr(message, "name", None) if getattr(message, "type", "") == "ai" else None
    return name or (places[-2] if len(places) > 1 else places[-1] if places else "")


def places_of(checkpoint_ns: str) -> list[str]:
    """The names of the nodes in a place, such as `researcher:1f0…|agent:2c9…`."""
    return [part.partition(":")[0] for part in checkpoint_ns.split("|") if part]


@functools.cache
def watch_calls() -> None:
    """Wraps models and tools, also of classes that are defined later."""
    wrappers = {
        "_generate": _watched_generate,
        "_agenerate": _watched_agenerate,
        "_stream": _watched_stream,
        "_astream": _watched_astream,
    }
    # LangChain tells by these methods of the class itself whether a model can stream.
    wrap_methods(BaseChatModel, wrappers, only_below=("_stream", "_astream"))
    wrap_methods(BaseTool, {"run": _watched_run, "arun": _watched_arun})


def _watched_agenerate(generate: Callable[..., Awaitable[Any]]) -> Any:
    @functools.wraps(generate)
    async def watched(self: Any, messages: Any, *args: Any, **kwargs: Any) -> Any:
        ask = functools.partial(generate, self, messages, *args, **kwargs)
        return await ask() if _is_unseen() else await _ask(self, messages, kwargs, ask)

    return watched


def _watched_generate(generate: Callable[..., Any]) -> Any:
    @functools.wraps(generate)
    def watched(self: Any, messages: Any, *args: Any, **kwargs: Any) -> Any:
        ask = functools.partial(generate, self, messages, *args, **kwargs)
        return ask() if _is_unseen() else _run_sync(_ask(self, messages, kwargs, _awaited(ask)))

    return watched


def _watched_astream(stream: Callable[..., AsyncIterator[Any]]) -> Any:
    @functools.wraps(stream)
    async def watched(self: Any, messages: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        if _is_unseen():
            async for chunk in stream(self, messages, *args, **kwargs):
                yield chunk
            return

        async def ask() -> Any:
            return _joined([chunk async for chunk in stream(self, messages, *args, **kwargs)])

        # In one chunk, as in a replay.
        yield _chunk(await _ask(self, messages, kwargs, ask))

    return watched


def _watched_stream(stream: Callable[..., Iterator[Any]]) -> Any:
    @functools.wraps(stream)
    def watched(self: Any, messages: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        chunks = stream(self, messages, *args, **kwargs)
        if _is_unseen():
            yield from chunks
        else:
            yield _chunk(_run_sync(_ask(self, messages, kwargs, _awaited(lambda: _joined(list(chunks))))))

    return watched


def _is_unseen() -> bool:
    return current_turn.get() is None or running_request.get() is not None


def _awaited(function: Callable[[], Any]) -> Callable[[], Awaitable[Any]]:
    """A synchronous function as one to await."""

    async def call() -> Any:
        return function()

    return call


def _run_sync(work: Coroutine[Any, Any, Result]) -> Result:
    """Runs a coroutine that never waits, and returns its result."""
    try:
        with blocking():
            work.send(None)
    except StopIteration as done:
        result: Result = done.value
        return result
    work.close()
    raise RuntimeError("a synchronous call waited")


# Fields that only a chunk of a message has.
_CHUNK_FIELDS = ("type", "tool_call_chunks", "chunk_position")


def _joined(chunks: list[Any]) -> Any:
    """The result that the chunks add up to."""
    if not chunks:
        raise ValueError("the model streamed no response")
    whole = functools.reduce(lambda left, right: left + right, chunks)
    fields = {name: value for name, value in whole.message if name not in _CHUNK_FIELDS}
    message = message_from_json({**fields, "type": "ai"})
    return ChatResult(generations=[ChatGeneration(message=message, generation_info=whole.generation_info)])


def _chunk(result: Any) -> Any:
    generation = result.generations[0]
    fields = {name: value for name, value in generation.message if name not in _CHUNK_FIELDS}
    message = AIMessageChunk(**fields, chunk_position="last")
    return ChatGenerationChunk(message=message, generation_info=generation.generation_info)


async def _ask(model: Any, messages: Any, kwargs: Json, ask: Callable[[], Awaitable[Any]]) -> Any:
    metadata = ensure_config().get("metadata") or {}
    name, settings = _settings(model, kwargs)
    call = ModelCall(
        name,
        metadata.get("lc_agent_name") or agent_of(places_of(metadata.get("langgraph_checkpoint_ns", ""))),
        functools.partial(_request, name, messages, settings, kwargs),
        (model, messages),
    )
    return await ask_model(call, ask, _FORMAT)


# Fields of every chat model, and its name.
_NO_SETTINGS = {*BaseChatModel.model_fields, "model", "model_name", "streaming"}


def _settings(model: Any, kwargs: Json) -> tuple[str, Json]:
    """The name of a model, and its settings."""
    try:
        params = model._get_ls_params(stop=kwargs.get("stop"))
    except Exception:
        # A class of the user's own may lack all of this.
        params = {}
    names = ("ls_temperature", "ls_max_tokens")
    settings = {name.removeprefix("ls_"): params[name] for name in names if params.get(name) is not None}
    try:
        identifying = dict(model._identifying_params)
    except Exception:
        identifying = {}
    for name in ("model", "model_name"):
        identifying.pop(name, None)
    own = own_settings(model, _NO_SETTINGS)
    return params.get("ls_model_name") or model._llm_type, own | answer_settings(identifying) | settings


def _request(name: str, messages: Any, settings: Json, kwargs: Json) -> JsonRequest:
    named = {
        key: value
        for key, value in kwargs.items()
        if key not in ("tools", "run_manager") and not key.startswith("ls_")
    }
    return JsonRequest(
        model=name,
        instruction=instruction_of(messages),
        tools=[_declared(tool) for tool in kwargs.get("tools") or ()],
        contents=[content for message in messages if (content := content_of_message(message))],
        config=settings | answer_settings(named),
    )


def _declared(tool: Any) -> Json:
    """The declaration of a tool for a model of any provider."""
    # As a class of the user's own may hand them on; of others the provider's package has made objects.
    form = convert_to_openai_tool(tool) if isinstance(tool, BaseTool) else tool
    plain: Json = to_jsonable_python(form, fallback=text_of)
    inner = plain.get("function")
    function: Json = inner if isinstance(inner, dict) else plain
    schema = function.get("parameters") or function.get("input_schema")
    if "name" not in function or schema is None:
        return plain
    return declaration(function["name"], function.get("description"), schema)


def _result_to_json(result: Any) -> Json:
    generation = result.generations[0]
    info = to_jsonable_python(generation.generation_info or {}, fallback=str)
    return {"message": message_to_json(generation.message)} | ({"info": info} if info else {})


def _result_from_json(data: Json) -> Any:
    message = message_from_json(data["message"])
    return ChatResult(generations=[ChatGeneration(message=message, generation_info=data.get("info"))])


_FORMAT: ResponseFormat[Any] = ResponseFormat(_result_to_json, _result_from_json, described)


class _NotReplayableError(Exception):
    """A recorded call changes the graph itself, so it is made and not replayed."""


def _watched_arun(run: Callable[..., Awaitable[Any]]) -> Any:
    @functools.wraps(run)
    async def watched(self: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        make = functools.partial(run, self, tool_input, *args, **kwargs)
        return await _call_tool(self, tool_input, kwargs.get("tool_call_id"), make)

    return watched


def _watched_run(run: Callable[..., Any]) -> Any:
    @functools.wraps(run)
    def watched(self: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        make = functools.partial(run, self, tool_input, *args, **kwargs)
        return _run_sync(_call_tool(self, tool_input, kwargs.get("tool_call_id"), _awaited(make)))

    return watched


async def _call_tool(
    tool: Any, tool_input: Any, call_id: str | None, make: Callable[[], Awaitable[Any]]
) -> Any:
    turn = current_turn.get()
    if turn is None:
        return await make()
    place = (ensure_config().get("metadata") or {}).get("langgraph_checkpoint_ns", "")
    turn.inside.setdefault(place, call_id or "")
    try:
        result = await call_tool(
            (id(tool), call_id),
            tool.name,
            functools.partial(_args, tool, tool_input),
            call_id or "",
            functools.partial(_interruptible, make),
            ToolForm(_outcome, functools.partial(_recorded, tool.name, call_id)),
        )
    except _NotReplayableError:
        result = await make()
    if isinstance(result, GraphInterrupt):
        raise result
    if isinstance(result, Command) and isinstance(result.goto, str) and result.goto and call_id:
        turn.transfers[call_id] = result.goto
    if isinstance(result, ToolMessage):
        turn.on_result(result)
    return result


async def _interruptible(make: Callable[[], Awaitable[Any]]) -> Any:
    """The result of a call, or the interrupt that it raises: a request to a person is no error."""
    try:
        return await make()
    except GraphInterrupt as request:
        return request


def _args(tool: Any, tool_input: Any) -> Json:
    """The arguments that the model gave, without the graph's state and other values that tools also get."""
    arguments = tool_input if isinstance(tool_input, dict) else {"input": tool_input}
    try:
        schema = tool.tool_call_schema
        names = schema["properties"] if isinstance(schema, dict) else schema.model_fields
    except Exception:
        # A class of the user's own may have none.
        names = arguments
    plain: Json = to_jsonable_python({key: arguments[key] for key in arguments if key in names}, fallback=str)
    return plain


def _outcome(result: Any) -> ToolOutcome:
    if isinstance(result, GraphInterrupt):
        request = result.args[0][-1].value if result.args and result.args[0] else None
        return ToolOutcome(actions={"interrupt": to_jsonable_python(request, fallback=str)})
    if isinstance(result, Command):
        return ToolOutcome(actions={"command": True})
    if not isinstance(result, ToolMessage):
        return ToolOutcome(result=response_of(result))
    response = response_of_content(result.content)
    message = message_to_json(result)
    # The original text, where writing the response again would give another.
    actions = {"content": message["content"]} if content_of_response(response) != result.content else {}
    actions |= {name: message[name] for name in ("artifact", "additional_kwargs") if name in message}
    if result.status != "success":
        actions["status"] = result.status
    return ToolOutcome(result=response, actions=actions)


def _recorded(name: str, call_id: str | None, recorded: ToolCall) -> Any:
    actions = recorded.actions
    if actions.get("command"):
        raise _NotReplayableError
    while "interrupt" in actions and recorded.error is None:
        # The last one has no response yet and raises, as it did when it was recorded.
        interrupt(actions["interrupt"])
    if call_id is None:
        return result_of(recorded.result)
    return ToolMessage(
        **{"content": content_of_response(recorded.result), **actions}, name=name, tool_call_id=call_id
    )
