"""A server on this machine that speaks the REST protocol of the Gemini API, as the real one answers.

    with GeminiServer() as server:
        server.script(fails(503), calls("area", {"width": 3}), says("It is ", "12."))
        server.use(monkeypatch)         # or give server.environment to a process
        ...
        assert server.requests[-1].said == "3 by 4?"

Requests take the scripted answers in turn; when there are none left, `server.respond` is asked. A wrong key,
a conversation that the service does not accept and, where `models` is given, an unknown model are refused
before that. Both `generateContent` and `streamGenerateContent` are there, under `/v1/` and `/v1beta/`.
"""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import pytest

Json = dict[str, Any]

KEY = "the-key-of-the-tests"
USAGE: Json = {"promptTokenCount": 9, "candidatesTokenCount": 4, "totalTokenCount": 13}
_PATIENCE = 30.0
_TARGET = re.compile(r"/(?P<version>v1|v1beta)/models/(?P<model>[^/:]+):(?P<method>\w+)")
_METHODS = ("generateContent", "streamGenerateContent")


# What an answer is made of


@dataclass(frozen=True)
class Drop:
    """The connection ends here."""


@dataclass(frozen=True)
class Hold:
    """Nothing more is sent until `release()`. `reached` is set when the server stands here."""

    reached: threading.Event = field(default_factory=threading.Event)
    _released: threading.Event = field(default_factory=threading.Event)

    def release(self) -> None:
        self._released.set()

    def wait(self) -> None:
        self.reached.set()
        self._released.wait(_PATIENCE)


@dataclass(frozen=True)
class Answer:
    """A response: chunks as JSON, text to be sent as it is, holds, and at most one drop at the end.

    Nothing is sent before the first chunk, not even the status: a drop that comes first is a connection lost
    before any answer. A stream has one event per chunk; otherwise the chunks are sent as one response.
    """

    pieces: Sequence[Json | str | Hold | Drop]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    def then(self, *pieces: Json | str | Hold | Drop) -> Answer:
        """This answer with more behind it."""
        return Answer([*self.pieces, *pieces], self.status, self.headers)

    def after(self, *pieces: Json | str | Hold | Drop) -> Answer:
        """This answer with more before it."""
        return Answer([*pieces, *self.pieces], self.status, self.headers)


def chunk(*parts: Json, **fields: Any) -> Json:
    """A response, or a piece of a streamed one. A `finishReason` belongs to the candidate."""
    candidate: Json = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if reason := fields.pop("finishReason", None):
        candidate["finishReason"] = reason
    return {"candidates": [candidate], **fields}


def says(*texts: str, thought: str = "", usage: Json = USAGE) -> Answer:
    """A text in as many chunks as given, with the end of the answer in the last."""
    thoughts = [chunk({"text": thought, "thought": True})] if thought else []
    *pieces, last = texts
    return Answer(
        [
            *thoughts,
            *(chunk({"text": piece}) for piece in pieces),
            chunk({"text": last}, finishReason="STOP", usageMetadata=usage),
        ]
    )


def calls(name: str, args: Json, *, thought: str = "", usage: Json = USAGE, **fields: Any) -> Answer:
    """A call of one function; `fields` are further ones of its part, such as a `thoughtSignature`."""
    thoughts = [{"text": thought, "thought": True}] if thought else []
    call = {"functionCall": {"name": name, "args": args}, **fields}
    return Answer([chunk(*thoughts, call, finishReason="STOP", usageMetadata=usage)])


_STATUS_NAMES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def error(status: int, message: str, *details: Json) -> Json:
    """The body of a refusal; in a stream it may also come as a chunk."""
    body: Json = {"code": status, "message": message, "status": _STATUS_NAMES.get(status, "UNKNOWN")}
    if details:
        body["details"] = list(details)
    return {"error": body}


def fails(
    status: int,
    message: str = "it was scripted so",
    *,
    retry_delay: str = "",
    quota: str = "",
    reason: str = "",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """A refusal, as the service words it.

    `retry_delay` is that of a RetryInfo (`"0.5s"`), `quota` the id in a QuotaFailure, `reason` that of an
    ErrorInfo.
    """
    details: list[Json] = []
    if reason:
        details.append({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason})
    if quota:
        violations = [{"quotaId": quota, "quotaValue": "10"}]
        details.append({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": violations})
    if retry_delay:
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": retry_delay})
    return Answer([error(status, message, *details)], status, headers or {})


def malformed(text: str = '{"candidates": [{"content"') -> Answer:
    """Something that is not JSON where JSON should be."""
    return Answer([text])


def drops() -> Answer:
    """The connection is lost before any answer."""
    return Answer([Drop()])


# What was asked


@dataclass(frozen=True)
class Request:
    """One request as it came. `version` is that of the path; header names are in lower case."""

    version: str
    model: str
    streaming: bool
    headers: Mapping[str, str]
    body: Json

    @property
    def contents(self) -> list[Json]:
        return list(self.body.get("contents") or [])

    @property
    def said(self) -> str:
        """The text of the newest content."""
        parts = self.contents[-1].get("parts") or []
        return "".join(part.get("text", "") for part in parts)

    @property
    def results(self) -> list[Json]:
        """The function responses in the newest content."""
        return _parts(self.contents[-1], "functionResponse")

    @property
    def instruction(self) -> str:
        parts = (self.body.get("systemInstruction") or {}).get("parts") or []
        return "".join(part.get("text", "") for part in parts)

    @property
    def functions(self) -> list[Json]:
        """The function declarations."""
        return [
            one for tool in self.body.get("tools") or [] for one in tool.get("functionDeclarations") or []
        ]


def _parts(content: Json, kind: str) -> list[Json]:
    return [part[kind] for part in content.get("parts") or [] if kind in part]


def _nothing_scripted(request: Request) -> Answer:
    return fails(400, f"the test has no answer to {request.said!r}")


# What would send google-genai elsewhere.
_ELSEWHERE = ("GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE")


class GeminiServer:
    """Serves from a thread while it is entered. Change `respond`, `models` and `version` as you like.

    `version` gets a request and its number, from 1, and returns the `modelVersion` of its answer, "" for
    none.
    """

    def __init__(self, *, models: Collection[str] | None = None) -> None:
        self.models = models
        self.respond: Callable[[Request], Answer] = _nothing_scripted
        self.version: Callable[[Request, int], str] = lambda request, number: f"{request.model}-001"
        self.requests: list[Request] = []
        self._answers: list[Answer] = []
        self._holds: list[Hold] = []
        self._changed = threading.Condition()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._http.block_on_close = False
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    @property
    def environment(self) -> dict[str, str]:
        """What google-genai needs to talk to this server."""
        return {"GOOGLE_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": self.url, "NO_PROXY": "127.0.0.1"}

    def use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """From now on, this process and those that it starts talk to this server."""
        for name in _ELSEWHERE:
            monkeypatch.delenv(name, raising=False)
        for name, value in self.environment.items():
            monkeypatch.setenv(name, value)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for hold in self._holds:
            hold.release()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def script(self, *answers: Answer) -> None:
        """Answers for the requests to come, one each."""
        with self._changed:
            self._answers += answers

    @property
    def unused(self) -> int:
        """How many scripted answers nobody has asked for."""
        return len(self._answers)

    def wait_for_requests(self, number: int) -> None:
        """Return when so many have come in all. Raises AssertionError when they do not."""
        with self._changed:
            came = self._changed.wait_for(lambda: len(self.requests) >= number, _PATIENCE)
        assert came, f"{len(self.requests)} requests instead of {number}"

    def answer(self, request: Request) -> Answer:
        with self._changed:
            self.requests.append(request)
            number = len(self.requests)
            self._changed.notify_all()
            answer = self._refusal(request) or (self._answers.pop(0) if self._answers else None)
        answer = _with_version(answer or self.respond(request), self.version(request, number))
        self._holds += [piece for piece in answer.pieces if isinstance(piece, Hold)]
        return answer

    def _refusal(self, request: Request) -> Answer | None:
        key = request.headers.get("x-goog-api-key")
        if not key:
            return fails(403, "Method doesn't allow unregistered callers. Please use API Key or other form.")
        if key != KEY:
            return fails(400, "API key not valid. Please pass a valid API key.", reason="API_KEY_INVALID")
        if self.models is not None and request.model not in self.models:
            return fails(404, f"models/{request.model} is not found for API version {request.version}.")
        if complaint := _complaint(request.contents):
            return fails(400, complaint)
        return None


def _with_version(answer: Answer, version: str) -> Answer:
    """The answer with its `modelVersion` where it ends."""
    pieces = [
        piece | {"modelVersion": version}
        if version and isinstance(piece, dict) and "finishReason" in piece.get("candidates", [{}])[0]
        else piece
        for piece in answer.pieces
    ]
    return Answer(pieces, answer.status, answer.headers)


def _complaint(contents: Sequence[Json]) -> str | None:
    """What the service would not accept in a conversation."""
    if not contents:
        return "* GenerateContentRequest.contents: contents is not specified"
    asked = 0
    for number, content in enumerate(contents):
        if content.get("role") not in ("user", "model"):
            return "Please use a valid role: user, model."
        if not content.get("parts") or not all(content["parts"]):
            return f"* GenerateContentRequest.contents[{number}].parts: contents.parts must not be empty."
        if asked != len(_parts(content, "functionResponse")):
            return (
                "Please ensure that the number of function response parts is equal to the number of function "
                "call parts of the function call turn."
            )
        asked = len(_parts(content, "functionCall"))
    return None


def _handler(server: GeminiServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            target = urlsplit(self.path)
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found = _TARGET.fullmatch(target.path)
            if found is None or found["method"] not in _METHODS:
                self._send_whole(fails(404, f"no method is at {target.path}"))
                return
            request = Request(
                version=found["version"],
                model=found["model"],
                streaming=found["method"] == "streamGenerateContent",
                headers={name.lower(): value for name, value in self.headers.items()},
                body=body,
            )
            answer = server.answer(request)
            try:
                if request.streaming and answer.status == 200:
                    assert parse_qs(target.query) == {"alt": ["sse"]}, target.query
                    self._send_stream(answer)
                else:
                    self._send_whole(answer)
            except ConnectionError:
                # Whoever asked has hung up.
                self.close_connection = True

        def _send_stream(self, answer: Answer) -> None:
            begun = False
            for piece in answer.pieces:
                if isinstance(piece, Drop):
                    self._drop()
                    return
                if isinstance(piece, Hold):
                    piece.wait()
                    continue
                if not begun:
                    self._send_head(answer, "text/event-stream", ("Transfer-Encoding", "chunked"))
                    begun = True
                text = piece if isinstance(piece, str) else json.dumps(piece)
                self._send_chunk(f"data: {text}\r\n\r\n".encode())
            if not begun:
                self._send_head(answer, "text/event-stream", ("Transfer-Encoding", "chunked"))
            self._send_chunk(b"")

        def _send_chunk(self, data: bytes) -> None:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

        def _send_whole(self, answer: Answer) -> None:
            dropped = any(isinstance(piece, Drop) for piece in answer.pieces)
            for piece in answer.pieces:
                if isinstance(piece, Hold):
                    piece.wait()
            text = _one_response(answer.pieces)
            data = text.encode()
            if text or not dropped:
                # What is in front of the service words its own refusals.
                foreign = answer.status != 200 and isinstance(answer.pieces[0], str)
                kind = "text/html" if foreign else "application/json"
                self._send_head(answer, f"{kind}; charset=UTF-8", ("Content-Length", str(len(data))))
                self.wfile.write(data[: len(data) // 2] if dropped else data)
            if dropped:
                self._drop()

        def _send_head(self, answer: Answer, kind: str, framing: tuple[str, str]) -> None:
            self.send_response(answer.status)
            self.send_header("Content-Type", kind)
            self.send_header(*framing)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()

        def _drop(self) -> None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, *_: object) -> None: ...

    return Handler


def _one_response(pieces: Iterable[Json | str | Hold | Drop]) -> str:
    """Chunks as the one response that they are pieces of."""
    texts = [piece for piece in pieces if isinstance(piece, str)]
    chunks = [piece for piece in pieces if isinstance(piece, dict)]
    if texts or not chunks:
        return "".join([*texts, *map(json.dumps, chunks)])
    whole: Json = {}
    for piece in chunks:
        whole |= piece
    if "candidates" in whole:
        contents = [one["candidates"][0]["content"] for one in chunks if "candidates" in one]
        parts = list(_joined(part for content in contents for part in content["parts"]))
        (last,) = whole["candidates"]
        whole["candidates"] = [last | {"content": {"role": "model", "parts": parts}}]
    return json.dumps(whole)


def _joined(parts: Iterable[Json]) -> Iterator[Json]:
    """Texts that follow each other are one part."""
    text = ""
    for part in parts:
        if part.keys() == {"text"}:
            text += part["text"]
            continue
        if text:
            yield {"text": text}
            text = ""
        yield part
    if text:
        yield {"text": text}
