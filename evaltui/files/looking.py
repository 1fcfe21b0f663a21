"""What files hold, read again only where they were written."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Generic, TypeVar

# What is larger is told by its size and time.
_LARGE = 1_000_000
# Nanoseconds. Clocks of file systems stand still for some milliseconds: what was written just now may be
# written again and look the same.
_JUST_NOW = 100_000_000

_Stamp = tuple[int, int, int, int]
_Name = TypeVar("_Name", bound=Hashable)


class Looks(Generic[_Name]):
    """Looks at the same files again and again."""

    def __init__(self) -> None:
        self._known: dict[_Name, tuple[_Stamp | None, str]] = {}

    def look(self, files: Iterable[tuple[_Name, Path]]) -> dict[_Name, str]:
        """What is in the files now, by name: equal where it is the same. What cannot be read is left out."""
        seen: dict[_Name, tuple[_Stamp | None, str]] = {}
        for name, path in files:
            try:
                stat = path.stat()
                stamp = stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino
                stamp_before, content = self._known.get(name, (None, ""))
                if stamp_before != stamp:
                    content = _digest(path, stamp)
            except OSError:
                # It is being replaced, or nobody may read it.
                continue
            settled = time.time_ns() - max(stamp[:2]) > _JUST_NOW
            seen[name] = stamp if settled else None, content
        self._known = seen
        return {name: content for name, (_, content) in seen.items()}


def _digest(path: Path, stamp: _Stamp) -> str:
    if stamp[2] > _LARGE:
        return f"{stamp}"
    return hashlib.sha256(path.read_bytes()).hexdigest()
