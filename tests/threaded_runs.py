"""Sessions of pytest inside of this one, whose runs of eval cases are in a thread instead of a process."""

from __future__ import annotations

import asyncio
import socket
import threading
from importlib import import_module

from evaltui.testing import background, run_process

# Loaded once for all the sessions of pytest inside of this one, which forget what they have loaded.
for name in (
    "core.scoring.scoring",
    "testing.accepting",
    "testing.failures",
    "testing.fixture",
    "testing.items",
    "testing.session",
    "workbench.result.rescoring",
):
    import_module(f"evaltui.{name}")


def process_in_a_thread() -> background.RunProcess:
    """Stands for `own_process`: nothing is imported anew."""
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=lambda: asyncio.run(run_process.serve_channel(theirs)))
    thread.start()
    return background.RunProcess(ours, ended=lambda: thread.join() or "")
