"""Statistics against closed forms, against scipy, and the sequential test against its own promise."""

import random
from itertools import product
from math import sqrt

import pytest
from scipy import stats

from evaltui.core.compare.repeats import SequentialTest
from evaltui.core.statistics import (
    clustered_mean,
    clustered_rate,
    fisher_worse,
    mcnemar_exact,
    quantile,
    t_quantile,
    wilson,
)

SIZES = [1, 2, 3, 4, 5, 8, 13, 40, 99, 100, 101, 500, 20_000]


@pytest.mark.parametrize("share", [0.5, 0.9, 0.95, 0.975, 0.995])
def test_quantiles_of_t_are_those_of_scipy(share):
    for freedom in SIZES:
        assert t_quantile(share, freedom) == pytest.approx(stats.t.ppf(share, freedom), rel=1e-8, abs=1e-12)


def test_wilson_intervals_are_those_of_scipy():
    for runs in (1, 2, 3, 10, 80, 1000, 10**7):
        for passed in {0, 1, runs // 3, runs - 1, runs}:
            wanted = stats.binomtest(passed, runs).proportion_ci(0.95, method="wilson")
            assert wilson(passed, runs) == pytest.approx(tuple(wanted), abs=1e-12)


def test_mcnemar_is_the_binomial_test_of_scipy():
    for better, worse in product([0, 1, 2, 5, 7, 30, 400], repeat=2):
        wanted = stats.binomtest(better, better + worse).pvalue if better + worse else 1.0
        assert mcnemar_exact(better, worse) == pytest.approx(wanted, rel=1e-9)


def test_fisher_is_that_of_scipy():
    for before, now in product([1, 3, 5, 12], repeat=2):
        for passed_before, passed_now in product(range(before + 1), range(now + 1)):
            table = [[passed_now, now - passed_now], [passed_before, before - passed_before]]
            wanted = stats.fisher_exact(table, alternative="less").pvalue
            assert fisher_worse(passed_before, before, passed_now, now) == pytest.approx(wanted, rel=1e-9)


def test_quantiles_between_two_values():
    assert quantile([3, 1, 2], 0.5) == 2
    assert quantile([1, 2], 0.5) == 1.5
    assert quantile([7], 0.95) == 7
    generator = random.Random(1)
    values = [generator.expovariate(1) for _ in range(57)]
    for share in (0.0, 0.05, 0.5, 0.95, 1.0):
        assert quantile(values, share) == pytest.approx(stats.quantile(values, share, method="linear"))


def test_a_mean_of_cases_that_were_run_once_is_that_of_a_sample():
    values = [0.2, 0.9, 1.0, 0.4, 0.75]
    found = clustered_mean([[value] for value in values])
    wanted = stats.ttest_1samp(values, 0).confidence_interval()
    assert found.mean == pytest.approx(0.65)
    assert found.standard_error == pytest.approx(stats.sem(values))
    assert found.interval == pytest.approx((wanted.low, wanted.high))


def cluster_robust(clusters):
    """The error of a mean by the sandwich, each case with the same weight, with the factor G/(G-1)."""
    weights = [[1 / len(values)] * len(values) for values in clusters]
    total = sum(map(sum, weights))
    mean = sum(w * v for ws, vs in zip(weights, clusters, strict=True) for w, v in zip(ws, vs, strict=True))
    mean /= total
    inner = [
        sum(w * (v - mean) for w, v in zip(ws, vs, strict=True))
        for ws, vs in zip(weights, clusters, strict=True)
    ]
    groups = len(clusters)
    return sqrt(groups / (groups - 1) * sum(one * one for one in inner)) / total


def test_a_standard_error_over_repeats_is_the_cluster_robust_one():
    generator = random.Random(2)
    clusters = [[generator.random() for _ in range(generator.randint(1, 6))] for _ in range(9)]
    assert clustered_mean(clusters).standard_error == pytest.approx(cluster_robust(clusters))


def test_repeats_of_one_case_say_nothing_of_others():
    found = clustered_mean([[0.2, 0.4, 0.6]])
    assert (round(found.mean, 9), found.standard_error, found.interval) == (0.4, None, None)


def test_repeating_a_case_that_always_does_the_same_narrows_nothing():
    once = clustered_rate([(1, 1)] * 14 + [(0, 1)] * 2)
    often = clustered_rate([(9, 9)] * 14 + [(0, 9)] * 2)
    assert once.interval == pytest.approx(wilson(14, 16))
    assert often.interval == pytest.approx(once.interval)
    assert clustered_rate([(5, 5)] * 16).interval == pytest.approx(wilson(16, 16))


def test_repeats_that_are_as_unlike_as_cases_narrow_the_interval():
    low, high = clustered_rate([(4, 5), (5, 5), (3, 5), (4, 5), (4, 5), (4, 5)]).interval
    assert wilson(24, 30) == pytest.approx((low, high), abs=1e-9)
    assert clustered_rate([(3, 5)]).interval == wilson(3, 5)
    assert clustered_rate([(3, 5), (0, 0)]).cases == 1


TEST = SequentialTest(0.7, 0.9, 0.05)


def test_the_sequential_test_is_walds():
    assert [TEST.decide(passed, 0) for passed in (11, 12)] == ["open", "passes"]
    assert [TEST.decide(0, failed) for failed in (2, 3)] == ["open", "does not pass"]
    for passed, failed in product(range(30), range(10)):
        ratio = (0.9 / 0.7) ** passed * (0.1 / 0.3) ** failed
        wanted = "passes" if ratio >= 20 else "does not pass" if ratio <= 1 / 20 else "open"
        assert TEST.decide(passed, failed) == wanted


def test_no_run_is_started_in_vain():
    """No way of so many runs comes to a decision earlier, and one of them comes to it then."""
    for passed, failed in product(range(20), range(6)):
        if TEST.decide(passed, failed) != "open":
            assert TEST.least(passed, failed) == 0
            continue
        least = TEST.least(passed, failed)
        ways = [TEST.decide(passed + up, failed + least - up) for up in range(least + 1)]
        earlier = [TEST.decide(passed + up, failed + least - 1 - up) for up in range(least)]
        assert set(earlier) == {"open"}
        assert {ways[0], ways[-1]} != {"open"}


def outcomes(test, rate, most):
    """The exact chance of each decision at a pass rate, and the mean number of runs."""
    ways, chances, runs = {(0, 0): 1.0}, {"passes": 0.0, "does not pass": 0.0, "open": 0.0}, 0.0
    for _ in range(most):
        onward = {}
        for (passed, failed), chance in ways.items():
            runs += chance
            for state, share in (((passed + 1, failed), rate), ((passed, failed + 1), 1 - rate)):
                onward[state] = onward.get(state, 0.0) + chance * share
        ways = {}
        for state, chance in onward.items():
            if (decision := test.decide(*state)) == "open":
                ways[state] = chance
            else:
                chances[decision] += chance
    chances["open"] = sum(ways.values())
    return chances, runs


def fixed_runs(test):
    """The least fixed number of runs at which some threshold is wrong as seldom at both ends of the zone."""
    runs = 1
    while True:
        needed = int(stats.binom.ppf(1 - test.error, runs, test.low)) + 1
        if stats.binom.cdf(needed - 1, runs, test.high) <= test.error:
            return runs
        runs += 1


@pytest.mark.parametrize("test", [TEST, SequentialTest(0.4, 0.6, 0.05), SequentialTest(0.75, 0.95, 0.01)])
def test_it_is_wrong_as_seldom_as_stated(test):
    for rate in (0.0, test.low / 2, test.low):
        assert outcomes(test, rate, 400)[0]["passes"] <= test.error
    for rate in (test.high, (1 + test.high) / 2, 1.0):
        assert outcomes(test, rate, 400)[0]["does not pass"] <= test.error


def test_it_needs_fewer_runs_than_a_fixed_number():
    fixed = fixed_runs(TEST)
    for rate, share in ((1.0, 0.5), (0.5, 0.5), (0.95, 0.75)):
        assert outcomes(TEST, rate, 400)[1] <= share * fixed
