"""Work that takes time: it goes on to its end whether it is waited for or not, and says what it is about."""

from __future__ import annotations

import asyncio
import gc
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
_NOTICEABLE = 0.3

# Values that are known at most.
_MOST_KNOWN = 1000

# Cases whose objects take noticeably long to be looked through.
_MANY = 500


@dataclass
class Progress:
    """How far work in a thread has come. Who waits for it reads it, and may end it."""

    done: int = 0
    """How many cases are done."""
    total: int = 0
    """How many there are; 0 while that is not known."""
    cancelled: bool = False
    """Whether nobody waits any more."""

    def __str__(self) -> str:
        """How many of several are done, after what is being done; empty where that says nothing."""
        return (
            f" {show_number(self.done)} of {show_number(self.total)}" if self.done and self.total > 1 else ""
        )

    def step(self) -> None:
        """Counts one more case. Raises CancelledError where nobody waits any more."""
        if self.cancelled:
            raise asyncio.CancelledError
        self.done += 1


async def in_thread(work: Callable[[], _T], progress: Progress) -> _T:
    """The result of long work, which is done in a thread. It ends early when who waits is cancelled: then its
    `progress` says so.

    What many cases are made into is kept: garbage is not looked for among it, which would hold the screen
    each time.
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
            if progress.done >= _MANY:
                gc.freeze()
            gc.enable()


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
        self._wanted: dict[Key, None] = {}
        self._reading: asyncio.Task[None] | None = None

    def get(self, key: Key) -> Value | None:
        """A value, also while it is read again; None while it is read for the first time."""
        version, value = self._values.get(key, (-1, None))
        if version != self._version:
            self._wanted.pop(key, None)
            self._wanted[key] = None
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(self._read())
        return value

    @property
    def values(self) -> Mapping[Key, Value]:
        """What is known."""
        return {key: value for key, (_, value) in self._values.items()}

    def outdate(self, *keys: Key) -> None:
        """There may be other values for these keys, or for all of them, and they are read when asked for."""
        self._version += not keys
        for key in keys:
            self._values[key] = -1, self._values[key][1]

    async def _read(self) -> None:
        while self._wanted:
            last = next(reversed(self._wanted))
            await asyncio.sleep(self._pause)
            if next(reversed(self._wanted)) != last:
                continue
            keys, version = [*self._wanted][-self._at_once :], self._version
            self._wanted = dict.fromkeys(keys)
            values = await asyncio.to_thread(lambda keys: [*map(self._read_value, keys)], keys)
            for key, value in zip(keys, values, strict=True):
                self._wanted.pop(key, None)
                self._values.pop(key, None)
                self._values[key] = version, value
            while len(self._values) > _MOST_KNOWN:
                del self._values[next(iter(self._values))]
            self._messages.publish(self._message())

    async def close(self) -> None:
        """Ends what is read."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])


class Background:
    """Work that was started and is not over."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, _T]) -> asyncio.Future[_T]:
        """Begins something. Its result may be waited for; who does so can be cancelled, the work cannot."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return asyncio.shield(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self._messages.say(f"{type(error).__name__}: {error}")

    async def finished(self) -> None:
        """Waits until all of it is over."""
        while self._running:
            await asyncio.wait(self._running)

    @contextmanager
    def progress(self, what: str) -> Iterator[None]:
        """Says what is being done, if it takes noticeably long."""
        shown = False

        def show() -> None:
            nonlocal shown
            shown = True
            self._messages.say(what)

        timer = asyncio.get_running_loop().call_later(_NOTICEABLE, show)
        try:
            yield
        finally:
            timer.cancel()
            if shown:
                self._messages.say("")
