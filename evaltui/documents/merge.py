"""Merging a file that was changed here and outside: by case, by member, and by the order of cases."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from evaltui.core.model.json_values import field_of, object_or_empty
from evaltui.core.model.problems import JsonPath
from evaltui.documents.case_file import CASES, CaseFile, Chunk
from evaltui.documents.edits import Edit, Insert, Put, PutText, Remove, same
from evaltui.documents.formats import WholeText

Side = Literal["mine", "theirs"]

# Members of a config whose own members are merged one by one; all others are taken whole.
_MERGED_INSIDE = frozenset(
    [("criteria",), ("custom_metrics",), ("evaltui",), ("evaltui", "criteria"), ("evaltui", "tools")]
)


class UnmergeableError(Exception):
    """Why two versions cannot be merged in parts."""


@dataclass(frozen=True)
class Clash:
    """A conflict: a case, a member or an order that both sides changed differently.

    The texts are JSON; None where a side does not have it.
    """

    name: str
    base: str | None
    mine: str | None
    theirs: str | None


@dataclass(frozen=True)
class Conflict:
    """Changes that cannot be merged without a choice; with a `reason` only a whole file can be chosen."""

    cases: tuple[Clash, ...] = ()
    members: tuple[Clash, ...] = ()
    orders: tuple[Clash, ...] = ()
    reason: str | None = None


@dataclass(frozen=True)
class Choices:
    """The side to keep for each clash, by its name."""

    cases: Mapping[str, Side] = field(default_factory=dict)
    members: Mapping[str, Side] = field(default_factory=dict)
    orders: Mapping[str, Side] = field(default_factory=dict)


_NO_CHOICES = Choices()


def merge(
    base: CaseFile,
    mine: CaseFile,
    theirs: str | CaseFile,
    choices: Choices = _NO_CHOICES,
    *,
    is_config: bool = False,
) -> CaseFile | Conflict:
    """Merges two versions of a file with the common `base`: theirs with the changes of mine.

    Theirs may be invalid JSON. Cases match by eval_id, members by key. A change on one side is taken over;
    different changes of one item, and a change of an item that the other side removed, are a conflict until
    there is a choice. Added cases of mine come after the case that they followed.
    """
    try:
        if isinstance(theirs, str):
            theirs = _parsed(theirs, base)
        if theirs.has_text_of(base) or mine.has_text_of(theirs):
            return mine
        if mine.has_text_of(base):
            return theirs
        for document, name in ((base, "the common base"), (mine, "mine"), (theirs, "theirs")):
            _check(document, name, is_config)
    except UnmergeableError as error:
        return Conflict(reason=str(error))
    return _Merging(base, mine, theirs, choices, is_config=is_config).result()


def _parsed(text: str, like: CaseFile) -> CaseFile:
    try:
        return like.read(text)
    except ValueError as error:
        raise UnmergeableError(f"theirs is not valid JSON: {error}") from error


def _check(document: CaseFile, name: str, is_config: bool) -> None:
    """Raises UnmergeableError for a document that cannot be merged in parts."""
    if isinstance(document, WholeText):
        raise UnmergeableError(f"{name} is not valid JSON")
    kind, data = "a config" if is_config else "an eval set", document.value
    if not isinstance(data, dict):
        lacks = "not an object" if is_config else f"`{CASES}` is missing"
        raise UnmergeableError(f"{name} is not {kind}: {lacks}")
    if is_config:
        return
    if document.key is None:
        is_list = isinstance(field_of(data, CASES), list)
        why = f"`{CASES}` is given twice" if is_list else f"`{CASES}` is not a list"
        raise UnmergeableError(f"{name} is not {kind}: {why}")
    ids: set[str] = set()
    for case in document.cases:
        if case.outline.eval_id is None:
            raise UnmergeableError(f"{name} has a case without an eval_id")
        if case.eval_id in ids:
            raise UnmergeableError(f"{name} has more than one case {case.eval_id!r}")
        ids.add(case.eval_id)


@dataclass(frozen=True)
class _Version:
    """A case or member in one version of the file: its text and value, None for a missing one."""

    text: str | None
    value: Any = None

    def is_same(self, other: _Version) -> bool:
        """Whether both are the same JSON with members in any order."""
        if self.text is None or other.text is None:
            return self.text == other.text
        return self.text == other.text or same(self.value, other.value)


_ABSENT = _Version(None)


class _Merging:
    """A merge in progress; `edits` in order change theirs to the merged text, except for the order of
    cases."""

    def __init__(
        self,
        base: CaseFile,
        mine: CaseFile,
        theirs: CaseFile,
        choices: Choices,
        *,
        is_config: bool,
    ) -> None:
        self._documents = base, mine, theirs
        self._choices = choices
        self._is_config = is_config
        self._edits: list[Edit] = []
        self._cases: list[Clash] = []
        self._members: list[Clash] = []
        self._orders: list[Clash] = []

    def result(self) -> CaseFile | Conflict:
        self._merge_members((), *(document.value for document in self._documents))
        theirs = self._documents[2] if self._is_config else self._merged_cases()
        if self._cases or self._members or self._orders:
            return Conflict(tuple(self._cases), tuple(self._members), tuple(self._orders))
        return theirs.edited(self._edits)

    def _side(
        self, name: str, versions: Sequence[_Version], choices: Mapping[str, Side], clashes: list[Clash]
    ) -> Side:
        """The side that changed something, or that was chosen; a change on both sides adds a clash."""
        base, mine, theirs = versions
        if theirs.text == base.text:
            return "mine"
        if mine.is_same(theirs) or mine.is_same(base):
            return "theirs"
        if theirs.is_same(base):
            return "mine"
        if name in choices:
            return choices[name]
        clashes.append(Clash(name, base.text, mine.text, theirs.text))
        return "theirs"

    def _merge_members(self, path: JsonPath, base: Any, mine: Any, theirs: Any) -> None:
        sides = [object_or_empty(value) for value in (base, mine, theirs)]
        lists = () if self._is_config else {document.key for document in self._documents}
        for key in dict.fromkeys(key for side in sides for key in side):
            where = (*path, key)
            if not path and key in lists:
                continue
            of_base, of_mine, of_theirs = (side.get(key) for side in sides)
            if where in _MERGED_INSIDE and self._is_config:
                is_in_parts = isinstance(of_mine, dict) and isinstance(of_theirs, dict)
                if is_in_parts and (key not in sides[0] or isinstance(of_base, dict)):
                    self._merge_members(where, of_base, of_mine, of_theirs)
                    continue
            versions = [
                _Version(document.text_at(where), side[key]) if key in side else _ABSENT
                for document, side in zip(self._documents, sides, strict=True)
            ]
            name = ".".join(map(str, where))
            if self._side(name, versions, self._choices.members, self._members) == "mine":
                self._edits += _edits(where, versions)

    def _merged_cases(self) -> CaseFile:
        """Theirs with the cases of mine that were changed, added, removed and moved."""
        cases_by_id = [{case.eval_id: case for case in document.cases} for document in self._documents]
        changed: dict[str, list[_Version]] = {}
        gone: set[str] = set()
        for name in dict.fromkeys(name for cases in cases_by_id for name in cases):
            cases = [of_version.get(name) for of_version in cases_by_id]
            if cases[0] is cases[1] is cases[2]:
                # As most of ten thousand cases.
                continue
            versions = [_Version(case.text, case.value) if case else _ABSENT for case in cases]
            side = self._side(name, versions, self._choices.cases, self._cases)
            if versions[1 if side == "mine" else 2].text is None:
                gone.add(name)
            if side == "mine":
                changed[name] = versions
        key, names = self._documents[2].key or CASES, list(cases_by_id[2])
        edits: list[Edit] = [
            Put((key, number), changed[name][1].value)
            for number, name in enumerate(names)
            if name in changed and name not in gone and _is_respelt(changed[name])
        ]
        edits += [Remove((key, number)) for number in reversed(range(len(names))) if names[number] in gone]
        document = self._documents[2].edited(edits)
        left = dict(zip([name for name in names if name not in gone], document.cases, strict=True))
        order = self._order([[name for name in of_version if name not in gone] for of_version in cases_by_id])
        document = document.edited(
            Insert((key,), number, changed[name][1].value)
            for number, name in enumerate(order)
            if name not in left
        )
        # Cases of mine as they are written there.
        mine = (name for name in changed if name not in gone and not _is_respelt(changed[name]))
        left |= {name: cases_by_id[1][name] for name in mine}
        return document.with_chunks(
            Chunk(chunk.lead, left[name]) for chunk, name in zip(document.chunks, order, strict=True)
        )

    def _order(self, sides: Sequence[Sequence[str]]) -> list[str]:
        """The order of the remaining cases, from the side that moved some."""
        common = set.intersection(*map(set, sides))
        base, mine, theirs = ([name for name in side if name in common] for side in sides)
        order = theirs
        if theirs == base:
            order = mine
        elif mine not in (base, theirs):
            if CASES not in self._choices.orders:
                texts = (json.dumps(side, ensure_ascii=False) for side in sides)
                self._orders.append(Clash(CASES, *texts))
            elif self._choices.orders[CASES] == "mine":
                order = mine
        every = {name for side in sides for name in side}
        return _with_added(_with_added(order, sides[2], every), sides[1], every)


def _edits(path: JsonPath, versions: Sequence[_Version]) -> list[Edit]:
    """The edits that replace theirs by mine: by its text, or by its value where theirs differs from the
    base in spelling only."""
    _, mine, theirs = versions
    if mine.text == theirs.text:
        return []
    if mine.text is None:
        return [Remove(path)]
    return [Put(path, mine.value) if _is_respelt(versions) else PutText(path, mine.text)]


def _is_respelt(versions: Sequence[_Version]) -> bool:
    """Whether theirs differs from the base in spelling only."""
    base, _, theirs = versions
    return theirs.text is not None and theirs.text != base.text and theirs.is_same(base)


def _with_added(order: Sequence[str], side: Sequence[str], names: Collection[str]) -> list[str]:
    """The order of names with further names of one side, each after the name that it follows there."""
    present = set(order)
    after: dict[str | None, list[str]] = {}
    before: str | None = None
    for name in side:
        if name in present:
            before = name
        elif name in names:
            after.setdefault(before, []).append(name)
    added = list(after.get(None, ()))
    for name in order:
        added += [name, *after.get(name, ())]
    return added
