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

# The exit code of an interrupted command.
INTERRUPTED = 130
# Seconds between the first signal and the forced end of the process. Guards end the agents then.
FORCE_AFTER = 20.0
# Seconds. A terminal that nobody reads from must not hold up the end.
_ANNOUNCE_TIMEOUT = 1.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """A context in which the first signal calls `on_interrupt`; further signals do nothing.

    Without `on_interrupt`, the signal raises KeyboardInterrupt. `before_force` is called in a thread before
    the process is ended by force. `received` is the first signal. Signals that were ignored when the process
    started, as by `nohup`, stay ignored. Outside the main thread, which alone gets signals, the context has
    no effect.
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
        """Makes the next signal the first one again, for a command that goes on after a signal."""
        self._end_force()
        self.received = None

    def interrupt(self) -> None:
        """Acts as if the process got a SIGHUP; may be called in any thread."""
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

    async def run_cancellable(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Awaits `work`, which the first signal cancels."""
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
    announcing.join(_ANNOUNCE_TIMEOUT)
    os._exit(INTERRUPTED)


def _announce_end(before: Callable[[], None]) -> None:
    before()
    # An app may have put something of its own in the place of sys.stderr.
    with suppress(OSError, ValueError):
        os.write(2, f"\nevaltui: not ended {FORCE_AFTER:g} s after the interrupt; ended by force\n".encode())


def run_interruptible(work: Coroutine[Any, Any, Result]) -> Result:
    """Runs `work` as `asyncio.run` does; the first signal cancels `work`, which may still return a result.

    Raises KeyboardInterrupt where the signal ended `work`.
    """
    import asyncio

    with Interrupts() as interrupts:
        waiting = interrupts.run_cancellable(work)
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
