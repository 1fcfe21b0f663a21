"""Texts that were typed into fields and could not become what a case says: kept until they can, or are left.

They go with what they were typed for, wherever it is moved to and whatever its case is called by then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evaltui.core.jsondoc.edit_error import EditError
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.problems import JsonPath

if TYPE_CHECKING:
    from evaltui.files.journal import Draft


# Of `("eval_cases", 0, "conversation", 0)`.
_STEPS_TO_TURN = 4
# Characters of a text from which its first words are shown.
_SHOWN = 500


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
    base: str
    """What was there when it was typed."""
    data: Any
    is_gone: bool = False

    def followed_to(self, data: Any) -> Unapplied:
        if data is self.data:
            return self
        from evaltui.core.jsondoc.splices import followed

        at = followed(self.data, data, self.at)
        if at is None:
            return self if self.is_gone else replace(self, is_gone=True)
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
        return f"{' '.join(self.text[:_SHOWN].split())[:60]} ({self.problem or 'apply it in the case'})"


class UnappliedTexts:
    """`data` gives the parsed JSON of a set as it is now, None where it is not open. `changed` is called when
    there are other texts, or they are elsewhere."""

    def __init__(self, data: Callable[[str], Any], changed: Callable[[], None]) -> None:
        self._data = data
        self._changed = changed
        self._texts: list[Unapplied] = []

    def follow(self, moved: Mapping[CaseId, CaseId] | None = None) -> None:
        """After every change of a set; `moved` are cases that are called otherwise now."""
        before = tuple(self._texts)
        for number, one in enumerate(self._texts):
            case = one.case if moved else None
            to = moved.get(case) if moved and case else None
            if to is not None and to.path != one.path:
                self._texts[number] = self._in_other_set(one, to)
            elif (data := self._data(one.path)) is not None:
                self._texts[number] = one.followed_to(data)
        if any(one is not now for one, now in zip(before, self._texts, strict=True)):
            self._changed()

    def _in_other_set(self, one: Unapplied, to: CaseId) -> Unapplied:
        at = self._place_in(to, one.at)
        if at is None:
            return replace(one, is_gone=True)
        return replace(one, path=to.path, at=at, data=self._data(to.path), is_gone=False)

    def _place_in(self, case: CaseId, at: JsonPath) -> JsonPath | None:
        """A place of a case as a place of another one; None where that case, or its turn, is gone."""
        from evaltui.core.editing.json_paths import cases_path, eval_ids

        data = self._data(case.path)
        ids = eval_ids(data)
        if case.eval_id not in ids:
            return None
        place = (*cases_path(data), ids.index(case.eval_id), *at[2:])
        for step in place[:_STEPS_TO_TURN]:
            # Further in, what is missing may be what the text is to become.
            if isinstance(data, list):
                if not isinstance(step, int) or step >= len(data):
                    return None
                data = data[step]
            else:
                data = data.get(step) if isinstance(data, dict) else None
        return place

    def now(self) -> list[Unapplied]:
        """Those whose place is there, the oldest first."""
        self.follow()
        return [one for one in self._texts if not one.is_gone]

    def at(self, path: str, at: JsonPath, part: str) -> Unapplied | None:
        return next((one for one in self.now() if (one.path, one.at, one.part) == (path, at, part)), None)

    def keep(self, path: str, at: JsonPath, part: str, text: str, problem: str, base: str) -> None:
        self.drop(path, at, part)
        self._texts.append(Unapplied(path, at, part, text, problem, base, self._data(path)))
        self._changed()

    def drop(self, path: str, at: JsonPath, part: str) -> None:
        if (dropped := self.at(path, at, part)) is not None:
            self._texts = [one for one in self._texts if one is not dropped]
            self._changed()

    def clear(self) -> None:
        self._texts.clear()

    # In the recovery journal

    def drafts(self, path: str) -> tuple[Draft, ...]:
        """The texts of a set, for its journal."""
        from evaltui.files.journal import Draft

        return tuple(
            Draft(one.case.eval_id, one.at, one.part, one.text, one.problem, one.base)
            for one in self.now()
            if one.path == path and one.case is not None
        )

    def restore(self, case: CaseId, draft: Draft) -> bool:
        """Puts a text of an earlier session where it was typed; False where that is gone."""
        at = self._place_in(case, draft.at)
        if at is not None:
            self.keep(case.path, at, draft.part, draft.text, draft.problem, draft.base)
        return at is not None
