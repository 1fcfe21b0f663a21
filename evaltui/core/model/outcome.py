"""What came out: the results of a metric, a repeat, a case and a run, and how they add up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from evaltui.core.model.case_id import CaseId

if TYPE_CHECKING:
    from evaltui.core.model.eval_set import Invocation


class Status(StrEnum):
    PASSED = "PASSED"
    FAILED = "FAILED"
    ERROR = "ERROR"
    NOT_EVALUATED = "NOT_EVALUATED"
    FLAKY = "FLAKY"
    INFORMATIONAL = "INFORMATIONAL"


GRAVEST_FIRST = (
    Status.FAILED,
    Status.ERROR,
    Status.NOT_EVALUATED,
    Status.FLAKY,
    Status.PASSED,
)


def worst_status(statuses: Iterable[Status]) -> Status:
    """The gravest of the verdicts; informational ones say nothing, and nothing is NOT_EVALUATED."""
    present = set(statuses)
    return next((status for status in GRAVEST_FIRST if status in present), Status.NOT_EVALUATED)


@dataclass(frozen=True)
class ErrorInfo:
    """An error as it was raised. `where` is the innermost frame of the user's own code."""

    type: str
    message: str
    traceback: str = ""
    where: str = ""

    def __str__(self) -> str:
        text = f"{self.type}: {self.message}" if self.message else self.type
        return f"{text} ({self.where})" if self.where else text


@dataclass(frozen=True)
class Vote:
    """A judge's answer on one subject. Where it gives no verdict, `problem` says why it does not count."""

    score: float | None
    rationale: str = ""
    label: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Judgement:
    """What a judge found of one subject: an answer (`id` is ""), a rubric, a sentence.

    `score` is None where it was not judged; `evidence` is `(what it does, text)`, such as
    `("contradicting", "It rained.")`.
    """

    id: str
    subject: str
    score: float | None
    rationale: str = ""
    evidence: tuple[tuple[str, str], ...] = ()
    votes: tuple[Vote, ...] = ()


@dataclass(frozen=True)
class JudgedBy:
    """Who judged by which prompt (its name and version, `final_response_match/1`), and how many of the
    questions were answered, and how many of these answers came from a recording. Of those that were not
    answered, `unasked` were put to nobody: a replay had no answer to them."""

    model: str
    prompt: str
    asked: int = 0
    answered: int = 0
    replayed: int = 0
    unasked: int = 0

    @property
    def live(self) -> int:
        """How many questions a judge was asked, those included that it failed to answer."""
        return self.asked - self.replayed - self.unasked


@dataclass(frozen=True)
class InvocationScore:
    """What one metric says of one turn, and what a judge found to say so."""

    score: float | None
    status: Status
    reason: str = ""
    judgements: tuple[Judgement, ...] = ()


@dataclass(frozen=True)
class MetricResult:
    """What one metric says of a case; `details` holds the parts of a compound value, such as tokens.

    Where `lower_is_better`, scores up to the threshold pass. One that `is_optional` may be NOT_EVALUATED in a
    case that passes.
    """

    name: str
    score: float | None
    threshold: float | None
    status: Status
    per_invocation: tuple[InvocationScore, ...] = ()
    reason: str = ""
    error: ErrorInfo | None = None
    details: dict[str, float | None] = field(default_factory=dict)
    judge: JudgedBy | None = None
    lower_is_better: bool = False
    is_optional: bool = False


CallOp = Literal["same", "changed", "moved", "missing", "extra"]
ArgOp = Literal["same", "changed", "missing", "extra"]


@dataclass(frozen=True)
class ArgDiff:
    """One argument at a path such as `filter.as_of` or `items[0]`; the side that has none is None.

    A difference that a rule lets pass is `same`, and `rule` says in words which one it is: `ignore (extra)`.
    """

    path: str
    op: ArgOp
    expected: Any
    actual: Any
    rule: str = ""


@dataclass(frozen=True)
class Call:
    name: str
    args: dict[str, Any] | None


@dataclass(frozen=True)
class CallDiff:
    """One row of an aligned trajectory: an expected call, an actual call, or both.

    `args` are those of a changed call, and of one that counts as the same because of rules.
    """

    op: CallOp
    expected: Call | None
    actual: Call | None
    args: tuple[ArgDiff, ...] = ()


Expectation = Literal["these calls", "no calls", "unspecified", "not checked", "context", "simulated"]


@dataclass(frozen=True)
class ResponseDiff:
    """The texts that were compared, and what `response_match_score` says of them if it was asked for."""

    expected: str | None
    actual: str | None
    score: float | None = None


@dataclass(frozen=True)
class TurnResult:
    """One turn, expectation against reality; `unscored` is `(author, text)` said before the answer.

    Of a turn whose user is `simulated` nothing is expected, and `user` is what the user said, which the case
    does not say.
    """

    expectation: Expectation
    calls: tuple[CallDiff, ...]
    response: ResponseDiff
    unscored: tuple[tuple[str, str], ...] = ()
    user: str = ""

    @property
    def checks_calls(self) -> bool:
        """Whether calls that differ are differences."""
        return self.expectation in ("these calls", "no calls", "unspecified")


@dataclass(frozen=True)
class StateDiff:
    """A key of the final session state that is not what the case asks for."""

    path: str
    expected: Any
    actual: Any


@dataclass(frozen=True)
class RepeatResult:
    """One run of one case. `seconds` is wall time, `final_state` the session state after the last turn.

    `expects` is the fingerprint of the case that it was held against, `session_id` and `user_id` what the
    agent framework called the session; each is "" where nobody knows. `stopped` says what ended the
    conversation of a simulated user; "" for other cases, and where it came to no end.
    """

    status: Status
    metrics: tuple[MetricResult, ...] = ()
    error: ErrorInfo | None = None
    actual: tuple[Invocation, ...] = ()
    turns: tuple[TurnResult, ...] = ()
    state: tuple[StateDiff, ...] = ()
    seconds: float = 0.0
    final_state: dict[str, Any] | None = None
    expects: str = ""
    session_id: str = ""
    user_id: str = ""
    stopped: str = ""


@dataclass(frozen=True)
class CaseResult:
    """A case over all its repeats; metrics, error, turns and what stopped it are those of the repeat that
    decides. `path` is its file as in `CaseId`, "" where nobody knows."""

    eval_id: str
    status: Status
    metrics: tuple[MetricResult, ...] = ()
    error: ErrorInfo | None = None
    eval_set_id: str = ""
    turns: tuple[TurnResult, ...] = ()
    state: tuple[StateDiff, ...] = ()
    repeats: tuple[RepeatResult, ...] = ()
    policy: str = "all"
    policy_met: bool = True
    stopped: str = ""
    path: str = ""

    @property
    def id(self) -> CaseId:
        return CaseId(self.path or self.eval_set_id, self.eval_id)

    @property
    def passed_repeats(self) -> int:
        return sum(repeat.status is Status.PASSED for repeat in self.repeats)


@dataclass(frozen=True)
class RunResult:
    """A whole run, its cases in the order in which they were selected."""

    cases: tuple[CaseResult, ...]
    status: Status
