"""How much reached a service in the last minute."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from itertools import chain

from evaltui.core.model.limits import CallRate

MINUTE = 60.0
# Seconds. A call that was let go has reached its service by then, or is over.
_ON_THE_WAY = 0.75


@dataclass(eq=False, slots=True)
class Share:
    """What one call has of a window."""

    amount: float
    arrived: float
    """The moment by which it has reached its service, at the latest: infinity where nobody knows."""
    is_past: bool = False


class SlidingWindow:
    """A sum that stays within `most` over any `length` seconds, as the service sees it. Moments are those of
    one clock, in order."""

    def __init__(self, most: float, length: float = MINUTE) -> None:
        self._most = most
        self._length = length
        # Of calls that may not have reached their service, in order; then of those that have.
        self._on_the_way: dict[Share, None] = {}
        self._unknown: set[Share] = set()
        self._arrived: deque[Share] = deque()
        self._sum = 0.0

    def free_at(self, now: float, amount: float) -> float:
        """When so much may begin, `now` or later; infinity where a call has to end first. What is more than
        the limit by itself begins alone."""
        self._look(now)
        over = self._sum + amount - self._most
        if over <= 0:
            return now
        at = now
        for share in chain(self._arrived, self._on_the_way):
            over -= share.amount
            at = share.arrived + self._length
            if over <= 0:
                return at
        return math.inf if self._unknown else at

    def rate(self, now: float) -> CallRate:
        """What was let go in the last minute, against the limit."""
        self._look(now)
        per_minute = MINUTE / self._length
        return CallRate(self._sum * per_minute, self._most * per_minute)

    def begin(self, now: float, amount: float, *, is_first: bool) -> Share:
        """A call is let go. With `is_first`, nobody knows how long its process takes before it makes it."""
        share = Share(amount, math.inf if is_first else now + _ON_THE_WAY)
        if is_first:
            self._unknown.add(share)
        else:
            self._on_the_way[share] = None
        self._sum += amount
        return share

    def end(self, now: float, share: Share) -> None:
        """A call is over: it has reached its service, if it ever does."""
        self._look(now)
        if share.arrived > now:
            self._unknown.discard(share)
            self._on_the_way.pop(share, None)
            share.arrived = now
            self._arrived.append(share)

    def settle(self, share: Share, amount: float) -> None:
        """It turned out to be another amount."""
        if not share.is_past:
            self._sum += amount - share.amount
            share.amount = amount

    def _look(self, now: float) -> None:
        """What time alone changes."""
        while self._on_the_way and (share := next(iter(self._on_the_way))).arrived <= now:
            del self._on_the_way[share]
            self._arrived.append(share)
        while self._arrived and self._arrived[0].arrived + self._length <= now:
            past = self._arrived.popleft()
            past.is_past = True
            self._sum -= past.amount
        if not (self._arrived or self._on_the_way or self._unknown):
            # What rounding has left.
            self._sum = 0.0
