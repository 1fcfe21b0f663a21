"""The past of a conversation as steps, so that a session can start at its end without running it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import Any

from pydantic import BaseModel

from evaltui.core.conversation.steps import steps_from_events
from evaltui.core.conversation.waiting import REQUESTS, CallPlace, call_places
from evaltui.core.model.eval_set import IntermediateData, Invocation, InvocationEvents, tool_calls
from evaltui.core.model.events import Event, Json, Step, is_final, split_step

# The tool by which agents of google-adk hand the conversation on: to whom is in `agent_name`.
_TRANSFER = "transfer_to_agent"


def past_of_turns(turns: Iterable[Sequence[Event]]) -> list[Step]:
    """The steps of finished turns, the user's messages included, with `turn` numbered from 0.

    `turns` are all events of each turn. Events inside tools, pieces of streamed text, model requests and
    errors of the agent's code are left out.
    """
    past: list[Step] = []
    for turn, events in enumerate(turns):
        steps = steps_from_events(replace(event, turn=turn) for event in events)
        past += [step for step in steps if not step.partial]
    return past


def steps_of_invocation(invocation: Invocation, turn: int, responded: Collection[str] = ()) -> list[Step]:
    """An expected or recorded turn as steps: message, calls with results, texts, answer.

    Missing ids of calls and results are filled in uniquely: a result belongs to the earliest call of its tool
    without a result. An author of "" is the root agent. In flat lists, the texts come first, then each call
    with its result. Requests to a person wait for a response, and so do calls with ids in `responded`, to
    which later turns respond.
    """
    steps = _intermediate_steps(invocation.intermediate_data, turn)
    user = Step("user", _json(invocation.user_content), timestamp=invocation.creation_timestamp)
    answered = _with_answer(steps, _json(invocation.final_response))
    steps = [user, *(replace(step, long_running=_waiting_ids(step, responded)) for step in answered)]
    return [
        replace(step, turn=turn, id=f"past-{turn}.{number}", final=step is not user and is_final(step))
        for number, step in enumerate(steps)
    ]


def events_of_invocation(
    invocation: Invocation, turn: int, responded: Collection[str] = ()
) -> Iterator[Event]:
    """A turn as events, as far as an invocation has them; `responded` as in `steps_of_invocation`."""
    user, *others = steps_of_invocation(invocation, turn, responded)
    yield Event("user", user.content, turn=turn)
    for step in others:
        yield from split_step(step)


def expected_places(turns: Sequence[Invocation]) -> dict[str, CallPlace]:
    """The places of expected calls with ids."""
    calls = [tool_calls(turn.intermediate_data) for turn in turns]
    return call_places([(call.id or "", call.name or "") for call in own] for own in calls)


def _waiting_ids(step: Step, responded: Collection[str]) -> tuple[str, ...]:
    calls = [part["function_call"] for part in step.parts if "function_call" in part]
    waits = (call["id"] for call in calls if call.get("name") in REQUESTS or call["id"] in responded)
    return tuple(dict.fromkeys((*step.long_running, *waits)))


def _json(model: BaseModel | None) -> Json | None:
    return None if model is None else model.model_dump(mode="json", exclude_none=True)


def _intermediate_steps(data: IntermediateData | InvocationEvents | None, turn: int) -> Iterable[Step]:
    if data is None:
        return []
    return _steps_of_lists(data, turn) if isinstance(data, IntermediateData) else _steps_of_events(data, turn)


def _steps_of_lists(data: IntermediateData, turn: int) -> Iterator[Step]:
    for author, parts in data.intermediate_responses:
        yield Step(author, {"role": "model", "parts": [_json(part) for part in parts]})
    calls = [_json(call) or {} for call in data.tool_uses]
    results = [_json(result) or {} for result in data.tool_responses]
    answers = _pair_results(calls, results, turn)
    author = ""
    for position, call in enumerate(calls):
        yield Step(author, {"role": "model", "parts": [{"function_call": call}]})
        to = _transfer_target(call)
        result = answers.get(position)
        if result is None and to is not None:
            # What this tool returns is known without anybody having written it down.
            result = {"id": call["id"], "name": _TRANSFER, "response": {"result": None}}
        if result is not None:
            yield _result_step(author, result, to)
        author = to or author
    answered = [id(result) for result in answers.values()]
    for result in results:
        if id(result) not in answered:
            yield _result_step(author, result, None)


def _result_step(author: str, result: Json, transfer: str | None) -> Step:
    return Step(author, {"role": "user", "parts": [{"function_response": result}]}, transfer=transfer)


def _steps_of_events(data: InvocationEvents, turn: int) -> Iterator[Step]:
    steps = [
        Step(
            event.author,
            _json(event.content),
            usage=_json(event.usage_metadata),
            grounding=_json(event.grounding_metadata),
            model_version=event.model_version,
        )
        for event in data.invocation_events
    ]
    calls = [part["function_call"] for step in steps for part in step.parts if "function_call" in part]
    results = [
        part["function_response"] for step in steps for part in step.parts if "function_response" in part
    ]
    answers = _pair_results(calls, results, turn)
    targets = {id(result): _transfer_target(calls[position]) for position, result in answers.items()}
    for step in steps:
        to = [targets.get(id(part.get("function_response"))) for part in step.parts]
        yield replace(step, transfer=next(filter(None, to), None))


def _transfer_target(call: Json) -> str | None:
    target = (call.get("args") or {}).get("agent_name")
    return target if call.get("name") == _TRANSFER and isinstance(target, str) else None


def _pair_results(calls: Sequence[Json], results: Sequence[Json], turn: int) -> dict[int, Json]:
    """The result of each call by the position of the call, with missing ids filled in."""
    answers: dict[int, Json] = {}
    for result in results:
        position = _position_of_call(result, calls, answers)
        if position is not None:
            answers[position] = result
    used = {part.get("id") for part in (*calls, *results)}
    fresh = (made for number in count(1) if (made := f"call-{turn}.{number}") not in used)
    for position, call in enumerate(calls):
        answer = answers.get(position, {})
        call["id"] = answer["id"] = call.get("id") or answer.get("id") or next(fresh)
    return answers


def _position_of_call(result: Json, calls: Sequence[Json], answers: Mapping[int, Any]) -> int | None:
    free = [(position, call) for position, call in enumerate(calls) if position not in answers]
    named = result.get("id")
    by_id = (position for position, call in free if named and call.get("id") == named)
    by_tool = (
        position
        for position, call in free
        if call.get("name") == result.get("name") and not (named and call.get("id"))
    )
    return next(chain(by_id, by_tool), None)


def _with_answer(intermediate: Iterable[Step], answer: Json | None) -> list[Step]:
    """The steps with the answer in its place; in a recorded turn, its event exists without content."""
    steps = list(intermediate)
    if not answer or not answer.get("parts"):
        return steps
    for position, step in enumerate(steps):
        if step.content == answer and any("function_call" in part for part in step.parts):
            # A call that ends its turn is one of a tool that takes longer than the turn.
            ids = [part["function_call"]["id"] for part in step.parts if "function_call" in part]
            steps[position] = replace(step, long_running=tuple(ids))
            return steps
    for position in reversed(range(len(steps))):
        if steps[position].content is None:
            steps[position] = replace(steps[position], content=answer)
            return steps
    author = (steps[-1].transfer or steps[-1].author) if steps else ""
    return [*steps, Step(author, answer)]
