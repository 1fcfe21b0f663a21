"""What parent and host say to each other: JSON, one object per line, over a socket of their own.

Parent to host: `load` {agent_dir, agent_name, t0}, `run` {id, session, turns}, `metric` {id, path, metric,
actual, expected}, `cancel` {id}, `close`.
Host to parent: `loaded` {info}, `broken` {error}, `event` {id, event}, `done` {id, state} or {id, result},
`failed` {id, error}, `fatal` {error}.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

VERSION = 1

Message = dict[str, Any]


def encode(message: Message) -> bytes:
    """One line. Numbers that JSON does not have are sent as text; TypeError for what is no JSON data."""
    try:
        text = json.dumps(message, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_finite(message), allow_nan=False, separators=(",", ":"))
    return text.encode("ascii") + b"\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


class LineBuffer:
    """Puts chunks of a stream together to messages of any length."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> Iterator[Message]:
        *lines, rest = chunk.split(b"\n")
        if not lines:
            self._rest += rest
            return
        lines[0] = self._rest + lines[0]
        self._rest = rest
        for line in lines:
            yield json.loads(line)
