"""Runs in a process of their own, whose cases somebody else waits for one by one."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

from evaltui.core.model.case_id import CaseId
from evaltui.runner.parent.host_process import how_it_ended
from evaltui.testing.messages import Ending, FinishedCase, FinishedRun, RunOrder, Unpacker, packed

_SERVER = "evaltui.testing.run_process"
_SOCKET = "socket"
_CHUNK = 1 << 20


class NoResultError(Exception):
    """The run is over, and there is no result of a case; the message says why."""


class RunProcess:
    """The process that runs are in, and what it has told so far.

    With `is_shared`, other workers of pytest-xdist use it, too, and it goes on without this one.
    """

    def __init__(
        self,
        channel: socket.socket,
        *,
        is_shared: bool = False,
        ended: Callable[[], str] = str,
        held: ExitStack | None = None,
    ) -> None:
        """`ended` waits until the process is gone, and returns how it ended; "" where nobody knows. `held` is
        closed when this one ends."""
        self.runs: dict[str, FinishedRun] = {}
        """Those that are over, by the keys of their orders."""
        self._cases: dict[str, dict[CaseId, FinishedCase]] = {}
        self._channel = channel
        self._unpacker = Unpacker()
        self._is_shared = is_shared
        self._ended = ended
        self._held = held or ExitStack()
        self._is_gone = False

    def start(self, order: RunOrder) -> None:
        """Ask for a run; another worker may have done so already."""
        self._cases.setdefault(order.key, {})
        self._send(order)

    def result(self, order: RunOrder, case: CaseId) -> FinishedCase:
        """A case of a run that was started, waited for. Raises NoResultError."""
        cases = self._cases[order.key]
        while case not in cases:
            if finished := self.runs.get(order.key):
                raise NoResultError(finished.problem or "; ".join(finished.notes) or "the case was not run")
            if self._is_gone:
                raise NoResultError(f"the process of the runs {self._ended() or 'ended by itself'}")
            self._receive()
        return cases[case]

    def results(self, order: RunOrder) -> Mapping[CaseId, FinishedCase]:
        """The cases that are over."""
        return self._cases.get(order.key, {})

    def end(self) -> None:
        """Cancel what is still running, and wait until its processes are gone and its log is written.

        Of a shared process, only its side here is closed.
        """
        if not self._is_shared:
            self._send(Ending())
            while not self._is_gone:
                self._receive()
            self._ended()
        self._channel.close()
        self._held.close()

    def _send(self, message: object) -> None:
        try:
            self._channel.sendall(packed(message))
        except OSError:
            self._is_gone = True

    def _receive(self) -> None:
        try:
            data = self._channel.recv(_CHUNK)
        except ConnectionError:
            data = b""
        self._is_gone |= not data
        for message in self._unpacker.feed(data):
            match message:
                case FinishedCase():
                    self._cases.setdefault(message.run, {})[message.id] = message
                case FinishedRun():
                    self.runs[message.order.key] = message


def own_process() -> RunProcess:
    """A process that ends with this one."""
    ours, theirs = socket.socketpair()
    with theirs, ExitStack() as stack:
        errors = stack.enter_context(tempfile.TemporaryFile())
        process = _started(["channel", str(theirs.fileno())], subprocess.DEVNULL, errors, theirs.fileno())
        held = stack.pop_all()

    def ended() -> str:
        code = process.wait()
        errors.seek(0)
        return f"{how_it_ended(code)}\n{errors.read().decode('utf-8', 'replace')}".strip()

    return RunProcess(ours, ended=ended, held=held)


def shared_process(folder: Path, controller: int) -> RunProcess:
    """The process of all workers that know the folder; the first who asks starts it.

    `controller` is the process with which it ends. Raises OSError.
    """
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to somebody else")
    with (folder / "lock").open("w") as lock, (folder / "errors").open("ab") as errors:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / _SOCKET).exists():
            process = _started(["shared", str(folder), str(controller)], subprocess.PIPE, errors)
            assert process.stdout is not None
            process.stdout.readline()
    return joined(folder, is_shared=True)


def joined(folder: Path, *, is_shared: bool = False) -> RunProcess:
    """The process that serves a folder. Raises OSError."""
    channel = socket.socket(socket.AF_UNIX)
    channel.connect(str(folder / _SOCKET))

    def ended() -> str:
        with suppress(OSError):
            errors = (folder / "errors").read_text(encoding="utf-8", errors="replace").strip()
            return f"ended by itself\n{errors}" if errors else ""
        return ""

    return RunProcess(channel, is_shared=is_shared, ended=ended)


def _started(words: Sequence[str], output: int, errors: IO[bytes], *channels: int) -> subprocess.Popen[bytes]:
    # An interrupt of the terminal is for pytest, which says what is to end.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", _SERVER, *words],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        pass_fds=channels,
        start_new_session=True,
    )
