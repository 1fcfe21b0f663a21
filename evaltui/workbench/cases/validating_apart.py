"""A large eval set validated in another process, where no thread has to share Python's lock with the screen.

`python -m evaltui.workbench.cases.validating_apart FILE` writes to its standard output, pickled: the
fingerprint of the text, the set without its cases, all problems, and those of each case.
"""

from __future__ import annotations

import ctypes
import pickle
import subprocess
import sys
from pathlib import Path

from evaltui.project.eval_set_file import EvalSetFile, read_eval_set_file, validated


def return_memory() -> None:
    """glibc keeps what is freed between things that stay, 50 MB of a set of 20; others give it back."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


# Bytes. A smaller file is validated sooner than a process starts.
_LARGE_FILE = 1_000_000


def validate_apart(file: EvalSetFile) -> EvalSetFile:
    """Validates a file: a large one in another process, unless that fails."""
    if file.fingerprint is None or file.stamp is None or file.stamp[2] <= _LARGE_FILE:
        return validated(file)
    result = _validate_in_process(file) or validated(file)
    return_memory()
    return result


def _validate_in_process(file: EvalSetFile) -> EvalSetFile | None:
    """The validated set from another process; None where that fails, and where the file has changed."""
    command = [sys.executable, "-P", "-m", __name__, str(file.path)]
    try:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdout is not None
            fingerprint, eval_set, problems, of_cases = pickle.load(process.stdout)
    except (OSError, EOFError, pickle.UnpicklingError):
        return None
    if fingerprint != file.fingerprint:
        return None
    for case, validation in zip(file.cases, of_cases, strict=True):
        case.was_validated(*validation)
    return file.but(eval_set=eval_set, problems=problems, is_validated=True)


def _write(path: Path) -> None:
    file = validated(read_eval_set_file(path, "", path.parent))
    of_cases = [(case.problems, case.fingerprint if file.eval_set else None) for case in file.cases]
    content = file.fingerprint, file.eval_set, file.problems, of_cases
    pickle.dump(content, sys.stdout.buffer, pickle.HIGHEST_PROTOCOL)


if __name__ == "__main__":
    _write(Path(sys.argv[1]))
