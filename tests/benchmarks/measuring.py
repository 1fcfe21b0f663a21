"""Clocks: of a command, of a first paint in a terminal, and a table of what came out."""

from __future__ import annotations

import fcntl
import os
import platform
import pty
import re
import select
import signal
import statistics
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psutil

_ESCAPES = re.compile(rb"\x1b(\[[0-9;:?<>=]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[P_^].*?\x1b\\|.)")
_PATIENCE = 180.0
# Seconds without a paint after which all has been painted; a cursor blinks twice a second.
_QUIET = 0.3


@dataclass(frozen=True)
class Row:
    """Ours against theirs, or ours alone. The ratio is to be at most `bar`, or ours at most `most`."""

    what: str
    ours: float
    theirs: float | None = None
    bar: float | None = None
    most: float | None = None
    unit: str = "s"

    @property
    def ratio(self) -> float | None:
        return None if self.theirs is None else self.ours / self.theirs

    @property
    def holds(self) -> bool | None:
        if self.most is not None:
            return self.ours <= self.most
        return None if self.bar is None or self.ratio is None else self.ratio <= self.bar


def medians(times: int, ours: Callable[[], float], theirs: Callable[[], float]) -> tuple[float, float]:
    """Both sides in turns, so that a busy moment of the machine meets both. The first runs do not count."""
    ours(), theirs()
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


def used_by(command: Sequence[str]) -> tuple[float, float]:
    """Processor seconds of a command with all of its processes, and megabytes of itself at its peak.

    Its cases may have failed.
    """
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert child.stderr is not None
    said = child.stderr.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} exited with {child.returncode}:\n{said.decode()}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


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
            self._read()
        return time.perf_counter() - self._began

    def answer(self, keys: str, text: str) -> float:
        """Seconds from the keys to their answer on the screen; then waits until all is painted."""
        self.press(keys)
        took = self.wait_for(text)
        self.settle()
        return took

    def settle(self) -> None:
        """Wait until nothing more is painted: a program that nobody reads stands still."""
        while select.select([self._fd], [], [], _QUIET)[0]:
            self._read()

    def _read(self) -> None:
        try:
            new = os.read(self._fd, 1 << 16)
        except OSError:
            raise SystemExit(f"it ended:\n{_ESCAPES.sub(b'', self._seen).decode(errors='replace')}") from None
        # A run paints for a minute: only what came last needs to be looked through.
        self._seen = self._seen[-(1 << 16) :] + new

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


@dataclass(frozen=True)
class Large:
    """A large set in a list: seconds to its first case, from a key pressed at that moment to its paint, from
    a key and from a filter to their paint, as medians; megabytes of the process."""

    opened: float
    first_key: float
    painted: float
    filtered: float
    megabytes: float


class LargeSet:
    """`first` and `last` are the keys that go to the first and the last of so many cases."""

    def __init__(self, command: Sequence[str], cases: int, first: str, last: str) -> None:
        self.terminal = Terminal(command)
        self._cases = cases
        self._ends = [(first, "case_00000"), (last, f"case_{cases - 1:05d}")]

    def __enter__(self) -> LargeSet:
        return self

    def __exit__(self, *_: object) -> None:
        self.terminal.end()

    def measure(self) -> Large:
        opened = self.terminal.wait_for("case_00000")
        first_key = self.terminal.answer(*self._ends[1])
        painted = statistics.median(self.terminal.answer(*end) for end in self._ends * 10)
        filtered = statistics.median(self._filter(f"{self._cases - number:05d}") for number in range(2, 7))
        return Large(opened, first_key, painted, filtered, self.megabytes)

    @property
    def megabytes(self) -> float:
        return float(psutil.Process(self.terminal.pid).memory_info().rss) / 1e6

    def _filter(self, text: str) -> float:
        """Seconds until the one case with this text in its id is all that is listed."""
        self.terminal.press("/")
        self.terminal.settle()
        took = self.terminal.answer(text, " 1 of")
        self.terminal.press("\x1b")
        self.terminal.settle()
        return took


def table(rows: Sequence[Row]) -> str:
    """Markdown, as the guide quotes it."""
    lines = [
        f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}",
        "",
        "| what | ours | theirs | ratio | bar | holds |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for row in rows:
        theirs = "" if row.theirs is None else f"{row.theirs:.3f} {row.unit}"
        ratio = "" if row.ratio is None else f"{row.ratio:.3f}"
        bar = f"{row.most:.3g} {row.unit}" if row.most is not None else f"{row.bar:.3g}" if row.bar else ""
        holds = {True: "yes", False: "**no**", None: ""}[row.holds]
        lines.append(f"| {row.what} | {row.ours:.3f} {row.unit} | {theirs} | {ratio} | {bar} | {holds} |")
    return "\n".join(lines)
