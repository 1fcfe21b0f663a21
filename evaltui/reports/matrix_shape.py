"""The JSON report of a matrix as types, of which its schema is made. `matrix_json` writes it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

from evaltui.core.schemas.generating import Schema, schema_of

Outcome = Literal["PASSED", "FAILED", "ERROR", "NOT_EVALUATED", "FLAKY"]


class MatrixCost(BaseModel):
    """Of all runs together."""

    usd: float | None = None
    """Of the calls with a known price; absent where no price is known."""
    saved_usd: float | None = None
    """What replayed calls would have cost."""
    unpriced: int = 0
    """Calls that cost an unknown amount."""
    unseen: int = 0
    """Runs in which the agent may have asked models that nobody saw."""


class Totals(BaseModel):
    cases: int
    """Those with a result."""
    passed_cases: int
    """Flaky ones by their policy."""
    unfinished_cases: int
    runs: int
    """Executions of cases."""
    passed_runs: int
    pass_rate: float | None
    """Of the runs; null without one."""
    interval: list[float] | None
    """In which the pass rate is with 95 % confidence, clustered by case: from, to."""
    p50_seconds: float | None
    """Of a run; null where not known. Likewise the next two."""
    p95_seconds: float | None
    tokens: float | None
    cost: MatrixCost | None
    """Of the agent, without judges; null where nobody knows. Likewise the next one."""
    usd_per_passed_case: float | None
    """The cost of all cases divided by those that passed."""


class AgainstBase(BaseModel):
    better: int
    """Cases that pass in the variant and not in the base."""
    worse: int
    cases: int
    """Those with a comparable result in both."""
    p: float | None
    """Of McNemar's exact test; null without cases."""


class Applied(BaseModel):
    what: str
    old: str
    new: str


class MatrixVariant(BaseModel):
    name: str
    changes: dict[str, Any]
    """As asked for: by `model`, `model.AGENT`, `instruction`, `config.FIELD`, `env.NAME`, `git`, `agent`."""
    commit: str | None
    """The one that `git` stands for."""
    applied: list[Applied]
    """What the host has changed."""
    run: str
    """Id of its run."""
    log: str | None
    totals: Totals
    against_base: AgainstBase | None
    """Null for the base."""
    regressions: int | None
    """Against the run of `--baseline`; null without one."""


class MatrixCell(BaseModel):
    variant: str
    status: Outcome | None
    """Null where the case has no result in the variant; nothing else is there then."""
    runs: int | None = None
    passed_runs: int | None = None
    score: float | None = None
    """Mean of the scores."""
    scores: dict[str, float] = {}
    """By metric, the mean over repeats."""
    seconds: float | None = None
    tokens: float | None = None
    cost: MatrixCost | None = None
    """Of the agent in all runs of the case."""
    direction: Literal["better", "worse", "same"] | None = None
    """Against the base."""


class MatrixCase(BaseModel):
    eval_set_id: str
    eval_id: str
    path: str
    """Of the set."""
    differs: bool
    """Whether the results are not the same in all variants."""
    results: list[MatrixCell]


class MatrixDocument(BaseModel):
    """Variants of an agent over the same cases."""

    version: Literal[1]
    matrix: str
    """The id that the logs of its runs have."""
    agent: str
    started: str
    """ISO 8601, UTC."""
    seconds: float | None
    """Wall time of all runs."""
    base: str
    """The variant that the others are compared with."""
    complete: bool
    """Whether every selected case has a result in every variant."""
    notes: list[str]
    variants: list[MatrixVariant]
    cases: list[MatrixCase]


def matrix_schema() -> Schema:
    """The schema of the JSON report of a matrix."""
    return schema_of(MatrixDocument, "Report of an evaltui matrix", "report")
