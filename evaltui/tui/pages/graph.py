"""Agents and tools of a turn as a graph in text, and the path that was taken through it."""

from __future__ import annotations

from collections.abc import Sequence

from evaltui.core.trace.graph import AgentUse, Graph
from evaltui.text.lines import Line
from evaltui.text.values import visible
from evaltui.tui.pages.writer import Page

_SYMBOLS = {"agent": "", "tool": "→ ", "transfer": "⇒ "}


def write_graph(page: Page, graph: Graph) -> None:
    if not graph.agents:
        page.text([("no agent is known to have done anything in this turn", "dim")])
        return
    page.row(("Agents and tools", "bold"), ("  numbers are steps of the path below", "dim"))
    for agent in graph.agents:
        page.blank()
        _write_agent(page, agent)
    page.blank()
    page.row(("Path", "bold"))
    for step in graph.path:
        name: Line = [
            (_SYMBOLS[step.kind], "dim"),
            (visible(step.name), "bold" if step.kind == "agent" else ""),
        ]
        by: Line = [] if step.kind == "agent" else [(f"   by {visible(step.agent)}", "dim")]
        page.row((f"  {step.place:>3}  ", "accent"), ("  " * step.depth, ""), *name, *by)


def _write_agent(page: Page, agent: AgentUse) -> None:
    where = f"  inside {visible(agent.inside)}" if agent.inside else ""
    calls = (
        f"  {agent.model_calls} model call{'s' if agent.model_calls != 1 else ''}"
        if agent.model_calls
        else ""
    )
    page.row(("  ", ""), (visible(agent.name), "bold"), (where, "dim"), (calls, "dim"), _steps(agent.steps))
    lines: list[Line] = [
        [
            (visible(tool.name), "red" if tool.failed else "" if tool.steps else "dim"),
            _steps(tool.steps) if tool.steps else ("  not called", "dim"),
        ]
        for tool in agent.tools
    ]
    lines += [
        [("⇒ ", "dim"), (visible(name), "bold"), ("  took over", "dim"), _steps((place,))]
        for name, place in agent.handed_over
    ]
    for number, line in enumerate(lines):
        branch = "└─ " if number == len(lines) - 1 else "├─ "
        page.row(("  ", ""), (branch, "dim"), *line)


def _steps(places: Sequence[int]) -> tuple[str, str]:
    shown = ", ".join(str(place) for place in places[:12])
    return (f"  {shown}{', …' if len(places) > 12 else ''}", "accent")
