"""Runs of a case until its answer is known: how sure it must be, and what was decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from evaltui.core.model.json_values import member
from evaltui.text.figures import show_confidence

Answer = Literal["passes", "does not pass", "undecided"]

DEFAULT_MAX_RUNS = 50


@dataclass(frozen=True)
class Confidence:
    """How sure the verdict on a case must be."""

    level: float
    """The share of right verdicts outside of the zone, above 0.5 and below 1."""
    max_runs: int = DEFAULT_MAX_RUNS
    """After so many runs of a case without a decision it is undecided."""

    def __post_init__(self) -> None:
        if not 0.5 < self.level < 1:
            raise ValueError(f"confidence {self.level:g} is not between 0.5 and 1, e.g. 0.95")
        if self.max_runs < 1:
            raise ValueError("max_runs must be at least 1")

    def to_json(self) -> dict[str, Any]:
        return {"confidence": self.level, "max_runs": self.max_runs}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Confidence:
        """What `to_json` gave. Raises ValueError for anything else."""
        return cls(float(member(data, "confidence", (int, float))), member(data, "max_runs", int))


@dataclass(frozen=True)
class Decision:
    """What the runs of a case say of its pass rate. Between `low` and `high` either answer is right."""

    answer: Answer
    confidence: Confidence
    low: float
    high: float

    @property
    def in_words(self) -> str:
        """`pass rate above 0.7 (95% confidence)`"""
        percent = show_confidence(self.confidence.level)
        match self.answer:
            case "passes":
                return f"pass rate above {self.low:g} ({percent} confidence)"
            case "does not pass":
                return f"pass rate below {self.high:g} ({percent} confidence)"
            case _:
                return f"undecided between pass rates {self.low:g} and {self.high:g} ({percent} confidence)"

    def to_json(self) -> dict[str, Any]:
        zone = {"low": self.low, "high": self.high}
        return {"answer": self.answer, **self.confidence.to_json(), **zone}
