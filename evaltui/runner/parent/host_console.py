"""What an agent and its children print, by line, and where a host that hangs is in the user's code."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evaltui.runner.own_code import is_own_code

OnConsole = Callable[[str, str], None]
"""Gets "stdout" or "stderr", and the line."""


class HostConsole:
    """The console of one host. Lines that come before somebody listens are kept."""

    def __init__(self) -> None:
        self.last_words: list[str] = []
        """The latest lines on stderr."""
        self._on_console: OnConsole | None = None
        self._unheard: list[tuple[str, str]] = []
        self._asking_where = False

    def listen(self, on_console: OnConsole) -> None:
        """From now on `on_console` gets each line, those that were printed already first."""
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
        rest = b""
        try:
            while chunk := await reader.read(1 << 16):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self.printed(source, line)
        finally:
            if rest:
                self.printed(source, rest)
            transport.close()

    def printed(self, source: str, line: bytes) -> None:
        """A line was printed."""
        text = line.decode("utf-8", "backslashreplace").rstrip("\r")
        if source == "stderr":
            self.last_words = [*self.last_words[-99:], text]
            if self._asking_where:
                return
        if self._on_console is None:
            self._unheard.append((source, text))
        else:
            self._on_console(source, text)

    async def where_it_hangs(self, ask: Callable[[], None]) -> str:
        """The user's innermost frame, told by faulthandler once `ask` has asked for it; "" where none is."""
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
