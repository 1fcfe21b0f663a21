"""Waiting that can be cancelled at any time."""

from __future__ import annotations

import asyncio


async def wait_set(event: asyncio.Event, seconds: float) -> None:
    """Wait until the event is set, at most so long.

    Not `asyncio.wait_for`: in Python 3.11 it loses a cancellation that comes along with the event.
    """
    waiting = asyncio.create_task(event.wait())
    try:
        await asyncio.wait({waiting}, timeout=seconds)
    finally:
        waiting.cancel()
