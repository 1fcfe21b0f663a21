"""Drives a graph of LangGraph, those of `langchain.agents` included. Tested with version 1.2."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel
from langgraph.types import Command
from langsmith.run_helpers import tracing_context
from pydantic_core import to_jsonable_python

from .....core.conversation.waiting import INPUT, responses_in
from .....core.model.events import Json, Step
from ....call_recorder import current_call_recorder
from ..base import (
    DEFAULT_USER_ID,
    TEXTS_AND_FILES,
    AgentInfo,
    AgentInput,
    AgentLoadError,
    AgentSession,
    Reporter,
    SessionSpec,
    Steps,
    ToolInfo,
    confirmation,
    source_places,
    state_after,
)
from ..calls import result_of
from ..deps import Deps
from .calls import current_calls, watch_calls
from .messages import message_of, messages_of
from .turn import MESSAGES, Told, Turn, state_json


class LangGraphAdapter:
    """The way in for graphs whose state has the key `messages`. Raises AgentLoadError for others."""

    input = AgentInput("a LangGraph graph", session=("user_id", "session_id"), parts=TEXTS_AND_FILES)

    def __init__(self, found: Any) -> None:
        graph = found.compile() if isinstance(found, StateGraph) else found
        if not isinstance(graph, Pregel) or MESSAGES not in graph.channels:
            raise AgentLoadError(
                f"root_agent is a {type(found).__name__} whose state has no key `messages`. Add it, such as "
                "with MessagesState, or run the graph in a function root_agent(message, session)"
            )
        self._graph = graph
        watch_calls()

    async def open(self) -> AgentInfo:
        below = dict(self._graph.get_subgraphs(recurse=True))
        tools = {name: tool for graph in (*below.values(), self._graph) for name, tool in _tools(graph)}
        return AgentInfo(
            name=self._graph.get_name(),
            framework="langgraph",
            version=f"langgraph {version('langgraph')}",
            tools=tuple(_tool_info(tool) for tool in tools.values()),
            sub_agents=tuple(name.replace("|", "/") for name in below),
            places=source_places(
                {name: function for name, tool in tools.items() for function in _code(tool)}
            ),
        )

    async def new_session(
        self, spec: SessionSpec, reporter: Reporter, past: Sequence[Step] = ()
    ) -> AgentSession:
        return LangGraphSession(self._graph, spec, reporter, past)

    async def close(self) -> None: ...


def _tools(graph: Any) -> Iterator[tuple[str, Any]]:
    for node in graph.nodes.values():
        if isinstance(node.bound, ToolNode):
            yield from node.bound.tools_by_name.items()


def _tool_info(tool: Any) -> ToolInfo:
    schema = tool.tool_call_schema
    return ToolInfo(
        tool.name, tool.description, schema if isinstance(schema, dict) else schema.model_json_schema()
    )


def _code(tool: Any) -> Iterator[Any]:
    for name in ("func", "coroutine"):
        if (function := getattr(tool, name, None)) is not None:
            yield function


def _without_traces() -> AbstractContextManager[object]:
    """A replay needs no network, also where LangSmith's variables ask for traces."""
    recorder = current_call_recorder.get()
    replays = recorder is not None and recorder.modes.models == "replay"
    return tracing_context(enabled=False) if replays else nullcontext()


class _InMemory:
    """Keeps values as they are, where others write them: a state may hold what nothing can write."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def dumps_typed(self, value: Any) -> tuple[str, bytes]:
        # Of a checkpoint, its channels are kept one by one; its own members are changed later on.
        is_checkpoint = isinstance(value, dict) and "channel_versions" in value
        self._values.append(copy.deepcopy(value) if is_checkpoint else value)
        return "object", str(len(self._values) - 1).encode()

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return self._values[int(data[1])]


def _input_keys(graph: Any) -> Collection[str]:
    """Keys that a graph begins with; it drops all others."""
    builder: Any = getattr(graph, "builder", None)
    schema = getattr(builder, "input_schema", None)
    keys: Collection[str] = graph.channels if schema is None else builder.schemas[schema]
    return keys


class LangGraphSession:
    """One conversation: a thread of the graph in a memory of its own, whatever checkpointer the graph has."""

    def __init__(self, graph: Any, spec: SessionSpec, reporter: Reporter, past: Sequence[Step]) -> None:
        self._graph = graph.copy({"checkpointer": InMemorySaver(serde=_InMemory())})
        state = state_after(spec.state, past)
        kind = getattr(graph, "context_schema", None)
        taken = _input_keys(graph)
        self._given = {key: value for key, value in state.items() if key not in taken}
        self._context = Deps(type(None) if kind is None else kind, self._given, "input or context")
        self._input = {key: value for key, value in state.items() if key in taken}
        self._input[MESSAGES] = [*(self._input.get(MESSAGES) or []), *messages_of(past)]
        self._begun = False
        self._config = {
            "configurable": {
                "thread_id": spec.session_id or uuid.uuid4().hex,
                "user_id": spec.user_id or DEFAULT_USER_ID,
            }
        }
        self._waiting = _Waiting()
        self._told = Told(state_json(self._input))
        self._steps = Steps(reporter, past, lambda: self._told.state)

    async def send(self, content: Json) -> None:
        """Raises what the graph raises, and ValueError for a response to what it did not ask here."""
        responses = responses_in(content)
        if unknown := [one for one in responses if str(one.get("id")) not in self._waiting.pending]:
            call = unknown[0].get("name")
            raise ValueError(
                f"a graph cannot continue from a past where it waits for a response to {call}: its "
                "checkpoint is not part of the past. Send its turns again"
            )
        asked = self._waiting.answered(responses)
        message = message_of(content)
        if message is None and not responses:
            # The graph would not run, and a turn without calls would look as if it had.
            raise ValueError("the message is empty. Add a text, a file or a response to it")
        before = await self._values()
        turn = Turn(self._steps, self._graph.get_name(), before, self._told)
        if asked is None and message is None:
            # The graph goes on when each request has its response; until then, the others are made again.
            turn.report_requests(self._waiting.requests())
            return
        token = current_calls.set(turn.calls)
        try:
            with _without_traces():
                await self._run(turn, self._next(asked, message))
        finally:
            current_calls.reset(token)
        self._waiting = _Waiting.of(await self._graph.aget_state(self._config))
        if requests := self._waiting.requests():
            turn.report_requests(requests)

    def _next(self, asked: Any, message: Any) -> Any:
        """What the graph is to go on with."""
        said = [] if message is None else [message]
        if asked is not None:
            return asked.command({MESSAGES: said} if said else None)
        first = {} if self._begun else self._input
        self._begun = True
        return {**first, MESSAGES: [*first.get(MESSAGES, []), *said]}

    async def _run(self, turn: Turn, given: Any) -> None:
        stream = self._graph.astream(
            given,
            self._config,
            context=self._context.value,
            stream_mode=["updates", "values"],
            subgraphs=True,
        )
        turn.begin(given)
        async for place, mode, chunk in stream:
            if mode == "updates":
                turn.on_update(place, chunk)
            elif not place:
                turn.on_values(chunk)
        turn.end()

    async def _values(self) -> Json:
        if not self._begun:
            return self._input
        values: Json = (await self._graph.aget_state(self._config)).values
        return values

    async def state(self) -> Json:
        return self._given | state_json(await self._values())

    async def close(self) -> None: ...


_OWN_WORDS = "Tool execution requires approval"


@dataclass(frozen=True)
class _Request:
    """One question of an interrupt; `action` is the call that is to be approved, if it is about one."""

    interrupt: str
    call: Json
    action: Json | None = None


@dataclass(frozen=True)
class _Answered:
    """The responses of a person, by the interrupt; None in place of a stop before or after a node."""

    values: dict[str, Any] | None

    def command(self, update: Json | None) -> Any:
        """What the graph goes on with; `update` changes its state first."""
        if self.values is None:
            return Command(update=update) if update else None
        first = next(iter(self.values.values()))
        return Command(resume=first if len(self.values) == 1 else self.values, update=update)


@dataclass
class _Waiting:
    """What waits for a person, by the ids of the calls that ask."""

    pending: dict[str, _Request] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Any) -> _Waiting:
        """What a graph waits for in this state."""
        interrupts = [one for task in snapshot.tasks for one in task.interrupts]
        requests = [request for one in interrupts for request in _requests(one)]
        if not interrupts and snapshot.next:
            message = f"The graph stopped before {', '.join(snapshot.next)}. Continue?"
            requests.append(_Request("", _input(f"before-{snapshot.next[0]}", {"message": message})))
        return cls({request.call["id"]: request for request in requests})

    def requests(self) -> list[Json]:
        """Parts of a content that ask, what has no response yet."""
        pending = self.pending.items()
        return [{"function_call": request.call} for key, request in pending if key not in self.answers]

    def answered(self, responses: Sequence[Json]) -> _Answered | None:
        """What to go on with; None where nothing was asked, or something has no response yet."""
        self.answers |= {str(one["id"]): one.get("response") or {} for one in responses}
        if not responses or self.answers.keys() < self.pending.keys():
            return None
        values: dict[str, Any] = {}
        for call_id, request in self.pending.items():
            response = self.answers[call_id]
            if request.action is None:
                values[request.interrupt] = result_of(response)
            else:
                decisions = values.setdefault(request.interrupt, {"decisions": []})["decisions"]
                decisions.append(_decision(request.action, response))
        return _Answered(None if "" in values else values)


def _requests(interrupt: Any) -> list[_Request]:
    value = to_jsonable_python(interrupt.value, fallback=str)
    actions = value.get("action_requests") if isinstance(value, dict) else None
    if not actions or not all(isinstance(one, dict) and "name" in one for one in actions):
        args: Json = {"message": value if isinstance(value, str) else "Input requested"}
        if not isinstance(value, str):
            args["payload"] = value
        if isinstance(schema := getattr(interrupt, "response_schema", None), dict):
            args["response_schema"] = schema
        return [_Request(interrupt.id, _input(interrupt.id, args))]
    requests = []
    for number, action in enumerate(actions):
        original = {"id": "", "name": action["name"], "args": action.get("args") or {}}
        hint = str(action.get("description") or "")
        # LangChain's own words say what the call itself says.
        hint = "" if hint.startswith(_OWN_WORDS) else hint
        call = confirmation(f"{interrupt.id}-{number}", original, hint)
        requests.append(_Request(interrupt.id, call, action))
    return requests


def _input(call_id: str, args: Json) -> Json:
    return {"id": call_id, "name": INPUT, "args": args}


def _decision(action: Json, response: Json) -> Json:
    if not response.get("confirmed"):
        return {"type": "reject"}
    args = response.get("payload")
    if isinstance(args, dict):
        return {"type": "edit", "edited_action": {"name": action["name"], "args": args}}
    return {"type": "approve"}
