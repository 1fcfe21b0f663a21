"""Calls that wait for a person's response, and matching recorded responses to them.

A call waits from the step that names it as long-running until the user responds to its id. This is the rule
of google-adk 2.13 (`index_open_interrupts`), for confirmations, input requests, credential requests and
long-running tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...text.values import visible
from ..model.events import Event, Json, Step, parts_in, split_step

CONFIRMATION = "adk_request_confirmation"
INPUT = "adk_request_input"
CREDENTIAL = "adk_request_credential"
REQUESTS = frozenset((CONFIRMATION, INPUT, CREDENTIAL))


class NotWaitingError(ValueError):
    """A turn responds to a call that is not waiting."""


@dataclass(frozen=True)
class WaitingCall:
    """A waiting call.

    `turn` is its turn, `number` its index among the calls of its name in that turn; both from 0. `set_aside`
    tells whether the user has sent another message since.
    """

    id: str
    name: str
    args: Json
    turn: int
    number: int
    set_aside: bool = False


@dataclass(frozen=True)
class CallPlace:
    """The place of a call: its turn, and its index among the calls of its name in that turn; both from 0."""

    turn: int
    number: int


class WaitingCalls:
    """The waiting calls of a conversation, updated with each event."""

    def __init__(self) -> None:
        self._open: dict[str, WaitingCall] = {}
        self._long_running: set[str] = set()
        self._counts: dict[tuple[int, str], int] = {}
        # The ids of recorded calls, and those of the calls that took their place.
        self._replaced_by: dict[str, str] = {}

    @property
    def calls(self) -> list[WaitingCall]:
        """The waiting calls in the order in which they were made; calls that were set aside come last."""
        return sorted(self._open.values(), key=lambda call: call.set_aside)

    def on_past(self, past: Iterable[Step]) -> None:
        for step in past:
            for event in _events_of(step):
                self.on_event(event)

    def on_event(self, event: Event) -> None:
        # What waits inside an agent that is a tool can only be answered by that tool.
        if event.data.get("nested") or event.data.get("partial"):
            return
        self._long_running.update(event.data.get("long_running") or ())
        if event.kind == "user":
            self._on_message(event.content or {})
        elif event.kind == "tool_call":
            for call in _parts(event.content, "function_call"):
                self._on_call(call, event.turn or 0)

    def _on_call(self, call: Json, turn: int) -> None:
        name, call_id = str(call.get("name") or ""), str(call.get("id") or "")
        number = self._counts.get((turn, name), 0)
        self._counts[turn, name] = number + 1
        if call_id in self._long_running:
            self._open[call_id] = WaitingCall(call_id, name, call.get("args") or {}, turn, number)

    def _on_message(self, content: Json) -> None:
        responses = responses_in(content)
        for response in responses:
            self._open.pop(str(response.get("id") or ""), None)
        if not responses:
            self._open = {key: replace(call, set_aside=True) for key, call in self._open.items()}

    def resolved(self, content: Json, turn: int, places: Mapping[str, CallPlace] | None = None) -> Json:
        """The message of a turn (from 0) with its responses addressed to calls that are waiting now.

        `places` are the places of the recorded calls to which the responses belong. A response goes to the
        call with its id, else to the call at the same place, else to the first waiting call of its name. A
        tool's call may get several responses, as tools report progress. Raises NotWaitingError.
        """
        parts = []
        for part in parts_in(content):
            response = part.get("function_response")
            if response is None:
                parts.append(part)
                continue
            call_id = self._target(response, places or {}, _ids(parts))
            if call_id is None:
                raise NotWaitingError(self._why_not(response, turn, _ids(parts)))
            parts.append(part | {"function_response": response | {"id": call_id}})
        return content | {"parts": parts}

    def _target(self, response: Json, places: Mapping[str, CallPlace], used: Sequence[str]) -> str | None:
        recorded, name = str(response.get("id") or ""), str(response.get("name") or "")
        if recorded in self._open and recorded not in used:
            self._replaced_by[recorded] = recorded
            return recorded
        replaced_by = self._replaced_by.get(recorded)
        if replaced_by is not None and replaced_by not in self._open and name not in REQUESTS:
            return replaced_by
        free = [call for call in self.calls if call.name == name and call.id not in used]
        place = places.get(recorded)
        there = (call for call in free if CallPlace(call.turn, call.number) == place)
        call = next(there, None) or next(iter(free), None)
        if call is not None and recorded:
            self._replaced_by[recorded] = call.id
        return None if call is None else call.id

    def _why_not(self, response: Json, turn: int, used: Sequence[str]) -> str:
        name = visible(str(response.get("name") or "a call without a name"))
        others = list(dict.fromkeys(visible(call.name) for call in self.calls if call.id not in used))
        waits = f"only {', '.join(others)} waits" if others else "no call waits"
        return (
            f"turn {turn + 1} responds to {name}, but {waits} for a response there. "
            "Record the conversation again, or change the turn."
        )


def waiting_calls(turns: Iterable[Sequence[Event]]) -> list[WaitingCall]:
    """The calls that wait after these turns, which are all events of each turn."""
    waiting = WaitingCalls()
    for number, events in enumerate(turns):
        for event in events:
            waiting.on_event(event if event.turn == number else replace(event, turn=number))
    return waiting.calls


def call_places(turns: Iterable[Iterable[tuple[str, str]]]) -> dict[str, CallPlace]:
    """The places of calls by id; `turns` are the ids and names of the calls of each turn."""
    places: dict[str, CallPlace] = {}
    for turn, calls in enumerate(turns):
        counts: dict[str, int] = {}
        for call_id, name in calls:
            number = counts.get(name, 0)
            counts[name] = number + 1
            if call_id:
                places.setdefault(call_id, CallPlace(turn, number))
    return places


def places_of_events(turns: Iterable[Sequence[Event]]) -> dict[str, CallPlace]:
    """The places of calls in recorded turns, by id."""
    return call_places(
        [
            (str(call.get("id") or ""), str(call.get("name") or ""))
            for event in events
            if event.kind == "tool_call" and not event.data.get("nested") and not event.data.get("partial")
            for call in _parts(event.content, "function_call")
        ]
        for events in turns
    )


def responses_in(content: Json) -> list[Json]:
    return list(_parts(content, "function_response"))


def response_content(call: WaitingCall, response: Json) -> Json:
    """The message that responds to a call, as a genai Content."""
    part = {"function_response": {"id": call.id, "name": call.name, "response": response}}
    return {"role": "user", "parts": [part]}


def _ids(parts: Iterable[Json]) -> list[str]:
    return [part["function_response"]["id"] for part in parts if "function_response" in part]


def _events_of(step: Step) -> Iterator[Event]:
    if step.author == "user":
        yield Event("user", step.content, turn=step.turn)
    else:
        yield from split_step(step)


def _parts(content: Json | None, name: str) -> Iterator[Json]:
    return (part[name] for part in parts_in(content) if part.get(name))
