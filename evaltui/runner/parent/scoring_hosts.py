"""What computes the metrics of a run that are no pure functions: custom ones, and those of judges."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, Literal, Protocol

from evaltui.core.metrics.gemini_access import GeminiAccess
from evaltui.core.model.events import Json
from evaltui.files.agent_address import AgentAddress
from evaltui.files.interpreters import OWN
from evaltui.runner.parent.gate.requests import CallGate
from evaltui.runner.parent.host_console import OnConsole
from evaltui.runner.parent.metric_host import MetricHost
from evaltui.runner.protocol import FilesOpened

ScoringKind = Literal["metrics", "models", "functions"]
"""Custom metrics, models that judge, and functions of the user's that stand for such a model."""


class JudgingRoom:
    """Runs of cases that are being judged: so many that what they did does not fill the memory."""

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._inside = 0
        self._left = asyncio.Event()
        self.empty = asyncio.Event()
        """Set while nothing is judged."""
        self.empty.set()

    async def enter(self) -> None:
        """Wait until one more may be judged."""
        while self._inside >= self._most():
            self._left.clear()
            await self._left.wait()
        self._inside += 1
        self.empty.clear()

    def leave(self) -> None:
        """One has been judged."""
        self._inside -= 1
        self._left.set()
        if not self._inside:
            self.empty.set()


class ScoringHosts(Protocol):
    """Processes on this machine, or on the workers of a cluster."""

    room: JudgingRoom

    @property
    def gemini(self) -> GeminiAccess | None:
        """Why judges cannot ask Gemini there; None where they can, or this machine's environment says it."""
        ...

    @property
    def opened(self) -> FilesOpened:
        """The user's own files that processes on this machine have opened so far."""
        ...

    async def answer(self, kind: ScoringKind, message: Json) -> Json:
        """What a request comes to. Raises what `MetricHost.answer` raises."""
        ...

    async def close(self) -> None: ...

    async def kill(self) -> None:
        """Ends the processes by force."""
        ...


class LocalScoring:
    """`ScoringHosts` of this machine, which start when they are first asked."""

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
        """`parallel` is how many runs of cases are judged at once, `timeout` that of a request in seconds.

        `on_start` gets a sentence before the agent's Python is started for a function.
        """
        self.room = JudgingRoom(lambda: parallel)
        self._python = python = agent.interpreter
        self._on_start = on_start
        # Hosts of their own: a metric function that blocks its process would hold up every answer. Models are
        # asked from evaltui's own Python, functions that stand for one are in the agent's.
        self._hosts: Mapping[ScoringKind, MetricHost] = {
            "metrics": MetricHost(timeout, on_console, python, variables=variables, folder=folder),
            "models": MetricHost(timeout, on_console, OWN, gate, variables),
            "functions": MetricHost(timeout, on_console, python, gate, variables, folder),
        }

    @property
    def opened(self) -> FilesOpened:
        return reduce(or_, (host.opened for host in self._hosts.values()))

    async def answer(self, kind: ScoringKind, message: Json) -> Json:
        if kind != "models" and self._on_start is not None:
            starter = message["path"] if kind == "metrics" else message["judge"]
            found_by = f" (from {self._python.reason})" if self._python.reason else ""
            self._on_start(f"function {starter} starts {self._python.path}{found_by}")
            self._on_start = None
        return await self._hosts[kind].answer(message)

    async def close(self) -> None:
        await asyncio.gather(*(one.close() for one in self._hosts.values()))

    async def kill(self) -> None:
        await asyncio.gather(*(one.kill() for one in self._hosts.values()))
