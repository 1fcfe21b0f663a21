"""Refusals because of too many requests (429): how long to wait, and whether waiting helps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from ..core.model.errors import ErrorKind
from .exception_kinds import attribute, kind_of, nearest_first


@dataclass(frozen=True)
class Refusal:
    """A model refused because of too many requests."""

    retry_after: float | None = None
    """Seconds that it wants to be left alone; None where it does not say."""
    is_lasting: bool = False
    """Whether a quota is used up that no wait brings back soon."""


def refusal_of(error: BaseException) -> Refusal | None:
    """None for an error of another kind."""
    if kind_of(error) is not ErrorKind.RATE_LIMIT:
        return None
    behind = list(nearest_first(error))
    waits = (wait for one in behind if (wait := asked_wait(one)) is not None)
    return Refusal(next(waits, None), any(map(is_used_up, behind)))


def asked_wait(error: BaseException) -> float | None:
    """The seconds that a service wants to be left alone, if it says: a RetryInfo, or a Retry-After."""
    for detail in details_of(error, "RetryInfo"):
        if found := re.fullmatch(r"(\d+(?:\.\d+)?)s", str(detail.get("retryDelay"))):
            return float(found[1])
    headers = attribute(attribute(error, "response"), "headers")
    return None if headers is None else _from_headers(headers)


def _from_headers(headers: Any) -> float | None:
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
    """Whether a quota of the day, or what was paid for, is used up."""
    violations = (
        violation
        for detail in details_of(error, "QuotaFailure")
        for violation in detail.get("violations") or []
    )
    is_of_day = any("PerDay" in str(violation.get("quotaId")) for violation in violations)
    return is_of_day or attribute(error, "code") == "insufficient_quota"


def details_of(error: BaseException, kind: str) -> Iterator[dict[str, Any]]:
    """The google.rpc details of a kind; nothing where the body is of another shape."""
    body: Any = attribute(error, "details")
    inner = body.get("error", body) if isinstance(body, dict) else {}
    details = inner.get("details") if isinstance(inner, dict) else None
    for detail in details if isinstance(details, list) else []:
        if isinstance(detail, dict) and str(detail.get("@type", "")).endswith(f"google.rpc.{kind}"):
            yield detail
