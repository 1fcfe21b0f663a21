"""Model calls in a queue by model, within limits of calls and tokens a minute, and at a model's pace."""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain

from evaltui.core.model.limits import CallRate, Limit

MINUTE = 60.0
# Seconds. A call that was let go has reached its service by then, or is over.
_ON_THE_WAY = 0.75


@dataclass(eq=False, slots=True)
class Share:
    """The share of a call in a window."""

    amount: float
    arrived: float
    """The latest moment at which it reaches its service; infinity where that is unknown."""
    is_past: bool = False


class SlidingWindow:
    """A sum that stays within `most` over any `length` seconds, as the service counts. Moments are those of
    one clock, in order."""

    def __init__(self, most: float, length: float = MINUTE) -> None:
        self._most = most
        self._length = length
        # Calls that may not have reached their service, in order; then those that have.
        self._on_the_way: dict[Share, None] = {}
        self._unknown: set[Share] = set()
        self._arrived: deque[Share] = deque()
        self._sum = 0.0

    def free_at(self, now: float, amount: float) -> float:
        """The moment at which so much may begin, `now` or later; infinity where a call has to end first. An
        amount above the limit begins alone."""
        self._pass_time(now)
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
        """The amount of the last minute, against the limit."""
        self._pass_time(now)
        per_minute = MINUTE / self._length
        return CallRate(self._sum * per_minute, self._most * per_minute)

    def start(self, now: float, amount: float, *, is_first: bool) -> Share:
        """Start a call. With `is_first`, its process may take long before it makes it."""
        share = Share(amount, math.inf if is_first else now + _ON_THE_WAY)
        if is_first:
            self._unknown.add(share)
        else:
            self._on_the_way[share] = None
        self._sum += amount
        return share

    def end(self, now: float, share: Share) -> None:
        """A call is over: it has reached its service, if it ever does."""
        self._pass_time(now)
        if share.arrived > now:
            self._unknown.discard(share)
            self._on_the_way.pop(share, None)
            share.arrived = now
            self._arrived.append(share)

    def settle(self, share: Share, amount: float) -> None:
        """Correct an estimate to the real amount."""
        if not share.is_past:
            self._sum += amount - share.amount
            share.amount = amount

    def _pass_time(self, now: float) -> None:
        """Move the shares of calls that have arrived, and drop those that are older than the window."""
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


_CLEAN_CALLS = 20
_DECREASE = 0.7
# Seconds.
_FIRST_WAIT = 1.0
_MAX_WAIT = 60.0
# Of a guessed wait.
_LEAST = 0.1


class Pace:
    """The calls at once that a model bears, and when to ask it again, by its refusals (429); unlimited
    without refusals."""

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
        guessed = min(doubled, _MAX_WAIT)
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


@dataclass(eq=False, slots=True)
class Call:
    """A call that waits or is under way. Moments are those of the limiter's clock."""

    number: int
    model: str
    tokens: float
    """Estimated."""
    size: int = 0
    """Characters of the request."""
    is_first: bool = False
    """Whether its process has had no answer of the model yet: it may take long before it makes the call."""
    began: float | None = None
    """None while it waits."""
    requests: list[tuple[SlidingWindow, Share]] = field(default_factory=list)
    """Its shares in windows of requests."""
    token_shares: list[tuple[SlidingWindow, Share]] = field(default_factory=list)
    """Its shares in windows of tokens."""


class _Limited:
    """A limit and the calls under way."""

    def __init__(self, limit: Limit) -> None:
        self._requests = None if limit.rpm is None else _requests(limit.rpm)
        self._tokens = None if limit.tpm is None else SlidingWindow(limit.tpm)
        self._most = math.inf if limit.concurrent is None else limit.concurrent
        self._under_way = 0

    def free_at(self, now: float, tokens: float) -> float:
        """The moment at which a call may begin; infinity where another one has to end first."""
        if self._under_way >= self._most:
            return math.inf
        requests = now if self._requests is None else self._requests.free_at(now, 1)
        return max(requests, now if self._tokens is None else self._tokens.free_at(now, tokens))

    def rate(self, now: float) -> CallRate | None:
        """None without a limit on requests."""
        return None if self._requests is None else self._requests.rate(now)

    def start(self, now: float, call: Call) -> None:
        self._under_way += 1
        if self._requests is not None:
            share = self._requests.start(now, 1, is_first=call.is_first)
            call.requests.append((self._requests, share))
        if self._tokens is not None:
            share = self._tokens.start(now, call.tokens, is_first=call.is_first)
            call.token_shares.append((self._tokens, share))

    def end(self) -> None:
        self._under_way -= 1


def _requests(rpm: float) -> SlidingWindow:
    # Less than one a minute, as a part of a shared limit may be, is one in a longer time.
    return SlidingWindow(rpm) if rpm >= 1 else SlidingWindow(1, MINUTE / rpm)


@dataclass(eq=False)
class _Model:
    limits: Sequence[_Limited]
    pace: Pace = field(default_factory=Pace)
    waiting: deque[Call] = field(default_factory=deque)
    under_way: int = 0

    def free_at(self, now: float, tokens: float) -> float:
        if self.under_way and self.under_way + 1 > self.pace.at_once:
            return math.inf
        return max(now, self.pace.waits_until, *(limit.free_at(now, tokens) for limit in self.limits))


class Limiter:
    """Calls of a model begin in the order in which they were asked for, and so do those of a limit."""

    def __init__(self, limits: Sequence[Limit], clock: Callable[[], float]) -> None:
        self._limits = [(limit, _Limited(limit)) for limit in limits]
        self._clock = clock
        self._models: dict[str, _Model] = {}
        self._numbers = itertools.count()
        self.next_look: float | None = None
        """The moment at which a call may begin though none ends before, by `let_go`; None where none may."""

    def ask(self, model: str, tokens: float, size: int = 0, *, is_first: bool = False) -> Call:
        """A call that waits from now on; `tokens` is an estimate, `size` the characters of its request."""
        call = Call(next(self._numbers), model, tokens, size, is_first)
        self._of(model).waiting.append(call)
        return call

    def let_go(self, admits: Callable[[Call], bool] = lambda call: True) -> list[Call]:
        """Start the calls that may begin now, up to the first one that is not admitted."""
        now = self._clock()
        self.next_look = None
        calls: list[Call] = []
        heads = [(model.waiting[0].number, model) for model in self._models.values() if model.waiting]
        heapq.heapify(heads)
        closed: set[_Limited] = set()
        while heads:
            _, model = heads[0]
            call = model.waiting[0]
            at = model.free_at(now, call.tokens)
            if at > now or not closed.isdisjoint(model.limits):
                # Later ones do not overtake it: many small calls would keep a large one waiting for ever.
                closed.update(model.limits)
                if now < at < math.inf:
                    self.next_look = min(at, self.next_look or at)
                heapq.heappop(heads)
                continue
            if not admits(call):
                self.next_look = None
                break
            self._start(model.waiting.popleft(), model, now)
            calls.append(call)
            if model.waiting:
                heapq.heapreplace(heads, (model.waiting[0].number, model))
            else:
                heapq.heappop(heads)
        return calls

    def _start(self, call: Call, model: _Model, now: float) -> None:
        call.began = now
        model.under_way += 1
        for limit in model.limits:
            limit.start(now, call)

    def end(self, call: Call, tokens: float | None = None) -> None:
        """A call that began is over, and cost so many tokens, None where that is unknown."""
        assert call.began is not None
        self._left(call, tokens).pace.answered(call.began)

    def refused(self, call: Call, retry_after: float | None) -> None:
        """A call that began was refused because of too many; in so many seconds the model may be asked again,
        None where it does not say."""
        assert call.began is not None
        under_way = self._of(call.model).under_way
        # A refused call has made no tokens.
        self._left(call, 0).pace.refused(call.began, self._clock(), under_way, retry_after)

    def rate(self) -> CallRate | None:
        """Calls per minute against the nearest limit on requests; None without one."""
        now = self._clock()
        rates = [rate for _, limited in self._limits if (rate := limited.rate(now)) is not None]
        return max(rates, key=lambda rate: rate.made / rate.limit, default=None)

    def refused_until(self, model: str) -> float:
        """The moment before which a model does not want to be asked."""
        return self._of(model).pace.waits_until

    def withdraw(self, call: Call) -> None:
        """The caller of a call is gone, whether the call began or not."""
        if call.began is None:
            self._of(call.model).waiting.remove(call)
        else:
            self._left(call, None)

    def _left(self, call: Call, tokens: float | None) -> _Model:
        model = self._of(call.model)
        model.under_way -= 1
        for limit in model.limits:
            limit.end()
        now = self._clock()
        for window, share in (*call.requests, *call.token_shares):
            window.end(now, share)
        if tokens is not None:
            for window, share in call.token_shares:
                window.settle(share, tokens)
        return model

    def _of(self, name: str) -> _Model:
        model = self._models.get(name)
        if model is None:
            limits = [limited for limit, limited in self._limits if limit.matches(name)]
            model = self._models[name] = _Model(limits)
        return model
