"""Signals that end a command: Ctrl-C, SIGTERM and SIGHUP mean the same."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import FrameType
from typing import Any, TypeVar

Result = TypeVar("Result")

# The exit code of whatever was interrupted.
INTERRUPTED = 130
# Seconds after the first signal until the process ends, whatever it is doing. Guards end the agents then.
FORCE_AFTER = 20.0
# Seconds. A terminal that nobody reads from must not hold up the end.
_LAST_WORDS = 1.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """While it is entered, the first of these signals calls `on_interrupt`, and further ones do nothing.

    Without an `on_interrupt` that is a KeyboardInterrupt. `before_force` is called in a thread before the
    process is ended by force. `received` is the first signal. A signal that the
    process was started to ignore, as by `nohup`, stays ignored. Nothing happens outside the main thread,
    which alone gets signals.
    """

    def __init__(
        self,
        on_interrupt: Callable[[], None] | None = None,
        before_force: Callable[[], None] = lambda: None,
    ) -> None:
        self.on_interrupt = on_interrupt or _raise
        self._before_force = before_force
        self.received: signal.Signals | None = None
        self._force: threading.Timer | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *raised: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._end_force()

    def listen_again(self) -> None:
        """The first signal has ended its work, and the command goes on: the next signal counts again."""
        self._end_force()
        self.received = None

    def interrupt(self) -> None:
        """Acts like a SIGHUP, which is ignored where the process was started so; from any thread."""
        self._receive(signal.SIGHUP, None)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.received is None:
            self.received = signal.Signals(number)
            self._force = threading.Timer(FORCE_AFTER, _end_at_once, [self._before_force])
            self._force.daemon = True
            self._force.start()
            self.on_interrupt()

    def _end_force(self) -> None:
        if self._force is not None:
            self._force.cancel()
            self._force = None

    async def cancelled_by_it(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Await something that the first signal cancels."""
        import asyncio

        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()

        def cancel() -> None:
            # A handler runs between any two instructions; the loop may be asleep.
            loop.call_soon_threadsafe(task.cancel)

        before, self.on_interrupt = self.on_interrupt, cancel
        try:
            return await task
        finally:
            self.on_interrupt = before


def _raise() -> None:
    raise KeyboardInterrupt


def _end_at_once(before: Callable[[], None]) -> None:
    announcing = threading.Thread(target=_announce_end, args=[before], daemon=True)
    announcing.start()
    announcing.join(_LAST_WORDS)
    os._exit(INTERRUPTED)


def _announce_end(before: Callable[[], None]) -> None:
    before()
    # An app may have put something of its own in the place of sys.stderr.
    with suppress(OSError, ValueError):
        os.write(2, f"\nevaltui: not ended {FORCE_AFTER:g} s after the interrupt; ended by force\n".encode())


def run_interruptible(work: Coroutine[Any, Any, Result]) -> Result:
    """Runs like `asyncio.run`: the first signal cancels `work`, which may clean up and return all the same.

    Raises KeyboardInterrupt where it ended by being cancelled so.
    """
    import asyncio

    with Interrupts() as interrupts:
        waiting = interrupts.cancelled_by_it(work)
        try:
            return asyncio.run(waiting)
        except asyncio.CancelledError:
            if interrupts.received is None:
                raise
            raise KeyboardInterrupt from None
        finally:
            # Where the signal came before they began, they must not complain.
            waiting.close()
            work.close()
