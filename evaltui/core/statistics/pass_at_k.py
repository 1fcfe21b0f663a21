"""pass@k and pass^k: how likely k runs of a case pass, at least one of them or all."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

# The k that are worth a figure.
_K_SHOWN = (1, 2, 3, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class PassRate:
    """pass@k (at least one of k runs passes) and pass^k (all of them do), both from 0 to 1."""

    k: int
    pass_at_k: float
    pass_hat_k: float


def pass_rates(runs: int, passed: int) -> tuple[PassRate, ...]:
    """The pass rates for k = 1, 2, 3, 5, 10 ... up to the number of runs."""
    return tuple(
        PassRate(k, pass_at_k(runs, passed, k), pass_hat_k(runs, passed, k)) for k in _K_SHOWN if k <= runs
    )


def pass_at_k(runs: int, passed: int, k: int) -> float:
    """The chance that at least one of k runs passes, estimated without bias from `passed` of `runs`.

    Source: Chen et al., Evaluating Large Language Models Trained on Code, arXiv:2107.03374. Raises ValueError
    for more than there are runs.
    """
    return _share(comb(runs, k) - comb(runs - _checked(runs, passed, k), k), runs, k)


def pass_hat_k(runs: int, passed: int, k: int) -> float:
    """The chance that all of k runs pass (pass^k), estimated without bias from `passed` of `runs`.

    Source: Yao et al., tau-bench, arXiv:2406.12045. Raises ValueError for more than there are runs.
    """
    return _share(comb(_checked(runs, passed, k), k), runs, k)


def _checked(runs: int, passed: int, k: int) -> int:
    if not 0 <= passed <= runs or not 1 <= k <= runs:
        raise ValueError(f"no rate at {k} from {passed} of {runs}")
    return passed


def _share(ways: int, runs: int, k: int) -> float:
    return ways / comb(runs, k)
