"""Converting steps to events, and events to scored invocations.

The conversion of events to invocations is that of google-adk 2.13,
`EvaluationGenerator.convert_events_to_eval_invocations`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from ...text.values import valid_json_text
from ..model.eval_set import AgentDetails, AppDetails, Invocation
from ..model.events import (
    ANSWERS,
    CALLS,
    MODEL_CALLS,
    SIMULATED_USER,
    SOME_MODEL_CALLS,
    Event,
    Json,
    Kind,
    Step,
    output_content,
    output_text,
)
from ..trace.spans import covered_seconds, instruction_text
from .adk_steps import step_from_adk
from .steps import steps_from_events

# Of seconds, as events in a log have them: a turn of less than a millisecond is not one of none.
_DECIMALS = 6


def app_details_by_turn(events: Iterable[Event]) -> dict[int | None, AppDetails]:
    """Instructions and tools of the agents by turn, from the first request of each agent in the turn.

    Agents inside a tool are left out. Tools are genai Tools as JSON, as in google-adk 2.13's
    `Invocation.app_details`.
    """
    agents: dict[int | None, dict[str, AgentDetails]] = {}
    for event in events:
        if event.kind != "model_request" or event.data.get("nested"):
            continue
        of_turn = agents.setdefault(event.turn, {})
        # Who asks is not always known: a tool may use a model directly.
        if event.agent and event.agent not in of_turn:
            of_turn[event.agent] = AgentDetails(
                name=event.agent,
                instructions=instruction_text(event.data.get("system_instruction")),
                tool_declarations=_tools(event.data.get("tools") or ()),
            )
    return {turn: AppDetails(agent_details=of_turn) for turn, of_turn in agents.items()}


def _tools(declared: Iterable[Any]) -> list[Any]:
    # Of the tools in a request, only functions have a name; the others are tools of the model itself.
    functions: list[Any] = []
    others: list[Any] = []
    for tool in declared:
        (functions if isinstance(tool, dict) and "name" in tool else others).append(tool)
    return [*([{"function_declarations": functions}] if functions else []), *others]


def invocations_from_events(
    events: Iterable[Event | Mapping[str, Any]], *, app_details: bool = False
) -> list[Invocation]:
    """Converts events, of evaltui or of google-adk as JSON, to one `Invocation` per user message.

    Calls inside an agent tool, model requests, console lines and model calls of simulated users are left out.
    With `app_details`, invocations have the details of `app_details_by_turn`. Raises ValueError for other
    data, pydantic's ValidationError for a content that genai does not accept.
    """
    ours: list[Event] = []
    steps: list[Step] = []
    for event in events:
        if isinstance(event, Event):
            ours.append(event)
        elif "kind" in event:
            ours.append(Event.from_json(event))
        else:
            steps.append(step_from_adk(event))
    # Its time is not the agent's.
    ours = [event for event in ours if event.agent != SIMULATED_USER]
    steps += steps_from_events(ours)
    groups: dict[object, list[Step]] = {}
    for step in steps:
        groups.setdefault(step.invocation_id if step.turn is None else step.turn, []).append(step)
    spent = _durations(ours)
    details = app_details_by_turn(ours) if app_details else {}
    return [_turn(group, spent, details.get(group[0].turn)) for group in groups.values()]


def _turn(
    steps: Sequence[Step], spent: Mapping[int, Mapping[str, float]], details: AppDetails | None
) -> Invocation:
    """The invocation of a turn, with a second one whose response is the output where no text has the
    output."""
    of_turn = spent.get(steps[0].turn, {}) if steps[0].turn is not None else {}
    made = _invocation(steps, of_turn)
    returned = [step for step in steps if step.answers and not step.says_output]
    if returned and (text := output_text(returned[-1].output)):
        answer = Step(returned[-1].author, output_content(text), final=True, turn=steps[0].turn)
        scored = _invocation([*steps, replace(answer, invocation_id=steps[0].invocation_id)], of_turn)
        made.returns(text, scored)
    if details is not None:
        made.app_details = made.with_output.app_details = details
    return made


def _invocation(steps: Sequence[Step], spent: Mapping[str, float]) -> Invocation:
    user: Step | None = None
    final: Step | None = None
    recorded: list[Step] = []
    untold = {
        what: (step.remedies or {}).get(what, "")
        for step in steps
        for what in step.untold
        if what != MODEL_CALLS
    }
    for step in steps:
        if (step.author or "agent").lower() == "user":
            user = step if step.content is not None else user
            continue
        # A live response is both audio and a transcript: the one with text is the answer.
        if step.parts and step.final and (final is None or not _has_text(final) or _has_text(step)):
            final = step
        # What a model said may be unknown, while that it was asked, and its tokens, are known.
        was_asked = step.content is not None and step.model_version is not None
        is_untold = bool(untold) and was_asked and not step.parts
        if step.grounding is not None or is_untold or any(_is_recorded(part) for part in step.parts):
            recorded.append(step)
    data: Json = {
        # The host reports the user's message before the framework has named the invocation.
        "invocation_id": next((step.invocation_id for step in steps if step.invocation_id), ""),
        "user_content": user.content if user else {"parts": []},
        "final_response": final.content if final else None,
        # What is unknown is absent: without events, a turn would be one that called nothing.
        "intermediate_data": None
        if CALLS in untold
        else {"invocation_events": [_recorded_event(step, final) for step in recorded]},
        "creation_timestamp": user.timestamp if user else 0.0,
        **spent,
    }
    made = Invocation.model_validate_json(_json(data))
    return made.without(untold) if untold else made


def _json(data: Json) -> str | bytes:
    """JSON of the data, with replacements for lone surrogates in texts."""
    try:
        return to_json(data)
    except PydanticSerializationError:
        return valid_json_text(data)


def _has_text(step: Step) -> bool:
    return any(part.get("text") for part in step.parts)


def _is_recorded(part: Json) -> bool:
    # An empty call or blob is still one: only an empty text says nothing.
    if part.get("text"):
        return True
    return any(part.get(name) is not None for name in ("function_call", "function_response", "inline_data"))


def _recorded_event(step: Step, final: Step | None) -> Json:
    # The answer's text is in final_response already; its calls are read from here.
    keeps_content = step is not final or any("function_call" in part for part in step.parts)
    return {
        "author": step.author,
        "content": step.content if keeps_content else None,
        "grounding_metadata": step.grounding,
        "usage_metadata": step.usage,
        "model_version": step.model_version,
    }


# The unknown parts of a turn of which the end is not recorded.
_END = {ANSWERS, SOME_MODEL_CALLS}


def _durations(events: Sequence[Event]) -> dict[int, dict[str, float]]:
    """Seconds by turn: in total, waiting for models, and in tools while no model call was running.

    The last two need known model calls. Time in which calls waited for limits of the run is left out, and
    turns of which the end is unknown.
    """
    by_turn: dict[int, list[Event]] = {}
    for event in events:
        if event.turn is not None:
            by_turn.setdefault(event.turn, []).append(event)
    spent: dict[int, dict[str, float]] = {}
    for turn, group in by_turn.items():
        models, tools = _ranges(group, "model_response"), _ranges(group, "tool_result")
        model, either = covered_seconds(models), covered_seconds(models + tools)
        throttled = covered_seconds(models + tools + _waits(group)) - either
        total = max(event.t for event in group) - min(event.t for event in group) - throttled
        if any(_END.issubset(event.data.get("untold", ())) for event in group):
            continue
        if total > 0:
            spent[turn] = {"duration": round(total, _DECIMALS)}
        if total > 0 and not any(MODEL_CALLS in event.data.get("untold", ()) for event in group):
            spent[turn]["model_duration"] = round(model, _DECIMALS)
            spent[turn]["tool_duration"] = round(either - model, _DECIMALS)
    return spent


def _ranges(events: Iterable[Event], kind: Kind) -> list[tuple[float, float]]:
    return [(event.t - event.duration, event.t) for event in events if event.kind == kind and event.duration]


def _waits(events: Iterable[Event]) -> list[tuple[float, float]]:
    """The time ranges in which model calls waited, before the answered attempt, as far as they are known."""
    waits = ((event.t - (event.duration or 0.0), event.data.get("throttled")) for event in events)
    return [(end - wait, end) for end, wait in waits if isinstance(wait, int | float)]
