"""A process that has imported what agents need, and becomes the guard of a host in a copy of itself.

Started as `python -P -u host_template.py FD`, FD being the socket to `forked_hosts`. A request is the
environment of a guard as JSON, with the descriptors of its working folder, standard input, output, error and
channel; the answer is the number of the new process, with a descriptor that tells when it has ended.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
from contextlib import suppress
from typing import NoReturn

from evaltui.runner.child.preloading import Environment

# Without google-adk, its parts are left out; hosts do without them, too.
_LIBRARIES = (
    "evaltui.runner.child.host",
    "evaltui.runner.child.adapters.function",
    "evaltui.runner.child.adapters.native",
    "evaltui.runner.child.native.models",
    "evaltui.runner.child.adapters.adk",
    "evaltui.runner.child.adapters.custom_metric",
    "google.adk.agents.config_agent_utils",
    # What ADK itself imports in the first turn.
    "google.adk.workflow._workflow",
)
# Bytes: an environment.
_LONGEST_REQUEST = 1 << 20
_DESCRIPTORS = 5


def serve(control: socket.socket) -> NoReturn:
    for library in _LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(library)
    # A host tells what it brought in when it is closed: where the libraries lie is looked up once.
    Environment().steps()
    gc.collect()
    gc.freeze()
    ended, ends = os.pipe()
    os.set_blocking(ended, False)
    os.set_blocking(ends, False)
    signal.set_wakeup_fd(ends, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    while True:
        ready, _, _ = select.select([control, ended], [], [])
        if control in ready:
            request, given, _, _ = socket.recv_fds(control, _LONGEST_REQUEST, _DESCRIPTORS)
            if not request:
                os._exit(0)
            guard = os.fork()
            if guard == 0:
                signal.set_wakeup_fd(-1)
                for descriptor in (control.detach(), ended, ends):
                    os.close(descriptor)
                _become_guard(json.loads(request), *given)
            process = os.pidfd_open(guard)
            socket.send_fds(control, [b"%d" % guard], [process])
            for descriptor in (process, *given):
                os.close(descriptor)
        if ended in ready:
            os.read(ended, 1 << 12)
            _forget_ended()


def _forget_ended() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _become_guard(
    environ: dict[str, str], folder: int, stdin: int, stdout: int, stderr: int, channel: int
) -> None:
    """Be as if started as `python -P -u -m evaltui.runner.child.guard FD`."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.fchdir(folder)
    for standard, descriptor in enumerate((stdin, stdout, stderr)):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    os.close(folder)
    os.set_inheritable(channel, True)
    for name in os.environ.keys() - environ.keys():
        del os.environ[name]
    os.environ.update(environ)
    sys.argv = ["evaltui.runner.child.guard", str(channel)]
    runpy.run_module("evaltui.runner.child.guard", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
