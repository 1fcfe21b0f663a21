"""The calls and texts of an actual turn, as far as they can be accepted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evaltui.core.model.eval_set import (
    Invocation,
    InvocationEvents,
    answer_text,
    scored_text,
    tool_calls,
    tool_responses,
)
from evaltui.core.model.outcome import Call, calls_of


@dataclass(frozen=True)
class ActualCall:
    """A call that was made."""

    call: Call
    author: str
    together: bool
    """Whether the same event holds the call before, as one step of the agent."""
    response: dict[str, Any] | None
    """None where it is unknown."""


def actual_calls(actual: Invocation) -> list[ActualCall]:
    calls = calls_of(actual.intermediate_data)
    origins = _authors(actual) or [("", number) for number in range(len(calls))]
    responses = _responses(actual)
    return [
        ActualCall(call, author, number > 0 and origins[number - 1][1] == event, response)
        for number, (call, (author, event), response) in enumerate(
            zip(calls, origins, responses, strict=True)
        )
    ]


def _authors(actual: Invocation) -> list[tuple[str, int]]:
    """The author and the event of each call; empty where the turn has no events."""
    data = actual.intermediate_data
    if not isinstance(data, InvocationEvents):
        return []
    return [
        (event.author, number)
        for number, event in enumerate(data.invocation_events)
        if event.content
        for part in event.content.parts or []
        if part.function_call
    ]


def _responses(actual: Invocation) -> list[dict[str, Any] | None]:
    """The responses of the tools, call by call: by id, where there are none by name, in their order."""
    waiting = tool_responses(actual.intermediate_data)
    responses: list[dict[str, Any] | None] = []
    for call in tool_calls(actual.intermediate_data):
        own = next(
            (response for response in waiting if response.id and response.id == call.id), None
        ) or next(
            (
                response
                for response in waiting
                if not (response.id and call.id) and response.name == call.name
            ),
            None,
        )
        if own is not None:
            waiting.remove(own)
        responses.append(own.response if own else None)
    return responses


def answer_texts(actual: Invocation) -> list[str]:
    """The texts that are scored, part by part where they are parts of the answer."""
    parts = (actual.final_response.parts if actual.final_response else None) or []
    texts = [part.text for part in parts if part.text and not part.thought]
    scored = scored_text(actual, thoughts=False)
    return texts or ([scored] if scored else [])


def calls_before_texts(actual: Invocation) -> list[int]:
    """The number of calls before each intermediate response; empty where the turn has no events."""
    data = actual.intermediate_data
    if not isinstance(data, InvocationEvents):
        return []
    counts, made = [], 0
    for event in data.invocation_events:
        parts = (event.content.parts or []) if event.content else []
        if answer_text(parts):
            counts.append(made)
        made += sum(part.function_call is not None for part in parts)
    return counts
