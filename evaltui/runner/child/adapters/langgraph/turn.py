"""What a graph tells of one turn, as steps: each message that a node adds, and how the state changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages

from .....core.model.events import Json
from ..base import Steps, nested_in
from ..calls import output_fields
from ..deps import jsonable
from .calls import Calls, agent_of
from .messages import content_of_message, usage_of_message

MESSAGES = "messages"
_STRUCTURED = "structured_response"


def state_json(values: Any) -> Json:
    """What of a graph's state JSON can hold, without its messages."""
    items = values.items() if isinstance(values, dict) else vars(values).items()
    return jsonable((name, one) for name, one in items if name != MESSAGES and not name.startswith("__"))


@dataclass
class Told:
    """What was told of a conversation so far."""

    state: Json
    """That of the graph after its last step."""
    seen: dict[int, Any] = field(default_factory=dict)
    """The messages that are no news, by what tells objects apart: a graph hands the same ones on and on."""
    callers: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The agent that made a call, and its branch, by the call's id."""


class Turn:
    """One message to the graph called `name`, and what came of it so far. `before` is the state that it
    began with, `steps` report that of `told`."""

    def __init__(self, steps: Steps, name: str, before: Json, told: Told) -> None:
        self.calls = Calls(self._on_result, steps.seconds)
        self._steps = steps
        self._structured = before.get(_STRUCTURED)
        self._told = told
        self._seen, self._callers = told.seen, told.callers
        # Who has spoken last.
        self._speaker = name
        self._said = ""
        self._answer: Any = None
        self._is_input = False
        # The nodes, from the outermost in, that added what is no message yet.
        self._adder: list[str] = []
        self.ignore(before.get(MESSAGES) or [])

    def ignore(self, messages: Sequence[Any]) -> None:
        """These are no news."""
        self._seen.update((id(message), message) for message in messages)

    def begin(self, given: Any) -> None:
        """What the graph is given: where that is an input, its first state repeats it."""
        if isinstance(given, dict):
            self._is_input = True
            self.ignore(given[MESSAGES])

    def on_update(self, place: Sequence[str], chunk: Json) -> None:
        """What a node did; `place` are the nodes around it, such as `("researcher:1f0…",)`."""
        for node, update in chunk.items():
            if node.startswith("__"):
                continue
            nodes = [*(one.partition(":")[0] for one in place), node]
            for part in update if isinstance(update, list) else [update]:
                if isinstance(part, dict) and part.get(MESSAGES):
                    self._on_messages(part[MESSAGES], nodes, self._call_around(place))

    def _call_around(self, place: Sequence[str]) -> str | None:
        """The id of the call that runs the graph at a place, if a tool does."""
        heads = ("|".join(place[:length]) for length in range(1, len(place) + 1))
        return next((self.calls.inside[one] for one in heads if one in self.calls.inside), None)

    def _on_messages(self, messages: Any, nodes: list[str], call: str | None) -> None:
        given = messages if isinstance(messages, list) else [messages]
        if not all(isinstance(one, BaseMessage) for one in given):
            # The graph makes messages of what else a node may give: its state has them then.
            self._adder = nodes
            return
        self._report_news(given, nodes, call)

    def _report_news(self, messages: Sequence[Any], nodes: list[str], call: str | None) -> None:
        known = {one.id for one in self._seen.values() if getattr(one, "id", None)}
        news = [
            one for one in messages if id(one) not in self._seen and getattr(one, "id", None) not in known
        ]
        self.ignore(news)
        token = nested_in.set(call or nested_in.get())
        try:
            for message in convert_to_messages(news):
                self._report(message, nodes)
        finally:
            nested_in.reset(token)

    def _on_result(self, message: Any) -> None:
        """What a tool has just returned: the next request to a model may come before a node tells of it."""
        if message.tool_call_id in self._callers:
            self.ignore([message])
            self._report(message, [])

    def _report(self, message: Any, nodes: list[str]) -> None:
        content = content_of_message(message)
        if content is None:
            return
        agent, branch, transfer = agent_of(nodes, message), ".".join(nodes[:-1]), None
        if message.type == "tool":
            agent, branch = self._callers.get(message.tool_call_id, (agent, branch))
            transfer = self.calls.transfers.pop(message.tool_call_id, None)
        else:
            # What a node says in the name of the user is its own.
            content = content | {"role": "model"}
            calls = [part["function_call"] for part in content["parts"] if "function_call" in part]
            self._callers.update((call["id"], (agent, branch)) for call in calls)
            if nested_in.get() is None:
                self._speaker, self._said = agent, message.text
        self._steps.report(
            agent,
            content,
            final=message.type != "tool" and not getattr(message, "tool_calls", None),
            usage=usage_of_message(getattr(message, "usage_metadata", None)),
            branch=branch,
            transfer=transfer,
        )

    def on_values(self, values: Any) -> None:
        """The state of the graph after a step of its own."""
        self._told.state = state_json(values)
        self._steps.report_late_changes(self._speaker)
        if isinstance(values, dict):
            messages = values.get(MESSAGES) or []
            if self._is_input:
                self.ignore(messages)
            # Added in a way that no update tells of.
            self._report_news(messages, self._adder or [self._speaker], None)
            self._is_input, self._adder = False, []
            self._answer = values.get(_STRUCTURED)

    def end(self) -> None:
        """Report a structured response that no message has."""
        is_new = self._answer != self._structured
        if is_new and (returned := output_fields(self._answer, self._said)) is not None:
            self._steps.report(self._speaker, **returned)

    def report_requests(self, parts: Sequence[Json]) -> None:
        """Report what the graph asks a person."""
        ids = tuple(part["function_call"]["id"] for part in parts)
        content = {"role": "model", "parts": list(parts)}
        self._steps.report(self._speaker, content, final=True, long_running=ids)
