"""What differs between runs, checkouts and machines, made equal. Nothing else changes outputs of transcripts.

| in the output | in the transcript |
|---|---|
| the folder of the session, the checkout, the Python environment | `/SESSION`, `/CHECKOUT`, `/ENVIRONMENT` |
| ids of runs and matrices, the suffix of their files | `RUN1`, `RUN2`, … in the order of appearance |
| times of today | `TIME` |
| durations, with the spaces before them | ` N s`; in JSON, XML and CSV `0` |
| other ids that are drawn: UUIDs, ids of spans and sessions | `ID1`, … in the order of appearance |
| ports of this machine | `PORT` |
| versions of evaltui, Python and pytest | `VERSION` |
"""

from __future__ import annotations

import json
import platform
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

_RUN = re.compile(r"\b\d{8}T\d{6}\.\d{3}Z-[0-9a-f]{6}(?:\.(?:jsonl|sqlite)\b)?")
_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_CLOCK = r"[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?"
_DURATION = re.compile(r" *(?:< )?\b\d+(?:\.\d+)? (?:s|ms|min)\b(?! per)")
_JSON_DURATION = re.compile(
    r'("(?:\w*seconds\w*|throttled|duration|time|creation_timestamp)": )\d+(?:\.\d+)?(?:e-\d+)?'
)
_XML_DURATION = re.compile(r' time="\d+\.\d+"')
_DURATION_SCORE = re.compile(r"(invocation_duration_v1 )\d+(?:\.\d+)?")
_DURATION_ROW = re.compile(r"(,invocation_duration_v1,[^,]*,)[\d.]+(,.*,)[\d.]+(,INFORMATIONAL,)")
_TIMES_COMPARED = re.compile(r"( N s → N s \()[+−]?\d+%")
_DURATIONS = ("invocation_duration_v1", "seconds")
_PORT = re.compile(r"(127\.0\.0\.1|localhost|\[::1\]):\d{4,5}\b")


class Normaliser:
    """Of one transcript: the same id has the same number in all of it."""

    def __init__(self, folder: Path, checkout: Path) -> None:
        self._folders = (
            (str(folder), "/SESSION"),
            (str(folder.resolve()), "/SESSION"),
            (sys.prefix, "/ENVIRONMENT"),
            (str(checkout), "/CHECKOUT"),
        )
        self._numbers: dict[str, dict[str, int]] = {}

    def __call__(self, text: str) -> str:
        for path, name in self._folders:
            text = text.replace(path, name)
        text = _RUN.sub(self._numbered("RUN", lambda found: found.partition(".jsonl")[0]), text)
        text = _UUID.sub(self._numbered("ID", str), text)
        now = datetime.now(UTC)
        for day in {f"{now + timedelta(days=days):%Y-%m-%d}" for days in (-1, 0, 1)}:
            text = re.sub(re.escape(day) + _CLOCK, "TIME", text)
        text = _DURATION.sub(" N s", text)
        text = _JSON_DURATION.sub(r"\g<1>0", text)
        text = _XML_DURATION.sub(' time="0"', text)
        text = _DURATION_SCORE.sub(r"\g<1>0", text)
        text = _DURATION_ROW.sub(r"\g<1>0\g<2>0\g<3>", text)
        text = _TIMES_COMPARED.sub(r"\g<1>N%", text)
        text = text.replace(" N s\nlog ", " N s · log ")
        text = _PORT.sub(r"\g<1>:PORT", text)
        for number in (platform.python_version(), pytest.__version__, version("evaltui")):
            text = re.sub(rf"(?<![\d.]){re.escape(number)}(?![\d.])", "VERSION", text)
        return text

    def _numbered(self, kind: str, same: Callable[[str], str]) -> Callable[[re.Match[str]], str]:
        numbers = self._numbers.setdefault(kind, {})
        return lambda found: f"{kind}{numbers.setdefault(same(found[0]), len(numbers) + 1)}"


def without_durations(value: Any) -> Any:
    """Parsed JSON, in which metrics that are durations have 0 for each number."""
    if isinstance(value, list):
        return [without_durations(item) for item in value]
    if isinstance(value, dict):
        if value.get("name") in _DURATIONS:
            return json.loads(re.sub(r"\b\d+\.\d+\b", "0", json.dumps(value)))
        return {
            name: 0 if name in _DURATIONS and isinstance(item, float) else without_durations(item)
            for name, item in value.items()
        }
    return value
