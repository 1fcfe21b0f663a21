"""A2A agents in a process of their own: one of google-adk's `to_a2a`, one on the SDK's server, a broken one.

with A2AServers(folder) as servers:
    servers.adk, servers.desk, servers.broken   # their URLs
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self


class A2AServers:
    """Serves until it is left; `log` is what was printed."""

    adk: str
    """A thermostat of google-adk. Below /v03, its card is one of protocol 0.3."""
    desk: str
    """A desk on the SDK's server: /stream, /send (no streaming), /rest (HTTP+JSON)."""
    broken: str
    """What goes wrong is the first part of the path; `/sent/` before it gives the number of messages."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "a2a.log"

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def __enter__(self) -> Self:
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.__exit__()
            raise AssertionError(f"the servers did not start:\n{self.log}")
        vars(self).update(json.loads(line))
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def _serve() -> None:
    import uvicorn

    names: dict[str, Callable[[str], Any]] = {"adk": _adk_app, "desk": _desk_app, "broken": _broken_app}
    listening, urls, servers = [], {}, []
    for name, make in names.items():
        one = socket.socket()
        one.bind(("127.0.0.1", 0))
        one.listen()
        listening.append(one)
        urls[name] = f"http://127.0.0.1:{one.getsockname()[1]}"
        servers.append(uvicorn.Server(uvicorn.Config(make(urls[name]), log_level="warning")))

    async def serve() -> None:
        async with asyncio.TaskGroup() as group:
            for server, one in zip(servers, listening, strict=True):
                group.create_task(server.serve([one]))
            while not all(server.started for server in servers):
                await asyncio.sleep(0.01)
            print(json.dumps(urls), flush=True)
            # Ends with the tests.
            await asyncio.to_thread(sys.stdin.read)
            for server in servers:
                server.should_exit = True

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve())


def _adk_app(url: str) -> Any:
    from google.adk.a2a.utils.agent_to_a2a import to_a2a
    from google.adk.agents import LlmAgent
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse
    from google.adk.tools import LongRunningFunctionTool, ToolContext
    from google.genai import types
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    def call(name: str, **args: object) -> types.Part:
        return types.Part(function_call=types.FunctionCall(name=name, args=args))

    class Scripted(BaseLlm):
        model: str = "scripted"

        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            given = llm_request.contents[-1].parts
            last = given[-1]
            said = last.text or ""
            sizes = [len(part.inline_data.data) for part in given if part.inline_data]
            if (response := last.function_response) is not None:
                parts = [types.Part(text=f"{response.name}: {json.dumps(response.response)}")]
            elif said == "heat":
                parts = [call("set_heat", degrees=19)]
            elif said == "book":
                parts = [call("approve", total=90)]
            elif said == "fail":
                raise RuntimeError("the boiler is out")
            elif said == "think":
                parts = [types.Part(text="hm", thought=True), types.Part(text="It is warm.")]
            elif sizes:
                parts = [types.Part(text=f"a file of {sizes[0]} bytes")]
            else:
                users = [one for one in llm_request.contents if one.role == "user"]
                parts = [types.Part(text=f"message {len(users)}")]
            yield LlmResponse(content=types.Content(role="model", parts=parts))

    def set_heat(degrees: int, tool_context: ToolContext) -> dict[str, int]:
        """Sets the heat."""
        tool_context.state["heat"] = degrees
        return {"degrees": degrees}

    def approve(total: int) -> dict[str, str]:
        """Asks somebody."""
        return {"status": "pending"}

    tools = [set_heat, LongRunningFunctionTool(approve)]
    agent = LlmAgent(name="thermostat", model=Scripted(), tools=tools)
    port = int(url.rpartition(":")[2])
    app = to_a2a(agent, host="127.0.0.1", port=port)
    # Its JSON-RPC takes the messages of 0.3 as well.
    old: dict[str, Any] = {"name": "thermostat", "url": f"{url}/", "protocolVersion": "0.3.0"}
    old |= {"description": "", "version": "1", "skills": [], "capabilities": {"streaming": True}}
    app.routes.append(Route("/v03/.well-known/agent-card.json", lambda request: JSONResponse(old)))
    return app


def _desk_app(url: str) -> Any:
    from a2a.helpers import new_text_message, new_text_part
    from a2a.server.agent_execution import AgentExecutor, RequestContext
    from a2a.server.events import EventQueue
    from a2a.server.request_handlers import DefaultRequestHandler
    from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
    from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
    from a2a.types import AgentCapabilities, AgentCard, AgentInterface, Task, TaskState, TaskStatus
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    messages: dict[str, int] = {}
    waiting: list[str] = []
    canceled: list[str] = []

    class Desk(AgentExecutor):
        async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
            said = context.get_user_input()
            messages[context.context_id or ""] = messages.get(context.context_id or "", 0) + 1
            if said == "hello":
                count = messages[context.context_id or ""]
                await event_queue.enqueue_event(
                    new_text_message(f"Hello {count}.", context_id=context.context_id)
                )
                return
            if said == "crash":
                raise RuntimeError("the boiler is out")
            update = TaskUpdater(event_queue, context.task_id or "", context.context_id or "")
            going_on = context.current_task is not None
            if not going_on:
                submitted = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
                await event_queue.enqueue_event(
                    Task(id=context.task_id, context_id=context.context_id, status=submitted)
                )
            await update.start_work()
            if going_on and said != "reject":
                await update.add_artifact([new_text_part(f"Booked for {said}.")])
                await update.complete()
            elif said == "stream":
                await update.add_artifact([new_text_part("It is ")], artifact_id="a", last_chunk=False)
                await update.add_artifact(
                    [new_text_part("19 degrees.")], artifact_id="a", append=True, last_chunk=True
                )
                await update.complete(update.new_agent_message([new_text_part("It is 19 degrees.")]))
            elif said == "ask":
                await update.requires_input(update.new_agent_message([new_text_part("Which city?")]))
            elif said == "sign in":
                await update.requires_auth()
            elif said == "reject":
                await update.reject(update.new_agent_message([new_text_part("Not on Sundays.")]))
            else:
                waiting.append(context.task_id or "")
                await asyncio.sleep(3600)

        async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
            canceled.append(context.task_id or "")
            await TaskUpdater(event_queue, context.task_id or "", context.context_id or "").cancel()

    def card(binding: str, path: str, *, streaming: bool) -> AgentCard:
        # As a server says that listens on every address.
        interface = AgentInterface(
            url=url.replace("127.0.0.1", "0.0.0.0") + path, protocol_binding=binding, protocol_version="1.0"
        )
        return AgentCard(
            name="Travel desk",
            version="1",
            supported_interfaces=[interface],
            capabilities=AgentCapabilities(streaming=streaming),
        )

    cards = {
        "/stream": card("JSONRPC", "/rpc", streaming=True),
        "/send": card("JSONRPC", "/rpc", streaming=False),
        "/rest": card("HTTP+JSON", "/json", streaming=True),
    }
    # Cards tell what the handler offers, and two of them stream.
    handler = DefaultRequestHandler(
        agent_executor=Desk(), task_store=InMemoryTaskStore(), agent_card=cards["/stream"]
    )
    routes: list[Any] = [
        Route("/waiting", lambda request: JSONResponse(waiting)),
        Route("/canceled", lambda request: JSONResponse(canceled)),
    ]
    for path, one in cards.items():
        routes += create_agent_card_routes(one, card_url=f"{path}/.well-known/agent-card.json")
    routes += create_jsonrpc_routes(handler, "/rpc")
    # The last ones, since they take any path for a tenant.
    routes += create_rest_routes(handler, path_prefix="/json")
    return Starlette(routes=routes)


_SSE = {"content-type": "text/event-stream"}
_REPLY = {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "fine"}]}}
_WORKING = {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}
_UPDATE = json.dumps({"jsonrpc": "2.0", "result": {"statusUpdate": _WORKING}}).encode()
# Status, headers and body of the answer to a message, by the first part of the path.
_ANSWERS: dict[str, tuple[int, dict[str, str], bytes]] = {
    "401": (401, {}, b""),
    "later": (401, {}, b""),
    "429": (429, {"retry-after": "3600"}, b""),
    "503": (503, {"content-type": "text/plain"}, b"no more room"),
    "html": (200, {"content-type": "text/html"}, b"<html>Welcome</html>"),
    "empty": (200, _SSE, b""),
    "poll": (200, _SSE, b"data: " + _UPDATE + b"\n\n"),
    "garbage": (200, _SSE, b"data: {nonsense\n\n"),
    "number": (200, _SSE, b'data: {"jsonrpc": "2.0", "id": "1", "result": 7}\n\n'),
    "shape": (200, _SSE, b'data: {"jsonrpc": "2.0", "id": "1", "result": {"task": {"status": 7}}}\n\n'),
    "error": (
        200,
        _SSE,
        b'data: {"jsonrpc": "2.0", "error": {"code": -32005, "message": "text only"}}\n\n',
    ),
    "moved": (307, {"location": "http://127.0.0.1:1/"}, b""),
}


def _broken_app(url: str) -> Any:
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response

    sent: dict[str, int] = {}
    calm: set[str] = set()
    looked: list[str] = []

    def card(kind: str) -> Any:
        interface = {"url": f"{url}/{kind}", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        if kind == "elsewhere":
            interface["url"] = "http://127.0.0.1:1/"
        elif kind == "grpc":
            interface["protocolBinding"] = "GRPC"
        given = {"name": kind, "version": "1", "capabilities": {"streaming": True}}
        return given | {"supportedInterfaces": [interface]} if kind != "nameless" else {"hello": "there"}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        request = Request(scope, receive)
        kind, _, rest = scope["path"].strip("/").partition("/")
        if kind == "sent":
            response: Response = JSONResponse(sent.get(rest, 0))
        elif rest == ".well-known/agent-card.json":
            response = JSONResponse(card(kind))
        elif scope["method"] == "GET":
            response = Response(status_code=404)
        else:
            asked = await request.json()
            if asked["method"] == "GetTask":
                looked.append(kind)
                state = "COMPLETED" if looked.count(kind) > 1 else "WORKING"
                held = [{"artifactId": "a", "parts": [{"text": "done"}]}]
                task = {"id": "t", "contextId": "c", "status": {"state": f"TASK_STATE_{state}"}}
                found = {"jsonrpc": "2.0", "id": asked["id"], "result": task | {"artifacts": held}}
                await JSONResponse(found)(scope, receive, send)
                return
            sent[kind] = sent.get(kind, 0) + 1
            if kind in ("drop", "hang"):
                await _begin(send, asked["id"])
                if kind == "hang":
                    await asyncio.sleep(3600)
                raise ConnectionError("cut off")
            if kind == "later" and sent[kind] != 2:
                said = asked["params"]["message"].get("contextId", "new")
                reply = {"messageId": said, "contextId": "c", "role": "ROLE_AGENT", "parts": [{"text": said}]}
                data = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"message": reply}})
                response = Response(f"data: {data}\n\n", headers=_SSE)
            elif kind == "busy" and kind not in calm:
                calm.add(kind)
                response = Response(status_code=429, headers={"retry-after": "0"})
            elif kind in ("busy", "secret"):
                reply = _REPLY if request.headers.get("x-key") == "open sesame" or kind == "busy" else {}
                data = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": reply})
                response = Response(f"data: {data}\n\n", headers=_SSE)
            else:
                status, headers, body = _ANSWERS[kind]
                response = Response(body, status, headers)
        await response(scope, receive, send)

    async def _begin(send: Any, request_id: str) -> None:
        """The first event of a response."""
        data = json.dumps({"jsonrpc": "2.0", "id": request_id, "result": {"statusUpdate": _WORKING}})
        headers = [(b"content-type", b"text/event-stream"), (b"content-length", b"100000")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": f"data: {data}\n\n".encode(), "more_body": True})

    return app


if __name__ == "__main__":
    _serve()
