"""What is reported of a conversation with an agent of the Agents SDK: steps, calls with ids of their own."""

from __future__ import annotations

import time
from collections.abc import MutableMapping, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

from .....core.model.events import Json, Step
from ..base import Reporter, call_of, nested_in, removed_keys, state_delta, step_numbers
from ..frameworks.deps import Deps
from ..frameworks.tools import report_results, response_of
from .items import Group


class OpenCall(NamedTuple):
    """A call without a result yet."""

    event_id: str
    tool: str
    agent: str


class ConversationLog:
    """Reports the steps of one conversation, each with the changes of the state since the step before.

    `context` is that of all its runs; `seconds` is how long calls took, by the ids of their events. A call is
    known by its model's id within the call that it is nested in; its event has an id that no other has.
    """

    def __init__(self, reporter: Reporter, context: Deps, past: Sequence[Step]) -> None:
        self.context = context
        self.seconds: MutableMapping[str, float] = {}
        self.recorded: dict[str, tuple[Any, Json]] = {}
        """By the ids of events of calls that were stubbed: what the SDK got, and the response that it is."""
        self.ended_with_text = False
        """Whether the last that the conversation's own agents did was to say something."""
        self._reporter = reporter
        self._numbers = step_numbers(past)
        self._state = context.state()
        self._event_ids: set[str] = set()
        self._open: dict[tuple[str | None, str], OpenCall] = {}
        self._results: dict[tuple[str | None, str], Json] = {}
        for step in past:
            for part in step.parts:
                self._add_past(step, part)

    def _add_past(self, step: Step, part: Json) -> None:
        call_id = str(call_of(part).get("id") or "")
        self._event_ids.add(call_id)
        if "function_call" in part:
            self._open[None, call_id] = OpenCall(call_id, str(part["function_call"].get("name")), step.author)
        elif "function_response" in part:
            self._open.pop((None, call_id), None)

    def report(self, agent: str, content: Json | None, **more: Any) -> None:
        """Reports a step; `more` are further fields of `Step`."""
        before, self._state = self._state, self._state_now()
        step = Step(
            author=agent,
            content=content,
            id=f"step-{next(self._numbers)}",
            timestamp=time.time(),
            state=state_delta(before, self._state) or None,
            removed=removed_keys(before, self._state),
            **more,
        )
        report_results(self._reporter, step, self.seconds)
        if nested_in.get() is None:
            self.ended_with_text = step.final and any("text" in part for part in step.parts)

    def _state_now(self) -> Json:
        # What happens inside a call does to the state is part of what that call does.
        return self.context.state() if nested_in.get() is None else self._state

    def report_late_changes(self, agent: str) -> None:
        """Instructions that are functions may change the state, too."""
        if self._state_now() != self._state:
            self.report(agent, None)

    def add_result(self, call_id: str, response: Json) -> None:
        """Keeps the result of a call for `report_results`, the first one that there is."""
        key = nested_in.get(), call_id
        if key in self._open:
            given, recorded = self.recorded.pop(self._open[key].event_id, (None, response))
            self._results.setdefault(key, recorded if response == response_of(given) else response)

    def report_results(self) -> None:
        """Reports the results that are there, in the order of their calls whichever was done first."""
        done = [key for key in self._open if key[0] == nested_in.get() and key in self._results]
        if done:
            calls = [self._open.pop(key) for key in done]
            parts = [
                {"function_response": {"id": call.event_id, "name": call.tool, "response": response}}
                for call, response in zip(calls, map(self._results.pop, done), strict=True)
            ]
            self.report(calls[0].agent, Group(parts, are_results=True).content)

    def with_event_id(self, part: Json, agent: str) -> Json:
        """A part with the id of its event for that of its model; a call is open from then on."""
        if call := part.get("function_call"):
            opened = OpenCall(self._new_id(call["id"]), call["name"], agent)
            self._open[nested_in.get(), call["id"]] = opened
            return {"function_call": call | {"id": opened.event_id}}
        if result := part.get("function_response"):
            closed = self._open.pop((nested_in.get(), result["id"]))
            return {"function_response": result | {"id": closed.event_id}}
        return part

    def event_id(self, call_id: str) -> str:
        """The id of the event of a call, within the call that the current task works for."""
        call = self._open.get((nested_in.get(), call_id))
        return call_id if call is None else call.event_id

    def _new_id(self, call_id: str) -> str:
        inside = nested_in.get()
        first = free = call_id if inside is None else f"{inside}/{call_id}"
        number = 1
        while free in self._event_ids:
            number += 1
            free = f"{first}.{number}"
        self._event_ids.add(free)
        return free


# That of the conversation that the current task works for.
current_log: ContextVar[ConversationLog | None] = ContextVar("evaltui_agents_log", default=None)
