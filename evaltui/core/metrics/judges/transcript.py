"""A conversation as text for a judge: one JSON object per line for each message, call or result, in order.

Ids and times are left out, because they differ between runs and would prevent replaying recorded verdicts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from evaltui.core.model.content import FunctionCall, FunctionResponse, Part
from evaltui.core.model.eval_set import (
    IntermediateData,
    Invocation,
    InvocationEvent,
    InvocationEvents,
    scored_text,
    user_text,
)
from evaltui.core.model.events import Json

EntryKind = Literal["user", "text", "call", "result", "grounding", "code", "code_result", "answer"]

# JSON leaves these as they are.
_LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}


@dataclass(frozen=True)
class Entry:
    """A message, call or result in a turn, which counts from 0.

    `agent` is "" for the user and where it is unknown. `value` is a text for `user`, `text` (before the
    answer), `answer` and `code`; JSON data for others, such as arguments or a response. `name` is the tool.
    """

    turn: int
    kind: EntryKind
    value: Any
    agent: str = ""
    name: str = ""
    parts: tuple[str, ...] = ()
    """The texts that a `text` was joined from."""

    def to_json(self) -> Json:
        """JSON data in which turns count from 1."""
        agent: Json = {"agent": self.agent} if self.agent else {}
        head: Json = {"turn": self.turn + 1, **agent}
        match self.kind:
            case "call":
                return head | {"tool_call": self.name, "args": self.value}
            case "result":
                return head | {"tool_result": self.name, "response": self.value}
            case _:
                return head | {self.kind: self.value}


def entries(turns: Sequence[Invocation], *, thoughts: bool) -> list[Entry]:
    """The entries of some turns from the start of a conversation; `thoughts` includes thoughts."""
    return [
        entry
        for turn, invocation in enumerate(turns)
        for entry in turn_entries(invocation, turn, thoughts=thoughts)
    ]


def turn_entries(invocation: Invocation, turn: int, *, thoughts: bool) -> list[Entry]:
    """The entries of one turn: the user's message, texts and calls, the answer if there is one."""
    data = invocation.intermediate_data
    if isinstance(data, InvocationEvents):
        done = [entry for event in data.invocation_events for entry in event_entries(event, turn, thoughts)]
    else:
        done = list(_list_entries(data, turn, thoughts)) if data else []
    answer = scored_text(invocation, thoughts=thoughts)
    texts = [number for number, entry in enumerate(done) if entry.kind == "text"]
    # An answer that came with calls, or before thoughts, is among the events as well.
    if answer and texts and done[texts[-1]].value == answer:
        del done[texts[-1]]
    return [
        Entry(turn, "user", user_text(invocation.user_content)),
        *done,
        *([Entry(turn, "answer", answer)] if answer else []),
    ]


def event_entries(event: InvocationEvent, turn: int, thoughts: bool) -> Iterator[Entry]:
    """The entries of an event: search results, texts, then code and calls."""
    if event.grounding_metadata is not None and (grounding := _json(event.grounding_metadata)):
        yield Entry(turn, "grounding", grounding, event.author)
    parts = (event.content.parts if event.content else None) or []
    if texts := _texts(parts, thoughts):
        yield Entry(turn, "text", "\n".join(texts), event.author, parts=texts)
    for part in parts:
        if part.executable_code is not None:
            yield Entry(turn, "code", part.executable_code.code or "", event.author)
        if part.code_execution_result is not None:
            yield Entry(turn, "code_result", _json(part.code_execution_result), event.author)
        if part.function_call is not None:
            yield _call(part.function_call, turn, event.author)
        if part.function_response is not None:
            yield _result(part.function_response, turn, event.author)


def _list_entries(data: IntermediateData, turn: int, thoughts: bool) -> Iterator[Entry]:
    yield from (_call(call, turn) for call in data.tool_uses)
    yield from (_result(response, turn) for response in data.tool_responses)
    for author, parts in data.intermediate_responses:
        if texts := _texts(parts, thoughts):
            yield Entry(turn, "text", "\n".join(texts), author, parts=texts)


def _texts(parts: Iterable[Part], thoughts: bool) -> tuple[str, ...]:
    return tuple(part.text for part in parts if part.text and (thoughts or not part.thought))


def _call(call: FunctionCall, turn: int, agent: str = "") -> Entry:
    return Entry(turn, "call", _json(call).get("args", {}), agent, call.name or "")


def _result(response: FunctionResponse, turn: int, agent: str = "") -> Entry:
    return Entry(turn, "result", _json(response).get("response"), agent, response.name or "")


def _json(model: FunctionCall | FunctionResponse | Any) -> Json:
    data: Json = model.model_dump(mode="json", exclude_none=True)
    return data


def transcript(shown: Iterable[Entry]) -> str:
    """Entries as text for a prompt, one per line, so that no text can pose as another entry."""
    return "\n".join(json_line(entry.to_json()) for entry in shown) or "(nothing)"


def agents(turns: Sequence[Invocation]) -> str:
    """The instructions and tools of every agent in some turns as text for a prompt, one JSON object per line.

    An agent whose instructions changed has an object for each version.
    """
    lines: list[str] = []
    for invocation in turns:
        details = invocation.app_details.agent_details.values() if invocation.app_details else ()
        for agent in details:
            declared = agent.tool_declarations
            tools = [_json(tool) if isinstance(tool, BaseModel) else tool for tool in declared]
            line = json_line({"agent": agent.name, "instructions": agent.instructions, "tools": tools})
            if line not in lines:
                lines.append(line)
    return "\n".join(lines) or "(not known)"


def json_line(data: Json) -> str:
    """JSON in one line without any character that may count as a line end."""
    return json.dumps(data, ensure_ascii=False, default=str).translate(_LINE_ENDS)
