"""A host as the parent sees it: start it, talk to it, cancel requests, and end it with all it started."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from evaltui.agents.bootstrap import command, environment
from evaltui.agents.errors import (
    AgentBrokenError,
    HostLostError,
    RequestFailedError,
    RunStoppedError,
    late_error,
)
from evaltui.agents.orphans import MARK, kill_marked
from evaltui.agents.own_code import is_own_code
from evaltui.agents.protocol import DisturbedChannelError, FilesOpened, Message, SealedLines, encode
from evaltui.core.model.errors import NO_PYTHON, ErrorInfo, ErrorKind
from evaltui.core.model.events import Json
from evaltui.project.agent_address import AgentAddress
from evaltui.runner.gated_requests import GatedRequest, answered
from evaltui.text.figures import counted, show_number, show_size

OnConsole = Callable[[str, str], None]
"""Gets "stdout" or "stderr", and the line."""


MOST_PRINTED = 1 << 20
"""Bytes that are handed on of a case, of a turn of a chat, or of the time before the first."""
MOST_LINES = 10_000
"""Lines that are handed on: each takes more room in a stored run than in the output."""
_LAST_LINES = 100
_MAX_LAST_LINE_LENGTH = 10_000


class HostConsole:
    """The console of one host. Lines wait until `listen` is called.

    Of output beyond `MOST_PRINTED` or `MOST_LINES`, only the size is handed on.
    """

    def __init__(self) -> None:
        self.last_words: deque[str] = deque(maxlen=_LAST_LINES)
        """The latest lines on stderr."""
        self._room, self._lines = MOST_PRINTED, MOST_LINES
        self._left_out: Counter[str] = Counter()
        self._on_console: OnConsole | None = None
        self._unheard: list[tuple[str, str]] = []
        self._asking_where = False

    def listen(self, on_console: OnConsole) -> None:
        """From now on `on_console` gets each line, the earlier ones first."""
        self._on_console = on_console
        for source, line in self._unheard:
            on_console(source, line)
        self._unheard.clear()

    async def read(self, source: str, pipe: Any) -> None:
        """Read a pipe to its end."""
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        rest, is_cut = bytearray(), False
        try:
            while chunk := await reader.read(1 << 16):
                rest += chunk
                if b"\n" in chunk:
                    *lines, rest = rest.split(b"\n")
                    if is_cut:
                        self._left_out[source] += len(lines.pop(0)) + 1
                        is_cut = False
                    self._print_lines(source, lines)
                if len(rest) > MOST_PRINTED:
                    self._room = 0
                    self._left_out[source] += len(rest)
                    rest.clear()
                    is_cut = True
        finally:
            if rest:
                self.printed(source, rest)
            self.end()
            transport.close()

    def _print_lines(self, source: str, lines: list[bytearray]) -> None:
        if self._room == 0:
            # An agent in a loop prints faster than its lines could be gone through.
            last = lines[-_LAST_LINES:] if source == "stderr" else []
            self._left_out[source] += sum(map(len, lines)) + len(lines)
            self._left_out[source] -= sum(map(len, last)) + len(last)
            lines = last
        for line in lines:
            self.printed(source, line)

    def printed(self, source: str, line: bytes | bytearray) -> None:
        """A line was printed."""
        text = line.decode("utf-8", "backslashreplace").rstrip("\r")
        if source == "stderr":
            self.last_words.append(text[:_MAX_LAST_LINE_LENGTH])
            if self._asking_where:
                return
        self._lines -= 1
        if len(line) >= self._room or self._lines < 0:
            self._room = 0
            self._left_out[source] += len(line) + 1
            return
        self._room -= len(line) + 1
        self._hand_on(source, text)

    def _hand_on(self, source: str, text: str) -> None:
        if self._on_console is None:
            self._unheard.append((source, text))
        else:
            self._on_console(source, text)

    def start(self) -> None:
        """A case or a turn starts."""
        self.end()
        self._room, self._lines = MOST_PRINTED, MOST_LINES

    def end(self) -> None:
        """A case or a turn is over: the size of the output that was left out is handed on."""
        for source, size in self._left_out.items():
            limit = f"{show_size(MOST_PRINTED)} or {counted(MOST_LINES, 'line')}"
            self._hand_on(source, f"evaltui: {show_number(size)} bytes of output left out (limit {limit})")
        self._left_out.clear()

    async def where_it_hangs(self, ask: Callable[[], None]) -> str:
        """The user's innermost frame, from faulthandler, which `ask` starts; "" where there is none."""
        self._asking_where = True
        self.last_words.clear()
        ask()
        deadline = time.monotonic() + 0.5
        while time.monotonic() < deadline:
            await asyncio.sleep(0.02)
            for line in self.last_words:
                frame = re.match(r'\s*File "(.+)", line (\d+) in (\S+)', line)
                if frame and is_own_code(frame[1]):
                    self._asking_where = False
                    return f"{Path(frame[1]).name}:{frame[2]} in {frame[3]}"
        return ""


# Seconds.
IMPORT_TIMEOUT = 120.0
SHORTEST_IMPORT = 30.0
_GRACE = 1.0
# Seconds for which events that follow each other are left to be read together.
_GATHERED = 0.002
# Seconds after which the guard of a host that was asked to end it is taken for stuck.
_END_TIMEOUT = 10.0

OnEvent = Callable[[str], None]
"""Gets each event as JSON text, see `decode_event`; may raise DisturbedChannelError."""
OnRecorded = Callable[[Json], None]
"""Gets each line of a recording, see `CallRecorder`."""


def import_limit(timeout: float) -> float:
    """Seconds that an import may take where a case may take `timeout`."""
    return min(max(timeout, SHORTEST_IMPORT), IMPORT_TIMEOUT)


@dataclass(eq=False)
class _Request:
    """A request from when it is sent until it is answered or given up."""

    number: int
    answer: asyncio.Future[Message]
    on_event: OnEvent
    on_recorded: OnRecorded
    gated: GatedRequest | None

    def close(self) -> None:
        """Its caller has the answer, or has given it up."""
        if self.gated is not None:
            self.gated.close()
        if self.answer.done() and not self.answer.cancelled():
            self.answer.exception()


class Host:
    """A child process with an agent in it."""

    def __init__(
        self,
        who: str = "the agent",
        python: Path | None = None,
        problem: str = "",
        variables: Mapping[str, str] | None = None,
        folder: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """`who` is what messages call it. A `problem` is why `python` can run nothing: the host is lost at
        once. `variables` come on top of `environ`, None for the environment of this process. It works in
        `folder`, None for that of this process."""
        self._who = who
        self._python = python or Path(sys.executable)
        self._console = HostConsole()
        self._mark = uuid.uuid4().hex
        self._seal = uuid.uuid4().hex
        self._numbers = itertools.count(1)
        self._requests: dict[int, _Request] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._send_lock = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._gone = asyncio.Event()
        self._lost: ErrorInfo | None = None
        self._ended = False
        # Of the host: its guard tells when nothing is left of it. None where the guard itself was killed.
        self._exit_code: int | None = None
        self.files: frozenset[Path] = frozenset()
        """The user's own files that it has imported; none until it is loaded."""
        self.opened = FilesOpened()
        """The user's own files that it has opened so far."""
        self.preloaded = asyncio.Event()
        """Set when it has preloaded, or has ended."""
        self.brought_in: Sequence[Any] | None = None
        """The steps that another one could preload; None until this one is closed."""
        self.loaded: asyncio.Future[Json] = self._loop.create_future()
        variables = {**environment(python, environ), **(variables or {}), MARK: self._mark}
        self._spawn(variables, problem, folder)

    def _spawn(self, variables: Mapping[str, str], problem: str, folder: Path | None) -> None:
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
        self._lifeline, held = socket.socketpair()

        def start(program: Sequence[str]) -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                program,
                stdin=held.fileno(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(theirs.fileno(),),
                env=variables,
                cwd=folder if folder is not None and folder.is_dir() else None,
                start_new_session=True,
            )

        with theirs, held:
            if not problem:
                try:
                    self._process = start(command(str(self._python), "guard", str(theirs.fileno())))
                except OSError as error:
                    # It was removed or replaced since it was found.
                    problem = f"{self._python}: cannot be started as a Python ({error.strerror})"
            if problem:
                # A process that ends at once.
                self._process = start([sys.executable, "-c", ""])
        self._fatal = ErrorInfo(NO_PYTHON, problem, kind=ErrorKind.CONFIG) if problem else None
        self._readers = [
            asyncio.create_task(self._read_channel()),
            asyncio.create_task(self._console.read("stdout", self._process.stdout)),
            asyncio.create_task(self._console.read("stderr", self._process.stderr)),
        ]
        # asyncio's own waiting for a child hangs while an orphan holds the console pipe.
        threading.Thread(target=self._wait_for_exit, daemon=True).start()
        self._watch = asyncio.create_task(self._declare_lost())

    def _wait_for_exit(self) -> None:
        self._process.wait()
        with contextlib.suppress(OSError, ValueError):
            self._exit_code = int(self._lifeline.recv(64))
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._gone.set)

    def listen(self, on_console: OnConsole) -> None:
        """From now on `on_console` gets each line that the agent and its children print, the earlier lines
        first."""
        self._console.listen(on_console)

    @property
    def alive(self) -> bool:
        return self._lost is None and self._process.returncode is None

    @property
    def busy(self) -> int:
        """Number of requests without an answer."""
        return len(self._requests)

    async def preload(self, agent_dir: Path, steps: Sequence[Any]) -> None:
        """Have it import what an earlier host of this agent has brought in; `load` need not wait for that."""
        await self._send({"op": "preload", "agent_dir": str(agent_dir), "steps": steps, "seal": self._seal})

    async def load(self, agent: AgentAddress | None, started: float, timeout: float) -> Json:
        """Import the agent, if there is to be one; its info as JSON.

        `started` is the `time.monotonic()` that events count from. Raises AgentBrokenError, also when the
        import takes longer than `timeout` seconds.
        """
        await self._send(
            {
                "op": "load",
                "agent_dir": str(agent.code) if agent else None,
                "home": str(agent.folder) if agent else None,
                "agent_name": agent.name if agent else None,
                "module": agent.module if agent else "",
                "url": agent.url if agent else "",
                "headers": agent.headers if agent else (),
                "variant": agent.variant.for_host() if agent and agent.variant else None,
                "t0": started,
                "seal": self._seal,
            }
        )
        done, _ = await asyncio.wait({self.loaded}, timeout=timeout)
        if not done:
            where = await self._where_it_hangs()
            await self.kill()
            late = f"the agent was not imported within {timeout:g} s"
            raise AgentBrokenError(late_error(late, where=where))
        return self.loaded.result()

    async def request(
        self,
        message: Message,
        timeout: float,
        on_event: OnEvent = lambda text: None,
        on_recorded: OnRecorded = lambda line: None,
        gated: GatedRequest | None = None,
    ) -> Message:
        """Send a request and wait for its answer for at most `timeout` seconds.

        Model calls of the request go through `gated`, and while they wait, its time does.
        Raises RequestFailedError (a time-out that the agent gave way to included), HostLostError or
        RunStoppedError.
        Cancelling the caller cancels the request in the host, or kills the host if that does not answer.
        """
        request = _Request(next(self._numbers), self._loop.create_future(), on_event, on_recorded, gated)
        self._requests[request.number] = request
        self._console.start()
        try:
            if self._lost is not None:
                raise HostLostError(self._lost)
            limited = {"gated": gated.patterns} if gated else {}
            await self._send({**message, **limited, "id": request.number})
            try:
                if await answered(request.answer, timeout, gated):
                    return request.answer.result()
                return await self._give_up(request, timeout)
            except (asyncio.CancelledError, RunStoppedError):
                with contextlib.suppress(RequestFailedError, HostLostError):
                    await self._give_up(request, timeout)
                raise
        finally:
            self._console.end()
            del self._requests[request.number]
            request.close()

    async def _give_up(self, request: _Request, timeout: float) -> Message:
        await self._send({"op": "cancel", "id": request.number})
        late = f"no response within {timeout:g} s"
        try:
            return await asyncio.wait_for(asyncio.shield(request.answer), _GRACE)
        except RequestFailedError as failed:
            if failed.error.type == "CancelledError":
                where, trace = failed.error.where, failed.error.traceback
                if not where and self.busy == 1:
                    # A thread of the agent hangs, which cancelling a task does not show.
                    where, trace = await self._where_it_hangs(), ""
                raise RequestFailedError(late_error(late, trace, where)) from None
            raise
        except TimeoutError:
            where = await self._where_it_hangs()
            self._fatal = late_error(f"{late}, and it cannot be interrupted", where=where)
            await self.kill()
            raise HostLostError(self._fatal) from None

    async def _where_it_hangs(self) -> str:
        """The user's innermost frame, which works inside a C call, too."""

        def ask() -> None:
            with contextlib.suppress(OSError):
                self._lifeline.send(b"?")

        return await self._console.where_it_hangs(ask)

    async def close(self) -> None:
        """Let the agent close what it opened; end it if it does not."""
        if self._lost is None and self.loaded.done():
            with contextlib.suppress(OSError):
                await self._send({"op": "close"})
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._gone.wait(), 5 * _GRACE)
        await self.kill()

    async def kill(self) -> None:
        """End the process, and all that it has started."""
        if self._ended:
            return
        await self._end()
        if self._exit_code is None:
            # Only a guard that was not killed itself has ended all there was.
            await asyncio.to_thread(kill_marked, {MARK: self._mark})
        await self._watch
        self._lifeline.close()
        self._ended = True

    async def _end(self) -> None:
        with contextlib.suppress(OSError):
            self._lifeline.shutdown(socket.SHUT_WR)
        try:
            await asyncio.wait_for(self._gone.wait(), _END_TIMEOUT)
        except TimeoutError:
            # The host does not outlive its guard.
            self._process.kill()
            await self._gone.wait()

    async def _declare_lost(self) -> None:
        gone = asyncio.create_task(self._gone.wait())
        await asyncio.wait({self._readers[0], gone}, return_when=asyncio.FIRST_COMPLETED)
        if not self._gone.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(gone), _GRACE)
        is_cut_off = not self._gone.is_set()
        if is_cut_off:
            await self._end()
        await gone
        # What is still in the pipes was written before the end; an orphan may hold them open for ever.
        await asyncio.wait(self._readers, timeout=0.3)
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        self._socket.close()
        for pipe in filter(None, (self._process.stdout, self._process.stderr)):
            with contextlib.suppress(OSError):
                pipe.close()
        self._lost = self._fatal or self._cause_of_death(is_cut_off=is_cut_off)
        self.preloaded.set()
        if not self.loaded.done():
            self._fail_to_load(self._lost)
        for request in self._requests.values():
            if not request.answer.done():
                request.answer.set_exception(HostLostError(self._lost))

    def _fail_to_load(self, error: ErrorInfo) -> None:
        self.loaded.set_exception(AgentBrokenError(error))
        # A host may be closed before anybody waits for it: asyncio would write the error to the terminal.
        self.loaded.exception()

    def _cause_of_death(self, *, is_cut_off: bool) -> ErrorInfo:
        """Why the process is gone; one that `is_cut_off` went on without being heard."""
        if is_cut_off:
            what = f"{self._who} closed the channel to evaltui (closing every file descriptor does that)"
            return ErrorInfo("AgentProcessError", what, kind=ErrorKind.HOST_LOST)
        last_words = "\n".join([*self._console.last_words][-20:])
        if self._exit_code is None and self._process.returncode > 0:
            problem = not_started(self._python, self._process.returncode)
            return ErrorInfo(NO_PYTHON, problem, last_words, kind=ErrorKind.CONFIG)
        what = f"{self._who}'s process {_how_it_ended(self._exit_code)}"
        return ErrorInfo("AgentProcessError", what, last_words, kind=ErrorKind.HOST_LOST)

    async def _send(self, message: Message) -> None:
        async with self._send_lock:
            # A host that is gone, whose socket may be closed: callers that wait for its answer get the error.
            with contextlib.suppress(OSError):
                await self._loop.sock_sendall(self._socket, encode(message))

    async def _read_channel(self) -> None:
        lines = SealedLines(self._seal, partial(self._console.printed, "stderr"))
        with contextlib.suppress(OSError):
            while chunk := await self._loop.sock_recv(self._socket, 1 << 18):
                try:
                    for message in lines.feed(chunk):
                        self._receive(message)
                except DisturbedChannelError:
                    what = f"{self._who} wrote into the channel to evaltui"
                    self._fatal = ErrorInfo("AgentProcessError", what, kind=ErrorKind.HOST_LOST)
                    return
                # Waking up for each event by itself costs more, on both sides, than what is done with it. But
                # while there is always more to read, sock_recv lets nothing else have its turn.
                is_working = any(not request.answer.done() for request in self._requests.values())
                await asyncio.sleep(_GATHERED if is_working else 0)

    def _receive(self, message: Message) -> None:
        match message:
            case {"op": "event" | "recorded" | "call" | "done" | "failed", "id": number}:
                # A request that was given up is not there any more.
                if request := self._requests.get(number):
                    self._receive_of(request, message)
            case {"op": "loaded", "info": info, "files": files} if not self.loaded.done():
                self.files = frozenset(map(Path, files))
                self.loaded.set_result(info)
            case {"op": "opened"}:
                read, written = (frozenset(map(Path, message.get(use, ()))) for use in ("read", "written"))
                self.opened |= FilesOpened(read, written)
            case {"op": "broken", "error": error} if not self.loaded.done():
                self._fail_to_load(ErrorInfo.from_json(error))
            case {"op": "preloaded"}:
                self.preloaded.set()
            case {"op": "brought_in", "steps": steps}:
                self.brought_in = steps
            case {"op": "fatal", "error": error}:
                self._fatal = ErrorInfo.from_json(error)

    def _receive_of(self, request: _Request, message: Message) -> None:
        match message:
            case {"op": "event", "event": event}:
                request.on_event(event)
            case {"op": "recorded", "line": line}:
                request.on_recorded(line)
            case {"op": "call", "call": call} if request.gated:
                request.gated.on_message(call, partial(self._let_go, request.number))
            case {"op": "done"} if not request.answer.done():
                request.answer.set_result(message)
            case {"op": "failed", "error": error} if not request.answer.done():
                failed = RequestFailedError(ErrorInfo.from_json(error))
                failed.usages = message.get("usages", ())
                request.answer.set_exception(failed)

    def _let_go(self, number: int, call: Json) -> None:
        sending = asyncio.create_task(self._send({"op": "go", "id": number, "call": call}))
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)


def not_started(python: Path, code: int) -> str:
    """The sentence about a Python that ended before it began to work."""
    return f"{python}: cannot be started as a Python (exit code {code})"


def _how_it_ended(code: int | None) -> str:
    """`was ended by SIGSEGV`; None where its guard was killed, too."""
    if code is None or code < 0:
        return f"was ended by {_signal_name(signal.SIGKILL if code is None else -code)}"
    return f"ended itself with exit code {code} (os._exit)"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        # Of those for real time, only the first and the last have names.
        return f"signal {number}"
