"""Model services that see how many requests come: in a sliding window, and at once."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from gemini_server import Answer, Request, fails, says


class Quota:
    """Answers for a `GeminiServer`: at most `most` requests in any `seconds` reach `respond`, others 429."""

    def __init__(self, most: int, seconds: float, respond: Callable[[Request], Answer]) -> None:
        self.refused = 0
        self._most = most
        self._seconds = seconds
        self._respond = respond
        self._accepted: deque[float] = deque()
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Answer:
        with self._lock:
            now = time.monotonic()
            while self._accepted and self._accepted[0] <= now - self._seconds:
                self._accepted.popleft()
            if len(self._accepted) >= self._most:
                self.refused += 1
                left = self._accepted[0] + self._seconds - now
                return fails(429, "Resource has been exhausted.", retry_delay=f"{left:.3f}s")
            self._accepted.append(now)
        return self._respond(request)


class Pairs:
    """Answers for a `GeminiServer` that wait until two requests are there; `most` is how many ever were."""

    def __init__(self) -> None:
        self.most = 0
        self._under_way = 0
        self._lock = threading.Lock()
        self._pair = threading.Barrier(2, timeout=30)

    def __call__(self, request: Request) -> Answer:
        with self._lock:
            self._under_way += 1
            self.most = max(self.most, self._under_way)
        self._pair.wait()
        with self._lock:
            self._under_way -= 1
        return says("well")


class Counted:
    """Answers for a `GeminiServer`, each after `seconds`, that are counted."""

    def __init__(self, seconds: float) -> None:
        self.most_at_once = 0
        self._seconds = seconds
        self._under_way = 0
        self._began: list[float] = []
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Answer:
        with self._lock:
            self._began.append(time.monotonic())
            self._under_way += 1
            self.most_at_once = max(self.most_at_once, self._under_way)
        time.sleep(self._seconds)
        with self._lock:
            self._under_way -= 1
        return says("well")

    def most_within(self, seconds: float) -> int:
        """How many requests came in the fullest window of that length."""
        most, first = 0, 0
        for last, moment in enumerate(self._began):
            while self._began[first] <= moment - seconds:
                first += 1
            most = max(most, last - first + 1)
        return most
