"""Results of a metric, a repeat, a case and a run, and their totals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
from evaltui.core.model.judgement import JudgedBy, Judgement
from evaltui.core.model.served import ServedModel
from evaltui.core.model.spending import Spending, total
from evaltui.core.model.text_diff import OUTPUT, AuthoredText, IntermediateDiff, ResponseDiff
from evaltui.core.secrets import HOLDS_TEXT
from evaltui.core.statistics import Interval, PassRate, pass_rates, wilson
from evaltui.text.figures import show_rate_with, show_scores

if TYPE_CHECKING:
    from evaltui.core.model.eval_set import Intermediate, Invocation
else:
    # For pydantic, which reads results without what the agent did.
    Invocation = Any


@dataclass(frozen=True)
class Rate:
    """Number of passed runs among the evaluated ones, with the 95 % interval of the rate."""

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
        """`84% (74–90%)`"""
        return show_rate_with(self.rate, self.interval)


def rate_of(passed: int, evaluated: int) -> Rate | None:
    """None where nothing was evaluated."""
    return Rate(passed, evaluated) if evaluated else None


class Status(StrEnum):
    PASSED = "PASSED"
    FAILED = "FAILED"
    ERROR = "ERROR"
    NOT_EVALUATED = "NOT_EVALUATED"
    FLAKY = "FLAKY"
    INFORMATIONAL = "INFORMATIONAL"


WORST_FIRST = (Status.FAILED, Status.ERROR, Status.NOT_EVALUATED, Status.FLAKY, Status.PASSED)

Outcome = Annotated[
    Status, WithJsonSchema({"enum": [status.value for status in Status][:-1], "type": "string"})
]
"""The status of a case or a repeat, which is never INFORMATIONAL."""


def worst_status(statuses: Iterable[Status]) -> Status:
    """The worst of the verdicts; informational ones say nothing, and nothing is NOT_EVALUATED."""
    present = set(statuses)
    return next((status for status in WORST_FIRST if status in present), Status.NOT_EVALUATED)


def verdict_of(status: Status, *, is_met: bool) -> Status:
    """The status of a case, of a flaky one PASSED where its policy is met, else FAILED."""
    if status is not Status.FLAKY:
        return status
    return Status.PASSED if is_met else Status.FAILED


@dataclass(frozen=True, slots=True)
class InvocationScore:
    """Score of one turn by one metric."""

    score: float | None
    """None where there is none."""
    status: Status
    reason: str = ""
    """Why it is not better, or not there."""
    judgements: tuple[Judgement, ...] = field(default=(), metadata=LEFT_OUT_IF_EMPTY)
    """Judgements that the score is based on."""


@dataclass(frozen=True, repr=False, slots=True)
class MetricResult:
    """Result of one metric for a case."""

    name: str
    score: float | None
    """None where there is none."""
    threshold: float | None
    """None where it has no verdict."""
    status: Status
    _: KW_ONLY
    reason: str = ""
    """Why it is not better, or not there."""
    error: ErrorInfo | None = None
    """The error that was raised, where it is an ERROR; where it is NOT_EVALUATED, that of a judge."""
    details: dict[str, float | None] = field(default_factory=dict)
    """The parts of a compound value, such as tokens."""
    judge: JudgedBy | None = field(default=None, metadata=LEFT_OUT_IF_EMPTY)
    """Who judged; None where no judge was asked."""
    per_invocation: tuple[InvocationScore, ...] = field(default=(), metadata={"alias": "per_turn"})
    """Scores by turn; empty where the metric scores the conversation alone."""
    lower_is_better: bool = field(default=False, metadata=NOT_REPORTED)
    """Whether scores up to the threshold pass."""
    is_optional: bool = field(default=False, metadata=NOT_REPORTED)
    """Whether it may be NOT_EVALUATED in a case that passes."""

    @property
    def is_passed_over(self) -> bool:
        """Whether it is optional and not evaluated, so that it has no part in the verdict."""
        return self.is_optional and self.status is Status.NOT_EVALUATED

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.in_words}; {self.status}>"

    @property
    def in_words(self) -> str:
        """`response_match_score 0.62 < 0.80`"""
        return f"{self.name} {show_scores(self.score, self.threshold, self.lower_is_better)}"


def _against(result: CaseResult | RepeatResult) -> Iterator[str]:
    """The faults of a result, in a few words each."""
    if result.error is not None:
        yield str(result.error)
    for metric in result.metrics:
        if metric.status not in (Status.PASSED, Status.INFORMATIONAL):
            yield metric.in_words


_AS_IT_RAN = PlainSerializer(lambda turn: dump(turn.as_it_ran), return_type=dict[str, Any])

CallOp = Literal["same", "changed", "moved", "missing", "extra"]
ArgOp = Literal["same", "changed", "missing", "extra"]


@dataclass(frozen=True, slots=True)
class ArgDiff:
    """One argument on both sides."""

    path: str = field(metadata=HOLDS_TEXT)
    """Path such as `filter.as_of` or `items[0]`; "" for the arguments as a whole."""
    op: ArgOp
    """`same` also where a rule lets the difference pass."""
    expected: Any
    """None where this side has none."""
    actual: Any
    """None where this side has none."""
    rule: TextOrNull = ""
    """The rule that lets it differ, in words: `ignore (extra)`; none where nothing does."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call; ids say nothing."""

    name: str
    """Name of the tool."""
    args: dict[str, Any] | None
    """None is not `{}`."""


Trajectory = tuple[tuple[Call, ...], ...]
"""The calls of a run, turn by turn."""


def calls_of(data: Intermediate | None) -> tuple[Call, ...]:
    """The tool calls of a turn by name and arguments; ids say nothing."""
    return tuple(Call(call.name or "", call.args) for call in tool_calls(data))


@dataclass(frozen=True, slots=True)
class CallDiff:
    """One row of an aligned trajectory: an expected call, an actual call, or both."""

    op: CallOp
    expected: Call | None
    """None for an extra call."""
    actual: Call | None
    """None for a missing call."""
    args: tuple[ArgDiff, ...] = ()
    """Differences of a changed call, and of one that counts as the same because of rules."""
    place: int | None = field(default=None, metadata=NOT_REPORTED)
    """Place of an out-of-order call among the expected ones, from 0."""


Expectation = Literal[
    "these calls", "no calls", "unspecified", "not checked", "unknown", "context", "simulated"
]


@dataclass(frozen=True, slots=True)
class TurnResult:
    """One turn, expectation against reality."""

    expectation: Expectation
    """Expectation of the turn's calls. Of a turn whose user is `simulated` nothing is expected; `unknown`
    are the calls of an agent that does not send them."""
    calls: tuple[CallDiff, ...]
    """Expected and actual calls, aligned."""
    response: ResponseDiff
    unscored: tuple[AuthoredText, ...] = ()
    """Texts besides the response; a thought has the author `thought`, an output that is no text `output`."""
    intermediate: tuple[IntermediateDiff, ...] = ()
    """The texts of `unscored` aligned with those that the case expects; empty where it expects none."""
    user: str = field(default="", metadata=LEFT_OUT_IF_EMPTY)
    """The message of a simulated user, which the case does not have."""

    @property
    def checks_calls(self) -> bool:
        """Whether calls that differ are differences."""
        return self.expectation in ("these calls", "no calls", "unspecified")

    @property
    def without_response(self) -> str:
        """The words for a response that is absent."""
        has_output = any(text.author == OUTPUT for text in self.unscored)
        return "no text, but an output" if has_output else "no response"


@dataclass(frozen=True, slots=True)
class StateDiff:
    """A key of the final session state that is not what the case asks for."""

    path: str = field(metadata=HOLDS_TEXT)
    """Path such as `user.name`."""
    expected: Any
    actual: Any
    """None where it is absent."""


@dataclass(frozen=True, repr=False, slots=True)
class RepeatResult:
    """One run of one case."""

    status: Outcome
    metrics: tuple[MetricResult, ...] = ()
    error: ErrorInfo | None = None
    """The error that ended it, None where it came to its end."""
    actual: tuple[Annotated[Invocation, _AS_IT_RAN], ...] = ()
    """The turns as they ran, as invocations of an eval set."""
    turns: tuple[TurnResult, ...] = field(default=(), metadata=NOT_REPORTED)
    """Expectation against reality."""
    state: tuple[StateDiff, ...] = field(default=(), metadata=NOT_REPORTED)
    """Where the final session state is not as expected."""
    seconds: Seconds = 0.0
    """Wall time, without that in which model calls were throttled."""
    throttled: Seconds = field(default=0.0, metadata=LEFT_OUT_IF_EMPTY)
    """Seconds in which model calls waited for the limits of the run."""
    final_state: dict[str, Any] | None = field(default=None, metadata=NOT_REPORTED)
    """The session state after the last turn; None where nobody knows."""
    expects: str = field(default="", metadata=NOT_REPORTED)
    """The fingerprint of the case that it was compared with; "" where nobody knows."""
    given: str = field(default="", metadata=NOT_REPORTED)
    """The fingerprint of what the agent got of that case; "" where nobody knows."""
    recorded: str = field(default="", metadata=NOT_REPORTED)
    """The fingerprint of its recording, as the run has used or made it; "" for a run without recordings."""
    session_id: str = field(default="", metadata=NOT_REPORTED)
    """Id of the session in the agent framework; "" where it is unknown."""
    user_id: str = field(default="", metadata=NOT_REPORTED)
    """Id of the user in the agent framework; "" where it is unknown."""
    spent: Spending | None = None
    """Spending of its model calls; None where it is unknown."""
    stopped: str = field(default="", metadata=LEFT_OUT_IF_EMPTY)
    """Reason for the end of a simulated user's conversation; "" for other cases, and where it came to no
    end."""
    served: tuple[ServedModel, ...] = field(default=(), metadata=LEFT_OUT_IF_EMPTY)
    """Models that answered, as their responses name them; none where none names one."""

    _keys = keys_first("status", "error")

    @property
    def errors(self) -> tuple[ErrorInfo, ...]:
        """Errors that made it an ERROR or kept it from being evaluated: the error that ended it, else those
        of its metrics; empty for other results."""
        if self.status not in (Status.ERROR, Status.NOT_EVALUATED):
            return ()
        if self.error is not None:
            return (self.error,)
        errors = (metric.error for metric in self.metrics if metric.status is self.status)
        return tuple(error for error in errors if error is not None)

    @property
    def error_kinds(self) -> tuple[ErrorKind | None, ...]:
        """The kind of each of its errors, each once."""
        return tuple(dict.fromkeys(error.kind for error in self.errors))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'; '.join((self.status, *_against(self)))}>"

    @property
    def trajectory(self) -> Trajectory:
        """Its calls, without turns at the end that have none.

        A run that was read from a file may know them from its comparison only.
        """
        if self.actual:
            turns = [calls_of(invocation.intermediate_data) for invocation in self.actual]
        else:
            turns = [tuple(diff.actual for diff in turn.calls if diff.actual) for turn in self.turns]
        while turns and not turns[-1]:
            turns.pop()
        return tuple(turns)


@dataclass(frozen=True)
class TrajectoryGroup:
    """Repeats of a case with the same calls, turn by turn."""

    repeats: tuple[int, ...]
    """Counted from 0."""
    calls: Trajectory
    statuses: tuple[Status, ...] = field(metadata=NOT_REPORTED)
    """How each of them came out."""

    @computed_field
    @property
    def status(self) -> Outcome:
        """The status of all its repeats; FLAKY where the same calls had different verdicts."""
        return self.statuses[0] if len(set(self.statuses)) == 1 else Status.FLAKY

    _keys = keys_first("repeats", "status")


@dataclass(frozen=True, slots=True)
class Policy:
    """When a case whose runs differ counts as passed."""

    pass_if: str
    """`all`, `majority` or a pass rate."""
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
    """A case over all its repeats."""

    eval_id: str
    status: Outcome
    metrics: tuple[MetricResult, ...] = ()
    """Metrics of the deciding repeat, as are error, turns, state and `stopped`."""
    error: ErrorInfo | None = None
    eval_set_id: str = ""
    turns: tuple[TurnResult, ...] = ()
    state: tuple[StateDiff, ...] = ()
    repeats: tuple[RepeatResult, ...] = ()
    """Every run of it, in order."""
    policy: str = field(default="all", metadata=NOT_REPORTED)
    """When a case whose runs differ counts as passed: `all`, `majority` or a share."""
    policy_met: bool = field(default=True, metadata=NOT_REPORTED)
    """Whether they passed often enough for that."""
    stopped: str = field(default="", metadata=LEFT_OUT_IF_EMPTY)
    """Reason for the end of a conversation with a simulated user."""
    path: str = ""
    """Its file, relative to the folder of the agent; "" where nobody knows."""
    decision: Decision | None = field(default=None, metadata=LEFT_OUT_IF_EMPTY)
    """Decision of the sequential test over its runs; None where their number was fixed."""
    reason: str = field(default="", metadata=LEFT_OUT_IF_EMPTY)
    """Why a selected case has no result, `did not run`; "" where it has one."""
    tags: tuple[str, ...] | None = field(default=None, metadata=LEFT_OUT_IF_NONE)
    """Tags in its config when it was run; None outside of reports."""

    @classmethod
    def not_run(cls, case: CaseId, eval_set_id: str) -> CaseResult:
        """A selected case without a result: it did not run, or not to its end."""
        return cls(
            case.eval_id,
            Status.NOT_EVALUATED,
            eval_set_id=eval_set_id,
            policy_met=False,
            path="" if case.path == eval_set_id else case.path,
            reason="did not run",
        )

    @property
    def error_kinds(self) -> tuple[ErrorKind | None, ...]:
        """The kinds of the errors of its repeats, each once."""
        return tuple(dict.fromkeys(kind for repeat in self.repeats for kind in repeat.error_kinds))

    @computed_field(alias="policy")
    @property
    def policy_in_reports(self) -> Policy:
        return Policy(self.policy, self.policy_met)

    @computed_field
    @property
    def rate(self) -> Rate | None:
        """Pass rate of its evaluated repeats; None where none was evaluated."""
        return rate_of(self.passed_repeats, self.evaluated_repeats)

    @computed_field
    @property
    def pass_rates(self) -> tuple[PassRate, ...]:
        """Pass rates of its evaluated repeats; a repeat with an error did not pass. None in reports of a
        single repeat."""
        return pass_rates(self.evaluated_repeats, self.passed_repeats)

    @computed_field
    @property
    def trajectories(self) -> tuple[TrajectoryGroup, ...]:
        """The distinct ones of its repeats, the most frequent one first; none in reports of a single repeat.

        Calls are equal as in scoring: names and arguments by `==`, ids left aside.
        """
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
        """Seconds in which its model calls waited for the limits of the run, in all repeats."""
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
    def passed(self) -> bool:
        """Whether it passed, a flaky one by its policy."""
        return self.verdict is Status.PASSED

    @property
    def verdict(self) -> Status:
        """The status, of a flaky case as its policy decides: PASSED or FAILED."""
        return verdict_of(self.status, is_met=self.policy_met)

    @property
    def is_undecided(self) -> bool:
        """Whether its runs were judged, and a sequential test could not decide by them."""
        is_open = self.decision is not None and self.decision.answer == "undecided"
        judged = any(repeat.status in (Status.PASSED, Status.FAILED) for repeat in self.repeats)
        return is_open and judged

    def metric(self, name: str) -> MetricResult:
        """The result of a metric. Raises KeyError for one that was not asked for."""
        results = {metric.name: metric for metric in self.metrics}
        if name not in results:
            raise KeyError(f"{self.eval_id} has no metric {name}; it has {', '.join(results) or 'none'}")
        return results[name]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.in_words}>"

    @property
    def in_words(self) -> str:
        """Its id, its status and the metrics that decide, in a line."""
        reasons = (self.reason,) if self.reason else _against(self)
        return "; ".join((f"{self.eval_id} {self.status}", *reasons))
