"""The scheduler that a run goes to: somebody's, by its address, or one of our own."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from evaltui.files.schedulers import dask_address
from evaltui.runner.cluster.own_cluster import OwnCluster, silence
from evaltui.runner.parent.executor import ExecutorError

# Seconds.
_CONNECT_TIMEOUT = 15.0
_CLOSE_TIMEOUT = 4.0


@asynccontextmanager
async def connected(scheduler: str, own: OwnCluster | None, name: str) -> AsyncIterator[Any]:
    """A client of the scheduler by this name; for `local:N`, of a cluster of our `own`.

    Raises ExecutorError where none answers.
    """
    address = dask_address(scheduler) if own is None else (await own.opened()).cluster
    try:
        # One of our own waits for its workers, too, whose start takes as long as it takes.
        client = await _client_of(address, name, _CONNECT_TIMEOUT if own is None else None)
    except Exception as error:
        # What is no scheduler may answer anything, and Dask raises whatever comes of reading it.
        raise ExecutorError(_unreachable(scheduler, error)) from error
    try:
        yield client
    finally:
        await _close(client)


async def _client_of(scheduler: Any, name: str, seconds: float | None) -> Any:
    """Within so many seconds; None for as long as it takes."""
    from distributed import Client
    from distributed.versions import VersionMismatchWarning

    silence()
    # Versions that matter are compared, and told in one line.
    warnings.filterwarnings("ignore", category=VersionMismatchWarning)
    client: Any = Client(
        scheduler, asynchronous=True, timeout=_CONNECT_TIMEOUT, set_as_default=False, name=name
    )
    try:
        # Its own time-out ends with the connection; what answers may say nothing then.
        return await asyncio.wait_for(client, seconds)
    except BaseException:
        await _close(client)
        raise


async def _close(client: Any) -> None:
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
    return f"{scheduler} is no Dask scheduler. `dask scheduler` prints its address"
