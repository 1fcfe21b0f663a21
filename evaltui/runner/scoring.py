"""Hosts that compute custom metrics and ask judges, on this machine or on the workers of a cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial, reduce
from operator import or_
from pathlib import Path
from typing import Any, Literal, Protocol

from evaltui.agents.errors import HostLostError
from evaltui.agents.protocol import FilesOpened
from evaltui.core.metrics.gemini_access import GeminiAccess
from evaltui.core.model.events import Json
from evaltui.project.agent_address import AgentAddress
from evaltui.project.folders import agent_folder
from evaltui.project.interpreters import OWN, Interpreter
from evaltui.runner.gated_requests import CallGate, GatedRequest
from evaltui.runner.host import Host, OnConsole, import_limit

ScoringKind = Literal["metrics", "models", "functions"]
"""Custom metrics, models that judge, and functions of the user's in the place of such a model."""


class JudgingRoom:
    """Limits how many runs of cases are judged at once, so that their events do not fill the memory."""

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._inside = 0
        self._has_place = asyncio.Event()
        self.empty = asyncio.Event()
        """Set while nothing is judged."""
        self.empty.set()

    async def enter(self) -> None:
        """Wait until one more may be judged."""
        while self._inside >= self._most():
            self._has_place.clear()
            await self._has_place.wait()
        self._inside += 1
        self.empty.clear()

    def leave(self) -> None:
        """A run of a case has been judged."""
        self._inside -= 1
        self._has_place.set()
        if not self._inside:
            self.empty.set()


class ScoringHosts(Protocol):
    """Processes on this machine, or on the workers of a cluster."""

    room: JudgingRoom

    @property
    def gemini(self) -> GeminiAccess | None:
        """Why judges cannot ask Gemini there; None where they can, or where the environment of this machine
        decides."""
        ...

    @property
    def opened(self) -> FilesOpened:
        """The user's own files that processes on this machine have opened so far."""
        ...

    async def answer(self, kind: ScoringKind, message: Json) -> Json:
        """The answer to a request `metric` or `ask`, to which the agent's folder is added.

        Raises RequestFailedError, HostLostError, AgentBrokenError or RunStoppedError.
        """
        ...

    async def close(self) -> None: ...

    async def kill(self) -> None:
        """Ends the processes by force."""
        ...


class _ScoringHost:
    """A process that starts with the first request, and again after a request that brought it down."""

    def __init__(
        self, start: Callable[[], Host], timeout: float, on_console: OnConsole, gate: CallGate[Any] | None
    ) -> None:
        self._start = start
        self._timeout = timeout
        self._on_console = on_console
        self._gate = gate
        self._host: Host | None = None
        self._imported: set[str] = set()
        self._under_way = 0
        self._last = 0
        self._alone = asyncio.Lock()
        self.opened = FilesOpened()

    async def answer(self, message: Json) -> Json:
        host = await self._running_host()
        self._last += 1
        number, was_alone = self._last, not self._under_way
        self._under_way += 1
        try:
            return await self._put(message, host, self._imported)
        except HostLostError:
            if was_alone and number == self._last:
                raise
        finally:
            self._under_way -= 1
        # Each request that was under way is repeated alone, which shows the guilty one.
        async with self._alone:
            fresh = self._start()
            try:
                await self._load(fresh)
                return await self._put(message, fresh, set())
            finally:
                await fresh.close()

    async def _put(self, message: Json, host: Host, imported: set[str]) -> Json:
        """The answer of this host, which has `imported` these functions."""
        if message["op"] == "metric" and message["path"] not in imported:
            # The first import does not count as time of the metric.
            keys = ("agent_folder", "path", "source", "file", "first_line")
            function = {key: message[key] for key in keys if key in message}
            await host.request({"op": "import", **function}, import_limit(self._timeout))
            imported.add(message["path"])
        gated = GatedRequest(self._gate, self._timeout) if self._gate else None
        try:
            return await host.request(message, self._timeout, gated=gated)
        finally:
            self.opened |= host.opened

    async def _running_host(self) -> Host:
        lost = self._host
        if lost is not None and lost.alive:
            return lost
        # Before anything is awaited: requests that come meanwhile go to the same one.
        host = self._host = self._start()
        self._imported = set()
        await self._load(host)
        if lost is not None:
            await lost.kill()
        return host

    async def _load(self, host: Host) -> None:
        host.listen(self._on_console)
        await host.load(None, time.monotonic(), import_limit(self._timeout))

    async def close(self) -> None:
        if self._host is not None:
            await self._host.close()

    async def kill(self) -> None:
        if self._host is not None:
            await self._host.kill()


class LocalScoring:
    """`ScoringHosts` of this machine, which start with their first request."""

    gemini: GeminiAccess | None = None

    def __init__(
        self,
        agent: AgentAddress,
        parallel: int,
        timeout: float,
        on_console: OnConsole,
        gate: CallGate[Any] | None,
        variables: Mapping[str, str] | None = None,
        folder: Path | None = None,
        on_start: Callable[[str], None] | None = None,
    ) -> None:
        """`parallel` runs of cases are judged at once; `timeout` is that of a request, in seconds.

        `variables` and `folder` are as `Host` has them. `on_start` gets a sentence before the agent's Python
        is started for a function.
        """
        self.room = JudgingRoom(lambda: parallel)
        self._agent_folder = str(agent_folder(agent.folder).resolve())
        self._python = python = agent.interpreter
        self._on_start = on_start
        own = partial(_host_in, OWN, variables)
        of_agent = partial(_host_in, python, variables, folder)
        # Hosts of their own: a metric function that blocks its process would hold up every answer. Models are
        # asked from evaltui's own Python, functions that stand for one are in the agent's.
        self._hosts: Mapping[ScoringKind, _ScoringHost] = {
            "metrics": _ScoringHost(of_agent, timeout, on_console, None),
            "models": _ScoringHost(own, timeout, on_console, gate),
            "functions": _ScoringHost(of_agent, timeout, on_console, gate),
        }

    @property
    def opened(self) -> FilesOpened:
        return reduce(or_, (host.opened for host in self._hosts.values()))

    async def answer(self, kind: ScoringKind, message: Json) -> Json:
        if kind != "models" and self._on_start is not None:
            starter = message["path"] if kind == "metrics" else message["judge"]
            reason = f" (from {self._python.reason})" if self._python.reason else ""
            self._on_start(f"function {starter} starts {self._python.path}{reason}")
            self._on_start = None
        return await self._hosts[kind].answer({**message, "agent_folder": self._agent_folder})

    async def close(self) -> None:
        await asyncio.gather(*(host.close() for host in self._hosts.values()))

    async def kill(self) -> None:
        await asyncio.gather(*(host.kill() for host in self._hosts.values()))


def _host_in(python: Interpreter, variables: Mapping[str, str] | None, folder: Path | None = None) -> Host:
    # Asking for the problem may start the Python.
    return Host("the metric", python.executable, python.problem, variables, folder)
