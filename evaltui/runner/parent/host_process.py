"""The process of a host: started in the agent's Python, and how it ended."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from evaltui.core.model.errors import NO_PYTHON, ErrorInfo, ErrorKind
from evaltui.runner.bootstrap import command

# What is started in place of a guard that cannot be: it ends at once.
_NOTHING = [sys.executable, "-c", ""]


def start_guard(
    python: Path,
    environment: Mapping[str, str],
    channel: socket.socket,
    lifeline: socket.socket,
    problem: str = "",
    folder: Path | None = None,
) -> tuple[subprocess.Popen[bytes], str]:
    """The guard of a host, and why none could be started, "" where one was.

    `channel` and `lifeline` are its ends of them. A `problem` is why there is no Python to start it with. It
    works in `folder`, and where there is none such in the folder of this process.
    """

    def started(program: Sequence[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            program,
            stdin=lifeline.fileno(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(channel.fileno(),),
            env=environment,
            cwd=folder if folder is not None and folder.is_dir() else None,
            start_new_session=True,
        )

    if problem:
        return started(_NOTHING), problem
    try:
        return started(command(str(python), "guard", str(channel.fileno()))), ""
    except OSError as error:
        # It was removed or replaced since it was found.
        return started(_NOTHING), f"{python}: cannot be started as a Python ({error.strerror})"


def not_started(python: Path, code: int) -> str:
    """Of a guard that ended before it has begun to work, the sentence that says so."""
    return f"{python}: cannot be started as a Python (exit code {code})"


def how_it_ended(code: int | None) -> str:
    """`was ended by SIGSEGV`; without an exit code its guard was killed, too."""
    code = -signal.SIGKILL if code is None else code
    return (
        f"was ended by {_signal_name(-code)}"
        if code < 0
        else f"ended itself with exit code {code} (os._exit)"
    )


def cause_of_death(
    who: str, python: Path, host: int | None, guard: int, last_words: Sequence[str], cut_off: bool
) -> ErrorInfo:
    """Why a process that somebody works in is gone: exit codes of the host and of its guard. One that is
    `cut_off` goes on without being heard."""
    if cut_off:
        what = f"{who} closed the channel to evaltui (closing every file descriptor does that)"
        return ErrorInfo("AgentProcessError", what, kind=ErrorKind.HOST_LOST)
    said = "\n".join(last_words[-20:])
    if host is None and guard > 0:
        return ErrorInfo(NO_PYTHON, not_started(python, guard), said, kind=ErrorKind.CONFIG)
    what = f"{who}'s process {how_it_ended(host)}"
    return ErrorInfo("AgentProcessError", what, said, kind=ErrorKind.HOST_LOST)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        # Of those for real time, only the first and the last have names.
        return f"signal {number}"
