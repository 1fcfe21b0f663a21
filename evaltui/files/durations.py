"""Recorded durations of cases: a file in the project by which shards are balanced."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaltui.core.model.case_id import CaseId
from evaltui.documents.files import write_atomically
from evaltui.text.values import in_words


class DurationsError(ValueError):
    """A file of durations with other content, as a sentence."""


def read_durations(path: Path) -> dict[CaseId, float]:
    """Seconds per run of a case. Raises FileNotFoundError, OSError, DurationsError."""
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DurationsError(f"{path} is not JSON: {error}") from error
    durations: dict[CaseId, float] = {}
    for case_path, cases in _members(path, data):
        for eval_id, seconds in _members(path, cases, case_path):
            if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < 1e9:
                place = f"{case_path}: {eval_id}"
                raise DurationsError(f"{path}: {place} is {in_words(seconds)}, not a number of seconds")
            durations[CaseId(case_path, eval_id)] = float(seconds)
    return durations


def _members(path: Path, data: Any, place: str = "") -> list[tuple[str, Any]]:
    if not isinstance(data, dict):
        at = f": {place}" if place else ""
        raise DurationsError(f"{path}{at} is {in_words(data)}, not an object of durations")
    return list(data.items())


def store_durations(path: Path, seconds: Mapping[CaseId, float]) -> None:
    """Updates a file of durations; other cases in it stay. Raises OSError, DurationsError."""
    try:
        durations = read_durations(path)
    except FileNotFoundError:
        durations = {}
    by_path: dict[str, dict[str, float]] = {}
    for case, took in sorted((durations | dict(seconds)).items()):
        by_path.setdefault(case.path, {})[case.eval_id] = round(took, 3)
    write_atomically(path, json.dumps(by_path, indent=2, ensure_ascii=False) + "\n")
