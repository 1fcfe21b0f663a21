"""The scheduler that a run goes to: a `LocalCluster` of Dask's for `local:N`, else one that is running."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import sys
import warnings
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, redirect_stderr, suppress
from multiprocessing import resource_tracker
from platform import python_version_tuple
from typing import Any

import dask
from distributed import Client, LocalCluster, SchedulerPlugin, Security, Status
from distributed.versions import VersionMismatchWarning

from evaltui.files.schedulers import dask_address
from evaltui.runner.parent.work import ExecutorError

# Seconds.
_CONNECT_TIMEOUT = 15.0
_CLOSE_TIMEOUT = 4.0
# What Dask sets for workers, here too, where it would reach agents that run afterwards.
_SET_BY_DASK = ("PYTHONHASHSEED", "__DASK_PARENT_PID")
_CONFIG = {
    # What passes through the scheduler is not stored there: it is in this process.
    "distributed.admin.low-level-log-length": 0,
    "distributed.nanny.pre-spawn-environ": {},
    # Dask starts web servers in any case; these have no page.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # Every process of Dask measures itself a hundred times a second, and nobody sees it.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.scheduler.worker-ttl": "30s",
}


class OwnCluster:
    """The scheduler and the workers of `local:N`, which start while the agent is imported here."""

    def __init__(self, count: int, threads: int) -> None:
        """So many workers, each with so many threads."""
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
                # Without it every user of this machine could connect and run code here.
                security=Security.temporary(),
                dashboard_address=None,
                scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
                memory_limit=0,
                preload=["evaltui.runner.dask.worker"],
                silence_logs=logging.CRITICAL,
                asynchronous=True,
            )
            return await self._cluster

    def look(self) -> None:
        """Start a worker in the place of each that Dask gave up: it does so with those that are killed while
        they start, or take long to start again."""
        workers: dict[Any, Any] = self._cluster.workers
        for name, nanny in list(workers.items()):
            if nanny.status in (Status.closed, Status.failed):
                del workers[name]
        if len(workers) < self._count:
            self._cluster.scale(self._count)

    async def close(self) -> None:
        if self._starting.done() and self._starting.exception() is None:
            _silence()
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
    """Ends the workers of `local:N` by force: only they are such children of this process."""
    for child in multiprocessing.active_children():
        child.kill()


def _silence() -> None:
    """What Dask says is told of in other words; on a terminal it would be in the way."""
    for name in [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "distributed"]:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


@asynccontextmanager
async def connected(scheduler: str, own: OwnCluster | None, topic: str) -> AsyncIterator[Any]:
    """A client of the scheduler that is called `topic`; for `local:N`, of a cluster of our `own`.

    Raises ExecutorError where none answers.
    """
    address = dask_address(scheduler) if own is None else await own.started()
    _silence()
    # Versions that matter are compared, and told in one line.
    warnings.filterwarnings("ignore", category=VersionMismatchWarning)
    # Chunks are as large as cases are.
    warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
    client: Any = None
    try:
        try:
            client = Client(
                address, asynchronous=True, timeout=_CONNECT_TIMEOUT, set_as_default=False, name=topic
            )
            # Its own time-out ends with the connection; what answers may say nothing then.
            async with asyncio.timeout(_CONNECT_TIMEOUT):
                await client
        except Exception as error:
            # What is no scheduler may answer anything, and Dask raises whatever comes of reading it.
            raise ExecutorError(_unreachable(scheduler, error)) from error
        # Another Python could not run code of this one.
        with suppress(OSError):
            if (await client.run_on_scheduler(python_version_tuple))[:2] == python_version_tuple()[:2]:
                await client.run_on_scheduler(_tidying(topic))
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


def _tidying(topic: str) -> Callable[..., Awaitable[None]]:
    """Has a scheduler store nothing of the run, and end it on all workers when its client is gone.

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
        # It would store a thousand batches of each run for as long as it lives, for everybody to ask for.
        dask_scheduler._broker._topics[topic].events = deque(maxlen=0)
        dask_scheduler.add_plugin(EndOfRun(), name=topic)

    return tidy
