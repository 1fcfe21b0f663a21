"""What the workbench knows, as plain data."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from evaltui.core.recordings.counts import CallCounts
from evaltui.core.trace.model_calls import NO_CALLS, ModelCalls
from evaltui.workbench.verdicts import deciding_repeat

if TYPE_CHECKING:
    # Importing these loads google.genai, which must not happen before the first frame.
    from evaltui.core.metrics.preflight import MetricCheck
    from evaltui.core.model.config import EvalConfig, PassIf
    from evaltui.core.model.eval_set import EvalCase
    from evaltui.core.model.outcome import CaseResult
    from evaltui.core.model.stored_cases import StoredCase
    from evaltui.workbench.resuming import Resumption


class CaseKey(NamedTuple):
    """A case, wherever it is named: the file that it is in, and its id there."""

    path: Path
    eval_id: str


class Selection(NamedTuple):
    """What is selected: a set, a case in it, a turn of that case (from 0), or nothing at all."""

    path: Path | None = None
    eval_id: str | None = None
    turn: int | None = None

    @property
    def case(self) -> CaseKey | None:
        if self.path is None or self.eval_id is None:
            return None
        return CaseKey(self.path, self.eval_id)


class DifferenceAt(NamedTuple):
    """Where, in its last result, a case did otherwise than expected.

    `turn` counts from 0, `row` is the index of a call in `TurnResult.calls`. A call differs as a whole, or in
    an argument at a path as in `ArgDiff`. A key of the final state has a path as in `StateDiff`, and no turn.
    What a judge found is `found`: the metric, and the index in `InvocationScore.judgements`.
    """

    kind: Literal["argument", "call", "answer", "state", "judgement"]
    turn: int | None = None
    row: int | None = None
    path: str | None = None
    found: tuple[str, int] | None = None


@dataclass(frozen=True)
class CaseOutcome:
    """What came of a case, the run it comes from, and the case and the config that it was scored by.

    `calls` are the model calls of that run, `code` is which version of the agent it ran. The result is
    without the invocations of its repeats: `Outcomes.trace` has what they are made of. `chosen` is the repeat
    that the user wants to see, `pass_if` the policy that was asked for with the run, `past` what a run
    of an earlier sitting is called. `judged_as` is what judges saw, once the case has been scored again.
    `outdated` says what besides the agent was another one in that sitting: `the case`, `the config`.
    """

    result: CaseResult
    run: int
    stored: StoredCase
    config: EvalConfig
    calls: ModelCalls = NO_CALLS
    code: int = 0
    chosen: int | None = None
    pass_if: PassIf | None = None
    past: str = ""
    judged_as: tuple[StoredCase, EvalConfig] | None = None
    outdated: tuple[str, ...] = ()

    @property
    def repeat(self) -> int:
        """Which repeat is shown, and meant by everything that is done to its differences: the deciding one,
        until the user chooses."""
        return deciding_repeat(self.result) if self.chosen is None else self.chosen

    @property
    def shown(self) -> CaseResult:
        """The result, with metrics, error, turns and state of the repeat that is shown."""
        if self.chosen is None:
            return self.result
        one = self.result.repeats[self.chosen]
        return replace(
            self.result,
            metrics=one.metrics,
            error=one.error,
            turns=one.turns,
            state=one.state,
            stopped=one.stopped,
        )

    @property
    def run_name(self) -> str:
        """`run 3`"""
        return self.past or f"run {self.run}"

    @property
    def case(self) -> EvalCase:
        """Made each time: ten thousand models take 90 MB."""
        return self.stored.model()


class Stage(StrEnum):
    READING = "reading the eval sets"
    STARTING = "starting the agent"
    RUNNING = "running"
    CANCELLING = "cancelling"
    FINISHED = "finished"
    CANCELLED = "cancelled"
    FAILED = "failed"


OVER = frozenset({Stage.FINISHED, Stage.CANCELLED, Stage.FAILED})


# Fewer cases that are done say little of those to come.
_ENOUGH = 3


class Repeated(NamedTuple):
    """How often each case is run, and what of that must pass."""

    runs: int
    pass_if: PassIf


@dataclass
class Run:
    """One run and how far it is. `began` and `ended` are `time.monotonic()`; `counts` is by status.

    `code` is the version of the agent that is run, `at` when it was begun in seconds since the epoch.
    `repeated` is None where the configs say how often cases are run, `resumes` the run that this one goes on
    with.
    `told` is when the last verdict came, as `at`. `log_size` is how many bytes of the log have been written,
    None where none can be. `calls` are those of models, and of tools that were stubbed, so far. `checks` are
    what was known of its metrics beforehand, and `unready` says in short which of them do not run as they
    should, "" where all do.
    """

    number: int
    title: str
    code: int = 0
    at: float = field(default_factory=time.time)
    repeated: Repeated | None = None
    resumes: Resumption | None = None
    stage: Stage = Stage.READING
    selected: frozenset[CaseKey] = frozenset()
    running: set[CaseKey] = field(default_factory=set)
    done: set[CaseKey] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    began: float = field(default_factory=time.monotonic)
    working_since: float | None = None
    ended: float | None = None
    told: float | None = None
    log: Path | None = None
    log_size: int | None = None
    remarks: list[str] = field(default_factory=list)
    checks: tuple[MetricCheck, ...] = ()
    unready: str = ""
    calls: CallCounts = field(default_factory=CallCounts)

    @property
    def over(self) -> bool:
        return self.stage in OVER

    @property
    def seconds(self) -> float:
        return (self.ended or time.monotonic()) - self.began

    @property
    def seconds_left(self) -> float | None:
        """An estimate, from the cases that are done; None before there are three of them, and at the end."""
        done, left = len(self.done), len(self.selected) - len(self.done)
        if done < _ENOUGH or not left or self.working_since is None:
            return None
        return (time.monotonic() - self.working_since) / done * left

    def is_waiting(self, key: CaseKey) -> bool:
        """Whether the case is still to be run."""
        return not self.over and key in self.selected and key not in self.running and key not in self.done


@dataclass(frozen=True)
class Notice:
    """A sentence that the user should see for a while. `at` is `time.monotonic()`."""

    text: str
    at: float = field(default_factory=time.monotonic)
