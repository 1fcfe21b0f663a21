"""What a model's refusals (429) teach: how many calls at once it bears, and when to ask again."""

from __future__ import annotations

import math

_CLEAN_CALLS = 20
_DECREASE = 0.7
# Seconds.
_FIRST_WAIT = 1.0
_LONGEST_WAIT = 60.0
# Of a guessed wait.
_LEAST = 0.1


class Pace:
    """Of one model. Without refusals it allows everything at once."""

    def __init__(self) -> None:
        self.waits_until = -math.inf
        """No call begins before this moment."""
        self._most = math.inf
        self._clean = 0
        self._refusals = 0
        self._refused_at = -math.inf
        self._probes = False

    @property
    def at_once(self) -> float:
        """How many calls may be under way."""
        return 1.0 if self._probes else self._most

    def refused(self, began: float, now: float, under_way: int, retry_after: float | None) -> None:
        """A call that began at `began` was refused now, with `under_way` calls, itself included."""
        self._clean = 0
        # Those that were let go together are refused together.
        if began >= self._refused_at:
            if not self._refusals:
                self._most = max(1.0, min(self._most, under_way) * _DECREASE)
            # Refused again although it was left alone: it needs more time, not fewer calls.
            self._refusals += 1
            self._refused_at = now
        # So many may be refused that the power would be too large a number.
        doubled = _FIRST_WAIT * 2.0 ** min(self._refusals - 1, 10)
        # How long it needs is a guess then, and one call finds out whether it was enough.
        self._probes = retry_after is None
        guessed = min(doubled, _LONGEST_WAIT)
        # Who says that it may be asked at once, and then refuses, is given some time, too.
        wait = guessed if retry_after is None else max(retry_after, _LEAST * guessed)
        self.waits_until = max(self.waits_until, now + wait)

    def answered(self, began: float) -> None:
        """A call that began at `began` was not refused."""
        if began >= self._refused_at:
            self._refusals = 0
            self._probes = False
        self._clean += 1
        if self._clean == _CLEAN_CALLS:
            self._clean = 0
            self._most += 1
