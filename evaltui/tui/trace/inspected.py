"""A span of the trace as tabs of the inspector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from evaltui.core.model.outcome import TurnResult
from evaltui.core.trace.graph import graph_of
from evaltui.core.trace.spans import Span, request_of
from evaltui.files.agent_source import SourcePlace, frame_place
from evaltui.text.keys import key_of
from evaltui.tui.inspector import InspectorTab
from evaltui.tui.trace.span import (
    write_events,
    write_expected,
    write_graph,
    write_head,
    write_request,
    write_response,
    write_source,
)
from evaltui.tui.widgets.writer import Page
from evaltui.workbench.agent.agent_state import AgentState
from evaltui.workbench.case.editors import place_of_agent, place_of_tool
from evaltui.workbench.workbench import Workbench

FIRST_TAB = {"agent": "Graph", "model": "Request", "tool": "Response"}
"""By kind of span the tab that says most."""


def source_of(span: Span, agent: AgentState) -> SourcePlace | None:
    """Of the tool, the instruction of the agent whose model was asked, or where an error was raised."""
    if (failed := span.event("error")) is not None and failed.data.get("traceback"):
        return frame_place(agent.dir, str(failed.data["traceback"]))
    call = span.event("tool_call")
    for part in (call.content or {}).get("parts") or [] if call else []:
        if (tool := place_of_tool(agent, str((part.get("function_call") or {}).get("name")))) is not None:
            return tool
    return place_of_agent(agent, span.agent)


@dataclass(frozen=True)
class InspectedSpan:
    """A span, and what its tabs are written from."""

    workbench: Workbench
    spans: Sequence[Span]
    span: Span
    turn: TurnResult | None
    """What its turn came to; None while that is not known."""
    source: Callable[[], SourcePlace | None]
    """Reads the agent's files."""
    is_of_chat: bool = False

    def tabs(self) -> list[InspectorTab]:
        tabs = {
            "Event": self._event,
            "Request": self._request,
            "Response": lambda page: write_response(page, self.span),
            "Expected": lambda page: write_expected(page, self.span, self.turn),
            "Graph": lambda page: write_graph(page, graph_of(self.spans, self.span.turn)),
            "Source": self._source,
        }
        if self.is_of_chat:
            # Nothing is expected of a chat.
            del tabs["Expected"]
        return [InspectorTab(name, partial(self._write, write)) for name, write in tabs.items()]

    def _write(self, write: Callable[[Page], None], page: Page) -> None:
        """The page of a tab, below what the span is."""
        span, call = self.span, 0
        if span.kind == "model":
            before = self.spans[: span.number + 1]
            call = sum(one.kind == "model" and one.turn == span.turn for one in before)
        write_head(page, span, call)
        page.blank()
        write(page)

    def _event(self, page: Page) -> None:
        span = self.span
        write_events(page, span.events or [self.spans[number].events[0] for number in span.children[:1]])

    def _request(self, page: Page) -> None:
        write_request(page, request_of(self.spans, self.span.number))

    def _source(self, page: Page) -> None:
        place, bench = self.source(), self.workbench
        shown = place.shown(bench.agent.dir) if place else ""
        write_source(page, place, shown, key_of("open_source"))
