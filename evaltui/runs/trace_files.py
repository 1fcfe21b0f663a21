"""The files of traces that a run scores, and what they hold: it is resumed with the same conversations."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from evaltui.files.folders import agent_folder, case_path, file_of
from evaltui.runs.resuming import ResumeError
from evaltui.runs.run_header import RunHeader
from evaltui.text.figures import some_of

_MOST_NAMES = 3
# What SQLite has written beside a database, and not yet into it.
_AHEAD = "-wal"


def trace_files(agent_dir: Path, files: Iterable[Path]) -> dict[str, str]:
    """The files as seen from the agent's folder, each with the SHA-256 of what it holds, of a SQLite file
    with its write-ahead log; "" for what can be read only once, such as a pipe."""
    return {case_path(agent_dir, file): _digest(file) for file in files}


def files_to_resume(agent_dir: Path, header: RunHeader) -> list[Path]:
    """The files that a run scored. Raises ResumeError where they do not hold what they held."""
    before = header.trace_files
    if not before:
        raise ResumeError("the run log does not say which files were scored", differs=True)
    if once := [path for path, digest in before.items() if not digest]:
        raise ResumeError(f"{some_of(once, _MOST_NAMES)} can be read only once", differs=True)
    files = [file_of(agent_dir, path) for path in before]
    if gone := [path for path, file in zip(before, files, strict=True) if not file.is_file()]:
        where = f"not found in {agent_folder(agent_dir)}"
        raise ResumeError(f"{some_of(gone, _MOST_NAMES)} {where}", differs=True)
    digests = map(_digest, files)
    if changed := [path for path, now in zip(before, digests, strict=True) if now != before[path]]:
        raise ResumeError(f"{some_of(changed, _MOST_NAMES)} changed", differs=True)
    return files


def _digest(file: Path) -> str:
    digest = hashlib.sha256()
    try:
        for path in (file, file.with_name(file.name + _AHEAD)):
            if path.is_file():
                with path.open("rb") as opened:
                    hashlib.file_digest(opened, lambda: digest)
        return digest.hexdigest() if file.is_file() else ""
    except OSError:
        # Who reads it says why it cannot be read.
        return ""
