"""The process that workers of `local:N` are forked from: what each of them imports, it has imported once."""

from __future__ import annotations

import multiprocessing
import os
import sys
from contextlib import redirect_stderr

# The variables that there were when it began.
_variables: frozenset[str] | None = None


def begin_forking() -> None:
    """Start the process, where there can be one: it imports while the run is prepared."""
    global _variables
    start_tracker()
    if "forkserver" not in multiprocessing.get_all_start_methods() or _variables is not None:
        return
    from multiprocessing import forkserver

    _variables = frozenset(os.environ)
    forkserver.set_forkserver_preload(["evaltui.runner.cluster.worker"])
    forkserver.ensure_running()


def start_method() -> str:
    """How multiprocessing is to start workers.

    Those that are forked can be given variables of now, and still have those that were taken away since.
    """
    begin_forking()
    return "spawn" if _variables is None or _variables - os.environ.keys() else "forkserver"


def start_tracker() -> None:
    """Starts the process with which multiprocessing clears up after workers.

    It is given standard error, which has no file where the workbench is shown.
    """
    if os.name == "posix":
        from multiprocessing import resource_tracker

        with redirect_stderr(sys.__stderr__):
            resource_tracker.ensure_running()
