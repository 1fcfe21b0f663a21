"""Runs the chunks of a run on a worker, in hosts that live as long as the run, and sends their messages to
the run."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import os
import pickle
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from distributed import WorkerPlugin, get_worker

from evaltui.agents.errors import AgentBrokenError, HostLostError, RequestFailedError, RunStoppedError
from evaltui.agents.protocol import FilesOpened, decode_event
from evaltui.core.model.errors import ErrorInfo
from evaltui.core.model.events import Event, Json
from evaltui.core.secrets import Secrets
from evaltui.project.agent_address import AgentAddress
from evaltui.project.bundles import Bundle
from evaltui.project.folders import agent_folder
from evaltui.project.interpreters import OWN, InterpreterError, python_version
from evaltui.project.packages import own_version, site_packages
from evaltui.project.settings import environment_of, gemini_here
from evaltui.runner.dask.messages import (
    AgentBroken,
    CallStep,
    ChunkStarted,
    Ended,
    FromWorker,
    Go,
    HostRecovered,
    ItemEvent,
    ItemStarted,
    LeaveScore,
    Printed,
    Recorded,
    Score,
    Scored,
    StopCalls,
    ToWorker,
    Wait,
    WorkerReady,
)
from evaltui.runner.host import Host
from evaltui.runner.pool import ExecutionResult, HostPool, WorkQueue
from evaltui.runner.scoring import LocalScoring
from evaltui.runner.starting import HostSettings, StartedHost, spawn_host, start_host


class WorkerMask(Secrets):
    """Replaces secrets that only the environment of a worker holds by `<NAME>`, and the worker's folder of
    the agent by the folder on the machine of the run.

    Other secrets are masked by the run itself, after scoring, as on one machine.
    """

    def __init__(self, environment: Mapping[str, str], here: Path, there: Path) -> None:
        """The agent is in the folder `here` on the worker and `there` on the machine of the run."""
        super().__init__(environment)
        folders = (_without_common_end(folder, there) for folder in (here, here.resolve()))
        self._replacements = dict(folders)
        self._folders = re.compile(
            "|".join(map(re.escape, sorted(self._replacements, key=len, reverse=True)))
        )

    def mask_text(self, text: str) -> str:
        if (values := self._values_in(text)) is not None:
            text = values.sub(self._name, text)
        return self._folders.sub(lambda match: self._replacements[match.group()], text)

    def masked_message(self, message: Any) -> Any:
        """A copy of a message to the run, masked."""
        match message:
            case ItemEvent(text=text):
                masked_text = json.dumps(self.masked(json.loads(text)), ensure_ascii=False)
                return replace(message, text=masked_text)
            case Scored(answer=AgentBrokenError() | RequestFailedError() | HostLostError() as error):
                masked = copy(error)
                masked.error = self.masked(error.error)
                masked.args = (str(masked.error),)
                return replace(message, answer=masked)
        return self.masked(message)


def _without_common_end(here: Path, there: Path) -> tuple[str, str]:
    """Both folders without the end that they have in common: a project is sent with its agent."""
    while here.name == there.name and here != here.parent:
        here, there = here.parent, there.parent
    return str(here), str(there)


# Seconds for which events are gathered, and the characters that are sent at once.
_GATHERED = 0.25
_BATCH = 64_000


@dataclass(frozen=True)
class ClusterRun:
    """The settings of a run that every worker receives."""

    topic: str
    """Name of the client, of the plugin, and of the topic that workers log events to."""
    agent: AgentAddress
    timeout: float
    started_at: float
    """Start of the run, a `time.time()`."""
    hosts: int
    """Maximum number of hosts on a worker."""
    parallel: int
    """Number of cases that a worker runs at once."""
    bundle: Bundle | None = None
    """The agent's files, for workers on other machines; None where they have the folder."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of the packages that the agent imports, by package name."""
    patterns: tuple[str, ...] = ()
    """Patterns of the models whose calls wait for the run's gate."""
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables for the environment of hosts. Dask logs plugins, so the values are not shown."""
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    """The environment of the run, for the workers of `local:N`; None for others."""
    limits_time: bool = False
    """Whether verdicts depend on the time of cases."""

    @property
    def at_once(self) -> int:
        """Number of cases that a host runs at once."""
        return max(1, self.parallel // self.hosts)

    def settings(self, files: Path | None) -> HostSettings:
        """The settings of hosts on this machine. `files` is the folder of the agent's files that were sent;
        None where they are in their own."""
        started = time.monotonic() - max(time.time() - self.started_at, 0.0)
        settings = HostSettings(
            self.agent, self.timeout, started, self.variables, limits_time=self.limits_time
        )
        if self.bundle is None or files is None:
            return settings
        agent = _agent_here(self.agent, files / self.bundle.agent)
        folder = None if self.bundle.folder is None else files / self.bundle.folder
        return replace(settings, agent=agent, folder=folder)


def _agent_here(agent: AgentAddress, folder: Path) -> AgentAddress:
    """The agent with the folder of this machine, in its own Python where this machine has that, too."""
    variant = agent.variant and replace(agent.variant, code=None)
    has_python = agent.python is not None and agent.python.exists()
    interpreter = agent.interpreter if has_python else OWN
    return replace(agent, folder=folder, variant=variant, interpreter=interpreter)


class _SendStep(Protocol):
    def __call__(self, message: CallStep, *, now: bool) -> None: ...


class RemoteGate:
    """A `CallGate` on a worker, whose calls are numbers. `put` passes a message on to the run."""

    def __init__(self, patterns: tuple[str, ...], put: _SendStep) -> None:
        self.clock: Callable[[], float] = time.monotonic
        self.patterns = patterns
        self._put = put
        self._numbers = itertools.count(1)
        self.stopped: object | None = None
        """Set once the run makes no more calls."""
        # By the number of a waiting call: the functions that let it go and that stop it.
        self._waiting: dict[int, tuple[Callable[[], None], Callable[[], None]]] = {}
        self._refused_until: dict[str, float] = {}

    def ask(
        self,
        model: str,
        size: int,
        on_go: Callable[[], None],
        on_stop: Callable[[], None] = lambda: None,
        *,
        is_first: bool = False,
    ) -> int:
        number = next(self._numbers)
        self._waiting[number] = on_go, on_stop
        self._put(CallStep(number, "ask", model, size, is_first), now=True)
        return number

    def on_message(self, message: Go | Wait | StopCalls) -> None:
        """Handles a message of the run's gate."""
        match message:
            case Go(number):
                if waiting := self._waiting.pop(number, None):
                    waiting[0]()
            case Wait(model, seconds):
                self._refused_until[model] = self.clock() + seconds
            case StopCalls():
                self.stopped = True
                calls, self._waiting = self._waiting, {}
                for _, on_stop in calls.values():
                    on_stop()

    def refused_until(self, model: str) -> float:
        return self._refused_until.get(model, -math.inf)

    def end(self, gated: int, usage: Json | None) -> None:
        self._put(CallStep(gated, "end", usage=usage), now=False)

    def refused(self, gated: int, retry_after: float | None) -> None:
        self._put(CallStep(gated, "refused", retry_after=retry_after), now=True)

    def withdraw(self, gated: int) -> None:
        self._waiting.pop(gated, None)
        self._put(CallStep(gated, "withdraw"), now=False)


async def run_chunk(topic: str, number: int, requests: bytes) -> None:
    """A Dask task: a host of this worker runs the items of a chunk. `requests` is the pickled request of each
    item."""
    await _run_on(get_worker(), topic).run_chunk(number, pickle.loads(requests))


async def deliver(topic: str, messages: Sequence[ToWorker], dask_worker: Any) -> None:
    """Delivers messages of the run to this worker."""
    _run_on(dask_worker, topic).deliver(messages)


def _run_on(worker: Any, topic: str) -> WorkerRun:
    plugin = worker.plugins.get(topic)
    if plugin is None or plugin.worker_run is None:
        raise RuntimeError("the run is over on this worker")
    worker_run: WorkerRun = plugin.worker_run
    return worker_run


class RunOnWorker(WorkerPlugin):
    """Brings a run to every worker, also to workers that join later."""

    def __init__(self, run: ClusterRun) -> None:
        self.name = run.topic
        self._run = run
        self.worker_run: WorkerRun | None = None
        """The run on this worker; None where the run was not set up."""
        self.files: Path | None = None
        """The folder of the agent's files that were sent; None where none were."""

    async def setup(self, worker: Any) -> None:
        if self._run.environment is not None:
            # Dask changes it for its workers, and agents would see that.
            os.environ.clear()
            os.environ.update(self._run.environment)
        try:
            if (bundle := self._run.bundle) is not None:
                self.files = Path(worker.local_directory, "evaltui", bundle.fingerprint[:32])
                self.files.parent.mkdir(exist_ok=True, mode=0o700)
                if not self.files.exists():
                    await asyncio.to_thread(bundle.unpack, self.files)
            settings = self._run.settings(self.files)
            differences = await asyncio.to_thread(differing, self._run.versions, settings.agent.python)
        except (OSError, InterpreterError) as error:
            self._remove_files(worker)
            raise OSError(f"{urlsplit(worker.address).hostname}: {error}") from error
        self.worker_run = WorkerRun(self._run, settings, worker)
        ready = WorkerReady(own_version(), differences, worker.state.nthreads, self.worker_run.gemini)
        self.worker_run.put(ready, now=True)

    async def teardown(self, worker: Any) -> None:
        if self.worker_run is not None:
            await self.worker_run.close()
        self._remove_files(worker)

    def _remove_files(self, worker: Any) -> None:
        """Removes the agent's files and all that agents wrote there, unless another run uses them."""
        files, self.files = self.files, None
        others = [getattr(plugin, "files", None) for plugin in worker.plugins.values()]
        if files is not None and files not in others:
            shutil.rmtree(files, ignore_errors=True)


class WorkerRun:
    """A run on this worker."""

    def __init__(self, run: ClusterRun, settings: HostSettings, worker: Any) -> None:
        self._run = run
        self._worker = worker
        self._settings = settings
        self._gate = RemoteGate(run.patterns, self.put) if run.patterns else None
        # The run limits how many judges are asked at once.
        self._scoring = LocalScoring(
            settings.agent,
            1,
            settings.timeout,
            lambda source, line: self.put(Printed(None, None, source, line), len(line)),
            self._gate,
            run.variables,
            settings.folder,
        )
        self._scores: dict[int, asyncio.Task[None]] = {}
        self._free_hosts: list[Host] = []
        # Limits the chunks at once of a worker with more threads than hosts.
        self._hosts = asyncio.Semaphore(run.hosts)
        self._chunks: set[asyncio.Task[None]] = set()
        environment = environment_of(settings.agent.folder)
        self.gemini = gemini_here({**environment, **run.variables})
        """How judges reach Gemini from this worker."""
        # None where the run is on this machine: nothing is masked.
        self._mask: WorkerMask | None = None
        if run.bundle is not None:
            own = {name: value for name, value in environment.items() if run.variables.get(name) != value}
            self._mask = WorkerMask(own, settings.agent.code, run.agent.code)
        self._messages: list[FromWorker] = []
        self._size = 0
        self._send_timer: asyncio.TimerHandle | None = None

    def put(self, message: FromWorker, size: int = 100, *, now: bool = False) -> None:
        """Sends a message to the run, in a batch with others; `size` is about the message's length in
        characters."""
        self._messages.append(message)
        self._size += size
        if now or self._size > _BATCH:
            self._send()
        elif self._send_timer is None:
            self._send_timer = asyncio.get_running_loop().call_later(_GATHERED, self._send)

    def _send(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
        messages, self._messages, self._size, self._send_timer = self._messages, [], 0, None
        masked = messages if self._mask is None else [*map(self._mask.masked_message, messages)]
        batch = pickle.dumps(masked)
        self._worker.log_event(self._run.topic, {"worker": self._worker.address, "batch": batch})

    def deliver(self, messages: Sequence[ToWorker]) -> None:
        for message in messages:
            match message:
                case Score():
                    self._scores[message.number] = asyncio.create_task(self._score(message))
                case LeaveScore(number):
                    if task := self._scores.get(number):
                        task.cancel()
                case Go() | Wait() | StopCalls():
                    if self._gate is not None:
                        self._gate.on_message(message)

    async def _score(self, message: Score) -> None:
        answer: Json | Exception
        try:
            answer = await self._scoring.answer(message.kind, message.request)
        except (AgentBrokenError, RequestFailedError, HostLostError, RunStoppedError) as failed:
            answer = failed
        finally:
            del self._scores[message.number]
        opened = self._scoring.opened if self._run.bundle is None else FilesOpened()
        self.put(Scored(message.number, answer, opened), len(str(answer)), now=True)

    async def run_chunk(self, number: int, requests: Mapping[int, Json]) -> None:
        self.put(ChunkStarted(number), now=True)
        task = asyncio.create_task(self._run_chunk(number, requests))
        self._chunks.add(task)
        try:
            # The task is cancelled when the run is over; Dask would take that for a worker that closes.
            await asyncio.wait([task])
        finally:
            self._chunks.discard(task)
            task.cancel()
        if not task.cancelled():
            task.result()

    async def _run_chunk(self, number: int, requests: Mapping[int, Json]) -> None:
        async with self._hosts:
            listener = _ChunkListener(self, number, requests, str(agent_folder(self._settings.agent.folder)))
            pool = HostPool(self._settings, listener, self._run.at_once, 1, self._host(), self._gate)
            if self._run.bundle is None:
                # Only on the run's machine do these paths name the same files.
                listener.opened = lambda: pool.opened
            try:
                work = WorkQueue[int]()
                work.add(requests)
                work.close()
                await pool.run(work)
            finally:
                await pool.close()
                self._send()

    def _host(self) -> StartedHost:
        """A free host, else a new one; it becomes free when its chunk is over."""
        while self._free_hosts:
            if (host := self._free_hosts.pop()).alive:
                return StartedHost(self._settings, host, host.loaded, partial(self._give_back, host))
        host = spawn_host(self._settings)
        return start_host(self._settings, host, end=partial(self._give_back, host))

    async def _give_back(self, host: Host) -> None:
        if host.alive and host.loaded.done() and host.loaded.exception() is None and not host.busy:
            self._free_hosts.append(host)
        else:
            await host.close()

    async def close(self) -> None:
        """The run is over."""
        tasks = [*self._chunks, *self._scores.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._scoring.close()
        free, self._free_hosts = self._free_hosts, []
        await asyncio.gather(*(host.close() for host in free))
        if self._send_timer is not None:
            self._send_timer.cancel()


@dataclass
class _ChunkListener:
    """Sends the messages of a host on the items of a chunk, which are numbers here, to the run."""

    run: WorkerRun
    chunk: int
    requests: Mapping[int, Json]
    agent_folder: str
    error: ErrorInfo | None = None
    """The error of the agent's import on this machine; None where it was imported."""
    opened: Callable[[], FilesOpened] = FilesOpened
    """Returns the files that the hosts of the chunk have opened so far."""

    def message(self, item: int) -> Json:
        request = self.requests[item]
        if user := request.get("simulated_user"):
            # The function that plays it is in the agent's folder, which may be another one here.
            return {**request, "simulated_user": {**user, "agent_folder": self.agent_folder}}
        return request

    def started(self, item: int) -> None:
        self.run.put(ItemStarted(self.chunk, item))

    def happened(self, item: int, text: str) -> Event:
        event = Event.from_json(decode_event(text))
        self.run.put(ItemEvent(self.chunk, item, text), len(text))
        return event

    def recorded(self, item: int, line: Json) -> None:
        self.run.put(Recorded(self.chunk, item, line), len(str(line)))

    def printed(self, item: int | None, source: str, line: str) -> None:
        self.run.put(Printed(self.chunk, item, source, line), len(line))

    def loaded(self, info: Json) -> None:
        """Does nothing: the run already has the description from its first host."""

    def broken(self, error: ErrorInfo) -> None:
        self.error = error
        self.run.put(AgentBroken(error))

    def recovered(self, items: Sequence[int], error: ErrorInfo) -> None:
        self.run.put(HostRecovered(tuple(items), error))

    async def done(self, item: int, ran: ExecutionResult) -> None:
        if self.error is not None and ran.error is self.error:
            # Another worker runs the item.
            return
        self.run.put(Ended(self.chunk, item, replace(ran, events=()), self.opened()), len(str(ran.state)))


def dask_setup(worker: Any) -> None:
    """Dask calls this first in a worker of `local:N`, which shares the terminal of the run.

    Ctrl-C goes to every process of a terminal, and the run ends its workers by itself. The signal is handled
    and not ignored, because hosts would inherit that.
    """
    signal.signal(signal.SIGINT, lambda number, frame: None)


_PYTHON = "Python"


def versions_of(modules: Iterable[str], python: Path | None) -> dict[str, str]:
    """Versions by name of the packages that have any of these modules in a Python, and of Python itself."""
    names = {module.partition(".")[0] for module in modules}
    versions = {
        package.name: package.version
        for package in _installed(python)
        if not names.isdisjoint(_modules(package))
    }
    return {**versions, _PYTHON: _version(python)}


def _version(python: Path | None) -> str:
    """`3.12`: others are as good as the same."""
    version = sys.version_info[:2] if python is None else python_version(python)
    return ".".join(map(str, version))


def _installed(python: Path | None) -> Iterable[Distribution]:
    if python is None:
        return distributions()
    return distributions(path=[str(folder) for folder in site_packages(python)])


def _modules(package: Distribution) -> Collection[str]:
    """The names that a package is imported by."""
    listed = package.read_text("top_level.txt")
    if listed is not None:
        return listed.split()
    return {path.parts[0].removesuffix(".py") for path in package.files or () if path.suffix == ".py"}


def differing(versions: Mapping[str, str], python: Path | None) -> tuple[str, ...]:
    """Clauses such as `google-adk 2.12.0 instead of 2.13.0` on what a Python has otherwise, None for
    evaltui's own."""
    if not versions:
        return ()
    # Of two with one name, the first is imported.
    installed = {
        _key(package.name): package.version for package in reversed([*_installed(python)]) if package.name
    }
    if _PYTHON in versions:
        installed[_key(_PYTHON)] = _version(python)
    return tuple(_differing(versions, installed))


def _differing(versions: Mapping[str, str], installed: Mapping[str, str]) -> Iterator[str]:
    for name, version in sorted(versions.items()):
        here = installed.get(_key(name))
        if here is None:
            yield f"{name} is missing ({version})"
        elif here != version:
            yield f"{name} {here} instead of {version}"


def _key(name: str) -> str:
    """Names of packages are the same whatever their case and separators."""
    return re.sub(r"[-_.]+", "-", name).lower()
