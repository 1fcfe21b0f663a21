"""A conversation as the model that plays its user gets to read it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from evaltui.core.model.events import Event, Json
from evaltui.core.recording.invocations import steps_from_events


def lines_of(events: Iterable[Event], *, with_calls: bool) -> list[str]:
    """What was said in a turn, as `author: text`, thoughts left out; `with_calls` also what was called and
    returned. What agents do inside a tool is not heard."""
    return [
        line
        for step in steps_from_events(events)
        for part in step.parts
        for line in _lines(step.author, part, with_calls)
    ]


def _lines(author: str, part: Json, with_calls: bool) -> Iterator[str]:
    if part.get("text"):
        if not part.get("thought"):
            yield f"{author}: {part['text']}"
    elif with_calls and (call := part.get("function_call")):
        yield f"{author} calls the tool {call.get('name')} with {_written(call.get('args') or {})}"
    elif with_calls and (result := part.get("function_response")):
        yield f"the tool {result.get('name')} returns {_written(result.get('response'))}"


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
