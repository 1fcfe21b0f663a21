"""The child process: imports the agent, runs it, and reports on a channel.

Started by its guard, or by `bootstrap` with FD. Standard output and error belong to the agent; only the
socket FD carries the protocol. A further argument is the first message.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import faulthandler
import fcntl
import gc
import json
import os
import queue
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from importlib.util import source_from_cache
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit

from ..core.model.events import Json, Step
from .adapters.base import AgentLoadError
from .adapters.custom_metric import import_function, score
from .case_run import Conversation, EventLine, LoadedAgent
from .errors import describe_error
from .loading import load_agent, make_adapter
from .model_client import ask
from .model_gate import ModelGate, gating
from .own_code import is_own_code, own_files, own_modules
from .preloading import Environment, Preloaded, PreloadStep
from .protocol import Lines, Message, decode_message, encode, encode_event, places_of
from .variants import AppliedChanges, apply_environment, sets_environment

_Stamp = tuple[int, ...]

_CHANGES = {"os.rename", "os.remove", "os.truncate", "os.mkdir", "os.rmdir"}
_LISTINGS = {"os.listdir", "os.scandir"}
_STANDARD_LIBRARY = f"{Path(os.__file__).parent}{os.sep}"


class OpenedFiles:
    """The user's own files that Python code has opened in this process since this object was created, and
    the folders that the user's own code has listed."""

    def __init__(self) -> None:
        self._read: set[str] = set()
        self._written: set[str] = set()
        # Time and size of databases, and of files opened for reading and writing, before they were opened:
        # writes are not audited.
        self._stamps: dict[str, _Stamp] = {}
        self._reported: dict[str, set[str]] = {"read": set(), "written": set()}
        # The hook cannot be removed and is called for every audited event, so it must be fast.
        sys.addaudithook(self._on_event)

    def _on_event(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            access = args[2] & os.O_ACCMODE
            if access != os.O_WRONLY:
                self._add(self._read, args[0])
            if access == os.O_RDWR and not args[2] & (os.O_TRUNC | os.O_CREAT):
                self._note_stamp(args[0])
            elif access != os.O_RDONLY:
                self._add_written(args[0])
        elif event in _LISTINGS:
            if _is_called_by_own_code():
                self._add(self._read, "." if args[0] is None else args[0])
        elif event == "sqlite3.connect":
            path = _database(args[0])
            self._add(self._read, path)
            self._note_stamp(path)
        elif event in _CHANGES:
            for path in args[:2]:
                self._add_written(path)

    def _add(self, paths: set[str], path: object) -> None:
        if absolute := _absolute(path):
            paths.add(absolute)

    def _note_stamp(self, path: object) -> None:
        if absolute := _absolute(path):
            self._stamps.setdefault(absolute, _stamp(absolute))

    def _add_written(self, path: object) -> None:
        """Adds a file that is written, created or removed, and its folder, whose listing may differ then."""
        if absolute := _absolute(path):
            self._written |= {absolute, os.path.dirname(absolute)}  # noqa: PTH120

    def new_paths(self) -> Message:
        """The paths that were not returned before, by `read` and `written`; a kind without new paths is left
        out."""
        self._written |= {path for path, before in self._stamps.items() if _stamp(path) != before}
        result: Message = {}
        for use, paths in (("read", self._read), ("written", self._written)):
            reported = self._reported[use]
            new = paths - reported
            reported |= new
            paths -= new
            if new and (own := sorted({os.path.normpath(_source(path)) for path in own_files(new)})):
                result[use] = own
        return result


def _is_called_by_own_code() -> bool:
    """Whether the user's own code lists a folder, itself or by the standard library, and no import does."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if "importlib" in name:
            return False
        if not name.startswith(("<frozen ", _STANDARD_LIBRARY)) or "/site-packages/" in name:
            return is_own_code(name)
        frame = frame.f_back
    return False


def _absolute(path: object) -> str:
    """The absolute path; "" where the argument is no path of a file."""
    # An exception here would be raised where the agent opens the file.
    if isinstance(path, bytes | Path):
        path = os.fsdecode(path)
    if type(path) is str and "\0" not in path:
        # The working folder may change later, or may not exist now.
        with suppress(OSError):
            return path if path[:1] == "/" else str(Path.cwd() / path)
    return ""


def _database(database: object) -> object:
    """The path of a database that was opened by its path or its URI."""
    if isinstance(database, str) and database.startswith("file:"):
        with suppress(ValueError):
            return unquote(urlsplit(database).path)
    return database


def _stamp(database: str) -> _Stamp:
    """Time and size of a database and of its write-ahead log. Empty files do not count, since readers create
    an empty log too."""
    stamp = []
    for path in (database, f"{database}-wal"):
        with suppress(OSError):
            stat = Path(path).stat()
            stamp += [stat.st_mtime_ns, stat.st_size] if stat.st_size else []
    return tuple(stamp)


def _source(path: str) -> str:
    """The source file of a compiled module; any other file itself."""
    if "/__pycache__/" not in path:
        return path
    try:
        return source_from_cache(path)
    except ValueError:
        return path


# Out of the way of programs that close or count low descriptors.
_CHANNEL_FD = 230
# The agent may replace it.
_exit = os._exit
# New objects until a garbage collection: a turn of a framework makes thousands that are soon freed.
_GARBAGE = 10_000


class Channel:
    """The socket to the parent. Any thread may send; one thread receives into a queue."""

    def __init__(self, fd: int) -> None:
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _CHANNEL_FD)
        os.close(fd)
        self._socket = socket.socket(fileno=high)
        self._lock = threading.Lock()
        self._seal = b""
        self.inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.on_message: Callable[[Message], object] = self.inbox.put
        # A forked child that keeps the socket open would hide this process's end from the parent.
        os.register_at_fork(after_in_child=self._socket.close)

    def fileno(self) -> int:
        return self._socket.fileno()

    def first(self) -> Message:
        """Waits for the first message."""
        return self.accept_first(self.inbox.get())

    def accept_first(self, first: Message) -> Message:
        """Reads the seal from the first message: it marks all messages of this process as its own."""
        self._seal = first["seal"].encode("ascii")
        return first

    def send(self, message: Message) -> None:
        self._send(encode(message))

    def send_event(self, request: int, event: Json) -> int:
        """Sends an event of a request and returns the number of bytes."""
        line = encode_event(request, event)
        self._send(line)
        return len(line)

    def _send(self, line: bytes) -> None:
        with self._lock:
            self._socket.sendall(self._seal + line)

    def receive_forever(self) -> NoReturn:
        """Receives messages, and ends the process when the parent is gone or sends something unreadable,
        whatever the agent is doing."""
        lines = Lines()
        try:
            while chunk := self._socket.recv(1 << 18):
                for line in lines.feed(chunk):
                    self.on_message(decode_message(line))
        finally:
            _exit(1)


def main() -> None:
    # Imports make no garbage, and collections would double their time.
    gc.disable()
    channel, opened = Channel(int(sys.argv[1])), OpenedFiles()
    _die_with_parent()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    threading.Thread(target=channel.receive_forever, daemon=True).start()
    try:
        first = channel.accept_first(json.loads(sys.argv[2])) if sys.argv[2:] else channel.first()
        _serve(channel, first, opened)
    except asyncio.CancelledError:
        _end_disturbed(channel)
    except BaseException as error:
        # SystemExit in a task that the agent's framework started ends the whole loop: report where.
        _fail(channel, describe_error(error))
    _leave(0)


def _end_disturbed(channel: Channel) -> NoReturn:
    """Ends the process because the agent has cancelled tasks of others, perhaps other cases."""
    message = "the agent cancelled tasks that it had not made (asyncio.all_tasks)"
    _fail(channel, {"type": "CancelledError", "message": message, "traceback": "", "where": ""})


def _fail(channel: Channel, error: Json) -> NoReturn:
    with suppress(OSError):
        channel.send({"op": "fatal", "error": error})
    _leave(1)


def _die_with_parent() -> None:
    # The receiving thread needs the GIL, which a hanging C extension may hold; the kernel does not.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _leave(code: int) -> NoReturn:
    # Threads and exit handlers of the agent could keep the process for ever.
    with suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _serve(channel: Channel, first: Message, opened: OpenedFiles) -> None:
    load, preloaded = first, None
    if first["op"] == "preload":
        preloaded = Preloaded(Path(first["agent_dir"]), first["steps"])
        channel.send({"op": "preloaded"})
        load = channel.inbox.get()
        if sets_environment(load) or not preloaded.is_usable_for(Path(load["agent_dir"]), load["module"]):
            preloaded.start_over(channel.fileno(), load)
    environment, agent, error_message, applied = Environment(), None, None, None
    agent_dir = None if load["agent_dir"] is None else Path(load["agent_dir"])
    if agent_dir is not None:
        # Before the event loop starts, since some agents run their own loop while they are imported.
        try:
            applied = apply_environment(load)
            with environment.watched():
                agent = load_agent(load)
        except BaseException as error:
            error_message = _load_error(error, agent_dir)
    if preloaded is not None and not preloaded.matches_environment(environment):
        preloaded.start_over(channel.fileno(), load)
    if error_message is not None:
        channel.send({"op": "broken", "error": error_message})
        return

    def brought_in() -> list[PreloadStep]:
        return environment.steps() if preloaded is None else preloaded.steps(environment)

    # The runner is never closed: that would wait for threads in which a tool may hang.
    asyncio.Runner().run(
        _Host(channel, opened, load["t0"], brought_in, agent_dir).serve(agent, load["agent_name"], applied)
    )


def _load_error(error: BaseException, agent_dir: Path | None) -> Message:
    described = describe_error(error, agent_dir)
    if isinstance(error, AgentLoadError):
        described |= {"traceback": "", "where": ""}
    return described


class _Host:
    """Receives requests on the event loop and runs each in a task."""

    def __init__(
        self,
        channel: Channel,
        opened: OpenedFiles,
        t0: float,
        brought_in: Callable[[], list[PreloadStep]],
        agent_dir: Path | None,
    ) -> None:
        self._channel = channel
        self._agent_dir = agent_dir
        self._opened = opened
        self._t0 = t0
        self._brought_in = brought_in
        self._tasks: dict[int, asyncio.Task[None]] = {}
        # The requests that the parent wants to be cancelled.
        self._unwanted: set[int] = set()
        self._serving: asyncio.Task[Any] | None = None
        self._chats: dict[int, Conversation] = {}
        # The gates of requests whose model calls are limited. The receiving thread lets calls go, because the
        # agent's code may block the event loop.
        self._gates: dict[int, ModelGate] = {}
        self._agent: LoadedAgent | None = None

    async def serve(self, agent: Any, agent_name: str | None, applied: AppliedChanges | None) -> None:
        requests: asyncio.Queue[Message] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        self._serving = asyncio.current_task()

        def receive(message: Message) -> None:
            if message["op"] != "go":
                loop.call_soon_threadsafe(requests.put_nowait, message)
            elif gate := self._gates.get(message["id"]):
                gate.on_go(**message["call"])

        self._channel.on_message = receive
        while not self._channel.inbox.empty():
            requests.put_nowait(self._channel.inbox.get())
        info: Message = {}
        if agent is not None:
            try:
                self._agent = LoadedAgent(await make_adapter(agent, agent_name, applied))
                info = await self._agent.open()
                if applied is not None:
                    info["changes"] = applied.done
            except BaseException as error:
                self._channel.send({"op": "broken", "error": _load_error(error, self._agent_dir)})
                return
        gc.freeze()
        gc.set_threshold(_GARBAGE)
        gc.enable()
        self._send_opened()
        self._channel.send({"op": "loaded", "info": info, "files": own_modules()})
        while (request := await requests.get())["op"] != "close":
            self._handle(request)
        # Before the agent is closed, which may hang.
        self._channel.send({"op": "brought_in", "steps": self._brought_in()})
        await self._close()

    def _handle(self, request: Message) -> None:
        number = request["id"]
        if request["op"] == "cancel":
            if gate := self._gates.get(number):
                gate.close()
            if task := self._tasks.get(number):
                self._unwanted.add(number)
                task.cancel()
            return
        with self._gate(request) if "gated" in request else contextlib.nullcontext():
            task = asyncio.create_task(self._answer(request))
        self._tasks[number] = task
        task.add_done_callback(lambda _: self._remove(number))

    def _gate(self, request: Message) -> contextlib.AbstractContextManager[None]:

        message = {"op": "call", "id": request["id"]}
        gate = ModelGate(request["gated"], lambda call: self._channel.send({**message, "call": call}))
        self._gates[request["id"]] = gate
        return gating(gate)

    def _remove(self, number: int) -> None:
        self._tasks.pop(number, None)
        self._gates.pop(number, None)

    def _work(self, request: Message) -> Coroutine[Any, Any, Message]:
        match request["op"]:
            case "run":
                return self._run(request)
            case "chat":
                return self._open_chat(request)
            case "say":
                return self._send_turn(request)
            case "end":
                return self._end_chat(request)
            case "import":
                return import_function(request)
            case "ask":
                return self._ask(request)
            case _:
                return score(request)

    async def _answer(self, request: Message) -> None:
        number = request["id"]
        try:
            answer = await self._work(request)
            if self._is_disturbed(number):
                _end_disturbed(self._channel)
            self._send_opened()
            self._channel.send({"op": "done", "id": number, **answer})
        except BaseException as error:
            if self._is_disturbed(number, error):
                _end_disturbed(self._channel)
            # A request that the parent cancelled also gets an answer: it says where the agent was.
            usages = list(getattr(error, "usages", ()))
            usage_fields = {"usages": usages} if usages else {}
            self._send_opened()
            described = describe_error(error, self._agent_dir)
            self._channel.send({"op": "failed", "id": number, "error": described, **usage_fields})
        finally:
            self._unwanted.discard(number)

    def _send_opened(self) -> None:
        if paths := self._opened.new_paths():
            self._channel.send({"op": "opened", **paths})

    def _is_disturbed(self, number: int, error: BaseException | None = None) -> bool:
        """Whether the code of one case has cancelled other cases. Each then runs again by itself, which shows
        the case to blame. A case that cancels only itself has an error of its own."""
        if self._serving is not None and self._serving.cancelling():
            return True
        if number in self._unwanted or len(self._tasks) == 1 or not isinstance(error, asyncio.CancelledError):
            return False
        return self._tasks[number].cancelling() > 0

    async def _run(self, request: Message) -> Message:
        assert self._agent is not None
        number = request["id"]
        message = {"op": "recorded", "id": number}
        return await self._agent.run(
            request,
            EventLine(self._t0, partial(self._channel.send_event, number)),
            lambda line: self._channel.send({**message, "line": line}),
        )

    async def _open_chat(self, request: Message) -> Message:
        assert self._agent is not None
        line = EventLine(self._t0, partial(self._channel.send_event, request["id"]))
        past = [Step.from_json(step) for step in request["past"]]
        chat = await self._agent.open_conversation(request["session"], line, past)
        state = await chat.session.state()
        self._chats[request["id"]] = chat
        return {"state": state}

    async def _send_turn(self, request: Message) -> Message:
        chat = self._chats[request["chat"]]
        chat.line.restart(partial(self._channel.send_event, request["id"]))
        await chat.send(places_of(request), request["turn"], request["content"])
        return {"state": await chat.session.state()}

    async def _end_chat(self, request: Message) -> Message:
        await self._chats.pop(request["chat"]).session.close()
        return {}

    async def _ask(self, request: Message) -> Message:
        folder = Path(request["agent_folder"])
        reply = await ask(request["judge"], request["prompt"], request["config"], folder)
        return reply._asdict()

    async def _close(self) -> None:
        self._unwanted.update(self._tasks)
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        open_sessions = [chat.session for chat in self._chats.values()]
        await asyncio.gather(*(session.close() for session in open_sessions), return_exceptions=True)
        if self._agent is not None:
            await self._agent.adapter.close()
