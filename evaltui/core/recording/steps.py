"""One step of an agent framework to the events that it is made of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

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
    shared: Json = {
        name: value for name, default in STEP_FIELDS.items() if (value := getattr(step, name)) != default
    }
    usage = step.usage
    events: list[Event] = []
    for thing in (*_things_said(step), *_effects(step)):
        events.append(
            Event(
                thing.kind,
                thing.content,
                agent=step.author,
                data={**(thing.data or {}), **shared, "step": step.id},
                usage=usage,
                id=thing.id,
                parent=thing.parent,
                branch=step.branch,
                turn=step.turn,
            )
        )
        shared, usage = {}, None
    return events


class _Thing(NamedTuple):
    """One thing in a step."""

    kind: Kind
    content: Json | None = None
    data: Json | None = None
    id: str = ""
    parent: str = ""


def _things_said(step: Step) -> Iterator[_Thing]:
    if not step.parts:
        if step.error_code:
            yield _Thing("error", step.content, {"message": step.error_message or step.error_code})
        elif step.grounding is not None:
            yield _Thing("text", step.content)
        return
    run: list[Json] = []
    for part in step.parts:
        kind = _part_kind(part)
        if kind == "text":
            run.append(part)
            continue
        if run:
            yield _Thing("text", _with_parts(step, run))
            run = []
        call = part.get("function_call") or part.get("function_response") or {}
        call_id = call.get("id") or ""
        content = _with_parts(step, [part])
        yield (
            _Thing(kind, content, id=call_id)
            if kind == "tool_call"
            else _Thing(kind, content, parent=call_id)
        )
    if run:
        yield _Thing("text", _with_parts(step, run))


def _part_kind(part: Json) -> Kind:
    if "function_call" in part:
        return "tool_call"
    return "tool_result" if "function_response" in part else "text"


def _with_parts(step: Step, parts: Sequence[Json]) -> Json:
    role = (step.content or {}).get("role")
    return {"parts": list(parts)} if role is None else {"parts": list(parts), "role": role}


def _effects(step: Step) -> Iterator[_Thing]:
    # What only the framework understands needs an event to go with.
    if step.state or (step.framework and not step.parts and not step.transfer and not step.error_code):
        removed = {"removed": list(step.removed)} if step.removed else {}
        yield _Thing("state", data={"delta": step.state or {}, **removed})
    if step.transfer:
        yield _Thing("transfer", data={"to": step.transfer})


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
