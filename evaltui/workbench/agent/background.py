"""Work that takes time: it is finished whether a caller waits for it or not, and shows its progress."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys
from collections.abc import Callable, Coroutine, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from evaltui.text.figures import show_number
from evaltui.workbench.messages import Messages, WorkbenchMessage

_T = TypeVar("_T")
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

# Seconds after which is said what is being done.
_NOTICEABLE_SECONDS = 0.3

# Values that are known at most.
_MAX_VALUES = 1000

# Cases whose objects take noticeably long to be looked through.
_MANY_CASES = 500


@dataclass
class Progress:
    """Progress of work in a thread. The caller that waits reads it, and may cancel the work."""

    done: int = 0
    """How many cases are done."""
    total: int = 0
    """The number of cases; 0 while it is unknown."""
    cancelled: bool = False
    """Whether no caller waits any more."""

    def __str__(self) -> str:
        """How many of several cases are done, after a label of the work; "" for a single case."""
        return (
            f" {show_number(self.done)} of {show_number(self.total)}" if self.done and self.total > 1 else ""
        )

    def step(self) -> None:
        """Counts one more case. Raises CancelledError where no caller waits any more."""
        if self.cancelled:
            raise asyncio.CancelledError
        self.done += 1


async def run_in_thread(work: Callable[[], _T], progress: Progress) -> _T:
    """Runs long work in a thread and returns its result; it ends early when the caller is cancelled.

    The work sees the cancellation in `progress`. Garbage collection is off meanwhile: many objects are
    created and kept, and each collection would stop the screen.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return await asyncio.to_thread(work)
    except asyncio.CancelledError:
        progress.cancelled = True
        raise
    finally:
        if collects:
            if progress.done >= _MANY_CASES:
                gc.freeze()
            gc.enable()


def return_memory() -> None:
    """glibc keeps what is freed between things that stay, 50 MB of a set of 20; others give it back."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


class Lookups(Generic[Key, Value]):
    """Values that are read in a thread when they are first asked for.

    Only the keys that were asked for last are read: who shows more asks for the others then.
    """

    def __init__(
        self,
        read: Callable[[Key], Value],
        messages: Messages,
        message: type[WorkbenchMessage],
        *,
        at_once: int = 8,
        pause: float = 0.0,
    ) -> None:
        """`message` is published when values were read. `pause` is in seconds: nothing is read before a key
        has been the last one for so long."""
        self._read_value = read
        self._messages = messages
        self._message = message
        self._at_once = at_once
        self._pause = pause
        self._version = 0
        # With the version that they were read in.
        self._values: dict[Key, tuple[int, Value]] = {}
        self._pending: dict[Key, None] = {}
        self._reading: asyncio.Task[None] | None = None

    def get(self, key: Key) -> Value | None:
        """A value, also while it is read again; None while it is read for the first time."""
        version, value = self._values.get(key, (-1, None))
        if version != self._version:
            self._pending.pop(key, None)
            self._pending[key] = None
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(self._read())
        return value

    @property
    def values(self) -> Mapping[Key, Value]:
        """The values that were read, by key."""
        return {key: value for key, (_, value) in self._values.items()}

    def outdate(self, *keys: Key) -> None:
        """Marks the values of these keys, or all values, as old: they are read again at the next `get`."""
        self._version += not keys
        for key in keys:
            self._values[key] = -1, self._values[key][1]

    async def _read(self) -> None:
        while self._pending:
            last = next(reversed(self._pending))
            await asyncio.sleep(self._pause)
            if next(reversed(self._pending)) != last:
                continue
            keys, version = [*self._pending][-self._at_once :], self._version
            self._pending = dict.fromkeys(keys)
            values = await asyncio.to_thread(lambda keys: [*map(self._read_value, keys)], keys)
            for key, value in zip(keys, values, strict=True):
                self._pending.pop(key, None)
                self._values.pop(key, None)
                self._values[key] = version, value
            while len(self._values) > _MAX_VALUES:
                del self._values[next(iter(self._values))]
            self._messages.publish(self._message())

    async def close(self) -> None:
        """Cancels the reading."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])


class Background:
    """Running background tasks."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, _T]) -> asyncio.Future[_T]:
        """Starts a task. The caller that awaits its result can be cancelled, the task cannot."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._on_end)
        return asyncio.shield(task)

    def _on_end(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self._messages.say(f"{type(error).__name__}: {error}")

    async def finished(self) -> None:
        """Waits until all tasks have ended."""
        while self._running:
            await asyncio.wait(self._running)

    @contextmanager
    def progress(self, what: str) -> Iterator[None]:
        """Shows a message about the work, if it takes noticeably long."""
        shown = False

        def show() -> None:
            nonlocal shown
            shown = True
            self._messages.say(what)

        timer = asyncio.get_running_loop().call_later(_NOTICEABLE_SECONDS, show)
        try:
            yield
        finally:
            timer.cancel()
            if shown:
                self._messages.say("")
