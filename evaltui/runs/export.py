"""A run as traces: the spans of each conversation, with the results of its metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evaltui.core.model.events import Event, Json
from evaltui.core.model.outcome import RepeatResult, Status
from evaltui.core.secrets import Secrets
from evaltui.runs.history import StoredRun
from evaltui.traces.conversations import SET_ATTRIBUTE
from evaltui.traces.span import OtelSpan
from evaltui.traces.writing.turn import Held, spans_of_turns

_SECOND = 1_000_000_000
_LABELS = {Status.PASSED: "pass", Status.FAILED: "fail"}

ConversationTraces = tuple[Mapping[str, Any], list[OtelSpan]]
"""The attributes of a resource, and its spans."""


def traces_of(run: StoredRun, secrets: Secrets, left_out: list[str]) -> Iterator[ConversationTraces]:
    """The traces of the conversations of a run, one in memory at a time, with masked secrets.

    To `left_out`, the ids of cases and repeats are added that have no turn, or no result: they ended before
    their first turn, or were interrupted.

    Raises OSError, and ValueError for a log that is damaged.
    """
    agent = run.summary.circumstances.agent
    for case, summary in run.summary.cases.items():
        repeats, events_of = run.case(case).repeats, run.events(case)
        empty: list[int] = []
        for number, result in enumerate(repeats):
            held = f"{run.id}/{case.path}/{case.eval_id}" + (f"/{number + 1}" if len(repeats) > 1 else "")
            about = {
                "evaltui.run.id": run.id,
                SET_ATTRIBUTE: summary.eval_set_id,
                "evaltui.eval.case.id": case.eval_id,
                "evaltui.repeat": number,
                "agentevals.eval.case.id": case.eval_id,
            }
            began = round(run.started.timestamp() * _SECOND)
            events = events_of.get(number, ())
            # Logs of earlier versions may hold secrets.
            masked = [Event.from_json(secrets.masked(event.to_json())) for event in events]
            turns = 1 + max((event.turn for event in events if event.turn is not None), default=-1)
            errors, state = secrets.masked((_errors(result), result.final_state))
            spans = spans_of_turns(
                Held(held, agent or "agent", began, about, errors, state),
                masked,
                secrets.masked([_results(result, turn, turns) for turn in range(turns)]),
            )
            if spans:
                yield {"service.name": agent or "agent", "agentevals.session_name": held}, spans
            else:
                empty.append(number)
        if len(empty) == len(repeats):
            left_out.append(case.eval_id)
        else:
            left_out += [f"{case.eval_id} (repeat {number + 1})" for number in empty]


def _errors(result: RepeatResult) -> dict[str, Json]:
    """The error that ended the conversation, by turn."""
    error = result.error
    if error is None or error.turn is None:
        return {}
    return {str(error.turn): {"type": error.type, "message": error.message, "traceback": error.traceback}}


def _results(result: RepeatResult, turn: int, turns: int) -> list[Json]:
    """The results of the metrics in a turn; those of the whole conversation are in its last turn."""
    results: list[Json] = []
    for metric in result.metrics:
        scored = metric.per_invocation
        if scored and turn < len(scored):
            scored_turn = scored[turn]
            results.append(_result(metric.name, scored_turn.score, scored_turn.status, scored_turn.reason))
        elif not scored and turn == turns - 1:
            results.append(_result(metric.name, metric.score, metric.status, metric.reason))
    return results


def _result(name: str, score: float | None, status: Status, reason: str) -> Json:
    fields = {
        "gen_ai.evaluation.name": name,
        "gen_ai.evaluation.score.value": None if score is None else float(score),
        "gen_ai.evaluation.score.label": _LABELS.get(status, status.value.lower()),
        "gen_ai.evaluation.explanation": reason or None,
    }
    return {key: value for key, value in fields.items() if value is not None}
