"""Which of two sides belong together, where it is not enough to look for equals."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

Left = TypeVar("Left")
Right = TypeVar("Right")


def most_pairs(
    left: Sequence[Left], right: Sequence[Right], fits: Callable[[Left, Right], bool]
) -> dict[int, int]:
    """As many pairs as possible that fit, each item in at most one, as positions: left to right.

    What fits need not be transitive, so that taking the first that fits may leave over what another choice
    would not: augmenting paths in a bipartite graph.
    """
    fitting = [[j for j, other in enumerate(right) if fits(item, other)] for item in left]
    pairs: dict[int, int] = {}
    partners: dict[int, int] = {}
    # What a search has seen that found nothing leads nowhere for later ones either.
    dead: set[int] = set()
    for start in range(len(left)):
        way: dict[int, int] = {}
        free = _free(start, fitting, partners, way, dead)
        if free is None:
            dead |= way.keys()
        while free is not None:
            i, freed = way[free], pairs.get(way[free])
            pairs[i], partners[free] = free, i
            free = freed
    return pairs


def _free(
    start: int,
    fitting: Sequence[Sequence[int]],
    partners: dict[int, int],
    way: dict[int, int],
    dead: set[int],
) -> int | None:
    """An item of the right side that becomes paired when all on the way to it change their partners."""
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
