"""Work that takes time: it goes on to its end whether it is waited for or not, and says what it is about."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from evaltui.text.figures import show_number

_T = TypeVar("_T")

# Seconds after which is said what is being done.
_NOTICEABLE = 0.3

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


class Background:
    """What was begun and is not over. `say` shows a sentence."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
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
            self._say(f"{type(error).__name__}: {error}")

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
            self._say(what)

        timer = asyncio.get_running_loop().call_later(_NOTICEABLE, show)
        try:
            yield
        finally:
            timer.cancel()
            if shown:
                self._say("")
