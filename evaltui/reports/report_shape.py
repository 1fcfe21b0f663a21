"""The JSON report as types, of which its schema is made. `json_report` writes it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

from evaltui.core.model.errors import ErrorKind
from evaltui.core.model.outcome import ArgOp, CallOp, Expectation, Status
from evaltui.core.schemas.generating import Schema, schema_of
from evaltui.reports.comparison_shape import Comparison, Outcome
from evaltui.reports.cost_shape import Spent


class Error(BaseModel):
    type: str
    """The exception's class."""
    message: str
    traceback: str
    where: str
    """The innermost frame of your own code; "" for none."""
    kind: ErrorKind | None
    """What had to be otherwise; null where it is not known."""


class Vote(BaseModel):
    score: float | None
    label: str
    """The verdict in the judge's word."""
    rationale: str
    problem: str | None
    """Why the vote does not count."""


class Evidence(BaseModel):
    kind: str
    text: str


class Judgement(BaseModel):
    """A judge's finding on one subject."""

    id: str
    """The rubric's or the sentence's; "" for an answer."""
    subject: str
    """The text that was judged."""
    score: float | None
    rationale: str
    evidence: list[Evidence]
    votes: list[Vote]


class TurnScore(BaseModel):
    score: float | None
    status: Status
    reason: str
    judgements: list[Judgement] = []
    """Of a judge."""


class JudgedBy(BaseModel):
    model: str
    prompt: str
    """Name and version of the prompt."""
    asked: int
    answered: int
    replayed: int
    unasked: int


class Metric(BaseModel):
    name: str
    score: float | None
    threshold: float | None
    """null where there is no verdict."""
    status: Status
    reason: str
    error: Error | None
    details: dict[str, float | None]
    """The parts of a compound value, such as tokens."""
    judge: JudgedBy | None = None
    """Absent where no judge was asked."""
    per_turn: list[TurnScore]


class Call(BaseModel):
    name: str
    args: dict[str, Any] | None


class Argument(BaseModel):
    path: str
    """Such as `filter.as_of`; "" for the arguments as a whole."""
    op: ArgOp
    expected: Any
    actual: Any
    rule: str | None
    """The rule that lets the argument differ."""


class AlignedCall(BaseModel):
    op: CallOp
    expected: Call | None
    actual: Call | None
    args: list[Argument]


class Response(BaseModel):
    expected: str | None
    actual: str | None
    score: float | None


class Said(BaseModel):
    author: str
    text: str


class IntermediateResponse(BaseModel):
    """A text before the response, aligned."""

    author: str
    expected: str | None
    """null for a text that is not expected."""
    actual: str | None
    """null for a text that is missing."""
    score: float | None


class Turn(BaseModel):
    """A turn, expected and actual."""

    expectation: Expectation
    """What the case says of the calls."""
    calls: list[AlignedCall]
    response: Response
    unscored: list[Said]
    """Texts before the response; a thought has the author `thought`, an output that is no text `output`."""
    intermediate: list[IntermediateResponse]
    """The texts before the response aligned with the expected ones; empty where none are expected."""
    user: str = ""
    """The message of a simulated user."""


class State(BaseModel):
    path: str
    expected: Any
    actual: Any


class Repeat(BaseModel):
    status: Outcome
    error: Error | None
    metrics: list[Metric]
    actual: list[dict[str, Any]]
    """The turns as they ran, as invocations of an eval set."""
    seconds: float
    """Without those in which model calls were throttled."""
    throttled: float = 0.0
    """Seconds in which model calls waited for the limits of the run; absent where none did."""
    spent: Spent | None
    """What its model calls cost; null where nobody knows."""
    stopped: str = ""
    """What ended the conversation with a simulated user."""


class PassRate(BaseModel):
    k: int
    pass_at_k: float
    pass_hat_k: float


class Rate(BaseModel):
    """How many passed, with the 95 % interval of the rate."""

    passed: int
    of: int
    rate: float
    low: float
    high: float


class Estimate(BaseModel):
    """A mean over cases, with the 95 % interval; null where one case cannot tell."""

    mean: float
    cases: int
    standard_error: float | None
    """Clustered by case."""
    low: float | None
    high: float | None


class RunsRate(Estimate):
    """The share of runs of a case that pass, each case counting the same."""

    passed: int
    of: int


class Rates(BaseModel):
    cases: Rate
    """Flaky cases by their policy."""
    runs: RunsRate | None
    """null where every case was run once."""
    scores: dict[str, Estimate]
    """By metric."""


class Trajectory(BaseModel):
    """Repeats with the same calls, turn by turn."""

    repeats: list[int]
    """Counted from 0."""
    status: Outcome
    calls: list[list[Call]]


class Policy(BaseModel):
    pass_if: str
    """`all`, `majority` or a pass rate."""
    met: bool


class Decision(BaseModel):
    """What a sequential test says of the repeats of a case."""

    answer: Literal["passes", "does not pass", "undecided"]
    confidence: float
    """Of `--confidence`."""
    max_runs: int
    """Of `--max-runs`."""
    low: float
    """Up to this pass rate the case does not pass."""
    high: float
    """From this pass rate it passes; in between, either answer is right."""


class Case(BaseModel):
    eval_set_id: str
    path: str
    """Its file, relative to the folder of the agent."""
    eval_id: str
    tags: list[str] = []
    """As its config gave them when it was run."""
    status: Outcome
    policy: Policy
    decision: Decision | None = None
    """Absent where the number of runs was fixed."""
    reason: str = ""
    """Why it has no result, `did not run`; absent where it has one."""
    rate: Rate | None = None
    """Of its repeats."""
    pass_rates: list[PassRate]
    trajectories: list[Trajectory]
    error: Error | None
    metrics: list[Metric]
    repeats: list[Repeat]
    turns: list[Turn]
    state: list[State]
    """Keys of the final session state that differ."""
    spent: Spent | None
    """Of all repeats; null where nobody knows."""
    stopped: str = ""
    """What ended the conversation with a simulated user."""


class Totals(BaseModel):
    cases: int
    passed: int
    failed: int
    error: int
    not_evaluated: int
    flaky: int


class TagTotals(Totals):
    rate: Rate | None = None
    """Flaky cases by their policy."""


class Calls(BaseModel):
    live: int
    replayed: int


class CaseName(BaseModel):
    eval_set_id: str
    eval_id: str


class Check(BaseModel):
    """A metric that is asked for, checked before the run."""

    metric: str
    status: Literal["RUNS", "SOME_CASES", "CANNOT"]
    why: str
    fix: str
    optional: bool
    sets: list[str]
    cases: int
    without: list[CaseName]
    """Cases for which the metric cannot be evaluated."""


class Config(BaseModel):
    path: str | None
    """null for ADK's defaults."""
    effective: dict[str, Any]
    defaulted: list[str]
    """Metrics that are ADK's defaults."""
    not_used: str = ""
    """A config above that is for other sets."""


class EvalSet(BaseModel):
    eval_set_id: str
    path: str
    config: Config


class Report(BaseModel):
    """The report of `evaltui run --report json`. Keys may be added within a version; none goes or changes."""

    version: Literal[1]
    status: Outcome
    agent: str
    started: str
    """UTC, ISO 8601."""
    seconds: float | None
    """Wall time; null for a run that was killed or goes on."""
    totals: Totals
    tags: dict[str, TagTotals] = {}
    """The cases with each tag."""
    rates: Rates | None = None
    """null without a case."""
    record: str
    model_calls: Calls
    judge_calls: Calls
    stubbed_tool_calls: int
    spent: Spent | None
    """Of all cases; null where nobody knows."""
    log: str | None
    """The run log."""
    notes: list[str]
    preflight: list[Check]
    sets: list[EvalSet]
    comparison: Comparison | None
    """null without `--baseline`."""
    cases: list[Case]


def report_schema() -> Schema:
    """The schema of the JSON report."""
    return schema_of(Report, "evaltui report", written=True)
