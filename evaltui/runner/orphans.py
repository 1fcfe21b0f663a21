"""Processes that an agent has started, where the system does not hand them over to whoever guards it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

# What a host and all that it starts have in their environment, unless that was cleaned.
MARK = "EVALTUI_HOST"


def kill_descendants() -> None:
    """End what is below this process and whose parents still run."""
    import psutil

    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error, OSError):
            process.kill()


def kill_marked(environ: Mapping[str, str]) -> None:
    """End all but this process that has the mark of this environment in its own."""
    import psutil

    mark = environ.get(MARK)
    for process in psutil.process_iter() if mark else ():
        with suppress(psutil.Error, OSError):
            if process.pid != psutil.Process().pid and process.environ().get(MARK) == mark:
                process.kill()
