"""Which cases are marked, and which are to be pasted elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from evaltui.core.editing.set import SetEditor
from evaltui.core.model.case_id import CaseId
from evaltui.files.workspace import SetEntry


@dataclass(frozen=True)
class CaseClipboard:
    """Cases that were copied, or are to be moved once they are pasted (`cut`).

    `sources` are their sets and configs as they were then: what is copied can be pasted even when it has
    been changed or deleted since.
    """

    keys: tuple[CaseId, ...]
    cut: bool
    sources: Mapping[Path, SetEditor]

    @cached_property
    def members(self) -> frozenset[CaseId]:
        """The cases, to be looked up for every line that is drawn."""
        return frozenset(self.keys)


class Marking:
    """What the user has picked out of the list of cases, in the order of picking."""

    def __init__(self) -> None:
        self._marked: dict[CaseId, None] = {}
        self.clipboard: CaseClipboard | None = None

    def __contains__(self, key: CaseId) -> bool:
        return key in self._marked

    def __len__(self) -> int:
        return len(self._marked)

    @property
    def marked(self) -> Collection[CaseId]:
        return self._marked.keys()

    def toggle(self, keys: Collection[CaseId]) -> None:
        """Mark cases; where all of them are marked, no longer."""
        if all(key in self._marked for key in keys):
            self._marked = {key: None for key in self._marked if key not in keys}
        else:
            self._marked.update(dict.fromkeys(keys))

    def clear(self) -> None:
        self._marked.clear()

    def keep_only_in(self, sets: Iterable[SetEntry]) -> None:
        """Forget cases that are gone."""
        paths = {key.path for key in self._marked}
        ids = {
            entry.case_path: {case.eval_id for case in entry.cases}
            for entry in sets
            if entry.case_path in paths
        }
        self._marked = {key: None for key in self._marked if key.eval_id in ids.get(key.path, ())}

    def is_cut(self, key: CaseId) -> bool:
        """Whether a case is to be moved with the next paste."""
        return self.clipboard is not None and self.clipboard.cut and key in self.clipboard.members
