"""Runs an agent of ADK's `adk api_server`. All facts on ADK here are of version 2.13."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlsplit

from google.genai import types

from ....core.conversation.adk_steps import is_internal, node_name, step_from_adk
from ....core.conversation.waiting import REQUESTS
from ....core.model.events import Json, Step
from ....text.figures import short_list
from ....text.values import did_you_mean
from ...errors import excerpt
from ..adk.past import past_events
from ..base import (
    DEFAULT_USER_ID,
    AgentAdapter,
    AgentInfo,
    AgentInput,
    AgentLoadError,
    AgentSession,
    Reporter,
    SessionSpec,
    ToolInfo,
    call_of,
    plain_json,
    state_after,
)
from .requests import (
    UNRECORDED,
    HttpStatusError,
    MalformedResponseError,
    RemoteError,
    Server,
)

# Seconds to wait for the deletion of a session, which a cancelled turn may delay. The session is deleted once
# the server responds, if that is before the host ends.
_DELETING = 0.5
_DELETING_LAST = 3.0
_MAX_APPS = 8


class AdkApiAdapter(AgentAdapter):
    """The adapter for an app of an api_server at `http://host:port/app`; the server may have a path of its
    own.

    Raises AgentLoadError for a variable of `headers` that is not set.
    """

    input = AgentInput("an app of an api_server", session=("user_id", "session_id"), temporary_state=False)

    def __init__(self, url: str, headers: Sequence[tuple[str, str]]) -> None:
        self._url = url.rstrip("/")
        self._headers = headers
        self._server: Server | None = None
        self._app = ""
        self._root = ""
        self._agents: tuple[str, ...] = ()
        self._ending: set[asyncio.Task[None]] = set()

    async def open(self) -> AgentInfo:
        """Finds the app. Raises AgentLoadError where the server has no such app, RemoteError where it does
        not respond."""
        self._server, self._app = await self._find_app()
        info = await self._app_info(self._server)
        agents = info.get("agents") or {}
        self._root = str(info.get("rootAgentName") or self._app)
        self._agents = tuple(agents)
        others = (agent for name, agent in agents.items() if name != self._root)
        tools: dict[str, ToolInfo] = {}
        for agent in (agents.get(self._root) or {}, *others):
            for tool in _tools(agent.get("tools") or ()):
                tools.setdefault(tool.name, tool)
        return AgentInfo(
            name=self._root,
            framework="adk_api",
            tools=tuple(tools.values()),
            sub_agents=tuple(name for name in agents if name != self._root),
            unrecorded=UNRECORDED,
        )

    async def _find_app(self) -> tuple[Server, str]:
        """The server and the app: the last part of the address, else the only app of the server."""
        above, _, last = self._url.rpartition("/")
        if urlsplit(self._url).path:
            server = Server(above, self._headers)
            try:
                apps = await _apps(server)
            except HttpStatusError as error:
                if error.status != 404:
                    raise
            else:
                if last in apps:
                    return server, last
                hint = did_you_mean(last, apps) or f". Apps: {short_list(apps, _MAX_APPS)}"
                raise AgentLoadError(f"{above} has no app {last}{hint}")
        server = Server(self._url, self._headers)
        apps = await _apps(server)
        if len(apps) != 1:
            addresses = short_list([f"{self._url}/{app}" for app in apps], _MAX_APPS) or "none"
            raise AgentLoadError(f"{self._url} has {len(apps)} apps. Use one of these addresses: {addresses}")
        return server, apps[0]

    async def _app_info(self, server: Server) -> Json:
        """The server's description of the app; {} where it has none, as for a workflow.

        Raises AgentLoadError where the server cannot load the agent.
        """
        try:
            info = await server.ask("GET", f"/apps/{quote(self._app, safe='')}/app-info")
        except HttpStatusError as error:
            # The server has no description of a root that is no LlmAgent; older servers have none at all.
            if error.status == 400 or error.detail == "Not Found":
                return {}
            # A folder without an agent is also listed as an app.
            if error.status == 404:
                raise AgentLoadError(f"{server.url} cannot load {self._app}: {error.detail}") from error
            raise
        return info if isinstance(info, dict) else {}

    async def new_session(
        self, spec: SessionSpec, reporter: Reporter, past: Sequence[Step] = ()
    ) -> AdkApiSession:
        """Opens a session. Raises ValueError for a past that the server does not accept."""
        assert self._server is not None
        session = AdkApiSession(self._server, self._app, spec, reporter, self._ending)
        events = list(past_events(past, self._root, self._agents or {step.author for step in past}))
        _require_plain(past)
        await session.create(state_after(spec.state, past), [_importable(event) for event in events])
        return session

    async def close(self) -> None:
        if self._ending:
            await asyncio.wait(self._ending, timeout=_DELETING_LAST)
        if self._server is not None:
            await self._server.close()


async def _apps(server: Server) -> list[str]:
    apps = await server.ask("GET", "/list-apps")
    if not (isinstance(apps, list) and all(isinstance(app, str) for app in apps)):
        raise MalformedResponseError(
            f"the response is no list of apps: {excerpt(str(apps))}. Check that it is an adk api_server",
            f"GET {server.url}/list-apps",
        )
    return apps


def _tools(declared: Sequence[Any]) -> list[ToolInfo]:
    """The functions among the tools of an agent."""
    tools = (types.Tool.model_validate(tool) for tool in declared)
    return [_tool(function) for tool in tools for function in tool.function_declarations or []]


def _tool(function: types.FunctionDeclaration) -> ToolInfo:
    schema = function.parameters_json_schema
    if schema is None and function.parameters is not None:
        schema = plain_json(function.parameters.json_schema)
    return ToolInfo(function.name or "", function.description or "", schema)


def _importable(event: Json) -> Json:
    """An event that the server accepts: without changes of state, which are in the initial state of the
    session, and without the list of waiting calls."""
    return {name: value for name, value in event.items() if name not in ("actions", "long_running_tool_ids")}


def _require_plain(past: Sequence[Step]) -> None:
    """Raises ValueError for a past with requests of ADK, which its server does not accept from outside."""
    if any(call_of(part).get("name") in REQUESTS for step in past for part in step.parts):
        raise ValueError(
            "an api_server cannot continue a conversation in which the agent asked for a confirmation, an "
            "input or a credential. Send its turns again"
        )


class AdkApiSession(AgentSession):
    """A session of the server; deleted at its end."""

    def __init__(
        self,
        server: Server,
        app: str,
        spec: SessionSpec,
        reporter: Reporter,
        ending: set[asyncio.Task[None]],
    ) -> None:
        self._server = server
        # A user of its own, so that the user's state on the server does not reach another case.
        self._app, self._user_id = app, spec.user_id or f"{DEFAULT_USER_ID}_{uuid.uuid4().hex[:8]}"
        self._is_named = bool(spec.session_id)
        self._id = spec.session_id or str(uuid.uuid4())
        self._reporter = reporter
        self._ending = ending

    async def _ask(self, method: str, session_id: str = "", body: Any = None) -> Any:
        """Sends a request on a session, or on all sessions of the user."""
        app = f"/apps/{quote(self._app, safe='')}/users"
        below = f"/{quote(session_id, safe='')}" if session_id else ""
        return await self._server.ask(
            method,
            f"{app}/{quote(self._user_id, safe='')}/sessions{below}",
            body,
            shown=f"{app}/…/sessions{'/…' if session_id else ''}",
            reporter=None if method == "DELETE" else self._reporter,
        )

    async def create(self, state: Json, events: Sequence[Json]) -> None:
        body: Json = {"sessionId": self._id, "state": state}
        if events:
            body["events"] = events
        try:
            await self._ask("POST", body=body)
        except HttpStatusError as error:
            # Status 409: an earlier attempt, whose response was lost, has created the session.
            if error.status != 409 or self._is_named:
                raise

    async def send(self, content: Json) -> None:
        """Runs a turn. Raises RemoteError, also for a response that ends within an event, and an error with
        the name of the agent's error on the server."""
        body = {"appName": self._app, "userId": self._user_id, "sessionId": self._id, "newMessage": content}
        seen: set[str] = set()
        where = f"POST {self._server.url}/run_sse"
        last: Step | None = None
        async with aclosing(self._server.stream("/run_sse", body, self._reporter)) as events:
            async for event in events:
                last = self._report(event, seen, where)
        if last is None:
            raise MalformedResponseError("the response is empty. Check the server's log", where)
        if last.partial:
            reason = "the response ends in the middle of a text. Check the server's log"
            raise MalformedResponseError(reason, where)

    def _report(self, event: Any, seen: set[str], where: str) -> Step:
        if isinstance(event, dict) and "author" not in event and "error" in event:
            raise _agent_error(event, where)
        try:
            step = step_from_adk(event)
        except (ValueError, TypeError, AttributeError) as error:
            reason = f"an event is not one of ADK's ({error}): {excerpt(str(event))}"
            raise MalformedResponseError(reason, where) from error
        # An event with artifacts comes twice, the second time with only the artifacts.
        if step.id in seen and step.content is None:
            return step
        if not step.partial:
            seen.add(step.id)
        if step.author == "user":
            if not any("function_response" in part for part in step.parts):
                return step
            # ADK sends the result of an agent with a task in the user's name.
            step = replace(step, author=node_name(event) or step.author)
        self._reporter.step(step)
        return step

    async def state(self) -> Json:
        session = await self._ask("GET", self._id)
        state = session.get("state") if isinstance(session, dict) else None
        if not isinstance(state, dict):
            reason = (
                f"the response is no session: {excerpt(str(session))}. Check that it is an adk api_server"
            )
            raise MalformedResponseError(
                reason, f"GET {self._server.url}/apps/{self._app}/users/…/sessions/…"
            )
        return {key: value for key, value in state.items() if not is_internal(key)}

    async def close(self) -> None:
        deleting = asyncio.create_task(self._delete())
        self._ending.add(deleting)
        deleting.add_done_callback(self._ending.discard)
        await asyncio.wait({deleting}, timeout=_DELETING)

    async def _delete(self) -> None:
        try:
            await self._ask("DELETE", self._id)
        except RemoteError as error:
            # The results are complete by then, so this is only a warning.
            sys.stderr.write(f"a session is left on the server: {error.where}: {error}\n")


def _agent_error(event: Json, where: str) -> RemoteError:
    """The agent's error on the server, with the name that it has there."""
    details = event.get("error_details") or {}
    kind, _, message = str(event["error"]).partition(": ")
    kind = str(details.get("error_type") or kind)
    message = str(details.get("error_message") or message or kind)
    error: RemoteError = type(kind, (RemoteError,), {})(message, where)
    error.server_traceback = str(details.get("stacktrace") or "")
    return error
