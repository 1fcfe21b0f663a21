"""The process between evaltui and a host: when either ends, it ends all processes of the agent.

`bootstrap` runs it with FD, the channel of the host, which is its child. Its standard input is a lifeline, a
socket: any byte asks for a trace of the host's threads, the end of input asks to end the host. At the end the
host's exit code (negative for a signal) is written to it. However the parent ends, the lifeline ends with it.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time
from contextlib import suppress
from typing import NoReturn

from .orphans import descendants, kill_descendants, kill_marked

# Seconds for the agent to react to SIGTERM, and for the kernel to end killed processes.
_GRACE = 0.1
_END_TIMEOUT = 5.0
_STEP = 0.005
_PR_SET_CHILD_SUBREAPER = 36


def main() -> NoReturn:
    lifeline = os.dup(0)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    adopts = _adopt_orphans()
    host = os.fork()
    if host == 0:
        os.close(lifeline)
        os.close(null)
        os.setsid()
        from .host import main as serve

        serve()
    os.close(int(sys.argv[1]))
    # Only the agent may hold its standard output and error open.
    os.dup2(null, 1)
    os.dup2(null, 2)
    code = _Guard(host, lifeline, adopts=adopts).watch()
    with suppress(OSError):
        os.write(lifeline, b"%d" % code)
    os._exit(0)


def _adopt_orphans() -> bool:
    """Makes this process the parent of orphans below it. Returns False where the system cannot do that."""
    if sys.platform != "linux":
        return False
    done: int = ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    return done == 0


class _Guard:
    """Watches a host until the host and all its processes have ended."""

    def __init__(self, host: int, lifeline: int, *, adopts: bool) -> None:
        self._host = host
        self._lifeline = lifeline
        self._adopts = adopts
        # The host's exit code; None while it runs.
        self._code: int | None = None
        self._wake_reader, wake_writer = os.pipe()
        os.set_blocking(wake_writer, False)
        os.set_blocking(self._wake_reader, False)
        signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
        self._terminated = False
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.signal(signal.SIGTERM, self._terminate)

    def _terminate(self, number: int, frame: object) -> None:
        self._terminated = True

    def watch(self) -> int:
        """Waits until no process of the host is left and returns the host's exit code."""
        while self._reap() and self._code is None and not self._terminated:
            ready, _, _ = select.select([self._lifeline, self._wake_reader], [], [])
            if self._wake_reader in ready:
                os.read(self._wake_reader, 1 << 12)
            if self._lifeline in ready and not self._pass_on_request():
                break
        if self._code is None:
            _signal_group(self._host, signal.SIGTERM)
            self._wait(_GRACE)
        self._end_all()
        return -signal.SIGKILL if self._code is None else self._code

    def _pass_on_request(self) -> bool:
        """Passes a request for a trace on to the host. Returns False where the parent wants the end, or is
        gone."""
        try:
            request = os.read(self._lifeline, 1 << 12)
        except OSError:
            return False
        if request:
            os.kill(self._host, signal.SIGUSR1)
        return bool(request)

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._code is None and time.monotonic() < deadline and self._reap():
            time.sleep(_STEP)

    def _reap(self) -> bool:
        """Reaps the children that have ended. Returns whether others run."""
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self._host:
                    self._code = os.waitstatus_to_exitcode(status)
        return False

    def _end_all(self) -> None:
        deadline = time.monotonic() + _END_TIMEOUT
        if not self._adopts:
            kill_descendants()
            _signal_group(self._host, signal.SIGKILL)
            kill_marked(os.environ)
        # This process inherits the children of each process that ends, so repeat until there are none.
        while self._reap() and time.monotonic() < deadline:
            left = descendants() if self._adopts else set()
            # Once the host has ended, its pid may belong to another process.
            left |= {self._host} if self._code is None else set()
            for pid in left:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(_STEP)


def _signal_group(pid: int, number: signal.Signals) -> None:
    with suppress(OSError):
        os.killpg(pid, number)
