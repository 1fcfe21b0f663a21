"""How a Dask scheduler is named: `tcp://…`, `tls://…`, or `local:N` for one of our own with N workers."""

from __future__ import annotations

import re

# A run without a scheduler, though the project's settings name one.
OFF = "off"

_LOCAL = re.compile(r"local:([1-9]\d{0,2})")
_REMOTE = re.compile(r"(tcp|tls)://(\[[^\]\s]+\]|[^:/\s]+):\d{1,5}")


def is_scheduler(value: object) -> bool:
    """Whether it names a scheduler, or that there is to be none."""
    return isinstance(value, str) and (
        value == OFF or bool(_LOCAL.fullmatch(value) or _REMOTE.fullmatch(value))
    )


def local_workers(scheduler: str) -> int | None:
    """How many workers of our own are meant; None for somebody's scheduler."""
    found = _LOCAL.fullmatch(scheduler)
    return int(found[1]) if found else None


def is_elsewhere(scheduler: str) -> bool:
    """Whether its workers are on other machines, as far as that is known; "" is no scheduler."""
    return scheduler != "" and local_workers(scheduler) is None


def warning_of(scheduler: str) -> str:
    """A sentence on an address at which anybody could listen and run code; "" for any other."""
    found = _REMOTE.fullmatch(scheduler)
    if found is None or found[1] == "tls" or _is_loopback(found[2]):
        return ""
    return (
        f"{scheduler}: without TLS, everyone on that network can read the run and run code on its "
        "workers. Use tls://"
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    from ipaddress import ip_address

    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
