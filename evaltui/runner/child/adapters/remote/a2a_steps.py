"""What an A2A agent sends in a turn, as steps: messages, artifacts and updates of its task.

Responses are those of A2A 1.0 as JSON (`StreamResponse`); the SDK turns those of 0.3 into them. What `to_a2a`
of google-adk says beyond the protocol, in metadata and in data parts, is read as of google-adk 2.13.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from .....core.model.events import CALLS, Json, Step, is_final

_WAITS = "long_running"
_URL_SAFE = str.maketrans("+/", "-_")
# Beyond it, numbers of JSON as protobuf has them are no longer exact.
_LARGEST_EXACT = 2**53
_ADK = "adk_"
# What genai calls the fields of a part, with those of their own that every version has.
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
    """JSON data whose whole numbers are integers again: the protocol has but one kind of number."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= _LARGEST_EXACT:
        return int(value)
    if isinstance(value, list):
        return [plain_numbers(item) for item in value]
    if isinstance(value, dict):
        return {key: plain_numbers(item) for key, item in value.items()}
    return value


def genai_part(part: Json) -> Json | None:
    """A part of A2A as a part of genai; None for one that holds nothing.

    Data that is neither a call nor a result is a text: the data as JSON.
    """
    metadata = part.get("metadata") or {}
    if "text" in part:
        thought = {"thought": True} if metadata.get(f"{_ADK}thought") is True else {}
        return {"text": part["text"], **thought} if part["text"] else None
    about = {"mime_type": part.get("mediaType"), "display_name": part.get("filename")}
    about = {name: value for name, value in about.items() if value}
    if "raw" in part:
        # genai writes the other alphabet of base64.
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
    """A part of a user's message as a part of A2A; None for one that holds nothing.

    Responses to calls are data as google-adk's `to_a2a` takes them.
    """
    if part.get("text"):
        return {"text": part["text"]}
    for kind, place in (("inline_data", "data"), ("file_data", "file_uri")):
        if (given := part.get(kind)) is not None:
            about = {"mediaType": given.get("mime_type"), "filename": given.get("display_name")}
            field_name = "raw" if kind == "inline_data" else "url"
            return {field_name: given.get(place)} | {name: one for name, one in about.items() if one}
    if (response := part.get("function_response")) is not None:
        return {"data": response, "metadata": {f"{_ADK}type": "function_response"}}
    return None


@dataclass
class Heard:
    """What an agent has sent in a conversation so far: tasks come again with all that was in them."""

    messages: set[tuple[str, str]] = field(default_factory=set)
    """The ids of messages with what they held: some servers give one id to several messages."""
    artifacts: dict[str, str] = field(default_factory=dict)
    """What artifacts held, by their id."""
    steps: set[str] = field(default_factory=set)
    """The ids that google-adk gave to its events."""
    tells_calls: bool = False
    """Whether the agent is one of google-adk, which sends its tool calls."""


class TurnSteps:
    """Makes steps of the responses to one message, in order. `agent` is the author where none is named."""

    def __init__(self, agent: str, heard: Heard, numbers: Iterator[int]) -> None:
        self.state: State = ""
        """That of the task; "" where there is none."""
        self.task_id = ""
        self.context_id = ""
        self.failure = ""
        """What the agent says of a task that failed."""
        self._agent = agent
        self._heard = heard
        self._numbers = numbers
        # What was said last: an artifact often holds it once more.
        self._last = ""
        # Those of agents other than google-adk's: they are the result, so they come last.
        self._artifacts: dict[str, list[Json]] = {}
        self._sent_artifacts: set[str] = set()
        self._messages: set[tuple[str, str]] = set()

    @property
    def waiting_task(self) -> str:
        """The task that waits for the next message; "" where none does."""
        return self.task_id if self.state in WAITING else ""

    def take(self, response: Json) -> Iterator[Step]:
        """The steps of a response; pieces of a text that is still being sent are partial."""
        if "message" in response:
            self._place(response["message"])
            yield from self._message(response["message"], {})
        elif "task" in response:
            yield from self._task(response["task"])
        elif (update := response.get("statusUpdate")) is not None:
            self._place(update)
            yield from self._status(update.get("status") or {}, update.get("metadata") or {})
        elif (update := response.get("artifactUpdate")) is not None:
            self._place(update)
            # Only tasks have artifacts.
            self.state = self.state or "working"
            yield from self._artifact_update(update)

    def end(self) -> list[Step]:
        """The last steps of the turn: its result, then what the agent needs to go on from here."""
        result = [part for parts in self._artifacts.values() for part in parts]
        self._heard.artifacts |= {one: _key(parts) for one, parts in self._artifacts.items()}
        self._artifacts = {}
        steps = [self._step(result, {})] if result and _key(result) != self._last else [self._step([], {})]
        place = {"context_id": self.context_id, "task_id": self.waiting_task}
        untold = () if self._heard.tells_calls else (CALLS,)
        return [replace(steps[0], framework={"a2a": place}, untold=untold)]

    def _place(self, thing: Json) -> None:
        self.context_id = thing.get("contextId") or self.context_id
        self.task_id = thing.get("taskId") or self.task_id

    def _task(self, task: Json) -> Iterator[Step]:
        self._place(task)
        self.task_id = task.get("id") or self.task_id
        about = task.get("metadata") or {}
        self._look_at(about)
        for message in task.get("history") or []:
            yield from self._message(message, {}, again=True)
        # The metadata of a task are those of all that was sent, whichever part of it they belong to.
        author = {name: one for name, one in about.items() if name == f"{_ADK}author"}
        for artifact in task.get("artifacts") or []:
            if self._heard.artifacts.get(artifact.get("artifactId") or "") != _key(_parts(artifact)):
                update = {"artifact": artifact, "lastChunk": True, "metadata": author}
                yield from self._artifact_update(update)
        yield from self._status(task.get("status") or {}, {}, again=True)

    def _status(self, status: Json, metadata: Json, *, again: bool = False) -> Iterator[Step]:
        self.state = _STATES.get(str(status.get("state")).removeprefix("TASK_STATE_"), self.state)
        self._look_at(metadata)
        message = status.get("message") or {}
        if self.state in FAILED:
            self.failure = "\n".join(part["text"] for part in _parts(message) if part.get("text"))
        else:
            yield from self._message(message, metadata, again=again)

    def _message(self, message: Json, metadata: Json, *, again: bool = False) -> Iterator[Step]:
        """The step of a message; `again` of one in a task, which holds those of earlier turns, too."""
        about = metadata | (message.get("metadata") or {})
        self._look_at(about)
        parts = _parts(message)
        key = message.get("messageId") or "", _key(parts)
        if message.get("role") == "ROLE_USER" or key in (self._heard.messages if again else self._messages):
            return
        if key[0]:
            self._heard.messages.add(key)
            self._messages.add(key)
        if self._is_artifact(parts):
            parts = []
        # Without content, google-adk tells of state that has changed, and of an agent that takes over.
        if parts or any(_effects(about)):
            yield self._step(parts, about)

    def _artifact_update(self, update: Json) -> Iterator[Step]:
        artifact = update.get("artifact") or {}
        artifact_id = artifact.get("artifactId") or ""
        about = (update.get("metadata") or {}) | (artifact.get("metadata") or {})
        self._look_at(about)
        parts = _parts(artifact)
        known = self._artifacts.get(artifact_id, []) if update.get("append") else []
        self._artifacts[artifact_id] = _appended(known, parts)
        if not update.get("lastChunk"):
            if texts := [part for part in parts if "text" in part]:
                yield Step(self._agent, {"role": "model", "parts": texts}, partial=True)
        elif f"{_ADK}author" in about:
            # Of google-adk: one event, with its place among the others.
            whole = self._artifacts.pop(artifact_id)
            self._heard.artifacts[artifact_id] = _key(whole)
            self._sent_artifacts.add(_key(whole))
            if _key(whole) != self._last:
                yield self._step(whole, about)

    def _is_artifact(self, parts: list[Json]) -> bool:
        """Whether an artifact of this turn holds the same."""
        whole = [part for one in self._artifacts.values() for part in one]
        return _key(parts) in {*self._sent_artifacts, *map(_key, (whole, *self._artifacts.values()))}

    def _look_at(self, metadata: Json) -> None:
        self._heard.tells_calls |= f"{_ADK}session_id" in metadata or f"{_ADK}author" in metadata

    def _step(self, parts: list[Json], about: Json) -> Step:
        state, transfer = _effects(about)
        step_id = str(about.get(f"{_ADK}event_id") or "")
        if not step_id or step_id in self._heard.steps:
            step_id = f"step-{next(self._numbers)}"
        self._heard.steps.add(step_id)
        if parts:
            self._last = _key(parts)
        plain = [{name: one for name, one in part.items() if name != _WAITS} for part in parts]
        step = Step(
            author=str(about.get(f"{_ADK}author") or self._agent),
            content={"role": _role(parts), "parts": plain} if parts else None,
            usage=_usage(_dict(about.get(f"{_ADK}usage_metadata"))) or None,
            id=step_id,
            invocation_id=str(about.get(f"{_ADK}invocation_id") or ""),
            branch=str(about.get(f"{_ADK}branch") or ""),
            timestamp=time.time(),
            state=state or None,
            transfer=transfer,
            long_running=tuple(part[_WAITS] for part in parts if _WAITS in part),
        )
        return replace(step, final=is_final(step))


def _parts(thing: Json) -> list[Json]:
    """The parts of a message or an artifact, calls that wait for a person with their id as `_WAITS`."""
    found = []
    for part in thing.get("parts") or []:
        made = genai_part(part)
        if made is None:
            continue
        waits = (part.get("metadata") or {}).get(f"{_ADK}is_long_running") is True
        call_id = made.get("function_call", {}).get("id")
        found.append(made | {_WAITS: str(call_id)} if waits and call_id else made)
    return found


def _effects(about: Json) -> tuple[Json, str | None]:
    """The state that an event of google-adk changed, and the agent that takes over after it."""
    actions = _dict(about.get(f"{_ADK}actions"))
    changed = plain_numbers(_dict(actions.get("stateDelta")))
    state = {key: one for key, one in changed.items() if not key.removeprefix("temp:").startswith("_adk")}
    return state, str(actions.get("transferToAgent") or "") or None


def _appended(parts: list[Json], more: list[Json]) -> list[Json]:
    """Parts with further ones after them, of which the first may continue their last text."""
    if parts and more and "text" in more[0] and parts[-1].keys() == more[0].keys():
        return [*parts[:-1], parts[-1] | {"text": parts[-1]["text"] + more[0]["text"]}, *more[1:]]
    return [*parts, *more]


def _key(parts: list[Json]) -> str:
    """The same for the same content, however its text is cut into parts."""
    if all(part.keys() == {"text"} for part in parts):
        return "".join(part["text"] for part in parts).strip()
    return json.dumps(parts, sort_keys=True)


def _role(parts: list[Json]) -> str:
    return "user" if any("function_response" in part for part in parts) else "model"


def _dict(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _usage(given: Json) -> Json:
    return {
        name: plain_numbers(given[key])
        for key, name in _USAGE.items()
        if isinstance(given.get(key), int | float)
    }
