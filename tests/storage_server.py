"""As much of Google Cloud Storage's JSON API as google-adk's results manager uses, on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit


class _Handler(BaseHTTPRequestHandler):
    server: StorageServer

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        bucket, below, inner = url.path.partition("/b/")[2].partition("/o")
        objects = self.server.buckets.get(bucket)
        name = unquote(inner.removeprefix("/"))
        if objects is None or (name and name not in objects):
            self._answer(404, {"error": {"code": 404, "message": f"no such thing: {url.path}"}})
        elif not below:
            self._answer(200, {"kind": "storage#bucket", "name": bucket})
        elif name and (url.path.startswith("/download") or "media" in parse_qs(url.query).get("alt", ())):
            self._send(200, objects[name])
        elif name:
            self._answer(200, {"name": name, "bucket": bucket, "size": str(len(objects[name]))})
        else:
            [prefix] = parse_qs(url.query).get("prefix", [""])
            found = [{"name": one, "bucket": bucket} for one in objects if one.startswith(prefix)]
            self._answer(200, {"items": found})

    def do_POST(self) -> None:
        bucket = urlsplit(self.path).path.partition("/b/")[2].partition("/")[0]
        body = self.rfile.read(int(self.headers["content-length"]))
        boundary = self.headers["content-type"].partition("boundary=")[2].strip('"').encode()
        _, about, content, _ = body.split(b"--" + boundary)
        name = json.loads(about.partition(b"\r\n\r\n")[2])["name"]
        self.server.buckets[bucket][name] = content.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
        self._answer(200, {"name": name, "bucket": bucket})

    def _answer(self, status: int, data: object) -> None:
        self._send(status, json.dumps(data).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


class StorageServer(ThreadingHTTPServer):
    def __init__(self, *buckets: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.buckets: dict[str, dict[str, bytes]] = {name: {} for name in buckets}
        """The objects of each bucket, by name."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def storage(*buckets: str) -> Iterator[StorageServer]:
    """A server with these buckets, empty."""
    server = StorageServer(*buckets)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
