"""Runs an A2A agent by its card, with the official SDK, which supports the versions 0.3 and 1.0."""

from __future__ import annotations

import asyncio
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

from ....core.model.events import Json, Step, parts_in
from ....project.hosts import is_any
from ...errors import excerpt
from ..base import (
    TEXTS_AND_FILES,
    AgentAdapter,
    AgentInfo,
    AgentInput,
    AgentLoadError,
    AgentSession,
    Reporter,
    SessionSpec,
    step_numbers,
)
from .a2a_steps import FAILED, Received, TurnSteps, a2a_part
from .requests import (
    UNRECORDED,
    AnsweredError,
    HttpStatusError,
    MalformedResponseError,
    RemoteError,
    Server,
    UnreachableError,
    http_client,
    is_here,
    is_rate_limited,
    is_transient,
    remote_error,
    remote_errors,
    request_headers,
    status_error,
    with_retries,
)

# Seconds. The time-out of a turn is set by its case.
_TIMEOUTS = httpx.Timeout(None, connect=10.0, pool=None)
_ANSWERING = 60.0
_CANCELLING = 1.0
_NOTE = "A2A sends no session state, tools or model requests; tool calls are sent by google-adk agents only"
_FIRST_POLL, _MAX_POLL_LENGTH = 0.1, 2.0


class TaskFailedError(RemoteError):
    """The agent gave up or refused a task; the message is its own."""


class A2AAdapter(AgentAdapter):
    """The adapter for the agent whose card is at `url`, or below it. It sends no request before `open`."""

    input = AgentInput("an A2A agent", state=False, session=(), parts=TEXTS_AND_FILES)

    def __init__(self, url: str, headers: Sequence[tuple[str, str]]) -> None:
        self._url = url
        self._headers = headers
        self._http: httpx.AsyncClient | None = None
        self._agent: _Agent | None = None

    async def open(self) -> AgentInfo:
        """Reads the agent's card. Raises AgentLoadError where there is none that can be used, RemoteError for
        a server that does not respond."""
        card = await _find_card(self._url, self._headers)
        url = card.supported_interfaces[0].url
        self._http = http_client(url, request_headers(self._headers))
        self._http.timeout = _TIMEOUTS
        config = ClientConfig(httpx_client=self._http, supported_protocol_bindings=[*_BINDINGS])
        variables = tuple(variable for _, variable in self._headers)
        self._agent = _Agent(card.name, ClientFactory(config).create(card), f"POST {url}", variables)
        return AgentInfo(name=card.name, framework="a2a", notes=(_NOTE,), unrecorded=UNRECORDED)

    async def new_session(
        self, spec: SessionSpec, reporter: Reporter, past: Sequence[Step] = ()
    ) -> A2ASession:
        """Opens a session. Raises ValueError for a past that is not the current end of a conversation of this
        agent."""
        assert self._agent is not None
        position, received = self._agent.position_after(past)
        return A2ASession(self._agent, reporter, position, received, past)

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()


class _Agent:
    """An agent and the positions of the conversations with it. `where` names the request for errors,
    `variables` hold credentials."""

    def __init__(self, name: str, client: Client, where: str, variables: Sequence[str]) -> None:
        self.name = name
        self.where = where
        self._client = client
        self._variables = variables
        self._conversations: dict[str, tuple[int, str, Received]] = {}

    def set_position(self, context_id: str, turns: int, waiting_task: str, received: Received) -> None:
        """Stores that a conversation has so many finished turns, and the task of the next message, "" for
        none."""
        if context_id:
            self._conversations[context_id] = turns, waiting_task, received

    def forget_position(self, context_id: str) -> None:
        """Forgets the position of a conversation: the agent may or may not have received the last message."""
        self._conversations.pop(context_id, None)

    def position_after(self, past: Sequence[Step]) -> tuple[Json, Received]:
        """The position at the end of `past`, {} in a new conversation, and the content received there.

        Raises ValueError where the agent's conversation has other turns than `past`.
        """
        if not past:
            return {}, Received()
        stored = (step.framework for step in reversed(past) if step.framework)
        position: Json = next(stored, {}).get("a2a", {})
        turns = 1 + max(step.turn or 0 for step in past)
        context_id = str(position.get("context_id") or "")
        finished_turns, waiting_task, received = self._conversations.get(context_id, (0, "", Received()))
        if finished_turns != turns:
            raise ValueError(
                "cannot continue from here: an A2A agent keeps its conversation itself. Replay it, or start "
                "a new one"
            )
        return {"context_id": context_id, "task_id": waiting_task}, received

    async def responses(self, message: Json, reporter: Reporter) -> AsyncGenerator[Json]:
        """Sends a message and yields the agent's responses as JSON, until its task ends or waits.

        The message is sent again only where the server refused it: 429, Too Many Requests.
        """
        request = ParseDict({"message": message}, SendMessageRequest())

        async def open_stream() -> tuple[Any, Message | None]:
            stream = self._client.send_message(request)
            with self._remote_errors():
                return stream, await anext(stream, None)

        stream, response = await with_retries(open_stream, is_rate_limited, reporter)
        async with aclosing(stream):
            while response is not None:
                yield self._json(response)
                with self._remote_errors():
                    response = await anext(stream, None)

    async def task(self, task_id: str, reporter: Reporter) -> Json:
        """The current state of a task, as a response."""

        async def ask() -> Json:
            with self._remote_errors():
                task = await self._client.get_task(
                    GetTaskRequest(id=task_id), context=ClientCallContext(timeout=_ANSWERING)
                )
            return {"task": self._json(task)}

        return await with_retries(ask, is_transient, reporter)

    async def cancel(self, task_id: str) -> None:
        """Asks the agent to cancel a task, which the agent may ignore."""
        with suppress(A2AError, httpx.HTTPError, TimeoutError, ValueError, Error):
            async with asyncio.timeout(_CANCELLING):
                await self._client.cancel_task(CancelTaskRequest(id=task_id))

    def _json(self, message: Message) -> Json:
        with self._remote_errors():
            data: Json = MessageToDict(message)
            return data

    @contextmanager
    def _remote_errors(self) -> Iterator[None]:
        try:
            with remote_errors(self.where):
                yield
        except RemoteError:
            raise
        except A2AError as error:
            raise self._described_error(error) from error
        except (Error, ValueError, TypeError, KeyError, AttributeError) as error:
            # The SDK raises many kinds of errors for a response that it cannot read.
            reason = excerpt(f"{type(error).__name__}: {error}")
            raise MalformedResponseError(
                f"the response is not one of A2A ({reason}). Check the server's log", self.where
            ) from error

    def _described_error(self, error: A2AError) -> RemoteError:
        cause = error.__cause__
        if isinstance(cause, httpx.HTTPStatusError):
            return status_error(cause.response, self.where, self._variables)
        if isinstance(cause, httpx.HTTPError):
            return remote_error(cause, self.where)
        reason = excerpt(error.message).rstrip(".")
        if isinstance(cause, json.JSONDecodeError):
            reason = f"the response is not JSON: {reason}"
            return MalformedResponseError(f"{reason}. Check the server's log", self.where)
        # Errors that the protocol names keep their names.
        name = "RemoteError" if isinstance(error, A2AClientError) else type(error).__name__
        remote: RemoteError = type(name, (AnsweredError,), {})(
            f"the agent's server answered: {reason}. Check the server's log", self.where
        )
        return remote


class A2ASession(AgentSession):
    """A conversation: the context id from the server, and the task that waits for the next message.

    `position` is where it continues, {} for a new one.
    """

    def __init__(
        self, agent: _Agent, reporter: Reporter, position: Json, received: Received, past: Sequence[Step]
    ) -> None:
        self._agent = agent
        self._reporter = reporter
        self._context_id = str(position.get("context_id") or "")
        self._task_id = str(position.get("task_id") or "")
        self._turns = 1 + max((step.turn or 0 for step in past), default=-1)
        self._numbers = step_numbers(past)
        self._received = received

    async def send(self, content: Json) -> None:
        """Runs a turn. Raises RemoteError, and ValueError for a message that A2A cannot hold."""
        turn = TurnSteps(self._agent.name, self._received, self._numbers, self._context_id)
        self._agent.forget_position(self._context_id)
        try:
            await self._run_turn(turn, self._message(content))
        except asyncio.CancelledError:
            if turn.task_id and turn.state == "working":
                await self._agent.cancel(turn.task_id)
            raise
        except RemoteError as error:
            if _is_answered(error):
                self._agent.set_position(self._context_id, self._turns, "", self._received)
            elif not _may_be_received(error):
                self._agent.set_position(self._context_id, self._turns, self._task_id, self._received)
            raise
        finally:
            self._report(turn.end())
        if turn.state in FAILED:
            # The task has ended; the context continues.
            self._agent.set_position(self._context_id, self._turns, "", self._received)
            reason = turn.failure or f"the task is {turn.state}; the agent does not say why"
            raise TaskFailedError(reason, self._agent.where)
        self._context_id, self._task_id = turn.context_id, turn.waiting_task
        self._turns += 1
        self._agent.set_position(self._context_id, self._turns, self._task_id, self._received)

    async def _run_turn(self, turn: TurnSteps, message: Json) -> None:
        is_empty = True
        async with aclosing(self._agent.responses(message, self._reporter)) as responses:
            async for response in responses:
                is_empty = False
                self._report(turn.steps_of(response))
        if is_empty:
            raise MalformedResponseError("the response is empty. Check the server's log", self._agent.where)
        # Some servers respond before the task ends, some end the stream early.
        delay = _FIRST_POLL
        while turn.state == "working":
            await asyncio.sleep(delay)
            delay = min(2 * delay, _MAX_POLL_LENGTH)
            self._report(turn.steps_of(await self._agent.task(turn.task_id, self._reporter)))

    def _message(self, content: Json) -> Json:
        parts = [a2a for part in parts_in(content) if (a2a := a2a_part(part)) is not None]
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
        """Returns None, for unknown: A2A has no session state."""


def _is_answered(error: RemoteError) -> bool:
    """Whether the agent's own server said that it failed, so that the conversation continues."""
    return isinstance(error, AnsweredError) or (isinstance(error, HttpStatusError) and error.status == 500)


def _may_be_received(error: RemoteError) -> bool:
    """Whether the agent may have received the message whose sending raised this error."""
    if isinstance(error, HttpStatusError):
        return error.status >= 500
    return not isinstance(error, UnreachableError)


_CARD = ".well-known/agent-card.json"
_BINDINGS = ("JSONRPC", "HTTP+JSON")
_PORTS = {"http": 80, "https": 443}


async def _find_card(url: str, headers: Sequence[tuple[str, str]]) -> AgentCard:
    """The card of the agent at `url`, which may be the card's own address, with only the interface to use.

    Raises AgentLoadError where there is no card that can be used, RemoteError where the server does not
    respond.
    """
    names_card = urlsplit(url).path.endswith(".json")
    base, _, name = url.rpartition("/") if names_card else (url, "", _CARD)
    server = Server(base, headers)
    try:
        card_data = await server.ask("GET", f"/{name}")
    except HttpStatusError as error:
        if error.status != 404:
            raise
        raise AgentLoadError(
            f"{server.url} has no agent card at /{name}. Check the address; the agent may be below a path of "
            "the server"
        ) from error
    finally:
        await server.close()
    card_url = f"{base}/{name}"
    where = f"GET {card_url}"
    card = _parsed(card_data, where)
    interface = _interface_of(card, where)
    interface.url = _url_of(interface.url, card_url, names_card=names_card, sends_headers=bool(headers))
    del card.supported_interfaces[:]
    card.supported_interfaces.append(interface)
    return card


def _parsed(card_data: Any, where: str) -> AgentCard:
    try:
        card: AgentCard = parse_agent_card(dict(card_data))
    except (ParseError, TypeError, ValueError, AttributeError) as error:
        reason = f"the response is not an agent card ({excerpt(str(error))})"
        raise MalformedResponseError(
            f"{reason}: {excerpt(str(card_data))}. Check the address", where
        ) from error
    if not card.supported_interfaces:
        reason = f"the agent card names no address: {excerpt(str(card_data))}"
        raise MalformedResponseError(f"{reason}. Check the address", where)
    return card


def _interface_of(card: AgentCard, where: str) -> AgentInterface:
    """The interface to use: the first of the newest protocol up to 1 with a supported binding."""
    usable = [interface for interface in card.supported_interfaces if interface.protocol_binding in _BINDINGS]
    if not usable:
        offered = ", ".join(
            dict.fromkeys(interface.protocol_binding for interface in card.supported_interfaces)
        )
        raise AgentLoadError(
            f"{where}: the agent offers {offered}; evaltui takes {' and '.join(_BINDINGS)}. Have the agent "
            "offer one of them"
        )
    interface: AgentInterface = min(
        usable, key=lambda candidate: not candidate.protocol_version.startswith("1")
    )
    return interface


def _url_of(named: str, card_url: str, *, names_card: bool, sends_headers: bool) -> str:
    """The address for messages. Raises AgentLoadError where the card names another host than the user did.

    The user has confirmed the host of a card only by giving the card's own address, and credentials are for
    the user's host in any case.
    """
    address, target = urlsplit(card_url), urlsplit(named)
    if target.scheme not in _PORTS or not target.hostname:
        raise AgentLoadError(f"the agent card names the address {named!r}, which is no URL")
    if _port(target.scheme, target.port) == _port(address.scheme, address.port) and _is_same_host(
        address.hostname or "", target.hostname
    ):
        # The card may name 0.0.0.0, where a server listens, or localhost, which may have two addresses.
        return urlunsplit(target._replace(netloc=address.netloc))
    host = f"{target.scheme}://{target.netloc}"
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


def _is_same_host(user_host: str, card_host: str) -> bool:
    both_local = is_here(user_host) and is_here(card_host)
    return user_host == card_host or is_any(card_host) or both_local
