"""Clocks: of a command, of a first paint in a terminal, and a table of what came out."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import signal
import statistics
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psutil

_ESCAPES = re.compile(rb"\x1b(\[[0-9;:?<>=]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[P_^].*?\x1b\\|.)")
_PATIENCE = 60.0


@dataclass(frozen=True)
class Row:
    """Ours against theirs; the bar is what the ratio must not exceed."""

    what: str
    ours: float
    theirs: float
    bar: float | None = None

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs


def medians(times: int, ours: Callable[[], float], theirs: Callable[[], float]) -> tuple[float, float]:
    """Both sides in turns, so that a busy moment of the machine meets both."""
    pairs = [(ours(), theirs()) for _ in range(times)]
    return statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)


def seconds_of(command: Sequence[str], *, own_clock: bool = False) -> float:
    """Wall time of a command that must succeed, or the seconds that it prints itself."""
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    took = time.perf_counter() - began
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} exited with {done.returncode}:\n{done.stdout}{done.stderr}")
    return float(done.stdout) if own_clock else took


class Terminal:
    """A program in a pseudo-terminal of 160 columns and 45 lines."""

    def __init__(self, command: Sequence[str]) -> None:
        self._began = time.perf_counter()
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.environ |= {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
            os.execvp(command[0], list(command))
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 45, 160, 0, 0))
        self._seen = b""

    def wait_for(self, text: str) -> float:
        """Seconds since the start, or since the last keys, until the text is on the screen."""
        while text.encode() not in _ESCAPES.sub(b"", self._seen):
            if time.perf_counter() - self._began > _PATIENCE:
                raise SystemExit(f"{text!r} did not appear")
            with contextlib.suppress(OSError):
                self._seen += os.read(self._fd, 1 << 16)
        return time.perf_counter() - self._began

    def press(self, keys: str) -> None:
        self._seen = b""
        self._began = time.perf_counter()
        os.write(self._fd, keys.encode())

    def end(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._fd)


def first_paint(command: Sequence[str], text: str) -> float:
    terminal = Terminal(command)
    try:
        return terminal.wait_for(text)
    finally:
        terminal.end()


def resident_megabytes(command: Sequence[str], text: str, key: str, then: str) -> tuple[float, float, float]:
    """Seconds to the first text, seconds from a key to the second, and resident megabytes at the end."""
    terminal = Terminal(command)
    try:
        opened = terminal.wait_for(text)
        terminal.press(key)
        painted = terminal.wait_for(then)
        return opened, painted, psutil.Process(terminal.pid).memory_info().rss / 1e6
    finally:
        terminal.end()


def table(rows: Sequence[Row]) -> str:
    """Markdown, as the README quotes it."""
    lines = ["| what | ours | theirs | ratio | bar |", "|---|---:|---:|---:|---:|"]
    for row in rows:
        bar = "" if row.bar is None else f"{row.bar:.3g}"
        theirs = "" if row.theirs == 1.0 else f"{row.theirs:.3f} s"
        lines.append(f"| {row.what} | {row.ours:.3f} | {theirs} | {row.ratio:.3f} | {bar} |")
    return "\n".join(lines)
