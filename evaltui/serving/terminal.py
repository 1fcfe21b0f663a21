"""A process in a terminal of its own, whose other end is here."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import struct
import termios
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

# Bytes.
_CHUNK = 64 * 1024
# Seconds in which a process that was asked to end has to have ended what it runs.
_END_SECONDS = 15.0


class Size(NamedTuple):
    """Cells."""

    columns: int
    rows: int


class Terminal:
    """Made by `open_terminal`. One task reads and one writes."""

    def __init__(self, fd: int, process: asyncio.subprocess.Process) -> None:
        self._fd = fd
        self._process = process
        self._is_open = True

    async def read(self) -> bytes:
        """The output of the process since the last call; b"" once it has ended."""
        while self._is_open:
            try:
                return os.read(self._fd, _CHUNK)
            except BlockingIOError:
                loop = asyncio.get_running_loop()
                await self._ready(loop.add_reader, loop.remove_reader)
            except OSError:
                # Nobody has the other end any more.
                break
        return b""

    async def write(self, data: bytes) -> None:
        """Types data into the terminal, and waits until the process has read it or has ended."""
        rest = memoryview(data)
        while rest and self._is_open:
            try:
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:
                loop = asyncio.get_running_loop()
                await self._ready(loop.add_writer, loop.remove_writer)
            except OSError:
                return

    async def _ready(
        self, add: Callable[[int, Callable[[], object]], object], remove: Callable[[int], object]
    ) -> None:
        ready = asyncio.Event()
        add(self._fd, ready.set)
        try:
            await ready.wait()
        finally:
            if self._is_open:
                remove(self._fd)

    def resize(self, size: Size) -> None:
        if self._is_open:
            _set_size(self._fd, size)
            self._signal(signal.SIGWINCH)

    def end_if_idle(self) -> None:
        """Asks the process to end unless something goes on in it."""
        self._signal(signal.SIGUSR1)

    async def end(self) -> None:
        """Ends the process in order, and by force where that takes too long."""
        if self._is_open:
            self._is_open = False
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._fd)
            loop.remove_writer(self._fd)
            # Its screen is gone, so that it waits for nobody to read what it writes last.
            os.close(self._fd)
        self._signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), _END_SECONDS)
        except TimeoutError:
            self._signal(signal.SIGKILL)
            await self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(number)


async def open_terminal(words: Sequence[str], environment: Mapping[str, str], size: Size) -> Terminal:
    """Starts a command, without a shell. Raises OSError."""
    ours, theirs = os.openpty()
    try:
        _set_size(ours, size)
        os.set_blocking(ours, False)
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            # Ctrl-C where the server runs is for the server, which ends its sessions itself.
            start_new_session=True,
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return Terminal(ours, process)


def _set_size(fd: int, size: Size) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.columns, 0, 0))
