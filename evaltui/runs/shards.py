"""Shards: the parts of a selection that several machines run, each of which knows its part by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evaltui.core.model.json_values import member
from evaltui.text.values import in_words

Json = dict[str, Any]


@dataclass(frozen=True)
class DividedSet:
    """What was selected of an eval set before it was divided."""

    cases: int
    """How many, in all shards."""
    fingerprint: str
    """Of these cases, with all that they say."""
    whole: bool = False
    """Whether these are all cases of the set."""

    def to_json(self) -> Json:
        data: Json = {"cases": self.cases, "fingerprint": self.fingerprint}
        return data | ({"whole": True} if self.whole else {})


@dataclass(frozen=True)
class ShardsOfRun:
    """Which shards of a selection a run log holds."""

    numbers: tuple[int, ...]
    """From 1, sorted: one, or those that were merged."""
    count: int
    """How many there are."""
    divided_by: str
    """`hash`, or a fingerprint of the durations."""
    sets: Mapping[str, DividedSet]
    """The selection by path of `CaseId`, in its order."""

    @property
    def missing(self) -> tuple[int, ...]:
        return tuple(number for number in range(1, self.count + 1) if number not in self.numbers)

    def to_json(self) -> Json:
        sets = {path: one.to_json() for path, one in self.sets.items()}
        numbers = list(self.numbers)
        return {"numbers": numbers, "count": self.count, "divided_by": self.divided_by, "sets": sets}

    @classmethod
    def from_json(cls, data: Json) -> ShardsOfRun:
        """Raises ValueError."""
        numbers, count = member(data, "numbers", list), member(data, "count", int)
        if not numbers or not all(type(one) is int and 1 <= one <= count for one in numbers):
            raise ValueError(f"shards of {count} are {in_words(numbers)}")
        sets = member(data, "sets", dict)
        return cls(
            tuple(sorted(numbers)),
            count,
            member(data, "divided_by", str),
            {path: _divided_set(member(sets, path, dict)) for path in sets},
        )


def _divided_set(data: Json) -> DividedSet:
    return DividedSet(
        member(data, "cases", int), member(data, "fingerprint", str), member(data, "whole", bool, False)
    )
