"""The processes that agents run in, as this process has started them."""

from __future__ import annotations

from contextlib import suppress

import psutil


def hosts() -> list[psutil.Process]:
    """Each of them is the child of a guard, which is a child of this process."""
    found = []
    for guard in _those_of_evaltui(psutil.Process()):
        with suppress(psutil.NoSuchProcess):
            found += _those_of_evaltui(guard)
    return found


def _those_of_evaltui(parent: psutil.Process) -> list[psutil.Process]:
    found = []
    for one in parent.children():
        # Some end just now.
        with suppress(psutil.NoSuchProcess):
            if any(word.startswith("evaltui.runner.") for word in one.cmdline()):
                found.append(one)
    return found
