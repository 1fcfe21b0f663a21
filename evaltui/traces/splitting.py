"""Several messages of the user under one span, as turns of their own.

A function around a whole conversation, or a trace of several runs of an agent, is no turn: a request that has
the answer before it and then another message of the user begins the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from evaltui.traces.layouts.operation import Operation, calls_in, responses_in, texts
from evaltui.traces.span import OtelSpan
from evaltui.traces.tree import TraceTurn, Work, user_parts


def split_turn(turn: TraceTurn) -> list[TraceTurn]:
    """The turns in what one span began; the turn itself where that is one."""
    if turn.operation is not None and turn.operation.is_adk:
        # The trace of a turn.
        return [turn]
    starts: list[Work] = []
    before: list[Work] = []
    for model in sorted(turn.models, key=lambda work: work.span.start):
        if before and not _is_same_run(turn, model, before):
            if model.operation.inputs is None:
                turn.lost = turn.lost or _loss(model.operation, before[-1].operation)
            elif _has_next_message(model.operation, before) or _is_asked_anew(model, before):
                starts.append(model)
                before = []
            elif _lacks_next_message(model.operation, before[-1].operation):
                turn.lost = turn.lost or model.operation.remedy
        before.append(model)
    return _pieces(turn, starts) if starts else [turn]


def _is_same_run(turn: TraceTurn, model: Work, before: Sequence[Work]) -> bool:
    """Whether a model was called in the same run of an agent, or of a function with one message."""
    if model.run:
        return any(work.run == model.run for work in before)
    return turn.operation is not None and turn.operation.inputs is not None


def _loss(operation: Operation, before: Operation) -> str:
    """The remedy for a request that may begin a turn; "" where it does not."""
    has_answered = before.outputs is not None and not calls_in(before.outputs)
    return operation.remedy if operation.is_cut or has_answered else ""


def _is_asked_anew(model: Work, before: Sequence[Work]) -> bool:
    """Whether an agent that has answered is asked something else, without what was said before: its
    history may be elsewhere, such as at OpenAI."""
    inputs, instruction = model.operation.inputs or (), model.operation.instruction
    user_message, last = user_parts(inputs), before[-1]
    return bool(
        user_message
        and instruction
        and all(content["role"] != "model" for content in inputs)
        and texts(last.operation.outputs or ())
        and not calls_in(last.operation.outputs or ())
        and last.span.end <= model.span.start
        and all(
            work.operation.instruction == instruction
            and user_parts(work.operation.inputs or ()) != user_message
            for work in before
        )
    )


def _lacks_next_message(operation: Operation, before: Operation) -> bool:
    """Whether a request ends in the answer before it: what the user said to that is not recorded."""
    last = next((content for content in reversed(operation.inputs or ()) if content["parts"]), None)
    answer = texts(before.outputs or ())
    return bool(answer) and last is not None and last["role"] == "model" and texts([last]) == answer


def _has_next_message(operation: Operation, before: Sequence[Work]) -> bool:
    inputs = list(operation.inputs or ())
    # The answers that asked for these calls may be in spans that are missing.
    while inputs and (calls_in(inputs[-1:]) or responses_in(inputs[-1:])):
        inputs.pop()
    places = [number for number, content in enumerate(inputs) if content["role"] == "model"]
    if not places or calls_in(inputs[places[-1] :]) or not user_parts(inputs[places[-1] + 1 :]):
        return False
    answer = texts([inputs[places[-1]]])
    return any(
        (answer and answer == texts(work.operation.outputs or ()))
        or (
            work.operation.inputs
            and len(work.operation.inputs) < len(inputs)
            and inputs[: len(work.operation.inputs)] == work.operation.inputs
        )
        for work in before
    )


def _pieces(turn: TraceTurn, starts: Sequence[Work]) -> list[TraceTurn]:
    bounds = [turn.start, *(work.span.start for work in starts), max(turn.end, starts[-1].span.start) + 1]
    pieces: list[TraceTurn] = []
    for start, end in pairwise(bounds):
        # Spans around several turns are of none.
        inside = {
            span.span_id
            for span in turn.spans
            if span is not turn.span and start <= span.start < end and span.end <= end
        }
        works = [work for work in turn.works if start <= work.span.start < end]
        runs = [
            (operation, span)
            for operation, span in zip(turn.agents, turn.agent_spans, strict=True)
            if span.span_id in inside
        ]
        first = next(work for work in works if work.operation.kind == "model")
        operation, span = runs[0] if runs else (None, _without_status(first.span))
        pieces.append(
            TraceTurn(
                span,
                operation,
                works,
                [operation for operation, _ in runs],
                [span for _, span in runs],
                [span for span in turn.spans if span.span_id in inside],
                turn.lost,
            )
        )
    last = pieces[-1]
    if turn.span.status == "error" and last.operation is None:
        last.span = replace(last.span, status="error", message=turn.span.message, events=turn.span.events)
    return pieces


def _without_status(span: OtelSpan) -> OtelSpan:
    """A call of a model that failed does not end a turn."""
    return replace(span, status="", message="", events=[])
