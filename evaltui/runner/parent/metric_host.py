"""A process for custom metric functions or judges."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaltui.core.model.events import Json
from evaltui.files.interpreters import OWN, Interpreter
from evaltui.runner.errors import HostLostError
from evaltui.runner.parent.gate.requests import CallGate, GatedRequest
from evaltui.runner.parent.host_console import OnConsole
from evaltui.runner.parent.supervisor import Host, import_limit
from evaltui.runner.protocol import FilesOpened


@dataclass(eq=False)
class _Request:
    """A request under way; `alone` is whether it was the only one all the time."""

    alone: bool


class MetricHost:
    """Started with the first metric or question, and again after one that brought it down."""

    def __init__(
        self,
        timeout: float,
        on_console: OnConsole,
        python: Interpreter = OWN,
        gate: CallGate[Any] | None = None,
        variables: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        """`variables` and `folder` are as `Host` has them."""
        self._gate = gate
        self._python = python
        self._variables = variables
        self._folder = folder
        self._timeout = timeout
        self._on_console = on_console
        self._host: Host | None = None
        self._imported: set[str] = set()
        self._under_way: list[_Request] = []
        self._one_by_one = asyncio.Lock()
        self.opened = FilesOpened()
        """The user's own files that its processes have opened so far."""

    async def answer(self, message: Json) -> Json:
        """What a request comes to, see `MetricCalls`.

        Raises RequestFailedError, HostLostError, AgentBrokenError or RunStoppedError.
        """
        host = await self._running_host()
        request = _Request(alone=not self._under_way)
        for other in self._under_way:
            other.alone = False
        self._under_way.append(request)
        try:
            return await self._put(message, host, self._imported)
        except HostLostError:
            if request.alone:
                raise
        finally:
            self._under_way.remove(request)
        # Which of them did it shows where each is by itself.
        async with self._one_by_one:
            by_itself = self._start()
            try:
                await self._load(by_itself)
                return await self._put(message, by_itself, set())
            finally:
                await by_itself.close()

    async def _put(self, message: Json, host: Host, imported: set[str]) -> Json:
        """The answer of this host, which has `imported` these functions."""
        if message["op"] == "metric" and message["path"] not in imported:
            # What takes long because it is the first time does not count as time of the metric.
            function = {key: message[key] for key in ("agent_folder", "path")}
            await host.request({"op": "import", **function}, import_limit(self._timeout), lambda _: None)
            imported.add(message["path"])
        gated = GatedRequest(self._gate, self._timeout) if self._gate else None
        try:
            return await host.request(message, self._timeout, lambda _: None, gated=gated)
        finally:
            self.opened |= host.opened

    async def _running_host(self) -> Host:
        lost = self._host
        if lost is not None and lost.alive:
            return lost
        # Before anything is awaited: whoever asks meanwhile gets the same one.
        host = self._host = self._start()
        self._imported = set()
        await self._load(host)
        if lost is not None:
            await lost.kill()
        return host

    def _start(self) -> Host:
        return Host(
            "the metric", self._python.executable, self._python.problem, self._variables, self._folder
        )

    async def _load(self, host: Host) -> None:
        host.listen(self._on_console)
        await host.load(None, time.monotonic(), import_limit(self._timeout))

    async def close(self) -> None:
        if self._host is not None:
            await self._host.close()

    async def kill(self) -> None:
        """Ends its process by force."""
        if self._host is not None:
            await self._host.kill()
