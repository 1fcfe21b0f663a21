"""Runs one after the other until it is known whether a case passes often enough."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, log
from typing import Literal

Decision = Literal["passes", "does not pass", "open"]


@dataclass(frozen=True)
class SequentialTest:
    """Whether runs pass at a rate of at least `high`, or of at most `low`; in between, either will do.

    Wald's sequential probability ratio test with the bounds 1/error and error. By Ville's inequality it is
    wrong with a probability of at most `error` for every rate outside of the two, however long it goes on and
    wherever it is cut off: there, a case is still open. Sources: Wald, Annals of Mathematical Statistics 16
    (1945); Ville, Étude critique de la notion de collectif (1939).
    """

    low: float
    high: float
    error: float

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high < 1 or not 0 < self.error < 0.5:
            raise ValueError(f"no test of {self.low} against {self.high} with an error of {self.error}")

    @cached_property
    def _weights(self) -> tuple[float, float, float]:
        """Weights of a passed and of a failed run, and the weight that a decision needs."""
        return log(self.high / self.low), log((1 - self.low) / (1 - self.high)), log(1 / self.error)

    def decide(self, passed: int, failed: int) -> Decision:
        """The decision after so many runs; runs after the first decision must not be looked at."""
        up, down, needed = self._weights
        evidence = passed * up - failed * down
        if evidence >= needed:
            return "passes"
        return "does not pass" if evidence <= -needed else "open"

    @property
    def runs_to_pass(self) -> int:
        """How many runs decide that they pass, where all of them do."""
        up, _, needed = self._weights
        return ceil(needed / up)

    def progress(self, passed: int, failed: int) -> float:
        """How far on the way to a decision so many runs are: 0 says nothing yet, 1 decides."""
        up, down, needed = self._weights
        return min(1.0, abs(passed * up - failed * down) / needed)

    def least(self, passed: int, failed: int) -> int:
        """How many more runs there are before any decision, at least: none of them is started in vain."""
        if self.decide(passed, failed) != "open":
            return 0
        up, down, needed = self._weights
        evidence = passed * up - failed * down
        return min(ceil((needed - evidence) / up), ceil((needed + evidence) / down))
