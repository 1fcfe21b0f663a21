"""The index of a run log: the results of its cases without what happened in them, while it grows as well.

The index is in parts. A part has the results of cases since the part before; behind it, a checkpoint says
where the part and the checkpoint before it are. The footer is the last checkpoint. All of it is in the log
itself, so it is never that of another log, and never older: what stands behind the last checkpoint is read
line by line, and the whole log where a checkpoint is not where it should be.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from evaltui.runs.log_lines import (
    CHECKPOINT,
    FOOTER,
    INDEX,
    RESULT,
    are_places,
    last_line,
    line_at,
    parsed,
    placed_lines,
)

Json = dict[str, Any]

# A part has at most so many results, or comes after so many bytes: what stands behind it is soon read.
PART_RESULTS = 1000
PART_BYTES = 8 << 20
# The footer is shorter than this.
_END = 4096
_PIECE = 1 << 18


class IndexParts:
    """The index of a log that is being written."""

    def __init__(self) -> None:
        self._results: dict[Any, str] = {}
        self._after = 0
        self._checkpoint: int | None = None

    def add(self, case: Any, row: str) -> None:
        """The result of a case: the members of its line behind its kind."""
        self._results[case] = row

    def is_due(self, size: int) -> bool:
        """Whether the next part is to be written to a log of this size."""
        if not self._results:
            return False
        return len(self._results) >= PART_RESULTS or size - self._after >= PART_BYTES

    def part(self, size: int) -> tuple[list[str], Json]:
        """The lines of the next part, which begins at `size`, and where it is, for the line behind it."""
        lines = [f'{{"kind":"index",{row}\n' for row in self._results.values()]
        end = size + sum(map(len, lines))
        where: Json = {"index": [size, end]}
        if self._checkpoint is not None:
            where["before"] = self._checkpoint
        self._results.clear()
        self._checkpoint, self._after = end, end
        return lines, where


def index_parts(path: Path) -> Iterator[tuple[int, bytes]]:
    """The results of a log's cases as lines of JSON, some at a time, in the order of their ends, and where in
    the log the first of these lines is; the others follow on it.

    Raises OSError, and ValueError for a log whose footer is damaged.
    """
    parts, end = _parts(path)
    with path.open("rb") as file:
        for start, stop in parts:
            file.seek(start)
            while (left := stop - (place := file.tell())) > 0:
                yield place, file.read(min(left, _PIECE)) + (file.readline() if left > _PIECE else b"")
    yield from placed_lines(path, RESULT, end)


def read_footer(path: Path) -> Json | None:
    """The footer of a log that was closed. Raises OSError, and ValueError for a log that is damaged."""
    return next((data for _, data in _footer(path)), None)


def _footer(path: Path) -> Iterator[tuple[int, Json]]:
    """The footer, and where it is."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - _END))
        last = file.read().splitlines(keepends=True)[-1:]
    if last and last[0].startswith(FOOTER):
        yield from ((size - len(last[0]), data) for data in parsed(path, last[0]))


def _parts(path: Path) -> tuple[list[tuple[int, int]], int]:
    """Where the parts of an index are, and the end of what they are of; ([], 0) for a log without one."""
    for at, data in chain(_footer(path), _last_checkpoint(path)):
        found = _chain(path, at, data)
        return (found, at) if found is not None else ([], 0)
    return [], 0


def _last_checkpoint(path: Path) -> Iterator[tuple[int, Json]]:
    if (at := last_line(path, CHECKPOINT)) is not None:
        yield from ((at, data) for data in _object(path, line_at(path, at)))


def _object(path: Path, line: bytes) -> Iterator[Json]:
    try:
        yield from parsed(path, line)
    except ValueError:
        return


def _chain(path: Path, at: int, data: Json) -> list[tuple[int, int]] | None:
    """The parts up to a checkpoint, the first one first; None where one of them is not where it should be."""
    parts: list[tuple[int, int]] = []
    with path.open("rb") as file:
        while True:
            part: Any = data.get("index")
            if not (
                are_places(part) and isinstance(part, list) and len(part) == 2 and part[0] <= part[1] == at
            ):
                return None
            parts.append((part[0], part[1]))
            file.seek(part[0])
            if part[0] < part[1] and not file.readline().startswith(INDEX):
                return None
            before = data.get("before")
            if before is None:
                return parts[::-1]
            if type(before) is not int or not 0 < before < part[0]:
                return None
            file.seek(before)
            line = file.readline()
            found = next(_object(path, line), None) if line.startswith(CHECKPOINT) else None
            if found is None:
                return None
            at, data = before, found
