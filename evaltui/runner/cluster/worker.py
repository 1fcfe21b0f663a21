"""A run on a worker: its hosts stay for the whole run, and what they tell is passed on."""

from __future__ import annotations

import asyncio
import itertools
import pickle
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

from distributed import WorkerPlugin, get_worker

from evaltui.core.model.errors import ErrorInfo
from evaltui.core.model.events import Event, Json
from evaltui.files.agent_address import AgentAddress
from evaltui.files.agent_environment import environment_of, gemini_here
from evaltui.files.bundles import Bundle
from evaltui.files.folders import agent_folder
from evaltui.files.interpreters import OWN, InterpreterError
from evaltui.files.packages import own_version
from evaltui.files.unpacking import UnpackedFiles
from evaltui.files.versions import differing
from evaltui.runner.cluster.left_behind import PREFIX
from evaltui.runner.cluster.link import HEARTBEAT, Link
from evaltui.runner.cluster.messages import (
    Again,
    Arrived,
    Broken,
    ChunkEnded,
    Ended,
    Give,
    Go,
    HostReady,
    LeaveScore,
    Prepared,
    Printed,
    Recorded,
    Score,
    Started,
    StopCalls,
    Take,
    Told,
    Wait,
)
from evaltui.runner.cluster.own_texts import OwnTexts
from evaltui.runner.cluster.remote_gate import RemoteGate
from evaltui.runner.cluster.worker_scoring import WorkerScoring
from evaltui.runner.parent.pool import ExecutionResult, HostPool
from evaltui.runner.parent.starting import HostSettings, StartedHost, start_host
from evaltui.runner.parent.supervisor import Host
from evaltui.runner.parent.work import WorkQueue
from evaltui.runner.protocol import FilesOpened, decode_event

# Seconds without a word from the run after which it is taken for gone, and for which a worker still says now
# and then that it is there: a run that was only stopped goes on.
_PATIENCE = 30.0
_FORGOTTEN = 3600.0
_SELDOM = 30.0
# Seconds after which a host that has run a chunk gives Dask its turn: others may wait for the worker.
_TURN = 30.0


@dataclass(frozen=True)
class ClusterRun:
    """What every worker knows of a run."""

    id: str
    agent: AgentAddress
    timeout: float
    began: float
    """A `time.time()`."""
    hosts: int
    """At most so many hosts on a worker."""
    parallel: int
    """So many cases at once on a worker."""
    bundle: Bundle | None = None
    """The agent's files, for workers on other machines; None where they have the folder."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of the packages that the agent imports, by name."""
    patterns: tuple[str, ...] = ()
    """Of the models whose calls ask the run's gate."""

    @property
    def topic(self) -> str:
        """Name of the client and the plugin, of the topic of what workers tell, and of what they are told."""
        return f"{PREFIX}{self.id}"

    def settings(self, files: UnpackedFiles | None) -> HostSettings:
        """On the clock of this machine, which has the agent's files."""
        started = time.monotonic() - max(time.time() - self.began, 0.0)
        settings = HostSettings(self.agent, self.timeout, started)
        if self.bundle is None or files is None:
            return settings
        agent = _unpacked(self.agent, files.folder / self.bundle.agent)
        folder = None if self.bundle.folder is None else files.folder / self.bundle.folder
        return replace(settings, agent=agent, folder=folder)


def _unpacked(agent: AgentAddress, folder: Path) -> AgentAddress:
    """The agent as it is found here: in its own Python where this machine has that, too."""
    variant = agent.variant and replace(agent.variant, code=None)
    has_python = agent.python is not None and agent.python.exists()
    interpreter = agent.interpreter if has_python else OWN
    return replace(agent, folder=folder, variant=variant, interpreter=interpreter)


async def serve_chunks(run: str, ticket: int) -> None:
    """What Dask schedules: a host of this worker runs chunks, which the run gives it when it is ready."""
    plugin: Any = get_worker().plugins.get(run)
    # The run may be over.
    if plugin is not None and plugin.here is not None:
        await plugin.here.serve(ticket)


class RunOnWorker(WorkerPlugin):
    """Brings a run to every worker, those that come later included."""

    def __init__(self, run: ClusterRun) -> None:
        self.name = run.topic
        self._run = run
        self.here: WorkerRun | None = None
        """Set on the worker."""
        self._files: UnpackedFiles | None = None

    async def setup(self, worker: Any) -> None:
        try:
            if self._run.bundle is not None:
                below = Path(worker.local_directory, "evaltui")
                self._files = await asyncio.to_thread(self._run.bundle.unpack, below)
            settings = self._run.settings(self._files)
            differences = await asyncio.to_thread(differing, self._run.versions, settings.agent.python)
        except (OSError, InterpreterError) as error:
            self._release()
            raise OSError(f"{urlsplit(worker.address).hostname}: {error}") from error
        self.here = WorkerRun(self._run, settings, worker, Arrived(own_version(), differences))

    async def teardown(self, worker: Any) -> None:
        if self.here is not None:
            await self.here.close()
        self._release()

    def _release(self) -> None:
        files, self._files = self._files, None
        if files is not None:
            files.release()


class WorkerRun:
    """A run on this worker."""

    def __init__(self, run: ClusterRun, settings: HostSettings, worker: Any, arrived: Arrived) -> None:
        self._run = run
        self._worker = worker
        self._arrived = arrived
        self._link = Link(run.topic, worker)
        self._gate = RemoteGate(run.patterns, self._link.put) if run.patterns else None
        self._settings = settings
        self._scoring: WorkerScoring | None = None
        self._free: list[StartedHost] = []
        self._hosts = asyncio.Semaphore(run.hosts)
        self._at_once = max(1, run.parallel // run.hosts)
        self._waits = itertools.count(1)
        self._waiting: dict[int, tuple[HostReady, asyncio.Future[Give]]] = {}
        self._work: set[asyncio.Task[None]] = set()
        self._heard = time.monotonic()
        self._watching = asyncio.create_task(self._watch())
        worker.handlers[run.topic] = self._hear
        self._link.put(arrived, now=True)

    async def _hear(self, read: int = 0, given: bytes = b"") -> str:
        self._heard = time.monotonic()
        self._link.read(read)
        for message in pickle.loads(given) if given else ():
            match message:
                case Again():
                    self._link.put(self._arrived, now=True)
                    for ready, _ in self._waiting.values():
                        self._link.put(ready, now=True)
                case Take(variables):
                    self._take(variables)
                case Score() if self._scoring is not None:
                    self._scoring.begin(message)
                case LeaveScore(number) if self._scoring is not None:
                    self._scoring.leave(number)
                case Go(call):
                    if self._gate is not None:
                        self._gate.on_go(call)
                case StopCalls():
                    if self._gate is not None:
                        self._gate.on_stop()
                case Wait(model, seconds):
                    if self._gate is not None:
                        self._gate.on_wait(model, seconds)
                case Give(number, chunk, requests):
                    _, waiting = self._waiting.pop(number, (None, None))
                    if waiting is not None and not waiting.done():
                        waiting.set_result(message)
                    elif requests is not None:
                        # Who waited for it has given up: it was not heard of the run for long.
                        self._link.put(ChunkEnded(chunk), now=True)
        return "OK"

    def _take(self, variables: Mapping[str, str]) -> None:
        """Before the first chunk, and once more when the run has to ask again what this worker is."""
        settings = self._settings = replace(self._settings, variables=variables)
        if self._scoring is None:
            tell = partial(self._link.put, now=True)
            self._scoring = WorkerScoring(settings, self._gate, tell, is_here=self._run.bundle is None)
        environment = environment_of(settings.agent.folder)
        if self._run.bundle is not None:
            known_here = {name: value for name, value in environment.items() if variables.get(name) != value}
            self._link.own = OwnTexts(known_here, settings.agent.code, self._run.agent.code)
        gemini = gemini_here({**environment, **variables})
        self._link.put(Prepared(gemini), now=True)

    async def serve(self, ticket: int) -> None:
        """Run the chunks that are given for a ticket."""
        task = asyncio.create_task(self._serve(ticket))
        self._work.add(task)
        try:
            # Ended by the run, not by Dask, which may do so as soon as nobody waits for the ticket.
            await asyncio.wait([task])
        finally:
            self._work.discard(task)

    async def _serve(self, ticket: int) -> None:
        async with self._hosts:
            until = time.monotonic() + _TURN
            given = await self._given(ticket)
            while given.requests is not None:
                await self._run_chunk(given, given.requests)
                if time.monotonic() > until:
                    break
                given = await self._given(ticket)

    async def _given(self, ticket: int) -> Give:
        ready = HostReady(ticket, next(self._waits), self._at_once)
        waiting: asyncio.Future[Give] = asyncio.get_running_loop().create_future()
        self._waiting[ready.number] = ready, waiting
        self._link.put(ready, now=True)
        try:
            return await waiting
        finally:
            self._waiting.pop(ready.number, None)

    async def _run_chunk(self, given: Give, requests: Mapping[int, Json]) -> None:
        folder = str(agent_folder(self._settings.agent.folder))
        listener = _ChunkListener(self._link, given, folder)
        pool = HostPool(self._settings, listener, self._at_once, 1, self._host(), self._gate)
        if self._run.bundle is None:
            # On another machine, files of these names are others.
            listener.opened = lambda: pool.opened
        try:
            work = WorkQueue[int](len(requests))
            work.add(requests)
            work.close()
            await pool.run(work)
        finally:
            await pool.close()
            self._link.put(ChunkEnded(given.chunk), now=True)

    def _host(self) -> StartedHost:
        """One that has served before, else a new one; it comes back when its chunk is over."""
        while self._free:
            if (free := self._free.pop()).host.alive:
                return free
        started = start_host(self._settings)
        return StartedHost(started.settings, started.host, started.loading, self._give_back)

    async def _give_back(self, host: Host) -> None:
        if host.alive and host.loaded.done() and host.loaded.exception() is None and not host.busy:
            self._free.append(StartedHost(self._settings, host, _loaded(host), self._give_back))
        else:
            await host.close()

    async def _watch(self) -> None:
        """End what works for a run that is gone, and forget it if it stays away."""
        while (silent := time.monotonic() - self._heard) < _FORGOTTEN:
            is_gone = silent >= _PATIENCE
            if is_gone and self._link.heartbeat == HEARTBEAT:
                await self._end()
            self._link.heartbeat = _SELDOM if is_gone else HEARTBEAT
            await asyncio.sleep(HEARTBEAT)
        self._worker.handlers.pop(self._run.topic, None)
        self._link.close()

    async def _end(self) -> None:
        for task in self._work:
            task.cancel()
        scoring = [self._scoring.close()] if self._scoring is not None else []
        self._scoring = None
        await asyncio.gather(*scoring, *self._work, return_exceptions=True)
        free, self._free = self._free, []
        await asyncio.gather(*(one.host.close() for one in free))

    async def close(self) -> None:
        """The run is over."""
        self._watching.cancel()
        self._worker.handlers.pop(self._run.topic, None)
        await self._end()
        self._link.close()


async def _already(info: Json) -> Json:
    return info


def _loaded(host: Host) -> asyncio.Task[Json]:
    return asyncio.create_task(_already(host.loaded.result()))


@dataclass
class _ChunkListener:
    """Passes on what a host tells of the items of a chunk, which are numbers here."""

    link: Link
    given: Give
    agent_folder: str
    error: ErrorInfo | None = None
    """Why the agent cannot be imported here."""
    opened: Callable[[], FilesOpened] = FilesOpened
    """The files that its hosts have opened so far."""

    def message(self, item: int) -> Json:
        request: Json = (self.given.requests or {})[item]
        if user := request.get("simulated_user"):
            # The function that plays it is in the agent's folder, which may be another one here.
            return {**request, "simulated_user": {**user, "agent_folder": self.agent_folder}}
        return request

    def started(self, item: int) -> None:
        self.link.put(Started(self.given.chunk, item))

    def happened(self, item: int, text: str) -> Event:
        event = Event.from_json(decode_event(text))
        self.link.put(Told(self.given.chunk, item, text), len(text))
        return event

    def recorded(self, item: int, line: Json) -> None:
        self.link.put(Recorded(self.given.chunk, item, line), len(str(line)))

    def printed(self, item: int | None, source: str, line: str) -> None:
        self.link.put(Printed(self.given.chunk, item, source, line), len(line))

    def loaded(self, info: Json) -> None:
        """It was told by the host that the run began with."""

    def broken(self, error: ErrorInfo) -> None:
        self.error = error
        self.link.put(Broken(self.given.chunk, error))

    async def done(self, item: int, ran: ExecutionResult) -> None:
        if self.error is not None and ran.error is self.error:
            # It is run elsewhere.
            return
        ended = Ended(self.given.chunk, item, replace(ran, events=()), self.opened())
        self.link.put(ended, len(str(ran.state)))
        await self.link.room()


def dask_setup(worker: Any) -> None:
    """What Dask does first in a worker of our own, whose terminal is that of the run.

    Ctrl-C goes to every process of a terminal, and the run ends its workers by itself. Not ignored: hosts
    would inherit that.
    """
    signal.signal(signal.SIGINT, _leave_it_to_the_run)


def _leave_it_to_the_run(number: int, frame: FrameType | None) -> None:
    pass
