"""Runs items on the workers of a Dask scheduler. Each is told to have ended exactly once."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from evaltui.core.model.errors import ErrorInfo, ErrorKind
from evaltui.files.bundles import LARGE, bundle_of
from evaltui.files.schedulers import local_workers, warning_of
from evaltui.files.versions import versions_of
from evaltui.runner.cluster.chunks import Chunk, ChunkQueue
from evaltui.runner.cluster.connecting import connected, kill_workers
from evaltui.runner.cluster.messages import (
    AskCall,
    Broken,
    ChunkEnded,
    EndCall,
    Ended,
    FromWorker,
    Give,
    HostReady,
    Printed,
    Recorded,
    RefusedCall,
    Started,
    Told,
    VersionsDiffer,
    WithdrawCall,
)
from evaltui.runner.cluster.remote_worker import HeldChunk, RemoteWorker
from evaltui.runner.cluster.waiting import wait_set
from evaltui.runner.cluster.worker import ClusterRun, RunOnWorker, serve_chunk
from evaltui.runner.errors import AgentBrokenError
from evaltui.runner.parent.executor import ExecutorError
from evaltui.runner.parent.gate.gate import Gate
from evaltui.runner.parent.pool import (
    ExecutionResult,
    HostSettings,
    Listener,
    LoadingHost,
    finished,
    start_host,
)
from evaltui.runner.parent.supervisor import Host
from evaltui.runner.parent.work import WorkQueue
from evaltui.runner.plan import Noted, RunPlan, Scaled, WorkItem

# Seconds without a word from a worker after which its chunks go to others.
_SILENCE = 30.0
_LOOK = 0.5
_GOODBYE = 5.0
_MOST_TICKETS = 1000
# Hosts of a worker, at most, where nobody says how many.
_MOST_HOSTS = 4


class DaskExecutor:
    """An `Executor`. It tells of machines that come and go."""

    def __init__(
        self,
        plan: RunPlan,
        settings: HostSettings,
        listener: Listener[WorkItem],
        first: LoadingHost | None,
        gate: Gate | None,
        on_update: Callable[[Noted | Scaled], None],
    ) -> None:
        self._scheduler = plan.scheduler
        self._settings = settings
        self._listener = listener
        self._first = first
        self._gate = gate
        self._on_update = on_update
        self._own = local_workers(plan.scheduler)
        hosts = plan.workers or (_MOST_HOSTS if self._own is None else 1)
        began = time.time() - (time.monotonic() - settings.started)
        self._run = ClusterRun(
            uuid.uuid4().hex[:12],
            settings.agent,
            settings.timeout,
            settings.import_timeout,
            began,
            min(hosts, plan.parallel),
            plan.parallel,
            variables=plan.variables,
            patterns=gate.patterns if gate else (),
        )
        self._seconds = plan.seconds
        self._items: list[WorkItem] = []
        self._queue = ChunkQueue[int](lambda number: self._seconds.get(self._items[number].case))
        self._left = 0
        self._workers: dict[str, RemoteWorker] = {}
        # Addresses of those that do not answer.
        self._silent: set[str] = set()
        self._client: Any = None
        self._tickets: dict[int, Any] = {}
        # Of these, those that have not come to a host yet.
        self._unused: set[int] = set()
        self._ticket = 0
        self._changed = asyncio.Event()
        self._group: asyncio.TaskGroup | None = None
        self._scale = Scaled(0, 0, 0)
        self._said: set[tuple[str, tuple[str, ...]]] = set()
        self._broken: ErrorInfo | None = None
        self._is_over = False

    def host_count(self, items: int) -> int:
        """How many hosts so many items are run on, as far as that is known before it begins."""
        return min(items, (self._own or 1) * self._run.hosts)

    def _tell_scale(self) -> None:
        workers = self._workers.values()
        scale = Scaled(
            len({one.machine for one in workers}),
            sum(one.hosts for one in workers),
            sum(one.in_flight for one in workers),
        )
        if scale != self._scale:
            self._scale = scale
            self._on_update(scale)

    async def run(self, work: WorkQueue[WorkItem]) -> None:
        """Run every item, also those that are added meanwhile. A broken agent ends each with its error;
        cancelling ends the hosts.

        Raises ExecutorError where the scheduler cannot be reached, or is lost.
        """
        if not await work.waits():
            return
        if not await self._is_sound():
            while len(work) and (item := await work.take()) is not None:
                await self._listener.done(item, ExecutionResult(error=self._broken))
            return
        if warning := warning_of(self._scheduler):
            self._on_update(Noted(warning))
        async with connected(self._scheduler, self._run.hosts) as client:
            self._client = client
            try:
                async with asyncio.TaskGroup() as self._group:
                    feeding = self._group.create_task(self._feed(work))
                    try:
                        await self._begin()
                        while self._left or not feeding.done():
                            self._look()
                            await self._wait()
                    finally:
                        self._is_over = True
                        for worker in self._workers.values():
                            worker.close()
            except* ExecutorError as errors:
                raise errors.exceptions[0] from None
            finally:
                await self._end()

    async def _feed(self, work: WorkQueue[WorkItem]) -> None:
        """Take what is to be run, until there is nothing more."""
        while (item := await work.take()) is not None:
            self._items.append(item)
            self._left += 1
            number = len(self._items) - 1
            if self._broken is None:
                self._queue.add([number])
            else:
                self._ending(number, ExecutionResult(error=self._broken))
        self._changed.set()

    async def _is_sound(self) -> bool:
        """Whether the agent can be imported here; it need not be sent anywhere else."""
        first, self._first = self._first or start_host(self._settings), None
        try:
            self._listener.loaded(await first.loading)
        except AgentBrokenError as broken:
            await self._on_broken(broken.error)
            return False
        finally:
            await finished(first.end())
        if self._own is None and not self._settings.agent.url and isinstance(first.host, Host):
            await self._pack(first.host)
        return True

    async def _pack(self, host: Host) -> None:
        """Take along what workers on other machines need, and what is to be the same there."""
        agent = self._settings.agent
        try:
            bundle = await asyncio.to_thread(bundle_of, agent.code, host.files)
        except OSError as error:
            raise ExecutorError(f"{agent.code}: cannot be sent to workers: {error}") from error
        for why, files in (
            (f"larger than {LARGE // 1_000_000} MB", bundle.too_large),
            ("outside of the project", bundle.elsewhere),
        ):
            if files:
                self._on_update(Noted(f"not sent to workers, {why}: {', '.join(files)}"))
        modules = [step for step in host.brought_in or () if isinstance(step, str)]
        versions = await asyncio.to_thread(versions_of, modules, agent.python)
        self._run = replace(self._run, bundle=bundle, versions=versions)

    async def close(self) -> None:
        """End the host that was started beforehand, if nothing needed it."""
        if self._first is not None:
            await self._first.end()

    async def kill(self) -> None:
        """Hosts end with the workers of our own; others end them when the run is gone."""
        kill_workers()

    async def _begin(self) -> None:
        client, topic = self._client, self._run.topic
        client.subscribe_topic(topic, self._on_batch)
        client.subscribe_topic("all", self._on_scheduler)
        await client.register_plugin(RunOnWorker(self._run), name=topic)

    async def _end(self) -> None:
        """Workers end their hosts, and forget the run."""
        client = self._client
        for future in self._tickets.values():
            future.release()
        self._tickets.clear()
        if client.status == "running":
            client.unsubscribe_topic("all")
            # Else they notice by themselves that nobody speaks to them any more.
            with suppress(TimeoutError, OSError, ValueError):
                await asyncio.wait_for(client.unregister_worker_plugin(self._run.topic), _GOODBYE)

    async def _wait(self) -> None:
        self._changed.clear()
        await wait_set(self._changed, _LOOK)

    def _look(self) -> None:
        """What time alone changes: tickets that are over, silent workers, a scheduler that is lost."""
        if self._client.status != "running":
            raise ExecutorError(f"{self._scheduler}: the scheduler was lost")
        for number, future in list(self._tickets.items()):
            if future.done():
                del self._tickets[number]
                self._unused.discard(number)
        now = time.monotonic()
        for worker in list(self._workers.values()):
            if now - worker.heard > _SILENCE or worker.is_lost:
                self._lose(worker, "did not answer")
                self._silent.add(worker.address)
                # Some of them may wait for it for ever.
                self._unused.clear()
        if self._gate is not None and self._gate.stopped is not None:
            for number in self._queue.clear():
                self._ending(number, ExecutionResult(is_left=True))
        self._submit_tickets()
        self._tell_scale()

    def _submit_tickets(self) -> None:
        hosts = max(sum(one.hosts for one in self._workers.values()), self.host_count(len(self._items)))
        wanted = min(self._queue.chunks_left(hosts, self._at_once), _MOST_TICKETS) - len(self._unused)
        for _ in range(wanted):
            self._ticket += 1
            topic = self._run.topic
            key = f"{topic}-{self._ticket}"
            # Dask takes a silent worker for one that is free.
            heard = [*self._workers] if self._silent else None
            future = self._client.submit(
                serve_chunk, topic, self._ticket, key=key, pure=False, workers=heard or None
            )
            self._tickets[self._ticket] = future
            self._unused.add(self._ticket)

    @property
    def _at_once(self) -> int:
        return max(1, self._run.parallel // self._run.hosts)

    # What workers tell

    def _on_batch(self, event: tuple[float, Mapping[str, Any]]) -> None:
        if self._is_over:
            return
        address = event[1]["worker"]
        self._silent.discard(address)
        worker = self._workers.get(address)
        if worker is None:
            worker = RemoteWorker(address, self._client, self._run.topic, self._gate)
            self._workers[address] = worker
            assert self._group is not None
            worker.begin(self._group, self._on_message)
        worker.on_batch(event[1]["number"], event[1]["batch"])

    def _on_scheduler(self, event: tuple[float, Any]) -> None:
        match event[1]:
            case {"action": "remove-worker", "worker": address} if worker := self._workers.get(address):
                self._lose(worker, "died")

    async def _on_message(self, worker: RemoteWorker, message: FromWorker) -> None:
        match message:
            case HostReady(ticket):
                self._unused.discard(ticket)
                if ticket not in worker.known:
                    worker.known.add(ticket)
                    worker.waiting.append(message)
                self._hand_out(worker)
            case Broken(error):
                await self._on_broken(error)
            case Printed(chunk, item, source, line):
                if chunk in worker.chunks:
                    self._listener.printed(None if item is None else self._items[item], source, line)
            case VersionsDiffer(packages):
                self._on_versions(worker, packages)
            case AskCall() | EndCall() | RefusedCall() | WithdrawCall():
                worker.calls.on_message(message)
            case ChunkEnded(chunk):
                worker.chunks.pop(chunk, None)
                self._hand_out(worker)
                self._changed.set()
            case _:
                if (held := worker.chunks.get(message.chunk)) and message.item in held.left:
                    await self._on_item(held, message)

    def _on_versions(self, worker: RemoteWorker, packages: Sequence[str]) -> None:
        said = (worker.machine, tuple(packages))
        if said not in self._said:
            self._said.add(said)
            self._on_update(Noted(f"{worker.machine}: {', '.join(packages)}"))

    async def _on_item(self, held: HeldChunk, message: Started | Told | Recorded | Ended) -> None:
        item = self._items[message.item]
        match message:
            case Started(item=number):
                if number in held.events:
                    # Once more, alone: its recording begins anew.
                    self._listener.message(item)
                held.events[number] = []
                self._listener.started(item)
            case Told(item=number, text=text):
                held.events[number].append(self._listener.happened(item, text))
            case Recorded(line=line):
                self._listener.recorded(item, line)
            case Ended(item=number, ran=ran):
                held.left.discard(number)
                if ran.error is None:
                    self._queue.finished(ran.seconds)
                ran = replace(ran, events=tuple(held.events.pop(number, ())))
                # Goes on although the worker is lost meanwhile: the item has ended.
                await asyncio.shield(self._ending(number, ran))

    def _ending(self, number: int, ran: ExecutionResult) -> asyncio.Task[None]:
        assert self._group is not None
        return self._group.create_task(self._done(number, ran))

    async def _done(self, number: int, ran: ExecutionResult) -> None:
        await self._listener.done(self._items[number], ran)
        self._left -= 1
        if not self._left:
            self._changed.set()

    async def _on_broken(self, error: ErrorInfo) -> None:
        if self._broken is not None:
            return
        self._broken = error
        self._listener.broken(error)
        for number in self._queue.clear():
            await self._done(number, ExecutionResult(error=error))

    # Handing out, and what is lost

    def _hand_out(self, worker: RemoteWorker) -> None:
        """Give the hosts that wait what there is for them."""
        while worker.waiting and not any(held.chunk.is_alone for held in worker.chunks.values()):
            ready = worker.waiting[0]
            hosts = sum(one.hosts for one in self._workers.values())
            chunk = self._queue.take(hosts, ready.at_once, alone=not worker.chunks)
            if chunk is None and len(self._queue):
                # Only what is to be alone waits, and this worker has other work.
                return
            worker.waiting.popleft()
            worker.send(self._give(worker, ready.ticket, chunk))

    def _give(self, worker: RemoteWorker, ticket: int, chunk: Chunk[int] | None) -> Give:
        if chunk is None:
            return Give(ticket, 0, None)
        worker.chunks[chunk.number] = HeldChunk(chunk)
        requests = {number: self._listener.message(self._items[number]) for number in chunk.items}
        return Give(ticket, chunk.number, requests)

    def _lose(self, worker: RemoteWorker, how: str) -> None:
        """What a worker had not ended is run again by others."""
        self._workers.pop(worker.address, None)
        worker.close()
        worker.calls.close()
        for held in worker.chunks.values():
            left = [number for number in held.chunk.items if number in held.left]
            guilty = self._queue.lost(held.chunk, left)
            if guilty is not None:
                what = f"the worker {how} twice with this case alone on it"
                error = ErrorInfo("WorkerLostError", what, kind=ErrorKind.HOST_LOST)
                self._ending(guilty, ExecutionResult(error=error))
        worker.chunks.clear()
        self._changed.set()
