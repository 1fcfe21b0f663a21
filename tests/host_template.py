"""A process that has imported what agents need, and becomes the guard of a host in a copy of itself.

Started as `python -P -u host_template.py FOLDER FD LIBRARY…` in any Python of an agent, which need not have
evaltui; FOLDER is `evaltui/agents`, FD the socket to `forked_hosts`. A request is the environment of a guard
as JSON, with the descriptors of its working folder, standard input, output, error and channel; the answer is
the number of the new process, with a descriptor that tells when it has ended.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import NoReturn

# Bytes: an environment.
_LONGEST_REQUEST = 1 << 20
_DESCRIPTORS = 5


def _bootstrap(folder: str) -> ModuleType:
    """The first file of a host. Nothing of evaltui is imported under its public name, as in a host."""
    spec = spec_from_file_location("bootstrap", Path(folder) / "bootstrap.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def serve(bootstrap: ModuleType, control: socket.socket, libraries: Sequence[str]) -> NoReturn:
    bootstrap.make_known()
    preloading = importlib.import_module(f"{bootstrap.NAME}.agents.preloading")
    for library in libraries:
        with suppress(ImportError, KeyError):
            preloading.run_import_step(library)
    # A host tells what it brought in when it is closed: where the libraries lie is looked up once.
    preloading.Environment().steps()
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
                _become_guard(bootstrap, json.loads(request), *given)
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
    bootstrap: ModuleType,
    environ: dict[str, str],
    folder: int,
    stdin: int,
    stdout: int,
    stderr: int,
    channel: int,
) -> None:
    """Be as if started as `python -P -u bootstrap.py guard FD`."""
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
    sys.argv = [str(bootstrap.__file__), str(channel)]
    importlib.import_module(f"{bootstrap.NAME}.agents.guard").main()


if __name__ == "__main__":
    serve(_bootstrap(sys.argv[1]), socket.socket(fileno=int(sys.argv[2])), sys.argv[3:])
