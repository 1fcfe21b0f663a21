"""A server on this machine that answers as ADK's api_server does, until it is told otherwise.

    with MisbehavingServer() as server:
        server.turns += [refuses(429, {"Retry-After": "0"}), says("hello")]

Requests to run a turn take the scripted answers one after the other, those to other paths what `paths` has
for their beginning. What came is in `requests`.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Answer = Callable[["Handler"], None]


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


def event(text: str, **fields: Any) -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": text}]}
    return {"author": "desk", "id": f"e-{text}", "invocationId": "i", "content": content} | fields


def gives(data: Any) -> Answer:
    return sends(200, json.dumps(data).encode(), "application/json")


def refuses(status: int, headers: dict[str, str] | None = None, detail: str = "") -> Answer:
    body = json.dumps({"detail": detail}).encode() if detail else b""
    return sends(status, body, "application/json", headers)


def sends(status: int, body: bytes, kind: str, headers: dict[str, str] | None = None) -> Answer:
    def answer(handler: Handler) -> None:
        handler.send_response(status)
        for name, value in (
            {"Content-Type": kind, "Content-Length": str(len(body))} | (headers or {})
        ).items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def says(*texts: str) -> Answer:
    return streams(*(event(text) for text in texts))


def streams(*events: Any, end: str = "whole") -> Answer:
    """Server-sent events, bytes as they are. At the `end`, the connection may be `closed` before it is due,
    `reset`, or held until the server is left."""

    def answer(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for one in events:
            data = one if isinstance(one, bytes) else b"data: " + json.dumps(one).encode() + b"\n\n"
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        if end == "whole":
            handler.wfile.write(b"0\r\n\r\n")
        elif end == "held":
            handler.server.held.set()
            handler.server.left.wait(30)
        elif end == "reset":
            drops(handler)
        handler.close_connection = True

    return answer


def drops(handler: Handler) -> None:
    handler.wfile.flush()
    linger = struct.pack("ii", 1, 0)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Http

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except ConnectionError:
            self.close_connection = True

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        script = self.server.script
        script.requests.append(Request(self.command, self.path, dict(self.headers), body))
        if self.path == "/run_sse" and script.turns:
            script.turns.pop(0)(self)
            return
        found = [path for path in script.paths if self.path.startswith(path)]
        answer = script.paths[max(found, key=len)] if found else refuses(404)
        answer(self)

    do_GET = do_POST = do_DELETE = _answer

    def log_message(self, *_: object) -> None:
        pass


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, script: MisbehavingServer) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = script
        self.held, self.left = threading.Event(), threading.Event()


@dataclass
class MisbehavingServer:
    turns: list[Answer] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    paths: dict[str, Answer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.paths = {
            "/list-apps": gives(["desk"]),
            "/apps/desk/app-info": gives({"rootAgentName": "desk", "agents": {"desk": {"name": "desk"}}}),
            "/apps/desk/users/": gives({"state": {"seen": True}}),
            "/run_sse": says("hello"),
        } | self.paths

    def sent(self, path: str, method: str = "POST") -> int:
        """How many requests of a method came whose path begins like this."""
        return sum(one.path.startswith(path) and one.method == method for one in self.requests)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/desk"

    @property
    def is_held(self) -> threading.Event:
        return self._http.held

    def __enter__(self) -> Self:
        self._http = _Http(self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.left.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
