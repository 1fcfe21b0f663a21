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
    """Seconds in tools."""
    throttled: float
    """Model calls waited for the limits of the run."""
    agent: float
    """The agents' own work."""
    waiting: float
    """No agent was at work yet, or none any more."""
    model_calls: int
    tool_calls: int

    @property
    def whole(self) -> float:
        return self.model + self.tool + self.throttled + self.agent + self.waiting


def time_spent(spans: Sequence[Span]) -> TimeSpent:
    """The time of a case's turns. What happened before the first one, such as an import, is left out."""
    own = [span for span in spans if span.turn is not None]

    def of(kind: SpanKind) -> list[tuple[float, float]]:
        return [(span.start + span.throttled, span.end) for span in own if span.kind == kind]

    waits = [(span.start, span.start + span.throttled) for span in own if span.throttled]
    parts, before, intervals = list[float](), 0.0, list[tuple[float, float]]()
    for ranges in (of("model"), of("tool"), waits, of("agent"), of("turn")):
        intervals += ranges
        covered = _covered(intervals)
        parts.append(covered - before)
        before = covered
    model, tool, throttled, agent, waiting = parts
    return TimeSpent(model, tool, throttled, agent, waiting, len(of("model")), len(of("tool")))


def _covered(ranges: Iterable[tuple[float, float]]) -> float:
    """Seconds that are in at least one of the ranges."""
    covered, end = 0.0, float("-inf")
    for first, last in sorted(ranges):
        covered += max(0.0, last - max(first, end))
        end = max(end, last)
    return covered
