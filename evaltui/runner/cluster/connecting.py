"""The scheduler that a run goes to: somebody's, by its address, or one of our own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from evaltui.runner.cluster.own_cluster import OwnCluster
from evaltui.runner.parent.executor import ExecutorError

# Seconds.
_CONNECT_TIMEOUT = 15.0
_CLOSE_TIMEOUT = 4.0


@asynccontextmanager
async def connected(scheduler: str, own: OwnCluster | None) -> AsyncIterator[Any]:
    """A client of the scheduler, which for `local:N` is that of a cluster of our `own`.

    Raises ExecutorError where none answers.
    """
    from distributed import Client

    # What it says is told of in other words; on a terminal it would be in the way.
    for name in [one for one in logging.root.manager.loggerDict if one.partition(".")[0] == "distributed"]:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    address = scheduler if own is None else (await own.opened()).cluster
    client: Any = Client(
        address, asynchronous=True, timeout=_CONNECT_TIMEOUT, set_as_default=False, name="evaltui"
    )
    try:
        try:
            # Its own time-out is that of the connection; what answers may say nothing then.
            await asyncio.wait_for(client, _CONNECT_TIMEOUT)
        except Exception as error:
            # What is no scheduler may answer anything, and Dask raises whatever comes of reading it.
            raise ExecutorError(_unreachable(scheduler, error)) from error
        yield client
    finally:
        # A scheduler that is gone does not say goodbye.
        with suppress(Exception):
            await asyncio.wait_for(client.close(), _CLOSE_TIMEOUT)


def _unreachable(scheduler: str, error: Exception) -> str:
    if scheduler.startswith("tls:") and isinstance(error, (TypeError, ValueError)):
        reason = str(error).partition("\n")[0]
        return (
            f"{scheduler}: {reason}. Give Dask's certificates: distributed.comm.tls in ~/.config/dask, "
            "or DASK_DISTRIBUTED__COMM__TLS__… in the environment"
        )
    if isinstance(error, (OSError, TimeoutError)):
        return f"{scheduler}: no Dask scheduler answers. Start one with `dask scheduler`, or use local:N"
    return f"{scheduler}: another program than a Dask scheduler answers. `dask scheduler` prints its address"
