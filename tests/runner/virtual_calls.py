"""Model calls on a virtual clock: asked for all at once or as slots are free, let go by a limiter."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from evaltui.core.model.limits import Limit
from evaltui.runner.limiter import Call, Limiter


@dataclass(frozen=True)
class Asked:
    """A call that is to be made."""

    model: str = "gemini-test"
    seconds: float = 1.0
    tokens: float = 100.0
    estimate: float = 100.0
    on_the_way: float = 0.0
    """Seconds until it reaches its service."""
    is_first: bool = False


@dataclass
class Begun:
    """A call, or an attempt of one, that reached its service."""

    asked: Asked
    at: float
    is_refused: bool = False


@dataclass
class Service:
    """A service that answers 429 above so many requests in a minute; `most` None refuses none."""

    most: int | None = None
    retry_after: bool = True
    accepted: deque[float] = field(default_factory=deque)

    def refuses(self, now: float) -> tuple[bool, float | None]:
        """Whether a request is refused, and for how long."""
        if self.most is None:
            return False, None
        while self.accepted and self.accepted[0] <= now - 60.0:
            self.accepted.popleft()
        if len(self.accepted) < self.most:
            self.accepted.append(now)
            return False, None
        return True, self.accepted[0] + 60.0 - now if self.retry_after else None


@dataclass
class Course:
    """What came of all calls."""

    begun: list[Begun]
    ended: float

    def most_in_a_minute(self, amount: Callable[[Begun], float] = lambda one: 1.0) -> float:
        """The most that began in any 60 seconds, both ends included."""
        most = total = 0.0
        window: deque[Begun] = deque()
        for one in self.begun:
            window.append(one)
            total += amount(one)
            while window[0].at < one.at - 60.0:
                total -= amount(window.popleft())
            most = max(most, total)
        return most

    @property
    def most_at_once(self) -> int:
        changes = sorted(
            change
            for one in self.begun
            for change in ((one.at, 1), (one.at - one.asked.on_the_way + one.asked.seconds, -1))
        )
        return max(itertools.accumulate(step for _, step in changes))


def run_calls(
    calls: Sequence[Asked], limits: Sequence[Limit], service: Service | None = None, slots: int | None = None
) -> Course:
    """Every call through to its end, `slots` of them asked for at a time, None for all."""
    service, now = service or Service(), 0.0
    limiter = Limiter(limits, lambda: now)
    left = deque(calls)
    asked: dict[Call, Asked] = {}
    ends: list[tuple[float, int, Call, tuple[bool, float | None]]] = []
    begun: list[Begun] = []
    done = 0

    def ask(one: Asked) -> None:
        asked[limiter.ask(one.model, one.estimate, is_first=one.is_first)] = one

    for _ in range(min(slots or len(left), len(left))):
        ask(left.popleft())
    while done < len(calls):
        for call in limiter.let_go():
            one, refusal = asked[call], service.refuses(now)
            begun.append(Begun(one, now + one.on_the_way, refusal[0]))
            heapq.heappush(ends, (now + (0.05 if refusal[0] else one.seconds), call.number, call, refusal))
        look = limiter.next_look
        assert ends or look is not None, "nothing is under way, and nothing would ever begin"
        now = min([*([ends[0][0]] if ends else []), *([] if look is None else [look])])
        while ends and ends[0][0] <= now:
            _, _, call, (is_refused, retry_after) = heapq.heappop(ends)
            one = asked.pop(call)
            if is_refused:
                limiter.refused(call, retry_after)
                ask(one)
                continue
            limiter.end(call, one.tokens)
            done += 1
            if left:
                ask(left.popleft())
    return Course(sorted(begun, key=lambda one: one.at), now)
