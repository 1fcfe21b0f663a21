"""The server: a page, what it loads, and a socket for each session.

async with serving(Served(["evaltui", "my_agent"], "my_agent"), Access("127.0.0.1", new_secret())) as url: ...
"""

from __future__ import annotations

import asyncio
import fcntl
import html
import json
import os
import signal
import ssl
import struct
import termios
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import textual_serve
from aiohttp import WSCloseCode, WSMsgType, web

from evaltui.project.hosts import in_url
from evaltui.serving.access import Access, RefusedError
from evaltui.traces.receiver.http_server import HEAD_SECONDS, SERVER_HEADER, HttpServer
from evaltui.workbench.case.editors import IN_BROWSER

# Bytes.
_CHUNK = 64 * 1024
# Seconds in which a process that was asked to end has to have ended what it runs.
_END_SECONDS = 15.0


class Size(NamedTuple):
    """Cells."""

    columns: int
    rows: int


class Terminal:
    """Made by `open_terminal`. One task reads and one writes."""

    def __init__(self, fd: int, process: asyncio.subprocess.Process) -> None:
        self._fd = fd
        self._process = process
        self._is_open = True

    async def read(self) -> bytes:
        """The output of the process since the last call; b"" once it has ended."""
        while self._is_open:
            try:
                return os.read(self._fd, _CHUNK)
            except BlockingIOError:
                loop = asyncio.get_running_loop()
                await self._ready(loop.add_reader, loop.remove_reader)
            except OSError:
                # Nobody has the other end any more.
                break
        return b""

    async def write(self, data: bytes) -> None:
        """Types data into the terminal, and waits until the process has read it or has ended."""
        rest = memoryview(data)
        while rest and self._is_open:
            try:
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:
                loop = asyncio.get_running_loop()
                await self._ready(loop.add_writer, loop.remove_writer)
            except OSError:
                return

    async def _ready(
        self, add: Callable[[int, Callable[[], object]], object], remove: Callable[[int], object]
    ) -> None:
        ready = asyncio.Event()
        add(self._fd, ready.set)
        try:
            await ready.wait()
        finally:
            if self._is_open:
                remove(self._fd)

    def resize(self, size: Size) -> None:
        if self._is_open:
            _set_size(self._fd, size)
            self._signal(signal.SIGWINCH)

    def end_if_idle(self) -> None:
        """Asks the process to end unless something goes on in it."""
        self._signal(signal.SIGUSR1)

    async def end(self) -> None:
        """Ends the process in order, and by force where that takes too long."""
        if self._is_open:
            self._is_open = False
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._fd)
            loop.remove_writer(self._fd)
            # Its screen is gone, so that it waits for nobody to read what it writes last.
            os.close(self._fd)
        self._signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), _END_SECONDS)
        except TimeoutError:
            self._signal(signal.SIGKILL)
            await self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(number)


async def open_terminal(words: Sequence[str], environment: Mapping[str, str], size: Size) -> Terminal:
    """Starts a command, without a shell. Raises OSError."""
    ours, theirs = os.openpty()
    try:
        _set_size(ours, size)
        os.set_blocking(ours, False)
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            # Ctrl-C where the server runs is for the server, which ends its sessions itself.
            start_new_session=True,
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return Terminal(ours, process)


def _set_size(fd: int, size: Size) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.columns, 0, 0))


SERVE_PORT = 8700
MOST_SESSIONS = 8
IDLE_SECONDS = 30 * 60.0
"""After which a session ends in which nobody has typed or clicked, and nothing runs; infinite for never."""
MOST_CONNECTIONS = 64
LONGEST_MESSAGE = 1024 * 1024
"""Bytes of what a browser sends at once: a text that was pasted."""
IDLE = 4000
"""The code that closes the socket of a session without input for a long time."""

_BEAT = 15.0
# Seconds that a session waits for others that are ending.
_LEAVE_SECONDS = 5.0
_LARGEST = Size(500, 200)
_HERE = Path(__file__).parent
_STATIC = Path(textual_serve.__file__).parent / "static"
FILES: Mapping[str, Path] = {
    "page.css": _HERE / "page.css",
    "page.js": _HERE / "page.js",
    "textual.js": _STATIC / "js" / "textual.js",
    "xterm.css": _STATIC / "css" / "xterm.css",
    "mono.ttf": _STATIC / "fonts" / "RobotoMono-VariableFont_wght.ttf",
    "mono-italic.ttf": _STATIC / "fonts" / "RobotoMono-Italic-VariableFont_wght.ttf",
}
"""The files that the page loads, by their path below `/static`."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = SERVER_HEADER | {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
# What tells a program of the terminal that the server itself was started in.
_OF_OTHER_TERMINALS = (
    "COLUMNS",
    "LINES",
    "STY",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "TMUX",
    "VTE_VERSION",
)
_FULL = "As many sessions are open as there may be ({}). Close one, and start again.\r\n"


@dataclass(frozen=True)
class Served:
    """The program that each session runs."""

    words: Sequence[str]
    """A command, of which no shell takes notice."""
    title: str
    without: Sequence[str] = ()
    """Variables that it does not get."""

    def environment(self) -> dict[str, str]:
        left_out = {*self.without, *_OF_OTHER_TERMINALS}
        inherited = {name: value for name, value in os.environ.items() if name not in left_out}
        return inherited | {"TERM": "xterm-256color", "COLORTERM": "truecolor", IN_BROWSER: "1"}


@dataclass(frozen=True)
class Limits:
    """Sessions, connections and seconds; tests have smaller ones."""

    sessions: int = MOST_SESSIONS
    connections: int = MOST_CONNECTIONS
    head: float = HEAD_SECONDS
    idle: float = IDLE_SECONDS


@asynccontextmanager
async def serving(
    served: Served,
    access: Access,
    port: int = SERVE_PORT,
    tls: ssl.SSLContext | None = None,
    limits: Limits | None = None,
    refused: Callable[[str], None] = lambda reason: None,
) -> AsyncIterator[str]:
    """Serves while it is entered; has the URL without the token. Sessions end with it.

    `refused` is told why a socket was refused, which no page can read. Raises OSError.
    """
    server = _Server(served, access, limits or Limits(), refused)
    server.port = await server.http.listen(access.host, port, tls)
    try:
        yield f"{access.scheme}://{in_url(access.host)}:{server.port}"
    finally:
        await server.end()


class _Server:
    def __init__(
        self, served: Served, access: Access, limits: Limits, refused: Callable[[str], None]
    ) -> None:
        self.port = 0
        self._served = served
        self._access = access
        self._limits = limits
        self._refused = refused
        self.http = HttpServer(
            self._handle, connections=limits.connections, head=limits.head, keepalive=_BEAT
        )
        self._sessions: set[asyncio.Future[None]] = set()
        # Those among them that nobody uses any more.
        self._leaving: set[asyncio.Future[None]] = set()
        self._ending = asyncio.Event()

    async def end(self) -> None:
        self.http.stop_listening()
        self._ending.set()
        await asyncio.gather(*self._sessions, return_exceptions=True)
        await self.http.shutdown(1.0)

    # Requests

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._answered(request)
        except RefusedError as error:
            if request.path == "/ws" and request.method == "GET":
                self._refused(error.log)
            response = _page(error.status, _REFUSED.format(html.escape(str(error))))
            response.force_close()
            return response

    async def _answered(self, request: web.BaseRequest) -> web.StreamResponse:
        host = self._access.check_host(request.headers.getall("Host", []))
        # As proxies are asked, of which this is none.
        if not request.raw_path.startswith(("/", f"http://{host}/", f"https://{host}/")):
            raise RefusedError(400, "the target is of another host than Host")
        if request.method != "GET":
            raise RefusedError(405, f"{request.method} is not taken; GET is")
        name = f"evaltui-{self.port}"
        if request.path == "/" and "t" in request.query:
            if not self._access.takes_token(request.query["t"]):
                raise RefusedError(401, "wrong token: open the address that `evaltui serve` has printed")
            response = web.Response(
                status=303, headers=_HEADERS | {"Location": "/", "Cache-Control": "no-store"}
            )
            response.set_cookie(
                name,
                self._access.cookie,
                httponly=True,
                samesite="Strict",
                secure=self._access.needs_https(host),
            )
            return response
        self._access.check_cookie(request.cookies.get(name))
        if request.path == "/ws":
            self._access.check_origin(host, request.headers.getall("Origin", []))
            return await self._session(request)
        if request.path == "/":
            text = (_HERE / "page.html").read_text(encoding="utf-8")
            return _page(200, text.replace("{title}", html.escape(f"{self._served.title} · evaltui")))
        if (file := FILES.get(request.path.removeprefix("/static/"))) is None:
            raise RefusedError(404, "not found")
        return web.FileResponse(file, headers=_HEADERS | {"Cache-Control": "private, max-age=3600"})

    # Sessions

    async def _session(self, request: web.BaseRequest) -> web.StreamResponse:
        socket = web.WebSocketResponse(
            heartbeat=_BEAT, max_msg_size=LONGEST_MESSAGE, compress=False, timeout=2.0
        )
        if not socket.can_prepare(request):
            raise RefusedError(400, "not a websocket; a proxy has to pass the Upgrade header on")
        socket.headers.update(SERVER_HEADER)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            await socket.prepare(request)
            if await self._takes_place(done):
                size = Size(_cells(request.query.get("width"), 80), _cells(request.query.get("height"), 24))
                code = await self._run(socket, size, done)
            elif self._ending.is_set():
                code = WSCloseCode.GOING_AWAY
            else:
                await socket.send_bytes(_FULL.format(self._limits.sessions).encode())
                code = WSCloseCode.TRY_AGAIN_LATER
            await socket.close(code=code)
        except (ConnectionError, OSError):
            # The browser has left.
            pass
        finally:
            self._sessions.discard(done)
            self._leaving.discard(done)
            done.set_result(None)
        return socket

    async def _takes_place(self, done: asyncio.Future[None]) -> bool:
        """Whether a session has a place now; that of a tab that is loaded again is about to be free."""
        until = time.monotonic() + _LEAVE_SECONDS
        while self._is_full and self._leaving and (left := until - time.monotonic()) > 0:
            await asyncio.wait(self._leaving, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        if self._is_full or self._ending.is_set():
            return False
        self._sessions.add(done)
        if self._leaving:
            # What the last session of the tab did not save is the next one's.
            await asyncio.wait(self._leaving, timeout=max(0.0, until - time.monotonic()))
        return True

    @property
    def _is_full(self) -> bool:
        return len(self._sessions) >= self._limits.sessions

    async def _run(self, socket: web.WebSocketResponse, size: Size, done: asyncio.Future[None]) -> int:
        """A session from its start to its end; the code that its socket is closed with."""
        terminal = await open_terminal(self._served.words, self._served.environment(), _shown(size))
        session = _Session(socket, terminal)
        try:
            await self._talk(session)
        finally:
            self._leaving.add(done)
            await terminal.end()
        if self._ending.is_set():
            return WSCloseCode.GOING_AWAY
        return IDLE if session.was_idle else WSCloseCode.OK

    async def _talk(self, session: _Session) -> None:
        """Until the browser leaves, the process ends, or all end."""
        work = [
            session.show(),
            session.receive(),
            session.end_when_idle(self._limits.idle),
            self._ending.wait(),
        ]
        tasks = [asyncio.ensure_future(job) for job in work]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


class _Session:
    def __init__(self, socket: web.WebSocketResponse, terminal: Terminal) -> None:
        self._socket = socket
        self._terminal = terminal
        self._used_at = time.monotonic()
        self.was_idle = False
        """Whether it was asked to end, and has not been used since."""

    async def show(self) -> None:
        while data := await self._terminal.read():
            await self._socket.send_bytes(data)

    async def receive(self) -> None:
        """Handles the messages of the page's script: lists of JSON with a word and its value."""
        async for message in self._socket:
            if message.type is not WSMsgType.TEXT:
                return
            try:
                match json.loads(message.data):
                    case ["stdin", str(text)]:
                        self._used_at, self.was_idle = time.monotonic(), False
                        await self._terminal.write(text.encode("utf-8", "replace"))
                    case ["resize", {"width": int(width), "height": int(height)}]:
                        self._terminal.resize(_shown(Size(width, height)))
                    case ["ping", str(text)]:
                        await self._socket.send_json(["pong", text[:40]])
                    case ["focus" | "blur", *_]:
                        # The terminal itself tells the process.
                        pass
                    case _:
                        return
            except (ValueError, RecursionError):
                return

    async def end_when_idle(self, idle: float) -> None:
        """Asks the process to end where nobody uses it; one that is at work goes on, and is asked again."""
        while True:
            await asyncio.sleep(max(0.05, self._used_at + idle - time.monotonic()))
            if time.monotonic() - self._used_at >= idle:
                self._used_at, self.was_idle = time.monotonic(), True
                self._terminal.end_if_idle()


_REFUSED = """<!DOCTYPE html>
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>evaltui</title>
<p>evaltui: {}.</p>
"""


def _page(status: int, text: str) -> web.Response:
    headers = _HEADERS | {"Cache-Control": "no-store"}
    return web.Response(status=status, text=text, content_type="text/html", charset="utf-8", headers=headers)


def _cells(text: str | None, usual: int) -> int:
    with suppress(ValueError):
        return int((text or "")[:5])
    return usual


def _shown(size: Size) -> Size:
    return Size(*(min(most, max(1, value)) for value, most in zip(size, _LARGEST, strict=True)))
