"""The host's end of the channel to its parent."""

from __future__ import annotations

import fcntl
import os
import queue
import socket
import threading
from collections.abc import Callable
from typing import NoReturn

from ...core.model.events import Json
from ..protocol import LineBuffer, Message, encode, encode_event

# Out of the way of programs that close or count low descriptors.
_CHANNEL_FD = 230
# The agent may replace it.
_leave = os._exit


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
        """The first message, waited for; it has the seal of those that are sent."""
        return self.begin(self.inbox.get())

    def begin(self, first: Message) -> Message:
        self._seal = first["seal"].encode("ascii")
        return first

    def send(self, message: Message) -> None:
        self._send(encode(message))

    def send_event(self, request: int, event: Json) -> int:
        """How many bytes went out."""
        line = encode_event(request, event)
        self._send(line)
        return len(line)

    def _send(self, line: bytes) -> None:
        with self._lock:
            self._socket.sendall(self._seal + line)

    def receive_forever(self) -> NoReturn:
        """End the process when the parent is gone, or can no longer be understood, whatever the agent is
        doing."""
        lines = LineBuffer()
        try:
            while chunk := self._socket.recv(1 << 18):
                for message in lines.feed(chunk):
                    self.on_message(message)
        finally:
            _leave(1)
