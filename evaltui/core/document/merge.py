"""Merging an eval set file that was changed here and outside: by case, then by member of the set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from evaltui.core.document.document import JsonDocument
from evaltui.core.document.edits import Edit, InsertText, Put, PutText, Remove, same
from evaltui.core.problems import JsonPath
from evaltui.core.spelling import spelt

Side = Literal["mine", "theirs"]


@dataclass(frozen=True)
class Merged:
    """The text of theirs with what was changed in mine."""

    text: str


@dataclass(frozen=True)
class Clash:
    """A case, by its eval_id, or a member of the set, by its key, that both sides changed differently.

    The texts are JSON; None where a side does not have it.
    """

    name: str
    base: str | None
    mine: str | None
    theirs: str | None


@dataclass(frozen=True)
class Conflict:
    """What cannot be merged without a choice. With a `reason` the files can only be chosen as a whole."""

    cases: tuple[Clash, ...] = ()
    members: tuple[Clash, ...] = ()
    reason: str | None = None


class _UnmergeableError(Exception):
    """Why a version can only be taken as a whole."""


def merge(base: str, mine: str, theirs: str) -> Merged | Conflict:
    """Merge two versions of an eval set file that both come from `base`.

    Cases match by eval_id. What changed on one side only is taken over; of different changes to the same
    case, and of a change to a case that the other side removed, there is a conflict. Cases have the order of
    theirs; those that mine added come after the one that they followed there.
    """
    return resolve(base, mine, theirs, {})


def resolve(
    base: str,
    mine: str,
    theirs: str,
    choices: Mapping[str, Side],
    member_choices: Mapping[str, Side] | None = None,
) -> Merged | Conflict:
    """Merge with a choice for each case, by eval_id, and member of the set in conflict.

    What has no choice yet is a conflict still; a choice for what is in none has no effect.
    """
    if theirs == base or mine in (base, theirs):
        return Merged(mine if theirs == base else theirs)
    try:
        versions = _read(base, "the version both began with"), _read(mine, "mine"), _read(theirs, "theirs")
    except _UnmergeableError as error:
        return Conflict(reason=str(error))
    members = _plan([version.members for version in versions], member_choices or {})
    cases = _plan([version.cases for version in versions], choices)
    if members.clashes or cases.clashes:
        return Conflict(tuple(cases.clashes), tuple(members.clashes))
    result = versions[2]
    result.document.apply([*_member_edits(members), *_case_edits(cases, versions[1], result)])
    return Merged(result.document.text)


@dataclass(frozen=True)
class _Item:
    value: Any = field(compare=False)
    text: str


_Items = dict[str, _Item]


@dataclass(frozen=True)
class _Version:
    """One version of the file: its cases by eval_id, in order, and what else the set has."""

    document: JsonDocument
    cases_key: str
    cases: _Items
    members: _Items


def _read(text: str, name: str) -> _Version:
    try:
        document = JsonDocument(text)
    except ValueError as error:
        raise _UnmergeableError(f"{name} is not valid JSON: {error}") from error
    data = document.value
    cases_key = spelt("eval_cases", data) if isinstance(data, dict) else ""
    if not isinstance(data, dict) or not isinstance(data.get(cases_key), list):
        raise _UnmergeableError(f"{name} is not an eval set: it has no list eval_cases")
    cases: _Items = {}
    for case, case_text in zip(data[cases_key], document.texts_in((cases_key,)), strict=True):
        eval_id = case.get(spelt("eval_id", case)) if isinstance(case, dict) else None
        if not isinstance(eval_id, str):
            raise _UnmergeableError(f"{name} has a case without an eval_id")
        if eval_id in cases:
            raise _UnmergeableError(f"{name} has more than one case {eval_id!r}")
        cases[eval_id] = _Item(case, case_text)
    members = {key: _Item(value, document.text_at((key,))) for key, value in data.items() if key != cases_key}
    return _Version(document, cases_key, cases, members)


@dataclass(frozen=True)
class _Change:
    """Something of mine that goes into theirs; None is taken away.

    Where theirs only looks different from the base, the text of mine would not fit there, its value does.
    """

    item: _Item | None
    by_value: bool

    def put(self, path: JsonPath) -> Edit:
        if self.item is None:
            return Remove(path)
        return Put(path, self.item.value) if self.by_value else PutText(path, self.item.text)


@dataclass(frozen=True)
class _Plan:
    changes: dict[str, _Change]
    clashes: list[Clash]


def _plan(versions: Sequence[_Items], choices: Mapping[str, Side]) -> _Plan:
    plan = _Plan({}, [])
    for name in dict.fromkeys(name for items in versions for name in items):
        base, mine, theirs = (items.get(name) for items in versions)
        newer = _newer(base, mine, theirs)
        side = newer or choices.get(name)
        if side is None:
            plan.clashes.append(Clash(name, *(item.text if item else None for item in (base, mine, theirs))))
        elif side == "mine" and mine != theirs:
            plan.changes[name] = _Change(mine, by_value=newer is not None and theirs != base)
    return plan


def _newer(base: _Item | None, mine: _Item | None, theirs: _Item | None) -> Side | None:
    """The side that changed something; None where both did, and differently."""
    if theirs == base:
        return "mine"
    if _equal(mine, theirs) or _equal(mine, base):
        return "theirs"
    return "mine" if _equal(theirs, base) else None


def _equal(one: _Item | None, other: _Item | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.text == other.text or same(one.value, other.value)


def _member_edits(plan: _Plan) -> Iterator[Edit]:
    for key, change in plan.changes.items():
        yield change.put((key,))


def _case_edits(plan: _Plan, mine: _Version, theirs: _Version) -> Iterator[Edit]:
    """Changed cases first, then removed ones from the end on: so the indices of theirs hold until then."""
    order = list(theirs.cases)
    places = {eval_id: (theirs.cases_key, index) for index, eval_id in enumerate(order)}
    known = [(places[eval_id], change) for eval_id, change in plan.changes.items() if eval_id in places]
    yield from (change.put(path) for path, change in known if change.item is not None)
    for path, change in sorted(known, key=lambda one: one[0], reverse=True):
        if change.item is None:
            yield change.put(path)
            del order[path[1]]
    present = set(order)
    before: str | None = None
    for eval_id, item in mine.cases.items():
        if eval_id in plan.changes and eval_id not in places:
            index = order.index(before) + 1 if before is not None else 0
            order.insert(index, eval_id)
            present.add(eval_id)
            yield InsertText((theirs.cases_key,), index, item.text)
        if eval_id in present:
            before = eval_id
