"""Sends requests to the servers of agents over HTTP, and describes their errors with what to do about
them."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_exponential_jitter,
)

from ....core.model.errors import ErrorKind
from ....project.hosts import in_url, is_loopback
from ....text.figures import counted, show_duration, show_size
from ...errors import PlacedError, excerpt
from ...exception_kinds import kind_of_status, wait_in_headers
from ...protocol import Lines
from ..base import AgentLoadError, Reporter

ATTEMPTS = 4
# Seconds. If a server asks for a longer wait, the request fails and the user decides.
LONGEST_WAIT = 60.0
_BUSY = frozenset((429, 502, 503, 504))


class RemoteError(PlacedError, Exception):
    """A request to an agent's server failed; the message says why, and what to do."""

    def __init__(self, message: str, where: str) -> None:
        super().__init__(message)
        self.where = where


class UnreachableError(RemoteError):
    """The server cannot be reached, or its certificate is not valid for it; no request was sent."""

    error_kind = ErrorKind.NETWORK


class ConnectionLostError(RemoteError):
    """The connection ended before the response: whether the request was executed is unknown."""

    error_kind = ErrorKind.NETWORK


class NoResponseError(RemoteError):
    """The server accepted the request and did not respond in time."""

    error_kind = ErrorKind.TIMEOUT


class MalformedResponseError(RemoteError):
    """The response does not follow the protocol."""


class AnsweredError(RemoteError):
    """The server answered the message with an error of the protocol: the conversation continues."""


class HttpStatusError(RemoteError):
    """The server refused the request, or failed. `detail` is the server's message, `wait` the seconds until
    it accepts requests again."""

    def __init__(self, message: str, where: str, status: int, detail: str, wait: float | None) -> None:
        super().__init__(message, where)
        self.status = status
        self.detail = detail
        self.wait = wait
        # Status 500 means that the agent behind the server raised.
        self.error_kind = ErrorKind.AGENT if status == 500 else kind_of_status(status) or ErrorKind.AGENT


def is_rate_limited(error: BaseException) -> bool:
    """Whether the server did not execute a request and may do so later."""
    return isinstance(error, HttpStatusError) and error.status == 429 and _is_patient(error)


def is_transient(error: BaseException) -> bool:
    """Whether a request that may be executed twice should be sent again."""
    if isinstance(error, HttpStatusError):
        return error.status in _BUSY and _is_patient(error)
    return isinstance(error, ConnectionLostError)


def _is_patient(error: HttpStatusError) -> bool:
    return error.wait is None or error.wait <= LONGEST_WAIT


def remote_error(error: httpx.HTTPError | httpx.InvalidURL, where: str) -> RemoteError:
    """The error for the user of an error of httpx."""
    message = " ".join(str(error).split())
    if isinstance(error, httpx.ConnectTimeout):
        return UnreachableError("no connection in time. Check the address and the network", where)
    if isinstance(error, httpx.ConnectError):
        return UnreachableError(_why_unreachable(error, message), where)
    if isinstance(error, httpx.ProxyError):
        return UnreachableError(
            f"the proxy refused: {message}. Check HTTP_PROXY, HTTPS_PROXY and NO_PROXY", where
        )
    if isinstance(error, httpx.TimeoutException):
        return NoResponseError("no response in time. Check the server's log", where)
    is_cut_off = isinstance(error, httpx.NetworkError) or any(
        word in message for word in ("disconnected", "closed connection")
    )
    if is_cut_off:
        return connection_lost(where)
    if isinstance(error, httpx.RemoteProtocolError | httpx.DecodingError):
        return MalformedResponseError(
            f"the response is not HTTP: {excerpt(message)}. Check the address", where
        )
    return UnreachableError(f"{message or type(error).__name__}. Check the address", where)


def connection_lost(where: str) -> ConnectionLostError:
    return ConnectionLostError(
        "the connection was lost before the end of the response. Check the server's log, then run again",
        where,
    )


def _why_unreachable(error: BaseException, message: str) -> str:
    causes: list[BaseException] = [error]
    while (inner := causes[-1].__cause__ or causes[-1].__context__) is not None and inner not in causes:
        causes.append(inner)
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes) or "refused" in message:
        return "connection refused. Start the server or check the address"
    if "CERTIFICATE" in message:
        return f"{message}. Set SSL_CERT_FILE to the certificate of its authority"
    return f"no connection: {message}. Check the address and the network"


def status_error(response: httpx.Response, where: str, variables: Sequence[str]) -> HttpStatusError:
    """The error of a response without success that has been read. `variables` are those of the headers that
    were sent."""
    status, wait = response.status_code, wait_in_headers(response.headers)
    message = f"{status} {response.reason_phrase}".rstrip()
    detail = _detail(response)
    if detail not in ("", response.reason_phrase):
        message = f"{message}: {detail.rstrip('.')}"
    return HttpStatusError(f"{message}. {_advice(response, wait, variables)}", where, status, detail, wait)


def _advice(response: httpx.Response, wait: float | None, variables: Sequence[str]) -> str:
    status = response.status_code
    if status in (401, 403):
        if variables:
            return f"Check the value of {' and '.join(variables)}"
        return "Send a credential with --header-env NAME=VARIABLE"
    if response.is_redirect:
        return f"Use the address that it redirects to: {response.headers.get('location', '')}".rstrip(": ")
    if status == 404:
        return "Check the address; a server that was restarted may have lost the session"
    if status == 429:
        if wait is not None and wait > LONGEST_WAIT:
            return f"Wait {show_duration(round(wait))}, or raise the server's limit"
        attempts = counted(ATTEMPTS, "time")
        return f"Tried {attempts}. Run fewer cases at once (--parallel 1), or raise the server's limit"
    if status >= 500:
        return "Check the server's log"
    return "The server does not take this request; check that it is the kind of server the address says"


def _detail(response: httpx.Response) -> str:
    """The message in the server's response, on one line."""
    try:
        body: Any = response.json()
    except ValueError:
        return (
            excerpt(response.text)
            if response.headers.get("content-type", "").startswith("text/plain")
            else ""
        )
    if isinstance(body, dict):
        body = next((body[name] for name in ("detail", "error", "message") if body.get(name)), body)
    return excerpt(body if isinstance(body, str) else str(body))


UNRECORDED = "the agent is behind a network and calls its models and tools there"
"""The reason in `AgentInfo.unrecorded` of agents behind a network."""

# Seconds.
_CONNECTING = 10.0
# The time-out of a request that runs no agent, though the server may import one.
_ANSWERING = 60.0
# Servers close idle connections, uvicorn after five seconds. A turn must not use a connection that is being
# closed: it would be unknown whether the server read it.
_IDLE = 2.0
_MAX_LINE_LENGTH = 64_000_000


T = TypeVar("T")


class CancelledError(PlacedError, asyncio.CancelledError):
    """A request was running when its turn was cancelled, by the user or by a time-out."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where


def request_headers(headers: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The headers of every request, from pairs of a header and the variable with its value.

    Raises AgentLoadError for a variable that is not set.
    """
    missing = [variable for _, variable in headers if not os.environ.get(variable)]
    if missing:
        raise AgentLoadError(
            f"{missing[0]} is not set, which --header-env names. Set it in the environment or in .env"
        )
    return {name: os.environ[variable] for name, variable in headers}


def http_client(url: str, headers: Mapping[str, str]) -> httpx.AsyncClient:
    """A client for the server of a URL, with the environment's proxies and certificates.

    Requests to this machine use no proxy, and redirections are not followed, so that credentials reach only
    the addressed server.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    is_local = is_here(host)
    # None means without a proxy.
    mounts = {f"all://{in_url(host)}": None} if is_local else None
    # Without TLS, reading certificates would take longer than a turn on this machine.
    empty_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_local and parts.scheme == "http" else None
    return httpx.AsyncClient(
        headers=headers,
        verify=empty_context or True,
        mounts=mounts,
        follow_redirects=False,
        timeout=httpx.Timeout(_ANSWERING, connect=_CONNECTING, pool=None),
        limits=httpx.Limits(max_connections=None, keepalive_expiry=_IDLE),
    )


def is_here(host: str) -> bool:
    """Whether a host is this machine, also by a name below `localhost`."""
    return is_loopback(host) or host.endswith(".localhost")


class Server:
    """A server over HTTP. Paths are below `url`, which holds no credentials.

    Every failed request raises a RemoteError that says what was requested, what went wrong, and what to do.
    """

    def __init__(self, url: str, headers: Sequence[tuple[str, str]]) -> None:
        self.url = url.rstrip("/")
        self._variables = tuple(variable for _, variable in headers)
        self._client = http_client(url, request_headers(headers))

    async def close(self) -> None:
        await self._client.aclose()

    async def ask(
        self, method: str, path: str, body: Any = None, *, shown: str = "", reporter: Reporter | None = None
    ) -> Any:
        """Sends a request that may be repeated, and returns the JSON of its response; None where that is
        empty.

        It is sent again where the server was busy or the connection was lost, which `reporter` reports.
        Errors have the path as `shown`, without meaningless ids.
        """
        where = f"{method} {self.url}{shown or path}"

        async def send() -> Any:
            with remote_errors(where):
                response = await self._client.request(method, self.url + path, json=body)
            self._check(response, where)
            try:
                return response.json() if response.content else None
            except ValueError as error:
                message = f"the response is not JSON: {excerpt(response.text)}. Check the address"
                raise MalformedResponseError(message, where) from error

        return await with_retries(send, is_transient, reporter)

    async def stream(self, path: str, body: Any, reporter: Reporter) -> AsyncGenerator[Any]:
        """Sends a turn and yields the JSON of each server-sent event of its response.

        The turn is sent again only where the server refused to run it: 429, Too Many Requests.
        """
        where = f"POST {self.url}{path}"

        async def open_stream() -> httpx.Response:
            return await self._open_stream(path, body, where)

        with remote_errors(where):
            response = await with_retries(open_stream, is_rate_limited, reporter)
            try:
                kind = response.headers.get("content-type", "").partition(";")[0]
                if kind != "text/event-stream":
                    await response.aread()
                    message = f"the response is {kind or 'of no type'}, not text/event-stream"
                    raise MalformedResponseError(
                        f"{message}: {excerpt(response.text)}. Check the address", where
                    )
                async for data in _events(response, where):
                    yield _parsed(data, where)
            finally:
                await response.aclose()

    async def _open_stream(self, path: str, body: Any, where: str) -> httpx.Response:
        # The time-out of a turn is set by its case.
        timeout = httpx.Timeout(None, connect=_CONNECTING)
        request = self._client.build_request("POST", self.url + path, json=body, timeout=timeout)
        response = await self._client.send(request, stream=True)
        if response.status_code != httpx.codes.OK:
            try:
                await response.aread()
            finally:
                await response.aclose()
            self._check(response, where)
        return response

    def _check(self, response: httpx.Response, where: str) -> None:
        if not response.is_success:
            raise status_error(response, where, self._variables)


@contextmanager
def remote_errors(where: str) -> Iterator[None]:
    """Raises the error for the user in place of one of httpx, and of a cancellation."""
    try:
        yield
    except asyncio.CancelledError:
        raise CancelledError(where) from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise remote_error(error, where) from error


async def with_retries(
    ask: Callable[[], Awaitable[T]],
    may_be_repeated: Callable[[BaseException], bool],
    reporter: Reporter | None,
) -> T:
    """Sends a request up to ATTEMPTS times; `reporter` reports each failure that is followed by another
    attempt."""

    def report_failure(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        if reporter is None or error is None:
            return
        message = f"{error}; retrying in {show_duration(state.upcoming_sleep)}"
        # The event has no step id, so it is not part of the record.
        reporter.event("error", data={"type": type(error).__name__, "message": message, "retrying": True})

    retrying = AsyncRetrying(
        retry=retry_if_exception(may_be_repeated),
        stop=stop_after_attempt(ATTEMPTS),
        wait=_wait,
        before_sleep=report_failure,
        reraise=True,
    )
    return await retrying(ask)


_own_wait = wait_exponential_jitter(initial=0.5, max=8, jitter=0.5)


def _wait(state: RetryCallState) -> float:
    """Seconds until the next attempt: the server's own delay, else about twice as long each time."""
    error = state.outcome.exception() if state.outcome else None
    retry_after = error.wait if isinstance(error, HttpStatusError) else None
    return _own_wait(state) if retry_after is None else retry_after


async def _events(response: httpx.Response, where: str) -> AsyncIterator[bytes]:
    """The data of each server-sent event. Raises ConnectionLostError where the last one is incomplete."""
    lines, data = Lines(), list[bytes]()
    async for chunk in response.aiter_bytes():
        for line in lines.feed(chunk):
            name, _, value = line.removesuffix(b"\r").partition(b":")
            if name == b"data":
                data.append(value.removeprefix(b" "))
            elif not name and data:
                yield b"\n".join(data)
                data = []
        if lines.rest > _MAX_LINE_LENGTH:
            raise MalformedResponseError(f"an event of more than {show_size(_MAX_LINE_LENGTH)}", where)
    if data or lines.rest:
        raise connection_lost(where)


def _parsed(data: bytes, where: str) -> Any:
    try:
        return json.loads(data)
    except ValueError as error:
        text = excerpt(data.decode("utf-8", "replace"))
        raise MalformedResponseError(
            f"an event is not JSON: {text}. Check the server's log", where
        ) from error
