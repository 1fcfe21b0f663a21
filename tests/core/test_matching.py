"""Pairs of what fits together."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from evaltui.core.compare.matching import most_pairs

edges = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=9)


@given(edges)
def test_no_more_pairs_are_possible(fitting):
    pairs = most_pairs(range(5), range(5), lambda one, other: (one, other) in fitting)
    assert set(pairs.items()) <= fitting
    assert len(set(pairs.values())) == len(pairs)
    assert not any(_is_matching(more) for more in combinations(fitting, len(pairs) + 1))


def _is_matching(pairs):
    return all(len({pair[side] for pair in pairs}) == len(pairs) for side in (0, 1))


def test_a_choice_is_taken_back_where_another_needs_it():
    fits = {(1, 4), (1, 1), (5, 4)}
    assert most_pairs([1, 5], [4, 1], lambda one, other: (one, other) in fits) == {0: 1, 1: 0}


def test_thousands_that_all_fit():
    assert len(most_pairs(range(1500), range(700), lambda one, other: True)) == 700
