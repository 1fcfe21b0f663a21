"""The workers of a run on the run's side, and which of them cannot be used."""

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
from evaltui.runner.dask.worker import deliver, prepare
from evaltui.runner.gate.gate import Gate
from evaltui.runner.plan import Noted, WorkItem
from evaltui.runner.work import Listener

# Seconds.
_RETRY_INTERVAL = 0.5
# Seconds after which a silent worker counts as unable to start the run. Its first run imports evaltui.
_SILENT_SECONDS = 30.0


@dataclass(eq=False)
class ScoreRequest:
    """A scoring request and its answer, which may wait for a worker."""

    message: Score
    answer: asyncio.Future[Json] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    worker: RemoteWorker | None = None
    """The worker that computes it; None while it waits."""
    is_alone: bool = False
    """Whether it may have killed a worker; a worker then computes nothing beside it."""
    deaths: int = 0


class RemoteWorker:
    """One worker, from its first message until it is lost or the run is over."""

    def __init__(
        self, address: str, arrived: WorkerReady, hosts: int, client: Any, topic: str, gate: Gate | None
    ) -> None:
        """The worker has at most so many `hosts`, and at most one for each of its threads."""
        self.address = address
        self.arrived = arrived
        self.hosts = min(hosts, arrived.threads)
        self.calls = WorkerCalls(gate, self.send)
        """Its model calls at the gate."""
        self.chunks: dict[int, Chunk] = {}
        """The chunks that the worker has, by number."""
        self.is_busy = False
        """Whether other clients of Dask use the worker: a chunk did not start in time, and none has since."""
        self.requests: set[ScoreRequest] = set()
        """The scoring requests that the worker has."""
        self.gemini: GeminiAccess | None = None
        """How judges reach Gemini from the worker; None until the worker is prepared."""
        self._client = client
        self._topic = topic
        self._is_closed = False
        self._outbox: list[ToWorker] = []
        self._sending: asyncio.Task[None] | None = None

    def on_chunk_started(self, number: int) -> None:
        """The worker has started a chunk."""
        self.is_busy = False
        if chunk := self.chunks.get(number):
            chunk.is_started = True

    @property
    def machine(self) -> str:
        """The host name or address of its machine."""
        return urlsplit(self.address).hostname or self.address

    @property
    def in_flight(self) -> int:
        """Number of items that are running."""
        return sum(len(chunk.events) for chunk in self.chunks.values())

    @property
    def is_reserved(self) -> bool:
        """Whether the worker runs an item that may kill it."""
        return any(chunk.is_alone for chunk in self.chunks.values())

    async def prepare(self, variables: Variables) -> None:
        """Sends the worker the variables of its hosts."""
        self.gemini = await self._run(prepare, variables)

    def send(self, message: ToWorker) -> None:
        self._outbox.append(message)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())

    async def _send(self) -> None:
        while self._outbox:
            messages, self._outbox = self._outbox, []
            await self._run(deliver, messages)

    async def _run(self, function: Callable[..., Any], argument: Any) -> Any:
        """Runs a function on the worker, again until it succeeds. The scheduler reports workers that are
        lost."""
        while not self._is_closed:
            with suppress(OSError, TimeoutError):
                answers = await self._client.run(
                    function, self._topic, argument, workers=[self.address], on_error="return"
                )
                if not isinstance(answer := answers[self.address], Exception):
                    return answer
            await asyncio.sleep(_RETRY_INTERVAL)
        return None

    def close(self) -> None:
        self._is_closed = True
        if self._sending is not None:
            self._sending.cancel()


class UnfitWorkers:
    """The workers that cannot be used. Tells the user of each, once where machine and reason are the same."""

    def __init__(self, listener: Listener[WorkItem], on_update: Callable[[Noted], None]) -> None:
        self._listener = listener
        self._on_update = on_update
        # The reason by the address of a worker: a sentence.
        self._reasons: dict[str, str] = {}
        self._notes: set[str] = set()
        # Why some worker could not start the run, and when, a `time.monotonic()`.
        self._failed: tuple[str, float] | None = None
        self.error: ErrorInfo | None = None
        """The error of the agent's import on the first worker where it failed; None without such an error."""

    def __contains__(self, address: str) -> bool:
        return address in self._reasons

    def __bool__(self) -> bool:
        return bool(self._reasons) or self._failed is not None

    def __str__(self) -> str:
        """The reasons, in sentences."""
        failed = [self._failed[0]] if self._failed else []
        return ". ".join(dict.fromkeys([*self._reasons.values(), *failed]))

    def are_all(self, addresses: Collection[str]) -> bool:
        """Whether all workers at these addresses are unfit. After a failed start, silent workers count as
        unfit."""
        others = [address for address in addresses if address not in self._reasons]
        if self._failed is not None and time.monotonic() - self._failed[1] > _SILENT_SECONDS:
            others = []
        return bool(addresses) and not others

    def add(self, worker: RemoteWorker, why: ErrorInfo | str) -> None:
        """Marks a worker as unfit. `why` is a clause, or the error of the agent's import."""
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
        """Tells the user that a worker has other versions; it is used all the same."""
        self._note(f"versions on worker {worker.machine} differ: {', '.join(worker.arrived.differences)}")

    def on_start_failed(self, error: Exception) -> None:
        """Handles the error of a worker that could not start the run."""
        # Dask wraps what it cannot send.
        what = str(error) if type(error) is Exception else f"{type(error).__name__}: {error}"
        reason = f"a worker cannot begin: {what}"
        self._failed = reason, time.monotonic()
        self._note(reason)

    def _note(self, text: str) -> bool:
        """Shows a note unless it was shown before. Returns whether it is new."""
        is_new = text not in self._notes
        self._notes.add(text)
        if is_new:
            self._on_update(Noted(text))
        return is_new
