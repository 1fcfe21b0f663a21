"""The workers of a run as the run sees them, and those that cannot be used for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from evaltui.core.metrics.gemini_access import GeminiAccess
from evaltui.core.model.errors import ErrorInfo
from evaltui.core.model.events import Json
from evaltui.runner.dask.calls import WorkerCalls
from evaltui.runner.dask.chunks import Chunk
from evaltui.runner.dask.messages import Score, ToWorker, Variables, WorkerReady
from evaltui.runner.dask.worker import hear, prepare
from evaltui.runner.parent.gate.gate import Gate
from evaltui.runner.parent.work import Listener
from evaltui.runner.plan import Noted, WorkItem

# Seconds.
_AGAIN = 0.5
# Seconds after which a worker that has said nothing is one of those that could not begin. The first run on a
# worker imports evaltui there.
_PATIENCE = 30.0


@dataclass(eq=False)
class ScoreRequest:
    message: Score
    answer: asyncio.Future[Json] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    worker: RemoteWorker | None = None
    """The worker that has it; None while it waits."""
    is_alone: bool = False
    """Whether it may have ended a worker: no other is computed beside it."""
    deaths: int = 0


class RemoteWorker:
    """One worker, from its first word until it is lost or the run is over."""

    def __init__(
        self, address: str, arrived: WorkerReady, hosts: int, client: Any, topic: str, gate: Gate | None
    ) -> None:
        """It has at most so many `hosts`, and one for each of its threads."""
        self.address = address
        self.arrived = arrived
        self.hosts = min(hosts, arrived.threads)
        self.calls = WorkerCalls(gate, self.send)
        """Its model calls at the gate."""
        self.chunks: dict[int, Chunk] = {}
        """Those that it was given, by number."""
        self.is_busy = False
        """Whether others compute there: a chunk did not begin, and none has since."""
        self.requests: set[ScoreRequest] = set()
        """What it computes metrics or asks judges for."""
        self.gemini: GeminiAccess | None = None
        """How judges reach Gemini from there; None until it has its variables and can be used."""
        self._client = client
        self._topic = topic
        self._is_closed = False
        self._outbox: list[ToWorker] = []
        self._sending: asyncio.Task[None] | None = None

    def on_begun(self, number: int) -> None:
        """It has begun with a chunk."""
        self.is_busy = False
        if chunk := self.chunks.get(number):
            chunk.has_begun = True

    @property
    def machine(self) -> str:
        """The host name or address of its machine."""
        return urlsplit(self.address).hostname or self.address

    @property
    def in_flight(self) -> int:
        """How many items are running."""
        return sum(len(chunk.events) for chunk in self.chunks.values())

    @property
    def is_reserved(self) -> bool:
        """Whether it runs an item that may end it."""
        return any(chunk.is_alone for chunk in self.chunks.values())

    async def prepare(self, variables: Variables) -> None:
        """Give it the variables of its hosts."""
        self.gemini = await self._run(prepare, variables)

    def send(self, message: ToWorker) -> None:
        self._outbox.append(message)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())

    async def _send(self) -> None:
        while self._outbox:
            messages, self._outbox = self._outbox, []
            await self._run(hear, messages)

    async def _run(self, function: Callable[..., Any], argument: Any) -> Any:
        """Again until it succeeds: of a worker that is lost, the scheduler tells."""
        while not self._is_closed:
            with suppress(OSError, TimeoutError):
                answers = await self._client.run(
                    function, self._topic, argument, workers=[self.address], on_error="return"
                )
                if not isinstance(answer := answers[self.address], Exception):
                    return answer
            await asyncio.sleep(_AGAIN)
        return None

    def close(self) -> None:
        self._is_closed = True
        if self._sending is not None:
            self._sending.cancel()


class UnfitWorkers:
    """The user is told of each, once for what is the same on one machine."""

    def __init__(self, listener: Listener[WorkItem], on_update: Callable[[Noted], None]) -> None:
        self._listener = listener
        self._on_update = on_update
        # By address, why: a sentence.
        self._reasons: dict[str, str] = {}
        self._notes: set[str] = set()
        # Why some worker did not begin, and a `time.monotonic()`.
        self._failed: tuple[str, float] | None = None
        self.error: ErrorInfo | None = None
        """Why the agent cannot be imported on the first on which it cannot."""

    def __contains__(self, address: str) -> bool:
        return address in self._reasons

    def __bool__(self) -> bool:
        return bool(self._reasons) or self._failed is not None

    def __str__(self) -> str:
        """Why, in sentences."""
        failed = [self._failed[0]] if self._failed else []
        return ". ".join(dict.fromkeys([*self._reasons.values(), *failed]))

    def are_all(self, addresses: Collection[str]) -> bool:
        """Whether none but these is there; where some did not begin, those that are silent are such."""
        others = [address for address in addresses if address not in self._reasons]
        if self._failed is not None and time.monotonic() - self._failed[1] > _PATIENCE:
            others = []
        return bool(addresses) and not others

    def add(self, worker: RemoteWorker, why: ErrorInfo | str) -> None:
        """`why` is a clause, or an error of the agent's import."""
        if worker.address in self._reasons:
            return
        error = why if isinstance(why, ErrorInfo) else None
        reason = f"worker {worker.machine} is not used: {why}"
        if error is not None and worker.arrived.differences:
            reason += f". Its versions differ: {', '.join(worker.arrived.differences)}"
        self._reasons[worker.address] = reason
        self.error = self.error or error
        if self._note(reason) and error is not None:
            for line in error.traceback.splitlines():
                self._listener.printed(None, "stderr", f"{worker.machine}: {line}")

    def warn(self, worker: RemoteWorker) -> None:
        """Its versions differ, and it is used all the same."""
        self._note(f"versions on worker {worker.machine} differ: {', '.join(worker.arrived.differences)}")

    def begin_failed(self, error: Exception) -> None:
        """Some worker raised when the run was brought to it."""
        # Dask wraps what it cannot send.
        what = str(error) if type(error) is Exception else f"{type(error).__name__}: {error}"
        reason = f"a worker cannot begin: {what}"
        self._failed = reason, time.monotonic()
        self._note(reason)

    def _note(self, text: str) -> bool:
        """Whether it is new."""
        is_new = text not in self._notes
        self._notes.add(text)
        if is_new:
            self._on_update(Noted(text))
        return is_new
