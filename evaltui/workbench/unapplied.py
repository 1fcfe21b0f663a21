"""Texts that were typed into fields and could not become what a case says: kept until they can, or are left.

They go with what they were typed for, wherever it is moved to and whatever its case is called by then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evaltui.core.jsondoc.edit_error import EditError
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.problems import JsonPath


@dataclass(frozen=True)
class Unapplied:
    """`at` is the place in the data of the set `path`, which is as in `CaseId`; `part` tells apart what is
    typed at one place.

    `data` is the set as it was when the place was last looked for; `at` is a place in it. `is_gone` while the
    set has no such place: it comes back when that is undone.
    """

    path: str
    at: JsonPath
    part: str
    text: str
    problem: str
    data: Any
    is_gone: bool = False

    def followed_to(self, data: Any) -> Unapplied:
        if data is self.data:
            return self
        from evaltui.core.jsondoc.splices import followed

        at = followed(self.data, data, self.at)
        if at is None:
            return replace(self, is_gone=True)
        return replace(self, at=at, data=data, is_gone=False)

    @property
    def case(self) -> CaseId | None:
        """The case that it belongs to."""
        from evaltui.core.editing.set import CaseEditor

        number = next((step for step in self.at if isinstance(step, int)), None)
        try:
            return None if number is None else CaseId(self.path, CaseEditor(self.data, number).eval_id)
        except EditError:
            return None

    def __str__(self) -> str:
        return f"{' '.join(self.text.split())[:60]} ({self.problem or 'apply it in the case'})"


class UnappliedTexts:
    """`data` gives the parsed JSON of a set as it is now, None where it is not open."""

    def __init__(self, data: Callable[[str], Any]) -> None:
        self._data = data
        self._texts: list[Unapplied] = []

    def follow(self, moved: Mapping[CaseId, CaseId] | None = None) -> None:
        """After every change of a set; `moved` are cases that are called otherwise now."""
        for number, one in enumerate(self._texts):
            case = one.case if moved else None
            to = moved.get(case) if moved and case else None
            if to is not None and to.path != one.path:
                self._texts[number] = self._in_other_set(one, to)
            elif (data := self._data(one.path)) is not None:
                self._texts[number] = one.followed_to(data)

    def _in_other_set(self, one: Unapplied, to: CaseId) -> Unapplied:
        from evaltui.core.editing.json_paths import cases_path, eval_ids

        data = self._data(to.path)
        ids = eval_ids(data)
        if to.eval_id not in ids:
            return replace(one, is_gone=True)
        at = (*cases_path(data), ids.index(to.eval_id), *one.at[2:])
        return replace(one, path=to.path, at=at, data=data, is_gone=False)

    def now(self) -> list[Unapplied]:
        """Those whose place is there, the oldest first."""
        self.follow()
        return [one for one in self._texts if not one.is_gone]

    def at(self, path: str, at: JsonPath, part: str) -> Unapplied | None:
        return next((one for one in self.now() if (one.path, one.at, one.part) == (path, at, part)), None)

    def keep(self, path: str, at: JsonPath, part: str, text: str, problem: str) -> None:
        self.drop(path, at, part)
        self._texts.append(Unapplied(path, at, part, text, problem, self._data(path)))

    def drop(self, path: str, at: JsonPath, part: str) -> None:
        known = self.at(path, at, part)
        self._texts = [one for one in self._texts if one is not known]

    def clear(self) -> None:
        self._texts.clear()
