"""Events of an agent's work: one vocabulary for chat, runs, run files and traces.

An agent framework reports *steps* (ADK calls them events), which may have texts, several calls and usage at
once. A step is split into `Event`s, one for each text, call or other item, which `core.conversation` can join
again. In JSON, absent fields are omitted, `t` is seconds since the start of the run, `content` is a genai
Content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import count
from typing import Any, Literal, NamedTuple, get_args

from ...text.values import show_value, visible

_MAX_RESPONSE_LENGTH = 400

CALLS = "tool calls"
"""Unknown part in `Step.untold`: the tool calls of the turn, which the agent does not report."""
MODEL_CALLS = "model calls"
"""Unknown part in `data["untold"]` of a user's message: the model calls of the turn."""
SOME_MODEL_CALLS = "some model calls"
"""Unknown part as MODEL_CALLS: further model calls besides the reported ones are possible."""

ARGUMENTS = "arguments"
"""Unknown part as CALLS: the arguments of calls with known names."""
ANSWERS = "answers"
"""Unknown part as CALLS: the response of the agent."""
RESULTS = "tool results"
"""Unknown part as CALLS: the response of at least one tool."""
TEXTS = "intermediate responses"
"""Unknown part as CALLS: texts of the agent before its response."""
USER_MESSAGE = "the user's message"
"""Unknown part as CALLS: the message of the user."""
TURN = "the turn"
"""Unknown part as CALLS: an expected turn that was not run or not recorded."""
EXPECTATION = "an expectation"
"""Unknown part as CALLS: the expectation for an actual turn that matches no turn of the case."""

# The author of what a simulated user asks its model. What it says is a `user` event like any other. The event
# that ends the conversation is a console line of this author with `data["stopped"]`, `signal` or `limit`.
SCRIPTED_PREFIX = "scripted"
"""Beginning of the names of stand-ins for models, which answer by rules, without network and cost."""
SIMULATED_USER = "simulated user"

Kind = Literal[
    "user",
    "model_request",
    "model_response",
    "text",
    "tool_call",
    "tool_result",
    "transfer",
    "state",
    "output",
    "error",
    "console",
]
KINDS: frozenset[str] = frozenset(get_args(Kind))

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """An event of an agent's work."""

    kind: Kind
    content: Json | None = None
    """A genai Content as JSON."""
    agent: str = ""
    """The author."""
    data: Json = field(default_factory=dict)
    """Further data of this kind of event.

    Events of one step all have `data["step"]`, the step's id; the first one also has the data of the whole
    step (see `Step`).
    """
    usage: Json | None = None
    """Numbers of tokens, as genai's usage metadata."""
    id: str = ""
    """Unique within a case and repeat."""
    parent: str = ""
    """The id of the event around it; "" for none.

    Calls inside an agent tool have the outer call as parent, and `data["nested"]` is true for them.
    """
    branch: str = ""
    """ADK's branch, for agents that run side by side."""
    duration: float | None = None
    """Duration in seconds; None where it has none or it is unknown."""
    path: str = ""
    """Path of the case's file, as in `CaseId`."""
    set: str = ""
    """The id of the set."""
    case: str = ""
    """The id of the case."""
    repeat: int = 0
    """Counted from 0."""
    turn: int | None = None
    """Counted from 0; None outside of turns."""
    seq: int = 0
    """Its index among the events of the repeat."""
    t: float = 0.0
    """Seconds since the run began."""

    def to_json(self) -> Json:
        data: Json = {}
        for name in _FIELDS:
            value = getattr(self, name)
            # An empty content or usage is still one; empty data and names say nothing.
            if value is not None and value != "" and (name != "data" or value):
                data[name] = value
        data["t"] = round(self.t, 6)
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Event:
        """The event in JSON data. Raises ValueError for an unknown kind; unknown keys (of a later version)
        are ignored."""
        if data.get("kind") not in KINDS:
            raise ValueError(f"not an event: kind {data.get('kind')!r}")
        fields = data if data.keys() <= _NAMES else {name: data[name] for name in _FIELDS if name in data}
        return cls(**fields)


_FIELDS = tuple(item.name for item in fields(Event))
_NAMES = frozenset(_FIELDS)


@dataclass(frozen=True, slots=True)
class Step:
    """A step of an agent framework, which ADK calls an event."""

    author: str
    """The agent, or `user`."""
    content: Json | None = None
    """A genai Content as JSON with snake_case keys."""
    final: bool = False
    """ADK's `Event.is_final_response()`."""
    partial: bool = False
    """Whether the text continues in the next step."""
    usage: Json | None = None
    """genai's usage metadata as JSON."""
    grounding: Json | None = None
    """genai's grounding metadata as JSON."""
    model_version: str | None = None
    id: str = ""
    invocation_id: str = ""
    turn: int | None = None
    """Number of user messages before it, from 0; None where steps are grouped by `invocation_id`."""
    branch: str = ""
    timestamp: float = 0.0
    """Seconds since 1970."""
    state: Json | None = None
    """The state delta."""
    removed: tuple[str, ...] = ()
    """The keys of `state` that are null because they were removed."""
    transfer: str | None = None
    """The name of the agent that takes over; None for no transfer."""
    long_running: tuple[str, ...] = ()
    """The ids of calls whose results come later."""
    error_code: str | None = None
    error_message: str | None = None
    framework: Json | None = None
    """Internal data of the agent framework that it needs to continue."""
    output: Any = None
    """An output of an agent or a workflow node, as JSON; None for none."""
    node: str = ""
    """The workflow node that returns `output`; "" for the agent."""
    answers: bool = False
    """Whether `output` is the output of the agent as a whole in its turn."""
    untold: tuple[str, ...] = ()
    """Parts of the turn that the agent does not report, such as CALLS: unknown, not empty."""
    remedies: Mapping[str, str] | None = None
    """The remedy for each unknown part, a sentence without its full stop; None where it is unknown."""
    replaces: tuple[str, ...] = ()
    """The ids of earlier steps of the turn whose content it takes the place of."""

    @property
    def parts(self) -> list[Json]:
        return list(parts_in(self.content))

    @property
    def says_output(self) -> bool:
        """Whether the text of the step is its output, such as JSON that a model wrote by a schema."""
        if self.output is None:
            return False
        return is_output("".join(spoken_texts([self.content])), self.output)

    def to_json(self) -> Json:
        return {
            item.name: value for item in fields(self) if (value := getattr(self, item.name)) != item.default
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Step:
        """The step in JSON data. Raises TypeError for unknown fields."""
        tuples = {name: tuple(data[name]) for name in ("removed", *TUPLE_FIELDS) if name in data}
        return cls(**{**data, **tuples})


def parts_in(content: Mapping[str, Any] | None) -> list[Json]:
    """The parts of a genai Content as JSON."""
    return (content or {}).get("parts") or []


def spoken_texts(contents: Iterable[Mapping[str, Any] | None]) -> list[str]:
    """The texts of genai Contents as JSON that are not thoughts."""
    parts = (part for content in contents for part in parts_in(content))
    return [part["text"] for part in parts if part.get("text") and not part.get("thought")]


def message_text(content: Mapping[str, Any] | None) -> str:
    """The texts of a user's message, a genai Content as JSON, one per line; without files."""
    return "\n".join(part["text"] for part in parts_in(content) if part.get("text"))


def text_content(role: str, text: str) -> Json:
    """A genai Content as JSON with one text."""
    return {"role": role, "parts": [{"text": text}]}


def text(message: str, *, agent: str = "") -> Event:
    """A text event of the agent; the last text of a turn is its final answer."""
    return Event("text", text_content("model", message), agent=agent)


def tool_call(name: str, args: Mapping[str, Any] | None = None, *, id: str = "", agent: str = "") -> Event:
    """A call of a tool; an `id` distinguishes its result from those of other calls of the tool."""
    call: Json = {"name": name, "args": dict(args or {})}
    if id:
        call["id"] = id
    return Event("tool_call", {"role": "model", "parts": [{"function_call": call}]}, agent=agent)


def tool_result(name: str, response: Any, *, id: str = "", agent: str = "") -> Event:
    """A response of a tool; a value other than a dict is wrapped as `{"result": ...}`."""
    result: Json = {
        "name": name,
        "response": response if isinstance(response, dict) else {"result": response},
    }
    if id:
        result["id"] = id
    return Event("tool_result", {"role": "user", "parts": [{"function_response": result}]}, agent=agent)


def transfer(to: str, *, agent: str = "") -> Event:
    """A transfer of the conversation to another agent."""
    return Event("transfer", agent=agent, data={"to": to})


def output_text(output: Any) -> str:
    """An output as text: a string unchanged, another value as JSON."""
    if isinstance(output, str):
        return output
    return json.dumps(output, ensure_ascii=False, separators=(",", ":"))


def is_output(text: str, output: Any) -> bool:
    """Whether a text is that of an output."""
    if isinstance(output, str) or not text:
        return bool(text) and text == output
    try:
        return bool(json.loads(text) == output)
    except ValueError:
        return False


def output_content(output: Any) -> Json:
    """An output as the content of a response."""
    return text_content("model", output_text(output))


def is_answer(event: Event) -> bool:
    """Whether an event is a response of the agent to the user."""
    return event.kind == "text" and bool(event.data.get("final")) and not event.data.get("nested")


def describe_response(response: Any) -> str:
    """A tool response in one line: `response to adk_request_input: {"result": "Ada"}`."""
    data = response if isinstance(response, Mapping) else {}
    shown = show_value(data.get("response"), _MAX_RESPONSE_LENGTH)
    return f"response to {visible(str(data.get('name') or '?'))}: {shown}"


STEP_FIELDS = {
    "final": False,
    "partial": False,
    "grounding": None,
    "model_version": None,
    "invocation_id": "",
    "timestamp": 0.0,
    "long_running": (),
    "error_code": None,
    "error_message": None,
    "framework": None,
    "untold": (),
    "remedies": None,
    "replaces": (),
}
TUPLE_FIELDS = ("long_running", "untold", "replaces")
"""The fields of STEP_FIELDS that are tuples, in JSON lists."""
OUTPUT_FIELDS = {"output": None, "node": "", "answers": False}
_MADE_ID = re.compile(r"call-\d+(\.\d+)?")


def is_made_id(call_id: str) -> bool:
    """Whether evaltui made the id of a call, so that the model does not know it."""
    return _MADE_ID.fullmatch(call_id) is not None


def split_step(step: Step) -> list[Event]:
    """Splits a step into events; the first one has the data of the whole step."""
    shared = _fields_of(step, STEP_FIELDS)
    if step.says_output:
        shared |= _fields_of(step, OUTPUT_FIELDS)
    usage = step.usage
    events: list[Event] = []
    for part in (*_spoken_parts(step), *_effects(step)):
        events.append(
            Event(
                part.kind,
                part.content,
                agent=step.author,
                data={**(part.data or {}), **shared, "step": step.id},
                usage=usage,
                id=part.id,
                parent=part.parent,
                branch=step.branch,
                turn=step.turn,
            )
        )
        shared, usage = {}, None
    return events


def with_own_id(step: Step, ids: set[str]) -> Step:
    """The step, with another id if `ids` has its id already; adds the id to `ids`.

    Frameworks may report several steps under one id, such as google-adk all responses of a model call.
    """
    step_id = next(
        candidate for number in count(1) if (candidate := _numbered_id(step.id, number)) not in ids
    )
    ids.add(step_id)
    return step if step_id == step.id else replace(step, id=step_id)


def _numbered_id(step_id: str, number: int) -> str:
    return step_id if number == 1 else f"{step_id}:{number}"


def _fields_of(step: Step, defaults: Mapping[str, Any]) -> Json:
    return {name: value for name, default in defaults.items() if (value := getattr(step, name)) != default}


class _StepPart(NamedTuple):
    """A part of a step that becomes an event."""

    kind: Kind
    content: Json | None = None
    data: Json | None = None
    id: str = ""
    parent: str = ""


def _spoken_parts(step: Step) -> Iterator[_StepPart]:
    if not step.parts:
        if step.error_code:
            yield _StepPart("error", step.content, {"message": step.error_message or step.error_code})
        elif step.grounding is not None:
            yield _StepPart("text", step.content)
        return
    run: list[Json] = []
    for part in step.parts:
        kind = _part_kind(part)
        if kind == "text":
            run.append(part)
            continue
        if run:
            yield _StepPart("text", _with_parts(step, run))
            run = []
        call = part.get("function_call") or part.get("function_response") or {}
        call_id = call.get("id") or ""
        content = _with_parts(step, [part])
        yield (
            _StepPart(kind, content, id=call_id)
            if kind == "tool_call"
            else _StepPart(kind, content, parent=call_id)
        )
    if run:
        yield _StepPart("text", _with_parts(step, run))


def _part_kind(part: Json) -> Kind:
    if "function_call" in part:
        return "tool_call"
    return "tool_result" if "function_response" in part else "text"


def _with_parts(step: Step, parts: Sequence[Json]) -> Json:
    role = (step.content or {}).get("role")
    return {"parts": list(parts)} if role is None else {"parts": list(parts), "role": role}


def _effects(step: Step) -> Iterator[_StepPart]:
    if has_output := step.output is not None and not step.says_output:
        yield _StepPart("output", data=_fields_of(step, OUTPUT_FIELDS))
    # What only the framework understands needs an event to go with, and so do the tokens of no content.
    has_event = has_output or step.parts or step.transfer or step.error_code or step.grounding is not None
    if step.state or ((step.framework or step.usage) and not has_event):
        removed = {"removed": list(step.removed)} if step.removed else {}
        yield _StepPart("state", data={"delta": step.state or {}, **removed})
    if step.transfer:
        yield _StepPart("transfer", data={"to": step.transfer})


def is_final(step: Step, *, skip_summarization: bool = False) -> bool:
    """Whether a step ends an agent's turn. Source: google-adk 2.13, `Event.is_final_response`."""
    if skip_summarization or step.long_running:
        return True
    # An empty call or result is still one.
    calls = any("function_call" in part for part in step.parts)
    if step.error_code and not step.partial and not calls:
        return True
    results = any("function_response" in part for part in step.parts)
    ran_code = bool(step.parts) and "code_execution_result" in step.parts[-1]
    return not (calls or results or step.partial or ran_code)
