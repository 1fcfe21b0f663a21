"""The work of a run: its queue of items, their results, and the protocols of executors and listeners."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from evaltui.agents.protocol import FilesOpened
from evaltui.core.model.errors import ErrorInfo
from evaltui.core.model.events import Event, Json
from evaltui.runner.plan import WorkItem

Item = TypeVar("Item")
ItemOfListener = TypeVar("ItemOfListener", contravariant=True)
_LEAST_URGENT = 1.0


@dataclass(frozen=True)
class ExecutionResult:
    """Result of running an item once: its events, its final state, and the error that ended it."""

    events: tuple[Event, ...] = ()
    state: Json | None = None
    error: ErrorInfo | None = None
    seconds: float = 0.0
    throttled: float = 0.0
    """Seconds that model calls waited at the run's gate, not part of `seconds`."""
    is_left: bool = False
    """Whether the run was stopped before the item came to an end: it has no result."""
    refusal: tuple[str, str] | None = None
    """Metric or place, and the sentence why the item was not run; None where it was."""


class Listener(Protocol[ItemOfListener]):
    """Receives everything that happens to the items of an executor."""

    def message(self, item: ItemOfListener) -> Json:
        """The request that makes a host run the item."""
        ...

    def started(self, item: ItemOfListener) -> None:
        """A host runs the item; once more where the first host died and the item is repeated alone."""
        ...

    def happened(self, item: ItemOfListener, text: str) -> Event:
        """Handles an event, as a host's JSON text. Raises DisturbedChannelError."""
        ...

    def recorded(self, item: ItemOfListener, line: Json) -> None:
        """Handles a line of the item's recording, see `CallRecorder`; it comes before `done`."""
        ...

    def printed(self, item: ItemOfListener | None, source: str, line: str) -> None:
        """Handles a line on the agent's stdout or stderr; `item` where only that can have printed it."""
        ...

    def loaded(self, info: Json) -> None: ...

    def broken(self, error: ErrorInfo) -> None: ...

    async def done(self, item: ItemOfListener, ran: ExecutionResult) -> None: ...


class ExecutorError(RuntimeError):
    """A sentence why items, or the rest of them, cannot be run."""


class Executor(Protocol):
    """Runs each item once, and reports to a `Listener`."""

    @property
    def opened(self) -> FilesOpened:
        """The user's own files that its hosts on this machine have opened so far."""
        ...

    def host_count(self, items: int) -> int:
        """Number of hosts for so many items, as far as it is known before they start."""
        ...

    async def run(self, work: WorkQueue[WorkItem]) -> None:
        """Run every item, also those that are added meanwhile. A broken agent ends each with its error;
        cancelling ends the hosts.

        Raises ExecutorError.
        """
        ...

    async def close(self) -> None:
        """End the host that was started beforehand, if nothing needed it."""
        ...

    async def kill(self) -> None:
        """End all of its hosts by force."""
        ...


class WorkQueue(Generic[Item]):
    """Hands out the items of the most urgent group first, until it is closed: of equally urgent groups those
    of the first one, and of a group always in order."""

    def __init__(self) -> None:
        # The items that a run starts with: groups of a hundred thousand of them are not made.
        self._first: deque[Item] = deque()
        self._group_of: Callable[[Item], int] = lambda _: 0
        # Of other groups, their urgency and items.
        self._groups: dict[int, tuple[float, deque[Item]]] = {}
        self.is_closed = False
        """Whether nothing more will be added."""
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        """Number of items that wait."""
        return len(self._first) + sum(len(items) for _, items in self._groups.values())

    def add_first(self, items: Iterable[Item], group_of: Callable[[Item], int]) -> None:
        """Add what a run starts with, each group's items one after the other; nothing is less urgent."""
        self._first.extend(items)
        self._group_of = group_of
        self.wake()

    def add(self, items: Iterable[Item], group: int = 0, urgency: float = _LEAST_URGENT) -> None:
        """Add items of a group that is as urgent from now on: the lower the `urgency`, the sooner."""
        _, waiting = self._groups.pop(group, (urgency, deque[Item]()))
        while self._first and self._group_of(self._first[0]) == group:
            waiting.append(self._first.popleft())
        waiting.extend(items)
        if waiting:
            self._groups[group] = urgency, waiting
        self.wake()

    def _pop(self) -> Item:
        # Groups have results, so there are few.
        group = min(self._groups, key=lambda group: self._groups[group][0], default=None)
        if group is None or (self._first and self._groups[group][0] >= _LEAST_URGENT):
            return self._first.popleft()
        _, items = self._groups[group]
        item = items.popleft()
        if not items:
            del self._groups[group]
        return item

    @property
    def _has_items(self) -> bool:
        return bool(self._first or self._groups)

    def close(self) -> None:
        """End the queue: items that wait are still handed out, and none will be added."""
        self.is_closed = True
        self.wake()

    def wake(self) -> None:
        """Have everyone who waits for an item check again whether they still should."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def waits(self) -> bool:
        """Wait for an item; False once there will be none any more."""
        while not self._has_items and not self.is_closed:
            await self._changed.wait()
        return self._has_items

    async def next(self, is_open: Callable[[], bool] = lambda: True) -> Item | None:
        """Wait for the next item; None where there will be none, or `is_open` is false."""
        while is_open() and (self._has_items or not self.is_closed):
            if self._has_items:
                return self._pop()
            await self._changed.wait()
        return None
