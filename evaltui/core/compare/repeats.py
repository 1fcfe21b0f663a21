"""The repeats of a case: their verdict together, and how many repeats are needed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import count
from math import ceil, log
from typing import Any, Literal

from evaltui.core.compare.explain import args_in_words
from evaltui.core.model.confidence import Answer, Confidence, Decision
from evaltui.core.model.config import PassIf
from evaltui.core.model.errors import NOT_RECORDED, ErrorKind
from evaltui.core.model.json_values import is_number
from evaltui.core.model.outcome import (
    Call,
    CaseResult,
    RepeatResult,
    Status,
    Trajectory,
    deciding_repeat,
    worst_status,
)
from evaltui.text.figures import counted
from evaltui.text.values import visible

_Outcome = Literal["passes", "does not pass", "open"]


@dataclass(frozen=True)
class SequentialTest:
    """Wald's sequential probability ratio test of a pass rate: at least `high`, or at most `low`.

    Between the two rates, both answers are right. The bounds of the ratio are 1/error and error. By Ville's
    inequality, the probability of a wrong answer is at most `error` for all other rates; a test that is
    stopped early has no answer. Sources: Wald, Annals of Mathematical Statistics 16 (1945); Ville, Étude
    critique de la notion de collectif (1939).
    """

    low: float
    high: float
    error: float

    @cached_property
    def _weights(self) -> tuple[float, float, float]:
        """Weights of a passed and of a failed run, and the weight that decides."""
        return log(self.high / self.low), log((1 - self.low) / (1 - self.high)), log(1 / self.error)

    def decide(self, passed: int, failed: int) -> _Outcome:
        """The decision after some runs; runs after the first decision must not be added."""
        up, down, needed = self._weights
        evidence = passed * up - failed * down
        if evidence >= needed:
            return "passes"
        return "does not pass" if evidence <= -needed else "open"

    @property
    def runs_to_pass(self) -> int:
        """The number of runs after which a case passes if all of them pass."""
        up, _, needed = self._weights
        return ceil(needed / up)

    def progress(self, passed: int, failed: int) -> float:
        """The progress towards a decision: 0 at the start, 1 for a decision."""
        up, down, needed = self._weights
        return min(1.0, abs(passed * up - failed * down) / needed)

    def least(self, passed: int, failed: int) -> int:
        """The minimum number of further runs before a decision."""
        if self.decide(passed, failed) != "open":
            return 0
        up, down, needed = self._weights
        evidence = passed * up - failed * down
        return min(ceil((needed - evidence) / up), ceil((needed + evidence) / down))


# Runs without a verdict after which a case is given up: more of them would hardly have one.
_MAX_UNJUDGED = 3
# A case ended so by its agent did not pass; of other errors nobody knows what it would have come to.
_AGENT_ERRORS = (ErrorKind.AGENT, ErrorKind.TIMEOUT)
# The width of the zone below a pass rate.
_ZONE_WIDTH = 0.2


@dataclass(frozen=True, slots=True)
class FixedRuns:
    """A fixed number of runs."""

    most: int

    def due(self, finished: Mapping[int, RepeatResult]) -> Collection[int]:
        """The numbers of the missing runs, in order; `finished` are by number from 0."""
        return [number for number in range(self.most) if number not in finished]

    def is_over(self, finished: Mapping[int, RepeatResult]) -> bool:
        """Whether no further run is needed."""
        return len(finished) >= self.most

    def urgency(self, finished: Mapping[int, RepeatResult]) -> float:
        """Urgency of further runs: 0 for the case that is furthest from an answer, up to 1."""
        del finished
        return 1.0


@dataclass(frozen=True)
class _Standing:
    """State of a sequential test after the finished runs, in the order of their numbers."""

    answer: Answer | None
    """The answer; None before a decision."""
    runs: int
    passed: int
    failed: int


@dataclass(frozen=True)
class RunsUntilDecided:
    """Runs until a sequential test has an answer or can have none.

    Runs count in the order of their numbers, not in the order in which they end: failing runs may take
    longer, which would bias the test.
    """

    pass_if: PassIf
    confidence: Confidence

    @property
    def most(self) -> int:
        return self.confidence.max_runs

    @cached_property
    def test(self) -> SequentialTest:
        return SequentialTest(*zone_of(self.pass_if), 1 - self.confidence.level)

    def due(self, finished: Mapping[int, RepeatResult]) -> Collection[int]:
        standing = self._standing(finished)
        if standing.answer is not None:
            return ()
        end = standing.runs + self.test.least(standing.passed, standing.failed)
        return [number for number in range(standing.runs, end) if number not in finished]

    def is_over(self, finished: Mapping[int, RepeatResult]) -> bool:
        return self._standing(finished).answer is not None

    def urgency(self, finished: Mapping[int, RepeatResult]) -> float:
        standing = self._standing(finished)
        return self.test.progress(standing.passed, standing.failed)

    def decision(self, repeats: Sequence[RepeatResult]) -> Decision:
        """The decision of the test after all runs."""
        answer = self._standing(dict(enumerate(repeats))).answer
        level, most = self.confidence.level, self.confidence.max_runs
        return Decision(answer or "undecided", level, most, self.test.low, self.test.high)

    def _standing(self, finished: Mapping[int, RepeatResult]) -> _Standing:
        passed = failed = unjudged = 0
        answer: Answer | None = None
        for runs in count():
            decided = self.test.decide(passed, failed)
            if decided != "open":
                answer = decided
            elif unjudged == _MAX_UNJUDGED or runs + self.test.least(passed, failed) > self.most:
                answer = "undecided"
            if answer is not None or runs not in finished:
                return _Standing(answer, runs, passed, failed)
            match has_passed(finished[runs]):
                case True:
                    passed += 1
                case False:
                    failed += 1
                case None:
                    unjudged += 1
        raise AssertionError


RepeatRule = FixedRuns | RunsUntilDecided
"""The number of runs of a case."""


def has_passed(repeat: RepeatResult) -> bool | None:
    """Whether the agent met the expectations in a run; None where this is unknown."""
    if repeat.status in (Status.PASSED, Status.FAILED):
        return repeat.status is Status.PASSED
    return False if repeat.error is not None and repeat.error.kind in _AGENT_ERRORS else None


def zone_of(pass_if: PassIf) -> tuple[float, float]:
    """The pass rates between which either answer is right; the case passes above and fails below them."""
    if pass_if == "majority":
        return 0.4, 0.6
    rate = 0.9 if pass_if == "all" or pass_if == 1 else float(pass_if)
    # A pass rate of 0 or below cannot be tested.
    low = rate - _ZONE_WIDTH if rate > _ZONE_WIDTH else rate / 2
    return round(low, 9), rate


# A hundred thousand cases have the same one.
@lru_cache
def repeat_rule(runs: int, pass_if: PassIf, confidence: Confidence | None) -> RepeatRule:
    """The rule for the number of runs; `runs` applies without a confidence.

    Raises ValueError where no case could ever pass.
    """
    if confidence is None:
        return FixedRuns(runs)
    rule = RunsUntilDecided(pass_if, confidence)
    if rule.most < (fewest := rule.test.runs_to_pass):
        raise ValueError(
            f"max-runs {rule.most} is too low: with confidence {confidence.level:g} and pass-if {pass_if} no "
            f"case passes in fewer than {counted(fewest, 'run')}. Raise --max-runs"
        )
    return rule


def trajectory_text(trajectory: Trajectory) -> str:
    """A trajectory as text: `turn 1: get_mode; turn 2: set_temperature (degrees 19), notify_user`."""
    turns = [
        (number, ", ".join(map(_call, calls))) for number, calls in enumerate(trajectory, start=1) if calls
    ]
    if len(trajectory) > 1:
        return "; ".join(f"turn {number}: {calls}" for number, calls in turns)
    return turns[0][1] if turns else "no calls"


def _call(call: Call) -> str:
    args = args_in_words(call.args)
    return f"{visible(call.name)} ({args})" if args else visible(call.name)


def case_over_repeats(
    eval_set_id: str,
    eval_id: str,
    repeats: Sequence[RepeatResult],
    pass_if: PassIf,
    path: str = "",
    confidence: Confidence | None = None,
) -> CaseResult:
    """The result of a case over its repeats.

    `path` is the case's file as in `CaseId`. With a confidence, a sequential test decides. A case whose
    repeats differ is FLAKY, and its policy decides whether it passes. Repeats without a verdict make no case
    FLAKY, nor do runs that are missing in the recording. Where repeats without a verdict leave the policy
    open, or the test has no decision, the case is NOT_EVALUATED.
    """
    statuses = [repeat.status for repeat in repeats]
    passed, unjudged = statuses.count(Status.PASSED), statuses.count(Status.NOT_EVALUATED)
    missing = sum(repeat.error is not None and repeat.error.type == NOT_RECORDED for repeat in repeats)
    if 0 < passed < len(repeats) - unjudged - missing:
        status = Status.FLAKY
    elif 0 < passed == len(repeats) - unjudged:
        status = Status.PASSED
    else:
        status = worst_status(statuses)
    decision = RunsUntilDecided(pass_if, confidence).decision(repeats) if confidence else None
    if decision is None:
        needed = passes_needed(pass_if, len(repeats))
        is_met = passed >= needed
        if 0 < passed < needed <= passed + unjudged:
            status = Status.NOT_EVALUATED
    else:
        is_met = decision.answer == "passes"
        if decision.answer == "undecided" and any(has_passed(repeat) is not None for repeat in repeats):
            status = Status.NOT_EVALUATED
    deciding = repeats[deciding_repeat(status, statuses)]
    return CaseResult(
        eval_id=eval_id,
        status=status,
        metrics=deciding.metrics,
        error=deciding.error,
        eval_set_id=eval_set_id,
        turns=deciding.turns,
        state=deciding.state,
        repeats=tuple(repeats),
        policy=str(pass_if),
        policy_met=is_met,
        stopped=deciding.stopped,
        path=path,
        decision=decision,
    )


def passes_needed(pass_if: PassIf, runs: int) -> float:
    """The number of passed runs that a policy needs, which for a rate need not be an integer."""
    if pass_if == "all":
        return runs
    if pass_if == "majority":
        return runs // 2 + 1
    # A rate such as 0.6 of 5 must not become 3.0000000000000004.
    return round(float(pass_if) * runs, 9)


def is_pass_rate(value: Any) -> bool:
    """Whether a value of a config or an argument is a rate of repeats that must pass."""
    return is_number(value) and 0 < value <= 1


def pass_if_of(policy: str) -> PassIf:
    """The policy with a name, as in results. Raises ValueError for an unknown one."""
    match policy:
        case "all":
            return "all"
        case "majority":
            return "majority"
        case _:
            return float(policy)
