"""What is different in every run and means nothing: the one place where requests are made comparable.

Call ids become numbers, today's date and the time after it become `<today>`. A date that is not today's is
part of the question: whoever changes it asks something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime
from functools import lru_cache

from evaltui.core.model.events import Json

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
