"""The results of tools that a case itself knows: what its calls returned when it was written."""

from __future__ import annotations

from collections.abc import Iterator

from google.genai import types

from evaltui.core.model.eval_set import EvalCase, Invocation, tool_calls, tool_responses
from evaltui.core.recordings.entry import ToolCall


def stubs_of_case(case: EvalCase) -> list[ToolCall]:
    """The calls that a case expects and has a response for, in order."""
    return [
        ToolCall(case.eval_id, 0, turn, call.name or "", call.args or {}, response.response or {})
        for turn, invocation in enumerate(case.conversation or [])
        for call, response in _answered(invocation)
    ]


def _answered(invocation: Invocation) -> Iterator[tuple[types.FunctionCall, types.FunctionResponse]]:
    """Each call with its response: by id, else the first of that name which is not taken."""
    left = tool_responses(invocation.intermediate_data)
    calls = tool_calls(invocation.intermediate_data)
    ids = {call.id for call in calls if call.id}
    for call in calls:
        own = [one for one in left if call.id and one.id == call.id]
        unnamed = [one for one in left if one.name == call.name and one.id not in ids]
        for response in (own or unnamed)[:1]:
            left.remove(response)
            yield call, response
