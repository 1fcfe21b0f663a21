"""OpenAI's Responses API on this machine: it calls the first tool, then says what that returned."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class OpenAIServer:
    """`asked` are the requests, `refuses` the numbers of those, from 1, that are answered 429. `use` has
    openai talk to it, in this process and in its children."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.refuses: set[int] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    def __enter__(self) -> OpenAIServer:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{self._server.server_port}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody-0123456789")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.asked.append({"path": self.path} | request)
                is_refused = len(server.asked) in server.refuses
                answer = _REFUSAL if is_refused else _response(request, len(server.asked))
                body = json.dumps(answer).encode()
                self.send_response(429 if is_refused else 200)
                if is_refused:
                    self.send_header("retry-after-ms", "200")
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None: ...

        return Handler


_REFUSAL = {"error": {"message": "slow down", "type": "requests", "code": "rate_limit_exceeded"}}


def _response(request: dict[str, Any], number: int) -> dict[str, Any]:
    last = request["input"][-1] if isinstance(request["input"], list) else {"content": request["input"]}
    if last.get("type") == "function_call_output":
        part = {"type": "output_text", "text": f"It is {last['output']}.", "annotations": []}
        output = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed"}
        output |= {"content": [part]}
    else:
        (tool,) = request["tools"]
        (name,) = tool["parameters"]["properties"]
        value = int(re.findall(r"\d+", last["content"])[-1])
        output = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}{'x' * number}"}
        output |= {"name": tool["name"], "arguments": json.dumps({name: value}), "status": "completed"}
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": request["model"],
        "output": [output],
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "usage": {
            "input_tokens": 50,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 10,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 60,
        },
    }
