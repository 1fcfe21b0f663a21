"""Which cases a filter keeps: words in their id and first text, and how they came out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evaltui.files.workspace import SetEntry
from evaltui.workbench.state import CaseKey

# What may be typed for an outcome. Such a word is not looked for in texts.
_STATUSES = {
    "pass": "PASSED",
    "passed": "PASSED",
    "fail": "FAILED",
    "failed": "FAILED",
    "error": "ERROR",
    "flaky": "FLAKY",
}


@dataclass(frozen=True)
class Filter:
    """Every word must be found; of the statuses, one must be the case's. An empty filter keeps all."""

    words: tuple[str, ...] = ()
    statuses: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str) -> Filter:
        words = text.casefold().split()
        return cls(
            tuple(word for word in words if word not in _STATUSES),
            frozenset(_STATUSES[word] for word in words if word in _STATUSES),
        )

    def __bool__(self) -> bool:
        return bool(self.words or self.statuses)


class Filtered:
    """The cases that the filter keeps, as `{set: [numbers of its cases, from 0]}` in `kept`."""

    def __init__(self) -> None:
        self.text = ""
        self.filter = Filter()
        self.kept: dict[Path, list[int]] = {}
        self._sets: Sequence[SetEntry] = ()
        self._texts: list[list[str]] = []

    @property
    def count(self) -> int:
        return sum(len(numbers) for numbers in self.kept.values())

    def update(
        self,
        text: str,
        sets: Sequence[SetEntry],
        status: Callable[[CaseKey], str],
        also: CaseKey | None = None,
    ) -> None:
        """Filter anew: the text, the sets or the outcomes may have changed. `also` is kept whatever it is."""
        self.text = text
        self.filter = Filter.parse(text)
        if sets is not self._sets:
            self._sets = sets
            self._texts = [
                [f"{case.eval_id}\n{case.first_text}".casefold() for case in entry.cases] for entry in sets
            ]
        self.kept = {}
        if self.filter:
            for entry, texts in zip(sets, self._texts, strict=True):
                if numbers := self._keep(entry, texts, status, also):
                    self.kept[entry.path] = numbers

    def _keep(
        self, entry: SetEntry, texts: list[str], status: Callable[[CaseKey], str], also: CaseKey | None
    ) -> list[int]:
        words, statuses = self.filter.words, self.filter.statuses
        kept = []
        for number, text in enumerate(texts):
            if all(word in text for word in words):
                key = CaseKey(entry.path, entry.cases[number].eval_id)
                if not statuses or status(key) in statuses or key == also:
                    kept.append(number)
        return kept
