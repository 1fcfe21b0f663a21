"""Sequential tests of a case: the required confidence, and the decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from evaltui.text.figures import show_confidence

Answer = Literal["passes", "does not pass", "undecided"]

DEFAULT_MAX_RUNS = 50


@dataclass(frozen=True)
class Confidence:
    """The required confidence of a verdict on a case."""

    level: float
    """The probability of a right verdict outside of the indifference zone, above 0.5 and below 1."""
    max_runs: int = DEFAULT_MAX_RUNS
    """Maximum number of runs; without a decision by then, the case is undecided."""

    def __post_init__(self) -> None:
        if not 0.5 < self.level < 1:
            raise ValueError(f"confidence {self.level:g} is not between 0.5 and 1, e.g. 0.95")
        if self.max_runs < 1:
            raise ValueError("max_runs must be at least 1")


@dataclass(frozen=True)
class Decision:
    """Decision of a sequential test on the repeats of a case."""

    answer: Answer
    level: float = field(metadata={"serialization_alias": "confidence"})
    """Value of `--confidence`."""
    max_runs: int
    """Value of `--max-runs`."""
    low: float
    """The highest pass rate at which the case does not pass."""
    high: float
    """The lowest pass rate at which the case passes; in between, either answer is right."""

    @property
    def confidence(self) -> Confidence:
        """The required confidence."""
        return Confidence(self.level, self.max_runs)

    @property
    def in_words(self) -> str:
        """The decision in words: `pass rate above 0.7 (95% confidence)`."""
        percent = show_confidence(self.level)
        match self.answer:
            case "passes":
                return f"pass rate above {self.low:g} ({percent} confidence)"
            case "does not pass":
                return f"pass rate below {self.high:g} ({percent} confidence)"
            case _:
                return f"undecided between pass rates {self.low:g} and {self.high:g} ({percent} confidence)"
