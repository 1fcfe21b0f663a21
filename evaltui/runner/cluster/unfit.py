"""Workers that cannot be used for a run, and why."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from evaltui.core.model.errors import ErrorInfo
from evaltui.runner.cluster.remote_worker import RemoteWorker
from evaltui.runner.parent.pool import Listener
from evaltui.runner.plan import Noted, Scaled, WorkItem

# Seconds after which a worker that has said nothing is one of those that could not begin. The first run on a
# worker imports evaltui there.
_PATIENCE = 30.0


@dataclass(frozen=True)
class _Unfit:
    reason: str
    """A sentence."""
    error: ErrorInfo | None
    """Why the agent cannot be imported there."""


class UnfitWorkers:
    """By address. The user is told of each, once for what is the same on one machine."""

    def __init__(self, listener: Listener[WorkItem], on_update: Callable[[Noted | Scaled], None]) -> None:
        self._listener = listener
        self._on_update = on_update
        self._found: dict[str, _Unfit] = {}
        self._told: set[str] = set()
        # Why some worker did not begin, and a `time.monotonic()`.
        self._failed: tuple[str, float] | None = None

    def __contains__(self, address: str) -> bool:
        return address in self._found

    def __bool__(self) -> bool:
        return bool(self._found) or self._failed is not None

    def __str__(self) -> str:
        """Why, in sentences."""
        reasons = [one.reason for one in self._found.values()]
        return ". ".join(dict.fromkeys([*reasons, *([self._failed[0]] if self._failed else [])]))

    @property
    def error(self) -> ErrorInfo | None:
        """Of the first on which the agent cannot be imported; None where it is something else on all."""
        return next((one.error for one in self._found.values() if one.error is not None), None)

    def are_all(self, addresses: Collection[str]) -> bool:
        """Whether none but these is there; where some did not begin, those that are silent are such."""
        others = [one for one in addresses if one not in self._found]
        if self._failed is not None and time.monotonic() - self._failed[1] > _PATIENCE:
            others = []
        return bool(addresses) and not others

    def add(self, worker: RemoteWorker, why: ErrorInfo | str) -> None:
        """`why` is a clause, or an error of the agent's import."""
        if worker.address in self._found:
            return
        error = why if isinstance(why, ErrorInfo) else None
        reason = f"worker {worker.machine} is not used: {why}"
        if error is not None and worker.arrived and worker.arrived.differences:
            reason += f". Its versions differ: {', '.join(worker.arrived.differences)}"
        self._found[worker.address] = _Unfit(reason, error)
        if self._tell(reason) and error is not None:
            for line in error.traceback.splitlines():
                self._listener.printed(None, "stderr", f"{worker.machine}: {line}")

    def warn(self, worker: RemoteWorker) -> None:
        """Its versions differ, and it is used all the same."""
        if worker.arrived is not None:
            self._tell(f"versions on worker {worker.machine} differ: {', '.join(worker.arrived.differences)}")

    def begin_failed(self, error: Exception) -> None:
        """Some worker raised when the run was brought to it."""
        # Dask wraps what it cannot send.
        what = str(error) if type(error) is Exception else f"{type(error).__name__}: {error}"
        reason = f"a worker cannot begin: {what}"
        self._failed = reason, time.monotonic()
        self._tell(reason)

    def _tell(self, text: str) -> bool:
        """Whether it is new."""
        is_new = text not in self._told
        self._told.add(text)
        if is_new:
            self._on_update(Noted(text))
        return is_new
