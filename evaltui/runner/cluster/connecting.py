"""The scheduler that a run goes to: somebody's, by its address, or one of our own on this machine."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, redirect_stderr, suppress
from typing import Any

from evaltui.files.schedulers import local_workers
from evaltui.runner.cluster import worker
from evaltui.runner.parent.executor import ExecutorError

# Seconds.
_CONNECT_TIMEOUT = 15.0
_CLOSE_TIMEOUT = 4.0
# Without any worker of our own, until the run ends.
_MOST_WAITING = 120.0


@asynccontextmanager
async def connected(scheduler: str, threads: int) -> AsyncIterator[Any]:
    """A client of the scheduler; of `local:N`, the workers have so many threads.

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
    workers = local_workers(scheduler)
    if workers is None:
        yield scheduler
        return
    import dask
    from distributed import LocalCluster, Security

    config = {
        # What passes through the scheduler is not kept there: it is in this process.
        "distributed.admin.low-level-log-length": 0,
        # What agents find in their environment is as without workers.
        "distributed.nanny.pre-spawn-environ": {},
        # Dask starts web servers in any case; these have no page.
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
    }
    with dask.config.set(config):
        cluster = LocalCluster(
            n_workers=workers,
            threads_per_worker=threads,
            processes=True,
            host="127.0.0.1",
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
        _start_tracker()
        try:
            try:
                await cluster
            except Exception as error:
                if (task := asyncio.current_task()) and task.cancelling():
                    # Workers whose start is cancelled are said to have failed.
                    raise asyncio.CancelledError from error
                reason = error.__cause__ or error
                raise ExecutorError(f"{scheduler}: its workers do not start: {reason}") from error
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

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._had_some = time.monotonic()

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
        if len(workers) < len(self._cluster.worker_spec):
            # One that is being started is not started twice.
            self._cluster.scale(len(self._cluster.worker_spec))


def kill_workers() -> None:
    """Ends the workers of `local:N` by force: only they are such children of this process."""
    for child in multiprocessing.active_children():
        child.kill()


def _start_tracker() -> None:
    """Starts the process with which multiprocessing clears up after workers.

    It is given standard error, which has no file where the workbench is shown.
    """
    if os.name == "posix":
        from multiprocessing import resource_tracker

        with redirect_stderr(sys.__stderr__):
            resource_tracker.ensure_running()
