"""Processes that an agent has started: found and ended with the standard library alone."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

MARK = "EVALTUI_HOST"
"""Variable in the environment of a host and all that it starts, unless that was cleaned."""

_PROC = Path("/proc")


def descendants() -> set[int]:
    """The processes below this one, those whose parents still run."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents() if (_PROC / "self" / "stat").exists() else _parents_from_ps():
        children.setdefault(parent, []).append(pid)
    pids: set[int] = set()
    waiting = [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        pids.update(below)
        waiting += below
    return pids


def _parents() -> Iterator[tuple[int, int]]:
    for stat in _PROC.glob("[0-9]*/stat"):
        # Some end just now.
        with suppress(OSError):
            # The name before it may hold anything, parentheses too.
            yield int(stat.parent.name), int(stat.read_bytes().rpartition(b")")[2].split()[1])


def _parents_from_ps() -> Iterator[tuple[int, int]]:
    for line in _ps("-axo", "pid=,ppid="):
        pid, parent = line.split()
        yield int(pid), int(parent)


def _ps(*options: str) -> list[str]:
    with suppress(OSError):
        done = subprocess.run(["ps", *options], capture_output=True, text=True, errors="replace", check=False)
        return done.stdout.splitlines()
    return []


def kill_descendants() -> None:
    """End what is below this process and whose parents still run."""
    for pid in descendants():
        _kill(pid)


def kill_marked(environ: Mapping[str, str]) -> None:
    """End all but this process that has the mark of this environment in its own."""
    if mark := environ.get(MARK):
        for pid in _marked(f"{MARK}={mark}"):
            if pid != os.getpid():
                _kill(pid)


def _marked(variable: str) -> Iterator[int]:
    if not (_PROC / "self" / "environ").exists():
        yield from (int(line.split()[0]) for line in _ps("-axwwEo", "pid=,command=") if variable in line)
        return
    for environ in _PROC.glob("[0-9]*/environ"):
        # Some end just now, and others are not ours.
        with suppress(OSError):
            if variable.encode() in environ.read_bytes().split(b"\0"):
                yield int(environ.parent.name)


def _kill(pid: int) -> None:
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)
