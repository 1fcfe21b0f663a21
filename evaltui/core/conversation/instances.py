"""The instance that agents-cli gives to a metric: a case of a dataset with what an agent did.

Its shape is that of `agents-cli eval generate` and of the evaluation SDK's `CustomMetricHandler`. Source:
google-agents-cli 1.11.0, google-cloud-aiplatform 2.7.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import ValidationError

from evaltui.core.model.content import Content
from evaltui.core.model.datasets import content_of
from evaltui.core.model.eval_set import AppDetails, EvalCase, Invocation, InvocationEvents
from evaltui.core.model.events import Json, text_content
from evaltui.core.model.json_values import camel, field_of

# Members of a dataset's case that the SDK's model knows, and so gives in snake_case.
_FIELDS = (
    "eval_case_id",
    "prompt",
    "reference",
    "system_instruction",
    "conversation_history",
    "rubric_groups",
    "user_scenario",
    "session_inputs",
)


def instance_of(case: EvalCase, actual: Sequence[Invocation]) -> Json:
    """The instance for the turns that an agent ran, without `response` where the last turn has no text."""
    source = _members(case)
    instance = {name: value for name in _FIELDS if (value := field_of(source, name)) is not None}
    sdk_members = {*_FIELDS, *map(camel, _FIELDS)}
    instance |= {
        name: value for name, value in source.items() if name not in sdk_members and value is not None
    }
    scenario = instance.get("user_scenario") or {}
    prompt = instance.get("prompt") or field_of(scenario, "starting_prompt")
    if (content := content_of(prompt)) is not None:
        instance["prompt"] = _plain(content)
    reference = instance.get("reference")
    if isinstance(reference, dict) and (content := content_of(reference.get("response"))) is not None:
        instance["reference"] = {**reference, "response": _plain(content)}
    # Of a single message, agents-cli keeps the events of agents alone.
    with_messages = len(actual) > 1 or "prompt" not in instance
    instance["agent_data"] = {
        "agents": _agents(actual),
        "turns": [
            {"turn_index": number, "turn_id": f"turn_{number}", "events": list(_events(turn, with_messages))}
            for number, turn in enumerate(actual)
        ],
    }
    answer = actual[-1].final_response if actual else None
    texts = [part.text for part in (answer.parts if answer else None) or () if part.text and not part.thought]
    if texts:
        instance["response"] = text_content("model", "".join(texts))
    return instance


def _members(case: EvalCase) -> Json:
    """The members of the dataset's case; of an eval set's case those that it would have there."""
    if case.of_dataset is not None:
        return case.of_dataset
    members: Json = {"eval_case_id": case.eval_id}
    turns = case.conversation or []
    if len(turns) == 1:
        members["prompt"] = _dumped(turns[0].user_content)
    if turns and turns[-1].final_response is not None:
        members["reference"] = {"response": _dumped(turns[-1].final_response)}
    if case.rubrics:
        rubrics = [
            {
                "rubric_id": rubric.rubric_id,
                "content": {"property": {"description": rubric.rubric_content.text_property}},
                **({"type": rubric.type} if rubric.type else {}),
            }
            for rubric in case.rubrics
        ]
        members["rubric_groups"] = {"rubrics": {"rubrics": rubrics}}
    if case.conversation_scenario is not None:
        members["user_scenario"] = _dumped(case.conversation_scenario)
    if case.session_input is not None:
        members["session_inputs"] = _dumped(case.session_input)
    return members


def _events(turn: Invocation, with_message: bool) -> Iterator[Json]:
    """The events of a turn, its message first, its response last."""
    if with_message:
        yield {"author": "user", "content": _dumped(turn.user_content)}
    first = next(iter(_details(turn).agent_details), "agent")
    events = [{"author": author, "content": content} for author, content in _recorded(turn, first)]
    yield from events
    last = events[-1] if events else {"author": first, "content": None}
    if turn.final_response is not None and (final := _dumped(turn.final_response)) != last["content"]:
        yield {"author": last["author"], "content": final}


def _recorded(turn: Invocation, author: str) -> Iterator[tuple[str, Json]]:
    """The authors and contents before the response."""
    data = turn.intermediate_data
    if data is None:
        return
    if isinstance(data, InvocationEvents):
        for event in data.invocation_events:
            if event.content is not None:
                yield event.author, _dumped(event.content)
        return
    for name, parts in data.intermediate_responses:
        yield name, {"role": "model", "parts": list(map(_dumped, parts))}
    for call in data.tool_uses:
        yield author, {"role": "model", "parts": [{"function_call": _dumped(call)}]}
    for response in data.tool_responses:
        yield author, {"role": "user", "parts": [{"function_response": _dumped(response)}]}


def _details(turn: Invocation) -> AppDetails:
    return turn.app_details or AppDetails(agent_details={})


def _agents(actual: Sequence[Invocation]) -> Json:
    """The agents that asked a model, by name."""
    agents = {name: agent for turn in actual for name, agent in _details(turn).agent_details.items()}
    return {
        name: {
            "agent_id": name,
            "agent_type": "LlmAgent",
            **({"instruction": agent.instructions} if agent.instructions else {}),
            **({"tools": agent.tool_declarations} if agent.tool_declarations else {}),
        }
        for name, agent in agents.items()
    }


def _plain(content: Json) -> Json:
    """A content with keys in snake_case; one that google-genai does not know stays as it is."""
    try:
        return _dumped(Content.model_validate(content))
    except ValidationError:
        return content


def _dumped(model: Any) -> Json:
    data: Json = model.model_dump(mode="json", exclude_none=True)
    for part in data.get("parts") or ():
        # Of no use to a function; agents-cli strips it.
        part.pop("thought_signature", None)
    return data
