"""Results of a metric, a repeat, a case and a run, with their totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    PlainSerializer,
    SerializerFunctionWrapHandler,
    WithJsonSchema,
    computed_field,
    model_serializer,
)

from evaltui.core.model.base_model import (
    LEFT_OUT_IF_EMPTY,
    LEFT_OUT_IF_NONE,
    NOT_REPORTED,
    Seconds,
    TextOrNull,
    dump,
    in_order,
    keys_first,
)
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.confidence import Decision
from evaltui.core.model.errors import ErrorInfo as ErrorInfo
from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.eval_set import tool_calls
from evaltui.core.model.judgement import Decided, JudgedBy, Judgement
from evaltui.core.model.served import ServedModel
from evaltui.core.model.spending import Spending, total
from evaltui.core.model.text_diff import OUTPUT, AuthoredText, IntermediateDiff, ResponseDiff
from evaltui.core.secrets import HOLDS_TEXT
from evaltui.core.statistics import Interval, PassRate, pass_rates, wilson
from evaltui.text.figures import show_rate_and_interval, show_scores
from evaltui.text.outcomes import COUNTED_STATUSES, count_text

if TYPE_CHECKING:
    from evaltui.core.model.eval_set import Intermediate, Invocation
else:
    # For pydantic, which reads results without what the agent did.
    Invocation = Any


@dataclass(frozen=True)
class Rate:
    """Number of passed runs among evaluated ones, with the 95 % interval of the rate."""

    passed: int
    of: int

    @computed_field
    @property
    def rate(self) -> float:
        return self.passed / self.of

    @computed_field
    @property
    def low(self) -> float:
        return self.interval.low

    @computed_field
    @property
    def high(self) -> float:
        return self.interval.high

    @property
    def interval(self) -> Interval:
        return wilson(self.passed, self.of)

    def __str__(self) -> str:
        """Rate and interval as text: `84% (74–90%)`."""
        return show_rate_and_interval(self.rate, self.interval)


def rate_of(passed: int, evaluated: int) -> Rate | None:
    """The rate of passed runs; None without evaluated ones."""
    return Rate(passed, evaluated) if evaluated else None


class Status(StrEnum):
    PASSED = "PASSED"
    FAILED = "FAILED"
    ERROR = "ERROR"
    NOT_EVALUATED = "NOT_EVALUATED"
    FLAKY = "FLAKY"
    INFORMATIONAL = "INFORMATIONAL"


WORST_FIRST = (Status.FAILED, Status.ERROR, Status.NOT_EVALUATED, Status.FLAKY, Status.PASSED)
_RANKS: Mapping[str, int] = {status: rank for rank, status in enumerate(WORST_FIRST)}

Outcome = Annotated[
    Status, WithJsonSchema({"enum": [status.value for status in Status][:-1], "type": "string"})
]
"""The status of a case or a repeat, all except INFORMATIONAL."""


def worst_status(statuses: Iterable[Status]) -> Status:
    """The worst of several statuses without informational ones; NOT_EVALUATED for none."""
    present = set(statuses)
    return next((status for status in WORST_FIRST if status in present), Status.NOT_EVALUATED)


def deciding_repeat(status: str, repeats: Sequence[str]) -> int:
    """Index of the repeat that gives a case with this status its metrics and turns; 0 without repeats.

    `repeats` are the statuses of its repeats. The first repeat with the status of the case decides, else the
    first one with the worst status.
    """
    ranks = [(repeat != status, _RANKS[repeat]) for repeat in repeats]
    return ranks.index(min(ranks)) if ranks else 0


def verdict_of(status: Status, *, is_met: bool) -> Status:
    """The status of a case; for a flaky one PASSED or FAILED, depending on whether its policy is met."""
    if status is not Status.FLAKY:
        return status
    return Status.PASSED if is_met else Status.FAILED


@dataclass(frozen=True, slots=True)
class InvocationScore(Decided):
    """Score of one turn by one metric."""

    score: float | None
    """The score; None for a turn without a score."""
    status: Status
    reason: str = ""
    """The reason for a low or missing score."""
    judgements: tuple[Judgement, ...] = field(default=(), metadata=LEFT_OUT_IF_EMPTY)
    """The judgements behind the score."""


@dataclass(frozen=True, repr=False, slots=True)
class MetricResult(Decided):
    """Result of one metric for a case."""

    name: str
    score: float | None
    """The score; None for a metric without a score."""
    threshold: float | None
    """The threshold; None for a metric without a verdict."""
    status: Status
    _: KW_ONLY
    reason: str = ""
    """The reason for a low or missing score."""
    error: ErrorInfo | None = None
    """The error of a metric with status ERROR; with NOT_EVALUATED, the error of a judge."""
    details: dict[str, float | None] = field(default_factory=dict)
    """The parts of a compound value, such as kinds of tokens."""
    judge: JudgedBy | None = field(default=None, metadata=LEFT_OUT_IF_EMPTY)
    """The judge; None where no judge was asked."""
    per_invocation: tuple[InvocationScore, ...] = field(default=(), metadata={"alias": "per_turn"})
    """Scores by turn; empty for a metric of the whole conversation only."""
    lower_is_better: bool = field(default=False, metadata=NOT_REPORTED)
    """Whether the threshold is the highest passing score."""
    is_optional: bool = field(default=False, metadata=NOT_REPORTED)
    """Whether the metric may be NOT_EVALUATED in a case that passes."""

    @property
    def is_passed_over(self) -> bool:
        """Whether it is optional and not evaluated, so that the verdict ignores it."""
        return self.is_optional and self.status is Status.NOT_EVALUATED

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.in_words}; {self.status}>"

    @property
    def in_words(self) -> str:
        """Name, score and threshold: `response_match_score 0.62 < 0.80`."""
        return f"{self.name} {show_scores(self.score, self.threshold, self.lower_is_better)}"


def _fault_texts(result: CaseResult | RepeatResult) -> Iterator[str]:
    """The reasons against a result, each in a few words."""
    if result.error is not None:
        yield str(result.error)
    for metric in result.metrics:
        if metric.status not in (Status.PASSED, Status.INFORMATIONAL):
            yield metric.in_words


_RAN_TURN = PlainSerializer(lambda turn: dump(turn.as_it_ran), return_type=dict[str, Any])

CallOp = Literal["same", "changed", "moved", "missing", "extra"]
ArgOp = Literal["same", "changed", "missing", "extra"]


@dataclass(frozen=True, slots=True)
class ArgDiff:
    """An argument on both sides."""

    path: str = field(metadata=HOLDS_TEXT)
    """Path such as `filter.as_of` or `items[0]`; "" for the arguments as a whole."""
    op: ArgOp
    """The operation; `same` also for a difference that a rule allows."""
    expected: Any
    """The expected value; None for none."""
    actual: Any
    """The actual value; None for none."""
    rule: TextOrNull = ""
    """The rule that allows the difference, in words: `ignore (extra)`; "" for none."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call without its id."""

    name: str
    """Name of the tool."""
    args: dict[str, Any] | None
    """The arguments; None differs from `{}`."""


Trajectory = tuple[tuple[Call, ...], ...]
"""The calls of a run, turn by turn."""


def calls_of(data: Intermediate | None) -> tuple[Call, ...]:
    """The tool calls of a turn, by name and arguments."""
    return tuple(Call(call.name or "", call.args) for call in tool_calls(data))


@dataclass(frozen=True, slots=True)
class CallDiff:
    """One row of an aligned trajectory: an expected call, an actual call, or both."""

    op: CallOp
    expected: Call | None
    """The expected call; None for an extra call."""
    actual: Call | None
    """The actual call; None for a missing call."""
    args: tuple[ArgDiff, ...] = ()
    """Argument differences of a changed call, and of a call that is equal because of rules."""
    place: int | None = field(default=None, metadata=NOT_REPORTED)
    """The index of an out-of-order call among the expected ones, from 0; None for other calls."""


Expectation = Literal[
    "these calls", "no calls", "unspecified", "not checked", "unknown", "context", "simulated"
]


@dataclass(frozen=True, slots=True)
class TurnResult:
    """A turn with expected and actual side."""

    expectation: Expectation
    """Expectation of the turn's calls.

    `simulated` is a turn of a simulated user, without expectations; `unknown` is a turn of an agent that does
    not report its calls.
    """
    calls: tuple[CallDiff, ...]
    """Expected and actual calls, aligned."""
    response: ResponseDiff
    unscored: tuple[AuthoredText, ...] = ()
    """Texts besides the response; the author is `thought` for a thought, `output` for an output that is no
    text."""
    intermediate: tuple[IntermediateDiff, ...] = ()
    """The texts of `unscored` aligned with the expected ones; empty for a case that expects none."""
    user: str = field(default="", metadata=LEFT_OUT_IF_EMPTY)
    """The message of a simulated user; "" for other turns."""
    leaves_response: bool = field(default=False, metadata=LEFT_OUT_IF_EMPTY)
    """Whether the response is not checked, since its dataset has no reference."""

    @property
    def checks_calls(self) -> bool:
        """Whether differing calls count as differences."""
        return self.expectation in ("these calls", "no calls", "unspecified")

    @property
    def without_response(self) -> str:
        """The text shown for an absent response."""
        if any(text.author == OUTPUT for text in self.unscored):
            return "no text, but an output"
        return "unknown" if self.response.is_unknown else "no response"


@dataclass(frozen=True, slots=True)
class StateDiff:
    """A key of the final session state that differs from the expected value."""

    path: str = field(metadata=HOLDS_TEXT)
    """Path such as `user.name`."""
    expected: Any
    actual: Any
    """The actual value; None for none."""


@dataclass(frozen=True, repr=False, slots=True)
class RepeatResult(Decided):
    """The result of one run of a case."""

    status: Outcome
    metrics: tuple[MetricResult, ...] = ()
    error: ErrorInfo | None = None
    """The error that ended the run; None for a complete run."""
    actual: tuple[Annotated[Invocation, _RAN_TURN], ...] = ()
    """The actual turns, as invocations of an eval set."""
    turns: tuple[TurnResult, ...] = field(default=(), metadata=NOT_REPORTED)
    """The turns with expected and actual side."""
    state: tuple[StateDiff, ...] = field(default=(), metadata=NOT_REPORTED)
    """The keys that differ in the final session state."""
    seconds: Seconds = 0.0
    """Wall time in seconds, without throttling."""
    throttled: Seconds = field(default=0.0, metadata=LEFT_OUT_IF_EMPTY)
    """Seconds in which model calls waited for the limits of the run."""
    final_state: dict[str, Any] | None = field(default=None, metadata=NOT_REPORTED)
    """The session state after the last turn; None where it is unknown."""
    expects: str = field(default="", metadata=NOT_REPORTED)
    """Fingerprint of the case that scored it; "" where it is unknown."""
    given: str = field(default="", metadata=NOT_REPORTED)
    """Fingerprint of the agent's input; "" where it is unknown."""
    recorded: str = field(default="", metadata=NOT_REPORTED)
    """Fingerprint of the used or made recording; "" for a run without recordings."""
    session_id: str = field(default="", metadata=NOT_REPORTED)
    """Id of the session in the agent framework; "" where it is unknown."""
    user_id: str = field(default="", metadata=NOT_REPORTED)
    """Id of the user in the agent framework; "" where it is unknown."""
    spent: Spending | None = None
    """Spending of its model calls; None where it is unknown."""
    stopped: str = field(default="", metadata=LEFT_OUT_IF_EMPTY)
    """Reason for the end of a simulated user's conversation; "" for others, and for an incomplete one."""
    served: tuple[ServedModel, ...] = field(default=(), metadata=LEFT_OUT_IF_EMPTY)
    """Models that answered, as their responses name them; none where none names one."""

    _keys = keys_first("status", "error")

    @property
    def errors(self) -> tuple[ErrorInfo, ...]:
        """Errors behind the status ERROR or NOT_EVALUATED: the error that ended the run, else those of its
        metrics; empty for other results."""
        if self.status not in (Status.ERROR, Status.NOT_EVALUATED):
            return ()
        if self.error is not None:
            return (self.error,)
        errors = (metric.error for metric in self.metrics if metric.status is self.status)
        return tuple(error for error in errors if error is not None)

    @property
    def error_kinds(self) -> tuple[ErrorKind | None, ...]:
        """The distinct kinds of its errors."""
        return tuple(dict.fromkeys(error.kind for error in self.errors))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'; '.join((self.status, *_fault_texts(self)))}>"

    @property
    def trajectory(self) -> Trajectory:
        """The calls by turn, without final turns that have none.

        In a run that was read from a file, they may come from its comparison.
        """
        if self.actual:
            turns = [calls_of(invocation.intermediate_data) for invocation in self.actual]
        else:
            turns = [tuple(diff.actual for diff in turn.calls if diff.actual) for turn in self.turns]
        while turns and not turns[-1]:
            turns.pop()
        return tuple(turns)

    @property
    def has_unknown_calls(self) -> bool:
        """Whether a turn is of an agent that does not report its calls."""
        is_unknown = any(turn.expectation == "unknown" for turn in self.turns)
        return is_unknown or any(invocation.intermediate_data is None for invocation in self.actual)


@dataclass(frozen=True)
class TrajectoryGroup:
    """Repeats of a case with the same calls, turn by turn."""

    repeats: tuple[int, ...]
    """Counted from 0."""
    calls: Trajectory
    statuses: tuple[Status, ...] = field(metadata=NOT_REPORTED)
    """The status of each of these repeats."""

    @computed_field
    @property
    def status(self) -> Outcome:
        """The status of these repeats together; FLAKY if they differ."""
        return self.statuses[0] if len(set(self.statuses)) == 1 else Status.FLAKY

    _keys = keys_first("repeats", "status")


@dataclass(frozen=True, slots=True)
class Policy:
    """The pass policy of a case over its repeats, and whether it is met."""

    pass_if: str
    """The policy: `all`, `majority` or a minimum pass rate."""
    met: bool


KEYS_OF_CASE = (
    "eval_set_id",
    "path",
    "eval_id",
    "tags",
    "status",
    "policy",
    "decision",
    "reason",
    "rate",
    "pass_rates",
    "trajectories",
    "error",
    "metrics",
    "repeats",
    "turns",
    "state",
    "spent",
)
"""Keys of a case in reports, in order."""


@dataclass(frozen=True, repr=False, slots=True)
class CaseResult:
    """The result of a case over all its repeats."""

    eval_id: str
    status: Outcome
    metrics: tuple[MetricResult, ...] = ()
    """Metrics of the deciding repeat; likewise error, turns, state and `stopped`."""
    error: ErrorInfo | None = None
    eval_set_id: str = ""
    turns: tuple[TurnResult, ...] = ()
    state: tuple[StateDiff, ...] = ()
    """The keys that differ in the final session state."""
    repeats: tuple[RepeatResult, ...] = ()
    """The repeats in order."""
    policy: str = field(default="all", metadata=NOT_REPORTED)
    """The pass policy for repeats that differ: `all`, `majority` or a minimum share."""
    policy_met: bool = field(default=True, metadata=NOT_REPORTED)
    """Whether the policy is met."""
    stopped: str = field(default="", metadata=LEFT_OUT_IF_EMPTY)
    """Reason for the end of a conversation with a simulated user; "" for others."""
    path: str = ""
    """Its file, relative to the agent's folder; "" where it is unknown."""
    decision: Decision | None = field(default=None, metadata=LEFT_OUT_IF_EMPTY)
    """Decision of the sequential test over its repeats; None for a fixed number of runs."""
    reason: str = field(default="", metadata=LEFT_OUT_IF_EMPTY)
    """Why a selected case has no result, `did not run` or `not all repeats ran: 1 failed`; "" for a case with
    one."""
    tags: tuple[str, ...] | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    """Its tags in the config at the time of the run; None outside of reports."""

    @classmethod
    def not_run(cls, case: CaseId, eval_set_id: str, repeats: Collection[str] = ()) -> CaseResult:
        """The result of a selected case that did not run, or not to its end; `repeats` are the statuses of
        its finished repeats."""
        counts = Counter(repeats)
        finished = ", ".join(
            count_text(status, counts[status]) for status in COUNTED_STATUSES if counts[status]
        )
        return cls(
            case.eval_id,
            Status.NOT_EVALUATED,
            eval_set_id=eval_set_id,
            policy_met=False,
            path="" if case.path == eval_set_id else case.path,
            reason=f"not all repeats ran: {finished}" if finished else "did not run",
        )

    @property
    def error_kinds(self) -> tuple[ErrorKind | None, ...]:
        """The distinct kinds of errors in its repeats."""
        return tuple(dict.fromkeys(kind for repeat in self.repeats for kind in repeat.error_kinds))

    @computed_field(alias="policy")
    @property
    def policy_in_reports(self) -> Policy:
        return Policy(self.policy, self.policy_met)

    @computed_field
    @property
    def rate(self) -> Rate | None:
        """Pass rate of its evaluated repeats; None without an evaluated one."""
        return rate_of(self.passed_repeats, self.evaluated_repeats)

    @computed_field
    @property
    def pass_rates(self) -> tuple[PassRate, ...]:
        """pass@k and pass^k of its evaluated repeats; a repeat with an error counts as failed. None in
        reports of a single repeat."""
        return pass_rates(self.evaluated_repeats, self.passed_repeats)

    @computed_field
    @property
    def trajectories(self) -> tuple[TrajectoryGroup, ...]:
        """The distinct trajectories of its repeats, the most frequent first; none for a single repeat, and
        where calls are unknown.

        Calls are equal as in scoring: names and arguments by `==`, without ids.
        """
        if any(repeat.has_unknown_calls for repeat in self.repeats):
            return ()
        groups: list[tuple[Trajectory, list[int]]] = []
        for number, repeat in enumerate(self.repeats):
            calls = repeat.trajectory
            same = next((numbers for others, numbers in groups if others == calls), None)
            if same is None:
                groups.append((calls, [number]))
            else:
                same.append(number)
        groups.sort(key=lambda group: -len(group[1]))
        return tuple(
            TrajectoryGroup(tuple(numbers), calls, tuple(self.repeats[number].status for number in numbers))
            for calls, numbers in groups
        )

    @model_serializer(mode="wrap")
    def _in_order(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data = write(self)
        if len(self.repeats) < 2:
            data |= {"pass_rates": [], "trajectories": []}
        return in_order(data, *KEYS_OF_CASE)

    @computed_field
    @property
    def spent(self) -> Spending | None:
        """Spending of all its repeats; None where it is unknown."""
        return total(repeat.spent for repeat in self.repeats)

    @property
    def seconds(self) -> float:
        """Seconds of all repeats."""
        return sum(repeat.seconds for repeat in self.repeats)

    @property
    def throttled(self) -> float:
        """Seconds in which model calls of all repeats waited for limits of the run."""
        return sum(repeat.throttled for repeat in self.repeats)

    @property
    def id(self) -> CaseId:
        return CaseId(self.path or self.eval_set_id, self.eval_id)

    @property
    def passed_repeats(self) -> int:
        return sum(repeat.status is Status.PASSED for repeat in self.repeats)

    @property
    def evaluated_repeats(self) -> int:
        return sum(repeat.status is not Status.NOT_EVALUATED for repeat in self.repeats)

    @property
    def is_partly_evaluated(self) -> bool:
        """Whether some of its repeats have no verdict, but not all."""
        return 0 < self.evaluated_repeats < len(self.repeats)

    @property
    def deciding_repeat(self) -> int:
        """Index of the repeat that gave the case its metrics and turns; 0 without repeats."""
        return deciding_repeat(self.status, [repeat.status for repeat in self.repeats])

    @property
    def passed(self) -> bool:
        """Whether it passed, a flaky case by its policy."""
        return self.verdict is Status.PASSED

    def __bool__(self) -> bool:
        """Whether it passed, so that `assert evaltui_case` works."""
        return self.passed

    @property
    def verdict(self) -> Status:
        """The status; for a flaky case PASSED or FAILED by its policy."""
        return verdict_of(self.status, is_met=self.policy_met)

    @property
    def is_undecided(self) -> bool:
        """Whether a sequential test could not decide by its evaluated runs."""
        is_open = self.decision is not None and self.decision.answer == "undecided"
        return is_open and any(repeat.status in (Status.PASSED, Status.FAILED) for repeat in self.repeats)

    def metric(self, name: str) -> MetricResult:
        """The result of a metric. Raises KeyError for a metric that was not used."""
        results = {metric.name: metric for metric in self.metrics}
        if name not in results:
            raise KeyError(f"{self.eval_id} has no metric {name}; it has {', '.join(results) or 'none'}")
        return results[name]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.in_words}>"

    @property
    def in_words(self) -> str:
        """Id, status and deciding metrics in one line."""
        reasons = (self.reason,) if self.reason else _fault_texts(self)
        return " ".join("; ".join((f"{self.eval_id} {self.status}", *reasons)).split())
