"""The lines of a run log: how each kind begins, where they are, and what they say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Json = dict[str, Any]

# How the lines begin that are not events: the many events need not be parsed to be passed over.
HEADER = b'{"kind":"header"'
AGENT = b'{"kind":"agent"'
REPEAT = b'{"kind":"repeat_result"'
RESULT = b'{"kind":"case_result"'
INDEX = b'{"kind":"index"'
SPENT = b'{"kind":"spent"'
CHECKPOINT = b'{"kind":"checkpoint"'
FOOTER = b'{"kind":"footer"'

# A log may be larger than the memory: it is read in pieces of so many bytes.
_PIECE = 1 << 20


def lines_of(path: Path, beginnings: bytes | tuple[bytes, ...], start: int = 0) -> Iterator[bytes]:
    """The lines that begin so, from a line of the log on. Raises OSError."""
    return (line for _, line in placed_lines(path, beginnings, start))


def placed_lines(
    path: Path, beginnings: bytes | tuple[bytes, ...], start: int = 0
) -> Iterator[tuple[int, bytes]]:
    """As `lines_of`, each with where it is in the log, in bytes."""
    with path.open("rb", buffering=_PIECE) as file:
        file.seek(start)
        for line in file:
            if line.startswith(beginnings):
                yield start, line
            start += len(line)


def last_line(path: Path, beginning: bytes) -> int | None:
    """Where the last whole line is that begins so; None without one. Raises OSError."""
    wanted = b"\n" + beginning
    with path.open("rb") as file:
        end = file.seek(0, 2)
        # The pieces overlap, so that what is looked for is in one of them.
        after = b""
        while end > 0:
            start = max(0, end - _PIECE)
            file.seek(start)
            piece = file.read(end - start) + after
            at = piece.rfind(wanted)
            if at >= 0 and not _is_torn(file, start + at + 1):
                return start + at + 1
            if at >= 0:
                # Cut off, so it is the last line of all.
                piece = piece[: at + 1]
                if (at := piece.rfind(wanted)) >= 0:
                    return start + at + 1
            end, after = start, piece[: len(wanted) - 1]
    return None


def _is_torn(file: Any, start: int) -> bool:
    file.seek(start)
    return not file.readline().endswith(b"\n")


def line_at(path: Path, start: int) -> bytes:
    """Raises OSError."""
    with path.open("rb") as file:
        file.seek(start)
        return file.readline()


def parsed(path: Path, line: bytes) -> Iterator[Json]:
    """A line as an object; nothing for one that was cut off. Raises ValueError."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        if line.endswith(b"\n"):
            raise ValueError(f"{path} is damaged: {line[:60]!r} is not JSON") from None
        # The last line, cut off when the process was killed.
        return
    if not isinstance(data, dict):
        raise ValueError(f"{path} is damaged: {line[:60]!r} is not an object")
    yield data


@contextmanager
def damage(path: Path, what: str) -> Iterator[None]:
    """What is wrong in a log, as a sentence that names it."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {what} cannot be read: {error}") from error


def are_places(value: Any) -> bool:
    # A run may have a hundred thousand.
    return isinstance(value, list) and {*map(type, value)} <= {int} and min(value, default=0) >= 0
