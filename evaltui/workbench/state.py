"""The state of the workbench, as plain data."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
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
    from evaltui.core.model.config import EvalConfig, OwnPrice, PassIf
    from evaltui.core.model.eval_set import EvalCase
    from evaltui.core.model.events import Event
    from evaltui.core.model.modes import Modes
    from evaltui.core.model.outcome import CaseResult, Status
    from evaltui.core.model.stored_cases import StoredCase
    from evaltui.runner.plan import Scaled
    from evaltui.runs.resuming import Resumption

# Seconds over which a rate is taken.
_RATE_SECONDS = 60
_TOO_MANY_REQUESTS = 429


class Traffic:
    """Requests to models over time; requests answered by a recording count only their tokens."""

    def __init__(self) -> None:
        self.tokens = 0
        """Tokens of all responses."""
        self.rate_limits = 0
        """How often the service refused a request because of a rate limit."""
        self._throttled: set[int] = set()
        self._requests: Counter[int] = Counter()
        self._responses: Counter[int] = Counter()
        self._seconds: Counter[int] = Counter()
        self._tokens: Counter[int] = Counter()

    def on_event(self, event: Event) -> None:
        """Counts a model event in the second of its time."""
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
        return sum(count for second, count in self._requests.items() if second >= now - _RATE_SECONDS)

    def latency(self, now: float) -> float | None:
        """Mean seconds of a response in the last minute; None where none came."""
        recent = [second for second in self._responses if second >= now - _RATE_SECONDS]
        count = sum(self._responses[second] for second in recent)
        return sum(self._seconds[second] for second in recent) / count / 1e6 if count else None

    def requests_over_time(self, now: float, columns: int) -> list[float]:
        """Requests in each of so many equal parts of the run."""
        return _sum_by_column(self._requests, now, columns)

    def tokens_over_time(self, now: float, columns: int) -> list[float]:
        """Tokens in each of so many equal parts of the run."""
        return _sum_by_column(self._tokens, now, columns)

    def latency_over_time(self, now: float, columns: int) -> list[float | None]:
        """Mean seconds of a response in each of so many equal parts of the run; None where none came."""
        sums, counts = (
            _sum_by_column(by_second, now, columns) for by_second in (self._seconds, self._responses)
        )
        return [total / count / 1e6 if count else None for total, count in zip(sums, counts, strict=True)]


def _sum_by_column(by_second: Mapping[int, int], now: float, columns: int) -> list[float]:
    sums = [0.0] * max(0, min(columns, int(now) + 1))
    for second, number in by_second.items() if sums else ():
        place = int(second * len(sums) / (int(now) + 1))
        sums[min(place, len(sums) - 1)] += number
    return sums


def is_rate_limit(event: Event) -> bool:
    """Whether a request was refused because of a rate limit, and is sent again."""
    return event.kind == "error" and event.data.get("code") == _TOO_MANY_REQUESTS


def scale_to_shares(values: Sequence[float | None]) -> list[float | None]:
    """Values divided by the greatest one."""
    greatest = max((value for value in values if value is not None), default=0.0)
    return [None if value is None else value / greatest if greatest else 0.0 for value in values]


class Opening(NamedTuple):
    """The files to open at the start."""

    path: Path
    starter: bool = False
    """Whether it was just created."""
    demo: bool = False
    """Whether it is the demo, with its tour."""


class Selection(NamedTuple):
    """The selected set, case in it, and turn of that case (from 0), or none of them."""

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
    """The run of a result or a trace."""

    number: int = 0
    """Number of a run of this session, as in `Run`; 0 for a run of an earlier one."""
    log: Path | None = None
    """The log or result file of a run of an earlier session."""
    title: str = ""
    """The title of a run of an earlier session; "" for a run of this one."""
    started: float = 0.0
    """Its start, in seconds since the epoch."""

    @property
    def name(self) -> str:
        """`run 3`"""
        return self.title or f"run {self.number}"


# Not frozen, although no field is ever set: that takes three times as long to make, of a hundred thousand.
@dataclass(slots=True)
class CaseOutcome:
    """The result of a case, with the case and the config that scored it."""

    ref: ResultRef
    """The result; `Outcomes.trace` has the events of its invocations."""
    run: RunRef
    stored: StoredCase
    """The case that scored it."""
    config: EvalConfig
    """The config that scored it."""
    calls: ModelCalls = NO_CALLS
    """The model calls of that run."""
    code: int = 0
    """The version of the agent's code in the run; of an earlier session, when `changed_files` were read. -1
    where it is unknown."""
    chosen: int | None = None
    """The repeat that the user has chosen; None for the deciding one."""
    pass_if: PassIf | None = None
    """The pass policy that the run was started with."""
    ran: tuple[StoredCase | None, EvalConfig | None] | None = None
    """The case and the config of the run, which judges saw, each None where its log does not have it; None
    where they are `stored` and `config`."""
    agent_input: str = ""
    """Fingerprint of the agent's input in a run whose log does not have the case; "" where it is unknown."""
    unscored: bool = False
    """Whether the result is that of the log, not yet scored by `stored` and `config`."""
    changed_files: Mapping[str, str] = field(default_factory=dict)
    """The files of the agent that had changed since a run of an earlier session when it was read, with their
    fingerprints in the run: "" for a file that was not there, `agent_files.UNKNOWN` where it is unknown."""
    logged: StoredResult | None = None
    """The original result in the run file; None for a run without a file."""
    modes: Modes | None = None
    """The modes of models and tools in its run, without tools that the config names; None where they are
    unknown."""
    prices: Mapping[str, OwnPrice] | None = None
    """The prices of the project in its run; None where they are unknown."""
    recorded: str = ""
    """Fingerprints of the recordings of its repeats; "" for a run without recordings."""
    undecided: bool = False
    """Whether a judge, a custom metric or a secret decides the outcome, so that it needs another run."""
    of_traces: bool = False
    """Whether recorded traces were scored, so that the current agent needs a run."""
    rescored_at: float = 0.0
    """Time at which it was last scored again, in seconds since the epoch; 0.0 for never."""

    @property
    def status(self) -> Status:
        return self.ref.figures.status

    @property
    def figures(self) -> CaseSummary:
        """The figures of the result, without reading the whole result."""
        return self.ref.figures

    @property
    def result(self) -> CaseResult:
        """The whole result; where it is unreadable, its status only."""
        result = self.ref.read()
        if not isinstance(result, str):
            return result
        from evaltui.core.model.outcome import CaseResult

        figures = self.figures
        policy, is_met = figures.policy, figures.policy_met
        return CaseResult(
            self.stored.eval_id,
            figures.status,
            eval_set_id=figures.eval_set_id,
            policy=policy,
            policy_met=is_met,
        )

    @property
    def problem(self) -> str:
        """Why the result is unreadable, as a sentence; "" where it is readable."""
        result = self.ref.read()
        return result if isinstance(result, str) else ""

    @property
    def case_changed(self) -> bool:
        """Whether the expectations of the case differ from those in the run, as far as they are known."""
        return self.figures.expects not in ("", self.stored.fingerprint)

    def gives_way(self, other: CaseOutcome) -> bool:
        """Whether another stored result replaces this one: that of a later run, or of the same run where both
        were read from its file."""
        if self.logged is None or other.logged is None:
            return False
        # Ids begin with the time.
        return self.logged.file.path.name < other.logged.file.path.name or self.run == other.run

    @property
    def repeat(self) -> int:
        """The shown repeat, which actions on differences use: the deciding one, until the user chooses
        another."""
        return self.result.deciding_repeat if self.chosen is None else self.chosen

    @property
    def shown(self) -> CaseResult:
        """The result, with metrics, error, turns and state of the shown repeat."""
        result = self.result
        if self.chosen is None or self.chosen >= len(result.repeats):
            return result
        repeat = result.repeats[self.chosen]
        return replace(
            result,
            metrics=repeat.metrics,
            error=repeat.error,
            turns=repeat.turns,
            state=repeat.state,
            stopped=repeat.stopped,
        )

    @property
    def case(self) -> EvalCase:
        """The case as a model. It is built at each call: ten thousand models take 90 MB."""
        return self.stored.model()


class EarlierResult(NamedTuple):
    """The result before the last one."""

    status: str
    run: str
    """The name of its run."""
    stored: StoredCase | None
    """The case that scored it, as does `config`; None where it is unknown."""
    config: EvalConfig | None

    def differs(self, scored: CaseOutcome) -> bool:
        """Whether another result has another status by the same expectation."""
        if self.status == scored.status or self.stored is None or self.config is None:
            return False
        if self.stored is not scored.stored and not self.stored.says_the_same(scored.stored):
            return False
        return SameConfig(self.config)(scored.config)


class SameConfig:
    """Compares configs with one config: true where they score equally. Most are the same object."""

    def __init__(self, config: EvalConfig) -> None:
        self.config = config
        # Kept, so that no other one gets the number of one that is gone.
        self._cached: dict[int, tuple[EvalConfig, bool]] = {}

    def __call__(self, other: EvalConfig) -> bool:
        from evaltui.core.metrics.normal_config import score_alike

        cached = self._cached.get(id(other))
        if cached is None:
            is_same = score_alike(other, self.config)
            cached = self._cached[id(other)] = other, is_same
        return cached[1]


READ_ONLY = "Read-only: no edits, runs or chats here"
CANCELLING = "Cancelling… (force-stop in 3 s)"


def nothing_to_cancel() -> str:
    """A sentence about it, with the key that quits."""
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
_MIN_FINISHED = 3


class RepeatChoice(NamedTuple):
    """How often each case is run."""

    runs: int
    """With a confidence, the maximum."""
    pass_if: PassIf
    """The pass policy over the runs."""
    confidence: float | None = None
    """The confidence of the verdict; None to run each case exactly `runs` times."""

    @property
    def in_words(self) -> str:
        """`5 runs`, `at most 50 runs`"""
        return f"{'at most ' if self.confidence else ''}{counted(self.runs, 'run')}"


@dataclass
class Run:
    """A run and its progress."""

    number: int
    """Counts the runs of the agent, from 1."""
    title: str
    code: int = 0
    """The version of the agent's code in the run."""
    at: float = field(default_factory=time.time)
    """Start time in seconds since the epoch."""
    repeated: RepeatChoice | None = None
    """How often its cases are run; None where their configs say so."""
    resumes: Resumption | None = None
    """The run that this one resumes."""
    stage: Stage = Stage.READING
    selected: frozenset[CaseId] = frozenset()
    """The cases of the run."""
    running: set[CaseId] = field(default_factory=set)
    done: set[CaseId] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    """The number of cases by status."""
    began: float = field(default_factory=time.monotonic)
    """Start time, as `time.monotonic()`."""
    started: float = field(default_factory=time.time)
    """Start time, in seconds since the epoch."""
    working_since: float | None = None
    """Start time of its first case, as `began`."""
    ended: float | None = None
    """End time, as `began`."""
    logged_seconds: float | None = None
    """Its wall time in its log; None until it is over, and without a log."""
    last_verdict_at: float | None = None
    """Time of the last verdict, as `at`."""
    log: Path | None = None
    remarks: list[str] = field(default_factory=list)
    """Sentences on unexpected events."""
    is_stopped: bool = False
    """Whether it ended before all of its cases had a result, without being cancelled."""
    checks: tuple[MetricCheck, ...] = ()
    """The checks of its metrics before the run."""
    unready: str = ""
    """The metrics that cannot be computed, in short; "" for none."""
    calls: CallCounts = field(default_factory=CallCounts)
    """The calls of models, and of tools that were stubbed, so far."""
    traffic: Traffic = field(default_factory=Traffic)
    """The requests of models over time."""
    failures: list[CaseId] = field(default_factory=list)
    """The cases whose results need attention, in order of arrival."""
    judging: set[CaseId] = field(default_factory=set)
    """The running cases that wait for a judge."""
    parallel: int = 0
    """The number of cases that run at once; 0 until it is known."""
    hosts: int = 0
    """The number of processes; 0 until it is known."""
    scale: Scaled | None = None
    """The scale of the cluster that it uses; None for a run on this machine."""
    kill: Callable[[], Awaitable[None]] | None = None
    """Kills all of its processes; None until they are started."""

    @cached_property
    def ref(self) -> RunRef:
        """The reference that all of its cases share."""
        return RunRef(self.number, started=self.started)

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
        """The paths of the sets of its cases."""
        return frozenset(case.path for case in self.selected)

    @property
    def seconds_left(self) -> float | None:
        """Estimated seconds left, from the finished cases; None for fewer than three of them, and at the
        end."""
        done, left = len(self.done), len(self.selected) - len(self.done)
        if done < _MIN_FINISHED or not left or self.working_since is None:
            return None
        return (time.monotonic() - self.working_since) / done * left

    def is_waiting(self, case: CaseId) -> bool:
        """Whether the case is queued."""
        return not self.over and case in self.selected and case not in self.running and case not in self.done
