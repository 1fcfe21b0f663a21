"""A turn as the spans of a trace tell it, and the message of the user that began it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from evaltui.core.model.events import USER_MESSAGE, Event, spoken_texts
from evaltui.core.model.json_values import ABSENT
from evaltui.traces.layouts.adk import REMEDY as SCHEMA_1
from evaltui.traces.layouts.limits import json_attribute
from evaltui.traces.layouts.operation import Json, Operation, calls_in, makes_own_calls
from evaltui.traces.span import OtelSpan


@dataclass(slots=True)
class Work:
    """A call of a model or a tool; spans that tell of the same call are one."""

    span: OtelSpan
    operation: Operation
    agent: str
    inner: list[Work] = field(default_factory=list)
    """Works inside a call of a tool: they are not the agent's own."""
    run: str = ""
    """The id of the span of the run of an agent in which it was; "" for none."""
    outermost_run: str = ""
    """The id of the outermost of such spans around it."""
    wrapped: list[Work] = field(default_factory=list)
    """Calls of a model that this one stands around."""


@dataclass(slots=True)
class TraceTurn:
    """Turn of a conversation, with the spans of one trace that a message of the user led to."""

    span: OtelSpan
    """First span of the turn."""
    operation: Operation | None
    """None where that is nothing of an agent's."""
    works: list[Work] = field(default_factory=list)
    runs: list[tuple[Operation, OtelSpan]] = field(default_factory=list)
    """The runs of agents in it, but for those in calls of tools."""
    spans: list[OtelSpan] = field(default_factory=list)
    lost: str = ""
    """Remedy for spans that cannot be read, which may be its calls and its answer; "" where none is lost."""
    failed: list[OtelSpan] = field(default_factory=list)
    """The spans with an error that are runs of agents, or around them and calls of models, but for those in
    calls of tools."""
    has_ended: bool = True
    """Whether a span around its calls is known to have ended, or a further message of the user followed."""
    conversation: str = ""
    """Its id, where other conversations are below a span around the turn; else its spans name it."""
    session: str = ""
    """The id of the conversation that a span around the turn names; its own spans may name another."""
    own_events: list[Event] | None = None
    """Its events as evaltui wrote them, numbered as where they were written; None for spans of others."""
    unknown: dict[str, str] = field(default_factory=dict)
    """Parts of which other turns show that the spans do not tell them, each with its remedy."""
    failed_messages: list[list[Json]] = field(default_factory=list)
    """The parts of the user's messages of failed turns just before it, which its requests may have, too."""
    around: OtelSpan | None = None
    """The span around the turn and others; None for a turn with a span of its own."""

    @property
    def agents(self) -> list[Operation]:
        """The operations of `runs`."""
        return [operation for operation, _ in self.runs]

    @property
    def has_output(self) -> bool:
        """Whether a span around its calls of models has what was responded."""
        return any(operation.outputs is not None for operation in self.speakers)

    @property
    def speakers(self) -> list[Operation]:
        """The operations that tell what was said in the turn, the outermost first: the runs of agents, and
        functions around all calls of models. Others, such as a search, speak for themselves."""
        start = min((work.span.start for work in self.models), default=-1)
        end = max((work.span.end for work in self.models), default=-1)
        speakers = [
            operation
            for operation, span in self.runs
            if operation is not self.operation
            and (operation.is_run or span.start <= start <= end <= span.end)
        ]
        own = self.operation
        return speakers if own is None or own.kind == "model" else [own, *speakers]

    @property
    def start(self) -> int:
        return min((span.start for span in self.spans if span.start), default=0)

    @property
    def end(self) -> int:
        return max((span.end for span in self.spans), default=0)

    @property
    def last_work(self) -> Work | None:
        """The work that began last; None without any."""
        return max(self.works, key=lambda work: (work.span.start, work.span.end), default=None)

    @property
    def models(self) -> list[Work]:
        """Its calls of models, by their ends, but for those in calls of tools."""
        calls = [work for work in self.works if work.operation.kind == "model"]
        return sorted(calls, key=lambda work: (work.span.end, work.span.start))


def user_message(turn: TraceTurn) -> list[Json] | None:
    """The parts of what the user said; None where nobody recorded it."""
    if USER_MESSAGE in turn.unknown:
        return None
    models = sorted(turn.models, key=lambda work: work.span.start)
    # Another agent's message may be other than the one that was cut.
    is_cut = turn.operation is not None and turn.operation.is_cut
    agents = turn.speakers[: 1 if is_cut else 2]
    for operation in (turn.operation, *agents, *(work.operation for work in models[:1])):
        if operation is not None and operation.inputs:
            messages = _last_said(operation.inputs, alone=operation.is_adk)
            parts = _joined(_without_failed(messages, turn.failed_messages))
            is_argument = isinstance(json_attribute(operation.input_value), dict)
            return None if is_argument and not _is_sent(parts, models) else parts or None
    return None


def _is_sent(parts: Sequence[Json], models: Sequence[Work]) -> bool:
    """Whether a request has the texts of parts, or none is recorded: an argument may be no message."""
    requests = [
        one_spaced(" ".join((model.operation.instruction, *spoken_texts(model.operation.inputs))))
        for model in models
        if model.operation.inputs
    ]
    message = [one_spaced(part["text"]) for part in parts if part.get("text")]
    return not requests or any(all(text in request for text in message) for request in requests)


def one_spaced(text: str) -> str:
    """A text with single spaces, as texts are compared: layouts write white space differently."""
    return " ".join(text.split())


# How google-adk has an agent read what another one said; a user's own text may begin so, too.
_FROM_OTHERS = re.compile(
    r"For context:\s*(?:\Z|below is a transcript of what another agent did|\[[^\]\n]+\] )"
)


def _joined(messages: Sequence[list[Json]]) -> list[Json]:
    return [part for parts in messages for part in parts]


def _without_failed(messages: list[list[Json]], failed: Sequence[list[Json]]) -> list[list[Json]]:
    """The messages, each as its parts, without those in front that are of failed turns."""
    for number in range(len(failed)):
        earlier = _joined(failed[number:])
        for count in range(1, len(messages)):
            if _joined(messages[:count]) == earlier:
                return messages[count:]
    return messages


def _last_said(inputs: Sequence[Json], *, alone: bool) -> list[list[Json]]:
    """The user's messages after the last one of a model, each as its parts; results of tools are none.

    Where a message stands `alone`, those before it are of turns that failed before a model answered.
    """
    messages: list[list[Json]] = []
    has_later = False
    for content in reversed(inputs):
        if content["role"] == "model":
            # What comes before an answered message is of an earlier turn.
            if messages or (has_later and spoken_texts([content]) and not alone):
                break
        elif parts := user_parts([content]):
            messages = [parts, *messages]
            if alone:
                break
        elif (messages and not _without_responses(content)) or not content["parts"]:
            # Nobody recorded what is in a message without parts.
            break
        else:
            has_later = has_later or bool(_without_responses(content))
    return messages


def texts_of_others(inputs: Sequence[Json]) -> list[str]:
    """Texts about other agents of google-adk after the message of the user in a request."""
    others: list[str] = []
    for content in reversed(inputs):
        if content["role"] == "model" or user_parts([content]):
            break
        others += spoken_texts([content])
    return others


def user_parts(contents: Sequence[Json]) -> list[Json]:
    """The parts of messages that a user wrote: no results of tools, and nothing that another agent did."""
    return [
        part
        for parts in map(_without_responses, contents)
        if parts and not _FROM_OTHERS.match(str(parts[0].get("text") or ""))
        for part in parts
    ]


def _without_responses(content: Json) -> list[Json]:
    return [part for part in content["parts"] if "function_response" not in part]


def settle_ambiguous(turn: TraceTurn) -> None:
    """Marks values that may not have been captured: `{}` in schema 1 of google-adk, where requests are
    `{}`, too."""
    elided = any(work.operation.is_elided for work in turn.works)
    waiting = list(turn.works) if elided else []
    while waiting:
        work = waiting.pop()
        waiting += work.inner
        operation = work.operation
        if operation.kind == "tool" and (operation.remedy == SCHEMA_1 or operation.is_cut):
            operation.arguments = ABSENT if operation.arguments == {} else operation.arguments
            operation.result = ABSENT if operation.result == {} else operation.result


def is_checked(models: Sequence[Work]) -> bool:
    """Whether the last model was sent the response of another one, in the same run of an agent and not as its
    history: it may have checked the response, or made another one of it."""
    if len(models) < 2:
        return False
    last = models[-1]
    return any(answers(model) and is_sent_response(last, model) for model in models[:-1])


def respond_at_once(models: Sequence[Work]) -> bool:
    """Whether another model responded during the last one, such as that of an agent in parallel; a run in the
    run of another agent does not respond for it."""
    answering = [model for model in models if answers(model)]
    if not answering or answering[-1] is not models[-1]:
        return False
    *earlier, last = answering
    return any(
        model.span.end > last.span.start
        and (model.run == last.run or (model.run != last.outermost_run and last.run != model.outermost_run))
        for model in earlier
    )


def is_sent_response(later: Work, model: Work) -> bool:
    """Whether a model was sent the response of another one, in the same run and not as its history."""
    inputs, sent = later.operation.inputs or (), model.operation.inputs or ()
    if later.run != model.run or later.span.start < model.span.end or (sent and inputs[: len(sent)] == sent):
        return False
    response = one_spaced(" ".join(spoken_texts(model.operation.outputs or ())))
    others = (part for part in user_parts(inputs) if isinstance(part.get("text"), str))
    return bool(response) and any(response in one_spaced(part["text"]) for part in others)


def answers(model: Work) -> bool:
    """Whether a model responded without a call that is open."""
    outputs = model.operation.outputs
    return bool(outputs) and (not calls_in(outputs or ()) or makes_own_calls(model.operation))
