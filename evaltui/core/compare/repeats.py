"""Several runs of one case to one verdict, and what they say of how far it can be relied on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

from evaltui.core.compare.diff import calls_of
from evaltui.core.compare.repeat_rules import RunsUntilDecided, has_passed
from evaltui.core.model.confidence import Confidence
from evaltui.core.model.config import PassIf
from evaltui.core.model.errors import NOT_RECORDED
from evaltui.core.model.outcome import WORST_FIRST, Call, CaseResult, RepeatResult, Status
from evaltui.text.values import show_value, visible

# The k of pass@k and pass^k that are worth a figure.
_K_SHOWN = (1, 2, 3, 5, 10, 20, 50, 100)

# The calls of a run, turn by turn.
Trajectory = tuple[tuple[Call, ...], ...]


def in_words(trajectory: Trajectory) -> str:
    """`turn 1: get_mode; turn 2: set_temperature (degrees 19), notify_user`"""
    turns = [
        (number, ", ".join(map(_call, calls))) for number, calls in enumerate(trajectory, start=1) if calls
    ]
    if len(trajectory) > 1:
        return "; ".join(f"turn {number}: {calls}" for number, calls in turns)
    return turns[0][1] if turns else "no calls"


def _call(call: Call) -> str:
    args = ", ".join(f"{visible(name)} {show_value(value)}" for name, value in (call.args or {}).items())
    return f"{visible(call.name)} ({args})" if args else visible(call.name)


def case_over_repeats(
    eval_set_id: str,
    eval_id: str,
    repeats: Sequence[RepeatResult],
    pass_if: PassIf,
    path: str = "",
    confidence: Confidence | None = None,
) -> CaseResult:
    """`path` is the case's file as in `CaseId`. With a confidence, a sequential test says whether it passes.

    Runs that differ make a case FLAKY, which its policy lets pass or not; a mean is never the verdict. A run
    that is not in the recording is none. What the test leaves open is NOT_EVALUATED, however many runs
    passed."""
    worst = min(repeats, key=lambda repeat: WORST_FIRST.index(repeat.status))
    passed = sum(repeat.status is Status.PASSED for repeat in repeats)
    missing = sum(repeat.error is not None and repeat.error.type == NOT_RECORDED for repeat in repeats)
    status = Status.FLAKY if 0 < passed < len(repeats) - missing else worst.status
    decision = RunsUntilDecided(pass_if, confidence).decision(repeats) if confidence else None
    if decision is None:
        is_met = passed >= passes_needed(pass_if, len(repeats))
    else:
        is_met = decision.answer == "passes"
        if decision.answer == "undecided" and any(has_passed(one) is not None for one in repeats):
            status = Status.NOT_EVALUATED
    return CaseResult(
        eval_id=eval_id,
        status=status,
        metrics=worst.metrics,
        error=worst.error,
        eval_set_id=eval_set_id,
        turns=worst.turns,
        state=worst.state,
        repeats=tuple(repeats),
        policy=str(pass_if),
        policy_met=is_met,
        stopped=worst.stopped,
        path=path,
        decision=decision,
    )


def passes_needed(pass_if: PassIf, runs: int) -> float:
    """How many of so many runs a policy wants to pass; of a rate that need not be a whole number."""
    if pass_if == "all":
        return runs
    if pass_if == "majority":
        return runs // 2 + 1
    # A rate such as 0.6 of 5 must not become 3.0000000000000004.
    return round(float(pass_if) * runs, 9)


def pass_if_of(policy: str) -> PassIf:
    """The policy that a result names. Raises ValueError for what is none."""
    match policy:
        case "all":
            return "all"
        case "majority":
            return "majority"
        case _:
            return float(policy)


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


@dataclass(frozen=True)
class PassRate:
    """pass@k (at least one of k runs passes) and pass^k (all of them do), both from 0 to 1."""

    k: int
    at_least_one: float
    all: float


def pass_rates(case: CaseResult) -> tuple[PassRate, ...]:
    """For k = 1, 2, 3, 5, 10 ... up to the number of runs that were evaluated; what had an error did not
    pass."""
    runs, passed = case.evaluated_repeats, case.passed_repeats
    return tuple(
        PassRate(k, pass_at_k(runs, passed, k), pass_hat_k(runs, passed, k)) for k in _K_SHOWN if k <= runs
    )


@dataclass(frozen=True)
class TrajectoryGroup:
    """Runs of a case that made the same calls: their numbers from 0, and how each of them came out."""

    calls: Trajectory
    repeats: tuple[int, ...]
    statuses: tuple[Status, ...]

    @property
    def status(self) -> Status:
        """What all of them came out as; FLAKY where the same calls had different verdicts."""
        return self.statuses[0] if len(set(self.statuses)) == 1 else Status.FLAKY


def trajectory_groups(case: CaseResult) -> tuple[TrajectoryGroup, ...]:
    """The distinct trajectories of a case, the most frequent one first.

    Calls are equal as in scoring: names and arguments by `==`, ids left aside.
    """
    groups: list[tuple[Trajectory, list[int]]] = []
    for number, repeat in enumerate(case.repeats):
        calls = trajectory(repeat)
        same = next((numbers for known, numbers in groups if known == calls), None)
        if same is None:
            groups.append((calls, [number]))
        else:
            same.append(number)
    groups.sort(key=lambda group: -len(group[1]))
    return tuple(
        TrajectoryGroup(calls, tuple(numbers), tuple(case.repeats[number].status for number in numbers))
        for calls, numbers in groups
    )


def trajectory(repeat: RepeatResult) -> Trajectory:
    """The calls of a run, without turns at its end that have none.

    A run that was read from a log may know them from its comparison only.
    """
    if repeat.actual:
        turns = [calls_of(invocation.intermediate_data) for invocation in repeat.actual]
    else:
        turns = [tuple(diff.actual for diff in turn.calls if diff.actual) for turn in repeat.turns]
    while turns and not turns[-1]:
        turns.pop()
    return tuple(turns)
