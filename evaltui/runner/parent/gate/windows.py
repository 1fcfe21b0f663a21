"""How much began in the last minute."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from evaltui.core.model.limits import CallRate

MINUTE = 60.0
# Seconds. Calls that are let go one after the other reach their service not all equally late.
MARGIN = 0.5


@dataclass(eq=False, slots=True)
class Share:
    """What one call has of a window."""

    began: float
    amount: float
    is_past: bool = False


class SlidingWindow:
    """A sum that stays within `most` over any `length` seconds. Moments are those of one clock, in order."""

    def __init__(self, most: float, length: float = MINUTE + MARGIN) -> None:
        self._most = most
        self.length = length
        self._shares: deque[Share] = deque()
        self._sum = 0.0

    def free_at(self, now: float, amount: float) -> float:
        """When so much may begin, `now` or later. What is more than the limit by itself begins alone."""
        self._forget(now)
        over = self._sum + amount - self._most
        if over <= 0 or not self._shares:
            return now
        for share in self._shares:
            over -= share.amount
            if over <= 0:
                return share.began + self.length
        return self._shares[-1].began + self.length

    def rate(self, now: float) -> CallRate:
        """What began in the last minute, against the limit."""
        self._forget(now)
        per_minute = (MINUTE + MARGIN) / self.length
        return CallRate(self._sum * per_minute, self._most * per_minute)

    def begin(self, now: float, amount: float) -> Share:
        share = Share(now, amount)
        self._shares.append(share)
        self._sum += amount
        return share

    def settle(self, share: Share, amount: float) -> None:
        """It turned out to be another amount."""
        if not share.is_past:
            self._sum += amount - share.amount
            share.amount = amount

    def _forget(self, now: float) -> None:
        while self._shares and self._shares[0].began + self.length <= now:
            past = self._shares.popleft()
            past.is_past = True
            self._sum -= past.amount
        if not self._shares:
            # What rounding has left.
            self._sum = 0.0
