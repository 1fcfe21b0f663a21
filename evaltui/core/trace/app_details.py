"""What a model was told of its agent, turn by turn: judges and custom metrics hold answers against it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evaltui.core.model.eval_set import AgentDetails, AppDetails
from evaltui.core.model.events import Event
from evaltui.core.trace.requests import instruction_text


def app_details_by_turn(events: Iterable[Event]) -> dict[int | None, AppDetails]:
    """The instructions and tools in the first request of each agent that asked a model in a turn.

    Agents inside a tool are left out. Tools are genai Tools as JSON. As google-adk 2.13 fills
    `Invocation.app_details` when it evaluates.
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
