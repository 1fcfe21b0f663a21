"""An HTTP server with bounds: connections in all, and seconds until each of them has sent a request.

Needs aiohttp, which the extras `serve` and `traces` install.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable
from typing import Any
from weakref import WeakSet

from aiohttp import web

HEAD_SECONDS = 10.0
"""Seconds within which a connection has to have sent a request."""
# Which versions there are is nothing for attackers.
SERVER_HEADER = {"Server": "evaltui"}

_LINGER_SECONDS = 2.0
_MAX_LINE_LENGTH = 4096
# What attackers send is nothing to fill a terminal with.
_SILENT = logging.getLogger(__name__)
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


class HttpServer:
    def __init__(
        self,
        handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        *,
        connections: int,
        head: float,
        keepalive: float,
        full: bytes = b"",
    ) -> None:
        """`head` is the seconds in which a connection has to have sent its first request, `keepalive` those
        it may wait for a further one. As many connections again as there may be get the response `full`;
        further ones are cut, and all of them where it is empty."""
        self._handle = handle
        self._connections = connections
        self._head = head
        self._keepalive = keepalive
        self._full = full
        self._http = web.Server(self._answer)
        self._turned_away = WeakSet[_TurnedAway]()
        # Since when each connection has not sent a request.
        self._silent: dict[web.RequestHandler, float] = {}
        self._listening: asyncio.Server | None = None
        self._watching: asyncio.Task[None] | None = None

    async def listen(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Starts to listen; returns the port, which is a free one for 0. Raises OSError."""
        self._listening = await asyncio.get_running_loop().create_server(
            self._connection, host, port, ssl=tls, ssl_handshake_timeout=self._head if tls else None
        )
        self._watching = asyncio.create_task(self._end_silent())
        return int(self._listening.sockets[0].getsockname()[1])

    def stop_listening(self) -> None:
        if self._listening is not None and self._watching is not None:
            self._listening.close()
            self._watching.cancel()

    async def shutdown(self, seconds: float) -> None:
        """Closes the connections; running requests have some seconds to end."""
        await self._http.shutdown(seconds)

    def _connection(self) -> asyncio.BaseProtocol:
        if len(self._http.connections) >= self._connections:
            has_room = len(self._turned_away) < self._connections
            turned_away = _TurnedAway(self._full if has_room else b"")
            self._turned_away.add(turned_away)
            return turned_away
        handler = _Connection(
            self._http,
            loop=asyncio.get_running_loop(),
            access_log=_SILENT,
            logger=_SILENT,
            keepalive_timeout=self._keepalive,
            lingering_time=_LINGER_SECONDS,
            max_line_size=_MAX_LINE_LENGTH,
            auto_decompress=False,
        )
        self._silent[handler] = time.monotonic()
        return handler

    async def _end_silent(self) -> None:
        """Closes connections without requests, so that they take no place from others."""
        while True:
            await asyncio.sleep(self._head / 2)
            latest = time.monotonic() - self._head
            for handler in [handler for handler, since in self._silent.items() if since < latest]:
                del self._silent[handler]
                handler.force_close()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self._silent.pop(request.protocol, None)
        return await self._handle(request)


class _Connection(web.RequestHandler):
    def handle_error(self, *args: Any, **kwargs: Any) -> web.StreamResponse:
        response = super().handle_error(*args, **kwargs)
        response.headers.update(SERVER_HEADER)
        return response


class _TurnedAway(asyncio.Protocol):
    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if not self._answer:
            transport.abort()
            return
        transport.write(self._answer)
        # What is still sent is read for a moment, so that the sender gets to read the answer.
        if transport.can_write_eof():
            transport.write_eof()
        asyncio.get_running_loop().call_later(_LINGER_SECONDS, transport.abort)
