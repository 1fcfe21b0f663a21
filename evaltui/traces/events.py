"""A turn of a trace to evaltui's events, as if the agent had been run here.

What a trace does not hold is said on the user's message, in `data["untold"]`, with what brings it in
`data["remedies"]`. Every event has `data["from"]`: the trace and the span that tell of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evaltui.core.model.events import (
    ANSWERS,
    ARGUMENTS,
    CALLS,
    MODEL_CALLS,
    RESULTS,
    SOME_MODEL_CALLS,
    TEXTS,
    USER_MESSAGE,
    Event,
    Step,
    is_answer,
    is_output,
    parts_in,
    split_step,
    spoken_texts,
    text_content,
)
from evaltui.core.model.json_values import ABSENT
from evaltui.core.model.outcome import ErrorInfo
from evaltui.text.values import common_length, finite_json, valid_json
from evaltui.traces.calls import RENAMED, TurnCall, TurnCalls, may_hold_thoughts
from evaltui.traces.formats.otlp import object_of
from evaltui.traces.layouts.limits import json_attribute, texts_in
from evaltui.traces.layouts.operation import Json, Operation, calls_in, makes_own_calls
from evaltui.traces.span import OtelSpan, SpanEvent
from evaltui.traces.trace_turn import (
    TraceTurn,
    Work,
    answers,
    is_checked,
    one_spaced,
    respond_at_once,
    settle_ambiguous,
    user_message,
    user_parts,
)

_SECOND = 1_000_000_000
_TRANSFER = "transfer_to_agent"
_NAMELESS = "the span of a tool has no name of the tool (gen_ai.tool.name)"
_UNWATCHED = "the trace has no spans of models or tools: instrument them where the agent runs"
_ENDS_EARLY = (
    "the trace ends after a call of a tool or the begin of an agent, without a response: if spans are "
    "missing, flush the tracer before the process ends, and export all of them"
)
_HIDDEN_CALLS = "a request has calls that no span tells of: export all spans of the trace"
_HIDDEN_MODELS = (
    "a request has results of calls that no span of a model asks for: export all spans of the trace"
)
_UNREAD = (
    "a response of a model is recorded in a form that evaltui does not read. Record messages as "
    "OpenTelemetry's conventions for generative AI have them, or a span for each call of a tool"
)
_CHECKED = (
    "a model was sent the response of another one, and may have checked or replaced it: record the output of "
    "the agent in its span, or give each its own span of an agent"
)
_AT_ONCE = (
    "models responded at the same time, and the trace does not say which response was the last: record the "
    "output of the agent in its span, or run the case instead"
)
_AROUND = (
    "the output of a function around the calls is the response of no model: record the message as its input, "
    "or the output in the span of the agent"
)
_UNREAD_OUTPUT = (
    "the output of the agent is recorded in a form that evaltui does not read: record it as a text"
)
_FAILED = (
    "the last request of the turn has no response in the trace: the model failed or was blocked, or the "
    "agent was stopped"
)
_INTERRUPTED = (
    "the agent waits for a person, and its request is recorded as an exception only (GraphInterrupt): run "
    "the case instead"
)
_MAY_WAIT = (
    "google-adk has no span for the request to a person (adk_request_confirmation and its kind), which may "
    "be why the turn ends after a tool: import the session instead"
)
# Google-adk's own tool, which ends a loop of agents.
_EXIT = "exit_loop"
_CALL_EVENTS = "tool_call", "tool_result"


class TurnEvents:
    """The events of one turn; `number` is its place in the conversation, `zero` nanoseconds of its begin."""

    def __init__(self, turn: TraceTurn, number: int, zero: int) -> None:
        self._turn = turn
        self._number = number
        self._zero = zero
        self._untold: dict[str, str] = {}
        self._sent: dict[str, list[Json]] = {}
        self._is_answer_told = False
        self._stopped_at_tool = False

    def events(self) -> list[Event]:
        turn = self._turn
        settle_ambiguous(turn)
        _settle_texts_of_json(turn)
        done = list(self._works(turn.works, inside=""))
        final_texts = self._said_in_the_end(done)
        user = self._user()
        self._look_for_gaps()
        self._untold |= self._turn.unknown
        untold = {"untold": list(self._untold), "remedies": dict(self._untold)} if self._untold else {}
        first = replace(user, data={**user.data, **untold})
        return [_writable(event) for event in (first, *done, *final_texts)]

    @property
    def untold(self) -> dict[str, str]:
        """Parts that the trace does not hold, each with its remedy; after `events`."""
        return self._untold

    def _event(self, span: OtelSpan, at: int, kind: Any, content: Json | None = None, **fields: Any) -> Event:
        data = {**fields.pop("data", {}), "from": {"trace_id": span.trace_id, "span_id": span.span_id}}
        return Event(kind, content, data=data, turn=self._number, t=self._seconds(at), **fields)

    def _seconds(self, at: int) -> float:
        return max(at - self._zero, 0) / _SECOND if at else 0.0

    def _user(self) -> Event:
        turn = self._turn
        parts = user_message(turn)
        if parts is None:
            self._untold[USER_MESSAGE] = _remedy(turn)
        data = {
            "step": f"{turn.span.span_id}:user",
            "invocation_id": turn.span.trace_id,
            "timestamp": turn.start / _SECOND,
        }
        return self._event(turn.span, turn.start, "user", {"role": "user", "parts": parts or []}, data=data)

    def _works(self, works: Sequence[Work], inside: str) -> Iterator[Event]:
        """Events of works, in order; `inside` is the event of the call of a tool in which they happened."""
        calls = TurnCalls(works)
        for work in calls.in_order(works):
            if work.operation.kind == "model":
                yield from self._model(work, calls, inside)
            elif work.operation.is_output:
                yield from self._works(work.inner, inside=work.span.span_id)
            else:
                yield from self._tool(work, calls, inside)
        if inside:
            return
        if any(call.arguments is ABSENT for call in calls.announced):
            self._untold.setdefault(ARGUMENTS, _remedy(self._turn))
        if calls.lacks_models:
            self._untold |= dict.fromkeys((SOME_MODEL_CALLS, TEXTS), _HIDDEN_MODELS)
        if calls.has_results_of_others:
            self._untold |= dict.fromkeys((CALLS, SOME_MODEL_CALLS, TEXTS), _HIDDEN_CALLS)
        if calls.ends_unasked and self._turn.around is not None:
            self._untold.setdefault(CALLS, _ENDS_EARLY)
        if calls.may_be_renamed:
            self._untold.setdefault(CALLS, RENAMED)
        if calls.lacks_results:
            self._untold.setdefault(RESULTS, _remedy(self._turn))

    def _model(self, work: Work, calls: TurnCalls, inside: str) -> Iterator[Event]:
        operation, span = work.operation, work.span
        for call in calls.answered_by(work):
            yield from self._result(span, span.start, work.agent, call, inside)
        nested = {"nested": True} if inside else {}
        request = {**self._request(work, inside), **nested}
        yield self._event(
            span, span.start, "model_request", id=span.span_id, parent=inside, agent=work.agent, data=request
        )
        ended: dict[str, Any] = {"parent": span.span_id, "agent": work.agent, "duration": _duration(span)}
        if operation.error and not any(content["parts"] for content in operation.outputs or ()):
            error = {"type": operation.error, "message": span.message or operation.error, **nested}
            if span.status != "error":
                # Nothing was raised that the agent may have gone on after.
                error["error_code"] = operation.error
            yield self._event(span, span.end, "error", data=error, **ended)
            return
        is_known = operation.outputs is not None
        yield self._event(
            span,
            span.end,
            "model_response",
            {"role": "model", "parts": calls.parts_of(work)} if is_known else None,
            usage=operation.usage,
            data={
                "model": operation.name,
                **({"model_version": operation.version} if operation.version else {}),
                **nested,
                **({} if is_known else {"unrecorded": True}),
            },
            **ended,
        )
        if not inside and may_hold_thoughts(operation):
            nested = {**nested, "may_hold_thoughts": True}
        if operation.lacks_attachment:
            nested = {**nested, "lacks_attachment": True}
        if operation.outputs is None:
            # Nobody knows what it said; that it was asked, and its tokens, are known.
            version = operation.version or operation.name
            step_data = {"step": f"{span.span_id}:answer", "model_version": version, **nested}
            empty: Json = {"role": "model", "parts": []}
            yield self._event(
                span,
                span.end,
                "text",
                empty,
                usage=operation.usage,
                agent=work.agent,
                parent=inside,
                data=step_data,
            )
            return
        yield from self._step(work, calls.parts_of(work), nested, inside, calls.start_times)

    def _step(
        self, work: Work, parts: list[Json], marks: Json, inside: str, start_times: Mapping[str, int]
    ) -> Iterator[Event]:
        span = work.span
        calls = [number for number, part in enumerate(parts, start=1) if "function_call" in part]
        # What comes after calls that the provider has made is the answer.
        end = calls[-1] if calls and makes_own_calls(work.operation) else 0
        answer = Step(
            author=work.agent,
            content={"role": "model", "parts": parts[end:]} if parts[end:] else None,
            final=bool(parts[end:]) and (bool(end) or not calls),
            usage=work.operation.usage,
            model_version=work.operation.version or work.operation.name or None,
            id=f"{span.span_id}:answer",
            turn=self._number,
            timestamp=span.end / _SECOND,
        )
        own = replace(answer, content={"role": "model", "parts": parts[:end]}, final=False, usage=None)
        steps = [replace(own, id=f"{span.span_id}:own"), answer] if end else [answer]
        for event in (event for step in steps for event in split_step(step)):
            # The span of a model may end after its calls: it is theirs that say when they were made.
            at = start_times.get(event.id) if event.kind == "tool_call" else None
            yield self._placed(event, span, at or span.end, marks, inside)

    def _placed(self, event: Event, span: OtelSpan, at: int, marks: Json, inside: str) -> Event:
        data = {**event.data, **marks, "from": {"trace_id": span.trace_id, "span_id": span.span_id}}
        return replace(event, data=data, t=self._seconds(at), parent=event.parent or inside)

    def _request(self, work: Work, inside: str) -> Json:
        """A request repeats the whole history; what the one before had is only counted."""
        operation = work.operation
        data: Json = {"model": operation.name, "config": operation.config}
        if operation.inputs is None:
            return {**data, "unrecorded": f"The trace does not hold it; {operation.remedy}"}
        sent = self._sent.get(f"{inside}/{work.agent}", [])
        repeated = common_length(sent, operation.inputs)
        self._sent[f"{inside}/{work.agent}"] = operation.inputs
        data["system_instruction"] = operation.instruction
        data["tools"] = operation.tools
        return {
            **data,
            "contents": operation.inputs[repeated:],
            **({"contents_before": repeated} if repeated else {}),
        }

    def _tool(self, work: Work, calls: TurnCalls, inside: str) -> Iterator[Event]:
        operation, span = work.operation, work.span
        call = calls.of(work)
        if call is None:
            if not inside:
                is_hidden = any(model.operation.outputs is None for model in self._turn.models)
                self._untold.setdefault(CALLS, _remedy(self._turn) if is_hidden else _NAMELESS)
            return
        nested = {"nested": True} if inside else {}
        tries = calls.tries_of(call)
        if not call.is_announced and work is tries[0]:
            part = {"function_call": call.as_json()}
            step = Step(
                author=work.agent,
                content={"role": "model", "parts": [part]},
                id=f"{span.span_id}:call",
                turn=self._number,
                timestamp=span.start / _SECOND,
            )
            yield from (self._placed(event, span, span.start, nested, inside) for event in split_step(step))
        if call.arguments is ABSENT and not inside:
            self._untold.setdefault(ARGUMENTS, operation.remedy)
        yield from self._works(work.inner, inside=call.id)
        if work is not tries[-1]:
            return
        if operation.error and call.result is ABSENT:
            error = {**_exception(span, operation.error), **nested}
            yield self._event(
                span,
                span.end,
                "error",
                parent=call.id,
                agent=work.agent,
                data=error,
                duration=_duration(span),
            )
            return
        if call.result is ABSENT and not inside and not call.is_transfer:
            self._untold.setdefault(RESULTS, operation.remedy)
        yield from self._result(span, span.end, work.agent, call, inside, _duration(span))

    def _result(
        self, span: OtelSpan, at: int, agent: str, call: TurnCall, inside: str, duration: float | None = None
    ) -> Iterator[Event]:
        response: Json = {"name": call.name, "id": call.id}
        if call.result is not ABSENT:
            response["response"] = call.result
        to = call.arguments.get("agent_name") if isinstance(call.arguments, dict) else None
        step = Step(
            author=agent,
            content={"role": "user", "parts": [{"function_response": response}]},
            id=f"{call.id}:result",
            turn=self._number,
            timestamp=at / _SECOND,
            transfer=to if call.name == _TRANSFER and isinstance(to, str) and not inside else None,
        )
        for event in split_step(step):
            nested = {"nested": True} if inside else {}
            placed = self._placed(event, span, at, nested, inside)
            yield replace(placed, duration=duration) if event.kind == "tool_result" else placed

    def _said_in_the_end(self, done: Sequence[Event]) -> list[Event]:
        """The text events of the agent's answer, where its own span has it and its models do not."""
        turn = self._turn
        spoke = any(map(is_answer, done))
        is_cut = any(operation.is_cut and operation.outputs is None for operation in turn.agents)
        # The span around the turn says it first, then the agent that came last.
        own = [operation for operation in turn.speakers[:1] if operation is turn.operation]
        speakers = (*own, *reversed(turn.speakers[len(own) :]))
        returned = [operation for operation in speakers if operation.has_output]
        tellers = own if spoke or is_cut else returned
        outputs = next((operation.outputs for operation in tellers if operation.outputs is not None), None)
        parts = [part for part in outputs[-1]["parts"] if part.get("text")] if outputs else []
        text = "\n".join(part["text"] for part in parts)
        if returned and returned[0].outputs is None:
            response = text or (_last_text(done) if spoke else "")
            if not _may_respond(response, returned[0]):
                self._untold.setdefault(ANSWERS, _UNREAD_OUTPUT)
                outputs, parts = None, []
        self._is_answer_told = outputs is not None
        self._stopped_at_tool = any(_is_same_text(value, text) for value in _last_values(done))
        if not parts or (spoke and _is_same_text(_last_text(done), text)):
            return []
        if spoke and turn.operation and not turn.operation.is_run and turn.operation.inputs is None:
            # It may be the response of a turn whose spans are missing.
            self._untold.setdefault(ANSWERS, _AROUND)
            return []
        names = (operation.agent or operation.name for operation in turn.agents)
        work = Work(turn.span, Operation("agent"), next(filter(None, names), ""))
        return list(self._step(work, parts, {}, "", {}))

    def _look_for_gaps(self) -> None:
        turn = self._turn
        models = turn.models
        if not self._is_answer_told and is_checked(models):
            self._untold.setdefault(ANSWERS, _CHECKED)
        if not self._is_answer_told and respond_at_once(models):
            self._untold.setdefault(ANSWERS, _AT_ONCE)
        has_tools = any(work.operation.kind == "tool" for work in turn.works)
        is_failed = _failure_of(turn) is not None
        if not models:
            self._untold.setdefault(MODEL_CALLS, turn.lost or _remedy(turn))
            if not has_tools and (is_failed or not (turn.operation and turn.operation.is_adk)):
                self._untold.setdefault(CALLS, _UNWATCHED)
        last = models[-1].operation if models else None
        if not self._is_answer_told and not is_failed and (last is None or last.outputs is None):
            self._untold.setdefault(ANSWERS, _remedy(turn))
        lacks_model = _lacks_model(turn) and not self._stopped_at_tool
        if self._is_answer_told and lacks_model:
            self._untold |= dict.fromkeys((CALLS, SOME_MODEL_CALLS, TEXTS), _ENDS_EARLY)
        if not self._is_answer_told and not is_failed and _ends_early(turn):
            self._untold.setdefault(ANSWERS, _ENDS_EARLY)
            self._untold.setdefault(SOME_MODEL_CALLS, _ENDS_EARLY)
            if lacks_model or not turn.has_ended:
                self._untold.setdefault(CALLS, _ENDS_EARLY)
            elif _may_wait(turn):
                self._untold.setdefault(CALLS, _MAY_WAIT)
        hidden = [
            work.operation for work in models if work.operation.outputs is None and not work.operation.error
        ]
        # A framework that is instrumented tells of its tools; a model's client does not.
        # Where other responses are recorded, it is this record that was lost. Where google-adk records a
        # request, a response without a record was blocked, or failed.
        is_lost = any(work.operation.outputs is not None for work in models)
        is_unsure = is_lost or any(
            operation.calls_tools or operation.is_cut or (operation.is_adk and operation.inputs is not None)
            for operation in hidden
        )
        if any(work.operation.is_unread and not (has_tools and work.operation in hidden) for work in models):
            self._untold.setdefault(CALLS, _UNREAD)
        if hidden and not has_tools and (is_unsure or not turn.agents):
            self._untold.setdefault(CALLS, hidden[0].remedy)
        elif hidden and hidden[-1] is last and last.is_adk and last.inputs is not None:
            self._untold.setdefault(CALLS, _FAILED)
        if any(work.operation.outputs is None for work in models[:-1]):
            self._untold.setdefault(TEXTS, _remedy(turn))
        if turn.operation and turn.operation.kind == "model" and turn.operation.inputs is None:
            # Its request would tell of calls before it, in traces of their own.
            self._untold.setdefault(CALLS, turn.operation.remedy)
        if any(_is_interrupt(event) for span in turn.spans for event in span.events):
            self._untold |= dict.fromkeys((CALLS, ANSWERS), _INTERRUPTED)
        for what in (CALLS, SOME_MODEL_CALLS, TEXTS, ANSWERS) if turn.lost else ():
            self._untold[what] = turn.lost


def _may_respond(text: str, outer: Operation) -> bool:
    """Whether a text may be the response where a span around it has an output that is read as no text: it is
    a member of the output, or a function has returned nothing like it."""
    members = set(map(one_spaced, texts_in(json_attribute(outer.output_value))))
    parts = set(map(one_spaced, text.splitlines())) - {""}
    return bool(text) and (parts <= members or one_spaced(text) in members or not (members or outer.is_run))


def _is_interrupt(event: SpanEvent) -> bool:
    """Whether an event is the exception by which LangGraph stops a graph that asks a person."""
    return str(event.attributes.get("exception.type")).endswith("GraphInterrupt")


def _ends_early(turn: TraceTurn) -> bool:
    """Whether a turn ends with the call of a tool, or with an agent that did nothing: its answer may be in
    a span that is missing."""
    last = turn.last_work
    if last is None:
        return False
    # The span of a model may be around its calls.
    is_answered = any(answers(model) and model.span.end >= last.span.end for model in turn.models)
    last_start = max((span.start for _, span in turn.runs), default=0)
    return (
        (last.operation.kind == "tool" and not is_answered)
        or last_start > last.span.end
        or (bool(calls_in(last.operation.outputs or ())) and not makes_own_calls(last.operation))
    )


def _lacks_model(turn: TraceTurn) -> bool:
    """Whether the last model asked for calls, without an error after it: another model may have been asked.

    Of google-adk, the name of the last tool tells.
    """
    last = turn.models[-1] if turn.models else None
    if last is None or last.operation.is_adk or makes_own_calls(last.operation):
        return False
    has_failed = any(span.end >= last.span.end for span in turn.failed)
    return bool(calls_in(last.operation.outputs or ())) and not has_failed


def _may_wait(turn: TraceTurn) -> bool:
    """Whether a turn of google-adk ends with a tool: its request to a person would have no span."""
    last = turn.last_work
    return last is not None and last.operation.is_adk and last.operation.name != _EXIT


def _writable(event: Event) -> Event:
    """The event with replacements for what JSON in UTF-8 cannot hold: NaN, lone surrogates."""
    data = event.to_json()
    try:
        json.dumps(data, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError):
        return Event.from_json(valid_json(finite_json(data)))
    return event


def _is_same_text(response: str, text: str) -> bool:
    """Whether two texts are one answer: parts may be joined otherwise, and JSON be spelt otherwise."""
    return response.split() == text.split() or is_output(response, json_attribute(text))


def _last_values(events: Sequence[Event]) -> Iterator[str]:
    """The arguments and results of the calls that the last response of a model asked for, as texts."""
    for event in reversed(events):
        if event.data.get("nested"):
            continue
        if event.kind == "model_response":
            return
        for part in parts_in(event.content) if event.kind in _CALL_EVENTS else ():
            value = part.get("function_call", {}).get("args")
            if "function_response" in part:
                value = part["function_response"].get("response")
                value = value["result"] if isinstance(value, dict) and [*value] == ["result"] else value
            yield value if isinstance(value, str) else json.dumps(value)


def _last_text(events: Sequence[Event]) -> str:
    text_events = [event for event in events if event.kind == "text" and not event.data.get("nested")]
    return "\n".join(spoken_texts(event.content for event in text_events[-1:]))


def _settle_texts_of_json(turn: TraceTurn) -> None:
    """Takes the message of a model for the value of an agent's span that has the same text.

    Where that text is JSON, only a member of it may have been read as the message.
    """
    operations = [turn.operation] if turn.operation else []
    for operation in (*operations, *turn.agents):
        if operation.kind != "agent":
            continue
        for model in turn.models:
            answer = "\n".join(spoken_texts(model.operation.outputs or ()))
            if _is_same_value(answer, operation.output_value):
                operation.outputs = [text_content("model", answer)]
            elif model.operation.outputs is None and _is_same_value(
                str(model.operation.output_value or ""), operation.output_value
            ):
                operation.outputs = None
            for part in user_parts(model.operation.inputs or ()):
                if _is_same_value(str(part.get("text") or ""), operation.input_value):
                    operation.inputs = [{"role": "user", "parts": [part]}]


def _is_same_value(text: str, value: Any) -> bool:
    return bool(text) and isinstance(value, str) and _is_same_text(text, value)


def _remedy(turn: TraceTurn) -> str:
    operations = [work.operation for work in turn.works] + ([turn.operation] if turn.operation else [])
    cut = (
        operation.remedy
        for operation in operations
        if operation.is_cut and (operation.inputs is None or operation.outputs is None)
    )
    if limit := next(cut, ""):
        return limit
    # A layout that says how is asked before the conventions, whose attributes nearly all spans have.
    return (
        next((operation.remedy for operation in operations if operation.kind == "model"), "")
        or operations[0].remedy
    )


def _duration(span: OtelSpan) -> float | None:
    return (span.end - span.start) / _SECOND if span.start and span.end >= span.start else None


def _exception(span: OtelSpan, kind: str) -> Json:
    """The exception of a span, which google-adk records twice, and Logfire as JSON."""
    attributes = next((event.attributes for event in span.events if event.name == "exception"), {})
    logged = object_of(json_attribute(span.attributes.get("error")))
    message = str(attributes.get("exception.message") or span.message or logged.get("message") or kind)
    data = {"type": str(attributes.get("exception.type") or kind), "message": message}
    trace = attributes.get("exception.stacktrace")
    return {**data, **({"traceback": str(trace)} if trace else {})}


def error_of(turn: TraceTurn, number: int) -> ErrorInfo | None:
    """The error that ended a turn; a tool that failed is none."""
    if (span := _failure_of(turn)) is None:
        return None
    operation = turn.operation if span is turn.span else None
    exception = _exception(span, (operation and operation.error) or "Error")
    return ErrorInfo(
        exception["type"], exception["message"], exception.get("traceback", ""), turn=number, kind=None
    )


def _failure_of(turn: TraceTurn) -> OtelSpan | None:
    """The span with the error that ended a turn: its first span, else a run of an agent after which nothing
    follows, and no output is known; None without such an error."""
    if turn.span.status == "error" and not (turn.operation and turn.operation.kind == "tool"):
        return turn.span
    outputs = [(turn.operation, turn.span), *turn.runs]

    def is_last(failed: OtelSpan) -> bool:
        is_followed = any(work.span.start >= failed.end and work.span is not failed for work in turn.works)
        has_output = any(
            operation is not None and operation.outputs is not None and span is not failed
            for operation, span in outputs
            if span.end >= failed.end
        )
        return not is_followed and not has_output

    return next(filter(is_last, turn.failed), None)
