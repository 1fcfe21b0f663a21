"""What a model is asked, without what is different in every run, and the key under which its answer is kept.

Call ids become numbers, today's date and the time after it become `<today>`. A date that is not today's is
part of the question: whoever changes it asks something else.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any

from evaltui.core.model.events import Json
from evaltui.core.secrets import Secrets

# Parts of a request's config that say how it is sent, not what is asked. Headers, and with them keys, are in
# there too: nobody may look.
UNASKED_CONFIG = frozenset({"http_options", "labels"})
# What a model wants back as it was, and what no two answers share.
_OPAQUE = ("thought_signature",)
_CALLS = ("function_call", "function_response")

_CLOCK = (
    r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[AaPp](?:[Mm]\b|\.[Mm]\.))?(?: ?UTC| ?GMT|Z|[+-]\d\d:?\d\d)?"
)
_DATES = (
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%Y%m%d",
    "%d.%m.%Y",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%B {day}, %Y",
    "%b {day}, %Y",
    "{day} %B %Y",
    "{day} %b %Y",
    "{day}. %B %Y",
)


def with_numbered_calls(contents: Iterable[Json]) -> list[Json]:
    """Contents (as JSON) with call ids numbered in order of appearance, and without signatures."""
    numbers: dict[str, str] = {}
    return [
        {**content, "parts": [_plain_part(part, numbers) for part in content.get("parts") or []]}
        for content in contents
    ]


def _plain_part(part: Json, numbers: dict[str, str]) -> Json:
    plain = {name: value for name, value in part.items() if name not in _OPAQUE}
    for name in _CALLS:
        call = plain.get(name)
        if isinstance(call, dict) and call.get("id"):
            plain[name] = {**call, "id": numbers.setdefault(call["id"], str(len(numbers) + 1))}
    return plain


def without_today(text: str, now: datetime) -> str:
    """The text with `<today>` for today's date, here or in UTC, in the usual spellings, a time included.

    `now` is aware of its time zone.
    """
    return _today(now.date(), now.astimezone(UTC).date()).sub("<today>", text)


@lru_cache(maxsize=4)
def _today(*days: date) -> re.Pattern[str]:
    return re.compile("|".join(_pattern(day) for day in sorted(set(days))))


def _pattern(day: date) -> str:
    # In the language that the agent's own strftime uses, which runs in the same process.
    weekday = f"(?:{re.escape(day.strftime('%A'))}|{re.escape(day.strftime('%a'))})"
    numbers = dict.fromkeys((f"{day.day:02}", str(day.day)))
    dates = dict.fromkeys(
        re.escape(day.strftime(form.format(day=number))) for form in _DATES for number in numbers
    )
    # As `ctime` and `date` have it.
    dates[rf"{re.escape(day.strftime('%b'))} +{day.day} {_CLOCK}(?: [A-Z]{{3,4}})? {day.year}"] = None
    return rf"(?:{weekday},? )?(?<!\d)(?:{'|'.join(dates)})(?!\d)(?:(?:T|,? (?:at )?){_CLOCK})?"


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
