"""What an executor is: it runs the items of a plan, wherever that is."""

from __future__ import annotations

from typing import Protocol

from evaltui.runner.parent.work import WorkQueue
from evaltui.runner.plan import (
    WorkItem,
)
from evaltui.runner.protocol import FilesOpened


class ExecutorError(RuntimeError):
    """Items cannot be run, or no more of them; a sentence."""


class Executor(Protocol):
    """Runs each item once, and tells a `Listener` of it."""

    @property
    def opened(self) -> FilesOpened:
        """The user's own files that its hosts on this machine have opened so far."""
        ...

    def host_count(self, items: int) -> int:
        """How many hosts so many items are run on, as far as that is known before it begins."""
        ...

    async def run(self, work: WorkQueue[WorkItem]) -> None:
        """Run every item, also those that are added meanwhile. A broken agent ends each with its error;
        cancelling ends the hosts.

        Raises ExecutorError.
        """
        ...

    async def close(self) -> None:
        """End what was started beforehand, if nothing needed it."""
        ...

    async def kill(self) -> None:
        """End all of its hosts by force."""
        ...
