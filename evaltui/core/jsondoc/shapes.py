"""How files that people edit are merged: what by member, which lists by entry, and the order of entries."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from evaltui.core.model.json_values import spelt
from evaltui.core.model.stored_cases import eval_ids_of


class UnmergeableError(Exception):
    """Why a version can only be taken as a whole."""


@dataclass(frozen=True)
class ByMember:
    """An object that is merged by member; `inner` says how, those not named there as a whole."""

    inner: Mapping[str, Shape] = field(default_factory=dict)


@dataclass(frozen=True)
class ByEntry:
    """A list whose entries are known by a name, whatever their place. `name` gives a name to each entry.

    It raises UnmergeableError for a list whose entries cannot be told apart.
    """

    name: Callable[[Sequence[Any]], list[str]]
    holds_cases: bool = False


Shape = ByMember | ByEntry


@dataclass(frozen=True)
class FileShape:
    """A kind of file. `empty` is the text of one without content, `requires` a list that it must have."""

    title: str
    root: ByMember
    empty: str
    requires: str | None = None

    def check(self, data: Any) -> None:
        """Raises UnmergeableError for what is no such file."""
        if not isinstance(data, dict):
            lacks = f"`{self.requires}` is missing" if self.requires else "not an object"
            raise UnmergeableError(f"is not {self.title}: {lacks}")
        if self.requires and not isinstance(data.get(spelt(self.requires, data)), list):
            raise UnmergeableError(f"is not {self.title}: `{self.requires}` is not a list")


def _case_names(cases: Sequence[Any]) -> list[str]:
    names: dict[str, None] = {}
    for name in eval_ids_of(cases):
        if name is None:
            raise UnmergeableError("has a case without an eval_id")
        if name in names:
            raise UnmergeableError(f"has more than one case {name!r}")
        names[name] = None
    return list(names)


def _rule_names(rules: Sequence[Any]) -> list[str]:
    return _numbered([_rule_name(rule) for rule in rules])


def _rule_name(rule: Any) -> str:
    if not isinstance(rule, dict):
        return repr(rule)
    of = "/".join(str(rule[key]) for key in ("set", "case") if rule.get(key) is not None)
    what = ".".join(str(rule[key]) for key in ("tool", "arg") if rule.get(key) is not None)
    return f"{what} of {of}" if of else what


def _mark_names(marks: Sequence[Any]) -> list[str]:
    return _numbered([_mark_name(mark) for mark in marks])


def _mark_name(mark: Any) -> str:
    if not isinstance(mark, dict):
        return repr(mark)
    return f"{mark.get('set')}/{mark.get('case')} turn {mark.get('turn')}"


def _tag_names(entries: Sequence[Any]) -> list[str]:
    return _numbered(
        [f"{one.get('set')}/{one.get('case')}" if isinstance(one, dict) else repr(one) for one in entries]
    )


def _numbered(names: Sequence[str]) -> list[str]:
    """Of entries of one name the last one counts, so that one has the name as it is."""
    left = Counter(names)
    found = []
    for name in names:
        left[name] -= 1
        found.append(f"{name} (again, {left[name]})" if left[name] else name)
    return found


EVAL_SET = FileShape(
    "an eval set",
    ByMember({"eval_cases": ByEntry(_case_names, holds_cases=True)}),
    '{"eval_cases": []}',
    requires="eval_cases",
)
CONFIG = FileShape(
    "a config",
    ByMember(
        {
            "criteria": ByMember(),
            "custom_metrics": ByMember(),
            "evaltui": ByMember(
                {
                    "criteria": ByMember(),
                    "tools": ByMember(),
                    "rules": ByEntry(_rule_names),
                    "turns": ByEntry(_mark_names),
                    "tags": ByEntry(_tag_names),
                }
            ),
        }
    ),
    "{}",
)


Name = TypeVar("Name", bound=Hashable)

# Comparisons of a moved entry with another one; a second or two.
_MOST_PAIRS = 4_000_000


def merged_order(base: Sequence[Name], mine: Sequence[Name], theirs: Sequence[Name]) -> list[Name] | None:
    """The entries that all three have, in an order with what was moved on either side.

    None where both sides moved the same entry to different places. Names are unique in each list.
    """
    common = set(base) & set(mine) & set(theirs)
    base, mine, theirs = ([name for name in names if name in common] for names in (base, mine, theirs))
    if mine in (base, theirs):
        return theirs
    if theirs == base:
        return mine
    at = {name: number for number, name in enumerate(base)}
    by_mine = _moved([at[name] for name in mine], frozenset())
    by_theirs = _moved([at[name] for name in theirs], by_mine)
    moved = by_mine | by_theirs
    if len(moved) * len(base) > _MOST_PAIRS:
        return None
    in_mine, in_theirs = ([at[name] for name in names] for names in (mine, theirs))
    before_mine, before_theirs = _turned_round(in_mine, moved), _turned_round(in_theirs, moved)
    twice = by_mine & by_theirs
    # Against what stayed, and against what else was moved on both sides.
    others = twice | (set(range(len(base))) - moved)
    for number in twice:
        if before_mine.around(number) & others != before_theirs.around(number) & others:
            return None
    return [base[number] for number in _sorted(len(base), [before_mine, before_theirs])]


class _Turned:
    """Pairs that stand the other way round than in the base: `behind[a]` are those that come after a now."""

    def __init__(self) -> None:
        self.behind: dict[int, set[int]] = {}
        self.ahead: dict[int, set[int]] = {}

    def add(self, first: int, second: int) -> None:
        self.behind.setdefault(first, set()).add(second)
        self.ahead.setdefault(second, set()).add(first)

    def around(self, number: int) -> set[int]:
        return self.behind.get(number, set()) | self.ahead.get(number, set())


def _turned_round(order: Sequence[int], moved: Collection[int]) -> _Turned:
    found = _Turned()
    place = {number: index for index, number in enumerate(order)}
    for one in moved:
        for other in order:
            if (one < other) != (place[one] < place[other]) and one != other:
                found.add(*((one, other) if place[one] < place[other] else (other, one)))
    return found


def _sorted(size: int, turned: Sequence[_Turned]) -> Iterator[int]:
    """In the order of the base but for the pairs that were turned round, which never contradict each other:
    each of them goes back in the base."""
    behind: dict[int, set[int]] = {}
    for one in turned:
        for first, seconds in one.behind.items():
            behind.setdefault(first, set()).update(seconds)
    waits_for = [0] * size
    for seconds in behind.values():
        for second in seconds:
            waits_for[second] += 1
    free = [number for number in range(size) if not waits_for[number]]
    while free:
        number = heapq.heappop(free)
        yield number
        for second in behind.get(number, ()):
            waits_for[second] -= 1
            if not waits_for[second]:
                heapq.heappush(free, second)


def _moved(order: Sequence[int], rather: Collection[int]) -> frozenset[int]:
    """As few entries as explain an order; of several ways one that leaves the entries in `rather` alone."""
    return frozenset(order) - _stays(order, rather)


def _stays(order: Sequence[int], rather: Collection[int] = frozenset()) -> set[int]:
    """The entries of a longest run that only rises, of several the one with the most of `rather`.

    `order` has the numbers from 0.
    """
    # A tree of maxima: under `number + 1` the best run that ends below, by size, and where it ends.
    best = [(0, 0, -1)] * (len(order) + 1)
    came_from = [-1] * len(order)
    for number in order:
        top, at = (0, 0, -1), number
        while at > 0:
            top = max(top, best[at])
            at -= at & -at
        came_from[number] = top[2]
        run, at = (top[0] + 1, top[1] + (number in rather), number), number + 1
        while at < len(best):
            best[at] = max(best[at], run)
            at += at & -at
    here, at = (0, 0, -1), len(order)
    while at > 0:
        here = max(here, best[at])
        at -= at & -at
    stays: set[int] = set()
    number = here[2]
    while number >= 0:
        stays.add(number)
        number = came_from[number]
    return stays


def with_added(order: Sequence[Name], side: Sequence[Name], wanted: Collection[Name]) -> list[Name]:
    """An order with further entries of one side, each after the one that it follows there."""
    present = set(order)
    after: dict[Name | None, list[Name]] = {}
    before: Name | None = None
    for name in side:
        if name in present:
            before = name
        elif name in wanted:
            after.setdefault(before, []).append(name)
    found = list(after.get(None, ()))
    for name in order:
        found += [name, *after.get(name, ())]
    return found


def moves(now: Sequence[Name], wanted: Sequence[Name]) -> Iterator[tuple[int, int]]:
    """The moves, one after the other, as `(from, to)`, that bring entries into another order."""
    if list(now) == list(wanted):
        return
    at = {name: number for number, name in enumerate(wanted)}
    stays = {wanted[number] for number in _stays([at[name] for name in now])}
    current = list(now)
    for number, name in enumerate(wanted):
        if name in stays:
            continue
        index = current.index(name)
        del current[index]
        to = current.index(wanted[number - 1]) + 1 if number else 0
        current.insert(to, name)
        if index != to:
            yield index, to
