"""Intake of requests: each is read and kept on disk in a thread of its own, then acknowledged."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from evaltui.traces.receiver.parts import Encoding, Request, Signal, decompressed, read_request
from evaltui.traces.receiver.spool import Spool

MOST_WAITING = 128 * 1024 * 1024
"""Bytes of requests that are in memory at the same time."""


class BusyError(Exception):
    """Too much is waiting to be kept; the sender should try again in a moment."""


@dataclass
class Counts:
    """Counts of received data since the listener began."""

    spans: int = 0
    """Log records, too; only what was acknowledged."""
    rejected: int = 0
    requests: int = 0
    refused: int = 0
    """Requests that were answered with an error."""


class Intake:
    """Entered as a context in a running loop."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._bytes = 0
        self._thread = ThreadPoolExecutor(1, "spool")
        self.counts = Counts()

    async def __aenter__(self) -> Intake:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)

    def reserve(self, count: int) -> None:
        """Make room for bytes of a request, which `release` gives up. Raises BusyError."""
        if self._bytes and self._bytes + count > MOST_WAITING:
            raise BusyError
        self._bytes += count

    def release(self, count: int) -> None:
        self._bytes -= count

    async def keep(self, body: bytes, signal: Signal, encoding: Encoding, *, is_compressed: bool) -> Request:
        """Read a request and have it on the disk. Raises BadBodyError, BusyError and SpoolFullError."""

        def stored() -> Request:
            try:
                request = read_request(decompressed(body) if is_compressed else body, signal, encoding)
            except MemoryError:
                raise BusyError from None
            if request.parts:
                self._spool.add(request.parts, time.time())
            return request

        request = await asyncio.get_running_loop().run_in_executor(self._thread, stored)
        self.counts.spans += sum(part.spans for part in request.parts)
        self.counts.rejected += request.rejected
        return request
