"""Texts that were typed into fields and could not become what a case says: kept until they can, or are left.

They go with what they were typed for, wherever it is moved to and whatever its case is called by then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evaltui.core.model.case_id import CaseId
from evaltui.core.model.problems import JsonPath
from evaltui.core.model.stored_cases import CaseList, StoredCase
from evaltui.documents.edits import EditError, same

if TYPE_CHECKING:
    from evaltui.documents.recovery import Draft


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
            # Undo gives the same data back.
            return replace(self, is_gone=False) if self.is_gone else self
        at = followed(self.data, data, self.at)
        if at is None:
            return self if self.is_gone else replace(self, is_gone=True)
        return replace(self, at=at, data=data, is_gone=False)

    @property
    def case(self) -> CaseId | None:
        """The case that it belongs to."""
        from evaltui.documents.editing.set import CaseEditor

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
        from evaltui.documents.editing.json_paths import cases_path, eval_ids

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

    # In the recovery file

    def drafts(self, path: str) -> tuple[Draft, ...]:
        """The texts of a set, for its recovery file."""
        from evaltui.documents.recovery import Draft

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


Match = Callable[[Any, Any], bool]


def followed(old: Any, new: Any, path: JsonPath) -> JsonPath | None:
    """The path of the same thing in the new data; None where it is gone.

    What the old data did not have yet stays where it would be. Elements are known again by what they are,
    else by their id, else by what is equal, at last by their order.
    """
    found: list[str | int] = []
    for depth, step in enumerate(path):
        if old is new:
            return (*found, *path[depth:])
        if isinstance(old, list) and isinstance(new, list) and isinstance(step, int):
            if step >= len(old):
                return (*found, *path[depth:])
            at: str | int | None = _places(old, new).get(step)
        elif isinstance(old, dict) and isinstance(new, dict):
            if step not in old:
                return (*found, *path[depth:])
            at = str(step) if step in new else _renamed(old, new, str(step))
        else:
            return None
        if at is None:
            return None
        old, new = old[step], new[at]
        found.append(at)
    return tuple(found)


def _places(old: list[Any], new: list[Any]) -> dict[int, int]:
    """Index in the old list to index in the new one, of all that are in both."""
    if isinstance(old, CaseList) and isinstance(new, CaseList):
        return _places_of_cases(old.stored, new.stored)
    places: dict[int, int] = {}
    left, free = list(range(len(old))), list(range(len(new)))
    matches: tuple[Match, ...] = (lambda one, other: one is other, _has_its_id, same)
    for match in matches:
        for index in tuple(left):
            at = next((number for number in free if match(old[index], new[number])), None)
            if at is not None:
                places[index] = at
                left.remove(index)
                free.remove(at)
    if len(left) == len(free):
        places |= zip(left, free, strict=True)
    return places


def _places_of_cases(old: Sequence[StoredCase], new: Sequence[StoredCase]) -> dict[int, int]:
    """As `_places`, in one go through thousands of cases, and without parsing any that is the same."""
    at = {case: number for number, case in enumerate(new)}
    places = {number: at[case] for number, case in enumerate(old) if case in at}
    taken = set(places.values())
    free = [number for number in range(len(new)) if number not in taken]
    left = [number for number in range(len(old)) if number not in places]
    rest = _places([old[number].value for number in left], [new[number].value for number in free])
    return places | {left[number]: free[to] for number, to in rest.items()}


def _has_its_id(one: Any, other: Any) -> bool:
    if not isinstance(one, dict) or not isinstance(other, dict):
        return False
    names = ("eval_id", "evalId", "invocation_id", "invocationId", "rubric_id", "rubricId", "id")
    return any(one.get(name) and one.get(name) == other.get(name) for name in names)


def _renamed(old: dict[str, Any], new: dict[str, Any], key: str) -> str | None:
    """What a member that is gone is called now: the new member at its place."""
    at = list(old).index(key)
    keys = list(new)
    return keys[at] if len(old) == len(new) and keys[at] not in old else None
