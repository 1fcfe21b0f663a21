"""The model requests of a run over time: how many, how long they took, and their tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaltui.core.model.events import Event


# Seconds over which a rate is taken.
_RATE = 60
_TOO_MANY_REQUESTS = 429


class Traffic:
    """Requests that were made; those that a recording answered count in nothing but tokens."""

    def __init__(self) -> None:
        self.tokens = 0
        """Tokens of all responses."""
        self.rate_limits = 0
        """How often the service refused a request for coming too soon."""
        self._throttled: set[int] = set()
        self._requests: Counter[int] = Counter()
        self._responses: Counter[int] = Counter()
        self._seconds: Counter[int] = Counter()
        self._tokens: Counter[int] = Counter()

    def on_event(self, event: Event) -> None:
        """Counts what an event tells of a model, by the second in which it happened."""
        second = int(event.t)
        if throttled := event.data.get("throttled"):
            end = event.t - (event.duration or 0.0)
            self._throttled.update(range(round(end - throttled), round(end)))
        if tokens := int((event.usage or {}).get("total_token_count") or 0):
            self.tokens += tokens
            self._tokens[second] += tokens
        if event.data.get("replayed") or event.data.get("missed"):
            return
        if event.kind == "model_request":
            self._requests[second] += 1
        elif event.kind == "model_response" and event.duration is not None:
            self._responses[second] += 1
            # In microseconds: counters are of whole numbers.
            self._seconds[second] += round(event.duration * 1e6)
        elif is_rate_limit(event):
            self.rate_limits += 1

    @property
    def throttled(self) -> int:
        """Seconds of the run in which a call waited for its limits."""
        return len(self._throttled)

    def requests_per_minute(self, now: float) -> int | None:
        """Requests of the last minute before `now`, in seconds of the run; None before the first request."""
        if not self._requests:
            return None
        return sum(count for second, count in self._requests.items() if second >= now - _RATE)

    def latency(self, now: float) -> float | None:
        """Mean seconds of a response in the last minute; None where none came."""
        recent = [second for second in self._responses if second >= now - _RATE]
        count = sum(self._responses[second] for second in recent)
        return sum(self._seconds[second] for second in recent) / count / 1e6 if count else None

    def requests_over_time(self, now: float, columns: int) -> list[float]:
        """Requests in each of so many equal parts of the run."""
        return _in_columns(self._requests, now, columns)

    def tokens_over_time(self, now: float, columns: int) -> list[float]:
        """Tokens in each of so many equal parts of the run."""
        return _in_columns(self._tokens, now, columns)

    def latency_over_time(self, now: float, columns: int) -> list[float | None]:
        """Mean seconds of a response in each of so many equal parts of the run; None where none came."""
        sums, counts = (_in_columns(one, now, columns) for one in (self._seconds, self._responses))
        return [total / count / 1e6 if count else None for total, count in zip(sums, counts, strict=True)]


def _in_columns(by_second: Mapping[int, int], now: float, columns: int) -> list[float]:
    found = [0.0] * max(0, min(columns, int(now) + 1))
    for second, number in by_second.items() if found else ():
        place = int(second * len(found) / (int(now) + 1))
        found[min(place, len(found) - 1)] += number
    return found


def is_rate_limit(event: Event) -> bool:
    """Whether a request was refused for coming too soon, and is sent again."""
    return event.kind == "error" and event.data.get("code") == _TOO_MANY_REQUESTS


def as_shares(values: Sequence[float | None]) -> list[float | None]:
    """Values as shares of the greatest one."""
    greatest = max((value for value in values if value is not None), default=0.0)
    return [None if value is None else value / greatest if greatest else 0.0 for value in values]
