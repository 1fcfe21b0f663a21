"""Merging a file that was changed here and outside: by case, by member, by entry, and their order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from evaltui.core.jsondoc.document import JsonDocument
from evaltui.core.jsondoc.edits import Edit, InsertText, Move, Put, PutText, Remove, alike, at_path, same
from evaltui.core.jsondoc.shapes import (
    EVAL_SET,
    ByEntry,
    ByMember,
    FileShape,
    Shape,
    UnmergeableError,
    merged_order,
    moves,
    with_added,
)
from evaltui.core.model.json_values import spelt
from evaltui.core.model.problems import JsonPath
from evaltui.core.model.stored_cases import StoredCase

Side = Literal["mine", "theirs"]


@dataclass(frozen=True)
class Merged:
    """The document of theirs with what was changed in mine."""

    document: JsonDocument

    @property
    def text(self) -> str:
        return self.document.text


@dataclass(frozen=True)
class Clash:
    """What both sides changed differently: a case by its eval_id, a member by its path, an order by its list.

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
    orders: tuple[Clash, ...] = ()
    reason: str | None = None


@dataclass(frozen=True)
class Choices:
    """The side that is kept of what both changed, by the names of the clashes."""

    cases: Mapping[str, Side] = field(default_factory=dict)
    members: Mapping[str, Side] = field(default_factory=dict)
    orders: Mapping[str, Side] = field(default_factory=dict)


def merge(
    base: JsonDocument, mine: JsonDocument, theirs: str | JsonDocument, shape: FileShape = EVAL_SET
) -> Merged | Conflict:
    """Merge two versions of a file that both come from `base`; a text of theirs may be no JSON.

    Cases match by eval_id, members by key, rules and marks by what they are for. What changed on one side
    only is taken over; of different changes to the same, and of a change to what the other side removed,
    there is a conflict. Entries that were moved on one side are moved, those that both sides moved to
    different places are a conflict; those that mine added come after the one that they followed there.
    """
    return resolve(base, mine, theirs, Choices(), shape)


def resolve(
    base: JsonDocument,
    mine: JsonDocument,
    theirs: str | JsonDocument,
    choices: Choices,
    shape: FileShape = EVAL_SET,
) -> Merged | Conflict:
    """Merge with a choice for what is in conflict.

    What has no choice yet is a conflict still; a choice for what is in none has no effect.
    """
    try:
        if isinstance(theirs, str):
            theirs = _parsed(theirs, base)
        if theirs.has_text_of(base) or mine.has_text_of(theirs):
            return Merged(mine.copy())
        if mine.has_text_of(base):
            return Merged(theirs.copy())
        versions = [
            _version(base, "the common base", shape),
            _version(mine, "mine", shape),
            _version(theirs.copy(), "theirs", shape),
        ]
        merging = _Merging(choices)
        merging.members(shape.root, versions, ())
    except UnmergeableError as error:
        return Conflict(reason=str(error))
    if merging.cases or merging.clashes or merging.orders:
        return Conflict(tuple(merging.cases), tuple(merging.clashes), tuple(merging.orders))
    document = versions[2].document
    document.apply(merging.edits)
    return Merged(document)


@dataclass(frozen=True)
class _Version:
    """A value in one version of the file, None and `absent` where it has none at this place."""

    name: str
    document: JsonDocument
    path: JsonPath
    case: StoredCase | None = None
    absent: bool = False

    @cached_property
    def value(self) -> Any:
        if self.absent:
            return None
        return self.case.value if self.case else at_path(self.document.value, self.path)

    @cached_property
    def text(self) -> str:
        if self.absent:
            return ""
        return self.case.text if self.case else self.document.text_at(self.path)

    def same_as(self, other: _Version) -> bool:
        if self.absent or other.absent:
            return self.absent == other.absent
        return self.text == other.text or same(self.value, other.value)

    def alike(self, other: _Version) -> bool:
        """As `same_as`, with members in the same order."""
        return self.same_as(other) and (self.text == other.text or alike(self.value, other.value))

    def spelt_as(self, other: _Version) -> bool:
        return (self.absent, self.text) == (other.absent, other.text)

    @property
    def own_text(self) -> str | None:
        return None if self.absent else self.text

    def members(self, shape: ByMember) -> dict[str, _Version]:
        """By key; one that the shape names has the name that it has there, however it is spelt."""
        value = {} if self.absent else self.value
        names = {spelt(name, value): name for name in shape.inner}
        return {names.get(key, key): self._at(key) for key in value}

    def entries(self, shape: ByEntry) -> dict[str, int]:
        """The index of each entry by its name."""
        if self.absent:
            return {}
        try:
            names = shape.name(self.value)
        except UnmergeableError as error:
            raise UnmergeableError(f"{self.name} {error}") from None
        return {name: index for index, name in enumerate(names)}

    def entry(self, index: int | None) -> _Version:
        if index is None:
            return self.without(0)
        return self._at(index, self.case_at(index))

    def case_at(self, index: int | None) -> StoredCase | None:
        cases = self.document.cases_at(self.path)
        return cases[index] if cases and index is not None else None

    def _at(self, step: str | int, case: StoredCase | None = None) -> _Version:
        return _Version(self.name, self.document, (*self.path, step), case)

    def without(self, step: str | int) -> _Version:
        """What this one does not have."""
        return _Version(self.name, self.document, (*self.path, step), absent=True)


def _parsed(text: str, like: JsonDocument) -> JsonDocument:
    try:
        return JsonDocument(text, like)
    except ValueError as error:
        raise UnmergeableError(f"theirs is not valid JSON: {error}") from error


def _version(document: JsonDocument, name: str, shape: FileShape) -> _Version:
    try:
        shape.check(document.value)
    except UnmergeableError as error:
        raise UnmergeableError(f"{name} {error}") from None
    return _Version(name, document, ())


class _Merging:
    """`edits`, to be done one after the other, make the merged text of theirs."""

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self.edits: list[Edit] = []
        self.cases: list[Clash] = []
        self.clashes: list[Clash] = []
        self.orders: list[Clash] = []

    def members(self, shape: ByMember, versions: Sequence[_Version], names: tuple[str, ...]) -> None:
        found = [version.members(shape) for version in versions]
        for name in dict.fromkeys(name for members in found for name in members):
            inner = [
                members.get(name) or version.without(_key(name, found))
                for members, version in zip(found, versions, strict=True)
            ]
            self._value(shape.inner.get(name), inner, (*names, name))

    def _value(self, shape: Shape | None, versions: Sequence[_Version], names: tuple[str, ...]) -> None:
        base, mine, theirs = versions
        if shape is None or not _can_go_in(shape, versions):
            name = ".".join(names)
            side = self._side(versions, self._choices.members.get(name), name, self.clashes)
            if side == "mine":
                self.edits += _taken_over(base, mine, theirs)
            return
        count = len(self.edits)
        if isinstance(shape, ByMember):
            self.members(shape, versions, names)
        else:
            self._entries(shape, versions, names)
        if theirs.absent and len(self.edits) > count:
            self.edits.insert(count, Put(theirs.path, {} if isinstance(shape, ByMember) else []))

    def _side(
        self, versions: Sequence[_Version], choice: Side | None, name: str, clashes: list[Clash]
    ) -> Side | None:
        """The side to be kept; None where that is to be asked."""
        side = _newer(*versions) or choice
        if side is None:
            clashes.append(Clash(name, *(version.own_text for version in versions)))
        return side

    def _entries(self, shape: ByEntry, versions: Sequence[_Version], names: tuple[str, ...]) -> None:
        of_list = ".".join(names)
        found = [version.entries(shape) for version in versions]
        changed: dict[str, list[_Version]] = {}
        gone: set[str] = set()
        for name in dict.fromkeys(name for entries in found for name in entries):
            places = [entries.get(name) for entries in found]
            cases = [version.case_at(index) for version, index in zip(versions, places, strict=True)]
            if cases[0] is not None and cases[0] is cases[1] is cases[2]:
                # As in most of ten thousand cases, nobody changed anything.
                continue
            inner = [version.entry(index) for version, index in zip(versions, places, strict=True)]
            if shape.holds_cases:
                side = self._side(inner, self._choices.cases.get(name), name, self.cases)
            else:
                full = f"{of_list}: {name}"
                side = self._side(inner, self._choices.members.get(full), full, self.clashes)
            if inner[1 if side == "mine" else 2].absent:
                gone.add(name)
            if side == "mine":
                changed[name] = inner
        order = self._order(of_list, [[name for name in one if name not in gone] for one in found])
        self.edits += _list_edits(versions[2].path, list(found[2]), order, changed)

    def _order(self, of_list: str, found: Sequence[Sequence[str]]) -> list[str]:
        """The names of the entries that are left, in their order."""
        base, mine, theirs = found
        every = {*base, *mine, *theirs}
        order = merged_order(base, mine, theirs)
        if order is None:
            side = self._choices.orders.get(of_list)
            if side is None:
                self.orders.append(
                    Clash(of_list, *(json.dumps(names, ensure_ascii=False) for names in found))
                )
            common = set(base) & set(mine) & set(theirs)
            order = [name for name in (mine if side == "mine" else theirs) if name in common]
        return with_added(with_added(order, theirs, every), mine, every)


def _key(name: str, found: Sequence[Mapping[str, _Version]]) -> str | int:
    """How a member is spelt where there is one."""
    return next(members[name].path[-1] for members in reversed(found) if name in members)


def _can_go_in(shape: Shape, versions: Sequence[_Version]) -> bool:
    """Whether all that there is can be merged in parts; something that only one side has is taken whole."""
    wanted = dict if isinstance(shape, ByMember) else list
    if not all(version.absent or isinstance(version.value, wanted) for version in versions):
        return False
    _, mine, theirs = versions
    return not (mine.absent or theirs.absent) or _newer(*versions) is None


def _newer(base: _Version, mine: _Version, theirs: _Version) -> Side | None:
    """The side that changed something; None where both did, and differently.

    Mine also where one side only has members in another order: `_taken_over` makes one of both then.
    """
    if theirs.spelt_as(base):
        return "mine"
    if mine.alike(theirs) or mine.alike(base):
        return "theirs"
    return "mine" if theirs.alike(base) or _only_reordered(base, mine, theirs) else None


def _only_reordered(base: _Version, mine: _Version, theirs: _Version) -> _Version | None:
    """The one side that differs from the base by the order of members alone, where the other has it too."""
    if mine.absent or theirs.absent or mine.same_as(base) == theirs.same_as(base):
        return None
    return mine if mine.same_as(base) else theirs


def _taken_over(base: _Version, mine: _Version, theirs: _Version) -> list[Edit]:
    """What puts mine in the place of theirs.

    Where theirs only looks different from the base, the text of mine would not fit there, its value does.
    """
    if mine.spelt_as(theirs):
        return []
    if mine.absent:
        return [Remove(theirs.path)]
    if not mine.alike(base) and not theirs.alike(base) and (model := _only_reordered(base, mine, theirs)):
        other = mine if model is theirs else theirs
        return [Put(theirs.path, _in_order_of(model.value, other.value))]
    by_value = _newer(base, mine, theirs) is not None and not theirs.spelt_as(base)
    return [Put(theirs.path, mine.value) if by_value else PutText(theirs.path, mine.text)]


def _in_order_of(model: Any, value: Any) -> Any:
    """A value with its members in the order that those of the model have; what the model lacks comes last."""
    if isinstance(model, dict) and isinstance(value, dict):
        keys = [key for key in model if key in value] + [key for key in value if key not in model]
        return {key: _in_order_of(model.get(key), value[key]) for key in keys}
    if isinstance(model, list) and isinstance(value, list):
        return [
            _in_order_of(model[index], item) if index < len(model) else item
            for index, item in enumerate(value)
        ]
    return value


def _list_edits(
    path: JsonPath, now: list[str], wanted: Sequence[str], changed: Mapping[str, Sequence[_Version]]
) -> list[Edit]:
    """Changed entries first, then removed ones from the end on: so the places of theirs hold until then."""
    edits: list[Edit] = []
    there = set(now)
    for name, versions in changed.items():
        if name in there and not versions[1].absent:
            edits += _taken_over(*versions)
    for index in reversed(range(len(now))):
        if (name := now[index]) in changed and changed[name][1].absent:
            edits.append(Remove((*path, index)))
            del now[index]
    left = set(now)
    edits += [Move(path, *one) for one in moves(now, [name for name in wanted if name in left])]
    for index, name in enumerate(wanted):
        if name not in left:
            edits.append(InsertText(path, index, changed[name][1].text))
    return edits
