"""Exact tests: whether a difference between two runs may be chance."""

from __future__ import annotations

from math import comb

ALPHA = 0.05
"""How often, at most, chance alone is taken for a difference."""


def mcnemar_exact(better: int, worse: int) -> float:
    """The two-sided p of pairs of which so many became better and so many worse; those that are alike say
    nothing.

    Source: McNemar, Psychometrika 12 (1947), by the binomial distribution instead of its approximation.
    """
    changed = better + worse
    tail = ways = 1
    for number in range(min(better, worse)):
        # From one binomial coefficient to the next.
        ways = ways * (changed - number) // (number + 1)
        tail += ways
    # A quotient of integers, which may be larger than any float.
    return min(1.0, 2 * tail / (1 << changed))


def fisher_worse(passed_before: int, runs_before: int, passed_now: int, runs_now: int) -> float:
    """The one-sided p of so few passes now, if runs pass as often as before.

    Source: Fisher's exact test, by the hypergeometric distribution.
    """
    passed = passed_before + passed_now
    fewest = max(0, passed - runs_before)
    tail = sum(
        comb(runs_now, number) * comb(runs_before, passed - number)
        for number in range(fewest, passed_now + 1)
    )
    return tail / comb(runs_before + runs_now, passed)
