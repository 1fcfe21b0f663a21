"""Intake of requests: each is read in one thread, kept on disk, then acknowledged.

Requests that come while the disk is busy are kept together, in one commit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from evaltui.traces.receiver.parts import (
    BadBodyError,
    Encoding,
    Request,
    Signal,
    decompressed,
    read_request,
)
from evaltui.traces.receiver.spool import Spool, SpoolFullError

MOST_WAITING = 128 * 1024 * 1024
"""Bytes of requests that are in memory at the same time."""
# Bytes that one commit brings to the disk, about.
_COMMIT = 16 * 1024 * 1024


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


@dataclass(frozen=True)
class _Waiting:
    body: bytes
    signal: Signal
    encoding: Encoding
    is_compressed: bool
    done: asyncio.Future[Request] = field(compare=False)


class Intake:
    """Entered as a context in a running loop. `clock` is seconds since 1970."""

    def __init__(self, spool: Spool, clock: Callable[[], float] = time.time) -> None:
        self._spool = spool
        self._clock = clock
        self._waiting: list[_Waiting] = []
        self._has_waiting = asyncio.Event()
        self._bytes = 0
        self._thread = ThreadPoolExecutor(1, "spool")
        self._task: asyncio.Task[None] | None = None
        self.counts = Counts()

    async def __aenter__(self) -> Intake:
        self._task = asyncio.create_task(self._work())
        return self

    async def __aexit__(self, *raised: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for waiting in self._waiting:
            waiting.done.cancel()
        await asyncio.to_thread(self._thread.shutdown)

    def reserve(self, count: int) -> None:
        """Make room for bytes of a request, which `release` gives up. Raises BusyError."""
        if self._bytes and self._bytes + count > MOST_WAITING:
            raise BusyError
        self._bytes += count

    def release(self, count: int) -> None:
        self._bytes -= count

    async def keep(self, body: bytes, signal: Signal, encoding: Encoding, *, is_compressed: bool) -> Request:
        """Read a request and have it on the disk. Raises BadBodyError and SpoolFullError."""
        done: asyncio.Future[Request] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(body, signal, encoding, is_compressed, done))
        self._has_waiting.set()
        request = await done
        self.counts.spans += sum(part.spans for part in request.parts)
        self.counts.rejected += request.rejected
        return request

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._has_waiting.wait()
            self._has_waiting.clear()
            now, self._waiting = self._waiting, []
            answers = await loop.run_in_executor(self._thread, self._keep, now)
            for waiting, answer in zip(now, answers, strict=True):
                if waiting.done.done():
                    continue
                if isinstance(answer, Request):
                    waiting.done.set_result(answer)
                else:
                    waiting.done.set_exception(answer)

    def _keep(self, requests: list[_Waiting]) -> list[Request | Exception]:
        """Adds requests to the spool; runs in the spool's thread."""
        answers: list[Request | Exception] = []
        pending: list[Request | Exception] = []
        size = 0
        for waiting in requests:
            pending.append(answer := _read(waiting))
            size += sum(len(part.data) for part in answer.parts) if isinstance(answer, Request) else 0
            # What was decompressed may be much more than what waited.
            if size > _COMMIT:
                answers += self._commit(pending)
                pending, size = [], 0
        return answers + self._commit(pending)

    def _commit(self, answers: list[Request | Exception]) -> list[Request | Exception]:
        parts = [part for answer in answers if isinstance(answer, Request) for part in answer.parts]
        try:
            if parts:
                self._spool.add(parts, self._clock())
        except SpoolFullError as error:
            return [error if isinstance(answer, Request) else answer for answer in answers]
        return answers


def _read(waiting: _Waiting) -> Request | Exception:
    try:
        body = decompressed(waiting.body) if waiting.is_compressed else waiting.body
        return read_request(body, waiting.signal, waiting.encoding)
    except BadBodyError as error:
        return error
    except MemoryError:
        return BusyError()
