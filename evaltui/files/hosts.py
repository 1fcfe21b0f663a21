"""Names of machines in headers of requests and in URLs, and secrets that requests have to have."""

from __future__ import annotations

import hmac
from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether a name or an address is of this machine only."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def is_any(host: str) -> bool:
    """Whether an address stands for all of this machine's."""
    try:
        return ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return host == ""


def host_name(value: str) -> str:
    """The name or address in a `Host` header, without its port."""
    if value.startswith("["):
        return value[1:].partition("]")[0]
    return value.rpartition(":")[0] if value.count(":") == 1 else value


def in_url(host: str) -> str:
    """A name or an address as a URL has it."""
    return f"[{host}]" if ":" in host else host


def same_secret(given: bytes, secret: str) -> bool:
    """Compared in a time that tells nobody how much of it is right."""
    return hmac.compare_digest(given, secret.encode())
