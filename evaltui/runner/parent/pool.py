"""Work spread over hosts: a few items in flight at once, and a crash blamed on the guilty one alone."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from math import ceil
from typing import Any, Generic, Protocol, TypeVar

from evaltui.core.model.errors import ErrorInfo
from evaltui.core.model.events import Event, Json
from evaltui.runner.errors import AgentBrokenError, HostLostError, RequestFailedError, RunStoppedError
from evaltui.runner.parent.gate.requests import CallGate, GatedRequest
from evaltui.runner.parent.host_console import OnConsole
from evaltui.runner.parent.host_requests import OnBegun, OnEvent, OnRecorded
from evaltui.runner.parent.starting import HostSettings, start_host
from evaltui.runner.parent.work import WorkQueue
from evaltui.runner.protocol import FilesOpened, Message

Item = TypeVar("Item")
ItemGiven = TypeVar("ItemGiven", contravariant=True)

_MOST_WORKERS = 4
# Of items that take fewer seconds than this, so many wait in a host: they could not go elsewhere any more.
_QUICK = 0.1
_AHEAD = 3


@dataclass(frozen=True)
class ExecutionResult:
    """What came of running an item once: its events, the final state, the error if it ended in one."""

    events: tuple[Event, ...] = ()
    state: Json | None = None
    error: ErrorInfo | None = None
    seconds: float = 0.0
    throttled: float = 0.0
    """Seconds that model calls waited at the run's gate, which `seconds` is without."""
    is_left: bool = False
    """Whether the run was stopped before the item came to an end: it has no result."""
    refusal: tuple[str, str] | None = None
    """Why nothing was done, a sentence, after the name of what stands in the way."""


class RunningHost(Protocol):
    """What runs items: a `Host`, or an agent object in this process."""

    @property
    def alive(self) -> bool:
        """Whether it still takes requests."""
        ...

    @property
    def takes_more(self) -> bool:
        """Whether it makes those wait that say how many may be under way `at_once`."""
        ...

    @property
    def opened(self) -> FilesOpened:
        """The user's own files that it has opened so far."""
        ...

    def listen(self, on_console: OnConsole) -> None: ...

    async def request(
        self,
        message: Message,
        timeout: float,
        on_event: OnEvent,
        on_recorded: OnRecorded,
        gated: GatedRequest | None,
        on_begun: OnBegun,
    ) -> Message:
        """Raises RequestFailedError, HostLostError, RunStoppedError."""
        ...

    async def kill(self) -> None: ...


class LoadingHost(Protocol):
    """A `StartedHost`, or an agent object that is being opened."""

    @property
    def settings(self) -> HostSettings: ...

    @property
    def host(self) -> RunningHost: ...

    @property
    def loading(self) -> asyncio.Task[Json]: ...

    async def end(self) -> None: ...


class Listener(Protocol[ItemGiven]):
    """Whom the pool works for."""

    def message(self, item: ItemGiven) -> Json:
        """The request that makes a host run the item."""
        ...

    def started(self, item: ItemGiven) -> None:
        """A host has begun with the item; again, if that host died and the item is tried once more."""
        ...

    def happened(self, item: ItemGiven, text: str) -> Event:
        """The event that a host tells of as JSON text. Raises DisturbedChannelError."""
        ...

    def recorded(self, item: ItemGiven, line: Json) -> None:
        """What a host tells of the recording of an item, see `CallRecorder`; it comes before `done`."""
        ...

    def printed(self, item: ItemGiven | None, source: str, line: str) -> None:
        """A line on the agent's stdout or stderr; `item` where only one can have printed it."""
        ...

    def loaded(self, info: Json) -> None: ...

    def broken(self, error: ErrorInfo) -> None: ...

    async def done(self, item: ItemGiven, ran: ExecutionResult) -> None: ...


class _Place(Generic[Item]):
    """A host, and the items that it is working on."""

    def __init__(self, listener: Listener[Item], started: LoadingHost, slots: int) -> None:
        self._listener = listener
        self.slots = slots
        self.servers = slots
        """How many tasks hand it items, each one after the other."""
        self.given: list[Item] = []
        """The items that it has now, with those that wait there."""
        self.seconds = _QUICK
        """What the last item took."""
        self.in_flight: list[Item] = []
        self.suspects: list[Item] = []
        self.served = 0
        self.host = started.host
        self.host.listen(self._printed)

    def is_guilty(self, error: ErrorInfo) -> bool:
        """Whether only the item in flight can have brought the host down.

        What an earlier one left behind may end a process too, but not hold up the answer.
        """
        return len(self.in_flight) == 1 and (self.served == 0 or error.type == "TimeoutError")

    def _printed(self, source: str, line: str) -> None:
        # What is printed may be read before it is known that the next one has begun.
        alone = self.given[0] if len(self.given) == 1 else None
        self._listener.printed(alone, source, line)


@dataclass(frozen=True)
class _Attempt:
    """What came of handing an item to a host."""

    ran: ExecutionResult
    lost: bool = False
    """Whether the host was lost meanwhile."""
    begun: bool = True
    """Whether the host had begun with it."""


class HostPool(Generic[Item]):
    """Runs items on hosts, `parallel` in all at a time, handed out one by one."""

    def __init__(
        self,
        settings: HostSettings,
        listener: Listener[Item],
        parallel: int,
        workers: int | None,
        first: LoadingHost | None = None,
        gate: CallGate[Any] | None = None,
    ) -> None:
        self._gate = gate
        self._settings = settings
        self._listener = listener
        self._parallel = parallel
        self._workers = workers
        self._first = first
        self._loaded = False
        self._broken: ErrorInfo | None = None
        self._hosts: set[RunningHost] = set()
        self._opened = FilesOpened()

    async def run(self, work: WorkQueue[Item]) -> None:
        """Run every item, also those that are added meanwhile. A broken agent ends each with its error;
        cancelling ends the hosts."""
        hosts = self.host_count(len(work))
        in_flight = min(self._parallel, work.most)
        async with asyncio.TaskGroup() as group:
            for number in range(hosts):
                slots = in_flight // hosts + (number < in_flight % hosts)
                group.create_task(self._work(work, max(1, slots)))

    async def close(self) -> None:
        """End the host that was started beforehand, if nothing needed it."""
        if self._first is not None:
            await self._first.end()

    async def kill(self) -> None:
        """End all of its hosts by force."""
        await asyncio.gather(*(host.kill() for host in self._hosts))

    @property
    def opened(self) -> FilesOpened:
        for host in self._hosts:
            self._opened |= host.opened
        return self._opened

    def host_count(self, items: int) -> int:
        """How many hosts so many items are run on."""
        fitting = min(os.cpu_count() or 1, _MOST_WORKERS, ceil(items / self._parallel))
        return max(1, min(self._workers or fitting, self._parallel, items))

    async def _work(self, work: WorkQueue[Item], slots: int) -> None:
        """Keep one host busy, and replace it when it dies, until there is nothing left to hand out."""
        while await work.waits():
            suspects = await self._on_host(work, slots)
            while suspects:
                # Any of them may have brought the host down: each is tried again, alone.
                alone = WorkQueue[Item](1)
                alone.add([suspects.pop(0)])
                alone.close()
                suspects += await self._on_host(alone, 1)

    async def _on_host(self, work: WorkQueue[Item], slots: int) -> list[Item]:
        """Run items on a host of their own for as long as it lives; those that may have ended it."""
        if self._broken is not None:
            await self._give_back(work, self._broken)
            return []
        started, self._first = self._first or start_host(self._settings), None
        place = _Place(self._listener, started, slots)
        self._hosts.add(started.host)
        try:
            await self._load(started)
            async with asyncio.TaskGroup() as group:
                for _ in range(slots):
                    group.create_task(self._serve(work, place, group if slots > 1 else None))
        except AgentBrokenError as broken:
            if self._broken is None:
                self._broken = broken.error
                self._listener.broken(broken.error)
            await self._give_back(work, broken.error)
        finally:
            self._opened |= started.host.opened
            await finished(started.end())
            self._hosts.discard(started.host)
        return place.suspects

    async def _load(self, started: LoadingHost) -> None:
        info = await started.loading
        if not self._loaded:
            self._loaded = True
            self._listener.loaded(info)

    async def _give_back(self, work: WorkQueue[Item], error: ErrorInfo) -> None:
        while len(work) and (item := await work.take()) is not None:
            await self._listener.done(item, ExecutionResult(error=error))

    async def _serve(
        self, work: WorkQueue[Item], place: _Place[Item], group: asyncio.TaskGroup | None
    ) -> None:
        """With a `group`, the host has its next item while the last one is scored and written down there."""
        concluding: asyncio.Task[None] | None = None
        while (item := await work.take(lambda: self._has_room(work, place))) is not None:
            place.given.append(item)
            attempt = await self._attempt(place, item)
            place.given.remove(item)
            ran, lost = attempt.ran, attempt.lost
            if lost:
                # Others of this host wait for an item, which it will not run.
                work.wake()
            if lost and not attempt.begun:
                work.put_back(item)
                continue
            if lost and ran.error and not place.is_guilty(ran.error) and self._may_repeat(ran):
                place.suspects.append(item)
                continue
            if attempt.begun and not lost:
                place.in_flight.remove(item)
                place.served += 1
                place.seconds = ran.seconds
            if group is None:
                # What one item leads to decides which is the next one.
                await self._listener.done(item, ran)
                continue
            # No further ahead than by one: what items did is in memory until then.
            if concluding is not None:
                await concluding
            concluding = group.create_task(self._listener.done(item, ran))
            if place.servers < place.slots + _AHEAD and self._may_wait(work, place):
                place.servers += 1
                group.create_task(self._serve(work, place, group))
        place.servers -= 1

    def _has_room(self, work: WorkQueue[Item], place: _Place[Item]) -> bool:
        return place.host.alive and (len(place.given) < place.slots or self._may_wait(work, place))

    def _may_wait(self, work: WorkQueue[Item], place: _Place[Item]) -> bool:
        """Whether items may wait in the host, which has them at once then, whatever this process does.

        Where items are quick, and there are enough for other hosts; calls that are limited have to wait for
        more than this process.
        """
        is_quick = place.host.takes_more and self._gate is None and place.seconds < _QUICK
        return is_quick and len(work) > _AHEAD * self._parallel

    def _may_repeat(self, ran: ExecutionResult) -> bool:
        """Whether an item may be tried again that its host was lost over.

        What an agent behind a network was sent it has heard, and is working on maybe.
        """
        return not (self._settings.agent and self._settings.agent.url and ran.events)

    async def _attempt(self, place: _Place[Item], item: Item) -> _Attempt:
        """Run one item."""
        events: list[Event] = []
        if self._gate is not None and self._gate.stopped is not None:
            return _Attempt(ExecutionResult(is_left=True), begun=False)
        host = place.host
        gated = GatedRequest(self._gate, self._settings.timeout) if self._gate else None
        began: float | None = None

        def begin() -> None:
            nonlocal began
            began = time.monotonic()
            place.in_flight.append(item)
            self._listener.started(item)

        state: Json | None = None
        error: ErrorInfo | None = None
        lost = False
        limited = {"at_once": place.slots} if place.slots > 1 and host.takes_more else {}
        try:
            answer = await host.request(
                self._listener.message(item) | limited,
                self._settings.timeout,
                lambda text: events.append(self._listener.happened(item, text)),
                lambda line: self._listener.recorded(item, line),
                gated,
                begin,
            )
            state = answer["state"]
        except RequestFailedError as failed:
            error = failed.error
        except HostLostError as gone:
            error, lost = gone.error, True
        except RunStoppedError:
            return _Attempt(ExecutionResult(tuple(events), is_left=True), not host.alive, began is not None)
        throttled = gated.throttled if gated else 0.0
        seconds = 0.0 if began is None else time.monotonic() - began - throttled
        return _Attempt(
            ExecutionResult(tuple(events), state, error, seconds, throttled), lost, began is not None
        )


async def finished(cleaning: Coroutine[None, None, None]) -> None:
    """Finish a clean-up although the run is being cancelled."""
    task = asyncio.create_task(cleaning)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise
