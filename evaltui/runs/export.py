"""A run for other programs: as traces with what the metrics say of each turn, and as agents-cli's results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

from evaltui.core.conversation.invocations import app_details_by_turn
from evaltui.core.conversation.steps import steps_from_events
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import (
    SIMULATED_USER,
    Event,
    Json,
    output_content,
    output_text,
    parts_in,
    text_content,
)
from evaltui.core.model.json_values import field_of
from evaltui.core.model.outcome import RepeatResult, Status
from evaltui.core.secrets import Secrets
from evaltui.documents.dataset_cases import exported_case
from evaltui.documents.edits import EditError
from evaltui.runs.history import StoredRun
from evaltui.traces.conversations import SET_ATTRIBUTE
from evaltui.traces.span import OtelSpan
from evaltui.traces.writing.turn import SESSION, Held, spans_of_turns

_Made = TypeVar("_Made")
_SECOND = 1_000_000_000
_OF_CONVERSATION = ("prompt", "agent_data", "conversation_history", "evaltui")
_SCHEMA = "parameters_json_schema"
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

    def traces(repeat: _Repeat) -> ConversationTraces | None:
        case, number, result = repeat.case, repeat.number, repeat.result
        held = f"{run.id}/{case.path}/{case.eval_id}" + (f"/{number + 1}" if repeat.of > 1 else "")
        about = {
            "evaltui.run.id": run.id,
            SET_ATTRIBUTE: run.summary.cases[case].eval_set_id,
            "evaltui.eval.case.id": case.eval_id,
            "evaltui.repeat": number,
            "agentevals.eval.case.id": case.eval_id,
        }
        if session := secrets.masked(_session_before(run, case)):
            about[SESSION] = json.dumps(session, ensure_ascii=False)
        began = round(run.started.timestamp() * _SECOND)
        turns = 1 + max((event.turn for event in repeat.events if event.turn is not None), default=-1)
        errors, state = secrets.masked((_errors(result), result.final_state))
        spans = spans_of_turns(
            Held(held, agent or "agent", began, about, errors, state),
            repeat.events,
            secrets.masked([_results(result, turn, turns) for turn in range(turns)]),
        )
        resource = {"service.name": agent or "agent", "agentevals.session_name": held}
        return (resource, spans) if spans else None

    return _made_of_repeats(run, secrets, left_out, traces)


def _session_before(run: StoredRun, case: CaseId) -> Json:
    """The session that the case gives the agent; {} for scored traces, which began as they did."""
    if run.file.header.of_traces:
        return {}
    session = field_of(run.file.eval_case(case), "session_input")
    names = ("app_name", "user_id")
    return {name: field_of(session, name) or "" for name in names} | {
        "state": field_of(session, "state") or {}
    }


class _Repeat(NamedTuple):
    case: CaseId
    number: int
    of: int
    """The number of repeats of the case."""
    result: RepeatResult
    events: list[Event]
    """Events without secrets."""


def _made_of_repeats(
    run: StoredRun, secrets: Secrets, left_out: list[str], make: Callable[[_Repeat], _Made | None]
) -> Iterator[_Made]:
    """The conversations of a run in another form, without those of which `make` makes None."""
    for case in run.summary.cases:
        repeats, events_of = run.case(case).repeats, run.events(case)
        empty: list[int] = []
        for number, result in enumerate(repeats):
            # Texts may have been declared secret since.
            masked = [Event.from_json(secrets.masked(e.to_json())) for e in events_of.get(number, ())]
            made = make(_Repeat(case, number, len(repeats), result, masked))
            if made is None:
                empty.append(number)
            else:
                yield made
        if len(empty) == len(repeats):
            left_out.append(case.eval_id)
        else:
            left_out += [f"{case.eval_id} (repeat {number + 1})" for number in empty]


def results_of(run: StoredRun, secrets: Secrets, left_out: list[str]) -> Iterator[Json]:
    """Each conversation of a run as a case of an EvaluationDataset, as `agents-cli eval generate` writes it.

    The response and the events are the actual ones; reference, rubrics and session are of the eval case.
    For `left_out` and errors see `traces_of`; a conversation that ended with an error is left out, too.
    """

    def result(repeat: _Repeat) -> Json | None:
        turns = list(_turns_of(repeat.events))
        # The format has no place for an error: the conversation would look complete.
        if not turns or repeat.result.error is not None:
            return None
        stated = secrets.masked(_stated(run, repeat.case))
        if len(turns) == 1:
            stated["prompt"] = turns[0].pop(0)["content"]
        data: Json = {
            "turns": [
                {"turn_index": number, "turn_id": f"turn_{number}", "events": turn}
                for number, turn in enumerate(turns)
            ]
        }
        if agents := _agents_in(repeat.events):
            data["agents"] = agents
        response = _last_text(turns[-1])
        responses = {"responses": [{"response": response}]} if response else {}
        return {"eval_case_id": repeat.case.eval_id} | stated | responses | {"agent_data": data}

    return _made_of_repeats(run, secrets, left_out, result)


def _stated(run: StoredRun, case: CaseId) -> Json:
    """The members of a dataset's case that say how it began and what is expected of it."""
    eval_case = run.file.eval_case(case)
    try:
        written = exported_case(eval_case)[0] if eval_case else {}
    except EditError:
        return {}
    return {name: value for name, value in written.items() if name not in _OF_CONVERSATION}


def _turns_of(events: Iterable[Event]) -> Iterator[list[Json]]:
    """The events of each turn as a dataset has them, that of the user first."""
    steps = [step for step in steps_from_events(events) if step.author != SIMULATED_USER]
    for _, turn in groupby(steps, lambda step: step.turn):
        of_user: list[Json] = []
        of_agents: list[Json] = []
        for step in turn:
            is_user = step.author.lower() == "user"
            parts = [_without_signature(part) for part in step.parts]
            event: Json = {"author": "user" if is_user else step.author or "agent"}
            if parts:
                event["content"] = {
                    "role": "user" if is_user else "model",
                    **(step.content or {}),
                    "parts": parts,
                }
            elif step.answers and (text := output_text(step.output)):
                event["content"] = output_content(text)
            if step.state:
                event["state_delta"] = step.state
            if len(event) > 1:
                (of_user if is_user else of_agents).append(event)
        if of_user and "content" in of_user[0]:
            yield [*of_user, *of_agents]


def _without_signature(part: Json) -> Json:
    return {name: value for name, value in part.items() if name != "thought_signature"}


def _last_text(turn: Sequence[Json]) -> Json | None:
    """The last text of agents in a turn as a content."""
    for event in reversed(turn):
        parts = parts_in(event.get("content")) if event["author"] != "user" else ()
        if text := "".join(part.get("text") or "" for part in parts if not part.get("thought")):
            return text_content("model", text)
    return None


def _agents_in(events: Sequence[Event]) -> Json:
    """The agents that asked a model, with their instructions and tools."""
    agents: Json = {}
    for details in app_details_by_turn(events).values():
        for name, agent in details.agent_details.items():
            of_model = {"instruction": agent.instructions, "tools": _declared(agent.tool_declarations)}
            agents.setdefault(
                name, {"agent_id": name, **{key: value for key, value in of_model.items() if value}}
            )
    return agents


def _declared(tools: Iterable[Json]) -> list[Json]:
    """Tools whose parameters are any JSON Schema, which genai takes under a name of its own."""
    return [
        {
            "function_declarations": [
                {
                    "name": function["name"],
                    "description": function.get("description") or "",
                    _SCHEMA: function.get("parameters_json_schema") or function.get("parameters"),
                }
                for function in tool["function_declarations"]
            ]
        }
        for tool in tools
        if "function_declarations" in tool
    ]


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
