"""Two compared runs, in JSON reports, as types."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from evaltui.core.model.spending import Cost

Outcome = Literal["PASSED", "FAILED", "ERROR", "NOT_EVALUATED", "FLAKY"]


class ComparedRun(BaseModel):
    id: str
    cases: int
    passing: int
    unfinished: int


class Total(BaseModel):
    base: float
    candidate: float


class Summary(BaseModel):
    status: Outcome
    passes: bool
    runs: int
    passed: int
    seconds: float | None
    tokens: float | None
    cost: Cost | None
    """Of all repeats together; null where nobody knows."""


class Score(BaseModel):
    metric: str
    base: float | None
    candidate: float | None


class Change(BaseModel):
    eval_set_id: str
    path: str
    eval_id: str
    change: Literal[
        "broken",
        "unclear",
        "fixed",
        "flaky",
        "expectation_changed",
        "new",
        "gone",
        "not_run",
        "unchanged",
    ]
    regression: bool
    """Whether it does not pass, the baseline does not excuse that, and it is no chance."""
    p: float | None = None
    """Of Fisher's exact test, one-sided, of a case that broke and whose repeats passed or failed in both
    runs, or that failed in both runs and passes less often now."""
    reasons: list[str]
    base: Summary | None
    candidate: Summary | None
    scores: list[Score]


class Paired(BaseModel):
    """The cases that passed or failed in both runs, paired by their verdicts."""

    better: int
    worse: int
    cases: int
    repeated: bool
    """Whether a verdict is that of several repeats."""
    p: float
    """Of McNemar's exact test, two-sided."""


class Comparison(BaseModel):
    base: ComparedRun
    candidate: ComparedRun
    changed: list[str]
    """Differences of agent, model and options."""
    totals: dict[str, int]
    """Cases by kind of change."""
    regressions: int
    alpha: float = 0.05
    """The highest p that is evidence."""
    paired: Paired | None = None
    seconds: Total | None
    tokens: Total | None
    usd: Total | None
    """Mean cost of a repeat of each case in both, summed up, in US dollars."""
    cases: list[Change]
