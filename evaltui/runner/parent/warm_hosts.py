"""A host that is ready before it is needed: it has the libraries, and nothing of the agent's own."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaltui.core.model.events import Json
from evaltui.files.agent_address import AgentAddress
from evaltui.files.folders import env_file
from evaltui.files.packages import site_packages
from evaltui.runner.own_code import LIBRARIES
from evaltui.runner.parent.starting import HostSettings, StartedHost, begin_loading
from evaltui.runner.parent.supervisor import Host


@dataclass(frozen=True)
class _Ready:
    """A host that imports libraries, and what there was around it when it began to."""

    host: Host
    surroundings: object
    asked: asyncio.Task[None]


class WarmHosts:
    """Gives out hosts for one agent. The libraries that the last one brought in, the next one has already.

    Each host is used once. None is kept ready before one that was taken here has ended. Whoever is done with
    a host calls `prepare`, and whoever is done with everything `close`.
    """

    def __init__(self, agent: AgentAddress) -> None:
        self.agent = agent
        """The agent that hosts are kept ready for."""
        self._steps: Sequence[Any] = ()
        self._ready: _Ready | None = None
        self._preparing: asyncio.Task[None] | None = None
        self._loading: set[asyncio.Task[Json]] = set()
        self._closing: dict[Host, asyncio.Task[None]] = {}
        self._is_closed = False

    def start(self, settings: HostSettings) -> StartedHost:
        """A host that imports the agent now: the one that is ready, or else a new one.

        Its `end` does not wait until it is gone; the next one that is taken does so before it imports.
        """
        self._stop_preparing()
        same_python, self.agent = settings.agent.python == self.agent.python, settings.agent
        ready, self._ready = self._ready, None
        if ready is not None and not (same_python and self._is_good(ready)):
            self._close(ready.host)
            ready = None
        # What is being closed may still hold what the agent needs, such as a port.
        after = [*self._closing.values()]
        if ready is None:
            host = Host(python=settings.agent.python, problem=settings.agent.problem)
        else:
            host = ready.host
            after.append(ready.asked)
        loading = begin_loading(host, settings, after)
        self._loading.add(loading)
        loading.add_done_callback(self._loading.discard)
        return StartedHost(settings, host, loading, self._end)

    def prepare(self) -> None:
        """Have a host ready as soon as it is in nobody's way: to be called after the verdict."""
        self._stop_preparing()
        if self._is_closed:
            # Nobody would end it.
            return
        self._preparing = asyncio.create_task(self._prepare())

    async def ready(self) -> None:
        """Wait until the host that is being prepared, if one is, has everything."""
        if self._preparing is not None:
            await asyncio.wait([self._preparing])
        if self._ready is not None:
            await self._ready.host.preloaded.wait()

    async def close(self) -> None:
        """End the host that is ready, and wait until all that have ended are gone.

        Whoever ends one later waits for that alone: nothing else does, and the loop may be about to end.
        """
        self._is_closed = True
        self._stop_preparing()
        if self._ready is not None:
            self._close(self._ready.host)
            self._ready = None
        while self._closing:
            await asyncio.wait(self._closing.values())

    def _is_good(self, ready: _Ready) -> bool:
        return ready.host.alive and ready.surroundings == self._surroundings()

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
        asked = asyncio.create_task(host.preload(self.agent.folder, self._steps))
        self._ready = _Ready(host, surroundings, asked)

    def _surroundings(self) -> object:
        """What decides what a library is, and what it finds when it is imported."""
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
