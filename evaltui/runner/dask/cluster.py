"""Connects to the scheduler of a run: a `LocalCluster` for `local:N`, else a running Dask scheduler."""

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

from evaltui.project.run_settings import dask_address
from evaltui.runner.pool import ExecutorError

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
