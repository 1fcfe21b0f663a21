"""Everything that is painted reaches the terminal, however much of it the terminal takes at once."""

import array
import fcntl
import io
import os
import signal
import termios
import threading

import pytest
import waiting

from evaltui.tui.ending import TerminalOutput

TEXT = "".join(f"\x1b[{row};1H╭─ row {row} ─╮" for row in range(20_000))


class Terminal:
    """A pipe that somebody writes the text to in a thread, as Textual does, and through a file that buffers
    nothing, as with PYTHONUNBUFFERED."""

    def __init__(self):
        self.read_end, self.write_end = os.pipe()
        self.gone = []
        self._writer = threading.Thread(target=self._write, daemon=True)

    def _write(self):
        raw = io.FileIO(self.write_end, "w")
        file = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
        TerminalOutput(file, lambda: self.gone.append(True)).write(TEXT)
        file.close()

    def is_full(self):
        waits = array.array("i", [0])
        fcntl.ioctl(self.read_end, termios.FIONREAD, waits)
        return waits[0] >= 1 << 14

    async def begin(self):
        """Have it written until nobody takes more."""
        self._writer.start()
        await waiting.until(self.is_full, lambda: "nothing is written")

    def interrupt(self):
        signal.pthread_kill(self._writer.ident, signal.SIGUSR2)

    def arrived(self):
        with os.fdopen(self.read_end, encoding="utf-8") as file:
            return file.read()


@pytest.fixture
def handled():
    before = signal.signal(signal.SIGUSR2, lambda number, frame: None)
    yield
    signal.signal(signal.SIGUSR2, before)


async def test_what_a_signal_has_interrupted_is_written_on(handled):
    terminal = Terminal()
    await terminal.begin()
    terminal.interrupt()
    assert terminal.arrived() == TEXT
    assert not terminal.gone


async def test_a_terminal_that_another_program_wants_nobody_to_wait_for_gets_all_of_it():
    terminal = Terminal()
    os.set_blocking(terminal.write_end, False)
    await terminal.begin()
    assert terminal.arrived() == TEXT
    assert not terminal.gone
