"""OTLP over HTTP: which requests are taken, and how each is answered.

async with Intake(spool) as intake, serving(intake, Access("127.0.0.1")) as port: ...
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import h11

from evaltui.files.hosts import host_name, is_loopback, same_secret
from evaltui.traces.receiver.intake import BusyError, Intake
from evaltui.traces.receiver.parts import LONGEST_BODY, BadBodyError, Encoding, Signal, TooLargeBodyError
from evaltui.traces.receiver.spool import SpoolFullError

OTLP_PORT = 4318
"""Where exporters send OTLP over HTTP to, unless they are told otherwise."""
HEAD_SECONDS = 10.0
"""In which a sender has to have sent the head of a request, once it began."""
BODY_SECONDS = 60.0
"""As HEAD_SECONDS, of its body."""
IDLE_SECONDS = 75.0
"""After which a connection without a request is closed."""
MOST_CONNECTIONS = 256
RETRY_AFTER = 1
"""Seconds that a sender is asked to wait where too much comes at a time."""
RETRY_WHEN_FULL = 30

_CHUNK = 64 * 1024
_LONGEST_HEAD = 32 * 1024
# What a sender still sends after an error is read for so long, so that it gets to read the response.
_LINGER_SECONDS = 2.0
_SIGNALS: dict[str, Signal] = {"/v1/traces": "traces", "/v1/logs": "logs"}
_ENCODINGS: dict[str, Encoding] = {"application/json": "json", "application/x-protobuf": "protobuf"}
_MEDIA_TYPES = {encoding: name for name, encoding in _ENCODINGS.items()}
# Codes of google.rpc.Status, by the status of HTTP.
_RPC_CODES = {401: 16, 403: 7, 404: 5, 405: 12, 413: 8, 415: 3, 503: 14}
_INVALID_ARGUMENT = 3
_REASONS = {
    200: b"OK", 400: b"Bad Request", 401: b"Unauthorized", 403: b"Forbidden", 404: b"Not Found",
    405: b"Method Not Allowed", 408: b"Request Timeout", 413: b"Content Too Large",
    415: b"Unsupported Media Type", 431: b"Request Header Fields Too Large", 503: b"Service Unavailable",
}  # fmt: skip


class RefusedError(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str, *headers: tuple[str, str]) -> None:
        self.status = status
        self.message = message
        self.headers = headers
        super().__init__(message)


@dataclass(frozen=True)
class Access:
    """Who may send."""

    host: str
    """What is bound: an address or a name."""
    token: str = ""
    """That every request has to have in `Authorization: Bearer`; "" for none."""

    def check(self, headers: dict[str, str]) -> None:
        """Raises RefusedError."""
        if self.token:
            given = headers.get("authorization", "")
            kind, _, token = given.partition(" ")
            if kind.lower() != "bearer" or not same_secret(token.strip().encode("latin-1"), self.token):
                message = "Authorization: Bearer with the token of the listener is missing or wrong"
                raise RefusedError(401, message, ("WWW-Authenticate", "Bearer"))
            return
        # A page in a browser can have a name of its own point here; then the browser sends that name.
        name = host_name(headers.get("host", ""))
        if not (is_loopback(name) or name == self.host):
            raise RefusedError(403, f"Host is {name[:80]!r}; send to a loopback address")


@dataclass(frozen=True)
class _Limits:
    """Seconds and connections; tests have smaller ones."""

    head: float = HEAD_SECONDS
    body: float = BODY_SECONDS
    idle: float = IDLE_SECONDS
    connections: int = MOST_CONNECTIONS


@asynccontextmanager
async def serving(
    intake: Intake, access: Access, port: int = OTLP_PORT, limits: _Limits | None = None
) -> AsyncIterator[int]:
    """Takes requests while it is entered; has the port, which is a free one for 0. Raises OSError."""
    connections = _Connections(intake, access, limits or _Limits())
    server = await asyncio.start_server(connections.serve, access.host, port, limit=_CHUNK)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await connections.end()
        await server.wait_closed()


class _Connections:
    def __init__(self, intake: Intake, access: Access, limits: _Limits) -> None:
        self._intake = intake
        self._access = access
        self._limits = limits
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        count, most = len(self._tasks), self._limits.connections
        self._tasks.add(task)
        try:
            connection = _Connection(self._intake, self._access, self._limits, reader, writer)
            # A sender that has left, or is too slow.
            with suppress(OSError, TimeoutError, asyncio.CancelledError, h11.LocalProtocolError):
                if count < most:
                    await connection.serve()
                else:
                    await connection.turn_away(at_once=count > 2 * most)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def end(self) -> None:
        """Nobody is waited for: what was not acknowledged will be sent again, to another one."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class _Connection:
    def __init__(
        self,
        intake: Intake,
        access: Access,
        limits: _Limits,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._intake = intake
        self._access = access
        self._limits = limits
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_LONGEST_HEAD)
        self._encoding: Encoding = "json"
        self._lingers = True

    async def serve(self) -> None:
        """Answer one request after the other, until the sender leaves, is too slow or sends nonsense."""
        while True:
            if not self._http.trailing_data[0]:
                data = await asyncio.wait_for(self._reader.read(_CHUNK), self._limits.idle)
                self._http.receive_data(data)
            try:
                async with asyncio.timeout(self._limits.head):
                    event = await self._event()
            except h11.RemoteProtocolError as error:
                await self._refuse(_no_http(error))
                return
            except TimeoutError:
                await self._refuse(RefusedError(408, f"head not complete after {self._limits.head:g} s"))
                return
            if not isinstance(event, h11.Request):
                return
            if not await self._answer(event):
                return
            self._http.start_next_cycle()

    async def turn_away(self, *, at_once: bool) -> None:
        """Answer that there are too many. `at_once` a sender that still sends may not get to read it."""
        self._lingers = not at_once
        await self._refuse(_busy())

    async def _answer(self, request: h11.Request) -> bool:
        """Whether the connection can be used again."""
        self._encoding = "json"
        try:
            body = await self._taken(request)
        except RefusedError as error:
            self._intake.counts.refused += 1
            await self._refuse(error)
            return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE
        except h11.RemoteProtocolError as error:
            self._intake.counts.refused += 1
            await self._refuse(_no_http(error))
            return False
        self._intake.counts.requests += 1
        await self._send(200, body)
        return self._http.our_state is h11.DONE

    async def _taken(self, request: h11.Request) -> bytes:
        """The body of the response to what is on the disk now. Raises RefusedError."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        self._encoding = _ENCODINGS.get(media_type, "json")
        self._access.check(headers)
        signal, encoding = _wanted(request, media_type)
        packing = headers.get("content-encoding", "identity").strip().lower()
        if packing not in ("identity", "gzip"):
            raise RefusedError(415, f"Content-Encoding is {packing[:80]!r}; gzip and identity are read")
        reserved = 0
        body = bytearray()
        try:
            self._check_length(int(headers.get("content-length", "0")))
            try:
                async with asyncio.timeout(self._limits.body):
                    while isinstance(event := await self._event(), h11.Data):
                        # Room is taken for what has come: what is only announced takes none from others.
                        self._check_length(len(body) + len(event.data))
                        self._intake.reserve(len(event.data))
                        reserved += len(event.data)
                        body += event.data
            except TimeoutError:
                message = f"body not complete after {self._limits.body:g} s"
                raise RefusedError(408, message) from None
            if not isinstance(event, h11.EndOfMessage):
                raise ConnectionResetError
            data = bytes(body)
            body.clear()
            kept = await self._intake.keep(data, signal, encoding, is_compressed=packing == "gzip")
            return kept.answer()
        except TooLargeBodyError as error:
            raise RefusedError(413, str(error)) from error
        except BadBodyError as error:
            raise RefusedError(400, str(error)) from error
        except BusyError as error:
            raise _busy() from error
        except SpoolFullError as error:
            raise RefusedError(503, str(error), ("Retry-After", str(RETRY_WHEN_FULL))) from error
        finally:
            self._intake.release(reserved)

    def _check_length(self, count: int) -> None:
        if count > LONGEST_BODY:
            raise TooLargeBodyError(f"over {LONGEST_BODY} bytes")

    async def _event(self) -> object:
        """The next thing that the sender says; it is told to go on where it waits for that."""
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            if self._http.they_are_waiting_for_100_continue:
                await self._write(self._http.send(h11.InformationalResponse(status_code=100, headers=[])))
            self._http.receive_data(await self._reader.read(_CHUNK))

    async def _refuse(self, error: RefusedError) -> None:
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        code = _RPC_CODES.get(error.status, _INVALID_ARGUMENT)
        if self._encoding == "json":
            body = json.dumps({"code": code, "message": error.message}).encode()
        else:
            body = _status_message(code, error.message)
        await self._send(error.status, body, *error.headers)
        if self._lingers and self._http.their_state is not h11.DONE:
            await self._linger()

    async def _send(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        told = [("Content-Type", _MEDIA_TYPES[self._encoding]), ("Content-Length", str(len(body))), *headers]
        if self._http.their_state is not h11.DONE:
            told.append(("Connection", "close"))
        head = h11.Response(status_code=status, headers=told, reason=_REASONS.get(status, b""))
        data = self._http.send(head) or b""
        data += self._http.send(h11.Data(data=body)) or b""
        data += self._http.send(h11.EndOfMessage()) or b""
        await self._write(data)

    async def _write(self, data: bytes | None) -> None:
        self._writer.write(data or b"")
        await asyncio.wait_for(self._writer.drain(), self._limits.head)

    async def _linger(self) -> None:
        if self._writer.can_write_eof():
            self._writer.write_eof()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_SECONDS):
                while await self._reader.read(_CHUNK):
                    pass


def _wanted(request: h11.Request, media_type: str) -> tuple[Signal, Encoding]:
    path = request.target.decode("latin-1").partition("?")[0]
    # Senders have a path of their own before it, such as Langfuse's /api/public/otel.
    signal = next((signal for end, signal in _SIGNALS.items() if path.endswith(end)), None)
    if signal is None:
        hint = "; metrics are not taken: OTEL_METRICS_EXPORTER=none" if path.endswith("/v1/metrics") else ""
        raise RefusedError(404, f"no {path[:80]!r} here: {' and '.join(_SIGNALS)} are{hint}")
    if request.method != b"POST":
        raise RefusedError(405, f"{path} takes POST", ("Allow", "POST"))
    encoding = _ENCODINGS.get(media_type)
    if encoding is None:
        wanted = " or ".join(_ENCODINGS)
        raise RefusedError(415, f"Content-Type is {media_type[:80]!r}, not {wanted}")
    return signal, encoding


def _no_http(error: h11.RemoteProtocolError) -> RefusedError:
    return RefusedError(error.error_status_hint, f"not HTTP/1.1: {error}")


def _busy() -> RefusedError:
    return RefusedError(503, "too much at a time; send it again", ("Retry-After", str(RETRY_AFTER)))


def _status_message(code: int, message: str) -> bytes:
    """google.rpc.Status: a number as field 1 and a text as field 2."""
    text = message.encode()
    return bytes([0x08, code, 0x12, *_varint(len(text))]) + text


def _varint(number: int) -> list[int]:
    found = []
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return [*found, number]
