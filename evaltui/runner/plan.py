"""A run's plan: its cases, their order and repeats; and the updates while they run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from evaltui.agents.protocol import FilesOpened
from evaltui.core.compare.repeats import FixedRuns, RepeatRule, repeat_rule
from evaltui.core.cost.prices import Prices
from evaltui.core.metrics.config_validation import outside_of_range
from evaltui.core.metrics.preflight import MetricCheck
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import EvalConfig, PassIf, Repeats
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.events import Event, Json
from evaltui.core.model.limits import Amount, CallRate
from evaltui.core.model.outcome import CaseResult, ErrorInfo, RepeatResult
from evaltui.core.model.problems import Problem, format_path
from evaltui.core.model.stored_cases import StoredCase, StoredCases, ids_and_turns
from evaltui.core.model.tags import Tags
from evaltui.documents.saving import Fingerprint
from evaltui.project.agent_address import AgentAddress
from evaltui.project.configs import ConfigInUse
from evaltui.project.run_settings import OFF, RunSettings
from evaltui.runner.gate import SharedByGates
from evaltui.runner.recording_files import SCORED, recordings_path
from evaltui.text.figures import counted, show_number


@dataclass(frozen=True)
class SetPlan:
    """An eval set without errors, its cases to run, and the config that scores them."""

    case_path: str
    """The path of `CaseId` of its cases: that of its file, else its id."""
    eval_set_id: str
    cases: Sequence[EvalCase]
    """Each may be parsed only when it is read, which happens when it is run."""
    config_in_use: ConfigInUse
    path: Path | None = None
    """Its file, beside which its recordings are; None for a set without a file."""
    whole: bool = False
    """Whether these are all of its cases."""
    places: tuple[int, ...] | None = None
    """Places of the cases in their set, from 0; None where they are unknown."""
    fingerprint: Fingerprint | None = None
    """Fingerprint of the text that was read; None for an old format, or where it has been edited since."""
    files: Mapping[Path, Fingerprint | None] = field(default_factory=dict)
    """The files that were read for it, each with its fingerprint then, None for a missing file."""
    problems: tuple[Problem, ...] = ()
    """Warnings of the set and of its config."""
    others: tuple[StoredCase, ...] = ()
    """Cases of the set that are not to be run."""

    @property
    def config(self) -> EvalConfig:
        return self.config_in_use.config

    @cached_property
    def config_name(self) -> str:
        return str(self.config_in_use.path or "the config")

    @property
    def eval_ids(self) -> tuple[str, ...]:
        """The ids of its cases, in order."""
        return tuple(eval_id for eval_id, _ in ids_and_turns(self.cases))

    @property
    def tags(self) -> Tags:
        """Tags of its cases, by their ids."""
        tags = self.config.tags(self.eval_set_id)
        return {eval_id: tags[eval_id] for eval_id in self.eval_ids if eval_id in tags} if tags else {}

    @property
    def case_ids(self) -> Iterator[CaseId]:
        return (CaseId(self.case_path, eval_id) for eval_id, _ in ids_and_turns(self.cases))

    @property
    def stored_cases(self) -> Iterable[StoredCase]:
        """Its cases as JSON, in order, without making a model of any."""
        return self.cases.stored if isinstance(self.cases, StoredCases) else map(StoredCase.of, self.cases)

    def only(self, eval_ids: Collection[str]) -> SetPlan:
        """The set with some of its cases, in their order, without making a model of any."""
        ids = set(eval_ids)
        cases: Sequence[EvalCase] = (
            self.cases.only(ids)
            if isinstance(self.cases, StoredCases)
            else tuple(case for case in self.cases if case.eval_id in ids)
        )
        others = tuple(case for case in self.stored_cases if case.eval_id not in ids)
        is_whole = self.whole and len(cases) == len(self.cases)
        return replace(self, cases=cases, whole=is_whole, others=(*self.others, *others))


@dataclass(frozen=True)
class HeldConversation:
    """A conversation of a case that was held elsewhere; its events have the turns of the case."""

    events: tuple[Event, ...]
    error: ErrorInfo | None = None
    """The error that ended it."""
    seconds: float = 0.0
    final_state: Json | None = None
    """The session state after the last turn; None where it is unknown."""


@dataclass(frozen=True)
class HeldElsewhere:
    """A conversation that is read when it is scored."""

    id: str
    """Id of the session in the traces."""
    read: Callable[[], HeldConversation]


HeldConversations = Mapping[CaseId, Sequence[HeldElsewhere]]
"""The conversations of each case, by repeat."""


@dataclass(frozen=True)
class RunPlan:
    """A run: its agent, cases and settings, and results of an earlier part of it."""

    agent: AgentAddress
    sets: tuple[SetPlan, ...]
    settings: RunSettings = field(default_factory=RunSettings)
    earlier: Mapping[CaseId, Mapping[int, RepeatResult]] = field(default_factory=dict)
    """Results of repeats, by number from 0, of an earlier part: they are not run again."""
    more: Mapping[CaseId, int] = field(default_factory=dict)
    """Numbers of runs of cases that are run more often than the settings say."""
    checks: tuple[MetricCheck, ...] = ()
    """Requirements of the metrics: those that cannot run are not tried (see `metric_facts.checked`)."""
    spent: Amount = field(default_factory=Amount)
    """Spending of earlier parts of the run, with the results in `earlier`."""
    shared: SharedByGates | None = None
    """Limits and budget of a matrix, with the spending of its earlier runs; None for this run alone."""
    held: HeldConversations | None = None
    """Conversations that were held elsewhere, to be scored; None runs the agent."""
    held_by: str = ""
    """The agent that held them; "" where it is unknown."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Additional variables in the environment of hosts on other machines."""

    @property
    def agent_dir(self) -> Path:
        """Folder or file of the agent."""
        return self.agent.folder

    @property
    def scheduler(self) -> str:
        """The scheduler of the run, see `project.run_settings`; "" for hosts on this machine."""
        address = self.settings.scheduler or OFF
        return "" if address == OFF else address

    @property
    def limits_time(self) -> bool:
        """Whether verdicts depend on the time of cases."""
        return any("seconds" in eval_set.config.evaltui.criteria for eval_set in self.sets)

    @property
    def case_count(self) -> int:
        return sum(len(eval_set.cases) for eval_set in self.sets)

    def prices_of(self, *sets: SetPlan) -> Prices:
        """Prices of models in the cases of sets."""
        prices = dict(self.settings.prices)
        for eval_set in sets:
            prices |= eval_set.config.evaltui.prices
        return Prices(prices)

    def recordings_path(self, eval_set: SetPlan) -> Path | None:
        """The file of a set's recordings; None for a set without a file."""
        if eval_set.path is None:
            return None
        variant = self.agent.variant.recordings if self.agent.variant else ""
        folder = variant if self.held is None else SCORED
        return recordings_path(eval_set.path, eval_set.eval_set_id, folder)

    def pass_if_of(self, eval_set: SetPlan) -> PassIf:
        """The policy of a set's cases whose runs differ."""
        return self.settings.pass_if or eval_set.config.evaltui.repeats.pass_if

    def repeat_rule(self, eval_set: SetPlan, case: CaseId) -> RepeatRule:
        """The rule of how often a case of a set is run. Raises ValueError where it could never pass."""
        held = None if self.held is None else len(self.held.get(case, ()))
        return rule_of_case(self.settings, eval_set.config.evaltui.repeats, held, self.more.get(case))

    def selected(self) -> Iterator[tuple[CaseId, str]]:
        """All cases in order, each with the id of its set."""
        return ((case, eval_set.eval_set_id) for eval_set in self.sets for case in eval_set.case_ids)


def rule_of_case(
    settings: RunSettings, repeats: Repeats, conversations: int | None, more: int | None
) -> RepeatRule:
    """The rule of how often a case is run whose config has `repeats`.

    `conversations` is the number of those that are scored instead, None where the agent is run; `more` is the
    number of runs of a case that is run more often than others. Raises ValueError where it could never pass.
    """
    if conversations is not None:
        return FixedRuns(max(conversations, 1))
    if more is not None:
        return FixedRuns(more)
    runs, pass_if = settings.runs or repeats.runs, settings.pass_if or repeats.pass_if
    return repeat_rule(runs, pass_if, settings.confidence)


@dataclass(frozen=True, slots=True)
class WorkItem:
    """A run of a case, independent of every other, wherever it runs."""

    case: CaseId
    set: SetPlan
    turns: int | None
    """Number of its turns; None where a user is simulated."""
    index: int
    """Place of the case in its set."""
    number: int
    """Place of the case among all of the plan."""
    repeat: int


@dataclass(frozen=True)
class AgentLoaded:
    info: Json


@dataclass(frozen=True)
class AgentBroken:
    error: ErrorInfo


@dataclass(frozen=True)
class CaseStarted:
    case: CaseId
    eval_set_id: str
    repeat: int


@dataclass(frozen=True)
class Happened:
    event: Event
    json: str = ""
    """The event as a host's JSON text; "" for an event that comes from no host."""


@dataclass(frozen=True)
class Judging:
    """A run of a case is over, and a judge is asked."""

    case: CaseId


@dataclass(frozen=True)
class RepeatDone:
    """A run of a case has its result; `CaseDone` follows the last one."""

    case: CaseId
    eval_set_id: str
    repeat: int
    result: RepeatResult


@dataclass(frozen=True)
class CaseDone:
    result: CaseResult


@dataclass(frozen=True)
class RunStopped:
    """The run ends before all of its cases have a result."""

    reason: str
    """A sentence."""
    is_refusal: bool
    """Whether it cannot be made with its settings."""


@dataclass(frozen=True)
class SpentWithoutResult:
    """Spending of a run with a budget that no result counts: of cases that were cut off or repeated, and
    calls without a count of their tokens. Reported at its end, however it ends."""

    amount: Amount


@dataclass(frozen=True)
class Noted:
    """A remark on the run, a sentence."""

    text: str
    at_once: bool = False
    """Whether it is only of use while the run goes on."""


@dataclass(frozen=True)
class AtWork:
    """The run starts."""

    kill: Callable[[], Awaitable[None]]
    """Ends all of its processes by force."""
    hosts: int = 1
    """Number of processes that run agents."""
    rate: Callable[[], CallRate | None] = lambda: None
    """Calls per minute against the limit that is nearest; None where they are not limited."""


@dataclass(frozen=True)
class Scaled:
    """Size of a cluster that the run is at work on."""

    machines: int
    hosts: int
    in_flight: int
    """Runs of cases."""

    @property
    def in_words(self) -> str:
        """`2 machines, 8 hosts, 31 in flight`"""
        if not self.machines:
            return "no worker"
        machines, hosts = counted(self.machines, "machine"), counted(self.hosts, "host")
        return f"{machines}, {hosts}, {self.in_short}"

    @property
    def in_short(self) -> str:
        """`31 in flight`, the part that changes most."""
        return f"{show_number(self.in_flight)} in flight" if self.machines else "no worker"


Update = (
    AgentLoaded
    | AgentBroken
    | AtWork
    | CaseStarted
    | Judging
    | Happened
    | RepeatDone
    | CaseDone
    | FilesOpened
    | Noted
    | RunStopped
    | Scaled
    | SpentWithoutResult
)
OnUpdate = Callable[[Update], None]


def check_plan(plan: RunPlan) -> None:
    """Raises ValueError where there is nothing to run, or a number makes no sense."""
    settings = plan.settings
    numbers = (settings.runs, settings.parallel, settings.workers)
    if any(number is not None and number < 1 for number in numbers):
        raise ValueError("runs, parallel and workers must be at least 1")
    if settings.runs is not None and settings.confidence is not None:
        raise ValueError("runs: a confidence says how often a case is run; leave out one of them")
    for eval_set in plan.sets:
        for path, why in outside_of_range(eval_set.config):
            raise ValueError(f"{eval_set.eval_set_id}: {format_path(path)}: {why}")
    if not plan.case_count:
        raise ValueError("no case selected")
