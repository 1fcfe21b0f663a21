"""The console of a host: lines that the agent and its children print, and the place where it hangs."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evaltui.agents.own_code import is_own_code
from evaltui.text.figures import counted, show_number, show_size

OnConsole = Callable[[str, str], None]
"""Gets "stdout" or "stderr", and the line."""


MOST_PRINTED = 1 << 20
"""Bytes that are handed on of a case, of a turn of a chat, or of the time before the first."""
MOST_LINES = 10_000
"""Lines that are handed on: each takes more room in a stored run than in the output."""
_LAST_LINES = 100
_LONGEST_LAST_LINE = 10_000


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
            self.last_words.append(text[:_LONGEST_LAST_LINE])
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
