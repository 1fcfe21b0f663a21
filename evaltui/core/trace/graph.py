"""Agents and their tools, with their calls in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from evaltui.core.trace.spans import Span, ancestors


@dataclass
class ToolUse:
    """A tool of an agent; `steps` are the path positions of its calls."""

    name: str
    steps: list[int] = field(default_factory=list)
    failed: bool = False


@dataclass
class AgentUse:
    """An agent with its tools and calls.

    `inside` is the tool around it, "" for an agent that talks to the user. `handed_over` are the agents that
    took over from it, each with its path position.
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
    """A step of the path. `place` counts from 1; `depth` is 0 outside of tools."""

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
    """The agents and tools of a turn, with their steps; the tools of an agent come from its requests."""
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
    """The spans of a turn, each before the spans inside it, others by start."""
    ordered: list[Span] = []
    stack = [span.number for span in reversed(spans) if span.kind == "turn" and span.turn == turn]
    while stack:
        span = spans[stack.pop()]
        ordered.append(span)
        stack += reversed(span.children)
    return ordered
