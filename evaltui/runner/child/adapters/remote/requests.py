"""Requests to the servers of agents over HTTP, and what goes wrong with them, with what to do about it."""

from __future__ import annotations

import asyncio
import email.utils
import ipaddress
import json
import os
import ssl
import time
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

from .....core.model.errors import ErrorKind
from .....text.figures import counted, show_duration, show_size
from ....errors import PlacedError
from ....exception_kinds import kind_of_status
from ....protocol import Lines
from ..base import AgentLoadError, Reporter

ATTEMPTS = 4
# Seconds. Who asks for more is not waited for: the user decides.
LONGEST_WAIT = 60.0
_MOST_OF_AN_ANSWER = 200
_BUSY = frozenset((429, 502, 503, 504))


class RemoteError(PlacedError, Exception):
    """A request to an agent's server that failed; the message says why, and what to do."""

    def __init__(self, message: str, where: str) -> None:
        super().__init__(message)
        self.where = where


class UnreachableError(RemoteError):
    """Nothing was sent: no server, no way to it, or not the one that its certificate names."""

    error_kind = ErrorKind.NETWORK


class ConnectionLostError(RemoteError):
    """The connection ended before the answer did: whether the request was carried out is not known."""

    error_kind = ErrorKind.NETWORK


class NoResponseError(RemoteError):
    """The server took the request and did not answer in time."""

    error_kind = ErrorKind.TIMEOUT


class MalformedResponseError(RemoteError):
    """The answer is not what the protocol has."""


class HttpStatusError(RemoteError):
    """The server refused the request, or failed. `detail` is what it says about it, `wait` how many seconds
    it wants to be left alone."""

    def __init__(self, message: str, where: str, status: int, detail: str, wait: float | None) -> None:
        super().__init__(message, where)
        self.status = status
        self.detail = detail
        self.wait = wait
        # With 500, the agent behind the server raised.
        self.error_kind = ErrorKind.AGENT if status == 500 else kind_of_status(status) or ErrorKind.AGENT


def was_refused(error: BaseException) -> bool:
    """Whether the server has certainly not carried out a request, and may do so later."""
    return isinstance(error, HttpStatusError) and error.status == 429 and _is_patient(error)


def may_pass(error: BaseException) -> bool:
    """Whether a request that may be carried out twice is worth being sent again."""
    if isinstance(error, HttpStatusError):
        return error.status in _BUSY and _is_patient(error)
    return isinstance(error, ConnectionLostError)


def _is_patient(error: HttpStatusError) -> bool:
    return error.wait is None or error.wait <= LONGEST_WAIT


def explained(error: httpx.HTTPError | httpx.InvalidURL, where: str) -> RemoteError:
    """What httpx raises, as an error for the user."""
    said = " ".join(str(error).split())
    if isinstance(error, httpx.ConnectTimeout):
        return UnreachableError("no connection in time. Check the address and the network", where)
    if isinstance(error, httpx.ConnectError):
        return UnreachableError(_why_unreachable(error, said), where)
    if isinstance(error, httpx.ProxyError):
        return UnreachableError(
            f"the proxy refused: {said}. Check HTTP_PROXY, HTTPS_PROXY and NO_PROXY", where
        )
    if isinstance(error, httpx.TimeoutException):
        return NoResponseError("no response in time. Check the server's log", where)
    is_cut_off = isinstance(error, httpx.NetworkError) or any(
        word in said for word in ("disconnected", "closed connection")
    )
    if is_cut_off:
        return connection_lost(where)
    if isinstance(error, httpx.RemoteProtocolError | httpx.DecodingError):
        return MalformedResponseError(f"the response is not HTTP: {excerpt(said)}. Check the address", where)
    return UnreachableError(f"{said or type(error).__name__}. Check the address", where)


def connection_lost(where: str) -> ConnectionLostError:
    return ConnectionLostError(
        "the connection was lost before the end of the response. Check the server's log, then run again",
        where,
    )


def _why_unreachable(error: BaseException, said: str) -> str:
    causes: list[BaseException] = [error]
    while (inner := causes[-1].__cause__ or causes[-1].__context__) is not None and inner not in causes:
        causes.append(inner)
    if any(isinstance(one, ConnectionRefusedError) for one in causes) or "refused" in said:
        return "connection refused. Start the server or check the address"
    if "CERTIFICATE" in said:
        return f"{said}. Set SSL_CERT_FILE to the certificate of its authority"
    return f"no connection: {said}. Check the address and the network"


def status_error(response: httpx.Response, where: str, variables: Sequence[str]) -> HttpStatusError:
    """The error of an answer that is no success and has been read. `variables` are those with the values of
    the headers that were sent."""
    status, wait = response.status_code, _asked_wait(response)
    said = f"{status} {response.reason_phrase}".rstrip()
    detail = _detail(response)
    if detail not in ("", response.reason_phrase):
        said = f"{said}: {detail.rstrip('.')}"
    return HttpStatusError(f"{said}. {_advice(response, wait, variables)}", where, status, detail, wait)


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
        tried = counted(ATTEMPTS, "time")
        return f"Tried {tried}. Run fewer cases at once (--parallel 1), or raise the server's limit"
    if status >= 500:
        return "Check the server's log"
    return "The server does not take this request; check that it is the kind of server the address says"


def _asked_wait(response: httpx.Response) -> float | None:
    """The seconds of Retry-After, which may be a date; None where it is neither."""
    after = response.headers.get("retry-after", "")
    if after.isdecimal():
        return float(after)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(after).timestamp() - time.time())
    except ValueError:
        return None


def _detail(response: httpx.Response) -> str:
    """What the server says about it, on one line."""
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


def excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MOST_OF_AN_ANSWER else f"{line[:_MOST_OF_AN_ANSWER]}…"


UNRECORDED = "the agent is behind a network and calls its models and tools there"
"""Of `AgentInfo`."""

# Seconds.
_CONNECTING = 10.0
# Of a request that runs no agent, though the server may import one for it.
_ANSWERING = 60.0
# Servers close idle connections, uvicorn after five seconds. A turn must not go out on one that is closing:
# whether it was read would not be known.
_IDLE = 2.0
_LONGEST_LINE = 64_000_000


T = TypeVar("T")


class CancelledError(PlacedError, asyncio.CancelledError):
    """A request that was under way when its turn was cancelled, by the user or by a time-out."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where


def given_headers(headers: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The headers that are sent with every request, of pairs of a header and the variable with its value.

    Raises AgentLoadError for a variable that is not set.
    """
    missing = [variable for _, variable in headers if not os.environ.get(variable)]
    if missing:
        raise AgentLoadError(
            f"{missing[0]} is not set, which --header-env names. Set it in the environment or in .env"
        )
    return {name: os.environ[variable] for name, variable in headers}


def http_client(url: str, headers: Mapping[str, str]) -> httpx.AsyncClient:
    """A client for the server of a URL; what the environment says of proxies and certificates counts.

    Requests to this machine go through no proxy, and no redirection is followed: who is asked gets the
    credentials.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    is_here = is_loopback(host)
    # None is the way without a proxy.
    mounts = {f"all://{f'[{host}]' if ':' in host else host}": None} if is_here else None
    # Certificates that nothing needs take longer to read than a turn on this machine.
    without = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_here and parts.scheme == "http" else None
    return httpx.AsyncClient(
        headers=headers,
        verify=without or True,
        mounts=mounts,
        follow_redirects=False,
        timeout=httpx.Timeout(_ANSWERING, connect=_CONNECTING, pool=None),
        limits=httpx.Limits(max_connections=None, keepalive_expiry=_IDLE),
    )


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


class Server:
    """A server over HTTP. Paths are below `url`, which holds no credentials.

    Every request raises a RemoteError that says what was asked, what went wrong, and what to do.
    """

    def __init__(self, url: str, headers: Sequence[tuple[str, str]]) -> None:
        self.url = url.rstrip("/")
        self._variables = tuple(variable for _, variable in headers)
        self._client = http_client(url, given_headers(headers))

    async def close(self) -> None:
        await self._client.aclose()

    async def ask(
        self, method: str, path: str, body: Any = None, *, shown: str = "", reporter: Reporter | None = None
    ) -> Any:
        """The JSON that answers a request which may be sent again; None where the response is empty.

        It is sent again where the server was busy or the connection was lost: `reporter` hears of it. Errors
        have the path as it is `shown`, where the ids in it say nothing.
        """
        where = f"{method} {self.url}{shown or path}"

        async def ask() -> Any:
            with _explaining(where):
                response = await self._client.request(method, self.url + path, json=body)
            self._check(response, where)
            try:
                return response.json() if response.content else None
            except ValueError as error:
                said = f"the response is not JSON: {excerpt(response.text)}. Check the address"
                raise MalformedResponseError(said, where) from error

        return await again(ask, may_pass, reporter)

    async def stream(self, path: str, body: Any, reporter: Reporter) -> AsyncGenerator[Any]:
        """The JSON of each server-sent event that answers a turn.

        The turn is sent again only where the server refused to run it: 429, Too Many Requests.
        """
        where = f"POST {self.url}{path}"

        async def begin() -> httpx.Response:
            return await self._begin(path, body, where)

        with _explaining(where):
            response = await again(begin, was_refused, reporter)
            try:
                kind = response.headers.get("content-type", "").partition(";")[0]
                if kind != "text/event-stream":
                    await response.aread()
                    said = f"the response is {kind or 'of no type'}, not text/event-stream"
                    raise MalformedResponseError(
                        f"{said}: {excerpt(response.text)}. Check the address", where
                    )
                async for data in _events(response, where):
                    yield _parsed(data, where)
            finally:
                await response.aclose()

    async def _begin(self, path: str, body: Any, where: str) -> httpx.Response:
        # How long a turn takes is the business of its case.
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
def _explaining(where: str) -> Iterator[None]:
    try:
        yield
    except asyncio.CancelledError:
        raise CancelledError(where) from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise explained(error, where) from error


async def again(
    ask: Callable[[], Awaitable[T]],
    may_be_repeated: Callable[[BaseException], bool],
    reporter: Reporter | None,
) -> T:
    """Ask up to ATTEMPTS times; `reporter` is told of each failure that another attempt follows."""

    def tell(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        if reporter is None or error is None:
            return
        message = f"{error}; retrying in {show_duration(state.upcoming_sleep)}"
        # Without a step id it is no part of the record; the turn goes on.
        reporter.event("error", data={"type": type(error).__name__, "message": message, "retrying": True})

    retrying = AsyncRetrying(
        retry=retry_if_exception(may_be_repeated),
        stop=stop_after_attempt(ATTEMPTS),
        wait=_wait,
        before_sleep=tell,
        reraise=True,
    )
    return await retrying(ask)


_own_wait = wait_exponential_jitter(initial=0.5, max=8, jitter=0.5)


def _wait(state: RetryCallState) -> float:
    """Seconds until the next attempt: as many as the server asks for."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.wait if isinstance(error, HttpStatusError) else None
    return _own_wait(state) if asked is None else asked


async def _events(response: httpx.Response, where: str) -> AsyncIterator[bytes]:
    """The data of each server-sent event. Raises ConnectionLostError where the last one is not whole."""
    lines, data = Lines(), list[bytes]()
    async for chunk in response.aiter_bytes():
        for line in lines.feed(chunk):
            name, _, value = line.removesuffix(b"\r").partition(b":")
            if name == b"data":
                data.append(value.removeprefix(b" "))
            elif not name and data:
                yield b"\n".join(data)
                data = []
        if lines.rest > _LONGEST_LINE:
            raise MalformedResponseError(f"an event of more than {show_size(_LONGEST_LINE)}", where)
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
