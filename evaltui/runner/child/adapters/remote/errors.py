"""What goes wrong between evaltui and the server of an agent, each with what to do about it."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Sequence
from typing import Any

import httpx

from .....core.model.errors import ErrorKind
from .....text.figures import counted, show_duration
from ....errors import PlacedError
from ....exception_kinds import kind_of_status

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
    status, wait = response.status_code, _wait(response)
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


def _wait(response: httpx.Response) -> float | None:
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
