"""How many calls of models and judges a run made, and how many were taken from a recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaltui.core.model.events import Event
from evaltui.core.trace.model_calls import STAND_IN, judge_calls

if TYPE_CHECKING:
    from evaltui.core.model.outcome import RepeatResult


@dataclass
class CallCounts:
    """Counts as events and results come. A request that a stand-in for a model answered is neither."""

    live: int = 0
    replayed: int = 0
    stubbed_tools: int = 0
    judge_live: int = 0
    judge_replayed: int = 0

    def on_event(self, event: Event) -> None:
        if event.kind == "model_request":
            if event.data.get("replayed"):
                self.replayed += 1
            elif not event.data.get("missed") and not str(event.data.get("model", "")).startswith(STAND_IN):
                self.live += 1
        elif event.kind == "tool_result" and event.data.get("stubbed"):
            self.stubbed_tools += 1

    def on_result(self, result: RepeatResult) -> None:
        """Count what judges were asked about one run of a case."""
        judges = judge_calls(result)
        self.judge_live += judges.live
        self.judge_replayed += judges.replayed

    def __str__(self) -> str:
        said = f"{_number(self.live, 'live model call')}, {self.replayed} replayed"
        if self.judge_live or self.judge_replayed:
            said += f", {_number(self.judge_live, 'live judge call')}, {self.judge_replayed} replayed"
        if self.stubbed_tools:
            said += f", {_number(self.stubbed_tools, 'tool call')} stubbed"
        return said


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
