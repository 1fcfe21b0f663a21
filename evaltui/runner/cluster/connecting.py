"""The scheduler that a run goes to: somebody's, by its address, or one of our own on this machine."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from evaltui.files.schedulers import local_workers
from evaltui.runner.cluster import worker
from evaltui.runner.cluster.forking import start_method
from evaltui.runner.parent.executor import ExecutorError

# Seconds.
_CONNECT_TIMEOUT = 15.0
_CLOSE_TIMEOUT = 4.0
# Without any worker of our own, until the run ends.
_MOST_WAITING = 120.0


@asynccontextmanager
async def connected(scheduler: str, threads: int) -> AsyncIterator[Any]:
    """A client of the scheduler; of `local:N`, the workers have so many threads, see `OwnWorkers`.

    Raises ExecutorError where none answers.
    """
    from distributed import Client

    # What it says is told of in other words; on a terminal it would be in the way.
    for name in [one for one in logging.root.manager.loggerDict if one.partition(".")[0] == "distributed"]:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    async with _address(scheduler, threads) as address:
        try:
            client = await Client(
                address, asynchronous=True, timeout=_CONNECT_TIMEOUT, set_as_default=False, name="evaltui"
            )
        except (OSError, TimeoutError, ValueError, TypeError) as error:
            raise ExecutorError(_unreachable(scheduler, error)) from error
        try:
            yield client
        finally:
            # A scheduler that is gone does not say goodbye.
            with suppress(TimeoutError, OSError):
                await asyncio.wait_for(client.close(), _CLOSE_TIMEOUT)


def _unreachable(scheduler: str, error: Exception) -> str:
    if scheduler.startswith("tls:") and isinstance(error, (TypeError, ValueError)):
        reason = str(error).partition("\n")[0]
        return (
            f"{scheduler}: {reason}. Give Dask's certificates: distributed.comm.tls in ~/.config/dask, "
            "or DASK_DISTRIBUTED__COMM__TLS__… in the environment"
        )
    return f"{scheduler}: no Dask scheduler answers. Start one with `dask scheduler`, or use local:N"


@asynccontextmanager
async def _address(scheduler: str, threads: int) -> AsyncIterator[Any]:
    if local_workers(scheduler) is None:
        yield scheduler
        return
    import dask
    from distributed import LocalCluster, Security, utils

    # Else Dask imports here whatever workers might need, such as pandas, to tell it to a process that was
    # started long ago.
    utils._forkserver_preload_set = True
    config = {
        "distributed.worker.multiprocessing-method": start_method(),
        # What passes through the scheduler is not kept there: it is in this process.
        "distributed.admin.low-level-log-length": 0,
        # What agents find in their environment is as without workers.
        "distributed.nanny.pre-spawn-environ": {},
        # Dask starts web servers in any case; these have no page.
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
        # Every process of Dask measures itself a hundred times a second, and nobody sees it.
        "distributed.worker.profile.enabled": False,
        "distributed.admin.tick.interval": "1s",
        "distributed.admin.system-monitor.interval": "10s",
    }
    with dask.config.set(config):
        cluster = LocalCluster(
            n_workers=0,
            threads_per_worker=threads,
            processes=True,
            host="127.0.0.1",
            env=dict(os.environ),
            protocol="tcp://",
            dashboard_address=None,
            worker_dashboard_address=None,
            scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
            memory_limit=0,
            preload=[worker.__name__],
            silence_logs=logging.CRITICAL,
            asynchronous=True,
            security=Security(require_encryption=False),
        )
        try:
            await cluster
            yield cluster
        finally:
            try:
                closing: Any = cluster.close()
                await asyncio.wait_for(closing, _CLOSE_TIMEOUT)
            except Exception:
                # Workers that were still starting are closed with any error.
                kill_workers()


class OwnWorkers:
    """Looks after the workers of `local:N`: Dask gives up those that are killed while they start, or take
    long to start again."""

    def __init__(self, cluster: Any, count: int) -> None:
        self._cluster = cluster
        self._count = count
        self._have_started = False
        self._had_some = time.monotonic()

    async def start(self) -> None:
        """Until all of them have; those that have are used meanwhile. Raises ExecutorError."""
        for _ in range(self._count):
            self._cluster.worker_spec.update(self._cluster.new_worker_spec())
        try:
            await self._cluster
        except Exception as error:
            if (task := asyncio.current_task()) and task.cancelling():
                # Workers whose start is cancelled are said to have failed.
                raise asyncio.CancelledError from error
            reason = error.__cause__ or error
            raise ExecutorError(f"workers of this machine do not start: {reason}") from error
        self._have_started = True

    def look(self, *, have_some: bool) -> None:
        """Start a worker in the place of each that was given up. Raises ExecutorError where none comes."""
        from distributed import Status

        now = time.monotonic()
        if have_some:
            self._had_some = now
        elif now - self._had_some > _MOST_WAITING:
            raise ExecutorError(f"no worker of this machine has come back for {_MOST_WAITING:g} s")
        workers: dict[Any, Any] = self._cluster.workers
        for name, nanny in list(workers.items()):
            if nanny.status in (Status.closed, Status.failed):
                del workers[name]
        if self._have_started and len(workers) < self._count:
            # One that is being started is not started twice.
            self._cluster.scale(self._count)


def kill_workers() -> None:
    """Ends the workers of `local:N` by force: only they are such children of this process."""
    for child in multiprocessing.active_children():
        child.kill()
