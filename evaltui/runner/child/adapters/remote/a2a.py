"""Drives an A2A agent by its card, with the official SDK, which speaks its versions 0.3 and 1.0."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import uuid
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx
from a2a.client.card_resolver import parse_agent_card
from a2a.client.client import Client, ClientCallContext, ClientConfig
from a2a.client.client_factory import ClientFactory
from a2a.client.errors import A2AClientError
from a2a.types import AgentCard, AgentInterface, CancelTaskRequest, GetTaskRequest, SendMessageRequest
from a2a.utils.errors import A2AError
from google.protobuf.json_format import Error, MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message

from .....core.model.events import Json, Step
from ..base import TEXTS_AND_FILES, AgentInfo, AgentInput, AgentLoadError, Reporter, SessionSpec, step_numbers
from .a2a_steps import FAILED, Heard, TurnSteps, a2a_part
from .requests import (
    UNRECORDED,
    CancelledError,
    HttpStatusError,
    MalformedResponseError,
    RemoteError,
    Server,
    UnreachableError,
    again,
    excerpt,
    explained,
    given_headers,
    http_client,
    is_loopback,
    may_pass,
    status_error,
    was_refused,
)

# Seconds. How long a turn takes is the business of its case.
_PATIENCE = httpx.Timeout(None, connect=10.0, pool=None)
_ANSWERING = 60.0
_CANCELLING = 1.0
_NOTE = "A2A sends no session state, tools or model requests; tool calls are sent by google-adk agents only"
_FIRST_LOOK, _LONGEST_LOOK = 0.1, 2.0


class TaskFailedError(RemoteError):
    """The agent gave up a task, or refused it; the message is its own."""


class A2AAdapter:
    """The agent whose card is at `url`, or below it. Nothing is asked before `open`."""

    input = AgentInput("an A2A agent", state=False, session=(), parts=TEXTS_AND_FILES)

    def __init__(self, url: str, headers: Sequence[tuple[str, str]]) -> None:
        self._url = url
        self._headers = headers
        self._http: httpx.AsyncClient | None = None
        self._agent: _Agent | None = None

    async def open(self) -> AgentInfo:
        """Raises AgentLoadError where there is no card that can be used, RemoteError for a server that does
        not answer."""
        card = await _find_card(self._url, self._headers)
        url = card.supported_interfaces[0].url
        self._http = http_client(url, given_headers(self._headers))
        self._http.timeout = _PATIENCE
        config = ClientConfig(httpx_client=self._http, supported_protocol_bindings=[*_BINDINGS])
        variables = tuple(variable for _, variable in self._headers)
        self._agent = _Agent(card.name, ClientFactory(config).create(card), f"POST {url}", variables)
        return AgentInfo(name=card.name, framework="a2a", notes=(_NOTE,), unrecorded=UNRECORDED)

    async def new_session(
        self, spec: SessionSpec, reporter: Reporter, past: Sequence[Step] = ()
    ) -> A2ASession:
        """Raises ValueError for a past that is none of this agent's conversations as far as they are now."""
        assert self._agent is not None
        place, heard = self._agent.place_after(past)
        return A2ASession(self._agent, reporter, place, heard, past)

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()


class _Agent:
    """An agent and the conversations with it. `where` is what is asked, `variables` hold credentials."""

    def __init__(self, name: str, client: Client, where: str, variables: Sequence[str]) -> None:
        self.name = name
        self.where = where
        self._client = client
        self._variables = variables
        self._conversations: dict[str, tuple[int, str, Heard]] = {}

    def goes_on(self, context_id: str, turns: int, waiting_task: str, heard: Heard) -> None:
        """A conversation has so many finished turns; the next message is for `waiting_task`, "" for none."""
        if context_id:
            self._conversations[context_id] = turns, waiting_task, heard

    def forget(self, context_id: str) -> None:
        """What was said in a conversation is not known any more: a message may have been heard or not."""
        self._conversations.pop(context_id, None)

    def place_after(self, past: Sequence[Step]) -> tuple[Json, Heard]:
        """What the agent goes on by at the end of `past`, {} in a new conversation, and what it sent there.

        Raises ValueError where the agent knows of other turns than those of `past`.
        """
        if not past:
            return {}, Heard()
        known = (step.framework for step in reversed(past) if step.framework)
        place: Json = next(known, {}).get("a2a", {})
        turns = 1 + max(step.turn or 0 for step in past)
        context_id = str(place.get("context_id") or "")
        held_turns, waiting_task, heard = self._conversations.get(context_id, (0, "", Heard()))
        if held_turns != turns:
            raise ValueError(
                "cannot continue from here: an A2A agent keeps its conversation itself. Replay it, or start "
                "a new one"
            )
        return {"context_id": context_id, "task_id": waiting_task}, heard

    async def responses(self, message: Json, reporter: Reporter) -> AsyncGenerator[Json]:
        """What the agent sends until its task is done or waits, as JSON.

        The message is sent again only where the server refused it: 429, Too Many Requests.
        """
        request = ParseDict({"message": message}, SendMessageRequest())

        async def begin() -> tuple[Any, Message | None]:
            stream = self._client.send_message(request)
            with self._explaining():
                return stream, await anext(stream, None)

        stream, response = await again(begin, was_refused, reporter)
        async with aclosing(stream):
            while response is not None:
                yield self._json(response)
                with self._explaining():
                    response = await anext(stream, None)

    async def task(self, task_id: str, reporter: Reporter) -> Json:
        """A task as it is now, as a response."""

        async def ask() -> Json:
            with self._explaining():
                found = await self._client.get_task(
                    GetTaskRequest(id=task_id), context=ClientCallContext(timeout=_ANSWERING)
                )
            return {"task": self._json(found)}

        return await again(ask, may_pass, reporter)

    async def cancel(self, task_id: str) -> None:
        """Asks the agent to stop; whether it does is its own business."""
        with suppress(A2AError, httpx.HTTPError, TimeoutError, ValueError, Error):
            async with asyncio.timeout(_CANCELLING):
                await self._client.cancel_task(CancelTaskRequest(id=task_id))

    def _json(self, message: Message) -> Json:
        with self._explaining():
            found: Json = MessageToDict(message)
            return found

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except asyncio.CancelledError:
            raise CancelledError(self.where) from None
        except RemoteError:
            raise
        except httpx.HTTPError as error:
            raise explained(error, self.where) from error
        except A2AError as error:
            raise self._explained(error) from error
        except (Error, ValueError, TypeError, KeyError, AttributeError) as error:
            # What the SDK raises for an answer that it cannot read is of many kinds.
            said = excerpt(f"{type(error).__name__}: {error}")
            raise MalformedResponseError(
                f"the response is not one of A2A ({said}). Check the server's log", self.where
            ) from error

    def _explained(self, error: A2AError) -> RemoteError:
        cause = error.__cause__
        if isinstance(cause, httpx.HTTPStatusError):
            return status_error(cause.response, self.where, self._variables)
        if isinstance(cause, httpx.HTTPError):
            return explained(cause, self.where)
        said = excerpt(error.message).rstrip(".")
        if isinstance(cause, json.JSONDecodeError):
            said = f"the response is not JSON: {said}"
            return MalformedResponseError(f"{said}. Check the server's log", self.where)
        # Errors that the protocol names keep their names.
        name = "RemoteError" if isinstance(error, A2AClientError) else type(error).__name__
        refused: RemoteError = type(name, (RemoteError,), {})(
            f"the agent's server answered: {said}. Check the server's log", self.where
        )
        return refused


class A2ASession:
    """A conversation: the context that the server gives it, and the task that waits for the next message.

    `place` is where it goes on, {} for a new one.
    """

    def __init__(
        self, agent: _Agent, reporter: Reporter, place: Json, heard: Heard, past: Sequence[Step]
    ) -> None:
        self._agent = agent
        self._reporter = reporter
        self._context_id = str(place.get("context_id") or "")
        self._task_id = str(place.get("task_id") or "")
        self._turns = 1 + max((step.turn or 0 for step in past), default=-1)
        self._numbers = step_numbers(past)
        self._heard = heard

    async def send(self, content: Json) -> None:
        """Raises RemoteError, and ValueError for a message that A2A cannot hold."""
        turn = TurnSteps(self._agent.name, self._heard, self._numbers)
        self._agent.forget(self._context_id)
        try:
            await self._take_through(turn, self._message(content))
        except asyncio.CancelledError:
            if turn.task_id and turn.state == "working":
                await self._agent.cancel(turn.task_id)
            raise
        except RemoteError as error:
            if not _may_be_heard(error):
                self._agent.goes_on(self._context_id, self._turns, self._task_id, self._heard)
            raise
        finally:
            self._report(turn.end())
        if turn.state in FAILED:
            # The task is over, the context is not.
            self._agent.goes_on(self._context_id, self._turns, "", self._heard)
            said = turn.failure or f"the task is {turn.state}; the agent does not say why"
            raise TaskFailedError(said, self._agent.where)
        self._context_id, self._task_id = turn.context_id or self._context_id, turn.waiting_task
        self._turns += 1
        self._agent.goes_on(self._context_id, self._turns, self._task_id, self._heard)

    async def _take_through(self, turn: TurnSteps, message: Json) -> None:
        is_empty = True
        async with aclosing(self._agent.responses(message, self._reporter)) as responses:
            async for response in responses:
                is_empty = False
                self._report(turn.take(response))
        if is_empty:
            raise MalformedResponseError("the response is empty. Check the server's log", self._agent.where)
        # Some servers answer before the work is done; some end the stream.
        delay = _FIRST_LOOK
        while turn.state == "working":
            await asyncio.sleep(delay)
            delay = min(2 * delay, _LONGEST_LOOK)
            self._report(turn.take(await self._agent.task(turn.task_id, self._reporter)))

    def _message(self, content: Json) -> Json:
        parts = [made for part in content.get("parts") or [] if (made := a2a_part(part)) is not None]
        message: Json = {
            "messageId": uuid.uuid4().hex,
            "role": "ROLE_USER",
            "parts": parts or [{"text": ""}],
            "contextId": self._context_id,
            "taskId": self._task_id,
        }
        return {name: value for name, value in message.items() if value}

    def _report(self, steps: Sequence[Step] | Iterator[Step]) -> None:
        for step in steps:
            if step.partial:
                self._reporter.event("text", step.content, agent=step.author, data={"partial": True})
            else:
                self._reporter.step(step)

    async def state(self) -> None:
        """Unknown: A2A has no session state."""

    async def close(self) -> None: ...


def _may_be_heard(error: RemoteError) -> bool:
    """Whether the agent may have got the message that this is the error of."""
    if isinstance(error, HttpStatusError):
        return error.status >= 500
    return not isinstance(error, UnreachableError)


# The second is that of the protocol before 0.3.
_PLACES = ("/.well-known/agent-card.json", "/.well-known/agent.json")
_BINDINGS = ("JSONRPC", "HTTP+JSON")
_PORTS = {"http": 80, "https": 443}


async def _find_card(url: str, headers: Sequence[tuple[str, str]]) -> AgentCard:
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
        place, found = await _found_card(server, places)
    finally:
        await server.close()
    where = f"GET {base}{place}"
    card = _parsed(found, where)
    interface = _chosen(card, where)
    interface.url = _url_of(interface.url, base + place, names_card=names_card, sends_headers=bool(headers))
    del card.supported_interfaces[:]
    card.supported_interfaces.append(interface)
    return card


async def _found_card(server: Server, places: Sequence[str]) -> tuple[str, Any]:
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
    usable = [one for one in card.supported_interfaces if one.protocol_binding in _BINDINGS]
    if not usable:
        offered = ", ".join(dict.fromkeys(one.protocol_binding for one in card.supported_interfaces))
        raise AgentLoadError(
            f"{where}: the agent offers {offered}; evaltui takes {' and '.join(_BINDINGS)}. Have the agent "
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
    return asked == meant or _is_any(meant) or (is_loopback(asked) and is_loopback(meant))


def _is_any(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_unspecified
    return False
