"""The child process: imports the agent, drives it, and reports on a channel of its own.

Started as `python -P -u -m evaltui.runner.host FD`. Standard output and error belong to the agent; only
what goes over the socket FD is protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import faulthandler
import fcntl
import gc
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

from evaltui.core.events import Event
from evaltui.runner.adapters.base import (
    AgentAdapter,
    AgentLoadError,
    Recorder,
    SessionSpec,
    recording,
)
from evaltui.runner.errors import describe_error
from evaltui.runner.loading import import_agent, make_adapter
from evaltui.runner.protocol import LineBuffer, Message, encode

# Out of the way of programs that close or count low descriptors.
_CHANNEL_FD = 230
# The parent keeps the events of a case in memory; an agent in a loop would fill it.
_MOST_EVENTS = 100_000
_MOST_BYTES = 64_000_000


class TooManyEventsError(RuntimeError):
    """A case went on for longer than anyone could look at."""


class Channel:
    """The socket to the parent. Any thread may send; one thread receives into a queue."""

    def __init__(self, fd: int) -> None:
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _CHANNEL_FD)
        os.close(fd)
        self._socket = socket.socket(fileno=high)
        self._lock = threading.Lock()
        self.inbox: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.on_message: Callable[[Message], object] = self.inbox.put
        # A forked child that keeps the socket open would hide this process's end from the parent.
        os.register_at_fork(after_in_child=self._socket.close)

    def send(self, message: Message) -> int:
        """How many bytes went out."""
        line = encode(message)
        with self._lock:
            self._socket.sendall(line)
        return len(line)

    def receive_forever(self) -> NoReturn:
        """End the process when the parent is gone, whatever the agent is doing."""
        lines = LineBuffer()
        with contextlib.suppress(OSError):
            while chunk := self._socket.recv(1 << 18):
                for message in lines.feed(chunk):
                    self.on_message(message)
        os._exit(1)


class _EventLine:
    """Sends the events of one request to the parent, up to a limit."""

    def __init__(self, channel: Channel, request: int, t0: float) -> None:
        self._channel = channel
        self._request = request
        self._t0 = t0
        self._events = 0
        self._bytes = 0

    def send(self, event: Event) -> None:
        """Raises TooManyEventsError."""
        if self._events >= _MOST_EVENTS or self._bytes >= _MOST_BYTES:
            raise TooManyEventsError(
                f"the agent was stopped after {self._events:,} events ({self._bytes // 1_000_000} MB) in one "
                "case: it seems to be in an endless loop"
            )
        message = event.to_json() | {"t": time.monotonic() - self._t0}
        self._bytes += self._channel.send({"op": "event", "id": self._request, "event": message})
        self._events += 1


def main() -> None:
    # Nothing that is imported becomes garbage; looking for some doubles the time that imports take.
    gc.disable()
    channel = Channel(int(sys.argv[1]))
    _die_with_parent()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    threading.Thread(target=channel.receive_forever, daemon=True).start()
    try:
        _serve(channel, channel.inbox.get())
    except BaseException as error:
        # SystemExit in a task that the agent's framework started ends the whole loop: say whose it was.
        with contextlib.suppress(OSError):
            channel.send({"op": "fatal", "error": describe_error(error)})
        _leave(1)
    _leave(0)


def _die_with_parent() -> None:
    # The receiving thread needs the GIL, which a hanging C extension may hold; the kernel does not.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _leave(code: int) -> NoReturn:
    # Threads and exit handlers of the agent could keep the process for ever.
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _serve(channel: Channel, load: Message) -> None:
    found = None
    if load["agent_dir"] is not None:
        # Before the loop starts, since some agents run one of their own while they are imported.
        try:
            found = import_agent(Path(load["agent_dir"]))
        except BaseException as error:
            channel.send({"op": "broken", "error": _load_error(error)})
            return
    # Never closed: that would wait for threads in which a tool may hang.
    asyncio.Runner().run(_Host(channel, load["t0"]).serve(found, load["agent_name"]))


def _load_error(error: BaseException) -> Message:
    described = describe_error(error)
    if isinstance(error, AgentLoadError):
        described |= {"traceback": "", "where": ""}
    return described


class _Host:
    """The event loop's side: takes requests, runs each in a task."""

    def __init__(self, channel: Channel, t0: float) -> None:
        self._channel = channel
        self._t0 = t0
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._adapter: AgentAdapter | None = None

    async def serve(self, found: Any, agent_name: str | None) -> None:
        requests: asyncio.Queue[Message] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        self._channel.on_message = lambda message: loop.call_soon_threadsafe(requests.put_nowait, message)
        while not self._channel.inbox.empty():
            requests.put_nowait(self._channel.inbox.get())
        info: Message = {}
        if found is not None:
            try:
                self._adapter = await make_adapter(found, agent_name)
                info = asdict(await self._adapter.open())
            except BaseException as error:
                self._channel.send({"op": "broken", "error": _load_error(error)})
                return
        gc.freeze()
        gc.enable()
        self._channel.send({"op": "loaded", "info": info})
        while (request := await requests.get())["op"] != "close":
            self._handle(request)
        await self._close()

    def _handle(self, request: Message) -> None:
        number = request["id"]
        if request["op"] == "cancel":
            if task := self._tasks.get(number):
                task.cancel()
            return
        work = self._run if request["op"] == "run" else self._score
        task = asyncio.create_task(self._answer(number, work(request)))
        self._tasks[number] = task
        task.add_done_callback(lambda _: self._tasks.pop(number, None))

    async def _answer(self, number: int, work: Any) -> None:
        try:
            answer = await work
        except BaseException as error:
            # Cancelled means: the parent asked, and wants to know where the agent was.
            self._channel.send({"op": "failed", "id": number, "error": describe_error(error)})
        else:
            self._channel.send({"op": "done", "id": number, **answer})

    async def _run(self, request: Message) -> Message:
        assert self._adapter is not None
        recorder = Recorder(_EventLine(self._channel, request["id"], self._t0).send)
        session = await self._adapter.new_session(SessionSpec(**request["session"]), recorder)
        try:
            with recording(recorder):
                for turn, content in enumerate(request["turns"]):
                    recorder.turn = turn
                    recorder.event("user", content, data={"timestamp": time.time()})
                    await session.send(content)
            return {"state": await session.state()}
        finally:
            await session.close()

    async def _score(self, request: Message) -> Message:
        from evaltui.runner.adapters.custom_metric import score

        return {"result": await score(request)}

    async def _close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        if self._adapter is not None:
            await self._adapter.close()


if __name__ == "__main__":
    main()
