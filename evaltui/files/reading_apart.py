"""A large eval set read in a process of its own, where no thread has to share Python's lock with the screen.

`python -m evaltui.files.reading_apart FILE` writes what it read to its standard output, pickled: the
set without its cases, then lists of a few hundred of these, and an empty list.
"""

from __future__ import annotations

import ctypes
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import IO, cast

from evaltui.core.jsondoc.document import JsonDocument
from evaltui.core.model.stored_cases import StoredCase, StoredCases
from evaltui.files.eval_set_file import EvalSetFile, read_eval_set_file


def give_back() -> None:
    """glibc keeps what is freed between things that stay, 50 MB of a set of 20; others give it back."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


# Bytes. A smaller file is read sooner than a process starts.
_LARGE = 1_000_000
# Taken over in a millisecond or two, after which the screen may have its turn.
_AT_ONCE = 200


def read_apart(path: Path) -> EvalSetFile:
    """As `read_eval_set_file`, a small file and one that the other process fails at in this process."""
    if not _is_large(path):
        return read_eval_set_file(path)
    read = _read_in_process(path) or read_eval_set_file(path)
    give_back()
    return read


def _is_large(path: Path) -> bool:
    try:
        return path.stat().st_size > _LARGE
    except OSError:
        return False


def _read_in_process(path: Path) -> EvalSetFile | None:
    command = [sys.executable, "-P", "-m", __name__, str(path)]
    try:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdout is not None
            return _received(process.stdout)
    except (OSError, EOFError, pickle.UnpicklingError):
        return None


def _received(stream: IO[bytes]) -> EvalSetFile:
    read, chunks = pickle.load(stream)
    if chunks is None:
        return cast("EvalSetFile", read)
    cases: list[StoredCase] = []
    while few := pickle.load(stream):
        cases += few
    document = JsonDocument(replace(chunks, cases=tuple(cases)))
    stored = StoredCases(() if read.eval_set is None else cases)
    return cast("EvalSetFile", replace(read, document=document, cases=stored))


def _send(read: EvalSetFile, stream: IO[bytes]) -> None:
    chunks = read.document.chunks if read.document else None
    if chunks is None:
        pickle.dump((read, None), stream, pickle.HIGHEST_PROTOCOL)
        return
    outline = replace(read, document=None, cases=StoredCases(())), replace(chunks, cases=())
    pickle.dump(outline, stream, pickle.HIGHEST_PROTOCOL)
    for start in range(0, len(chunks.cases), _AT_ONCE):
        pickle.dump(list(chunks.cases[start : start + _AT_ONCE]), stream, pickle.HIGHEST_PROTOCOL)
    pickle.dump([], stream)


if __name__ == "__main__":
    # Pickled classes are found by the names of their modules, of which __main__ is none.
    _send(read_eval_set_file(Path(sys.argv[1])), sys.stdout.buffer)
