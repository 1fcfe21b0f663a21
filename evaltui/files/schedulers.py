"""Names of Dask schedulers: `tls://…`, `tcp://…` on this machine, `insecure-tcp://…`, or `local:N`."""

from __future__ import annotations

import re

# A run without a scheduler, though the project's settings name one.
OFF = "off"

_LOCAL = re.compile(r"local:([1-9]\d{0,2})")
_INSECURE = "insecure-"
_REMOTE = re.compile(r"((?:insecure-)?tcp|tls)://(\[[^\]\s]+\]|[^:/\s]+):\d{1,5}")


_WITHOUT_TLS = "without TLS, everyone on that network can read the run and run code on its workers"


def is_scheduler(value: object) -> bool:
    """Whether a value names a scheduler that may be used, or `off`."""
    if not isinstance(value, str):
        return False
    is_name = value == OFF or bool(_LOCAL.fullmatch(value) or _REMOTE.fullmatch(value))
    return is_name and not refusal_of(value)


def local_workers(scheduler: str) -> int | None:
    """The number of workers in `local:N`; None for another scheduler."""
    match = _LOCAL.fullmatch(scheduler)
    return int(match[1]) if match else None


def is_elsewhere(scheduler: str) -> bool:
    """Whether its workers are on other machines, as far as known; "" means no scheduler."""
    return scheduler != "" and local_workers(scheduler) is None


def dask_address(scheduler: str) -> str:
    """The address of a scheduler as Dask takes it."""
    return scheduler.removeprefix(_INSECURE)


def refusal_of(scheduler: str) -> str:
    """A sentence on plain TCP to another machine; "" for any other name."""
    match = _REMOTE.fullmatch(scheduler)
    if match is None or match[1] != "tcp" or _is_loopback(match[2]):
        return ""
    return f"{scheduler}: {_WITHOUT_TLS}. Use tls://, or {_INSECURE}{scheduler} on a network that you trust"


def warning_of(scheduler: str) -> str:
    """A sentence on plain TCP to another machine that was asked for; "" for any other name."""
    return f"{scheduler}: {_WITHOUT_TLS}" if scheduler.startswith(_INSECURE) else ""


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    from ipaddress import ip_address

    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
