"""A terminal of 80x24 or any other size: a pseudo terminal with a program in it, and what its screen shows.

Of what a terminal understands it knows what Textual writes: text, places, clearing. Colours are dropped.
"""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import waiting
from rich.cells import cell_len

KEYS = {
    "enter": "\r",
    # As terminals send it that know the protocol which Textual asks for: the next key may follow at once.
    "escape": "\x1b[27u",
    "tab": "\t",
    "backspace": "\x7f",
    "delete": "\x1b[3~",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "home": "\x1b[H",
    "end": "\x1b[F",
    "f5": "\x1b[15~",
}
PATIENCE = 30.0
# The main screen again, and how many of the characters that came last are kept.
_LEFT = "\x1b[?1049l"
_KEPT = 1 << 16
_SEQUENCE = re.compile(
    r"\x1b\[(?P<parameters>[<-?]*[\d;:]*)[ -/]*(?P<final>[@-~])"
    r"|\x1b[\]P_^X].*?(?:\x1b\\|\x07)|\x1b[()][0-9A-Za-z]|\x1b[=>78c]",
    re.DOTALL,
)


class Screen:
    """A grid of cells; what a wide character covers is an empty cell behind it."""

    def __init__(self, columns: int, rows: int) -> None:
        self.resize(columns, rows)
        self._rest = ""

    def resize(self, columns: int, rows: int) -> None:
        self._columns, self._rows = columns, rows
        self._x = self._y = 0
        self.clear()

    def clear(self) -> None:
        self._cells = [[" "] * self._columns for _ in range(self._rows)]

    def text(self) -> str:
        return "\n".join("".join(row).rstrip() for row in self._cells)

    def feed(self, text: str) -> None:
        text, self._rest = self._rest + text, ""
        position = 0
        while position < len(text):
            if text[position] == "\x1b":
                found = _SEQUENCE.match(text, position)
                if found is None:
                    # Its end has not been read yet.
                    self._rest = text[position:]
                    return
                self._obey(found["final"], found["parameters"] or "")
                position = found.end()
            else:
                self._put(text[position])
                position += 1

    def _obey(self, final: str | None, parameters: str) -> None:
        if final in ("H", "f"):
            numbers = [int(number or 1) for number in (parameters or "1;1").split(";")]
            self._y, self._x = numbers[0] - 1, (numbers[1] if len(numbers) > 1 else 1) - 1
        elif final == "J" and parameters in ("2", "3"):
            self.clear()

    def _put(self, letter: str) -> None:
        if letter == "\r":
            self._x = 0
        elif letter == "\n":
            self._y += 1
        elif letter >= " " and 0 <= self._y < self._rows and 0 <= self._x < self._columns:
            width = cell_len(letter)
            for offset in range(min(max(1, width), self._columns - self._x)):
                self._cells[self._y][self._x + offset] = letter if offset == 0 else ""
            self._x += width


def _environment() -> dict[str, str]:
    # What is set here would count for more than the size of the terminal.
    inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    return inherited | {"TERM": "xterm-256color", "COLORTERM": "truecolor"}


class Terminal:
    """Runs a command until `close`."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        columns: int = 80,
        rows: int = 24,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.screen = Screen(columns, rows)
        self._written = ""
        self._lock = threading.Lock()
        ours, theirs = pty.openpty()
        self._pty = ours
        self._closing, self._close_reader = os.pipe()
        self._set_size(columns, rows)
        self.process = subprocess.Popen(
            list(command),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            start_new_session=True,
            env=_environment() | (environment or {}),
        )
        os.close(theirs)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._pty, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _read(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        # Linux says EIO, others the end of the file, when nobody has the other side open any more.
        with contextlib.suppress(OSError):
            while True:
                ready, _, _ = select.select([self._pty, self._closing], [], [])
                if self._closing in ready or not (data := os.read(self._pty, 1 << 16)):
                    return
                with self._lock:
                    text = decoder.decode(data)
                    self.screen.feed(text)
                    self._written = (self._written + text)[-_KEPT:]

    @property
    def text(self) -> str:
        with self._lock:
            return self.screen.text()

    @property
    def last_words(self) -> str:
        """What a program that has ended wrote after it had left its screen; all, where it never left it."""
        self._reader.join(PATIENCE)
        with self._lock:
            return self._written.rpartition(_LEFT)[2]

    def press(self, *keys: str) -> None:
        """Press keys, by their names in Textual (`enter`, `ctrl+s`) or as they are."""
        for key in keys:
            sent = chr(ord(key[-1]) & 0x1F) if key.startswith("ctrl+") else KEYS.get(key, key)
            os.write(self._pty, sent.encode())

    def type(self, text: str) -> None:
        os.write(self._pty, text.encode())

    def resize(self, columns: int, rows: int) -> None:
        with self._lock:
            self.screen.resize(columns, rows)
        self._set_size(columns, rows)
        os.killpg(self.process.pid, signal.SIGWINCH)

    def wait_for(self, text: str) -> str:
        """The screen as soon as it shows a text."""
        return self.wait_until(lambda screen: text in screen, f"{text!r} did not come")

    def wait_until(self, condition: Callable[[str], object], complaint: str) -> str:
        screen = ""

        def shown() -> bool:
            nonlocal screen
            screen = self.text
            return bool(condition(screen))

        waiting.wait_until(shown, lambda: f"{complaint}:\n{screen}", PATIENCE)
        return screen

    def exit_code(self) -> int:
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        # It would go on reading under the same number, which the next terminal has then.
        os.write(self._close_reader, b"x")
        self._reader.join()
        for descriptor in (self._pty, self._closing, self._close_reader):
            os.close(descriptor)
