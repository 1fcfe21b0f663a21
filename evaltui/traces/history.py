"""The history in requests to models: where turns begin, and which turns and responses have no spans."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, starmap
from math import inf

from evaltui.core.model.events import ANSWERS, CALLS, SOME_MODEL_CALLS, TEXTS, USER_MESSAGE, spoken_texts
from evaltui.traces.calls import answer_of, may_hold_thoughts
from evaltui.traces.layouts.messages import without_attachments
from evaltui.traces.layouts.operation import Json, Operation, calls_in, responses_in
from evaltui.traces.span import OtelSpan
from evaltui.traces.trace_turn import (
    TraceTurn,
    Work,
    is_sent_response,
    one_spaced,
    texts_of_others,
    user_message,
    user_parts,
)

_WITHOUT_HISTORY = (
    "requests below one span have several messages and not the history before them: record a span of the "
    "agent for each message of the user (invoke_agent), or begin a trace for each"
)

_BESIDE_RESULTS = (
    "a request has a text beside the results of calls, which may be of the user: record a span of the agent "
    "for each message of the user (invoke_agent)"
)
SEVERAL_MESSAGES = (_WITHOUT_HISTORY, _BESIDE_RESULTS)
"""Remedies for turns that may have further messages of the user."""
_RESUMED = (
    "the turn goes on with calls of an earlier one; the response of the person, or the model that asked for "
    "them, has no span: run the case instead, or import the session"
)
_OVERWRITTEN = (
    "OpenInference writes all calls of a model of google-adk 2 on the span of the agent, each over the one "
    "before: record spans of google-adk without it, or import the session"
)
_MISSING_TURN = (
    "only requests of later turns show the turn: export its spans, too. Examples for the model belong in its "
    "instruction"
)
_MIXED = (
    "several conversations have one id, or are in one trace without one: turns overlap, or a request leaves "
    "one out. Record a gen_ai.conversation.id or session.id of its own for each"
)
_OTHERS = "a request tells of another agent, which has no spans in the turn: export all spans of the trace"
_REPLACED = (
    "the request of the next turn has another response than the span of the model: it was replaced, and the "
    "trace does not say by whom. Record the output of the agent in its span"
)

# How the name of the span of an agent begins.
_AGENT = "invoke_agent"
# Logfire's text for what Anthropic's client returned: it is no JSON.
_OBJECT = re.compile(r"(Text|Thinking|ToolUse)Block\(")
# How google-adk has an agent read what another one said or called.
_AUTHOR = re.compile(r"\[([^\]\n]+)\] (?:(called tool)|`|said)")


def split_turn(turn: TraceTurn) -> list[TraceTurn]:
    """The turns in what one span began; the turn itself where that is one."""
    if turn.operation is not None and turn.operation.is_adk:
        # The trace of a turn.
        return [turn]
    starts: list[Work] = []
    before: list[Work] = []
    for model in sorted((work for work in turn.works if work.operation.kind == "model"), key=_order):
        if before and not _is_same_run(turn, model, before):
            if model.operation.inputs is None:
                turn.lost = turn.lost or _loss(turn, model, before[-1])
            elif _has_next_message(model.operation, before) or _is_asked_anew(model, before):
                starts.append(model)
                before = []
            elif _has_text_beside_results(model.operation):
                turn.lost = turn.lost or _BESIDE_RESULTS
            elif _lacks_next_message(model.operation, before[-1].operation):
                turn.lost = turn.lost or model.operation.remedy
            elif _may_have_next_message(turn, model, before):
                turn.lost = turn.lost or _WITHOUT_HISTORY
        before.append(model)
    return _pieces(turn, starts) if starts else [turn]


def _is_same_run(turn: TraceTurn, model: Work, before: Sequence[Work]) -> bool:
    """Whether a model was called in the same run of an agent, or below a span that records one message."""
    if model.run and any(work.run == model.run for work in before):
        return True
    inputs = turn.operation.inputs if turn.operation else None
    if inputs is None or not model.run:
        return inputs is not None
    # Around several runs, a function's arguments may be no message.
    return user_parts(inputs)[-1:] == user_parts(before[0].operation.inputs or ())[-1:]


def _loss(turn: TraceTurn, model: Work, before: Work) -> str:
    """The remedy for a request that may begin a turn; "" where it does not."""
    operation, outputs = before.operation, before.operation.outputs
    has_answered = outputs is not None and not calls_in(outputs)
    if outputs is None and not operation.calls_tools and before.span.end <= model.span.start:
        # Without its response, tools tell: some providers name no other end of a model that calls them.
        has_answered = not any(
            work.operation.kind == "tool"
            and _order(before) <= _order(work)
            and work.span.start <= model.span.start
            for work in turn.works
        )
    return model.operation.remedy if model.operation.is_cut or has_answered else ""


def _is_asked_anew(model: Work, before: Sequence[Work]) -> bool:
    """Whether an agent that has answered is asked something else, without what was said before: its
    history may be elsewhere, such as at OpenAI."""
    inputs, instruction = model.operation.inputs or (), model.operation.instruction
    user_message, last = user_parts(inputs), before[-1]
    return bool(
        user_message
        and instruction
        and all(content["role"] != "model" for content in inputs)
        and spoken_texts(last.operation.outputs or ())
        and not calls_in(last.operation.outputs or ())
        and last.span.end <= model.span.start
        and all(
            work.operation.instruction == instruction
            and user_parts(work.operation.inputs or ()) != user_message
            for work in before
        )
    )


def _has_text_beside_results(operation: Operation) -> bool:
    """Whether a request ends in results of calls with a text of the user in the same message."""
    last = (operation.inputs or [])[-1:]
    return bool(responses_in(last) and spoken_texts([{"parts": user_parts(last)}]))


def _lacks_next_message(operation: Operation, before: Operation) -> bool:
    """Whether a request ends in the answer before it: what the user said to that is not recorded."""
    last = next((content for content in reversed(operation.inputs or ()) if content["parts"]), None)
    answer = spoken_texts(before.outputs or ())
    return bool(answer) and last is not None and last["role"] == "model" and spoken_texts([last]) == answer


def _may_have_next_message(turn: TraceTurn, model: Work, before: Sequence[Work]) -> bool:
    """Whether a request outside of the runs before it ends in a message that none of those has, or repeats
    one that was answered: the user may have said it, or a function."""
    inputs, last = model.operation.inputs or [], before[-1]
    is_in_run = model.outermost_run and any(work.outermost_run == model.outermost_run for work in before)
    has_message = turn.operation is not None and turn.operation.inputs is not None
    if turn.lost or is_in_run or has_message or is_sent_response(model, last):
        return False
    end = max((place for place, content in enumerate(inputs, 1) if content["role"] == "model"), default=0)
    messages = spoken_texts([{"parts": user_parts(inputs[end:])}])
    earlier = messages and [
        text for work in before for text in spoken_texts([{"parts": user_parts(work.operation.inputs or ())}])
    ]
    if any(text not in earlier for text in messages):
        return all(work.operation.inputs is not None for work in before)
    is_repeated = (last.agent, last.operation.instruction) == (model.agent, model.operation.instruction)
    answered = spoken_texts(last.operation.outputs or ()) and not calls_in(last.operation.outputs or ())
    return bool(messages and answered and is_repeated)


def _has_next_message(operation: Operation, before: Sequence[Work]) -> bool:
    inputs = list(operation.inputs or ())
    # The answers that asked for these calls may be in spans that are missing.
    while inputs and (calls_in(inputs[-1:]) or responses_in(inputs[-1:])):
        inputs.pop()
    places = [number for number, content in enumerate(inputs) if content["role"] == "model"]
    if not places or calls_in(inputs[places[-1] :]) or not user_parts(inputs[places[-1] + 1 :]):
        return False
    answer = spoken_texts([inputs[places[-1]]])
    return any(
        (answer and answer == spoken_texts(work.operation.outputs or ()))
        or (
            work.operation.inputs
            and len(work.operation.inputs) < len(inputs)
            and inputs[: len(work.operation.inputs)] == work.operation.inputs
        )
        for work in before
    )


def _pieces(turn: TraceTurn, starts: Sequence[Work]) -> list[TraceTurn]:
    bounds = [turn.start, *(work.span.start for work in starts), max(turn.end, starts[-1].span.start) + 1]
    groups = _grouped(turn.works, starts)
    own = {work.span.span_id for work in turn.works}
    pieces: list[TraceTurn] = []
    for (start, end), works in zip(pairwise(bounds), groups, strict=True):
        # Spans around several turns are of none.
        inside = {work.span.span_id for work in works} | {
            span.span_id
            for span in turn.spans
            if span is not turn.span
            and span.span_id not in own
            and start <= span.start < end
            and span.end <= end
        }
        runs = [run for run in turn.runs if run[1].span_id in inside]
        first = next(work for work in works if work.operation.kind == "model")
        end = max(work.span.end for work in works)
        # A function beside the calls, such as a search, is not around them.
        around = (run for run in runs if run[1].start <= works[0].span.start and end <= run[1].end)
        operation, span = next(around, (None, _without_status(first.span)))
        pieces.append(
            TraceTurn(
                span,
                operation,
                works,
                runs,
                [span for span in turn.spans if span.span_id in inside],
                turn.lost,
                [span for span in turn.failed if span.span_id in inside],
                unknown=dict(turn.unknown),
                around=turn.span,
            )
        )
    last = pieces[-1]
    last.has_ended = turn.has_ended
    if turn.span.status == "error" and last.operation is None:
        last.span = replace(last.span, status="error", message=turn.span.message, events=turn.span.events)
    return pieces


def _grouped(works: Sequence[Work], starts: Sequence[Work]) -> list[list[Work]]:
    """The works of each turn. Of a tool that began with the model of a turn, its call says which turn has it:
    calls may begin at the same moment."""
    groups: list[list[Work]] = [[]]
    for work in sorted(works, key=_order):
        if any(work is start for start in starts):
            groups.append([])
        groups[-1].append(work)
    moments = {start.span.start for start in starts}
    for group in groups:
        for tool in [work for work in group if work.operation.kind == "tool" and work.span.start in moments]:
            callers = [other for other in groups if any(_calls(work, tool) for work in other)]
            if callers and not any(other is group for other in callers):
                group.remove(tool)
                callers[-1].append(tool)
    return groups


def _order(work: Work) -> tuple[int, int]:
    return work.span.start, work.span.end


def _calls(model: Work, tool: Work) -> bool:
    """Whether the response of a model has the call of a tool: its id, or where one has none, its name."""
    name, call_id = tool.operation.name, tool.operation.call_id
    return any(
        call["id"] == call_id if call_id and call.get("id") else call.get("name") == name
        for call in calls_in(model.operation.outputs or ())
    )


def _without_status(span: OtelSpan) -> OtelSpan:
    """A call of a model that failed does not end a turn."""
    return replace(span, status="", message="", events=[])


def turns_of_conversation(turns: Sequence[TraceTurn]) -> list[TraceTurn]:
    """The turns of a conversation, in their order, with those that only requests of later turns tell of."""
    complete: list[TraceTurn] = []
    messages: list[str] = []
    inner: set[str] = set()
    joined = _joined(turns)
    is_mixed = any(starmap(_overlaps, pairwise(joined)))
    for turn in joined:
        if _is_adk(turn) and _lacks_others(turn):
            turn.lost = turn.lost or _OTHERS
        _settle_resumed(turn, complete[-1] if complete else None)
        if complete and _has_failed(complete[-1]):
            failed = user_message(complete[-1])
            turn.failed_messages = [*complete[-1].failed_messages, *([failed] if failed else [])]
        history = list(_history(turn))
        is_mixed = is_mixed or _skips_turn(turn, history, complete)
        if turn.own_events is None or turn.own_events[0].turn != len(complete):
            for place, message in reversed(_missing_messages(history, messages, inner)):
                complete.insert(place, _missing_turn(message, turn))
                messages.insert(place, _plain(message["parts"]))
        if complete and history and _is_like(_plain(history[-1]["parts"]), messages[-1]):
            _settle_response(complete[-1], turn)
        complete.append(turn)
        messages.append(_plain(user_message(turn)))
        inner |= _inner_texts(turn)
    for turn in complete if is_mixed else ():
        turn.lost = turn.lost or _MIXED
        turn.unknown[USER_MESSAGE] = _MIXED
    return complete


def _overlaps(before: TraceTurn, turn: TraceTurn) -> bool:
    """Whether a turn began before the one before it had ended, or in another trace, before its last model
    had: what follows that may still have gone on.
    """
    first = min((work.span.start for work in turn.works), default=inf)
    last = max((work.span.start for work in before.works), default=0)
    if before.span.trace_id != turn.span.trace_id:
        last = max((model.span.end for model in before.models), default=0)
    elif before.around is None or before.around is not turn.around:
        first, last = turn.start, before.end
    return first < last


def _skips_turn(turn: TraceTurn, history: Sequence[Json], complete: Sequence[TraceTurn]) -> bool:
    """Whether the request of a turn has the message of an earlier one, and not that of one between both.

    Those of turns that failed may be left out.
    """
    earlier = [_plain(message["parts"]) for message in history]
    sent = [_plain([part]) for part in user_parts(_first_request(turn))]
    messages = [_plain(user_message(other)) for other in complete if not (other.lost or _has_failed(other))]
    after = next(
        (number for number, message in enumerate(messages) if _is_in(message, earlier)), len(messages)
    )
    return any(message and not _is_in(message, sent) for message in messages[after:])


def _has_failed(turn: TraceTurn) -> bool:
    return bool(turn.failed) or turn.span.status == "error"


def _is_in(message: str, repeated: Sequence[str]) -> bool:
    return bool(message) and any(text and _is_like(text, message) for text in repeated)


def _joined(turns: Sequence[TraceTurn]) -> list[TraceTurn]:
    """Turns of which each call of a model is a trace of its own, put together.

    That is where nobody but the model's client was watched: a request that ends in the results of the calls
    that were asked for last goes on with them.
    """
    joined: list[TraceTurn] = []
    for turn in turns:
        # A span that names the session is around all calls of a turn.
        has_span = bool(turn.agents or (turn.session and turn.operation is None))
        if joined and not has_span and not _is_adk(turn) and _goes_on(joined[-1], turn):
            if any(_has_text_beside_results(model.operation) for model in turn.models):
                joined[-1].lost = joined[-1].lost or _BESIDE_RESULTS
            joined[-1].works += turn.works
            joined[-1].spans += turn.spans
            joined[-1].has_ended = turn.has_ended
        else:
            joined.append(turn)
    return joined


def _goes_on(before: TraceTurn, turn: TraceTurn) -> bool:
    last = before.models[-1:]
    calls = calls_in(last[0].operation.outputs or ()) if last else ()
    answered = responses_in(_first_request(turn)[-1:])
    ids, answered_ids = _ids(calls), _ids(answered)
    return bool(calls and answered) and (not ids or not answered_ids or bool(ids & answered_ids))


def _ids(calls: Sequence[Json]) -> set[str]:
    return {str(call["id"]) for call in calls if call.get("id")}


def _is_adk(turn: TraceTurn) -> bool:
    return any(work.operation.is_adk for work in turn.works)


def history_length(turn: TraceTurn) -> int:
    """Number of contents in the first request of a turn."""
    return len(_first_request(turn))


def _first_request(turn: TraceTurn) -> list[Json]:
    first = min(turn.models, key=_order, default=None)
    return (first.operation.inputs if first else None) or []


def _settle_resumed(turn: TraceTurn, before: TraceTurn | None) -> None:
    """Marks a turn that goes on with calls of an earlier one, to which a person has responded.

    google-adk asks a model before each of its calls.
    """
    first_model = min((model.span.start for model in turn.models), default=inf)
    has_tool_before = any(
        work.operation.kind == "tool" and work.span.start < first_model for work in turn.works
    )
    is_after_calls = has_tool_before or bool(responses_in(_first_request(turn)[-1:]))
    if (_is_adk(turn) and is_after_calls) or (before is not None and _goes_on(before, turn)):
        turn.unknown |= dict.fromkeys((USER_MESSAGE, CALLS), _RESUMED)
    if _is_adk(turn) and is_after_calls and any(model.span.name.startswith(_AGENT) for model in turn.models):
        turn.unknown |= dict.fromkeys((USER_MESSAGE, CALLS, SOME_MODEL_CALLS, TEXTS), _OVERWRITTEN)


def _lacks_others(turn: TraceTurn) -> bool:
    """Whether the first request of a turn tells of calls, or of an agent, that have no spans before it."""
    names = {operation.agent or operation.name for operation in turn.agents}
    authors = [_AUTHOR.match(text) for text in texts_of_others(_first_request(turn))]
    return any(author and (author[2] or author[1] not in names) for author in authors)


def _missing_messages(
    history: Sequence[Json], messages: Sequence[str], inner: Collection[str]
) -> list[tuple[int, Json]]:
    """Messages in the history of a turn that no turn before it has, each with the place of its turn.

    `messages` are those of the turns before, "" for unknown ones, `inner` texts that are of no user.
    """
    missing: list[tuple[int, Json]] = []
    place = 0
    for message in history:
        text = _plain(message["parts"])
        places = range(place, len(messages))
        after = next((number + 1 for number in places if _is_like(text, messages[number])), 0)
        if after or text in inner:
            place = after or place
        elif text:
            missing.append((place, message))
    return missing


def _is_like(text: str, message: str) -> bool:
    """Whether a repeated text may be that of a message: it may stand in a prompt, and "" is unknown."""
    return not message or f" {text} " in f" {message} " or f" {message} " in f" {text} "


def _history(turn: TraceTurn) -> Iterator[Json]:
    """The messages of the user before that of a turn, in its first request, to which a model responded.

    Others may be of turns that failed, or a summary.
    """
    contents = list(_first_request(turn))
    while contents and (contents[-1]["role"] == "model" or not user_parts(contents[-1:])):
        contents.pop()
    parts: list[Json] = []
    for content in contents:
        if content["role"] != "model":
            # Of google-adk, those before the last one are of turns that failed.
            parts = user_parts([content]) or parts if _is_adk(turn) else [*parts, *user_parts([content])]
        elif parts:
            yield {"role": "user", "parts": parts}
            parts = []


def _inner_texts(turn: TraceTurn) -> set[str]:
    """Texts that models of a turn wrote or were sent after its first request: they are of no user."""
    requests = [model.operation.inputs or () for model in sorted(turn.models, key=_order)]
    sent = [{_plain([part]) for part in user_parts(request)} for request in requests]
    responses = {_plain(parts) for model in turn.models if (parts := answer_of(model.operation))}
    return responses.union(*sent[1:]).difference(*sent[:1])


def _plain(parts: Sequence[Json] | None) -> str:
    """The words of parts in a line; "" where they are unknown."""
    return one_spaced(" ".join(spoken_texts([{"parts": parts or ()}])))


def _missing_turn(message: Json, following: TraceTurn) -> TraceTurn:
    span = OtelSpan(following.span.trace_id, f"{following.span.span_id}:before", "", "")
    return TraceTurn(span, Operation("agent", inputs=[message]), lost=_MISSING_TURN)


def _settle_response(before: TraceTurn, turn: TraceTurn) -> None:
    """Marks a response as unknown where the next turn of its agent has another one: a callback or a guard may
    have replaced it."""
    if not before.models or not turn.models or before.has_output:
        return
    last, first = before.models[-1], min(turn.models, key=_order)
    agents = {(model.agent, model.operation.instruction) for model in (last, first)}
    responses = [content for content in first.operation.inputs or () if content["role"] == "model"]
    response, repeated = (
        _plain(parts).replace(" ", "") for parts in (answer_of(last.operation), _own_parts(responses[-1:]))
    )
    is_same = response == repeated or _OBJECT.match(repeated)
    if len(agents) > 1 or not response or not repeated or is_same:
        return
    if not (may_hold_thoughts(last.operation) and response.endswith(repeated)):
        before.unknown.setdefault(ANSWERS, _REPLACED)


def _own_parts(contents: Sequence[Json]) -> list[Json]:
    return [part for content in without_attachments([*contents]) or () for part in content["parts"]]
