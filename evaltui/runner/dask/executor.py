"""Runs items on the workers of a Dask scheduler. Each is told to have ended exactly once."""

from __future__ import annotations

import asyncio
import os
import pickle
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from distributed import as_completed

from evaltui.core.metrics.requirements import functions_of
from evaltui.core.model.errors import ErrorInfo, ErrorKind
from evaltui.files.bundles import bundle_of
from evaltui.files.folders import agent_folder
from evaltui.files.packages import own_version
from evaltui.files.schedulers import is_elsewhere, local_workers, warning_of
from evaltui.files.versions import versions_of
from evaltui.runner.dask.chunks import Chunk, ChunkQueue
from evaltui.runner.dask.cluster import OwnCluster, connected, kill_workers
from evaltui.runner.dask.messages import (
    AgentBroken,
    CallStep,
    ChunkStarted,
    Ended,
    FromWorker,
    ItemEvent,
    ItemStarted,
    OfItems,
    Printed,
    Recorded,
    Scored,
    Variables,
    WorkerReady,
)
from evaltui.runner.dask.scoring import ScoringOnWorkers
from evaltui.runner.dask.worker import ClusterRun, RunOnWorker, run_chunk
from evaltui.runner.dask.workers import RemoteWorker, UnfitWorkers
from evaltui.runner.errors import AgentBrokenError, HostLostError, RequestFailedError
from evaltui.runner.parent.gate.gate import Gate
from evaltui.runner.parent.host import IMPORT_TIMEOUT, Host
from evaltui.runner.parent.pool import finished
from evaltui.runner.parent.starting import HostSettings, RunningHost, StartedHost, start_host
from evaltui.runner.parent.work import ExecutionResult, ExecutorError, Listener, WorkQueue
from evaltui.runner.plan import Noted, RunPlan, Scaled, WorkItem
from evaltui.runner.protocol import FilesOpened

# Seconds.
_LOOK = 0.5
_SOON = 0.05
_GOODBYE = 5.0
# Without any worker, until that is said, and until a run on this machine ends.
_WITHOUT = 10.0
_MOST_WAITING = 120.0
# Hosts of a worker, at most, where no number is set.
_MOST_HOSTS = 4
# While so many more cases wait than are run at once, each worker has a chunk that it can begin with at once.
_PLENTY = 4

_Over = tuple[Chunk, bool]
"""A chunk, and whether its task came to its end."""
_LOST = None
"""The worker has died."""


class DaskExecutor:
    """An `Executor`."""

    # While it runs.
    _client: Any
    _completed: Any
    _group: asyncio.TaskGroup

    def __init__(
        self,
        plan: RunPlan,
        settings: HostSettings,
        listener: Listener[WorkItem],
        first: StartedHost | None,
        gate: Gate | None,
        on_update: Callable[[Noted | Scaled], None],
    ) -> None:
        self._plan = plan
        self._settings = settings
        self._listener = listener
        self._first = first
        self._gate = gate
        self._on_update = on_update
        self._own = local_workers(plan.scheduler)
        self._own_cluster: OwnCluster | None = None
        self.scoring = ScoringOnWorkers(
            plan.settings.parallel, self._fit_workers, is_elsewhere=is_elsewhere(plan.scheduler)
        )
        """What computes metrics and asks judges while it runs."""
        hosts = plan.settings.workers or (_MOST_HOSTS if self._own is None else 1)
        self._run = ClusterRun(
            f"evaltui-{uuid.uuid4().hex[:12]}",
            settings.agent,
            settings.timeout,
            time.time() - (time.monotonic() - settings.started),
            min(hosts, plan.settings.parallel),
            plan.settings.parallel,
            patterns=gate.patterns if gate else (),
            environment=None if self._own is None else dict(os.environ),
        )
        self._items: list[WorkItem] = []
        self._queue = ChunkQueue(lambda number: plan.seconds.get(self._items[number].case))
        # How many have not ended.
        self._left = 0
        # Why the agent cannot be imported anywhere.
        self._error: ErrorInfo | None = None
        self._changed = asyncio.Event()
        self._tasks: dict[str, tuple[RemoteWorker, Chunk]] = {}
        self._submitted = asyncio.Event()
        self._has_subscribed = asyncio.Event()
        self._helpers: list[asyncio.Task[None]] = []
        self._inbox: asyncio.Queue[tuple[RemoteWorker, FromWorker | _Over | None]] = asyncio.Queue()
        self._workers: dict[str, RemoteWorker] = {}
        self._unfit = UnfitWorkers(listener, on_update)
        self._scale: Scaled | None = None
        self._had_some = time.monotonic()
        self._has_waited = False
        self._is_over = False
        self.opened = FilesOpened()

    def host_count(self, items: int) -> int:
        """How many hosts so many items are run on, as far as that is known before it begins."""
        return min(items, (self._own or 1) * self._run.hosts)

    async def run(self, work: WorkQueue[WorkItem]) -> None:
        """Run every item, also those that are added meanwhile. A broken agent ends each with its error;
        cancelling ends the hosts.

        Raises ExecutorError where the scheduler cannot be reached, or is lost.
        """
        if not await work.waits():
            return
        if self._own is not None:
            self._own_cluster = OwnCluster(self._own, self._run.hosts)
        try:
            if not await self._is_sound():
                while len(work) and (item := await work.next()) is not None:
                    await self._listener.done(item, ExecutionResult(error=self._error))
                return
            if warning := warning_of(self._plan.scheduler):
                self._on_update(Noted(warning))
            async with connected(self._plan.scheduler, self._own_cluster, self._run.topic) as self._client:
                await self._run_all(work)
        finally:
            if self._own_cluster is not None:
                await finished(self._own_cluster.close())

    async def close(self) -> None:
        """End the host that was started beforehand, if nothing needed it."""
        if self._first is not None:
            await self._first.end()

    async def kill(self) -> None:
        """Hosts end with the workers of our own; others end them when the run is gone."""
        kill_workers()

    # Before anything is sent

    async def _is_sound(self) -> bool:
        """Whether the agent can be imported here; it need not be sent anywhere else."""
        first, self._first = self._first or start_host(self._settings), None
        try:
            self._listener.loaded(await first.loading)
            imported = await self._imported(first.host)
            self.opened = first.host.opened
        except AgentBrokenError as broken:
            self._error = broken.error
            self._listener.broken(broken.error)
            return False
        finally:
            await finished(first.end())
        if imported is not None and isinstance(first.host, Host):
            await self._pack(imported, first.host.brought_in or ())
        return True

    async def _imported(self, host: RunningHost) -> frozenset[Path] | None:
        """The modules that the agent and its metrics are made of; None where none are sent."""
        agent = self._settings.agent
        if self._own is not None or agent.url or not isinstance(host, Host):
            return None
        files = host.files
        for path in sorted({path for of_set in self._plan.sets for path in functions_of(of_set.config)}):
            request = {"op": "import", "agent_folder": str(agent_folder(agent.code).resolve()), "path": path}
            # What cannot be imported says so when it is to be computed.
            with suppress(RequestFailedError, HostLostError):
                answer = await host.request(request, IMPORT_TIMEOUT, lambda _: None)
                files |= frozenset(map(Path, answer["files"]))
        return files

    async def _pack(self, imported: frozenset[Path], brought_in: Sequence[Any]) -> None:
        """Add to the run what workers on other machines need, and the versions that are to be there."""
        agent = self._settings.agent
        try:
            bundle = await asyncio.to_thread(bundle_of, agent.code, imported)
        except OSError as error:
            raise ExecutorError(f"{agent.code}: cannot be sent to workers: {error}") from error
        for note in bundle.notes:
            self._on_update(Noted(note))
        modules = [step for step in brought_in if isinstance(step, str)]
        versions = await asyncio.to_thread(versions_of, modules, agent.python)
        self._run = replace(self._run, bundle=bundle, versions=versions)

    # With a scheduler

    async def _run_all(self, work: WorkQueue[WorkItem]) -> None:
        self._completed = as_completed(loop=self._client.loop)
        try:
            async with asyncio.TaskGroup() as self._group:
                feeding = self._group.create_task(self._feed(work))
                self._start(self._follow())
                self._start(self._read_all())
                await self._begin()
                while self._left or not feeding.done():
                    await self._look()
                    await self._wait_for(self._changed)
                    self._changed.clear()
                while not self.scoring.room.empty.is_set():
                    await self._look()
                    await self._wait_for(self.scoring.room.empty)
                for task in self._helpers:
                    task.cancel()
        except* ExecutorError as errors:
            raise errors.exceptions[0] from None
        finally:
            self._is_over = True
            self.scoring.end()
            for worker in self._workers.values():
                worker.close()
            await self._end()

    def _start(self, helper: Coroutine[Any, Any, None]) -> None:
        """Run something until all items have ended."""
        self._helpers.append(self._group.create_task(helper))

    async def _begin(self) -> None:
        self._client.subscribe_topic("all", self._on_scheduler)
        self._client.subscribe_topic(self._run.topic, self._on_batch)
        while not self._has_subscribed.is_set() and self._client.status == "running":
            # Subscribing goes another way than calls do, which may overtake it.
            with suppress(OSError):
                await self._client.log_event(self._run.topic, {})
            await self._wait_for(self._has_subscribed, _SOON)
        try:
            await self._client.register_plugin(RunOnWorker(self._run), name=self._run.topic)
        except Exception as error:
            # What a worker raises: its evaltui is missing, or another one, or its disk is full.
            self._unfit.begin_failed(error)

    async def _end(self) -> None:
        """Workers end their hosts, and forget the run."""
        if self._client.status == "running":
            # Those that could not begin cannot end either, and raise anything.
            with suppress(Exception):
                async with asyncio.timeout(_GOODBYE):
                    await self._client.unregister_worker_plugin(self._run.topic)

    async def _feed(self, work: WorkQueue[WorkItem]) -> None:
        """Take what is to be run, until there is nothing more."""
        while (item := await work.next()) is not None:
            self._items.append(item)
            self._left += 1
            if self._error is None:
                self._queue.add(len(self._items) - 1)
            else:
                await self._done(len(self._items) - 1, ExecutionResult(error=self._error))
            self._changed.set()
        self._changed.set()

    async def _wait_for(self, event: asyncio.Event, seconds: float = _LOOK) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()

    async def _look(self) -> None:
        """A lost scheduler, workers that do not come, a run that was stopped; and what can be handed out."""
        if self._client.status != "running":
            raise ExecutorError(f"{self._plan.scheduler}: the scheduler was lost")
        if self._own_cluster is not None:
            self._own_cluster.look()
        if self._gate is not None and self._gate.stopped is not None:
            for number in self._queue.clear():
                await self._done(number, ExecutionResult(is_left=True))
        await self._end_if_none_is_fit()
        await self._take_back()
        self._hand_out()
        self._tell_scale()

    async def _end_if_none_is_fit(self) -> None:
        """Raises ExecutorError where no worker can be used; where each breaks the agent, items are errors."""
        if not self._unfit or any(address not in self._unfit for address in self._workers):
            return
        with suppress(OSError):
            identity = await self._client.scheduler.identity()
            if not self._unfit.are_all(identity["workers"]) or self._error is not None:
                return
            if (error := self._unfit.error) is None:
                raise ExecutorError(f"{self._plan.scheduler}: no worker can be used. {self._unfit}")
            self._error = error
            self._listener.broken(error)
            for number in self._queue.clear():
                await self._done(number, ExecutionResult(error=error))

    def _tell_scale(self) -> None:
        """How many machines, hosts and cases are at work, where that changes; once, that none is."""
        workers = self._workers.values()
        scale = Scaled(
            len({worker.machine for worker in workers}),
            sum(worker.hosts for worker in workers),
            sum(worker.in_flight for worker in workers),
        )
        if scale != self._scale:
            self._scale = scale
            self._on_update(scale)
        now = time.monotonic()
        if workers:
            self._had_some = now
        elif self._own is not None and now - self._had_some > _MOST_WAITING:
            raise ExecutorError(f"no worker of this machine has come back for {_MOST_WAITING:g} s")
        elif now - self._had_some > _WITHOUT and not self._has_waited:
            self._has_waited = True
            waits = f"{self._plan.scheduler} has no worker: the run waits for one"
            if self._own is None:
                waits += ". Start one with `dask worker`"
            self._on_update(Noted(waits, at_once=True))

    def _fit_workers(self) -> Iterator[RemoteWorker]:
        return (worker for worker in self._workers.values() if worker.address not in self._unfit)

    # Chunks

    def _ready_workers(self) -> list[RemoteWorker]:
        return [worker for worker in self._fit_workers() if worker.gemini is not None]

    async def _take_back(self) -> None:
        """Chunks that do not begin, since others compute on their workers, go to workers without any."""
        if len(self._queue) or all(worker.chunks for worker in self._ready_workers()):
            return
        for worker in [*self._workers.values()]:
            for chunk in [chunk for chunk in worker.chunks.values() if chunk.is_stuck]:
                worker.is_busy = True
                await self._cancel([chunk])
                await self._on_over(worker, chunk, is_well=True)

    def _hand_out(self) -> None:
        """Give chunks to the workers that have room for them, first to those that have the fewest."""
        ready = self._ready_workers()
        hosts = max(self.host_count(len(self._items)), sum(worker.hosts for worker in ready))
        is_plenty = len(self._queue) > _PLENTY * hosts * self._run.at_once
        for worker in sorted(ready, key=lambda worker: (worker.is_busy, len(worker.chunks))):
            while len(worker.chunks) < worker.hosts + is_plenty and not worker.is_reserved:
                chunk = self._queue.take(hosts, self._run.at_once, alone=not worker.chunks)
                if chunk is None:
                    break
                self._submit(worker, chunk)

    def _submit(self, worker: RemoteWorker, chunk: Chunk) -> None:
        requests = {number: self._listener.message(self._items[number]) for number in chunk.items}
        chunk.future = self._client.submit(
            run_chunk,
            self._run.topic,
            chunk.number,
            # Dask looks for futures in whatever else it is given.
            pickle.dumps(requests),
            key=f"{self._run.topic}-{chunk.number}",
            workers=[worker.address],
            pure=False,
        )
        worker.chunks[chunk.number] = chunk
        self._tasks[chunk.future.key] = worker, chunk
        self._completed.add(chunk.future)
        self._submitted.set()

    async def _cancel(self, chunks: Sequence[Chunk]) -> None:
        # Of a scheduler that is lost, no task goes on.
        with suppress(OSError):
            await self._client.cancel([chunk.future for chunk in chunks])

    async def _follow(self) -> None:
        """Dask's tasks as they complete: by then, whatever they told is in the inbox."""
        while True:
            async for future in self._completed:
                worker, chunk = self._tasks.pop(future.key)
                self._inbox.put_nowait((worker, (chunk, future.status == "finished")))
            self._submitted.clear()
            await self._submitted.wait()

    async def _on_over(self, worker: RemoteWorker, chunk: Chunk, *, is_well: bool) -> None:
        """Dask's task is over. What has not ended of its chunk was not run to its end."""
        if worker.chunks.pop(chunk.number, None) is None:
            # It was cancelled.
            return
        if not is_well:
            await self._lose(chunk)
        elif self._error is None:
            self._queue.put_back(chunk)
        else:
            for number in chunk.items_left:
                await self._done(number, ExecutionResult(error=self._error))
        self._changed.set()

    async def _lose(self, chunk: Chunk) -> None:
        """The worker of a chunk died: others run what has not ended of it, unless that is to blame."""
        guilty = self._queue.lost(chunk)
        if guilty is not None:
            what = "the worker died twice with this case alone on it"
            error = ErrorInfo("WorkerLostError", what, kind=ErrorKind.HOST_LOST)
            await self._done(guilty, ExecutionResult(error=error))

    async def _done(self, number: int, ran: ExecutionResult) -> None:
        await self._listener.done(self._items[number], ran)
        self._left -= 1
        if not self._left:
            self._changed.set()

    # What workers tell

    def _on_batch(self, event: tuple[float, Mapping[str, Any]]) -> None:
        """Model calls and scores wait for nothing: what others wait for may depend on them."""
        self._has_subscribed.set()
        if self._is_over or not event[1]:
            return
        address = event[1]["worker"]
        for message in pickle.loads(event[1]["batch"]):
            if isinstance(message, WorkerReady):
                self._on_arrived(address, message)
            worker = self._workers.get(address)
            if worker is None:
                return
            if isinstance(message, ChunkStarted):
                worker.on_begun(message.chunk)
            elif isinstance(message, CallStep):
                worker.calls.on_told(message)
            elif isinstance(message, Scored):
                self.scoring.on_scored(worker, message)
            else:
                self._inbox.put_nowait((worker, message))

    def _on_arrived(self, address: str, arrived: WorkerReady) -> None:
        worker = RemoteWorker(address, arrived, self._run.hosts, self._client, self._run.topic, self._gate)
        self._workers[address] = worker
        if arrived.evaltui != own_version():
            self._unfit.add(worker, f"evaltui {arrived.evaltui} instead of {own_version()}")
        elif arrived.differences and self._plan.settings.strict_env:
            self._unfit.add(worker, ", ".join(arrived.differences))
        elif arrived.differences:
            self._unfit.warn(worker)
        if address not in self._unfit:
            self._start(self._prepare(worker))
        self._changed.set()

    async def _prepare(self, worker: RemoteWorker) -> None:
        await worker.prepare(Variables(self._plan.variables))
        self.scoring.hand_out()
        self._changed.set()

    def _on_scheduler(self, event: tuple[float, Any]) -> None:
        match event[1]:
            case {"action": "remove-worker", "worker": address} if worker := self._workers.pop(address, None):
                worker.close()
                worker.calls.close()
                self.scoring.lose(worker)
                # After what it has told.
                self._inbox.put_nowait((worker, _LOST))

    async def _read_all(self) -> None:
        while True:
            worker, message = await self._inbox.get()
            match message:
                case None:
                    chunks = [*worker.chunks.values()]
                    await self._cancel(chunks)
                    for chunk in chunks:
                        await self._on_over(worker, chunk, is_well=False)
                case (Chunk() as chunk, bool() as is_well):
                    await self._on_over(worker, chunk, is_well=is_well)
                case ItemStarted() | ItemEvent() | Recorded() | Ended():
                    held = worker.chunks.get(message.chunk)
                    if held is not None and message.item in held.left:
                        await self._on_item(held, message)
                case Printed(number) if number is None or number in worker.chunks:
                    item = None if message.item is None else self._items[message.item]
                    self._listener.printed(item, message.source, message.line)
                case AgentBroken(error=error):
                    self._unfit.add(worker, error)

    async def _on_item(self, chunk: Chunk, message: OfItems) -> None:
        item = self._items[message.item]
        match message:
            case ItemStarted(item=number):
                if number in chunk.events:
                    # Once more, alone: its recording begins anew.
                    self._listener.message(item)
                chunk.events[number] = []
                self._listener.started(item)
            case ItemEvent(item=number, text=text):
                chunk.events[number].append(self._listener.happened(item, text))
            case Recorded(line=line):
                self._listener.recorded(item, line)
            case Ended(item=number, ran=ran):
                self.opened |= message.opened
                chunk.left.discard(number)
                if ran.error is None:
                    self._queue.finished(ran.seconds)
                await self._done(number, replace(ran, events=tuple(chunk.events.pop(number, ()))))
