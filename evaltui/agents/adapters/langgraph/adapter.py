"""Runs a graph of LangGraph, also of `langchain.agents`. Tested with version 1.2."""

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

from ....core.conversation.waiting import INPUT, responses_in
from ....core.model.events import Json, Step
from ...call_recorder import current_call_recorder
from ..base import (
    DEFAULT_USER_ID,
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
    confirmation,
    source_places,
    state_after,
)
from ..deps import Deps, keys_not_taken
from ..values import result_of
from .calls import current_turn, watch_calls
from .messages import message_of, messages_of
from .turn import MESSAGES, ReportedSoFar, Turn, state_json


class LangGraphAdapter(AgentAdapter):
    """The adapter for graphs whose state has the key `messages`. Raises AgentLoadError for others."""

    input = AgentInput("a LangGraph graph", session=("user_id", "session_id"), parts=TEXTS_AND_FILES)

    def __init__(self, agent: Any) -> None:
        graph = agent.compile() if isinstance(agent, StateGraph) else agent
        if not isinstance(graph, Pregel) or MESSAGES not in graph.channels:
            raise AgentLoadError(
                f"root_agent is a {type(agent).__name__} whose state has no key `messages`. Add it, such as "
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
    """Turns LangSmith's traces off in a replay, which must not need the network."""
    recorder = current_call_recorder.get()
    replays = recorder is not None and recorder.modes.models == "replay"
    return tracing_context(enabled=False) if replays else nullcontext()


class _InMemory:
    """A serializer that keeps the objects themselves: a state may hold objects that cannot be serialized."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def dumps_typed(self, value: Any) -> tuple[str, bytes]:
        # A checkpoint is copied, because it is changed later; its channels are stored one by one.
        is_checkpoint = isinstance(value, dict) and "channel_versions" in value
        self._values.append(copy.deepcopy(value) if is_checkpoint else value)
        return "object", str(len(self._values) - 1).encode()

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return self._values[int(data[1])]


def _input_keys(graph: Any) -> Collection[str]:
    """The keys that a graph accepts as input; it drops all others."""
    builder: Any = getattr(graph, "builder", None)
    schema = getattr(builder, "input_schema", None)
    keys: Collection[str] = graph.channels if schema is None else builder.schemas[schema]
    return keys


def _refuse_ignored_state(graph: Any, graph_input: Json) -> None:
    """Raises AgentLoadError for a key of the input that the pydantic model of the state ignores."""
    builder: Any = getattr(graph, "builder", None)
    for name in ("input_schema", "state_schema"):
        schema: Any = getattr(builder, name, None)
        if not hasattr(schema, "__pydantic_validator__"):
            continue
        data = {key: value for key, value in graph_input.items() if key in builder.schemas[schema]}
        try:
            # As the graph creates the state of a node.
            value = schema(**{MESSAGES: [], **data})
        except (TypeError, ValueError):
            # The run says it.
            continue
        data.pop(MESSAGES, None)
        for path in keys_not_taken(data, value, by_name=False):
            raise AgentLoadError(
                f"the initial state has the key {path!r}, which {schema.__name__}, the state of the graph, "
                "ignores. Remove the key, or make it the name of a field without another alias"
            )


class LangGraphSession(AgentSession):
    """One conversation: a thread of the graph, with a checkpointer of its own."""

    def __init__(self, graph: Any, spec: SessionSpec, reporter: Reporter, past: Sequence[Step]) -> None:
        self._graph = graph.copy({"checkpointer": InMemorySaver(serde=_InMemory())})
        state = state_after(spec.state, past)
        kind = getattr(graph, "context_schema", None)
        input_keys = _input_keys(graph)
        self._other_state = {key: value for key, value in state.items() if key not in input_keys}
        # Of a past, the context has the initial state: only the graph's own state changes.
        context_state = spec.state | self._other_state
        kind = type(None) if kind is None else kind
        self._context = Deps(kind, context_state, "input or context", input_keys)
        self._input = {key: value for key, value in state.items() if key in input_keys}
        _refuse_ignored_state(graph, self._input)
        self._input[MESSAGES] = [*(self._input.get(MESSAGES) or []), *messages_of(past)]
        self._is_started = False
        self._config = {
            "configurable": {
                "thread_id": spec.session_id or uuid.uuid4().hex,
                "user_id": spec.user_id or DEFAULT_USER_ID,
            }
        }
        self._waiting = _OpenRequests()
        self._reported = ReportedSoFar(state_json(self._input))
        self._steps = Steps(reporter, past, lambda: self._reported.state)

    async def send(self, content: Json) -> None:
        """Runs a turn. Raises what the graph raises, and ValueError for a response to a request that this
        session did not make."""
        responses = responses_in(content)
        if unknown := [
            response for response in responses if str(response.get("id")) not in self._waiting.pending
        ]:
            call = unknown[0].get("name")
            raise ValueError(
                f"a graph cannot continue from a past where it waits for a response to {call}: its "
                "checkpoint is not part of the past. Send its turns again"
            )
        resumes = self._waiting.add(responses)
        message = message_of(content)
        if message is None and not responses:
            # The graph would not run, and the turn would look like one without calls.
            raise ValueError("the message is empty. Add a text, a file or a response to it")
        before = await self._values()
        turn = Turn(self._steps, self._graph.get_name(), before, self._reported)
        if not resumes and message is None:
            # The graph continues when each request has its response; until then, open ones are made again.
            turn.report_requests(self._waiting.requests())
            return
        token = current_turn.set(turn)
        try:
            with _without_traces():
                await self._run(turn, self._next(message, resumes=resumes))
        finally:
            current_turn.reset(token)
        self._waiting = _OpenRequests.of(await self._graph.aget_state(self._config))
        if requests := self._waiting.requests():
            turn.report_requests(requests)

    def _next(self, message: Any, *, resumes: bool) -> Any:
        """The input of the graph's next run."""
        messages = [] if message is None else [message]
        if resumes:
            return self._waiting.resumption({MESSAGES: messages} if messages else None)
        first = {} if self._is_started else self._input
        self._is_started = True
        return {**first, MESSAGES: [*first.get(MESSAGES, []), *messages]}

    async def _run(self, turn: Turn, graph_input: Any) -> None:
        stream = self._graph.astream(
            graph_input,
            self._config,
            context=self._context.value,
            stream_mode=["updates", "values"],
            subgraphs=True,
        )
        turn.start(graph_input)
        async for place, mode, chunk in stream:
            if mode == "updates":
                turn.on_update(place, chunk)
            elif not place:
                turn.on_values(chunk)
        turn.end()

    async def _values(self) -> Json:
        if not self._is_started:
            return self._input
        values: Json = (await self._graph.aget_state(self._config)).values
        return values

    async def state(self) -> Json:
        return self._other_state | state_json(await self._values())


_DEFAULT_HINT = "Tool execution requires approval"


@dataclass(frozen=True)
class _Request:
    """One request of an interrupt; `action` is the call to approve, if it is about a call."""

    interrupt: str
    call: Json
    action: Json | None = None


@dataclass
class _OpenRequests:
    """The requests that wait for a person, and the responses so far, by the ids of their calls."""

    pending: dict[str, _Request] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Any) -> _OpenRequests:
        """The open requests in a state of the graph."""
        interrupts = [interrupt for task in snapshot.tasks for interrupt in task.interrupts]
        requests = [request for interrupt in interrupts for request in _requests(interrupt)]
        if not interrupts and snapshot.next:
            message = f"The graph stopped before {', '.join(snapshot.next)}. Continue?"
            requests.append(_Request("", _input(f"before-{snapshot.next[0]}", {"message": message})))
        return cls({request.call["id"]: request for request in requests})

    def requests(self) -> list[Json]:
        """The calls that request a response, as parts of a content, for requests without one."""
        pending = self.pending.items()
        return [{"function_call": request.call} for key, request in pending if key not in self.answers]

    def add(self, responses: Sequence[Json]) -> bool:
        """Adds responses. Returns whether the graph resumes, since every request has one now."""
        self.answers |= {str(response["id"]): response.get("response") or {} for response in responses}
        return bool(responses) and self.answers.keys() >= self.pending.keys()

    def resumption(self, update: Json | None) -> Any:
        """The input that resumes the graph with the responses; `update` changes its state first."""
        values: dict[str, Any] = {}
        for call_id, request in self.pending.items():
            answer = self.answers[call_id]
            if request.action is None:
                values[request.interrupt] = result_of(answer)
            else:
                decisions = values.setdefault(request.interrupt, {"decisions": []})["decisions"]
                decisions.append(_decision(request.action, answer))
        if "" in values:
            # It stopped before or after a node, without an interrupt.
            return Command(update=update) if update else None
        first = next(iter(values.values()))
        return Command(resume=first if len(values) == 1 else values, update=update)


def _requests(interrupt: Any) -> list[_Request]:
    value = to_jsonable_python(interrupt.value, fallback=str)
    actions = value.get("action_requests") if isinstance(value, dict) else None
    if not actions or not all(isinstance(action, dict) and "name" in action for action in actions):
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
        # LangChain's default text repeats the call.
        hint = "" if hint.startswith(_DEFAULT_HINT) else hint
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
