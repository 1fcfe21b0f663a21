"""Waiting in a test: for a condition, never for a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

# Seconds after which what was waited for is not going to come, on a machine that does ten other things.
PATIENCE = 45.0
# The same for a whole run of an agent, and for what processes do.
PATIENCE_WITH_PROCESSES = 90.0


async def until(
    condition: Callable[[], object], seen: Callable[[], str] = str, seconds: float = PATIENCE
) -> None:
    """Wait until a condition holds; else the test fails and tells what is `seen`, such as the screen."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, _complaint(seconds, seen())
        await asyncio.sleep(0.005)


def wait_until(
    condition: Callable[[], object],
    seen: Callable[[], str] = str,
    seconds: float = PATIENCE_WITH_PROCESSES,
) -> None:
    """The same for a test without an event loop, which waits for other processes."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, _complaint(seconds, seen())
        time.sleep(0.01)


def _complaint(seconds: float, seen: str) -> str:
    return f"it did not come within {seconds:g} s{':' if seen else ''}\n{seen}"
