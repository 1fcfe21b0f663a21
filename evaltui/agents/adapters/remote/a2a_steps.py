"""Converts the responses of an A2A agent to steps: messages, artifacts and updates of its task.

Responses are those of A2A 1.0 as JSON (`StreamResponse`); the SDK converts those of 0.3. The extensions of
google-adk's `to_a2a`, in metadata and in data parts, are read as in google-adk 2.13.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ....core.model.events import CALLS, Json, Step, is_final
from ....core.model.json_values import object_or_empty

_WAITS = "long_running"
_URL_SAFE = str.maketrans("+/", "-_")
# Larger numbers of JSON are not exact in protobuf.
_LARGEST_EXACT = 2**53
_ADK = "adk_"
# The kinds of genai parts, with the fields that every version has.
_ADK_PARTS = {
    "function_call": ("id", "name", "args"),
    "function_response": ("id", "name", "response"),
    "executable_code": ("code", "language"),
    "code_execution_result": ("outcome", "output"),
}
_USAGE = {
    "promptTokenCount": "prompt_token_count",
    "candidatesTokenCount": "candidates_token_count",
    "totalTokenCount": "total_token_count",
    "cachedContentTokenCount": "cached_content_token_count",
    "thoughtsTokenCount": "thoughts_token_count",
    "toolUsePromptTokenCount": "tool_use_prompt_token_count",
}

State = Literal[
    "", "working", "input_required", "auth_required", "completed", "failed", "canceled", "rejected"
]
_STATES: dict[str, State] = {
    "SUBMITTED": "working",
    "WORKING": "working",
    "INPUT_REQUIRED": "input_required",
    "AUTH_REQUIRED": "auth_required",
    "COMPLETED": "completed",
    "FAILED": "failed",
    "CANCELED": "canceled",
    "REJECTED": "rejected",
}
WAITING: tuple[State, ...] = ("input_required", "auth_required")
FAILED: tuple[State, ...] = ("failed", "canceled", "rejected")


def plain_numbers(value: Any) -> Any:
    """JSON data with whole numbers as integers: the protocol has only floating-point numbers."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= _LARGEST_EXACT:
        return int(value)
    if isinstance(value, list):
        return [plain_numbers(item) for item in value]
    if isinstance(value, dict):
        # Maps of protobuf have another order in each process.
        return {key: plain_numbers(item) for key, item in sorted(value.items())}
    return value


def genai_part(part: Json) -> Json | None:
    """A part of A2A as a part of genai; None for an empty part.

    Data that is neither a call nor a result becomes a text: the data as JSON.
    """
    metadata = part.get("metadata") or {}
    if "text" in part:
        thought = {"thought": True} if metadata.get(f"{_ADK}thought") is True else {}
        return {"text": part["text"], **thought} if part["text"] else None
    about = {"mime_type": part.get("mediaType"), "display_name": part.get("filename")}
    about = {name: value for name, value in about.items() if value}
    if "raw" in part:
        # genai uses the URL-safe alphabet of base64.
        return {"inline_data": {"data": part["raw"].translate(_URL_SAFE), **about}}
    if "url" in part:
        return {"file_data": {"file_uri": part["url"], **about}}
    if "data" not in part:
        return None
    data = plain_numbers(part["data"])
    kind = str(metadata.get(f"{_ADK}type"))
    if kind in _ADK_PARTS and isinstance(data, dict):
        return {kind: {name: data[name] for name in _ADK_PARTS[kind] if name in data}}
    return {"text": json.dumps(data, ensure_ascii=False)}


def a2a_part(part: Json) -> Json | None:
    """A part of a user's message as a part of A2A; None for an empty part.

    Responses to calls become data as google-adk's `to_a2a` accepts them.
    """
    if part.get("text"):
        return {"text": part["text"]}
    for kind, place in (("inline_data", "data"), ("file_data", "file_uri")):
        if (file := part.get(kind)) is not None:
            about = {"mediaType": file.get("mime_type"), "filename": file.get("display_name")}
            field_name = "raw" if kind == "inline_data" else "url"
            return {field_name: file.get(place)} | {name: value for name, value in about.items() if value}
    if (response := part.get("function_response")) is not None:
        return {"data": response, "metadata": {f"{_ADK}type": "function_response"}}
    return None


@dataclass
class Received:
    """The content received from an agent in a conversation so far: tasks repeat all their content."""

    messages: set[tuple[str, str]] = field(default_factory=set)
    """The ids of messages with their content: some servers use one id for several messages."""
    of_tasks: dict[str, set[tuple[str, str]]] = field(default_factory=lambda: defaultdict(set))
    """The same by the id of their task: some servers use one id in every task."""
    artifacts: dict[tuple[str, str], str] = field(default_factory=dict)
    """The content of artifacts, by the ids of their task and of themselves within it."""
    steps: set[str] = field(default_factory=set)
    """The ids of google-adk's events."""
    sends_calls: bool = False
    """Whether the agent is one of google-adk, which sends its tool calls."""


class TurnSteps:
    """Converts the responses to one message to steps, in order.

    `agent` is the author where a response names none, `context_id` the conversation so far, "" for a new one:
    a message need not name it.
    """

    def __init__(self, agent: str, received: Received, numbers: Iterator[int], context_id: str = "") -> None:
        self.state: State = ""
        """The state of the task; "" without a task."""
        self.task_id = ""
        self.context_id = context_id
        self.failure = ""
        """The agent's message on a task that failed."""
        self._agent = agent
        self._received = received
        self._numbers = numbers
        # The last content: an artifact often repeats it.
        self._last = ""
        # The artifacts of agents without google-adk: they are the result, so they come last.
        self._artifacts: dict[str, list[Json]] = {}
        self._sent_artifacts: set[str] = set()
        self._messages: set[tuple[str, str]] = set()

    @property
    def waiting_task(self) -> str:
        """The task that waits for the next message; "" where none does."""
        return self.task_id if self.state in WAITING else ""

    def steps_of(self, response: Json) -> Iterator[Step]:
        """The steps of a response; pieces of a text that is still being sent are partial."""
        if "message" in response:
            self._set_ids(response["message"])
            yield from self._message(response["message"], {}, self._messages)
        elif "task" in response:
            yield from self._task(response["task"])
        elif (update := response.get("statusUpdate")) is not None:
            self._set_ids(update)
            yield from self._status(update.get("status") or {}, update.get("metadata") or {}, self._messages)
        elif (update := response.get("artifactUpdate")) is not None:
            self._set_ids(update)
            # Only tasks have artifacts.
            self.state = self.state or "working"
            yield from self._artifact_update(update)

    def end(self) -> list[Step]:
        """The last step of the turn: its result, and the position from which the conversation continues."""
        result = [part for parts in self._artifacts.values() for part in parts]
        self._received.artifacts |= {
            (self.task_id, artifact_id): _key(parts) for artifact_id, parts in self._artifacts.items()
        }
        self._artifacts = {}
        steps = [self._step(result, {})] if result and _key(result) != self._last else [self._step([], {})]
        place = {"context_id": self.context_id, "task_id": self.waiting_task}
        untold = () if self._received.sends_calls else (CALLS,)
        return [replace(steps[0], framework={"a2a": place}, untold=untold)]

    def _set_ids(self, response: Json) -> None:
        self.context_id = response.get("contextId") or self.context_id
        self.task_id = response.get("taskId") or self.task_id

    def _task(self, task: Json) -> Iterator[Step]:
        self._set_ids(task)
        self.task_id = task.get("id") or self.task_id
        about = task.get("metadata") or {}
        self._check_sender(about)
        for message in task.get("history") or []:
            yield from self._message(message, {}, self._received.messages)
        # The metadata of a task collect those of all its messages, so only the author is used.
        author = {name: value for name, value in about.items() if name == f"{_ADK}author"}
        for artifact in task.get("artifacts") or []:
            key = self.task_id, artifact.get("artifactId") or ""
            if self._received.artifacts.get(key) != _key(_parts(artifact)):
                update = {"artifact": artifact, "lastChunk": True, "metadata": author}
                yield from self._artifact_update(update)
        yield from self._status(task.get("status") or {}, {}, self._received.of_tasks[self.task_id])

    def _status(self, status: Json, metadata: Json, earlier: Collection[tuple[str, str]]) -> Iterator[Step]:
        # A state that nobody knows may be another one soon.
        unknown = self.state or "working"
        self.state = _STATES.get(str(status.get("state")).removeprefix("TASK_STATE_"), unknown)
        self._check_sender(metadata)
        message = status.get("message") or {}
        if self.state in FAILED:
            self.failure = "\n".join(part["text"] for part in _parts(message) if part.get("text"))
        else:
            yield from self._message(message, metadata, earlier)

    def _message(self, message: Json, metadata: Json, earlier: Collection[tuple[str, str]]) -> Iterator[Step]:
        """The step of a message, unless it is one of the `earlier` ones: a task also has those of earlier
        turns."""
        about = metadata | (message.get("metadata") or {})
        self._check_sender(about)
        parts = _parts(message)
        key = message.get("messageId") or "", _key(parts)
        if message.get("role") == "ROLE_USER" or key in earlier:
            return
        if key[0]:
            for messages in (self._messages, self._received.messages, self._received.of_tasks[self.task_id]):
                messages.add(key)
        if self._is_artifact(parts):
            parts = []
        # google-adk sends changes of state and transfers to another agent without content.
        if parts or any(_effects(about)):
            yield self._step(parts, about)

    def _artifact_update(self, update: Json) -> Iterator[Step]:
        artifact = update.get("artifact") or {}
        artifact_id = artifact.get("artifactId") or ""
        about = (update.get("metadata") or {}) | (artifact.get("metadata") or {})
        self._check_sender(about)
        parts = _parts(artifact)
        earlier = self._artifacts.get(artifact_id, []) if update.get("append") else []
        self._artifacts[artifact_id] = _appended(earlier, parts)
        if not update.get("lastChunk"):
            if texts := [part for part in parts if "text" in part]:
                yield Step(self._agent, {"role": "model", "parts": texts}, partial=True)
        elif f"{_ADK}author" in about:
            # An artifact of google-adk is one event, in order with the others.
            whole = self._artifacts.pop(artifact_id)
            self._received.artifacts[self.task_id, artifact_id] = _key(whole)
            self._sent_artifacts.add(_key(whole))
            if _key(whole) != self._last:
                yield self._step(whole, about)

    def _is_artifact(self, parts: list[Json]) -> bool:
        """Whether an artifact of this turn has the same content."""
        whole = [part for artifact in self._artifacts.values() for part in artifact]
        return _key(parts) in {*self._sent_artifacts, *map(_key, (whole, *self._artifacts.values()))}

    def _check_sender(self, metadata: Json) -> None:
        self._received.sends_calls |= f"{_ADK}session_id" in metadata or f"{_ADK}author" in metadata

    def _step(self, parts: list[Json], about: Json) -> Step:
        state, transfer = _effects(about)
        step_id = str(about.get(f"{_ADK}event_id") or "")
        if not step_id or step_id in self._received.steps:
            step_id = f"step-{next(self._numbers)}"
        self._received.steps.add(step_id)
        if parts:
            self._last = _key(parts)
        plain = [{name: value for name, value in part.items() if name != _WAITS} for part in parts]
        step = Step(
            author=str(about.get(f"{_ADK}author") or self._agent),
            content={"role": _role(parts), "parts": plain} if parts else None,
            usage=_usage(object_or_empty(about.get(f"{_ADK}usage_metadata"))) or None,
            id=step_id,
            invocation_id=str(about.get(f"{_ADK}invocation_id") or ""),
            branch=str(about.get(f"{_ADK}branch") or ""),
            timestamp=time.time(),
            state=state or None,
            transfer=transfer,
            long_running=tuple(part[_WAITS] for part in parts if _WAITS in part),
        )
        return replace(step, final=is_final(step))


def _parts(container: Json) -> list[Json]:
    """The parts of a message or an artifact; a call that waits for a person has its id in `_WAITS`."""
    genai_parts = []
    for part in container.get("parts") or []:
        converted = genai_part(part)
        if converted is None:
            continue
        waits = (part.get("metadata") or {}).get(f"{_ADK}is_long_running") is True
        call_id = converted.get("function_call", {}).get("id")
        genai_parts.append(converted | {_WAITS: str(call_id)} if waits and call_id else converted)
    return genai_parts


def _effects(about: Json) -> tuple[Json, str | None]:
    """The changes of state in an event of google-adk, and the agent that it transfers to."""
    actions = object_or_empty(about.get(f"{_ADK}actions"))
    changed = plain_numbers(object_or_empty(actions.get("stateDelta")))
    state = {key: value for key, value in changed.items() if not key.removeprefix("temp:").startswith("_adk")}
    return state, str(actions.get("transferToAgent") or "") or None


def _appended(parts: list[Json], more: list[Json]) -> list[Json]:
    """Parts with further parts appended; the first of these may continue the last text."""
    if parts and more and "text" in more[0] and parts[-1].keys() == more[0].keys():
        return [*parts[:-1], parts[-1] | {"text": parts[-1]["text"] + more[0]["text"]}, *more[1:]]
    return [*parts, *more]


def _key(parts: list[Json]) -> str:
    """A key that is equal for equal content, however its text is divided into parts."""
    if all(part.keys() == {"text"} for part in parts):
        return "".join(part["text"] for part in parts).strip()
    return json.dumps(parts, sort_keys=True)


def _role(parts: list[Json]) -> str:
    return "user" if any("function_response" in part for part in parts) else "model"


def _usage(counts: Json) -> Json:
    return {
        name: plain_numbers(counts[key])
        for key, name in _USAGE.items()
        if isinstance(counts.get(key), int | float)
    }
