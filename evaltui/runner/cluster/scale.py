"""How many machines, hosts and cases there are at work, as it is told."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from evaltui.files.schedulers import local_workers
from evaltui.runner.cluster.remote_worker import RemoteWorker
from evaltui.runner.plan import Noted, Scaled

# Seconds without any worker after which that is said.
_WITHOUT = 10.0


class ScaleOfRun:
    """Told where it changes; and once, that there is no worker."""

    def __init__(self, scheduler: str, on_update: Callable[[Noted | Scaled], None]) -> None:
        self._scheduler = scheduler
        self._on_update = on_update
        self._told: Scaled | None = None
        self._had_some = time.monotonic()
        self._have_waited = False

    def tell(self, workers: Collection[RemoteWorker]) -> None:
        scale = Scaled(
            len({one.machine for one in workers}),
            sum(one.hosts for one in workers),
            sum(one.in_flight for one in workers),
        )
        if scale != self._told:
            self._told = scale
            self._on_update(scale)
        now = time.monotonic()
        if workers:
            self._had_some = now
        elif now - self._had_some > _WITHOUT and not self._have_waited:
            self._have_waited = True
            waits = f"{self._scheduler} has no worker: the run waits for one"
            if local_workers(self._scheduler) is None:
                waits += ". Start one with `dask worker`"
            self._on_update(Noted(waits, at_once=True))
