"""Agents and their tools, which of them were called, and in what order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from evaltui.core.trace.spans import Span, ancestors


@dataclass
class ToolUse:
    """A tool that an agent may call; `steps` are the places in the path at which it did."""

    name: str
    steps: list[int] = field(default_factory=list)
    failed: bool = False


@dataclass
class AgentUse:
    """An agent, and what it had. `inside` names the tool that it worked in, "" for one that the user met.

    `handed_over` are the agents that took over from it, each with its place in the path.
    """

    name: str
    inside: str
    steps: list[int] = field(default_factory=list)
    model_calls: int = 0
    tools: dict[str, ToolUse] = field(default_factory=dict)
    handed_over: list[tuple[str, int]] = field(default_factory=list)

    def tool(self, name: str) -> ToolUse:
        return self.tools.setdefault(name, ToolUse(name))


StepKind = Literal["agent", "tool", "transfer"]


@dataclass(frozen=True)
class PathStep:
    """One step of the path, its place counted from 1. `depth` is 0 outside of tools."""

    place: int
    kind: StepKind
    name: str
    agent: str
    depth: int
    span: int


@dataclass(frozen=True)
class Graph:
    agents: tuple[AgentUse, ...]
    path: tuple[PathStep, ...]


def graph_of(spans: Sequence[Span], turn: int | None) -> Graph:
    """The agents and tools of a turn, with their steps. The tools of an agent are those that its requests
    declare."""
    agents: dict[tuple[str, str], AgentUse] = {}
    path: list[PathStep] = []

    def step(kind: StepKind, name: str, span: Span) -> int:
        depth = sum(spans[number].kind == "tool" for number in ancestors(spans, span.number))
        path.append(PathStep(len(path) + 1, kind, name, span.agent, depth, span.number))
        return len(path)

    for span in _spans_in_order(spans, turn):
        if not span.agent or span.kind == "turn":
            continue
        above = (spans[number] for number in ancestors(spans, span.number))
        inside = next((_called_tool(around) for around in above if around.kind == "tool"), "")
        agent = agents.setdefault((span.agent, inside), AgentUse(span.agent, inside))
        if span.kind == "agent":
            agent.steps.append(step("agent", span.agent, span))
        elif span.kind == "model":
            agent.model_calls += 1
            request = span.event("model_request")
            for declared in (request.data.get("tools") or ()) if request else ():
                if "name" in declared:
                    agent.tool(str(declared["name"]))
        elif span.kind == "tool":
            tool = agent.tool(_called_tool(span))
            tool.steps.append(step("tool", tool.name, span))
            tool.failed |= span.failed
        elif span.kind == "transfer":
            to = str(span.events[0].data.get("to", ""))
            agent.handed_over.append((to, step("transfer", to, span)))
    return Graph(tuple(agents.values()), tuple(path))


def _called_tool(span: Span) -> str:
    for event in span.events:
        for part in (event.content or {}).get("parts") or ():
            call = part.get("function_call") or part.get("function_response")
            if call:
                return str(call.get("name") or "")
    return ""


def _spans_in_order(spans: Sequence[Span], turn: int | None) -> list[Span]:
    """The spans of a turn, each before those inside of it, those beside each other as they began."""
    ordered: list[Span] = []
    stack = [span.number for span in reversed(spans) if span.kind == "turn" and span.turn == turn]
    while stack:
        span = spans[stack.pop()]
        ordered.append(span)
        stack += reversed(span.children)
    return ordered
