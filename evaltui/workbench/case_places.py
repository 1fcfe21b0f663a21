"""Where the cases that runs name are now, among the eval sets that there are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evaltui.core.model.case_id import CaseId
from evaltui.files.case_paths import case_path
from evaltui.files.set_entry import SetEntry
from evaltui.workbench.state import CaseKey


class CasePlaces:
    """Made for the sets as they are now: not kept."""

    def __init__(self, agent_dir: Path, sets: Sequence[SetEntry]) -> None:
        self._files: dict[str, list[tuple[str, Path]]] = {}
        self._keys: dict[CaseId, CaseKey] = {}
        for entry in sets:
            path = case_path(agent_dir, entry.path)
            self._files.setdefault(entry.eval_set_id, []).append((path, entry.path))
            for case in entry.cases:
                self._keys[CaseId(path, case.eval_id)] = CaseKey(entry.path, case.eval_id)

    def find(self, case: CaseId, eval_set_id: str, *, by_label: bool = False) -> CaseKey | None:
        """The case now; None where it is not any more.

        Of a run that knows set ids only (`by_label`), a set that several files may be is none of them.
        """
        if by_label:
            files = self._files.get(eval_set_id, [])
            if len(files) != 1:
                return None
            if case.path == eval_set_id:
                case = CaseId(files[0][0], case.eval_id)
        return self._keys.get(case)

    def shares_label(self, eval_set_id: str) -> bool:
        """Whether several files have this set id."""
        return len(self._files.get(eval_set_id, [])) > 1
