"""How many model calls of a run were made, and how many were taken from a recording."""

from __future__ import annotations

from dataclasses import dataclass

from evaltui.core.events import Event
from evaltui.core.model_calls import STAND_IN


@dataclass
class CallCounts:
    """Counts as events come. A request that a stand-in for a model answered is neither."""

    live: int = 0
    replayed: int = 0
    stubbed_tools: int = 0

    def take(self, event: Event) -> None:
        if event.kind == "model_request":
            if event.data.get("replayed"):
                self.replayed += 1
            elif not event.data.get("missed") and not str(event.data.get("model", "")).startswith(STAND_IN):
                self.live += 1
        elif event.kind == "tool_result" and event.data.get("stubbed"):
            self.stubbed_tools += 1

    def __str__(self) -> str:
        calls = "1 live model call" if self.live == 1 else f"{self.live} live model calls"
        stubbed = "1 tool call" if self.stubbed_tools == 1 else f"{self.stubbed_tools} tool calls"
        return f"{calls}, {self.replayed} replayed{f', {stubbed} stubbed' if self.stubbed_tools else ''}"
