"""What runs leave on a scheduler. It is told by a function of evaltui, so only where evaltui is installed."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import Any

# What the plugin of each run on its workers is called before its id, and so the client of the run.
PREFIX = "evaltui-"
_SECONDS = 5.0


async def tidy(topic: str, dask_scheduler: Any = None) -> None:
    """Before a run begins: the scheduler keeps nothing of what its workers tell, and forgets runs that are
    gone without having said so.

    It would keep a thousand batches of each run for as long as it lives, for everybody to ask for.
    """
    topics = dask_scheduler._broker._topics
    topics[topic].events = deque(maxlen=0)
    here = tuple(dask_scheduler.clients)
    gone = [name for name in dask_scheduler.worker_plugins if name.startswith(PREFIX) and name != topic]
    for name in gone:
        if any(f"-{name}-" in client for client in here):
            continue
        topics.pop(name, None)
        # Their hosts end, and workers are free; one that is silent holds up nobody.
        with suppress(Exception):
            await asyncio.wait_for(dask_scheduler.unregister_worker_plugin(None, name), _SECONDS)
