"""What a model was asked, in full, and what is new in it since the agent's request before.

A request's event holds only the contents that were added (see `Event`); here they are put together again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evaltui.core.model.events import Json
from evaltui.core.trace.spans import Span


@dataclass(frozen=True)
class Request:
    """One request to a model. `new` is the number of contents from which on they are new since the agent's
    request before; `changes` says what else is, a sentence each. `unrecorded` says why it is not all here.
    """

    model: str
    system_instruction: str
    contents: tuple[Json, ...]
    tools: tuple[Json, ...]
    config: Json
    new: int
    is_first: bool
    changes: tuple[str, ...] = ()
    unrecorded: str = ""


def request_of(spans: Sequence[Span], number: int) -> Request | None:
    """The request of a model span, None where its event does not tell.

    Any other span has the request that led to it: the last one that its agent made before.
    """
    span = spans[number]
    own = [
        earlier
        for earlier in spans[: number + 1]
        if earlier.kind == "model" and earlier.agent == span.agent and earlier.event("model_request")
    ]
    if not own:
        return None
    before: Request | None = None
    for earlier in own:
        event = earlier.event("model_request")
        assert event is not None
        before = _read(event.data, before)
    return before


def _read(data: Json, before: Request | None) -> Request:
    kept = before.contents[: data.get("contents_before", 0)] if before else ()
    request = Request(
        model=str(data.get("model") or ""),
        system_instruction=instruction_text(data.get("system_instruction")),
        contents=(*kept, *(data.get("contents") or ())),
        tools=tuple(tool for tool in data.get("tools") or () if isinstance(tool, dict)),
        config=data.get("config") or {},
        new=len(kept),
        is_first=before is None,
        unrecorded=str(data.get("unrecorded") or ""),
    )
    if before is None:
        return request
    return Request(**{**vars(request), "changes": tuple(_changes(before, request))})


def instruction_text(instruction: Any) -> str:
    """A system instruction is a text, or a genai Content."""
    if isinstance(instruction, dict):
        return "\n".join(str(part.get("text", "")) for part in instruction.get("parts") or ())
    return str(instruction or "")


def _changes(before: Request, now: Request) -> list[str]:
    changes: list[str] = []
    if before.model != now.model:
        changes.append(f"another model: {before.model} before")
    if before.system_instruction != now.system_instruction:
        changes.append("the system instruction is another one")
    dropped = len(before.contents) - now.new
    if dropped > 0:
        changes.append(f"{dropped} of the contents before were dropped or changed")
    had, has = ({tool.get("name", "") for tool in request.tools} for request in (before, now))
    if added := sorted(has - had):
        changes.append(f"more tools: {', '.join(added)}")
    if gone := sorted(had - has):
        changes.append(f"fewer tools: {', '.join(gone)}")
    if had == has and before.tools != now.tools:
        changes.append("tools are declared in another way")
    if before.config != now.config:
        changes.append("the config is another one")
    return changes
