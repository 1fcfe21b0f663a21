"""Where the time of a case went."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evaltui.core.trace.spans import Span, SpanKind


@dataclass(frozen=True)
class TimeSpent:
    """Seconds of all turns by what was at work; what overlaps counts once, for the first of these."""

    model: float
    """Awaiting a model."""
    tool: float
    """In tools."""
    agent: float
    """The agents' own work."""
    waiting: float
    """No agent was at work yet, or none any more."""
    model_calls: int
    tool_calls: int

    @property
    def whole(self) -> float:
        return self.model + self.tool + self.agent + self.waiting


def time_spent(spans: Sequence[Span]) -> TimeSpent:
    """The time of a case's turns. What happened before the first one, such as an import, is left out."""
    own = [span for span in spans if span.turn is not None]
    kinds: tuple[SpanKind, ...] = ("model", "tool", "agent", "turn")
    model, tool, agent, turn = (
        _covered(span for span in own if span.kind in kinds[: place + 1]) for place in range(len(kinds))
    )
    calls = [sum(span.kind == kind for span in own) for kind in kinds[:2]]
    return TimeSpent(model, tool - model, agent - tool, turn - agent, *calls)


def _covered(spans: Iterable[Span]) -> float:
    """Seconds in which at least one of the spans was open."""
    covered, end = 0.0, float("-inf")
    for span in sorted(spans, key=lambda one: one.begin):
        covered += max(0.0, span.end - max(span.begin, end))
        end = max(end, span.end)
    return covered
