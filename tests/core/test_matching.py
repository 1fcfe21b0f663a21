"""Pairs of what fits together, and alignments."""

import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.matching import pairing as matching
from evaltui.core.matching.pairing import Side, align, most_pairs

edges = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=9)
items = st.lists(st.integers(0, 5), max_size=8)


def unknown(item):
    """Keys that say nothing."""
    return 0, object()


@given(edges)
def test_no_more_pairs_are_possible(fitting):
    pairs = most_pairs(range(5), range(5), lambda one, other: (one, other) in fitting, unknown)
    assert set(pairs.items()) <= fitting
    assert len(set(pairs.values())) == len(pairs)
    assert not any(_is_matching(more) for more in combinations(fitting, len(pairs) + 1))


def _is_matching(pairs):
    return all(len({pair[side] for pair in pairs}) == len(pairs) for side in (0, 1))


def test_a_choice_is_taken_back_where_another_needs_it():
    fits = {(1, 4), (1, 1), (5, 4)}
    assert most_pairs([1, 5], [4, 1], lambda one, other: (one, other) in fits, unknown) == {0: 1, 1: 0}


def test_items_of_another_kind_are_not_compared():
    compared = []

    def fits(one, other):
        compared.append((one, other))
        return one == other

    pairs = most_pairs(range(2000), range(2000)[::-1], fits, lambda item: (item // 10, object()))
    assert all(i + j == 1999 for i, j in pairs.items())
    assert len(pairs) == 2000
    assert len(compared) == 2000 * 10


def test_of_thousands_equal_ones_are_paired_and_few_others_compared():
    asked = 0

    def fits(one, other):
        nonlocal asked
        asked += 1
        return abs(one - other) < 0.5

    left = [*range(1000), *(n + 10_000 for n in range(1000))]
    right = [*range(1000)[::-1], *(n + 10_000.25 for n in range(1000))]
    pairs = most_pairs(left, right, fits, lambda item: (0, item))
    assert len(pairs) == 2000
    assert asked < 2000 * 40


def cost(one, other):
    """Items of another parity are never paired."""
    return 0.0 if one == other else 1 + 0.1 * abs(one - other) if one % 2 == other % 2 else float("inf")


def aligned(left, right, price=cost):
    return align(Side(left, left), Side(right, right), price)


def plain(left, right):
    """The least cost of an alignment, by its definition."""
    best = [[float(i + j) for j in range(len(right) + 1)] for i in range(len(left) + 1)]
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            best[i + 1][j + 1] = min(best[i][j] + cost(one, other), best[i][j + 1] + 1, best[i + 1][j] + 1)
    return best[-1][-1]


def total(left, right, pairs):
    return len(left) + len(right) + sum(cost(left[i], right[j]) - 2 for i, j in pairs)


@given(items, items)
def test_the_alignment_is_the_cheapest_one(left, right):
    assert total(left, right, aligned(left, right)) == pytest.approx(plain(left, right))


@pytest.fixture
def few_pairs(monkeypatch):
    monkeypatch.setattr(matching, "MAX_PAIRS", 0)
    monkeypatch.setattr(matching, "_BAND", 1)


@pytest.mark.parametrize("seed", range(60))
def test_a_long_alignment_is_one_and_not_much_dearer(few_pairs, seed):
    draw = random.Random(seed)
    left = [draw.randrange(40) for _ in range(draw.randrange(1, 60))]
    right = [one for one in left if draw.random() < 0.8] + [draw.randrange(40) for _ in range(5)]
    pairs = aligned(left, right)
    assert pairs == sorted(set(pairs))
    for side in (0, 1):
        positions = [pair[side] for pair in pairs]
        assert positions == sorted(set(positions))
    assert total(left, right, pairs) <= 1.5 * plain(left, right) + 4


@pytest.mark.parametrize(
    "right", [range(1000, 2000), range(0, 2000, 2), range(1000)[::-1], [*range(500, 1000), *range(500)]]
)
def test_the_work_grows_with_the_length_alone(right):
    asked = 0

    def counted(one, other):
        nonlocal asked
        asked += 1
        return cost(one, other)

    aligned(range(1000), list(right), counted)
    assert asked < 100 * 1000
