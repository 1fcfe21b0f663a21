"""What the cases of a run come to, set by set, added up while they come: results of many are not kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evaltui.core.model.spending import RunningTotal, Spending


@dataclass(frozen=True)
class SetTotal:
    """What the cases of a set come to."""

    seconds: float = 0.0
    """Of all runs of its cases."""
    spent: Spending | None = None
    """None where nobody knows."""


class RunningTotals:
    """What cases come to, added up one after the other."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._spent: dict[str, RunningTotal] = {}

    def add(self, path: str, seconds: float, spent: Spending | None) -> None:
        """A case of this file."""
        self._seconds[path] = self._seconds.get(path, 0.0) + seconds
        self._spent.setdefault(path, RunningTotal()).add(spent)

    @property
    def of_sets(self) -> Mapping[str, SetTotal]:
        """By the file of the cases."""
        return {path: SetTotal(seconds, self._spent[path].value) for path, seconds in self._seconds.items()}
