"""What a model is asked, and the key under which its answer is kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from evaltui.core.events import Json
from evaltui.core.recordings.volatile import with_numbered_calls, without_today


@dataclass(frozen=True)
class Asked:
    """A request to a model, everything as JSON. `config` is what else the answer depends on."""

    model: str
    contents: Sequence[Json]
    instruction: Any = ""
    tools: Sequence[Json] = ()
    config: Json = field(default_factory=dict)


@dataclass(frozen=True)
class Fingerprints:
    """Short texts that are equal where requests are. `asked` is the request that they are of, without what is
    volatile.

    `key` is of the whole of it. `exact` is of the request with its dates as they were: one that was today's
    by chance when it was recorded is not today's tomorrow, and asks the same.
    """

    key: str
    exact: str
    instruction: str
    tools: str
    contents: tuple[str, ...]
    asked: Asked


def fingerprints(asked: Asked, now: datetime) -> Fingerprints:
    """Raises TypeError or ValueError where the request is no JSON data."""
    data: Json = {
        "model": asked.model,
        "instruction": asked.instruction or "",
        # In which order tools are declared means nothing, and differs where they come from elsewhere.
        "tools": sorted(asked.tools, key=_canonical),
        "config": asked.config,
        "contents": with_numbered_calls(asked.contents),
    }
    exact = _canonical(data)
    plain = without_today(exact, now)
    if plain != exact:
        data = json.loads(plain)
    return Fingerprints(
        key=_hash(plain, 16),
        exact=_hash(exact, 16),
        instruction=_hash(_canonical(data["instruction"]), 8),
        tools=_hash(_canonical(data["tools"]), 8),
        contents=tuple(_hash(_canonical(content), 8) for content in data["contents"]),
        asked=Asked(**data),
    )


def call_key(tool: str, args: Json) -> str:
    """Equal for calls of one tool with equal arguments."""
    return f"{tool} {_canonical(args)}"


def _canonical(data: Any) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def _hash(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]
