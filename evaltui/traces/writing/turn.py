"""The events of a turn as a trace: the names are those of google-adk's schema 2."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaltui.core.model.events import Event, Json, is_answer, parts_in
from evaltui.core.trace.span_lines import part_of
from evaltui.core.trace.spans import Span, SpanTree, request_of
from evaltui.traces.span import SPAN_ID, TRACE_ID, OtelSpan, SpanEvent

EVENTS = "evaltui.events"
"""Attribute of the first span of a turn, JSON. What spans have no place for, such as the session state and
what was printed, is read back from here."""
FINAL_STATE = "evaltui.final_session_state"
"""Attribute of the first span of the last turn, JSON: the session state after it."""
SESSION = "evaltui.session"
"""Attribute of the first span of a turn, JSON: app, user and state of the session before the first turn."""
OWNER = "evaltui.session.owner"
"""Attribute of the first span of a turn: app and user, for each of which the ids of sessions are unique."""
LENGTH = "evaltui.session.events"
"""Attribute of the first span of a turn: number of events of its session, which only grows."""
REMARKS = "remarks"
"""Key of the data of a user's message in EVENTS: sentences about the turn."""
# As google-adk writes it: the data itself would be in every later request again.
_NOT_HERE = "<not serializable>"


def message_of(content: Json) -> Json:
    role = "assistant" if content.get("role") == "model" else "user"
    return {"role": role, "parts": list(_parts(parts_in(content)))}


def answer_of(content: Json | None, finish: str = "stop") -> list[Json]:
    """The messages of a model's answer; none where it has no content."""
    return [] if content is None else [message_of({**content, "role": "model"}) | {"finish_reason": finish}]


def _parts(parts: Iterable[Mapping[str, Any]]) -> Iterator[Json]:
    for part in parts:
        if "function_call" in part:
            call = part["function_call"]
            call_part: Json = {"type": "tool_call", "id": call.get("id"), "name": str(call.get("name") or "")}
            yield {**call_part, "arguments": call["args"]} if "args" in call else call_part
        elif "function_response" in part:
            response = part["function_response"]
            answer: Json = {
                "type": "tool_call_response",
                "id": response.get("id"),
                "name": response.get("name"),
            }
            yield {**answer, "response": response.get("response")}
        elif part.get("text") is not None:
            yield {"type": "reasoning" if part.get("thought") else "text", "content": part["text"]}
        elif blob := part.get("inline_data"):
            yield {"type": "blob", "mime_type": blob.get("mime_type"), "data": _NOT_HERE}
        elif link := part.get("file_data"):
            yield {"type": "file_data", "mime_type": link.get("mime_type"), "uri": link.get("file_uri")}
        else:
            # Such as code that a model ran.
            yield {"type": next(iter(part), "unknown"), **part}


RESULT = "gen_ai.evaluation.result"
"""The event with what a metric says of a turn."""
_SECOND = 1_000_000_000


@dataclass(frozen=True)
class Held:
    """A conversation that was held, and what its traces are to say of it."""

    conversation: str
    """Its id; ids of spans are made of it."""
    agent: str
    began: int
    """Nanoseconds since 1970 at which events have `t` 0."""
    attributes: Json = field(default_factory=dict)
    """Attributes of the first span of each turn."""
    errors: Mapping[str, Json] = field(default_factory=dict)
    """Type, message and traceback of what ended a turn, by its number."""
    final_state: Json | None = None
    """The session state after the last turn; None where it is unknown."""


def spans_of_turns(held: Held, events: Sequence[Event], results: Sequence[Sequence[Json]]) -> list[OtelSpan]:
    """A trace per turn; `results` are the attributes of a RESULT each, by turn."""
    tree = SpanTree()
    tree.add(events)
    all_spans: list[OtelSpan] = []
    by_turn: dict[int, list[Event]] = {}
    for event in events:
        if event.turn is not None:
            by_turn.setdefault(event.turn, []).append(event)
    last: OtelSpan | None = None
    for turn in tree.turns:
        if turn.turn is not None:
            own = results[turn.turn] if turn.turn < len(results) else ()
            spans = _Turn(held, tree.spans, turn, by_turn.pop(turn.turn, [])).spans(own)
            last = spans[0]
            all_spans += spans
    if last is not None and held.final_state is not None:
        last.attributes[FINAL_STATE] = _json(held.final_state)
    return all_spans


def _id(digits: int, *parts: Any) -> str:
    return hashlib.sha256("\0".join(map(str, parts)).encode(errors="backslashreplace")).hexdigest()[:digits]


class _Turn:
    def __init__(self, held: Held, spans: Sequence[Span], turn: Span, events: Sequence[Event]) -> None:
        self._held = held
        self._spans = spans
        self._turn = turn
        self._events = events
        owner = held.attributes.get(OWNER, "")
        # The place of a turn of a session may be another one's once it was rewound.
        names = [str(event.data.get("step")) for event in events[:1] if owner]
        self._trace = _id(TRACE_ID, owner + held.conversation, turn.turn, *names)

    def spans(self, results: Sequence[Json]) -> list[OtelSpan]:
        root = self._root(results)
        made_spans = [root]
        waiting = [(number, root.span_id) for number in reversed(self._turn.children)]
        while waiting:
            number, parent = waiting.pop()
            span = self._spans[number]
            made = self._span(span, parent)
            if made is not None:
                made_spans.append(made)
                parent = made.span_id
            elif span.kind == "error" and not span.events[0].data.get("retrying"):
                self._fail(
                    next(candidate for candidate in made_spans if candidate.span_id == parent), span.events[0]
                )
            waiting += [(child, parent) for child in reversed(span.children)]
        return made_spans

    def _nanoseconds(self, seconds: float) -> int:
        return self._held.began + round(seconds * _SECOND)

    def _otel(self, span: Span, name: str, parent: str, attributes: Json) -> OtelSpan:
        made = OtelSpan(
            self._trace,
            _id(SPAN_ID, self._trace, span.number - self._turn.number),
            parent,
            name,
            self._nanoseconds(span.start),
            self._nanoseconds(span.end),
            {name: value for name, value in attributes.items() if value not in (None, "")},
        )
        if (failed := span.event("error")) is not None:
            self._fail(made, failed)
        return made

    def _fail(self, made: OtelSpan, failed: Event) -> None:
        data = failed.data
        kind, message = str(data.get("type") or "Error"), str(data.get("message") or "")
        made.attributes["error.type"] = kind
        made.status, made.message = "error", message
        attributes = {"exception.type": kind, "exception.message": message}
        trace = str(data.get("traceback") or "")
        attributes |= {"exception.stacktrace": trace} if trace else {}
        made.events.append(SpanEvent("exception", attributes, self._nanoseconds(failed.t)))

    def _root(self, results: Sequence[Json]) -> OtelSpan:
        held, turn = self._held, self._turn
        attributes: Json = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": held.agent,
            "gen_ai.conversation.id": held.conversation,
            **held.attributes,
        }
        # Requests to models have the messages of turns that failed, too; some agents do not tell of them.
        attributes |= self._messages()
        attributes[EVENTS] = _json([event.to_json() for event in self._events])
        root = self._otel(turn, f"invoke_workflow {held.agent}", "", attributes)
        if (error := held.errors.get(str(turn.turn))) is not None and root.status != "error":
            self._fail(root, Event("error", data=error, t=turn.end))
        root.events += [SpanEvent(RESULT, result, root.end) for result in results]
        return root

    def _messages(self) -> Json:
        user = next((event.content for event in self._events if event.kind == "user"), None)
        answers = [event for event in self._events if is_answer(event)]
        messages: Json = {}
        if user is not None:
            messages["gen_ai.input.messages"] = _json([message_of(user)])
        if answers:
            messages["gen_ai.output.messages"] = _json(answer_of(answers[-1].content))
        return messages

    def _span(self, span: Span, parent: str) -> OtelSpan | None:
        """None for what is no span of its own."""
        match span.kind:
            case "agent":
                operation = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": span.agent}
                conversation = {"gen_ai.conversation.id": self._held.conversation}
                return self._otel(span, f"invoke_agent {span.agent}", parent, operation | conversation)
            case "model":
                return self._model(span, parent)
            case "tool":
                return self._tool(span, parent)
        return None

    def _model(self, span: Span, parent: str) -> OtelSpan:
        request, answered = request_of(self._spans, span.number), span.event("model_response")
        is_known = span.event("model_request") is not None and request is not None and not request.unrecorded
        model = (request.model if request else "") or str(
            (answered.data if answered else {}).get("model") or ""
        )
        attributes: Json = {
            "gen_ai.operation.name": "generate_content",
            "gen_ai.request.model": model,
            "gen_ai.agent.name": span.agent,
            "gen_ai.conversation.id": self._held.conversation,
            **_usage(span.usage or {}),
        }
        if request is not None and is_known:
            attributes["gen_ai.input.messages"] = _json([message_of(content) for content in request.contents])
            if request.system_instruction:
                instruction = [{"type": "text", "content": request.system_instruction}]
                attributes["gen_ai.system_instructions"] = _json(instruction)
            if request.tools:
                attributes["gen_ai.tool.definitions"] = _json(
                    [{"type": "function", **tool} for tool in request.tools]
                )
        if answered is not None:
            calls = any("function_call" in part for part in parts_in(answered.content))
            attributes["gen_ai.response.finish_reasons"] = ["tool_calls" if calls else "stop"]
            if (content := answered.content or self._done_after(answered)) is not None:
                attributes["gen_ai.output.messages"] = _json(answer_of(content))
        return self._otel(span, f"generate_content {model}", parent, attributes)

    def _done_after(self, answered: Event) -> Json | None:
        """Texts and calls of the agent before its next request, where the response does not have them."""
        parts: list[Json] = []
        for event in self._events[self._events.index(answered) + 1 :]:
            if event.agent != answered.agent or event.data.get("partial"):
                continue
            if event.kind == "model_request":
                break
            if event.kind in ("text", "tool_call"):
                parts += parts_in(event.content)
        return {"role": "model", "parts": parts} if parts else None

    def _tool(self, span: Span, parent: str) -> OtelSpan:
        called, returned = span.event("tool_call"), span.event("tool_result")
        call = part_of(called, "function_call")
        response = part_of(returned, "function_response")
        name = str(call.get("name") or response.get("name") or "")
        attributes: Json = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
            "gen_ai.agent.name": span.agent,
            "gen_ai.tool.call.id": str(call.get("id") or response.get("id") or ""),
        }
        if "args" in call:
            attributes["gen_ai.tool.call.arguments"] = _json(call["args"])
        if "response" in response:
            attributes["gen_ai.tool.call.result"] = _json(response["response"])
        return self._otel(span, f"execute_tool {name}", parent, attributes)


def _usage(usage: Json) -> Json:
    thoughts, output_tokens = usage.get("thoughts_token_count"), usage.get("candidates_token_count")
    return {
        "gen_ai.usage.input_tokens": usage.get("prompt_token_count"),
        "gen_ai.usage.output_tokens": None if output_tokens is None else output_tokens + (thoughts or 0),
        "gen_ai.usage.reasoning.output_tokens": thoughts,
        "gen_ai.usage.cache_read.input_tokens": usage.get("cached_content_token_count"),
    }


def _json(value: Any) -> str:
    return json.dumps(value)
