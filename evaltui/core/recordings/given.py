"""The agent's input in a case: the parts that it receives, without expectations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..model.case_id import input_fingerprint
from ..model.content import FunctionCall, FunctionResponse
from ..model.eval_set import EvalCase, Invocation, tool_calls, tool_responses
from ..model.modes import Modes
from .entry import ToolCall

_INPUT_FIELDS: dict[str, Any] = {
    "session_input": True,
    "conversation_scenario": True,
    "conversation": {"__all__": {"user_content"}},
}


def agent_input_fingerprint(case: EvalCase, modes: Modes) -> str:
    """Fingerprint of the agent's input: session, user messages or scenario, and stubbed tool results.

    The spelling of keys is ignored.
    """
    data = case.model_dump(mode="json", exclude_defaults=True, include=_INPUT_FIELDS)
    calls = stubs_of_case(case) if modes.stubs else ()
    stubs = [[call.turn, call.tool, call.args, call.result] for call in calls]
    return input_fingerprint(data, stubs)


def stubs_of_case(case: EvalCase) -> list[ToolCall]:
    """The expected calls with a response in a case, in order."""
    return [
        ToolCall(case.eval_id, 0, turn, call.name or "", call.args or {}, response.response)
        for turn, invocation in enumerate(case.conversation or [])
        for call, response in _answered_calls(invocation)
        if response.response is not None
    ]


def _answered_calls(invocation: Invocation) -> Iterator[tuple[FunctionCall, FunctionResponse]]:
    """Each call with its response: by id, else the first unmatched response of the same name."""
    left = tool_responses(invocation.intermediate_data)
    calls = tool_calls(invocation.intermediate_data)
    ids = {call.id for call in calls if call.id}
    for call in calls:
        own = [response for response in left if call.id and response.id == call.id]
        unnamed = [response for response in left if response.name == call.name and response.id not in ids]
        for response in (own or unnamed)[:1]:
            left.remove(response)
            yield call, response
