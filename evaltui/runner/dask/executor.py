"""Runs items on the workers of a Dask scheduler and reports the end of each exactly once."""

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

from evaltui.agents.errors import AgentBrokenError, HostLostError, RequestFailedError
from evaltui.agents.protocol import FilesOpened
from evaltui.core.metrics.requirements import functions_of
from evaltui.core.model.errors import ErrorInfo, ErrorKind
from evaltui.project.bundles import bundle_of
from evaltui.project.folders import agent_folder, env_file, loads_env_file
from evaltui.project.packages import own_version
from evaltui.project.run_settings import is_elsewhere, local_workers, warning_of
from evaltui.runner.dask.chunks import Chunk, ChunkQueue
from evaltui.runner.dask.messages import (
    AgentBroken,
    CallStep,
    ChunkStarted,
    Ended,
    FromWorker,
    HostRecovered,
    ItemEvent,
    ItemMessage,
    ItemStarted,
    Printed,
    Recorded,
    Scored,
    WorkerReady,
)
from evaltui.runner.dask.worker import ClusterRun, RunOnWorker, run_chunk, versions_of
from evaltui.runner.dask.workers import (
    OwnCluster,
    RemoteWorker,
    ScoringOnWorkers,
    UnfitWorkers,
    connected,
    kill_workers,
)
from evaltui.runner.gate import Gate
from evaltui.runner.host import IMPORT_TIMEOUT, Host
from evaltui.runner.plan import Noted, RunPlan, Scaled, WorkItem
from evaltui.runner.pool import ExecutionResult, ExecutorError, Listener, WorkQueue, finished
from evaltui.runner.starting import HostSettings, RunningHost, StartedHost, start_host
from evaltui.text.figures import short_list

# Seconds.
_CHECK_INTERVAL = 0.5
_SUBSCRIBE_INTERVAL = 0.05
_UNREGISTER_TIMEOUT = 5.0
# Seconds without a worker until the user is told, and until a run on this machine ends.
_NO_WORKER_NOTE = 10.0
_NO_WORKER_LIMIT = 120.0
# Maximum number of hosts of a worker, where the user sets none.
_MAX_HOSTS = 4
# While so many times more cases wait than run at once, each worker has one more chunk to start at once.
_PLENTY = 4

_TaskEnd = tuple[Chunk, bool]
"""A chunk, and whether its Dask task finished."""
_LOST = None
"""The worker of the message has died."""


class DaskExecutor:
    """An `Executor` that runs items on Dask workers."""

    # Set while it runs.
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
        """Computes metrics and asks judges during the run."""
        hosts = plan.settings.workers or (_MAX_HOSTS if self._own is None else 1)
        self._run = ClusterRun(
            f"evaltui-{uuid.uuid4().hex[:12]}",
            settings.agent,
            settings.timeout,
            time.time() - (time.monotonic() - settings.started),
            min(hosts, plan.settings.parallel),
            plan.settings.parallel,
            patterns=gate.patterns if gate else (),
            variables=plan.variables,
            environment=None if self._own is None else dict(os.environ),
            limits_time=settings.limits_time,
        )
        self._items: list[WorkItem] = []
        self._queue = ChunkQueue()
        # Number of unfinished items.
        self._unfinished = 0
        # The error of the agent's import, where it can be imported nowhere.
        self._error: ErrorInfo | None = None
        self._changed = asyncio.Event()
        self._tasks: dict[str, tuple[RemoteWorker, Chunk]] = {}
        self._submitted = asyncio.Event()
        self._has_subscribed = asyncio.Event()
        self._background_tasks: list[asyncio.Task[None]] = []
        self._inbox: asyncio.Queue[tuple[RemoteWorker, FromWorker | _TaskEnd | None]] = asyncio.Queue()
        self._workers: dict[str, RemoteWorker] = {}
        self._unfit = UnfitWorkers(listener, on_update)
        self._scale: Scaled | None = None
        self._last_worker_seen = time.monotonic()
        self._is_waiting_noted = False
        self._is_over = False
        self.opened = FilesOpened()

    def host_count(self, items: int) -> int:
        """Expected number of hosts for so many items, before the run starts."""
        return min(items, (self._own or 1) * self._run.hosts)

    async def run(self, work: WorkQueue[WorkItem]) -> None:
        """Runs every item, also items that are added meanwhile. With a broken agent each item ends with its
        error; cancelling ends the hosts.

        Raises ExecutorError where the scheduler cannot be reached or is lost.
        """
        if not await work.waits():
            return
        if self._own is not None:
            self._own_cluster = OwnCluster(self._own, self._run.hosts)
        try:
            if not await self._loads_here():
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
        """Ends the host that was started beforehand, if it was not used."""
        if self._first is not None:
            await self._first.end()

    async def kill(self) -> None:
        """Kills the workers of `local:N` with their hosts. Other workers end their hosts when the run is
        gone."""
        kill_workers()

    # Before anything is sent

    async def _loads_here(self) -> bool:
        """Whether the agent can be imported on this machine; if not, it is not sent to workers."""
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
        """The modules of the agent and its metrics; None where none are sent."""
        agent = self._settings.agent
        if self._own is not None or agent.url or not isinstance(host, Host):
            return None
        files = host.files
        for path in sorted({path for of_set in self._plan.sets for path in functions_of(of_set.config)}):
            request = {"op": "import", "agent_folder": str(agent_folder(agent.code).resolve()), "path": path}
            # A function that cannot be imported is an error when it is computed.
            with suppress(RequestFailedError, HostLostError):
                answer = await host.request(request, IMPORT_TIMEOUT)
                files |= frozenset(map(Path, answer["files"]))
        return files

    async def _pack(self, imported: frozenset[Path], brought_in: Sequence[Any]) -> None:
        """Adds to the run the files for workers on other machines, and the package versions that they should
        have."""
        agent = self._settings.agent
        try:
            bundle = await asyncio.to_thread(bundle_of, agent.code, imported, self.opened.read)
        except OSError as error:
            raise ExecutorError(f"{agent.code}: cannot be sent to workers: {error}") from error
        env = env_file(agent_folder(agent.code)) if loads_env_file() else None
        if env is not None and not self._plan.variables:
            self._on_update(Noted(f"{env.name} is not sent to workers: --ship-env sends variables of it"))
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
                self._start(self._collect_ended_tasks())
                self._start(self._read_all())
                await self._register()
                while self._unfinished or not feeding.done():
                    await self._check()
                    await self._wait_for(self._changed)
                    self._changed.clear()
                while not self.scoring.room.empty.is_set():
                    await self._check()
                    await self._wait_for(self.scoring.room.empty)
                for task in self._background_tasks:
                    task.cancel()
        except* ExecutorError as errors:
            raise errors.exceptions[0] from None
        finally:
            self._is_over = True
            self.scoring.end()
            for worker in self._workers.values():
                worker.close()
            await self._unregister()

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Runs a coroutine in the background until all items have ended."""
        self._background_tasks.append(self._group.create_task(coroutine))

    async def _register(self) -> None:
        self._client.subscribe_topic("all", self._on_scheduler)
        self._client.subscribe_topic(self._run.topic, self._on_batch)
        while not self._has_subscribed.is_set() and self._client.status == "running":
            # Subscriptions and calls use different connections, so a call may overtake the subscription.
            with suppress(OSError):
                await self._client.log_event(self._run.topic, {})
            await self._wait_for(self._has_subscribed, _SUBSCRIBE_INTERVAL)
        try:
            await self._client.register_plugin(RunOnWorker(self._run), name=self._run.topic)
        except Exception as error:
            # An error of a worker: evaltui is missing there, is another version, or the disk is full.
            self._unfit.on_start_failed(error)

    async def _unregister(self) -> None:
        """Makes the workers end their hosts and forget the run."""
        if self._client.status == "running":
            # Workers that could not start the run may raise any error here.
            with suppress(Exception):
                async with asyncio.timeout(_UNREGISTER_TIMEOUT):
                    await self._client.unregister_worker_plugin(self._run.topic)

    async def _feed(self, work: WorkQueue[WorkItem]) -> None:
        """Queues the items of the run as they are added."""
        while (item := await work.next()) is not None:
            self._items.append(item)
            self._unfinished += 1
            if self._error is None:
                self._queue.add(len(self._items) - 1)
            else:
                await self._done(len(self._items) - 1, ExecutionResult(error=self._error))
            self._changed.set()
        self._changed.set()

    async def _wait_for(self, event: asyncio.Event, seconds: float = _CHECK_INTERVAL) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()

    async def _check(self) -> None:
        """Looks for a lost scheduler, missing workers and a stopped run, and hands out chunks."""
        if self._client.status != "running":
            raise ExecutorError(f"{self._plan.scheduler}: the scheduler was lost")
        if self._own_cluster is not None:
            self._own_cluster.replace_lost_workers()
        if self._gate is not None and self._gate.stopped is not None:
            for number in self._queue.clear():
                await self._done(number, ExecutionResult(is_left=True))
        await self._end_if_none_is_fit()
        await self._requeue_stuck_chunks()
        self._hand_out()
        self._report_scale()

    async def _end_if_none_is_fit(self) -> None:
        """Raises ExecutorError where no worker can be used; where the agent breaks on each, ends all items as
        errors."""
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

    def _report_scale(self) -> None:
        """Reports how many machines, hosts and cases are at work when that changes, and once that there is no
        worker."""
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
            self._last_worker_seen = now
        elif self._own is not None and now - self._last_worker_seen > _NO_WORKER_LIMIT:
            raise ExecutorError(f"no worker of this machine has come back for {_NO_WORKER_LIMIT:g} s")
        elif now - self._last_worker_seen > _NO_WORKER_NOTE and not self._is_waiting_noted:
            self._is_waiting_noted = True
            waits = f"{self._plan.scheduler} has no worker: the run waits for one"
            if self._own is None:
                waits += ". Start one with `dask worker`"
            self._on_update(Noted(waits, at_once=True))

    def _fit_workers(self) -> Iterator[RemoteWorker]:
        return (worker for worker in self._workers.values() if worker.address not in self._unfit)

    # Chunks

    async def _requeue_stuck_chunks(self) -> None:
        """Gives chunks whose worker is busy for other clients, so they do not start, to workers without
        chunks."""
        if len(self._queue) or all(worker.chunks for worker in self._fit_workers()):
            return
        for worker in [*self._workers.values()]:
            for chunk in [chunk for chunk in worker.chunks.values() if chunk.is_stuck]:
                worker.is_busy = True
                await self._cancel([chunk])
                await self._on_task_end(worker, chunk, is_well=True)

    def _hand_out(self) -> None:
        """Submits chunks to the workers that have room, first to those with the fewest."""
        ready = [*self._fit_workers()]
        hosts = max(self.host_count(len(self._items)), sum(worker.hosts for worker in ready))
        is_plenty = len(self._queue) > _PLENTY * hosts * self._run.at_once
        for worker in sorted(ready, key=lambda worker: (worker.is_busy, len(worker.chunks))):
            while len(worker.chunks) < worker.hosts + is_plenty and not worker.is_reserved:
                chunk = self._queue.next_chunk(hosts, self._run.at_once, alone=not worker.chunks)
                if chunk is None:
                    break
                self._submit(worker, chunk)

    def _submit(self, worker: RemoteWorker, chunk: Chunk) -> None:
        requests = {number: self._listener.message(self._items[number]) for number in chunk.items}
        chunk.future = self._client.submit(
            run_chunk,
            self._run.topic,
            chunk.number,
            # As bytes, because Dask searches any other argument for futures.
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
        # No task goes on without its scheduler.
        with suppress(OSError):
            await self._client.cancel([chunk.future for chunk in chunks])

    async def _collect_ended_tasks(self) -> None:
        """Puts the end of each Dask task into the inbox, after all messages of its worker."""
        while True:
            async for future in self._completed:
                worker, chunk = self._tasks.pop(future.key)
                self._inbox.put_nowait((worker, (chunk, future.status == "finished")))
            self._submitted.clear()
            await self._submitted.wait()

    async def _on_task_end(self, worker: RemoteWorker, chunk: Chunk, *, is_well: bool) -> None:
        """Handles the end of a Dask task. Unfinished items of its chunk wait again."""
        if worker.chunks.pop(chunk.number, None) is None:
            # It was cancelled.
            return
        if not is_well:
            await self._lose(chunk)
        elif self._error is None:
            self._queue.put_back(chunk)
        else:
            for number in chunk.unfinished_items:
                await self._done(number, ExecutionResult(error=self._error))
        self._changed.set()

    def _note_lost(self, worker: RemoteWorker, chunks: Sequence[Chunk]) -> None:
        """Names the cases that a lost worker may have begun: that attempt is in no result."""
        cases = [self._items[number].case for chunk in chunks for number in chunk.unfinished_items]
        if cases:
            names = short_list([*dict.fromkeys(case.eval_id for case in cases)])
            self._on_update(Noted(f"worker {worker.machine} was lost; run again: {names}"))

    async def _lose(self, chunk: Chunk) -> None:
        """Gives the unfinished items of a chunk whose worker died to others, but for an item that is to
        blame."""
        culprit = self._queue.on_lost(chunk)
        if culprit is not None:
            what = "the worker died twice with this case alone on it"
            error = ErrorInfo("WorkerLostError", what, kind=ErrorKind.HOST_LOST)
            await self._done(culprit, ExecutionResult(error=error))

    async def _done(self, number: int, ran: ExecutionResult) -> None:
        await self._listener.done(self._items[number], ran)
        self._unfinished -= 1
        if not self._unfinished:
            self._changed.set()

    # Messages of workers

    def _on_batch(self, event: tuple[float, Mapping[str, Any]]) -> None:
        """Handles model calls and scores at once, because other messages may wait for them; the rest goes to
        the inbox."""
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
                worker.on_chunk_started(message.chunk)
            elif isinstance(message, CallStep):
                worker.calls.on_step(message)
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
            self.scoring.hand_out()
        self._changed.set()

    def _on_scheduler(self, event: tuple[float, Any]) -> None:
        match event[1]:
            case {"action": "remove-worker", "worker": address} if worker := self._workers.pop(address, None):
                worker.close()
                worker.calls.close()
                self.scoring.lose(worker)
                # After the messages that it has sent.
                self._inbox.put_nowait((worker, _LOST))

    async def _read_all(self) -> None:
        while True:
            worker, message = await self._inbox.get()
            match message:
                case None:
                    chunks = [*worker.chunks.values()]
                    self._note_lost(worker, chunks)
                    await self._cancel(chunks)
                    for chunk in chunks:
                        await self._on_task_end(worker, chunk, is_well=False)
                case (Chunk() as chunk, bool() as is_well):
                    await self._on_task_end(worker, chunk, is_well=is_well)
                case ItemStarted() | ItemEvent() | Recorded() | Ended():
                    running = worker.chunks.get(message.chunk)
                    if running is not None and message.item in running.unfinished:
                        await self._on_item(running, message)
                case Printed(number) if number is None or number in worker.chunks:
                    item = None if message.item is None else self._items[message.item]
                    self._listener.printed(item, message.source, message.line)
                case AgentBroken(error):
                    self._unfit.add(worker, error)
                case HostRecovered(items, error):
                    self._listener.recovered([self._items[number] for number in items], error)

    async def _on_item(self, chunk: Chunk, message: ItemMessage) -> None:
        item = self._items[message.item]
        match message:
            case ItemStarted(item=number):
                if number in chunk.events:
                    # The item runs again, alone: its recording starts anew.
                    self._listener.message(item)
                chunk.events[number] = []
                self._listener.started(item)
            case ItemEvent(item=number, text=text):
                chunk.events[number].append(self._listener.happened(item, text))
            case Recorded(line=line):
                self._listener.recorded(item, line)
            case Ended(item=number, ran=ran):
                self.opened |= message.opened
                chunk.unfinished.discard(number)
                if ran.error is None:
                    self._queue.on_finished(ran.seconds)
                await self._done(number, replace(ran, events=tuple(chunk.events.pop(number, ()))))
