"""The scheduler and the workers of `local:N`, which are our own."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

from evaltui.runner.cluster.forking import start_method
from evaltui.runner.parent.executor import ExecutorError

# What a worker imports first.
_PRELOADED = "evaltui.runner.cluster.worker"
_SEED = "PYTHONHASHSEED"
# Seconds.
_CLOSE_TIMEOUT = 4.0
# On a busy machine starting a worker takes several.
_START_TIMEOUT = 20.0
# Without any worker, until the run ends.
_MOST_WAITING = 120.0


class OwnCluster:
    """A scheduler and its workers, which start at once, though what they are to run may not be known yet."""

    def __init__(self, count: int, threads: int) -> None:
        """So many workers, each with so many threads."""
        loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[OwnWorkers] = loop.create_future()
        self._started: asyncio.Future[None] = loop.create_future()
        self._working = asyncio.create_task(self._work(count, threads))

    async def _work(self, count: int, threads: int) -> None:
        try:
            async with _local_cluster(threads) as cluster:
                workers = OwnWorkers(cluster, count)
                self._opened.set_result(workers)
                try:
                    await workers.start()
                    self._started.set_result(None)
                except ExecutorError as error:
                    self._started.set_exception(error)
                # Until it is closed.
                await asyncio.get_running_loop().create_future()
        except Exception as error:
            if self._opened.done():
                raise
            self._opened.set_exception(ExecutorError(f"no scheduler starts on this machine: {error}"))

    async def opened(self) -> OwnWorkers:
        """As soon as there is a scheduler. Raises ExecutorError."""
        await asyncio.wait({self._opened})
        return self._opened.result()

    async def started(self) -> None:
        """When all workers have started; those that have are used meanwhile. Raises ExecutorError."""
        await asyncio.wait({self._started})
        self._started.result()

    def look(self, *, have_some: bool) -> None:
        """See `OwnWorkers.look`; once there is a scheduler."""
        self._opened.result().look(have_some=have_some)

    async def close(self) -> None:
        """End scheduler and workers; nothing happens where that was done."""
        if self._opened.done() and not self._working.done():
            # A worker that is closed while it starts leaves things open in this process.
            until: set[asyncio.Future[None]] = {self._started, self._working}
            await asyncio.wait(until, timeout=_START_TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
        self._working.cancel()
        await asyncio.wait({self._working})
        for told in (self._opened, self._started):
            # Whoever did not ask need not know.
            if not told.cancel() and not told.cancelled():
                told.exception()


@asynccontextmanager
async def _local_cluster(threads: int) -> AsyncIterator[Any]:
    # Takes most of a second, and there are other things to do.
    await asyncio.to_thread(import_module, "distributed")
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
            worker_class=_own_nanny(),
            host="127.0.0.1",
            env=dict(os.environ),
            protocol="tls://",
            dashboard_address=None,
            worker_dashboard_address=None,
            scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
            memory_limit=0,
            preload=[_PRELOADED],
            silence_logs=logging.CRITICAL,
            asynchronous=True,
            # Without it every user of this machine could connect and run code here.
            security=Security.temporary(),
        )
        try:
            await cluster
            yield cluster
        finally:
            # It takes back how much is said before it is closed.
            silence()
            try:
                closing: Any = cluster.close()
                await asyncio.wait_for(closing, _CLOSE_TIMEOUT)
            except Exception:
                # Workers that were still starting are closed with any error.
                kill_workers()


def silence() -> None:
    """What Dask says is told of in other words; on a terminal it would be in the way."""
    for name in [one for one in logging.root.manager.loggerDict if one.partition(".")[0] == "distributed"]:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _own_nanny() -> Any:
    """What starts a worker in the environment of this process, and leaves that as it is.

    Dask sets variables for workers, here too, where they would reach all agents that run afterwards.
    """
    from distributed import Nanny, nanny

    # By its variable a process knows that it may say in the list of processes what it is.
    nanny.enable_proctitle_on_children = lambda: None  # type: ignore[attr-defined]

    class OwnNanny(Nanny):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            # With it the hashes of all workers are the same. Agents may go by them; nothing of ours does.
            self.pre_spawn_env.pop(_SEED, None)
            if _SEED not in os.environ:
                self.env.pop(_SEED, None)

    return OwnNanny


class OwnWorkers:
    """Looks after the workers of `local:N`: Dask gives up those that are killed while they start, or take
    long to start again."""

    def __init__(self, cluster: Any, count: int) -> None:
        self.cluster = cluster
        self._count = count
        self._have_started = False
        self._had_some = time.monotonic()

    async def start(self) -> None:
        """Until all of them have. Raises ExecutorError."""
        for _ in range(self._count):
            self.cluster.worker_spec.update(self.cluster.new_worker_spec())
        try:
            await self.cluster
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
        workers: dict[Any, Any] = self.cluster.workers
        for name, nanny in list(workers.items()):
            if nanny.status in (Status.closed, Status.failed):
                del workers[name]
        if self._have_started and len(workers) < self._count:
            # One that is being started is not started twice.
            self.cluster.scale(self._count)


def kill_workers() -> None:
    """Ends the workers of `local:N` by force: only they are such children of this process."""
    for child in multiprocessing.active_children():
        child.kill()
