"""Runs items on the workers of a Dask scheduler. Each is told to have ended exactly once."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaltui.core.metrics.requirements import functions_of
from evaltui.files.bundles import bundle_of
from evaltui.files.folders import agent_folder
from evaltui.files.packages import own_version
from evaltui.files.schedulers import is_elsewhere, local_workers, warning_of
from evaltui.files.versions import versions_of
from evaltui.runner.cluster.chunks import Chunk
from evaltui.runner.cluster.connecting import connected
from evaltui.runner.cluster.items import RunItems
from evaltui.runner.cluster.left_behind import tidy
from evaltui.runner.cluster.messages import (
    Arrived,
    Broken,
    ChunkEnded,
    Ended,
    FromWorker,
    Give,
    HostReady,
    OfItems,
    Prepared,
    Printed,
    Take,
)
from evaltui.runner.cluster.own_cluster import OwnCluster, kill_workers
from evaltui.runner.cluster.remote_worker import HeldChunk, RemoteWorker
from evaltui.runner.cluster.scale import ScaleOfRun
from evaltui.runner.cluster.scoring import ScoringOnWorkers
from evaltui.runner.cluster.tickets import Tickets
from evaltui.runner.cluster.unfit import UnfitWorkers
from evaltui.runner.cluster.waiting import wait_set
from evaltui.runner.cluster.worker import ClusterRun, RunOnWorker
from evaltui.runner.errors import AgentBrokenError, HostLostError, RequestFailedError
from evaltui.runner.parent.executor import ExecutorError
from evaltui.runner.parent.gate.gate import Gate
from evaltui.runner.parent.pool import ExecutionResult, Listener, LoadingHost, RunningHost, finished
from evaltui.runner.parent.starting import HostSettings, StartedHost, start_host
from evaltui.runner.parent.supervisor import IMPORT_TIMEOUT, Host
from evaltui.runner.parent.work import WorkQueue
from evaltui.runner.plan import (
    Noted,
    RunPlan,
    Scaled,
    WorkItem,
)
from evaltui.runner.protocol import FilesOpened

# Seconds without a word from a worker after which its chunks go to others.
_SILENCE = 30.0
_LOOK = 0.5
_GOODBYE = 5.0
# Hosts of a worker, at most, where nobody says how many.
_MOST_HOSTS = 4


class DaskExecutor:
    """An `Executor`. It tells of machines that come and go."""

    # While it runs.
    _client: Any
    _tickets: Tickets

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
        self._own_cluster: OwnCluster | None = None
        if isinstance(first, StartedHost):
            self._own_cluster, self._first = first.workers, replace(first, workers=None)
        self.scoring = ScoringOnWorkers(
            plan.settings.parallel, self._fit_workers, is_elsewhere=is_elsewhere(plan.scheduler)
        )
        """What computes metrics and asks judges while it runs."""
        self._functions = {path for one in plan.sets for path in functions_of(one.config)}
        hosts = plan.settings.workers or (_MOST_HOSTS if self._own is None else 1)
        began = time.time() - (time.monotonic() - settings.started)
        self._run = ClusterRun(
            uuid.uuid4().hex[:12],
            settings.agent,
            settings.timeout,
            began,
            min(hosts, plan.settings.parallel),
            plan.settings.parallel,
            patterns=gate.patterns if gate else (),
        )
        self._is_strict = plan.settings.strict_env
        self._variables = plan.variables
        self._changed = asyncio.Event()
        self._items = RunItems(listener, plan.seconds, self._changed)
        self._workers: dict[str, RemoteWorker] = {}
        self._turn = asyncio.Lock()
        # Addresses of those that do not answer.
        self._silent: set[str] = set()
        self._unfit = UnfitWorkers(listener, on_update)
        self._scale = ScaleOfRun(plan.scheduler, on_update)
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
        if not await self._is_sound():
            while len(work) and (item := await work.take()) is not None:
                await self._listener.done(item, ExecutionResult(error=self._items.error))
            return
        if warning := warning_of(self._scheduler):
            self._on_update(Noted(warning))
        if self._own is not None and self._own_cluster is None:
            self._own_cluster = OwnCluster(self._own, self._run.hosts)
        async with connected(self._scheduler, self._own_cluster, self._run.topic) as client:
            self._client = client
            self._tickets = Tickets(client, self._run.topic)
            try:
                async with asyncio.TaskGroup() as self._items.group:
                    feeding = self._items.group.create_task(self._feed(work))
                    if self._own_cluster is not None:
                        self._items.group.create_task(self._own_cluster.started())
                    try:
                        await self._begin()
                        while self._items.left or not feeding.done():
                            self._look()
                            await self._end_if_none_is_fit()
                            await self._wait()
                        while not self.scoring.room.empty.is_set():
                            self._look()
                            await wait_set(self.scoring.room.empty, _LOOK)
                    finally:
                        self._is_over = True
                        self.scoring.end()
                        for worker in self._workers.values():
                            worker.close()
            except* ExecutorError as errors:
                raise errors.exceptions[0] from None
            finally:
                await self._end()

    async def _feed(self, work: WorkQueue[WorkItem]) -> None:
        """Take what is to be run, until there is nothing more."""
        while (item := await work.take()) is not None:
            self._items.add(item)
        self._changed.set()

    async def _is_sound(self) -> bool:
        """Whether the agent can be imported here; it need not be sent anywhere else."""
        first, self._first = self._first or start_host(self._settings), None
        try:
            self._listener.loaded(await first.loading)
            imported = await self._imported(first.host)
            self.opened = first.host.opened
        except AgentBrokenError as broken:
            await self._items.break_all(broken.error)
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
        found = host.files
        for path in sorted(self._functions):
            request = {"op": "import", "agent_folder": str(agent_folder(agent.code).resolve()), "path": path}
            # What cannot be imported says so when it is to be computed.
            with suppress(RequestFailedError, HostLostError):
                answer = await host.request(request, IMPORT_TIMEOUT, lambda _: None)
                found |= frozenset(map(Path, answer["files"]))
        return found

    async def _pack(self, imported: frozenset[Path], brought_in: Sequence[Any]) -> None:
        """Take along what workers on other machines need, and what is to be the same there."""
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

    async def close(self) -> None:
        """End the workers of our own, and the host that was started beforehand, if nothing needed it."""
        if self._own_cluster is not None:
            await self._own_cluster.close()
        if self._first is not None:
            await self._first.end()

    async def kill(self) -> None:
        """Hosts end with the workers of our own; others end them when the run is gone."""
        kill_workers()

    async def _begin(self) -> None:
        client, topic = self._client, self._run.topic
        # Where evaltui is not installed on the scheduler, it keeps what it keeps.
        with suppress(Exception):
            await client.run_on_scheduler(tidy, topic)
        client.subscribe_topic(topic, self._on_batch)
        client.subscribe_topic("all", self._on_scheduler)
        try:
            await client.register_plugin(RunOnWorker(self._run), name=topic)
        except Exception as error:
            # What a worker raises: its evaltui is missing, or another one, or its disk is full.
            self._unfit.begin_failed(error)

    async def _end(self) -> None:
        """Workers end their hosts, and forget the run."""
        client = self._client
        self._tickets.release()
        if client.status == "running":
            # Of workers that did not start, nothing was subscribed yet.
            with suppress(ValueError):
                client.unsubscribe_topic("all")
            # Else they notice by themselves that nobody speaks to them any more. Those that could not begin
            # cannot end either, and raise anything.
            with suppress(Exception):
                await asyncio.wait_for(client.unregister_worker_plugin(self._run.topic), _GOODBYE)

    async def _wait(self) -> None:
        self._changed.clear()
        await wait_set(self._changed, _LOOK)

    def _look(self) -> None:
        """What time alone changes: tickets that are over, silent workers, a scheduler that is lost."""
        if self._client.status != "running":
            raise ExecutorError(f"{self._scheduler}: the scheduler was lost")
        self._tickets.look()
        now = time.monotonic()
        for worker in list(self._workers.values()):
            if now - worker.heard > _SILENCE or worker.is_lost:
                self._lose(worker, "did not answer")
                self._silent.add(worker.address)
                self._tickets.give_up_unused()
        if self._own_cluster is not None:
            self._own_cluster.look(have_some=bool(self._workers))
        if self._gate is not None and self._gate.stopped is not None:
            self._items.leave()
        self._make_tickets()
        self._scale.tell(self._workers.values())

    def _make_tickets(self) -> None:
        fit = [worker.address for worker in self._fit_workers()]
        if self._unfit and not fit:
            return
        hosts = max(sum(one.hosts for one in self._workers.values()), self.host_count(len(self._items)))
        chunks = self._items.queue.chunks_left(hosts, self._at_once)
        # Dask takes a silent worker for one that is free.
        self._tickets.make(chunks, hosts, fit if fit and (self._unfit or self._silent) else None)

    async def _end_if_none_is_fit(self) -> None:
        """Raises ExecutorError where no worker can be used; where each breaks the agent, items are errors."""
        if not self._unfit or any(one not in self._unfit for one in self._workers):
            return
        with suppress(OSError):
            identity = await self._client.scheduler.identity()
            if not self._unfit.are_all(identity["workers"]) or self._items.error is not None:
                return
            if (error := self._unfit.error) is None:
                raise ExecutorError(f"{self._scheduler}: no worker can be used. {self._unfit}")
            await self._items.break_all(error)

    @property
    def _at_once(self) -> int:
        return max(1, self._run.parallel // self._run.hosts)

    def _fit_workers(self) -> Iterator[RemoteWorker]:
        return (one for one in self._workers.values() if one.address not in self._unfit)

    def _on_batch(self, event: tuple[float, Mapping[str, Any]]) -> None:
        if self._is_over:
            return
        address = event[1]["worker"]
        self._silent.discard(address)
        worker = self._workers.get(address)
        if worker is None:
            worker = RemoteWorker(address, self._client, self._run.topic, self._gate, self.scoring.on_scored)
            self._workers[address] = worker
            assert self._items.group is not None
            worker.begin(self._items.group, self._on_message, self._turn)
        worker.on_batch(event[1]["number"], event[1]["batch"])

    def _on_scheduler(self, event: tuple[float, Any]) -> None:
        match event[1]:
            case {"action": "remove-worker", "worker": address} if worker := self._workers.get(address):
                self._lose(worker, "died")

    async def _on_message(self, worker: RemoteWorker, message: FromWorker) -> None:
        if isinstance(message, OfItems):
            # Nearly all of them.
            if isinstance(message, Ended):
                self.opened |= message.opened
            if (held := worker.chunks.get(message.chunk)) and message.item in held.left:
                await self._items.on_message(held, message)
            return
        match message:
            case Arrived():
                self._on_arrived(worker, message)
                self._hand_out(worker)
            case Prepared(gemini):
                worker.gemini = gemini
                self.scoring.hand_out()
            case HostReady(ticket, number):
                self._tickets.used(ticket)
                self._changed.set()
                if number not in worker.known:
                    worker.known.add(number)
                    worker.waiting.append(message)
                self._hand_out(worker)
            case Broken(chunk, error):
                if held := worker.chunks.get(chunk):
                    self._items.put_back(held)
                self._unfit.add(worker, error)
            case Printed(chunk):
                if chunk is None or chunk in worker.chunks:
                    self._items.printed(message)
            case ChunkEnded(chunk):
                if held := worker.chunks.pop(chunk, None):
                    self._items.put_back(held)
                self._hand_out(worker)
                self._changed.set()

    def _on_arrived(self, worker: RemoteWorker, arrived: Arrived) -> None:
        worker.arrived = arrived
        if arrived.evaltui != own_version():
            self._unfit.add(worker, f"evaltui {arrived.evaltui} instead of {own_version()}")
        elif arrived.differences and self._is_strict:
            self._unfit.add(worker, ", ".join(arrived.differences))
        elif arrived.differences:
            self._unfit.warn(worker)
        if worker.address not in self._unfit:
            worker.send(Take(self._variables))

    # Handing out, and what is lost

    def _hand_out(self, worker: RemoteWorker) -> None:
        """Give the hosts that wait what there is for them."""
        if worker.arrived is None:
            return
        while worker.waiting and not any(held.chunk.is_alone for held in worker.chunks.values()):
            ready = worker.waiting[0]
            chunk = None
            if worker.address not in self._unfit:
                hosts = sum(one.hosts for one in self._workers.values())
                chunk = self._items.queue.take(hosts, ready.at_once, alone=not worker.chunks)
                if chunk is None and len(self._items.queue):
                    # Only what is to be alone waits, and this worker has other work.
                    return
            worker.waiting.popleft()
            worker.send(self._give(worker, ready.number, chunk))

    def _give(self, worker: RemoteWorker, number: int, chunk: Chunk[int] | None) -> Give:
        if chunk is None:
            return Give(number, 0, None)
        worker.chunks[chunk.number] = HeldChunk(chunk)
        return Give(number, chunk.number, self._items.requests(chunk))

    def _lose(self, worker: RemoteWorker, how: str) -> None:
        """What a worker had not ended is run again by others."""
        self._workers.pop(worker.address, None)
        worker.close()
        worker.calls.close()
        self.scoring.lose(worker, how)
        for held in worker.chunks.values():
            self._items.lose(held, how)
        worker.chunks.clear()
        self._changed.set()
