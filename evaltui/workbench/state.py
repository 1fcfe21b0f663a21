"""What the workbench knows, as plain data."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evaltui.core.model.case_id import CaseId
from evaltui.core.trace.model_calls import NO_CALLS, CallCounts, ModelCalls
from evaltui.text.figures import counted
from evaltui.text.keys import key_of
from evaltui.workbench.result.stored_results import ResultRef, StoredResult

if TYPE_CHECKING:
    from evaltui.core.compare.run_summary import CaseSummary
    from evaltui.core.metrics.preflight import MetricCheck
    from evaltui.core.model.config import EvalConfig, PassIf
    from evaltui.core.model.eval_set import EvalCase
    from evaltui.core.model.events import Event
    from evaltui.core.model.modes import Modes
    from evaltui.core.model.outcome import CaseResult, Status
    from evaltui.core.model.stored_cases import StoredCase
    from evaltui.runner.plan import Scaled
    from evaltui.runs.resuming import Resumption

# Seconds over which a rate is taken.
_RATE = 60
_TOO_MANY_REQUESTS = 429


class Traffic:
    """Requests that were made; those that a recording answered count in nothing but tokens."""

    def __init__(self) -> None:
        self.tokens = 0
        """Tokens of all responses."""
        self.rate_limits = 0
        """How often the service refused a request for coming too soon."""
        self._throttled: set[int] = set()
        self._requests: Counter[int] = Counter()
        self._responses: Counter[int] = Counter()
        self._seconds: Counter[int] = Counter()
        self._tokens: Counter[int] = Counter()

    def on_event(self, event: Event) -> None:
        """Counts what an event tells of a model, by the second in which it happened."""
        second = int(event.t)
        if throttled := event.data.get("throttled"):
            end = event.t - (event.duration or 0.0)
            self._throttled.update(range(round(end - throttled), round(end)))
        if tokens := int((event.usage or {}).get("total_token_count") or 0):
            self.tokens += tokens
            self._tokens[second] += tokens
        if event.data.get("replayed") or event.data.get("missed"):
            return
        if event.kind == "model_request":
            self._requests[second] += 1
        elif event.kind == "model_response" and event.duration is not None:
            self._responses[second] += 1
            # In microseconds: counters are of whole numbers.
            self._seconds[second] += round(event.duration * 1e6)
        elif is_rate_limit(event):
            self.rate_limits += 1

    @property
    def throttled(self) -> int:
        """Seconds of the run in which a call waited for its limits."""
        return len(self._throttled)

    def requests_per_minute(self, now: float) -> int | None:
        """Requests of the last minute before `now`, in seconds of the run; None before the first request."""
        if not self._requests:
            return None
        return sum(count for second, count in self._requests.items() if second >= now - _RATE)

    def latency(self, now: float) -> float | None:
        """Mean seconds of a response in the last minute; None where none came."""
        recent = [second for second in self._responses if second >= now - _RATE]
        count = sum(self._responses[second] for second in recent)
        return sum(self._seconds[second] for second in recent) / count / 1e6 if count else None

    def requests_over_time(self, now: float, columns: int) -> list[float]:
        """Requests in each of so many equal parts of the run."""
        return _in_columns(self._requests, now, columns)

    def tokens_over_time(self, now: float, columns: int) -> list[float]:
        """Tokens in each of so many equal parts of the run."""
        return _in_columns(self._tokens, now, columns)

    def latency_over_time(self, now: float, columns: int) -> list[float | None]:
        """Mean seconds of a response in each of so many equal parts of the run; None where none came."""
        sums, counts = (_in_columns(one, now, columns) for one in (self._seconds, self._responses))
        return [total / count / 1e6 if count else None for total, count in zip(sums, counts, strict=True)]


def _in_columns(by_second: Mapping[int, int], now: float, columns: int) -> list[float]:
    found = [0.0] * max(0, min(columns, int(now) + 1))
    for second, number in by_second.items() if found else ():
        place = int(second * len(found) / (int(now) + 1))
        found[min(place, len(found) - 1)] += number
    return found


def is_rate_limit(event: Event) -> bool:
    """Whether a request was refused for coming too soon, and is sent again."""
    return event.kind == "error" and event.data.get("code") == _TOO_MANY_REQUESTS


def as_shares(values: Sequence[float | None]) -> list[float | None]:
    """Values as shares of the greatest one."""
    greatest = max((value for value in values if value is not None), default=0.0)
    return [None if value is None else value / greatest if greatest else 0.0 for value in values]


class Opening(NamedTuple):
    """What is to be opened."""

    path: Path
    starter: bool = False
    """Whether it was created just now."""
    demo: bool = False
    """Whether it is the demo, with its tour."""


class Selection(NamedTuple):
    """What is selected: a set, a case in it, a turn of that case (from 0), or nothing at all."""

    path: str | None = None
    """The path of the set, as `CaseId` has it."""
    eval_id: str | None = None
    turn: int | None = None

    @property
    def case(self) -> CaseId | None:
        if self.path is None or self.eval_id is None:
            return None
        return CaseId(self.path, self.eval_id)


@dataclass(frozen=True)
class RunRef:
    """The run that a result or a trace is from."""

    number: int = 0
    """Number of a run of this sitting, as in `Run`; 0 for a run of an earlier one."""
    log: Path | None = None
    """The log or result file of a run of an earlier sitting."""
    title: str = ""
    """What a run of an earlier sitting is called; "" for a run of this one."""

    @property
    def name(self) -> str:
        """`run 3`"""
        return self.title or f"run {self.number}"


def deciding_repeat(result: CaseResult) -> int:
    """Which run of a case gave it its metrics and turns: the first one that is as bad as the worst."""
    from evaltui.core.model.outcome import WORST_FIRST

    ranks = [WORST_FIRST.index(repeat.status) for repeat in result.repeats]
    return ranks.index(min(ranks)) if ranks else 0


# Not frozen, although no field is ever set: that takes three times as long to make, of a hundred thousand.
@dataclass(slots=True)
class CaseOutcome:
    """What came of a case, and what it was scored by."""

    ref: ResultRef
    """The result; `Outcomes.trace` has what its invocations are made of."""
    run: RunRef
    stored: StoredCase
    """The case that it was scored by."""
    config: EvalConfig
    """The config that it was scored by."""
    calls: ModelCalls = NO_CALLS
    """The model calls of that run."""
    code: int = 0
    """The version of the agent's code that was run."""
    chosen: int | None = None
    """The repeat that the user wants to see; None for the deciding one."""
    pass_if: PassIf | None = None
    """The policy that was asked for with the run."""
    ran: tuple[StoredCase | None, EvalConfig | None] | None = None
    """The case and the config of the run, which judges saw, each None where its log does not have it; None
    where they are `stored` and `config`."""
    given: str = ""
    """Fingerprint of what the agent got in a run whose log does not have the case; "" where nobody knows."""
    unscored: bool = False
    """Whether the result is that of the log, and `stored` and `config` have not scored it yet."""
    changed_files: tuple[str, ...] = ()
    """The files of the agent that were changed between that run and the start of the workbench."""
    logged: StoredResult | None = None
    """The result in the file of its run, as it came out then; None for a run without one."""
    modes: Modes | None = None
    """How its run treated models and tools, but for tools that the config names; None where nobody knows."""
    recorded: str = ""
    """Fingerprints of the recordings of its repeats; "" for a run without recordings."""
    undecided: bool = False
    """Whether a judge, a custom metric or a secret decides the outcome, which only another run can tell."""
    of_traces: bool = False
    """Whether recorded traces were scored, so that only a run can tell what the agent of now does."""

    @property
    def status(self) -> Status:
        return self.ref.figures.status

    @property
    def figures(self) -> CaseSummary:
        """Figures of the result, which is not read for them."""
        return self.ref.figures

    @property
    def result(self) -> CaseResult:
        """All of the result; where it cannot be read, how it came out and nothing else."""
        result = self.ref.read()
        if not isinstance(result, str):
            return result
        from evaltui.core.model.outcome import CaseResult

        known = self.figures
        policy, is_met = known.policy, known.policy_met
        return CaseResult(
            self.stored.eval_id, known.status, eval_set_id=known.eval_set_id, policy=policy, policy_met=is_met
        )

    @property
    def problem(self) -> str:
        """Why the result cannot be read, as a sentence; "" where it can."""
        result = self.ref.read()
        return result if isinstance(result, str) else ""

    @property
    def case_changed(self) -> bool:
        """Whether the case says something else than it did in the run, as far as the run tells."""
        return self.figures.expects not in ("", self.stored.fingerprint)

    def gives_way(self, other: CaseOutcome) -> bool:
        """Whether another result, which a run's file has, is shown instead: that of a later run, or of the
        same one where both were read from its file."""
        if self.logged is None or other.logged is None:
            return False
        # Ids begin with the time.
        return self.logged.file.path.name < other.logged.file.path.name or self.run == other.run

    @property
    def repeat(self) -> int:
        """Which repeat is shown, and meant by everything that is done to its differences: the deciding one,
        until the user chooses."""
        return deciding_repeat(self.result) if self.chosen is None else self.chosen

    @property
    def shown(self) -> CaseResult:
        """The result, with metrics, error, turns and state of the repeat that is shown."""
        result = self.result
        if self.chosen is None or self.chosen >= len(result.repeats):
            return result
        one = result.repeats[self.chosen]
        return replace(
            result,
            metrics=one.metrics,
            error=one.error,
            turns=one.turns,
            state=one.state,
            stopped=one.stopped,
        )

    @property
    def case(self) -> EvalCase:
        """Made each time: ten thousand models take 90 MB."""
        return self.stored.model()


class EarlierResult(NamedTuple):
    """The result that the last one has replaced."""

    status: str
    run: str
    """The name of its run."""
    stored: StoredCase | None
    """The case that it was scored by, as is `config`; None where nobody knows."""
    config: EvalConfig | None

    def differs(self, scored: CaseOutcome) -> bool:
        """Whether another result has another status by the same expectation."""
        from evaltui.core.metrics.normal_config import score_alike

        if self.status == scored.status or self.stored is None or self.config is None:
            return False
        if self.stored is not scored.stored and not self.stored.says_the_same(scored.stored):
            return False

        return score_alike(self.config, scored.config)


class SameConfig:
    """Whether configs, most of which are the same objects, score as one does."""

    def __init__(self, config: EvalConfig) -> None:
        self.config = config
        # Kept, so that no other one gets the number of one that is gone.
        self._known: dict[int, tuple[EvalConfig, bool]] = {}

    def __call__(self, other: EvalConfig) -> bool:
        from evaltui.core.metrics.normal_config import score_alike

        known = self._known.get(id(other))
        if known is None:
            is_same = score_alike(other, self.config)
            known = self._known[id(other)] = other, is_same
        return known[1]


READ_ONLY = "Read-only: no edits, runs or chats here"
CANCELLING = "Cancelling… (force-stop in 3 s)"


def nothing_to_cancel() -> str:
    """Says so, and how to leave."""
    return f"Nothing to cancel; {key_of('quit')} quits"


class Stage(StrEnum):
    READING = "loading eval sets"
    STARTING = "starting agent"
    RUNNING = "running"
    CANCELLING = "cancelling"
    FINISHED = "finished"
    CANCELLED = "cancelled"
    FAILED = "failed"


# Fewer cases that are done say little of those to come.
_ENOUGH = 3


class Repeated(NamedTuple):
    """Number of runs of each case."""

    runs: int
    """With a confidence, how many there are at most."""
    pass_if: PassIf
    """What of that must pass."""
    confidence: float | None = None
    """How sure the verdict must be; None runs each case as often as `runs` says."""

    @property
    def in_words(self) -> str:
        """`5 runs`, `at most 50 runs`"""
        return f"{'at most ' if self.confidence else ''}{counted(self.runs, 'run')}"


@dataclass
class Run:
    """One run and how far it is."""

    number: int
    """Counts the runs of the agent, from 1."""
    title: str
    code: int = 0
    """The version of the agent's code that is run."""
    at: float = field(default_factory=time.time)
    """When it was started, in seconds since the epoch."""
    repeated: Repeated | None = None
    """How often its cases are run; None where their configs say so."""
    resumes: Resumption | None = None
    """The run that this one goes on with."""
    stage: Stage = Stage.READING
    selected: frozenset[CaseId] = frozenset()
    """The cases that it is of."""
    running: set[CaseId] = field(default_factory=set)
    done: set[CaseId] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    """How many cases came out how, by status."""
    began: float = field(default_factory=time.monotonic)
    """When it was started, as `time.monotonic()`."""
    working_since: float | None = None
    """When its first case was started, as `began`."""
    ended: float | None = None
    """When it ended, as `began`."""
    logged_seconds: float | None = None
    """Its wall time as its log has it; None until it is over, and without a log."""
    last_verdict_at: float | None = None
    """When the last verdict came, as `at`."""
    log: Path | None = None
    remarks: list[str] = field(default_factory=list)
    """Sentences on what went otherwise than it should."""
    is_stopped: bool = False
    """Whether it ended before all of its cases had a result, without being cancelled."""
    checks: tuple[MetricCheck, ...] = ()
    """What was known of its metrics beforehand."""
    unready: str = ""
    """Which metrics do not run as they should, in short; "" where all do."""
    calls: CallCounts = field(default_factory=CallCounts)
    """The calls of models, and of tools that were stubbed, so far."""
    traffic: Traffic = field(default_factory=Traffic)
    """The requests of models over time."""
    failures: list[CaseId] = field(default_factory=list)
    """The cases whose results are ones to stop at, as they came."""
    judging: set[CaseId] = field(default_factory=set)
    """The running cases that wait for a judge."""
    parallel: int = 0
    """How many cases run at once; 0 until that is known."""
    hosts: int = 0
    """On how many processes; 0 until that is known."""
    scale: Scaled | None = None
    """Where it is at work on a cluster; None for a run on this machine."""
    kill: Callable[[], Awaitable[None]] | None = None
    """Ends all of its processes by force; None until it is at work."""
    _sets: tuple[Collection[CaseId], frozenset[str]] = ((), frozenset())

    @cached_property
    def ref(self) -> RunRef:
        """All of its cases have the same one."""
        return RunRef(self.number)

    def renumber(self, number: int) -> None:
        """Gives it the number of its file: another process may have begun a run at the same time."""
        self.number = number
        vars(self).pop("ref", None)

    @property
    def over(self) -> bool:
        return self.stage in (Stage.FINISHED, Stage.CANCELLED, Stage.FAILED)

    @property
    def seconds(self) -> float:
        if self.logged_seconds is not None:
            return self.logged_seconds
        return (self.ended or time.monotonic()) - self.began

    @property
    def paths(self) -> frozenset[str]:
        """Those of the sets that its cases are in, gone through once: it is asked for in every frame."""
        if self._sets[0] is not self.selected:
            self._sets = self.selected, frozenset(case.path for case in self.selected)
        return self._sets[1]

    @property
    def seconds_left(self) -> float | None:
        """An estimate, from the cases that are done; None before there are three of them, and at the end."""
        done, left = len(self.done), len(self.selected) - len(self.done)
        if done < _ENOUGH or not left or self.working_since is None:
            return None
        return (time.monotonic() - self.working_since) / done * left

    def is_waiting(self, case: CaseId) -> bool:
        """Whether the case is still to be run."""
        return not self.over and case in self.selected and case not in self.running and case not in self.done
