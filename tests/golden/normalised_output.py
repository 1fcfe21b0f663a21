"""What differs between runs, checkouts and machines, made equal. Nothing else changes outputs of transcripts.

| in the output | in the transcript |
|---|---|
| the folder of the session, the checkout, the Python environment | `/SESSION`, `/CHECKOUT`, `/ENVIRONMENT` |
| ids of runs and matrices, the suffix of their files | `RUN1`, `RUN2`, … in the order of appearance |
| UUIDs, ids of spans and traces, ids of events | `ID1`, …; `SPAN1`, …; `EVENT1`, … |
| times of today | `TIME` |
| durations, with spaces before them and all but two behind them | ` N s`; in JSON, XML, CSV and scores `0` |
| how many percent more time a run took, and that a case took more | none |
| the end of the line that a duration may bring about, in the last line of a run | none |
| the last line of pytest, which its duration makes longer | without `===` |
| name and ports of this machine | `HOST`, `PORT` |
| versions of evaltui, Python and pytest | `VERSION` |
"""

from __future__ import annotations

import platform
import re
import sys
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

# An id of a run or a matrix, perhaps cut, or the name of a run's file.
_RUN = re.compile(r"\b(\d{8}T\d{6}(?:\.\d{3})?Z-[0-9a-f]{2,6})(…|\.(?:jsonl|sqlite)\b)?")
_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_SPAN = re.compile(r'(?<=[iI]d": ")[0-9a-f]{16}(?=")|(?<=")[0-9a-f]{32}(?=")')
_EVENT = re.compile(r'(?<=\\"id\\": \\")[0-9a-f]{12}(?=\\")')
_CLOCK = r"[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?"
_NAMES_OF_DURATIONS = r"\w*seconds\w*|throttled|\w*duration|t|time|\w*timestamp"
_DURATIONS = ("invocation_duration_v1", "seconds")
_REPLACEMENTS = [
    (re.compile(pattern, re.MULTILINE), replacement)
    for pattern, replacement in (
        (r'(?<=UnixNano": ")\d{19}(?=")', "TIME"),
        # Of the place of an agent, in the folder of its runs.
        (r"(?<=results/)(parrot|coin)-[0-9a-f]{12}(?=/)", r"\1-PLACE"),
        # In names of result files of google-adk.
        (r"(?<=[_-])1\d{9}\.\d+", "TIME"),
        # The last line of a session of pytest, before other durations.
        (r"^(?:=+ )?(.* in )\d+\.\d\ds(?: \(.*\))?(?: =+)?$", r"\1N s"),
        (r" *(?:(?:<|&lt;) ?)?\b\d+(?:\.\d+)? (?:s|ms|min)\b(?! per)", " N s"),
        (r"(?<= N s) {3,}", "  "),
        (r" N s\nlog ", " N s · log "),
        (r"( N s → N s) \([+−]?\d+%\)", r"\1"),
        (r"; N s → N s$", ""),
        (rf'(\\*"(?:{_NAMES_OF_DURATIONS})\\*": ?)\d+(?:\.\d+)?(?:e-\d+)?', r"\g<1>0"),
        (r' time="\d+\.\d+"', ' time="0"'),
        (r"invocation_duration_v1\s+\d+(?:\.\d+)?", "invocation_duration_v1 0"),
        (r'(invocation_duration_v1"\}\},\s*\{[^{]*\{"doubleValue": )[\d.]+', r"\g<1>0"),
        (r'("name": "invocation_duration_v1"[^}]*"score": )[\d.]+', r"\g<1>0"),
        (r'(name="invocation_duration_v1" value=")[\d.]+', r"\g<1>0"),
        (r"(,invocation_duration_v1,[^,]*,)[\d.]+(,.*,)[\d.]+(,INFORMATIONAL,)", r"\g<1>0\g<2>0\3"),
        # A row of a matrix: status, runs, passed runs, score, seconds.
        (r"(,[A-Z_]+,\d+,\d+,[\d.]*,)[\d.]+(?=,)", r"\g<1>0"),
        (r'(?<=hostname=")[^"]*', "HOST"),
        (r"(127\.0\.0\.1|localhost|\[::1\]):\d{4,5}\b", r"\1:PORT"),
        *(
            (rf"(?<![\d.]){re.escape(number)}(?![\d.])", "VERSION")
            for number in (platform.python_version(), pytest.__version__, version("evaltui"))
        ),
    )
]


class Normaliser:
    """Normalises the outputs of one transcript, in which the same id has the same number everywhere."""

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
        text = _RUN.sub(self._run, text)
        text = _UUID.sub(lambda match: self._number("ID", match[0]), text)
        text = _SPAN.sub(lambda match: self._number("SPAN", match[0]), text)
        text = _EVENT.sub(lambda match: self._number("EVENT", match[0]), text)
        now = datetime.now(UTC)
        for day in {f"{now + timedelta(days=days):%Y-%m-%d}" for days in (-1, 0, 1)}:
            text = re.sub(re.escape(day) + _CLOCK, "TIME", text)
            text = text.replace(f'"recorded": "{day}"', '"recorded": "DAY"')
        for pattern, replacement in _REPLACEMENTS:
            text = pattern.sub(replacement, text)
        return text

    def _run(self, match: re.Match[str]) -> str:
        cut = match[2] == "…"
        runs = self._numbers.get("RUN", {})
        whole = next((run for run in runs if cut and run.startswith(match[1])), match[1])
        return self._number("RUN", whole) + "…" * cut

    def _number(self, kind: str, text: str) -> str:
        numbers = self._numbers.setdefault(kind, {})
        return f"{kind}{numbers.setdefault(text, len(numbers) + 1)}"


def without_durations(value: Any, inside: bool = False) -> Any:
    """Parsed JSON, in which durations are 0; `inside` of what is one, every fraction is."""
    if isinstance(value, list):
        return [without_durations(item, inside) for item in value]
    if isinstance(value, dict):
        inside = inside or any(value.get(key) in _DURATIONS for key in ("name", "metric_name"))
        return {name: without_durations(item, inside or name in _DURATIONS) for name, item in value.items()}
    return 0 if inside and isinstance(value, float) else value
