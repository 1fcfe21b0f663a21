"""Ending an app from outside: by a signal, or because its terminal is closed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import sys
import termios
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from textual.app import App, ReturnType
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver

from evaltui.runner.interrupts import INTERRUPTED, Interrupts
from evaltui.tui.textual_private import driver_of, wrap_output
from evaltui.tui.theme import ThemedApp
from evaltui.workbench.case.editors import IN_BROWSER

# Seconds between looks at a terminal where the system cannot tell by itself that it is gone.
_CHECK_SECONDS = 2.0
# Where Textual writes its screen to.
_STDERR_FD = 2


class EndingApp(ThemedApp[ReturnType]):
    """Ends in order at the first Ctrl-C from outside, SIGTERM or SIGHUP, and when its terminal is closed."""

    def __init__(self) -> None:
        super().__init__()
        self._interrupts = Interrupts(self._interrupted, self._give_terminal_back)
        self._running_loop: asyncio.AbstractEventLoop | None = None

    def run_to_the_end(self) -> ReturnType | None:
        """Runs the app as `run` does, in the main thread."""
        with self._interrupts:
            return self.run()

    def get_driver_class(self) -> type[Driver]:
        driver = super().get_driver_class()
        return TerminalDriver if driver is LinuxDriver else driver

    def on_mount(self) -> None:
        self._running_loop = asyncio.get_running_loop()
        if os.environ.get(IN_BROWSER):
            self._running_loop.add_signal_handler(signal.SIGUSR1, self._end_if_idle)
        if self._interrupts.received is not None:
            self._end()

    @property
    def is_at_work(self) -> bool:
        """Whether work is running that needs no user."""
        return False

    def _end_if_idle(self) -> None:
        """Ends the app if no work is running: a browser's server calls this after a long time without
        input."""
        if not self.is_at_work:
            self._interrupts.interrupt()

    def terminal_gone(self) -> None:
        """Ends the app because its terminal is closed. May be called from any thread, and more than once."""
        self._interrupts.interrupt()

    def _interrupted(self) -> None:
        if self._running_loop is not None:
            # A loop that is closed has nothing left to be ended.
            with contextlib.suppress(RuntimeError):
                self._running_loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        # One that has been left by now ends without it.
        if self.is_running:
            leave: Any = partial(self.leave, INTERRUPTED)
            self.run_worker(leave)

    def _give_terminal_back(self) -> None:
        if isinstance(driver := driver_of(self), TerminalDriver):
            driver.give_back()

    async def leave(self, code: int) -> None:
        """Ends the app once all of its work has ended."""
        self.exit(return_code=code)


# Out of the other screen, the cursor shown; no mouse, focus, pasted text or special keys told any more.
_RESTORE_SEQUENCE = (
    "\x1b[<u\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?1049l\x1b[?25h"
)


class TerminalDriver(LinuxDriver):
    """Notifies the app when the terminal is closed; later output is dropped."""

    def __init__(self, app: App[Any], **options: Any) -> None:
        super().__init__(app, **options)
        self._gone = cast("EndingApp[Any]", app).terminal_gone
        wrap_output(self, lambda file: TerminalOutput(file, self._gone))
        self._watch: threading.Thread | None = None

    def start_application_mode(self) -> None:
        super().start_application_mode()  # type: ignore[no-untyped-call]
        if self._watch is None:
            self._watch = threading.Thread(target=self._wait_until_gone, name="terminal", daemon=True)
            self._watch.start()

    def give_back(self) -> None:
        """Restores the terminal for a shell, from any thread and in any state of the app."""
        if self.attrs_before is not None:
            with contextlib.suppress(termios.error, OSError):
                termios.tcsetattr(self.fileno, termios.TCSANOW, self.attrs_before)
        with contextlib.suppress(OSError):
            # The thread that writes to the screen may hang in it.
            os.write(_STDERR_FD, _RESTORE_SEQUENCE.encode())

    def run_input_thread(self) -> None:
        try:
            super().run_input_thread()
        except OSError:
            self._gone()

    def _wait_until_gone(self) -> None:
        if sys.platform == "linux":
            poll = select.poll()
            # Asked for nothing, it tells of a hang-up only.
            poll.register(self.fileno, 0)
            poll.poll()
        else:
            hung_up = threading.Event()
            with contextlib.suppress(termios.error, OSError):
                while not hung_up.wait(_CHECK_SECONDS):
                    termios.tcgetattr(self.fileno)
        self._gone()


class TerminalOutput:
    """A terminal that may be closed: an exception would end the writing thread, and the app would wait for it
    for ever.

    Without buffering in Python (`PYTHONUNBUFFERED`), its own file loses output that a terminal does not take
    at once, after a signal or where another program made it non-blocking.
    """

    def __init__(self, file: Any, gone: Callable[[], None]) -> None:
        self._file = file
        self._on_gone = gone
        self._is_gone = False

    def write(self, text: str) -> None:
        left = memoryview(text.encode(self._file.encoding, self._file.errors))
        try:
            while left and not self._is_gone:
                left = left[self._write_once(left) :]
        except OSError:
            self._is_gone = True
            # What is written otherwise would be complained about at the end of the program.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            self._on_gone()

    def _write_once(self, data: memoryview) -> int:
        """The number of written bytes."""
        try:
            return os.write(self.fileno(), data)
        except BlockingIOError:
            select.select([], [self.fileno()], [])
            return 0

    def flush(self) -> None:
        """Does nothing: no output is buffered."""

    def fileno(self) -> int:
        number: int = self._file.fileno()
        return number
