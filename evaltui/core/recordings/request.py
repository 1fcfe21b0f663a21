"""What a model is asked, and the key under which its answer is kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from evaltui.core.model.events import Json
from evaltui.core.recordings.volatile import with_numbered_calls, without_today
from evaltui.core.secrets import Secrets


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
    by chance when it was recorded is not today's tomorrow, and asks the same. `masked` is of the request
    without secrets, where it has any: see `fingerprints_without`.
    """

    key: str
    exact: str
    instruction: str
    tools: str
    contents: tuple[str, ...]
    asked: Asked
    masked: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """Those under which an answer may be kept, the surest one first."""
        return tuple(dict.fromkeys(filter(None, (self.key, self.exact, self.masked))))


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


def fingerprints_without(asked: Asked, secrets: Secrets, now: datetime) -> Fingerprints:
    """Fingerprints that keep no secret, and do not depend on which environment one is of.

    What was asked is the request as it was, but for what models and tools have said before: that comes from
    a recording without secrets when it is replayed. Everything else that is kept has none, and neither has
    what `masked` is of: by it a request is known that holds another key than it did, and by old recordings.
    Raises TypeError or ValueError where the request is no JSON data.
    """
    plain = asdict(asked)
    clean = secrets.without(plain)
    kept = fingerprints(Asked(**clean), now)
    if clean is plain:
        return kept
    pairs = zip(asked.contents, clean["contents"], strict=True)
    contents = [new if _is_said(old) else old for old, new in pairs]
    whole = fingerprints(replace(asked, contents=contents), now)
    return replace(kept, key=whole.key, exact=whole.exact, masked=kept.key)


def _is_said(content: Json) -> bool:
    """Whether a content is a model's answer or the result of a tool."""
    parts = content.get("parts") or []
    return content.get("role") == "model" or any("function_response" in part for part in parts)


def call_key(tool: str, args: Json) -> str:
    """Equal for calls of one tool with equal arguments."""
    return f"{tool} {_canonical(args)}"


def _canonical(data: Any) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def _hash(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]
