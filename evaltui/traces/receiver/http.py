"""OTLP over HTTP: which requests are taken, and how each is answered.

async with Intake(spool) as intake, serving(intake, Access("127.0.0.1")) as port: ...
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web
from google.rpc.status_pb2 import Status

from evaltui.project.hosts import host_name, is_loopback, same_secret
from evaltui.traces.receiver.http_server import HEAD_SECONDS, SERVER_HEADER, HttpServer
from evaltui.traces.receiver.intake import BusyError, Intake
from evaltui.traces.receiver.parts import LONGEST_BODY, BadBodyError, Encoding, Signal, TooLargeBodyError
from evaltui.traces.receiver.spool import SpoolFullError

BODY_SECONDS = 60.0
"""Seconds in which a sender has to have sent the body of a request, once it began."""
IDLE_SECONDS = 75.0
"""After which a connection without a request is closed."""
MOST_CONNECTIONS = 256
RETRY_AFTER = 1
"""Seconds that a sender is asked to wait where too much comes at a time."""
RETRY_WHEN_FULL = 30

_SIGNALS: dict[str, Signal] = {"/v1/traces": "traces", "/v1/logs": "logs"}
_ENCODINGS: dict[str, Encoding] = {"application/json": "json", "application/x-protobuf": "protobuf"}
_MEDIA_TYPES = {encoding: name for name, encoding in _ENCODINGS.items()}
# Codes of google.rpc.Status, by the status of HTTP.
_RPC_CODES = {401: 16, 403: 7, 404: 5, 405: 12, 413: 8, 415: 3, 503: 14}
_INVALID_ARGUMENT = 3
# In which requests are still answered once the receiver ends; aiohttp takes 0 for any time.
_LAST_SECONDS = 0.5
_BUSY = "too much at a time; send it again"
_FULL = (
    f"HTTP/1.1 503 Service Unavailable\r\nRetry-After: {RETRY_AFTER}\r\nConnection: close\r\n"
    f"Content-Type: text/plain\r\nContent-Length: {len(_BUSY)}\r\n\r\n{_BUSY}"
).encode()


class RefusedError(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        self.status = status
        self.message = message
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        super().__init__(message)


@dataclass(frozen=True)
class Access:
    """Who may send."""

    host: str
    """Address or name that is bound."""
    token: str = ""
    """Token that every request has to have in `Authorization: Bearer`; "" for none."""

    def check(self, request: web.BaseRequest) -> None:
        """Raises RefusedError."""
        if self.token:
            kind, _, token = request.headers.get("Authorization", "").partition(" ")
            if kind.lower() != "bearer" or not same_secret(
                token.strip().encode("utf-8", "surrogateescape"), self.token
            ):
                message = "Authorization: Bearer with the token of the listener is missing or wrong"
                raise RefusedError(401, message, WWW_Authenticate="Bearer")
            return
        # A page in a browser can have a name of its own point here; then the browser sends that name.
        name = host_name(request.headers.get("Host", ""))
        if not (is_loopback(name) or name == self.host):
            raise RefusedError(403, f"Host is {name[:80]!r}; send to a loopback address")


@asynccontextmanager
async def serving(intake: Intake, access: Access, port: int) -> AsyncIterator[int]:
    """Takes requests while it is entered; has the port, which is a free one for 0. Raises OSError."""
    server = HttpServer(
        _Receiver(intake, access).answer,
        connections=MOST_CONNECTIONS,
        head=HEAD_SECONDS,
        keepalive=IDLE_SECONDS,
        full=_FULL,
    )
    try:
        yield await server.listen(access.host, port)
    finally:
        server.stop_listening()
        # What was not acknowledged will be sent again, to another one.
        await server.shutdown(_LAST_SECONDS)


class _Receiver:
    def __init__(self, intake: Intake, access: Access) -> None:
        self._intake = intake
        self._access = access

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """The response once what was sent is on the disk."""
        encoding = _ENCODINGS.get(request.content_type, "json")
        headers = dict(SERVER_HEADER)
        try:
            status, body = 200, await self._keep(request)
            self._intake.counts.requests += 1
        except RefusedError as error:
            self._intake.counts.refused += 1
            status, body = error.status, _status_message(error, encoding)
            headers |= error.headers
        return web.Response(status=status, body=body, headers=headers, content_type=_MEDIA_TYPES[encoding])

    async def _keep(self, request: web.BaseRequest) -> bytes:
        """The body of the response to what is on the disk now. Raises RefusedError."""
        self._access.check(request)
        signal, encoding = _signal_and_encoding(request)
        packing = request.headers.get("Content-Encoding", "identity").strip().lower()
        if packing not in ("identity", "gzip"):
            raise RefusedError(415, f"Content-Encoding is {packing[:80]!r}; gzip and identity are read")
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        reserved = 0
        body = bytearray()
        try:
            _check_length(request.content_length or 0)
            async with asyncio.timeout(BODY_SECONDS):
                async for data in request.content.iter_any():
                    # Room is taken for what has come: what is only announced takes none from others.
                    _check_length(len(body) + len(data))
                    self._intake.reserve(len(data))
                    reserved += len(data)
                    body += data
            data = bytes(body)
            body.clear()
            stored = await self._intake.keep(data, signal, encoding, is_compressed=packing == "gzip")
            return stored.answer(encoding)
        except TimeoutError as error:
            raise RefusedError(408, f"body not complete after {BODY_SECONDS:g} s") from error
        except TooLargeBodyError as error:
            raise RefusedError(413, str(error)) from error
        except BadBodyError as error:
            raise RefusedError(400, str(error)) from error
        except BusyError as error:
            raise RefusedError(503, _BUSY, Retry_After=str(RETRY_AFTER)) from error
        except SpoolFullError as error:
            raise RefusedError(503, str(error), Retry_After=str(RETRY_WHEN_FULL)) from error
        finally:
            self._intake.release(reserved)


def _check_length(count: int) -> None:
    if count > LONGEST_BODY:
        raise TooLargeBodyError(f"over {LONGEST_BODY} bytes")


def _signal_and_encoding(request: web.BaseRequest) -> tuple[Signal, Encoding]:
    path = request.path
    # Senders have a path of their own before it, such as Langfuse's /api/public/otel.
    signal = next((signal for end, signal in _SIGNALS.items() if path.endswith(end)), None)
    if signal is None:
        hint = "; metrics are not taken: OTEL_METRICS_EXPORTER=none" if path.endswith("/v1/metrics") else ""
        raise RefusedError(404, f"no {path[:80]!r} here: {' and '.join(_SIGNALS)} are{hint}")
    if request.method != "POST":
        raise RefusedError(405, f"{path} takes POST", Allow="POST")
    media_type = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if (encoding := _ENCODINGS.get(media_type)) is None:
        raise RefusedError(415, f"Content-Type is {media_type[:80]!r}, not {' or '.join(_ENCODINGS)}")
    return signal, encoding


def _status_message(error: RefusedError, encoding: Encoding) -> bytes:
    """google.rpc.Status, as JSON or as protobuf."""
    code = _RPC_CODES.get(error.status, _INVALID_ARGUMENT)
    if encoding == "json":
        return json.dumps({"code": code, "message": error.message}).encode()
    status: bytes = Status(code=code, message=error.message).SerializeToString()
    return status
