"""Cases of an EvaluationDataset that an agent was run with: what `agents-cli eval generate` writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from evaltui.core.model.datasets import RecordedCase, recorded_cases
from evaltui.core.model.events import ANSWERS, CALLS, MODEL_CALLS, Event, Json, Step, is_final, split_step
from evaltui.core.model.json_values import field_of
from evaltui.text.figures import counted, short_list
from evaltui.traces.span import Recorded, UnreadableTraceError
from evaltui.traces.writing.turn import Held, spans_of_turns

# The turns of a case have no times; that orders them.
_APART = 1e-6
_CASE = "evaltui.eval.case.id"
_NO_RESPONSE = "the dataset has no response for the turn: the agent failed or was stopped"
_REMEDY = "agents-cli records no model calls, and tool calls under agent_data only"


def read_dataset(data: Json) -> Recorded:
    """The runs in a dataset as spans. Raises UnreadableTraceError where it has cases to be run only."""
    recorded = Recorded()
    repeats: Counter[str] = Counter()
    runs = list(recorded_cases(data))
    for case in runs:
        authors = [event["author"] for turn in case.turns for event in turn.events]
        repeats[case.eval_case_id] += 1
        number = repeats[case.eval_case_id]
        name = f"{case.eval_case_id}/{number}" if number > 1 else case.eval_case_id
        held = Held(name, next(iter(authors), "model"), 0, {_CASE: case.eval_case_id})
        recorded.spans += spans_of_turns(held, list(_events(case)), ())
    further = sum(case.number > 0 for case in runs)
    unrecorded = len(field_of(data, "eval_cases")) - (len(runs) - further)
    if not recorded.spans:
        raise UnreadableTraceError(
            "an EvaluationDataset without responses or agent_data of a run; `evaltui run` runs its cases"
        )
    if unrecorded:
        recorded.warnings.append(
            f"{counted(unrecorded, 'case')} without responses or agent_data of a run left out"
        )
    if others := [case.eval_case_id for case in runs if case.has_other_response]:
        recorded.warnings.append(
            f"{counted(len(others), 'case')} with another text in responses than in agent_data, "
            f"which is scored: {short_list(others)}"
        )
    return recorded


def _events(case: RecordedCase) -> Iterator[Event]:
    for number, turn in enumerate(case.turns):
        steps = [
            Step(agent["author"], _content(agent["content"]), id=f"{number}:{index}")
            for index, agent in enumerate(turn.events)
        ]
        has_calls = case.has_events or number + 1 < len(case.turns)
        remedies = dict.fromkeys([MODEL_CALLS] if has_calls else [MODEL_CALLS, CALLS], _REMEDY)
        if not (steps and is_final(steps[-1])):
            remedies |= dict.fromkeys((ANSWERS, CALLS), _NO_RESPONSE)
        at = number * _APART
        data = {"step": f"{number}:user", "untold": [*remedies], "remedies": remedies}
        yield Event("user", _content(turn.content), data=data, turn=number, t=at)
        for step in steps:
            for event in split_step(replace(step, final=is_final(step))):
                yield replace(event, turn=number, t=at)


def _content(content: Json) -> Json:
    """A content whose calls and their results have snake_case keys."""
    names = {"functionCall": "function_call", "functionResponse": "function_response"}
    parts = [{names.get(key, key): value for key, value in part.items()} for part in content["parts"]]
    return {"role": content.get("role") or "model", "parts": parts}
