"""Reports one turn of a graph as steps: each message that a node adds, and the changes of state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages

from ....core.model.events import Json, text_content
from ..base import Steps, nested_in
from ..values import divided, jsonable, output_fields
from .calls import agent_of
from .messages import content_of_message, usage_of_message

MESSAGES = "messages"
_STRUCTURED = "structured_response"
# The content of a message that has lost its text.
_EMPTY: Json = text_content("model", "")


def state_json(values: Any) -> Json:
    """The values of a graph's state that JSON can hold, without its messages."""
    items = values.items() if isinstance(values, dict) else vars(values).items()
    return jsonable((name, value) for name, value in items if name != MESSAGES and not name.startswith("__"))


@dataclass
class _ReportedMessage:
    """A message of the current turn as it was reported."""

    message: Any
    content: Json
    nodes: list[str]
    steps: tuple[str, ...]
    """The ids of its steps."""
    usage: Json | None


@dataclass
class ReportedSoFar:
    """The state and the messages of a conversation that are already reported."""

    state: Json
    """The state of the graph after its last step."""
    seen: dict[int, Any] = field(default_factory=dict)
    """The messages that are reported or ignored, by `id()`: a graph passes the same objects on and on."""
    callers: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The agent that made a call, and its branch, by the call's id."""


class Turn:
    """A turn of the graph called `name`, with what is reported of it. `before` is the state at its start;
    `steps` report the state in `reported`."""

    def __init__(self, steps: Steps, name: str, before: Json, reported: ReportedSoFar) -> None:
        self.inside: dict[str, str] = {}
        """The id of the running call by its place in the graph (`checkpoint_ns`)."""
        self.transfers: dict[str, str] = {}
        """The node to which a call transfers the conversation, by the call's id."""
        self._steps = steps
        self._structured = before.get(_STRUCTURED)
        self._reported = reported
        self._seen, self._callers = reported.seen, reported.callers
        self._messages: list[_ReportedMessage] = []
        # The agent of the last message.
        self._speaker = name
        self._last_text = ""
        self._answer: Any = None
        self._is_answer_written = False
        self._is_input = False
        # The nodes, from the outermost in, of the last update with values that are no messages yet.
        self._adder: list[str] = []
        self.ignore(before.get(MESSAGES) or [])

    def ignore(self, messages: Sequence[Any]) -> None:
        """Marks messages as reported."""
        self._seen.update((id(message), message) for message in messages)

    def start(self, graph_input: Any) -> None:
        """Starts the turn. The first state of the graph repeats an input, so its messages are ignored."""
        if isinstance(graph_input, dict):
            self._is_input = True
            self.ignore(graph_input[MESSAGES])

    def on_update(self, place: Sequence[str], chunk: Json) -> None:
        """Reports the update of a node; `place` are the nodes around it, such as `("researcher:1f0…",)`."""
        for node, update in chunk.items():
            if node.startswith("__"):
                continue
            nodes = [*(outer.partition(":")[0] for outer in place), node]
            for part in update if isinstance(update, list) else [update]:
                self._is_answer_written |= not place and isinstance(part, dict) and _STRUCTURED in part
                if isinstance(part, dict) and part.get(MESSAGES):
                    self._on_messages(part[MESSAGES], nodes, self._call_around(place))

    def _call_around(self, place: Sequence[str]) -> str | None:
        """The id of the tool call that runs the graph at a place; None where no tool does."""
        heads = ("|".join(place[:length]) for length in range(1, len(place) + 1))
        return next((self.inside[head] for head in heads if head in self.inside), None)

    def _on_messages(self, messages: Any, nodes: list[str], call: str | None) -> None:
        added = messages if isinstance(messages, list) else [messages]
        if not all(isinstance(message, BaseMessage) for message in added):
            # The graph converts other values to messages, which are then in its state.
            self._adder = nodes
            return
        self._report_new(added, nodes, call)

    def _report_new(self, messages: Sequence[Any], nodes: list[str], call: str | None) -> None:
        """Reports new messages, and those of this turn that a node has changed or replaced under their id."""
        seen_ids = {message.id for message in self._seen.values() if getattr(message, "id", None)}
        earlier: dict[object, _ReportedMessage] = {}
        for reported in self._messages:
            earlier |= {id(reported.message): reported, reported.message.id or id(reported.message): reported}
        token = nested_in.set(call or nested_in.get())
        try:
            for message in messages:
                message_id = getattr(message, "id", None)
                changed = earlier.get(id(message)) or earlier.get(message_id)
                if getattr(message, "type", "") == "remove":
                    # A summary may take the place of calls that were made.
                    continue
                if changed is not None:
                    self._report_changed(message, changed)
                elif id(message) not in self._seen and message_id not in seen_ids:
                    self.ignore([message])
                    for converted in convert_to_messages([message]):
                        self._report(converted, nodes)
        finally:
            nested_in.reset(token)

    def _report_changed(self, message: Any, reported: _ReportedMessage) -> None:
        """Reports the present content of a message if it is not the reported one."""
        content = content_of_message(message) or _EMPTY
        if content != reported.content:
            self.ignore([message])
            self._messages.remove(reported)
            self._report(message, reported.nodes, reported)

    def on_result(self, message: Any) -> None:
        """Reports the result of a tool at once: the next model request may come before the node's update."""
        if message.tool_call_id in self._callers:
            self.ignore([message])
            self._report(message, [])

    def _report(self, message: Any, nodes: list[str], replaced: _ReportedMessage | None = None) -> None:
        """Reports a message, in place of the `replaced` one."""
        content = content_of_message(message) or (_EMPTY if replaced else None)
        if content is None:
            return
        agent, branch, transfer = agent_of(nodes, message), ".".join(nodes[:-1]), None
        contents = [content]
        if message.type == "tool":
            agent, branch = self._callers.get(message.tool_call_id, (agent, branch))
            transfer = self.transfers.pop(message.tool_call_id, None)
        else:
            # A node may add a message in the user's name; its author is the node.
            contents = divided(content["parts"])
            calls = [part["function_call"] for part in content["parts"] if "function_call" in part]
            self._callers.update((call["id"], (agent, branch)) for call in calls)
            if nested_in.get() is None:
                self._speaker, self._last_text = agent, message.text
        may_be_final = message.type != "tool" and not getattr(message, "tool_calls", None)
        usage = usage_of_message(getattr(message, "usage_metadata", None))
        # The tokens of a changed message are reported already.
        is_new_usage = replaced is None or replaced.usage != usage
        steps = tuple(
            self._steps.report(
                agent,
                part_of_content,
                final=may_be_final and number == len(contents),
                usage=usage if number == 1 and is_new_usage else None,
                branch=branch,
                transfer=transfer,
                replaces=replaced.steps if replaced and number == 1 else (),
            )
            for number, part_of_content in enumerate(contents, start=1)
        )
        self._messages.append(_ReportedMessage(message, content, nodes, steps, usage))

    def on_values(self, values: Any) -> None:
        """Handles the state of the graph after a step."""
        self._reported.state = state_json(values)
        self._steps.report_late_changes(self._speaker)
        if isinstance(values, dict):
            messages = values.get(MESSAGES) or []
            if self._is_input:
                self.ignore(messages)
            # Messages that are in no update.
            self._report_new(messages, self._adder or [self._speaker], None)
            self._is_input, self._adder = False, []
            self._answer = values.get(_STRUCTURED)

    def end(self) -> None:
        """Ends the turn: reports messages that were changed in place, and a structured response that is in no
        message."""
        for reported in tuple(self._messages):
            self._report_changed(reported.message, reported)
        # An equal response to another message is one, too; a node may also pass the state on as it is.
        is_repeated = self._is_answer_written and self._answer is not self._structured
        is_new = is_repeated or self._answer != self._structured
        if is_new and (returned := output_fields(self._answer, self._last_text)) is not None:
            self._steps.report(self._speaker, **returned)

    def report_requests(self, parts: Sequence[Json]) -> None:
        """Reports the requests of the graph to a person."""
        ids = tuple(part["function_call"]["id"] for part in parts)
        content = {"role": "model", "parts": list(parts)}
        self._steps.report(self._speaker, content, final=True, long_running=ids)
