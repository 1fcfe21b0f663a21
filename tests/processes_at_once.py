"""Processes that wait for each other, so that they write at the same time."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence


def let_go(processes: Sequence[subprocess.Popen[str]]) -> None:
    """Lets processes go on together that print `ready` and then wait for a line, and waits for their end."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()
        assert process.returncode == 0
