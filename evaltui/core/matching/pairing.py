"""Pairing the items of two sequences: the cheapest alignment, and the largest number of pairs."""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

Item = TypeVar("Item")
# What it costs that two items, by their keys, stand side by side: 0 where they are equal, `inf` where never.
# An item that stands alone costs 1.
Cost = Callable[[int, int], float]
Pairs = list[tuple[int, int]]

# Up to so many pairs of items, the cheapest alignment is looked for among all.
MAX_PAIRS = 10_000
# Beyond that, so far from the straight line between the ends.
_BAND = 8


@dataclass(frozen=True)
class Side:
    """One of two sequences. Items with equal keys are equal; items of one kind are likely partners."""

    keys: Sequence[int]
    kinds: Sequence[Hashable]

    def between(self, start: int, end: int) -> Side:
        """The side without its first `start` and last `end` items."""
        inside = slice(start, len(self.keys) - end)
        return Side(self.keys[inside], self.kinds[inside])


def number_items(*sides: Sequence[Hashable]) -> list[list[int]]:
    """The sequences as numbers, where equal items of any sequence have the same number."""
    numbers: dict[Hashable, int] = {}
    return [[numbers.setdefault(item, len(numbers)) for item in side] for side in sides]


def common_ends(
    first: Sequence[Any], second: Sequence[Any], equal: Callable[[Any, Any], bool] = operator.eq
) -> tuple[int, int]:
    """The number of equal items at the start of two sequences, and at the end of the rest."""
    shorter = min(len(first), len(second))
    head = next((at for at in range(shorter) if not equal(first[at], second[at])), shorter)
    rest = range(1, shorter - head + 1)
    return head, next((at - 1 for at in rest if not equal(first[-at], second[-at])), shorter - head)


def align(left: Side, right: Side, cost: Cost) -> Pairs:
    """The paired positions of the cheapest alignment, ascending on both sides.

    Equal items at both ends are paired. The rest is aligned exactly where it has at most `MAX_PAIRS` pairs.
    For longer sequences, only alignments near the diagonal, and around equal items or items of one kind, are
    tried, and the cheapest of them is returned.
    """
    start, end = common_ends(left.keys, right.keys)
    inside = left.between(start, end), right.between(start, end)
    return [
        *((k, k) for k in range(start)),
        *((start + i, start + j) for i, j in _align_inside(*inside, _Costs(cost))),
        *((len(left.keys) - k, len(right.keys) - k) for k in range(end, 0, -1)),
    ]


class _Costs:
    """Cached costs of pairs."""

    def __init__(self, cost: Cost) -> None:
        self._cost = cost
        self._computed: defaultdict[int, dict[int, float]] = defaultdict(dict)

    def of(self, key: int, others: Sequence[int]) -> list[float]:
        """Costs of pairing an item with each of several others."""
        computed = self._computed[key]
        for other in others:
            if other not in computed:
                computed[other] = self._cost(key, other)
        return [computed[other] for other in others]

    def total(self, left: Sequence[int], right: Sequence[int], pairs: Pairs) -> float:
        return len(left) + len(right) - sum(2 - self.of(left[i], (right[j],))[0] for i, j in pairs)


def _align_inside(left: Side, right: Side, costs: _Costs) -> Pairs:
    straight = _cheapest_pairs(left.keys, right.keys, costs)
    if len(left.keys) * len(right.keys) <= MAX_PAIRS:
        return straight
    anchors = [_anchors(left.keys, right.keys)]
    if left.kinds != left.keys:
        anchors.append(_anchors(left.kinds, right.kinds))
    tried = [
        straight,
        *(list(_pairs_between(anchor_pairs, left.keys, right.keys, costs)) for anchor_pairs in anchors),
    ]
    return min(tried, key=lambda pairs: costs.total(left.keys, right.keys, pairs))


def _pairs_between(
    anchors: Pairs, left: Sequence[int], right: Sequence[int], costs: _Costs
) -> Iterator[tuple[int, int]]:
    """The anchors, and pairs between them."""
    for (i, j), (next_i, next_j) in pairwise([(-1, -1), *anchors, (len(left), len(right))]):
        gap = _cheapest_pairs(left[i + 1 : next_i], right[j + 1 : next_j], costs)
        yield from ((i + 1 + k, j + 1 + m) for k, m in gap)
        if next_i < len(left):
            yield next_i, next_j


def _anchors(left: Sequence[Hashable], right: Sequence[Hashable]) -> Pairs:
    """The most pairs of equal items in the same order on both sides."""
    equal = _equal_pairs(left, right)
    # The longest ascending subsequence: where a run of each length ends at the least, and what came before.
    ends: list[int] = []
    last: list[int] = []
    before: list[int | None] = []
    for number, (_, j) in enumerate(equal):
        length = bisect_left(ends, j)
        before.append(last[length - 1] if length else None)
        ends[length : length + 1] = [j]
        last[length : length + 1] = [number]
    chain: Pairs = []
    at = last[-1] if last else None
    while at is not None:
        chain.append(equal[at])
        at = before[at]
    return chain[::-1]


def _equal_pairs(left: Sequence[Hashable], right: Sequence[Hashable]) -> Pairs:
    """Pairs of equal items: the first with the first, and so on."""
    places: defaultdict[Hashable, deque[int]] = defaultdict(deque)
    for j, item in enumerate(right):
        places[item].append(j)
    return [(i, places[item].popleft()) for i, item in enumerate(left) if places[item]]


def _cheapest_pairs(left: Sequence[int], right: Sequence[int], costs: _Costs) -> Pairs:
    """The cheapest alignment, among all or among those near the diagonal where there are too many."""
    # Per row its first column and per cell: 0 leaves the left item alone, 1 the right one, 2 pairs them.
    steps: list[tuple[int, bytearray]] = []
    above, above_start = [float(j) for j in range(len(right) + 1)], 0
    for key, (start, end) in zip(left, _windows(len(left), len(right)), strict=True):
        above = above[start - above_start : end + 1 - above_start]
        above += [float("inf")] * (end + 1 - start - len(above))
        row = [above[0] + 1]
        step = bytearray()
        for diagonal, upper, change in zip(above, above[1:], costs.of(key, right[start:end]), strict=False):
            best, choice = diagonal + change, 2
            if upper + 1 < best:
                best, choice = upper + 1, 0
            if row[-1] + 1 < best:
                best, choice = row[-1] + 1, 1
            row.append(best)
            step.append(choice)
        steps.append((start, step))
        above, above_start = row, start

    pairs: Pairs = []
    i, j = len(left), len(right)
    while i and j:
        start, step = steps[i - 1]
        choice = step[j - 1 - start] if j > start else 0
        if choice == 2:
            pairs.append((i - 1, j - 1))
        i -= choice != 1
        j -= choice != 0
    return pairs[::-1]


def _windows(rows: int, columns: int) -> Iterator[tuple[int, int]]:
    """The range of columns to compare with each row: all, or those near the diagonal."""
    if rows * columns <= MAX_PAIRS:
        yield from [(0, columns)] * rows
        return
    band = max(_BAND, MAX_PAIRS // (2 * max(rows, columns)))
    for row in range(rows):
        yield max(0, row * columns // rows - band), min(columns, -(-(row + 1) * columns // rows) + band)


def most_pairs(
    left: Sequence[Item],
    right: Sequence[Item],
    fits: Callable[[Item, Item], bool],
    keys: Callable[[Item], tuple[Hashable, Hashable]],
) -> dict[int, int]:
    """The largest set of fitting pairs, as positions from left to right; each item is in at most one pair.

    `keys` are two keys of an item: items with different first keys never fit, items with equal second keys
    always fit. Above `MAX_PAIRS` possible pairs, equal items are paired first, then only items at similar
    positions.
    """
    groups: dict[Hashable, tuple[list[int], list[int]]] = {}
    for side, items in enumerate((left, right)):
        for position, item in enumerate(items):
            groups.setdefault(keys(item)[0], ([], []))[side].append(position)
    pairs: dict[int, int] = {}
    for mine, theirs in groups.values():
        if len(mine) * len(theirs) > MAX_PAIRS:
            equal = _equal_pairs([keys(left[i])[1] for i in mine], [keys(right[j])[1] for j in theirs])
            pairs |= {mine[i]: theirs[j] for i, j in equal}
            met = set(pairs.values())
            mine, theirs = [i for i in mine if i not in pairs], [j for j in theirs if j not in met]
        find = _most_pairs if len(mine) * len(theirs) <= MAX_PAIRS else _near_pairs
        matched = find([left[i] for i in mine], [right[j] for j in theirs], fits)
        pairs |= {mine[i]: theirs[j] for i, j in matched.items()}
    return pairs


def _near_pairs(
    left: Sequence[Item], right: Sequence[Item], fits: Callable[[Item, Item], bool]
) -> dict[int, int]:
    pairs: dict[int, int] = {}
    met: set[int] = set()
    for i, (start, end) in enumerate(_windows(len(left), len(right))):
        free = (j for j in range(start, end) if j not in met)
        if (match := next((j for j in free if fits(left[i], right[j])), None)) is not None:
            pairs[i] = match
            met.add(match)
    return pairs


def _most_pairs(
    left: Sequence[Item], right: Sequence[Item], fits: Callable[[Item, Item], bool]
) -> dict[int, int]:
    """The largest matching, by augmenting paths in a bipartite graph; a greedy choice would pair fewer
    items."""
    fitting = [[j for j, other in enumerate(right) if fits(item, other)] for item in left]
    pairs: dict[int, int] = {}
    partners: dict[int, int] = {}
    # What a search has seen that found nothing leads nowhere for later ones either.
    dead: set[int] = set()
    for start in range(len(left)):
        way: dict[int, int] = {}
        free = _free_partner(start, fitting, partners, way, dead)
        if free is None:
            dead |= way.keys()
        while free is not None:
            i, freed = way[free], pairs.get(way[free])
            pairs[i], partners[free] = free, i
            free = freed
    return pairs


def _free_partner(
    start: int,
    fitting: Sequence[Sequence[int]],
    partners: dict[int, int],
    way: dict[int, int],
    dead: set[int],
) -> int | None:
    """A right item that can be paired if the items on the way to it change partners; None without one."""
    waiting = deque([start])
    while waiting:
        i = waiting.popleft()
        for j in fitting[i]:
            if j in way or j in dead:
                continue
            way[j] = i
            if j not in partners:
                return j
            waiting.append(partners[j])
    return None
