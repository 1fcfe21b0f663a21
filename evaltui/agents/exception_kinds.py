"""Kinds of exceptions of any library; refusals because of too many requests, and their waits."""

from __future__ import annotations

import re
import socket
import ssl
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from ..core.model.errors import ErrorKind, SimulatedUserError

# Exceptions behind an error, and characters of a message, that are examined.
_MOST, _MAX_MESSAGE_LENGTH = 50, 2_000

_LIBRARIES = {
    "aiohttp",
    "anthropic",
    "botocore",
    "google",
    "grpc",
    "httpcore",
    "httpx",
    "httpx2",
    "litellm",
    "openai",
    "requests",
    "urllib",
    "urllib3",
}
_BY_NAME = {
    **dict.fromkeys(("RateLimitError", "ResourceExhausted", "TooManyRequests"), ErrorKind.RATE_LIMIT),
    **dict.fromkeys(("AuthenticationError", "GoogleAuthError", "PermissionDeniedError"), ErrorKind.CONFIG),
    **dict.fromkeys(
        (
            "APIConnectionError",
            "ClientConnectionError",
            "ClientPayloadError",
            "ConnectionError",
            "HTTPClientError",
            "MaxRetryError",
            "NetworkError",
            "ProtocolError",
            "Timeout",
            "TimeoutException",
            "TransportError",
            "URLError",
        ),
        ErrorKind.NETWORK,
    ),
}
_BY_STATUS = {
    429: ErrorKind.RATE_LIMIT,
    **dict.fromkeys((401, 403), ErrorKind.CONFIG),
    **dict.fromkeys((408, 500, 502, 503, 504, 529), ErrorKind.NETWORK),
}
_HTTP_STATUSES = range(100, 600)


def kind_of(error: BaseException) -> ErrorKind:
    """The kind of the nearest exception that has one: the error, its cause or its context.

    Where none has, JUDGE for an error of a simulated user, AGENT for any other.
    """
    exceptions = list(nearest_first(error))
    is_user = any(isinstance(exception, SimulatedUserError) for exception in exceptions)
    kinds = (kind for exception in exceptions if (kind := _own_kind(exception)))
    return next(kinds, ErrorKind.JUDGE if is_user else ErrorKind.AGENT)


def nearest_first(error: BaseException) -> Iterator[BaseException]:
    """An error, its causes and contexts, and the exceptions in a group."""
    waiting, seen = deque([error]), set[int]()
    while waiting and len(seen) < _MOST:
        current = waiting.popleft()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        behind = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
        waiting.extend([behind] if behind is not None else [])
        waiting.extend(current.exceptions if isinstance(current, BaseExceptionGroup) else ())


# Messages of models' clients where no key is set, and the variable with it; "" where the message names it.
_NO_KEY = {
    re.compile(r"No API key was provided|Missing key inputs argument"): "GOOGLE_API_KEY",
    re.compile(r"Could not resolve authentication method"): "ANTHROPIC_API_KEY",
    re.compile(r"[Ss]et(?:ting)? the [`'\"]?([A-Z][A-Z0-9_]*_API_KEY)\b"): "",
}


def missing_key(error: BaseException) -> str:
    """The variable with the API key that a model was asked without; "" for any other error."""
    for exception in nearest_first(error):
        for pattern, name in _NO_KEY.items():
            if match := pattern.search(_message_of(exception)[:_MAX_MESSAGE_LENGTH]):
                return name or match[1]
    return ""


_ADVICE = {
    ErrorKind.RATE_LIMIT: "Wait, run fewer cases at once (--parallel 1), or raise the quota",
    ErrorKind.CONFIG: "Check the API key and what it may use",
    ErrorKind.NETWORK: "The service is overloaded or out of order: run again later",
}


def refusal_in_words(error: BaseException) -> str:
    """A refusal of a model's service, with advice: `429 RESOURCE_EXHAUSTED: Quota exceeded. Wait, …`; "" for
    any other error."""
    status, kind = _status(error), kind_of(error)
    if status is None:
        return ""
    name, message = attribute(error, "status"), attribute(error, "message")
    lines = (message if isinstance(message, str) else _message_of(error)).splitlines()
    first = next((line.strip().rstrip(".") for line in lines if line.strip()), "")
    head = f"{status} {name}" if isinstance(name, str) else str(status)
    advice = "Check the name of the model" if status == 404 else _ADVICE.get(kind, "")
    return ". ".join(filter(None, (f"{head}: {first}".rstrip(": "), advice)))


def _message_of(error: BaseException) -> str:
    try:
        return str(error)
    # `__str__` is the user's code, and may do anything.
    except BaseException:
        return ""


def kind_of_status(status: int) -> ErrorKind | None:
    """The kind of an HTTP status; None where it has none."""
    return _BY_STATUS.get(status)


def _own_kind(error: BaseException) -> ErrorKind | None:
    kind = attribute(error, "error_kind")
    if isinstance(kind, ErrorKind):
        return kind
    status = _status(error)
    if status is not None:
        # Gemini's refusal of a wrong key.
        is_key = status == 400 and "API_KEY_INVALID" in repr(attribute(error, "details"))
        return ErrorKind.CONFIG if is_key else kind_of_status(status)
    for base in type(error).__mro__:
        if base.__module__.partition(".")[0] in _LIBRARIES and base.__name__ in _BY_NAME:
            return _BY_NAME[base.__name__]
    if isinstance(error, TimeoutError):
        return ErrorKind.TIMEOUT
    if isinstance(error, ConnectionError | socket.gaierror | ssl.SSLError):
        return ErrorKind.NETWORK
    return None


def _status(error: BaseException) -> int | None:
    """The HTTP status that a library's exception has; None for any other."""
    if not any(base.__module__.partition(".")[0] in _LIBRARIES for base in type(error).__mro__):
        return None
    places: list[tuple[object, str]] = [(error, name) for name in ("status_code", "status", "code")]
    places.append((attribute(error, "response"), "status_code"))
    for owner, name in places:
        value = attribute(owner, name)
        if isinstance(value, int) and value in _HTTP_STATUSES:
            return int(value)
    return None


def attribute(owner: object, name: str) -> object:
    """An attribute of any object; None where there is none."""
    try:
        return getattr(owner, name, None)
    # Exceptions are the user's classes, too, and may do anything.
    except Exception:
        return None


@dataclass(frozen=True)
class Refusal:
    """A model refused because of too many requests."""

    retry_after: float | None = None
    """Seconds that the model wants to be left alone; None where it names none."""
    is_lasting: bool = False
    """Whether a quota is used up that no wait brings back soon."""


def refusal_of(error: BaseException) -> Refusal | None:
    """None for an error of another kind."""
    if kind_of(error) is not ErrorKind.RATE_LIMIT:
        return None
    behind = list(nearest_first(error))
    waits = (wait for exception in behind if (wait := asked_wait(exception)) is not None)
    return Refusal(next(waits, None), any(map(is_used_up, behind)))


def asked_wait(error: BaseException) -> float | None:
    """The seconds that a service wants to be left alone, by RetryInfo or Retry-After; None without one."""
    for detail in details_of(error, "RetryInfo"):
        if match := re.fullmatch(r"(\d+(?:\.\d+)?)s", str(detail.get("retryDelay"))):
            return float(match[1])
    headers = attribute(attribute(error, "response"), "headers")
    return None if headers is None else wait_in_headers(headers)


def wait_in_headers(headers: Any) -> float | None:
    """The seconds of the header Retry-After, which may be a date; None without a valid one."""
    try:
        milliseconds, after = (headers.get(name) for name in ("retry-after-ms", "Retry-After"))
        if milliseconds is not None:
            return float(milliseconds) / 1_000
        if after is None:
            return None
        if re.fullmatch(r"\d+(\.\d+)?", str(after)):
            return float(after)
        return max(0.0, (parsedate_to_datetime(str(after)) - datetime.now(UTC)).total_seconds())
    # Headers are objects of any library.
    except Exception:
        return None


def is_used_up(error: BaseException) -> bool:
    """Whether a quota of the day, or a prepaid amount, is used up."""
    violations = (
        violation
        for detail in details_of(error, "QuotaFailure")
        for violation in detail.get("violations") or []
    )
    is_of_day = any("PerDay" in str(violation.get("quotaId")) for violation in violations)
    return is_of_day or attribute(error, "code") == "insufficient_quota"


def details_of(error: BaseException, kind: str) -> Iterator[dict[str, Any]]:
    """The google.rpc details of a kind; none where the body has another shape."""
    body: Any = attribute(error, "details")
    inner = body.get("error", body) if isinstance(body, dict) else {}
    details = inner.get("details") if isinstance(inner, dict) else None
    for detail in details if isinstance(details, list) else []:
        if isinstance(detail, dict) and str(detail.get("@type", "")).endswith(f"google.rpc.{kind}"):
            yield detail
