"""One step of an agent framework to the events that it is made of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from evaltui.core.model.events import Event, Json, Kind, Step

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
}
_MADE_ID = re.compile(r"call-\d+(\.\d+)?")


def is_made_id(call_id: str) -> bool:
    """Whether a call has its id from evaltui: the model that made it knows of none."""
    return _MADE_ID.fullmatch(call_id) is not None


def split(step: Step) -> list[Event]:
    """One event per thing in the step; the first one carries what belongs to the step as a whole."""
    events = [*_content_events(step), *_effect_events(step)]
    if not events:
        return []
    shared = {
        name: value for name, default in STEP_FIELDS.items() if (value := getattr(step, name)) != default
    }
    first = events[0]
    events[0] = replace(first, data=first.data | shared, usage=step.usage)
    return [
        replace(
            event,
            agent=step.author,
            branch=step.branch,
            turn=step.turn,
            data=event.data | {"step": step.id},
        )
        for event in events
    ]


def _content_events(step: Step) -> Iterator[Event]:
    if not step.parts:
        if step.error_code:
            yield Event("error", step.content, data={"message": step.error_message or step.error_code})
        elif step.grounding is not None:
            yield Event("text", step.content)
        return
    run: list[Json] = []
    for part in step.parts:
        kind = _part_kind(part)
        if kind == "text":
            run.append(part)
            continue
        if run:
            yield _with_parts("text", step, run)
            run = []
        yield _call_event(kind, step, part)
    if run:
        yield _with_parts("text", step, run)


def _part_kind(part: Json) -> Kind:
    if "function_call" in part:
        return "tool_call"
    return "tool_result" if "function_response" in part else "text"


def _call_event(kind: Kind, step: Step, part: Json) -> Event:
    event = _with_parts(kind, step, [part])
    call_id = (part.get("function_call") or part.get("function_response") or {}).get("id") or ""
    if kind == "tool_call":
        return replace(event, id=call_id)
    return replace(event, parent=call_id)


def _with_parts(kind: Kind, step: Step, parts: Sequence[Json]) -> Event:
    content = {"parts": list(parts)}
    role = (step.content or {}).get("role")
    return Event(kind, content if role is None else content | {"role": role})


def _effect_events(step: Step) -> Iterator[Event]:
    # What only the framework understands needs an event to go with.
    if step.state or (step.framework and not step.parts and not step.transfer and not step.error_code):
        removed = {"removed": list(step.removed)} if step.removed else {}
        yield Event("state", data={"delta": step.state or {}, **removed})
    if step.transfer:
        yield Event("transfer", data={"to": step.transfer})


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
