"""The scheduler of a run, and its workers on the run's side: a `LocalCluster` for `local:N`, else remote."""

from __future__ import annotations

import asyncio
import itertools
import logging
import multiprocessing
import os
import sys
import time
import warnings
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import asynccontextmanager, redirect_stderr, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import resource_tracker
from platform import python_version_tuple
from typing import Any
from urllib.parse import urlsplit

import dask
from distributed import Client, LocalCluster, SchedulerPlugin, Security, Status
from distributed.versions import VersionMismatchWarning

from evaltui.agents.errors import HostLostError
from evaltui.agents.protocol import FilesOpened
from evaltui.core.metrics.gemini_access import GeminiAccess
from evaltui.core.model.errors import ErrorInfo, ErrorKind
from evaltui.core.model.events import Json
from evaltui.project.run_settings import dask_address
from evaltui.runner.dask.chunks import Chunk
from evaltui.runner.dask.messages import (
    CallStep,
    Go,
    LeaveScore,
    Score,
    Scored,
    StopCalls,
    ToWorker,
    Wait,
    WorkerReady,
)
from evaltui.runner.dask.worker import deliver
from evaltui.runner.gate import Gate
from evaltui.runner.limiter import Call
from evaltui.runner.plan import Noted, WorkItem
from evaltui.runner.pool import ExecutorError, Listener
from evaltui.runner.scoring import JudgingRoom, ScoringKind

# Seconds.
_RETRY_INTERVAL = 0.5
# Seconds after which a silent worker counts as unable to start the run. Its first run imports evaltui.
_SILENT_SECONDS = 30.0


# Seconds for which a call of a lost worker still counts as running: its model may still be at work.
_LOST_CALL_SECONDS = 1.0


class WorkerCalls:
    """The model calls of one worker at the gate of the run: a Dask actor would be lost with its
    worker. `send` sends the gate's messages to the worker."""

    def __init__(self, gate: Gate | None, send: Callable[[Go | Wait | StopCalls], None]) -> None:
        self._gate = gate
        self._send = send
        self._calls: dict[int, Call] = {}

    def on_step(self, call_step: CallStep) -> None:
        gate = self._gate
        if gate is None:
            return
        if call_step.step == "ask":
            on_go = partial(self._send, Go(call_step.number))
            on_stop = partial(self._send, StopCalls())
            self._calls[call_step.number] = gate.ask(
                call_step.model, call_step.size, on_go, on_stop, is_first=call_step.is_first
            )
            return
        if (gated := self._calls.pop(call_step.number, None)) is None:
            return
        match call_step.step:
            case "end":
                gate.end(gated, call_step.usage)
            case "refused":
                gate.refused(gated, call_step.retry_after)
                model = gated.model
                self._send(Wait(model, gate.refused_until(model) - gate.clock()))
            case "withdraw":
                gate.withdraw(gated)

    def close(self) -> None:
        """Withdraws the calls of a lost worker; calls that models may be at work on a little later."""
        calls, self._calls = self._calls, {}
        loop = asyncio.get_running_loop()
        for gated in calls.values():
            if self._gate is None:
                continue
            if gated.began is None:
                self._gate.withdraw(gated)
            else:
                loop.call_later(_LOST_CALL_SECONDS, self._gate.withdraw, gated)


@dataclass(eq=False)
class ScoreRequest:
    """A scoring request and its answer, which may wait for a worker."""

    message: Score
    answer: asyncio.Future[Json] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    worker: RemoteWorker | None = None
    """The worker that computes it; None while it waits."""
    deaths: int = 0
    """Number of workers that died while they computed it."""


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

    def send(self, message: ToWorker) -> None:
        self._outbox.append(message)
        if not self._is_closed and (self._sending is None or self._sending.done()):
            self._sending = asyncio.create_task(self._send())

    async def _send(self) -> None:
        while self._outbox:
            messages, self._outbox = self._outbox, []
            while True:
                # The scheduler reports workers that are lost.
                with suppress(OSError, TimeoutError):
                    answers = await self._client.run(
                        deliver, self._topic, messages, workers=[self.address], on_error="return"
                    )
                    if not isinstance(answers[self.address], Exception):
                        break
                await asyncio.sleep(_RETRY_INTERVAL)

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


# Deaths of workers that computed a request, until that request is to blame.
_DEATHS = 3


class ScoringOnWorkers:
    """`ScoringHosts` on workers. A request of a lost worker goes to another one, so each gets one answer.

    It uses messages instead of Dask tasks, for which a worker would have no room while it runs chunks.
    """

    def __init__(
        self, parallel: int, fit: Callable[[], Iterable[RemoteWorker]], *, is_elsewhere: bool
    ) -> None:
        """`parallel` is the number of cases that are judged at once on each worker, `fit` returns the workers
        that can be used now, `is_elsewhere` is whether they may be on other machines."""
        self._fit = fit
        self._is_elsewhere = is_elsewhere
        self.room = JudgingRoom(lambda: parallel * max(1, sum(1 for _ in fit())))
        self._numbers = itertools.count(1)
        self._open: dict[int, ScoreRequest] = {}
        self._waiting: deque[ScoreRequest] = deque()
        self._is_over = False
        self.opened = FilesOpened()

    @property
    def gemini(self) -> GeminiAccess | None:
        accesses = [worker.arrived.gemini for worker in self._fit()]
        if not self._is_elsewhere or not accesses or any(not access.problem for access in accesses):
            return None
        return replace(
            accesses[0],
            problem=f"{accesses[0].problem} on the workers",
            fix="Send such variables with --ship-env, or set them on the workers",
        )

    async def answer(self, kind: ScoringKind, message: Json) -> Json:
        if self._is_over:
            raise asyncio.CancelledError
        request = ScoreRequest(Score(next(self._numbers), kind, message))
        number = request.message.number
        self._open[number] = request
        self._waiting.append(request)
        self.hand_out()
        try:
            return await request.answer
        finally:
            del self._open[number]
            if request in self._waiting:
                self._waiting.remove(request)
            if (worker := request.worker) is not None:
                worker.send(LeaveScore(number))
                worker.requests.discard(request)
                self.hand_out()

    def hand_out(self) -> None:
        """Sends waiting requests to the workers that have the fewest."""
        for _ in range(len(self._waiting)):
            request = self._waiting.popleft()
            worker = min(self._possible(request), key=lambda worker: len(worker.requests), default=None)
            if worker is None:
                self._waiting.append(request)
                continue
            request.worker = worker
            worker.requests.add(request)
            worker.send(request.message)

    def _possible(self, request: ScoreRequest) -> list[RemoteWorker]:
        workers = [*self._fit()]
        if request.message.kind != "models":
            return workers
        return [worker for worker in workers if not worker.arrived.gemini.problem] or workers

    def on_scored(self, worker: RemoteWorker, scored: Scored) -> None:
        """Handles an answer of a worker."""
        self.opened |= scored.opened
        request = self._open.get(scored.number)
        if request is None or request.worker is not worker:
            return
        request.worker = None
        worker.requests.discard(request)
        if not request.answer.done():
            if isinstance(scored.answer, Exception):
                request.answer.set_exception(scored.answer)
            else:
                request.answer.set_result(scored.answer)
        self.hand_out()

    def lose(self, worker: RemoteWorker) -> None:
        """Gives the requests of a worker that died to others."""
        requests, worker.requests = worker.requests, set()
        for request in sorted(requests, key=lambda request: request.message.number):
            request.worker = None
            request.deaths += 1
            if request.deaths < _DEATHS:
                self._waiting.append(request)
            elif not request.answer.done():
                what = f"{_DEATHS} workers died while they computed this metric"
                error = ErrorInfo("WorkerLostError", what, kind=ErrorKind.HOST_LOST)
                request.answer.set_exception(HostLostError(error))
        self.hand_out()

    def end(self) -> None:
        """Cancels all requests when the run is over."""
        self._is_over = True
        for request in self._open.values():
            request.answer.cancel()

    async def close(self) -> None:
        """Does nothing: workers end their scoring when they leave the run."""

    async def kill(self) -> None:
        """Does nothing: the scoring hosts are killed with the hosts of the cases."""


# Seconds.
_CONNECT_TIMEOUT = 15.0
_CLOSE_TIMEOUT = 4.0
# Variables that Dask sets for its workers in this process, where agents that run afterwards would get them.
_SET_BY_DASK = ("PYTHONHASHSEED", "__DASK_PARENT_PID")
_CONFIG = {
    # The scheduler is in this process, so it need not store what passes through it.
    "distributed.admin.low-level-log-length": 0,
    "distributed.nanny.pre-spawn-environ": {},
    # Dask starts web servers in any case; these have no page.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # Every Dask process measures itself a hundred times a second; nothing shows the figures.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.scheduler.worker-ttl": "30s",
}


class OwnCluster:
    """The scheduler and the workers of `local:N`, which start while the agent is imported here."""

    def __init__(self, count: int, threads: int) -> None:
        """`count` is the number of workers, `threads` the threads of each."""
        self._count = count
        self._threads = threads
        self._cluster: Any = None
        self._environ = {name: os.environ.get(name) for name in _SET_BY_DASK}
        self._starting = asyncio.create_task(self._start())

    async def started(self) -> Any:
        """Dask's cluster. Raises ExecutorError."""
        await asyncio.wait({self._starting})
        try:
            return self._starting.result()
        except Exception as error:
            reason = error.__cause__ or error
            raise ExecutorError(f"workers of this machine do not start: {reason}") from error

    async def _start(self) -> Any:
        # Textual's standard error is no file, which this process could be started with.
        with redirect_stderr(sys.__stderr__):
            resource_tracker.ensure_running()
        with dask.config.set(_CONFIG):
            self._cluster = LocalCluster(
                n_workers=self._count,
                threads_per_worker=self._threads,
                host="127.0.0.1",
                protocol="tls://",
                # Without certificates every user of this machine could connect and run code here.
                security=Security.temporary(),
                dashboard_address=None,
                scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
                memory_limit=0,
                preload=["evaltui.runner.dask.worker"],
                silence_logs=logging.CRITICAL,
                asynchronous=True,
            )
            return await self._cluster

    def replace_lost_workers(self) -> None:
        """Starts new workers in place of workers that Dask gave up: killed while they started, or slow to
        start again."""
        workers: dict[Any, Any] = self._cluster.workers
        for name, nanny in list(workers.items()):
            if nanny.status in (Status.closed, Status.failed):
                del workers[name]
        if len(workers) < self._count:
            self._cluster.scale(self._count)

    async def close(self) -> None:
        if self._starting.done() and self._starting.exception() is None:
            _silence_logs()
        else:
            self._starting.cancel()
            await asyncio.wait({self._starting})
        try:
            if self._cluster is not None:
                async with asyncio.timeout(_CLOSE_TIMEOUT):
                    await self._cluster.close()
        except Exception:
            # Workers that were still starting are closed with any error.
            kill_workers()
        for name, value in self._environ.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def kill_workers() -> None:
    """Kills the workers of `local:N`, the only child processes of this kind."""
    for child in multiprocessing.active_children():
        child.kill()


def _silence_logs() -> None:
    """Silences Dask's logs, which would spoil the terminal; the run reports such problems itself."""
    for name in [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "distributed"]:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


@asynccontextmanager
async def connected(scheduler: str, own: OwnCluster | None, topic: str) -> AsyncIterator[Any]:
    """A client of the scheduler, named `topic`; for `local:N` a client of the cluster `own`.

    Raises ExecutorError where no scheduler answers.
    """
    address = dask_address(scheduler) if own is None else await own.started()
    _silence_logs()
    # The run compares the versions that matter itself and reports them in one line.
    warnings.filterwarnings("ignore", category=VersionMismatchWarning)
    # Chunks are as large as cases are.
    warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
    client: Any = None
    try:
        try:
            client = Client(
                address, asynchronous=True, timeout=_CONNECT_TIMEOUT, set_as_default=False, name=topic
            )
            # Dask's own time-out ends with the connection; the server may be silent after that.
            async with asyncio.timeout(_CONNECT_TIMEOUT):
                await client
        except Exception as error:
            # Another kind of server may answer anything, and Dask raises any error when it reads that.
            raise ExecutorError(_unreachable(scheduler, error)) from error
        # Another Python could not run code of this one.
        with suppress(OSError):
            if (await client.run_on_scheduler(python_version_tuple))[:2] == python_version_tuple()[:2]:
                await client.run_on_scheduler(_cleanup(topic))
        yield client
    finally:
        # A scheduler that is gone does not say goodbye.
        with suppress(Exception):
            async with asyncio.timeout(_CLOSE_TIMEOUT):
                await client.close()


def _unreachable(scheduler: str, error: Exception) -> str:
    if scheduler.startswith("tls:") and isinstance(error, (TypeError, ValueError)):
        reason = str(error).partition("\n")[0]
        return (
            f"{scheduler}: {reason}. Give Dask's certificates: distributed.comm.tls in ~/.config/dask, "
            "or DASK_DISTRIBUTED__COMM__TLS__… in the environment"
        )
    if isinstance(error, (OSError, TimeoutError)):
        return f"{scheduler}: no Dask scheduler answers. Start one with `dask scheduler`, or use local:N"
    return f"{scheduler} is no Dask scheduler. `dask scheduler` prints its address"


def _cleanup(topic: str) -> Callable[..., Awaitable[None]]:
    """A function for the scheduler: it makes the scheduler store no events of the run, and end the run on all
    workers when its client is gone.

    Nested functions and classes are sent as code, so the scheduler need not have evaltui.
    """

    class EndOfRun(SchedulerPlugin):
        def remove_client(self, scheduler: Any, client: str) -> None:
            if f"-{topic}-" not in client:
                return

            async def end() -> None:
                with suppress(Exception):
                    await scheduler.unregister_worker_plugin(None, topic)
                scheduler._broker._topics.pop(topic, None)
                scheduler.remove_plugin(name=topic)

            scheduler._ongoing_background_tasks.call_soon(end)

    async def tidy(dask_scheduler: Any) -> None:
        # Else the scheduler would store a thousand batches of each run for its whole life, open to everybody.
        dask_scheduler._broker._topics[topic].events = deque(maxlen=0)
        dask_scheduler.add_plugin(EndOfRun(), name=topic)

    return tidy
