"""A listener for an agent: what is sent to it becomes scored sessions."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from evaltui.documents.own_folder import make_own_folder
from evaltui.project.folders import agent_folder
from evaltui.project.packages import require_extra
from evaltui.runs.selection import RunRequest
from evaltui.runs.sessions import ScoredSession, scored_session
from evaltui.runs.store import SESSIONS
from evaltui.traces.receiver import OTLP_PORT
from evaltui.traces.receiver.hosts import in_url
from evaltui.traces.receiver.intake import Counts, Intake
from evaltui.traces.receiver.sessions import CompletedSession, completed_sessions
from evaltui.traces.receiver.spool import SPOOL, Spool, SpoolError, open_spool

# Seconds between two looks at what is complete.
_EVERY = 0.5
# Seconds after which what was received, handed on and not added to is deleted; the results stay.
_KEPT = 7 * 24 * 3600.0


@dataclass(frozen=True)
class Address:
    """Where a listener is sent to."""

    host: str = "127.0.0.1"
    port: int = OTLP_PORT
    """0 for any that is free."""
    token: str = ""
    """"" for none, which only a loopback address may have."""


class Listener:
    """Made by `listening`."""

    def __init__(self, spool: Spool, request: RunRequest, counts: Counts, url: str) -> None:
        self._spool = spool
        self._request = request
        self.counts = counts
        self.url = url
        """The endpoint for exporters."""

    async def sessions(self) -> AsyncIterator[ScoredSession]:
        """Every session when it is complete, and again when there is more of it; never ends."""
        while True:
            async for session in self._complete(ending=False):
                yield session
            await asyncio.sleep(_EVERY)

    async def last_sessions(self) -> AsyncIterator[ScoredSession]:
        """The sessions whose first span has ended, without waiting for later spans."""
        async for session in self._complete(ending=True):
            yield session

    async def _complete(self, *, ending: bool) -> AsyncIterator[ScoredSession]:
        waiting = completed_sessions(self._spool, time.time(), ending=ending)
        while (session := await asyncio.to_thread(_next, waiting)) is not None:
            yield await scored_session(session, self._request)


def _next(sessions: Iterator[CompletedSession]) -> CompletedSession | None:
    try:
        return next(sessions, None)
    except sqlite3.Error as error:
        raise SpoolError(f"{SPOOL} of {SESSIONS}: {error}") from error


@asynccontextmanager
async def listening(request: RunRequest, address: Address) -> AsyncIterator[Listener]:
    """Takes spans while it is entered. `request` says of which agent, and how sessions are scored.

    Raises OSError where the port is taken or the folder cannot be written, SpoolInUseError, SpoolError and
    MissingExtraError.
    """
    require_extra("traces")
    from evaltui.traces.receiver.http import Access, serving

    folder = make_own_folder(agent_folder(request.agent_dir), SESSIONS)
    with open_spool(folder) as spool:
        await asyncio.to_thread(spool.forget, time.time() - _KEPT)
        access = Access(address.host, address.token)
        async with Intake(spool) as intake, serving(intake, access, address.port) as port:
            yield Listener(spool, request, intake.counts, f"http://{in_url(address.host)}:{port}")
