"""Shards: parts of a selection for several machines, each of which computes its part alone.

Recorded durations of cases balance the parts.
"""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaltui.core.model.case_id import CaseId, case_text, fingerprint
from evaltui.core.model.json_values import is_number
from evaltui.core.model.stored_cases import StoredCases
from evaltui.documents.files import write_atomically
from evaltui.runner.plan import SetPlan
from evaltui.text.values import value_in_words

_HASH = "hash"


@dataclass(frozen=True)
class Shard:
    """A shard: one of several equal parts of a selection."""

    number: int
    """From 1."""
    count: int
    """Number of shards."""

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


@dataclass(frozen=True)
class DividedSet:
    """The selection of an eval set before it was divided."""

    eval_set_id: str
    eval_ids: tuple[str, ...]
    """Ids of the cases of all shards, in order."""
    fingerprint: str
    """Fingerprint of the text of these cases."""
    whole: bool = False
    """Whether these are all cases of the set."""


@dataclass(frozen=True)
class ShardsOfRun:
    """The shards that a run log contains."""

    numbers: tuple[int, ...]
    """Numbers of the shards, from 1, sorted: one, or several after merging."""
    count: int
    """Number of all shards."""
    divided_by: str
    """`hash`, or the fingerprint of the known durations."""
    sets: Mapping[str, DividedSet]
    """The selection by path of `CaseId`, in order."""

    def __post_init__(self) -> None:
        if not self.numbers or not all(1 <= number <= self.count for number in self.numbers):
            raise ValueError(f"shards of {self.count} are {value_in_words(list(self.numbers))}")

    @property
    def case_count(self) -> int:
        """Number of cases in all shards."""
        return sum(len(divided.eval_ids) for divided in self.sets.values())

    @property
    def missing(self) -> tuple[int, ...]:
        return tuple(number for number in range(1, self.count + 1) if number not in self.numbers)


def divide(
    plans: Sequence[SetPlan], shard: Shard, runs: int | None, seconds: Mapping[CaseId, float]
) -> tuple[list[SetPlan], ShardsOfRun]:
    """The cases of one shard by set, in order, and the division.

    `seconds` are known durations of a run of each case. All repeats of a case are in one shard, which depends
    only on the arguments.
    """
    weights = {case: runs or plan.config.evaltui.repeats.runs for plan in plans for case in plan.case_ids}
    durations = {case: seconds[case] for case in weights if case in seconds}
    shard_of = (
        _divide_by_duration(weights, durations, shard.count)
        if durations
        else _divide_by_hash(weights, shard.count)
    )
    mine = [
        plan.only([case.eval_id for case in plan.case_ids if shard_of[case] == shard.number])
        for plan in plans
    ]
    by = fingerprint(repr(sorted(durations.items()))) if durations else _HASH
    sets = {plan.case_path: _divided_set(plan) for plan in plans}
    return mine, ShardsOfRun((shard.number,), shard.count, by, sets)


def _divide_by_hash(cases: Mapping[CaseId, int], count: int) -> dict[CaseId, int]:
    """Assigns cases to shards by hash, so that a new case does not move the others."""
    names = {case: f"{case.path}\0{case.eval_id}".encode(errors="backslashreplace") for case in cases}
    return {case: 1 + int(hashlib.sha256(name).hexdigest(), 16) % count for case, name in names.items()}


def _divide_by_duration(
    runs: Mapping[CaseId, int], seconds: Mapping[CaseId, float], count: int
) -> dict[CaseId, int]:
    """Assigns cases to shards, the longest first, each to the shard with the least total time."""
    # A case that nobody has timed takes as long as any.
    usual = sorted(seconds.values())[len(seconds) // 2]
    took = {case: seconds.get(case, usual) * number for case, number in runs.items()}
    shards = [(0.0, number) for number in range(1, count + 1)]
    shard_of: dict[CaseId, int] = {}
    for case in sorted(took, key=lambda case: (-took[case], case)):
        load, number = heapq.heappop(shards)
        shard_of[case] = number
        heapq.heappush(shards, (load + took[case], number))
    return shard_of


def _divided_set(plan: SetPlan) -> DividedSet:
    cases = plan.cases
    # Making models of thousands of cases would take longer than running some of them.
    texts = (case.text for case in cases.stored) if isinstance(cases, StoredCases) else map(case_text, cases)
    return DividedSet(plan.eval_set_id, plan.eval_ids, fingerprint("\0".join(texts)), plan.whole)


class DurationsError(ValueError):
    """Why a file of durations is invalid, as a sentence."""


def read_durations(path: Path) -> dict[CaseId, float]:
    """Reads the seconds of a run of each case. Raises FileNotFoundError, OSError, DurationsError."""
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DurationsError(f"{path} is not JSON: {error}") from error
    durations: dict[CaseId, float] = {}
    for case_path, cases in _members(path, data):
        for eval_id, seconds in _members(path, cases, case_path):
            if not is_number(seconds) or not 0 <= seconds < 1e9:
                place = f"{case_path}: {eval_id}"
                raise DurationsError(f"{path}: {place} is {value_in_words(seconds)}, not a number of seconds")
            durations[CaseId(case_path, eval_id)] = float(seconds)
    return durations


def _members(path: Path, data: Any, place: str = "") -> list[tuple[str, Any]]:
    if not isinstance(data, dict):
        at = f": {place}" if place else ""
        raise DurationsError(f"{path}{at} is {value_in_words(data)}, not an object of durations")
    return list(data.items())


def store_durations(path: Path, seconds: Mapping[CaseId, float]) -> None:
    """Updates a file of durations and keeps its other cases. Raises OSError, DurationsError."""
    try:
        durations = read_durations(path)
    except FileNotFoundError:
        durations = {}
    by_path: dict[str, dict[str, float]] = {}
    for case, took in sorted((durations | dict(seconds)).items()):
        by_path.setdefault(case.path, {})[case.eval_id] = round(took, 3)
    write_atomically(path, json.dumps(by_path, indent=2, ensure_ascii=False) + "\n")
