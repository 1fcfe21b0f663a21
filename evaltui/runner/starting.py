"""Hosts that import their agent before a run needs them, and warm hosts that have its libraries already."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from evaltui.agents.errors import AgentBrokenError
from evaltui.agents.own_code import LIBRARIES
from evaltui.agents.protocol import FilesOpened, Message
from evaltui.core.model.events import Json
from evaltui.core.model.variants import VARIANT_ERROR
from evaltui.project.agent_address import AgentAddress
from evaltui.project.folders import env_file
from evaltui.project.packages import site_packages
from evaltui.runner.gated_requests import GatedRequest
from evaltui.runner.host import Host, OnConsole, OnEvent, OnRecorded, import_limit


@dataclass(frozen=True)
class HostSettings:
    """Settings of every host of a run."""

    agent: AgentAddress
    timeout: float
    """Seconds per case."""
    started: float = field(default_factory=time.monotonic)
    """The `time.monotonic()` from which the import of the agent takes its time."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables in the environment of hosts besides `environ`."""
    folder: Path | None = None
    """The folder that hosts work in; None for that of this process."""
    environ: Mapping[str, str] | None = None
    """The environment of this process; None for the present one when a host starts."""
    limits_time: bool = False
    """Whether verdicts depend on the time of cases."""

    @property
    def import_limit(self) -> float:
        """Seconds in which the agent has to be imported."""
        return import_limit(self.timeout)


class RunningHost(Protocol):
    """Runs requests: a `Host`, or an agent object in this process."""

    @property
    def alive(self) -> bool:
        """Whether it still accepts requests."""
        ...

    @property
    def files(self) -> frozenset[Path]:
        """The user's own files that it has imported."""
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
        on_event: OnEvent = ...,
        on_recorded: OnRecorded = ...,
        gated: GatedRequest | None = None,
    ) -> Message:
        """Raises RequestFailedError, HostLostError, RunStoppedError."""
        ...

    async def kill(self) -> None: ...


@dataclass(frozen=True)
class StartedHost:
    """A host that is importing its agent, or an agent object that is being opened."""

    settings: HostSettings
    host: RunningHost
    loading: asyncio.Future[Json]
    """The AgentInfo as JSON; raises AgentBrokenError."""
    end: Callable[[], Coroutine[Any, Any, None]]
    """Ends the host and all it has left behind; nothing happens where that was done."""


def spawn_host(settings: HostSettings) -> Host:
    """Start the process of a host, which imports nothing of the agent yet."""
    agent = settings.agent
    return Host(
        python=agent.python,
        problem=agent.problem,
        variables=settings.variables,
        folder=settings.folder,
        environ=settings.environ,
    )


def start_host(
    settings: HostSettings,
    host: Host | None = None,
    after: Collection[asyncio.Task[None]] = (),
    end: Callable[[], Coroutine[Any, Any, None]] | None = None,
) -> StartedHost:
    """Have a host import the agent as soon as the tasks `after` are done: a new host, or one that was spawned
    for these settings. `end` is by default that the host is closed."""
    host = host or spawn_host(settings)

    async def load() -> Json:
        if after:
            await asyncio.wait(after)
        return await host.load(settings.agent, settings.started, settings.import_limit)

    return StartedHost(settings, host, started_loading(load()), end or host.close)


def started_loading(load: Coroutine[Any, Any, Json]) -> asyncio.Task[Json]:
    """A task whose error is no warning where no caller needs the host."""
    loading = asyncio.create_task(load)
    loading.add_done_callback(lambda task: task.cancelled() or task.exception())
    return loading


class VariantError(ValueError):
    """A sentence why an agent cannot be changed as its variant says."""


async def require_variant(started: StartedHost) -> None:
    """Wait until the agent is loaded as its variant has it. Raises VariantError where it does not fit.

    Other errors of an agent are reported by the run.
    """
    if started.settings.agent.variant is None:
        return
    try:
        await started.loading
    except AgentBrokenError as broken:
        if broken.error.type == VARIANT_ERROR:
            raise VariantError(broken.error.message) from broken


@dataclass(frozen=True)
class _WarmHost:
    """A host that imports libraries, and the surroundings that it started in."""

    host: Host
    surroundings: object
    request: asyncio.Task[None]


class WarmHosts:
    """Starts hosts for one agent. Each has the libraries that the last one brought in.

    A host is used once, and none is kept ready before the last one has ended. Callers call `prepare` after
    they have ended a host, and `close` in the end.
    """

    def __init__(self, agent: AgentAddress) -> None:
        self.agent = agent
        """The agent that hosts are kept ready for."""
        self._steps: Sequence[Any] = ()
        self._ready: _WarmHost | None = None
        self._preparing: asyncio.Task[None] | None = None
        self._loading: set[asyncio.Future[Any]] = set()
        self._closing: dict[Host, asyncio.Task[None]] = {}
        self._is_closed = False

    def start(self, settings: HostSettings) -> StartedHost:
        """Have the host that is ready, or else a new one, import the agent.

        Its `end` does not wait until it is gone; the next host does so before it imports.
        """
        self._stop_preparing()
        same_python, self.agent = settings.agent.python == self.agent.python, settings.agent
        ready, self._ready = self._ready, None
        is_good = same_python and ready and ready.host.alive and ready.surroundings == self._surroundings()
        if ready is not None and not is_good:
            self._close(ready.host)
            ready = None
        # What is being closed may still hold what the agent needs, such as a port.
        after = [*self._closing.values()]
        if ready is not None:
            after.append(ready.request)
        host = spawn_host(settings) if ready is None else ready.host
        started = start_host(settings, host, after, partial(self._end, host))
        self._loading.add(started.loading)
        started.loading.add_done_callback(self._loading.discard)
        return started

    def prepare(self) -> None:
        """Have a host ready as soon as no other one is busy: to be called after the verdict."""
        self._stop_preparing()
        if not self._is_closed:
            self._preparing = asyncio.create_task(self._prepare())

    async def ready(self) -> None:
        """Wait until the host that is being prepared, if there is one, has its libraries."""
        if self._preparing is not None:
            await asyncio.wait([self._preparing])
        if self._ready is not None:
            await self._ready.host.preloaded.wait()

    async def close(self) -> None:
        """End the host that is ready, and wait until all hosts that have ended are gone.

        From then on, `end` of a host waits until it is gone: the loop may be about to end.
        """
        self._is_closed = True
        self._stop_preparing()
        if self._ready is not None:
            self._close(self._ready.host)
            self._ready = None
        while self._closing:
            await asyncio.wait(self._closing.values())

    async def _end(self, host: Host) -> None:
        closing = self._close(host)
        if self._is_closed or not host.alive:
            # Another one may follow in its place, and must not meet what it has left behind.
            await asyncio.wait([closing])

    def _close(self, host: Host) -> asyncio.Task[None]:
        if host not in self._closing:
            self._closing[host] = asyncio.create_task(self._closed(host))
        return self._closing[host]

    async def _closed(self, host: Host) -> None:
        try:
            await host.close()
        finally:
            del self._closing[host]
        if host.brought_in is not None:
            self._steps = host.brought_in

    async def _prepare(self) -> None:
        while busy := (*self._closing.values(), *self._loading):
            await asyncio.wait(busy)
        if not self._steps or self._ready is not None or self.agent.problem:
            return
        surroundings = self._surroundings()
        host = Host(python=self.agent.python)
        request = asyncio.create_task(host.preload(self.agent.folder, self._steps))
        self._ready = _WarmHost(host, surroundings, request)

    def _surroundings(self) -> object:
        """State of the machine that decides what an imported library is and finds."""
        python = self.agent.python
        libraries = LIBRARIES if python is None else site_packages(python)
        return (
            dict(os.environ),
            _content(env_file(self.agent.folder)),
            _stat(Path())[:2],
            # Whatever is installed or removed changes the folder that it is in.
            [_stat(path) for path in (*libraries, python or Path(sys.executable))],
        )

    def _stop_preparing(self) -> None:
        if self._preparing is not None:
            self._preparing.cancel()


def _content(path: Path | None) -> bytes:
    try:
        return path.read_bytes() if path else b""
    except OSError:
        return b""


def _stat(path: Path) -> tuple[int, ...]:
    try:
        stat = path.stat()
    except OSError:
        return ()
    return stat.st_dev, stat.st_ino, stat.st_mtime_ns
