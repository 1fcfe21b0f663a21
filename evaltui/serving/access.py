"""Who may in: the `Host`, the `Origin`, the token and the cookie that requests have to have."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from evaltui.project.hosts import canonical, host_name, in_url, is_any, is_loopback, same_secret
from evaltui.text.values import cut, visible

_PORTS = {"http": 80, "https": 443}
# Characters. Nobody has a longer one by chance.
_LONGEST = 200


class RefusedError(Exception):
    """A request that is refused; the message says why, `log` is the sentence for the server's terminal."""

    def __init__(self, status: int, message: str, log: str = "") -> None:
        self.status = status
        self.log = log or message
        super().__init__(message)


def new_secret() -> str:
    """A random text that nobody guesses: 256 bits."""
    return secrets.token_urlsafe(32)


def origin_of(url: str) -> str:
    """`https://desk.example:8443`: an origin as browsers send it. Raises ValueError for what is none."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in _PORTS or parts.username is not None or not host.isascii():
        raise ValueError(f"{_shown(url)} is not an origin, e.g. https://desk.example")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError(f"{_shown(url)} has more than an origin: leave out what follows the host")
    shown_port = "" if port in (None, _PORTS[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{in_url(canonical(host))}{shown_port}"


@dataclass(frozen=True)
class Access:
    """The rules of one server."""

    host: str
    """The bound address or name."""
    token: str
    """The secret that lets a browser in."""
    is_tls: bool = False
    """Whether the server itself speaks HTTPS."""
    origins: tuple[str, ...] = ()
    """Others by which it is reached, as `origin_of` has them: those of a proxy."""
    cookie: str = field(default_factory=new_secret, repr=False)
    """The cookie that a browser gets for the token; a new one for each server."""

    @property
    def scheme(self) -> str:
        return "https" if self.is_tls else "http"

    def problem(self) -> str:
        """Why a server must not begin with these rules, as a sentence; "" where it may."""
        plain = [origin for origin in self.origins if origin.startswith("http:") and not _is_here(origin)]
        if plain and not self.is_tls:
            return (
                f"--origin {plain[0]} is not HTTPS, and others on the way can read the token: give "
                "--tls-cert and --tls-key, or the address of a proxy that speaks HTTPS"
            )
        if is_loopback(self.host):
            return ""
        if is_any(self.host) and not self.origins:
            return (
                f"--host {self.host} stands for every address of this machine: give the one of browsers, "
                "with --origin https://NAME:PORT"
            )
        # All addresses of a container are reached from its host by those of that one.
        if not (
            self.is_tls or is_any(self.host) or any(origin.startswith("https:") for origin in self.origins)
        ):
            return (
                f"--host {self.host} lets other machines in, and others on the way can read the token: give "
                "--tls-cert and --tls-key, or --origin with the address of a proxy that speaks HTTPS"
            )
        return ""

    def check_host(self, hosts: Sequence[str]) -> str:
        """The `Host` of a request. Raises RefusedError.

        A page of somebody else can have a name that points here (DNS rebinding): the browser sends that name.
        """
        host = _only(hosts, "Host")
        name = host_name(host)
        is_ours = is_loopback(name) or (name == self.host and not is_any(name))
        if not (is_ours or (name and any(self._has_origin(scheme, host) for scheme in _PORTS))):
            raise RefusedError(403, f"Host is {_shown(host)}; --origin https://NAME allows it")
        return host

    def check_origin(self, host: str, origins: Sequence[str]) -> None:
        """A page may open a socket only where it was loaded from. Raises RefusedError."""
        origin = _only(origins, "Origin")
        try:
            is_ours = origin_of(origin) in (origin_of(f"{self.scheme}://{host}"), *self.origins)
        except ValueError:
            is_ours = False
        if not is_ours:
            raise RefusedError(403, f"Origin is {_shown(origin)}; --origin allows it")

    def takes_token(self, token: str) -> bool:
        return same_secret(token.encode("utf-8", "surrogateescape"), self.token)

    def check_cookie(self, value: str | None) -> None:
        """Raises RefusedError."""
        if value is None or not same_secret(value.encode("utf-8", "surrogateescape"), self.cookie):
            raise RefusedError(
                401,
                "open the address that `evaltui serve` has printed",
                "a browser without the cookie of this server; open the printed address in it",
            )

    def needs_https(self, host: str) -> bool:
        """Whether browsers come by HTTPS: their cookie then goes nowhere else."""
        return self.is_tls or self._has_origin("https", host)

    def _has_origin(self, scheme: str, host: str) -> bool:
        with suppress(ValueError):
            return origin_of(f"{scheme}://{host}") in self.origins
        return False


def _is_here(origin: str) -> bool:
    return is_loopback(urlsplit(origin).hostname or "")


def _only(values: Sequence[str], name: str) -> str:
    if len(values) != 1:
        raise RefusedError(403 if name == "Origin" else 400, f"{name} is missing, or there are several")
    return values[0]


def _shown(text: str) -> str:
    return repr(cut(visible(text), _LONGEST))
