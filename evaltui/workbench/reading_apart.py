"""A large eval set read in a process of its own, where no thread has to share Python's lock with the screen.

`python -m evaltui.workbench.reading_apart FILE` writes what it read to its standard output, pickled: the
ReadSet without its cases, then lists of a few hundred StoredCase each, and an empty list.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import IO

from evaltui.core.model.stored_cases import StoredCase, StoredCases
from evaltui.workbench.memory import give_back
from evaltui.workbench.reading import ReadSet, read_cases

# Bytes. A smaller file is read sooner than a process starts.
_LARGE = 1_000_000
# Taken over in a millisecond or two, after which the screen may have its turn.
_AT_ONCE = 200


def read_apart(path: Path) -> ReadSet:
    """As `read_cases`, a small file and one that the other process fails at in this process."""
    if not _is_large(path):
        return read_cases(path)
    read = _read_in_process(path) or read_cases(path)
    give_back()
    return read


def _is_large(path: Path) -> bool:
    try:
        return path.stat().st_size > _LARGE
    except OSError:
        return False


def _read_in_process(path: Path) -> ReadSet | None:
    command = [sys.executable, "-P", "-m", __name__, str(path)]
    try:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdout is not None
            return _received(process.stdout)
    except (OSError, EOFError, pickle.UnpicklingError):
        return None


def _received(stream: IO[bytes]) -> ReadSet:
    read: ReadSet = pickle.load(stream)
    stored: list[StoredCase] = []
    while few := pickle.load(stream):
        stored += few
    return replace(read, cases=StoredCases(stored))


def _send(read: ReadSet, stream: IO[bytes]) -> None:
    pickle.dump(replace(read, cases=StoredCases(())), stream, pickle.HIGHEST_PROTOCOL)
    stored = read.cases.stored
    for start in range(0, len(stored), _AT_ONCE):
        pickle.dump(list(stored[start : start + _AT_ONCE]), stream, pickle.HIGHEST_PROTOCOL)
    pickle.dump([], stream)


if __name__ == "__main__":
    # Pickled classes are found by the names of their modules, of which __main__ is none.
    _send(read_cases(Path(sys.argv[1])), sys.stdout.buffer)
