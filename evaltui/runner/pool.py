"""Items spread over hosts, a few in flight at once; a crash is the error of the guilty item alone."""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Generic, Protocol, TypeVar

from evaltui.agents.errors import AgentBrokenError, HostLostError, RequestFailedError, RunStoppedError
from evaltui.agents.protocol import FilesOpened
from evaltui.core.model.errors import ErrorInfo
from evaltui.core.model.events import Event, Json
from evaltui.runner.gated_requests import CallGate, GatedRequest
from evaltui.runner.plan import WorkItem
from evaltui.runner.starting import HostSettings, RunningHost, StartedHost, start_host

Item = TypeVar("Item")
ItemOfListener = TypeVar("ItemOfListener", contravariant=True)
_MIN_URGENT = 1.0


@dataclass(frozen=True)
class ExecutionResult:
    """Result of running an item once: its events, its final state, and the error that ended it."""

    events: tuple[Event, ...] = ()
    state: Json | None = None
    error: ErrorInfo | None = None
    seconds: float = 0.0
    throttled: float = 0.0
    """Seconds that model calls waited at the run's gate, not part of `seconds`."""
    is_left: bool = False
    """Whether the run was stopped before the item came to an end: it has no result."""
    refusal: tuple[str, str] | None = None
    """Metric or place, and the sentence why the item was not run; None where it was."""


class Listener(Protocol[ItemOfListener]):
    """Receives everything that happens to the items of an executor."""

    def message(self, item: ItemOfListener) -> Json:
        """The request that makes a host run the item."""
        ...

    def started(self, item: ItemOfListener) -> None:
        """A host runs the item; once more where the first host died and the item is repeated alone."""
        ...

    def happened(self, item: ItemOfListener, text: str) -> Event:
        """Handles an event, as a host's JSON text. Raises DisturbedChannelError."""
        ...

    def recorded(self, item: ItemOfListener, line: Json) -> None:
        """Handles a line of the item's recording, see `CallRecorder`; it comes before `done`."""
        ...

    def printed(self, item: ItemOfListener | None, source: str, line: str) -> None:
        """Handles a line on the agent's stdout or stderr; `item` where only that can have printed it."""
        ...

    def loaded(self, info: Json) -> None: ...

    def broken(self, error: ErrorInfo) -> None: ...

    def recovered(self, items: Sequence[ItemOfListener], error: ErrorInfo) -> None:
        """Handles that a host was lost with this error while the items ran, and none of them, run again one
        by one, lost another."""
        ...

    async def done(self, item: ItemOfListener, ran: ExecutionResult) -> None: ...


class ExecutorError(RuntimeError):
    """A sentence why items, or the rest of them, cannot be run."""


class Executor(Protocol):
    """Runs each item once, and reports to a `Listener`."""

    @property
    def opened(self) -> FilesOpened:
        """The user's own files that its hosts on this machine have opened so far."""
        ...

    def host_count(self, items: int) -> int:
        """Number of hosts for so many items, as far as it is known before they start."""
        ...

    async def run(self, work: WorkQueue[WorkItem]) -> None:
        """Run every item, also those that are added meanwhile. A broken agent ends each with its error;
        cancelling ends the hosts.

        Raises ExecutorError.
        """
        ...

    async def close(self) -> None:
        """End the host that was started beforehand, if nothing needed it."""
        ...

    async def kill(self) -> None:
        """End all of its hosts by force."""
        ...


class WorkQueue(Generic[Item]):
    """Hands out the items of the most urgent group first, until it is closed: of equally urgent groups those
    of the first one, and of a group always in order."""

    def __init__(self) -> None:
        # The items that a run starts with: groups of a hundred thousand of them are not made.
        self._first: deque[Item] = deque()
        self._group_of: Callable[[Item], int] = lambda _: 0
        # Of other groups, their urgency and items.
        self._groups: dict[int, tuple[float, deque[Item]]] = {}
        self.is_closed = False
        """Whether nothing more will be added."""
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        """Number of items that wait."""
        return len(self._first) + sum(len(items) for _, items in self._groups.values())

    def add_first(self, items: Iterable[Item], group_of: Callable[[Item], int]) -> None:
        """Add what a run starts with, each group's items one after the other; nothing is less urgent."""
        self._first.extend(items)
        self._group_of = group_of
        self.wake()

    def add(self, items: Iterable[Item], group: int = 0, urgency: float = _MIN_URGENT) -> None:
        """Add items of a group that is as urgent from now on: the lower the `urgency`, the sooner."""
        _, waiting = self._groups.pop(group, (urgency, deque[Item]()))
        while self._first and self._group_of(self._first[0]) == group:
            waiting.append(self._first.popleft())
        waiting.extend(items)
        if waiting:
            self._groups[group] = urgency, waiting
        self.wake()

    def _pop(self) -> Item:
        # Groups have results, so there are few.
        group = min(self._groups, key=lambda group: self._groups[group][0], default=None)
        if group is None or (self._first and self._groups[group][0] >= _MIN_URGENT):
            return self._first.popleft()
        _, items = self._groups[group]
        item = items.popleft()
        if not items:
            del self._groups[group]
        return item

    @property
    def _has_items(self) -> bool:
        return bool(self._first or self._groups)

    def close(self) -> None:
        """End the queue: items that wait are still handed out, and none will be added."""
        self.is_closed = True
        self.wake()

    def wake(self) -> None:
        """Have everyone who waits for an item check again whether they still should."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def waits(self) -> bool:
        """Wait for an item; False once there will be none any more."""
        while not self._has_items and not self.is_closed:
            await self._changed.wait()
        return self._has_items

    async def next(self, is_open: Callable[[], bool] = lambda: True) -> Item | None:
        """Wait for the next item; None where there will be none, or `is_open` is false."""
        while is_open() and (self._has_items or not self.is_closed):
            if self._has_items:
                return self._pop()
            await self._changed.wait()
        return None


_MAX_HOSTS = 4


@dataclass
class _Place(Generic[Item]):
    """A host and its items."""

    host: RunningHost
    in_flight: list[Item] = field(default_factory=list)
    suspects: list[Item] = field(default_factory=list)
    """The items that may have ended the host."""
    lost: ErrorInfo | None = None
    """The error with which the host was lost; None where it was not."""
    served: int = 0
    """Number of items that came to an end on it."""
    cases: set[object] = field(default_factory=set)
    """The cases of its items; an item without a case stands for itself."""
    is_decided: bool = False
    """Whether the loss of the host is the result of an item."""

    def is_guilty(self, error: ErrorInfo) -> bool:
        """Whether only the item in flight, or another repeat of its case, can have brought the host down.

        What an earlier one left behind may end a process too, but not hold up the answer.
        """
        is_alone = len(self.in_flight) == 1 and error.type == "TimeoutError"
        return is_alone or (len(self.cases) == 1 and not self.is_decided)


class HostPool(Generic[Item]):
    """An `Executor`: hands out items one by one to hosts of this machine."""

    def __init__(
        self,
        settings: HostSettings,
        listener: Listener[Item],
        parallel: int,
        workers: int | None,
        first: StartedHost | None = None,
        gate: CallGate[Any] | None = None,
    ) -> None:
        """`parallel` is the number of items at once on all hosts, `workers` that of hosts, None for as many
        as fit. `first` is a host that was started beforehand."""
        self._gate = gate
        self._settings = settings
        self._listener = listener
        self._parallel = parallel
        self._workers = workers
        self._first = first
        self._is_loaded = False
        self._broken: ErrorInfo | None = None
        self._hosts: set[RunningHost] = set()
        self._opened = FilesOpened()

    async def run(self, work: WorkQueue[Item]) -> None:
        hosts = self.host_count(len(work))
        at_once = min(self._parallel, len(work)) if work.is_closed else self._parallel
        async with asyncio.TaskGroup() as group:
            for number in range(hosts):
                slots = at_once // hosts + (number < at_once % hosts)
                group.create_task(self._work(work, slots))

    async def close(self) -> None:
        if self._first is not None:
            await self._first.end()

    async def kill(self) -> None:
        await asyncio.gather(*(host.kill() for host in self._hosts))

    @property
    def opened(self) -> FilesOpened:
        for host in self._hosts:
            self._opened |= host.opened
        return self._opened

    def host_count(self, items: int) -> int:
        per_host = 1 if self._settings.limits_time else self._parallel
        fitting = min(os.cpu_count() or 1, _MAX_HOSTS, ceil(items / per_host))
        return max(1, min(self._workers or fitting, self._parallel, items))

    async def _work(self, work: WorkQueue[Item], slots: int) -> None:
        """Keep one host busy, and replace it when it dies, until there is nothing left to hand out."""
        while await work.waits():
            place = await self._on_host(work, slots)
            if place is None or place.lost is None or not place.suspects:
                continue
            is_lost_again = False
            for item in place.suspects:
                # Any of them may have brought the host down: each is run again, alone.
                alone = WorkQueue[Item]()
                alone.add([item])
                alone.close()
                again = await self._on_host(alone, 1)
                is_lost_again |= again is None or again.lost is not None or not again.served
            if not is_lost_again and not place.is_decided:
                self._listener.recovered(place.suspects, place.lost)

    async def _on_host(self, work: WorkQueue[Item], slots: int) -> _Place[Item] | None:
        """Run items on a host of their own for as long as it lives; None without one, as the agent is
        broken."""
        if self._broken is not None:
            await self._fail_all(work, self._broken)
            return None
        started, self._first = self._first or start_host(self._settings), None
        place = _Place[Item](started.host)
        started.host.listen(
            lambda source, line: self._listener.printed(
                place.in_flight[0] if len(place.in_flight) == 1 else None, source, line
            )
        )
        self._hosts.add(started.host)
        try:
            info = await started.loading
            if not self._is_loaded:
                self._is_loaded = True
                self._listener.loaded(info)
            # google-adk calls a tool that is not async in the event loop, where all other cases wait for it.
            at_once = 1 if self._settings.limits_time and info.get("framework") == "adk" else slots
            async with asyncio.TaskGroup() as group:
                for _ in range(at_once):
                    group.create_task(self._serve(work, place))
        except AgentBrokenError as broken:
            if self._broken is None:
                self._broken = broken.error
                self._listener.broken(broken.error)
            await self._fail_all(work, broken.error)
        finally:
            self._opened |= started.host.opened
            await finished(started.end())
            self._hosts.discard(started.host)
        return place

    async def _fail_all(self, work: WorkQueue[Item], error: ErrorInfo) -> None:
        while len(work) and (item := await work.next()) is not None:
            await self._listener.done(item, ExecutionResult(error=error))

    async def _serve(self, work: WorkQueue[Item], place: _Place[Item]) -> None:
        """Run items one after the other on a host for as long as it lives."""
        while (item := await work.next(lambda: place.host.alive)) is not None:
            if self._gate is not None and self._gate.stopped is not None:
                await self._listener.done(item, ExecutionResult(is_left=True))
                continue
            ran, is_lost = await self._execute(place, item)
            if is_lost:
                place.lost = ran.error
                # Others of this host wait for an item, which it will not run.
                work.wake()
            else:
                place.in_flight.remove(item)
                place.served += 1
            if is_lost and ran.error and not place.is_guilty(ran.error) and self._may_repeat(ran):
                place.suspects.append(item)
            else:
                place.is_decided |= is_lost
                await self._listener.done(item, ran)

    def _may_repeat(self, ran: ExecutionResult) -> bool:
        """Whether an item that its host was lost over may be run again: a remote agent that was sent messages
        may be working on them."""
        return not (self._settings.agent.url and ran.events)

    async def _execute(self, place: _Place[Item], item: Item) -> tuple[ExecutionResult, bool]:
        """Run an item; returns its result, and whether the host was lost meanwhile."""
        message = self._listener.message(item)
        place.in_flight.append(item)
        place.cases.add(getattr(item, "case", item))
        self._listener.started(item)
        gated = GatedRequest(self._gate, self._settings.timeout) if self._gate else None
        events: list[Event] = []
        state: Json | None = None
        error: ErrorInfo | None = None
        is_lost = False
        started = time.monotonic()
        try:
            answer = await place.host.request(
                message,
                self._settings.timeout,
                lambda text: events.append(self._listener.happened(item, text)),
                lambda line: self._listener.recorded(item, line),
                gated,
            )
            state = answer["state"]
        except RequestFailedError as failed:
            error = failed.error
        except HostLostError as lost:
            error, is_lost = lost.error, True
        except RunStoppedError:
            return ExecutionResult(tuple(events), is_left=True), not place.host.alive
        throttled = gated.throttled if gated else 0.0
        seconds = time.monotonic() - started - throttled
        return ExecutionResult(tuple(events), state, error, seconds, throttled), is_lost


async def finished(cleaning: Coroutine[None, None, None]) -> None:
    """Finish a clean-up although the run is being cancelled."""
    task = asyncio.create_task(cleaning)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise
