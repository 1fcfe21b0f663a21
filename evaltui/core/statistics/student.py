"""Quantiles of Student's t distribution, which the standard library has not."""

from __future__ import annotations

from functools import lru_cache
from math import atan, cos, fsum, pi, sin, sqrt
from statistics import NormalDist

# From here on the expansion below is right to nine digits.
_MANY = 100
_STEPS = 60


@lru_cache(maxsize=256)
def t_quantile(share: float, freedom: int) -> float:
    """Quantile of Student's t distribution at `share`, 0.5 to 1; `freedom` is at least 1."""
    if freedom >= _MANY:
        return _expansion(NormalDist().inv_cdf(share), freedom)
    low, high = 0.0, 1.0
    while _below(high, freedom) < share:
        high *= 2
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _below(middle, freedom) < share else (low, middle)
    return (low + high) / 2


def _below(t: float, freedom: int) -> float:
    """The distribution function for t from 0. Source: Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    angle = atan(t / sqrt(freedom))
    odd = freedom % 2
    term = cos(angle) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for power in range(2 + odd, freedom - 1, 2):
        term *= (power - 1) / power * cos(angle) ** 2
        total += term
    within = (angle + sin(angle) * total) * 2 / pi if odd else sin(angle) * total
    return (1 + within) / 2


def _expansion(z: float, freedom: int) -> float:
    """From the quantile of the normal distribution. Source: Abramowitz and Stegun, 26.7.5."""
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return fsum(term / float(freedom) ** power for power, term in enumerate(terms))
