"""Host names in request headers and URLs, and the comparison of secrets."""

from __future__ import annotations

import hmac
import re
from ipaddress import IPv6Address, ip_address

_HOST = re.compile(r"(?:\[(?P<address>[^\[\]]*)\]|(?P<name>[^\[\]:/?#@\s]+))(?::[0-9]+)?")


def canonical(host: str) -> str:
    """A host name or address in the spelling of browsers: lower case, IPv6 as short as possible."""
    bare = host.removeprefix("[").removesuffix("]")
    try:
        return str(ip_address(bare))
    except ValueError:
        return host.lower().removesuffix(".")


def is_loopback(host: str) -> bool:
    """Whether a name or address means this machine only."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def is_any(host: str) -> bool:
    """Whether an address means all addresses of this machine."""
    try:
        return ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return host == ""


def host_name(value: str) -> str:
    """The name or address in a `Host` header, as `canonical` has it; "" for what is no such header."""
    match = _HOST.fullmatch(value)
    if match is None:
        return ""
    if (address := match["address"]) is None:
        return canonical(match["name"])
    try:
        return str(IPv6Address(address))
    except ValueError:
        return ""


def in_url(host: str) -> str:
    """A name or address as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


def same_secret(candidate: bytes, secret: str) -> bool:
    """Whether two secrets are equal, compared in constant time."""
    return hmac.compare_digest(candidate, secret.encode())
