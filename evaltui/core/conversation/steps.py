"""Joining events to steps; imports the standard library only, because hosts use it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..model.events import OUTPUT_FIELDS, STEP_FIELDS, TUPLE_FIELDS, Event, Step, is_final, parts_in


def steps_from_events(events: Iterable[Event]) -> list[Step]:
    """Joins the events of each step.

    Events inside a tool, pieces of streamed text and replaced steps are left out. An event without a step is
    its own step; an event without a turn belongs to the last user message.
    """
    grouped: dict[object, list[Event]] = {}
    turn = -1
    for number, event in enumerate(events):
        if event.data.get("nested"):
            continue
        if event.kind == "user":
            turn = turn + 1 if event.turn is None else event.turn
        placed = replace(event, turn=max(turn, 0)) if event.turn is None else event
        if "step" in event.data:
            grouped.setdefault((placed.turn, event.data["step"]), []).append(placed)
        elif event.kind == "user" or (event.kind in _SAID_OR_DONE and not event.data.get("partial")):
            grouped[number] = [placed]
    return _without_replaced([_step(group) for group in grouped.values()])


def _without_replaced(steps: list[Step]) -> list[Step]:
    """The steps, where one that replaces others stands at their place, with their usage if it has none."""
    if not any(step.replaces for step in steps):
        return steps
    places: dict[tuple[int | None, str], int] = {}
    remaining: list[Step | None] = []
    for step in steps:
        numbers = [places[step.turn, name] for name in step.replaces if (step.turn, name) in places]
        earlier = [replaced for number in numbers if (replaced := remaining[number]) is not None]
        usage = step.usage or next((replaced.usage for replaced in earlier if replaced.usage), None)
        for number in numbers:
            remaining[number] = None
        place = places[step.turn, step.id] = min(numbers, default=len(remaining))
        remaining[place : place + 1] = [replace(step, usage=usage)]
    return [step for step in remaining if step is not None]


_SAID_OR_DONE = ("text", "tool_call", "tool_result", "output")


def _step(events: Sequence[Event]) -> Step:
    first = events[0]
    contents = [event.content for event in events if event.content]
    parts = [part for content in contents for part in parts_in(content)]
    content = contents[0] if contents else None
    if content and parts:
        content = {**content, "parts": parts}
    shared = {name: first.data[name] for name in STEP_FIELDS if name in first.data}
    effects = {event.kind: event.data for event in events}
    returned = effects.get("output", first.data)
    shared |= {name: returned[name] for name in OUTPUT_FIELDS if name in returned}
    step = Step(
        author="user" if first.kind == "user" else first.agent,
        content=content,
        usage=first.usage,
        id=first.data.get("step", ""),
        turn=first.turn,
        branch=first.branch,
        state=effects.get("state", {}).get("delta"),
        removed=tuple(effects.get("state", {}).get("removed", ())),
        transfer=effects.get("transfer", {}).get("to"),
        **{**shared, **{name: tuple(shared.get(name, ())) for name in TUPLE_FIELDS}},
    )
    return step if "step" in first.data else replace(step, final=is_final(step))
