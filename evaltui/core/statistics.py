"""Rates, means and quantiles with intervals, and tests of differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import atan, ceil, comb, cos, floor, fsum, pi, sin, sqrt
from statistics import NormalDist
from typing import NamedTuple

from evaltui.text.figures import show_rate_and_interval

CONFIDENCE = 0.95
"""Confidence level of every interval that is shown."""
_SHARE = (1 + CONFIDENCE) / 2


class Interval(NamedTuple):
    """An interval from `low` to `high`."""

    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """A rate or mean of a sample of cases, with its 95 % interval."""

    mean: float
    cases: int
    """Number of cases with a value."""
    standard_error: float | None
    """The standard error, clustered by case; None for a single case."""
    low: float | None
    """Low end of the interval; None for a single case."""
    high: float | None
    """High end of the interval; None for a single case."""

    @property
    def interval(self) -> Interval | None:
        """The interval; None for a single case."""
        return None if self.low is None or self.high is None else Interval(self.low, self.high)


@dataclass(frozen=True)
class RunsRate:
    """The share of runs that pass, in which each case has equal weight, with its 95 % interval."""

    passed: int
    of: int
    mean: float
    cases: int
    """Number of cases with a value."""
    standard_error: float | None
    """The standard error, clustered by case; None for a single case."""
    low: float
    high: float

    @property
    def interval(self) -> Interval:
        return Interval(self.low, self.high)

    def __str__(self) -> str:
        """Rate and interval as text: `84% (74–90%)`."""
        return show_rate_and_interval(self.mean, self.interval)


def wilson(passed: int, runs: int) -> Interval:
    """The interval of a rate of independent runs or cases.

    Source: Wilson, Probable inference, JASA 22 (1927).
    """
    return _wilson(passed / runs, runs)


def _wilson(rate: float, number: float) -> Interval:
    z = NormalDist().inv_cdf(_SHARE)
    shrunk = 1 + z * z / number
    centre = (rate + z * z / (2 * number)) / shrunk
    half = z / shrunk * sqrt(rate * (1 - rate) / number + z * z / (4 * number * number))
    # Rounding must not lead past what is possible.
    return Interval(
        max(0.0, centre - half) if rate > 0 else 0.0, min(1.0, centre + half) if rate < 1 else 1.0
    )


def clustered_mean(values_by_case: Sequence[Sequence[float]]) -> Estimate:
    """The mean of the cases' means, with a standard error clustered by case.

    Each case has equal weight, for any number of runs. This is a weighted mean, and its cluster-robust error
    with the small-sample factor G/(G-1) (CR1) equals the standard deviation of the cases' means divided by
    the root of their number G; the interval is of t with G-1 degrees of freedom. Cases without values are
    ignored. Source: Cameron and Miller, A practitioner's guide to cluster-robust inference, Journal of Human
    Resources 50 (2015).
    """
    means = [fsum(values) / len(values) for values in values_by_case if values]
    cases = len(means)
    mean = fsum(means) / cases
    if cases == 1:
        return Estimate(mean, cases, None, None, None)
    error = sqrt(fsum((case_mean - mean) ** 2 for case_mean in means) / (cases - 1) / cases)
    half = t_quantile(_SHARE, cases - 1) * error
    return Estimate(mean, cases, error, mean - half, mean + half)


def clustered_rate(passed_of: Sequence[tuple[int, int]]) -> RunsRate:
    """The share of runs that pass, from `(passed, runs)` of each case; each case has equal weight.

    Runs of one case are correlated: five runs of each of 16 cases tell less than 80 cases. The interval is
    Wilson's for the effective number of independent runs, at least the number of cases; for a single case,
    for the number of its runs. Sources: Korn and Graubard, Survey Methodology 24 (1998); Dean and Pagano,
    Journal of Survey Statistics and Methodology 3 (2015).
    """
    evaluated = [(passed, runs) for passed, runs in passed_of if runs]
    estimate = clustered_mean([[passed / runs] for passed, runs in evaluated])
    passed, runs = (sum(counts) for counts in zip(*evaluated, strict=True))
    rate, error = estimate.mean, estimate.standard_error
    if error is None:
        return RunsRate(passed, runs, rate, 1, None, *_wilson(rate, runs))
    worth = float(estimate.cases)
    if 0 < rate < 1:
        adjusted = (t_quantile(_SHARE, runs - 1) / t_quantile(_SHARE, estimate.cases - 1)) ** 2
        alike = rate * (1 - rate) / error**2 * adjusted if error else float(runs)
        worth = min(max(worth, alike), float(runs))
    return RunsRate(passed, runs, rate, estimate.cases, error, *_wilson(rate, worth))


def quantile(values: Sequence[float], share: float) -> float:
    """The quantile of a share, such as 0.95 for p95, interpolated linearly.

    Source: Hyndman and Fan, Sample quantiles, The American Statistician 50 (1996), definition 7.
    """
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below, above = ordered[floor(place)], ordered[ceil(place)]
    return below + (above - below) * (place - floor(place))


# Student's t distribution, whose quantiles the standard library has not.

# From here on the expansion below is right to nine digits.
_MANY_DEGREES = 100
_STEPS = 60


@lru_cache(maxsize=256)
def t_quantile(share: float, freedom: int) -> float:
    """Quantile of Student's t distribution at `share`, 0.5 to 1; `freedom` is at least 1."""
    if freedom >= _MANY_DEGREES:
        return _expansion(NormalDist().inv_cdf(share), freedom)
    low, high = 0.0, 1.0
    while _distribution(high, freedom) < share:
        high *= 2
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _distribution(middle, freedom) < share else (low, middle)
    return (low + high) / 2


def _distribution(t: float, freedom: int) -> float:
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
    """Student's t quantile approximated from the normal one. Source: Abramowitz and Stegun, 26.7.5."""
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return fsum(term / float(freedom) ** power for power, term in enumerate(terms))


# The k that are worth a figure.
_K_SHOWN = (1, 2, 3, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class PassRate:
    """pass@k (at least one of k runs passes) and pass^k (all of k runs pass), both from 0 to 1."""

    k: int
    pass_at_k: float
    pass_hat_k: float


def pass_rates(runs: int, passed: int) -> tuple[PassRate, ...]:
    """The pass rates for k = 1, 2, 3, 5, 10 ... up to the number of runs."""
    return tuple(
        PassRate(k, pass_at_k(runs, passed, k), pass_hat_k(runs, passed, k)) for k in _K_SHOWN if k <= runs
    )


def pass_at_k(runs: int, passed: int, k: int) -> float:
    """The probability that at least one of k runs passes, an unbiased estimate from `passed` of `runs`.

    Source: Chen et al., Evaluating Large Language Models Trained on Code, arXiv:2107.03374.
    """
    return (comb(runs, k) - comb(runs - passed, k)) / comb(runs, k)


def pass_hat_k(runs: int, passed: int, k: int) -> float:
    """The probability that all of k runs pass (pass^k), an unbiased estimate from `passed` of `runs`.

    Source: Yao et al., tau-bench, arXiv:2406.12045.
    """
    return comb(passed, k) / comb(runs, k)


ALPHA = 0.05
"""The highest probability with which chance alone may count as a difference."""


def mcnemar_exact(better: int, worse: int) -> float:
    """The two-sided p-value of pairs with numbers of better and worse ones; equal pairs are ignored.

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
    """The one-sided p-value of so few passes now if the pass rate is unchanged.

    Source: Fisher's exact test, by the hypergeometric distribution.
    """
    passed = passed_before + passed_now
    fewest = max(0, passed - runs_before)
    tail = sum(
        comb(runs_now, number) * comb(runs_before, passed - number)
        for number in range(fewest, passed_now + 1)
    )
    return tail / comb(runs_before + runs_now, passed)
