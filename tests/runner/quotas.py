"""A quota as a model service has it: so many requests in a sliding window, 429 and how long to wait above."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from gemini_server import Answer, Request, fails


class Quota:
    """Answers for a `GeminiServer`: at most `most` requests in any `seconds` reach `respond`."""

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
