"""The card of an A2A agent: where it is, and which of the ways to the agent that it offers is taken."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from a2a.client.card_resolver import parse_agent_card
from a2a.types import AgentCard, AgentInterface
from google.protobuf.json_format import ParseError

from ..base import AgentLoadError
from .errors import HttpStatusError, MalformedResponseError, excerpt
from .requests import Server

# The second is that of the protocol before 0.3.
_PLACES = ("/.well-known/agent-card.json", "/.well-known/agent.json")
BINDINGS = ("JSONRPC", "HTTP+JSON")
_PORTS = {"http": 80, "https": 443}


async def find_card(url: str, headers: Sequence[tuple[str, str]]) -> AgentCard:
    """The card of the agent at `url`, which may be that of the card itself, with the one interface to use.

    Raises AgentLoadError where there is none, or none that can be used, RemoteError where the server does not
    answer.
    """
    names_card = urlsplit(url).path.endswith(".json")
    if names_card:
        base, _, name = url.rpartition("/")
        places: tuple[str, ...] = (f"/{name}",)
    else:
        base, places = url, _PLACES
    server = Server(base, headers)
    try:
        place, found = await _found(server, places)
    finally:
        await server.close()
    where = f"GET {base}{place}"
    card = _parsed(found, where)
    interface = _chosen(card, where)
    interface.url = _url_of(interface.url, base + place, names_card=names_card, sends_headers=bool(headers))
    del card.supported_interfaces[:]
    card.supported_interfaces.append(interface)
    return card


async def _found(server: Server, places: Sequence[str]) -> tuple[str, Any]:
    for place in places:
        try:
            return place, await server.ask("GET", place)
        except HttpStatusError as error:
            if error.status != 404:
                raise
    raise AgentLoadError(
        f"{server.url} has no agent card at {' or '.join(places)}. Check the address; the agent may be below "
        "a path of the server"
    )


def _parsed(found: Any, where: str) -> AgentCard:
    try:
        card: AgentCard = parse_agent_card(dict(found))
    except (ParseError, TypeError, ValueError, AttributeError) as error:
        said = f"the response is not an agent card ({excerpt(str(error))})"
        raise MalformedResponseError(f"{said}: {excerpt(str(found))}. Check the address", where) from error
    if not card.supported_interfaces:
        said = f"the agent card names no address: {excerpt(str(found))}"
        raise MalformedResponseError(f"{said}. Check the address", where)
    return card


def _chosen(card: AgentCard, where: str) -> AgentInterface:
    """The first interface of the newest protocol up to 1, of those that evaltui takes."""
    usable = [one for one in card.supported_interfaces if one.protocol_binding in BINDINGS]
    if not usable:
        offered = ", ".join(dict.fromkeys(one.protocol_binding for one in card.supported_interfaces))
        raise AgentLoadError(
            f"{where}: the agent offers {offered}; evaltui takes {' and '.join(BINDINGS)}. Have the agent "
            "offer one of them"
        )
    chosen: AgentInterface = min(usable, key=lambda one: not one.protocol_version.startswith("1"))
    return chosen


def _url_of(named: str, card_url: str, *, names_card: bool, sends_headers: bool) -> str:
    """Where messages go. Raises AgentLoadError where that is another host than the one that was named.

    The user knows a card only where its own address was given, and credentials are for that host in any case.
    """
    asked, meant = urlsplit(card_url), urlsplit(named)
    if meant.scheme not in _PORTS or not meant.hostname:
        raise AgentLoadError(f"the agent card names the address {named!r}, which is no URL")
    if _port(meant.scheme, meant.port) == _port(asked.scheme, asked.port) and _is_same_host(
        asked.hostname or "", meant.hostname
    ):
        # Such as 0.0.0.0, which is where a server listens, or localhost, which may have two addresses.
        return urlunsplit(meant._replace(netloc=asked.netloc))
    host = f"{meant.scheme}://{meant.netloc}"
    if sends_headers:
        raise AgentLoadError(
            f"the agent card at {card_url} names another host, {host}; --header-env is sent to the host of "
            f"the address only. Use a2a:{named}, or correct the card"
        )
    if not names_card:
        raise AgentLoadError(
            f"the agent card at {card_url} names another host, {host}. Start the agent with its own host and "
            f"port, or take the card at its word: a2a:{card_url}"
        )
    return named


def _port(scheme: str, port: int | None) -> int | None:
    return port or _PORTS.get(scheme)


def _is_same_host(asked: str, meant: str) -> bool:
    return asked == meant or _is_any(meant) or (_is_loopback(asked) and _is_loopback(meant))


def _is_any(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_unspecified
    return False


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")
