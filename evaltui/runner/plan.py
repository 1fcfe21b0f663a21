"""Which cases are run, how often and in what order; and what is told while they run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from evaltui.core.compare.repeat_rules import FixedRuns, RepeatRule, repeat_rule
from evaltui.core.cost.prices import Prices
from evaltui.core.metrics.config_validation import outside_of_range
from evaltui.core.metrics.preflight import MetricCheck
from evaltui.core.model.budget import Amount
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import EvalConfig, PassIf
from evaltui.core.model.eval_set import EvalCase
from evaltui.core.model.events import Event, Json
from evaltui.core.model.limits import CallRate
from evaltui.core.model.outcome import CaseResult, ErrorInfo, RepeatResult
from evaltui.core.model.problems import Problem, format_path
from evaltui.core.model.stored_cases import StoredCase, StoredCases, ids_and_turns
from evaltui.core.model.tags import Tags
from evaltui.documents.saving import Fingerprint
from evaltui.files.agent_address import AgentAddress
from evaltui.files.configs import ConfigInUse
from evaltui.files.run_settings import OFF, RunSettings
from evaltui.runner.parent.gate.shared import SharedByGates
from evaltui.runner.protocol import FilesOpened
from evaltui.runner.recordings import recordings_path
from evaltui.text.figures import counted, show_number


@dataclass(frozen=True)
class SetPlan:
    """An eval set without errors, those of its cases that are to be run, and the config that scores them."""

    case_path: str
    """The path of `CaseId` of its cases: that of its file, else its id."""
    eval_set_id: str
    cases: Sequence[EvalCase]
    """They may make their models when they are asked for: each is asked for when it is run."""
    config_in_use: ConfigInUse
    path: Path | None = None
    """Its file, beside which its recordings are; None for a set that is in none."""
    whole: bool = False
    """Whether these are all of its cases."""
    places: tuple[int, ...] | None = None
    """Those of the cases in their set, from 0; None where nobody knows."""
    fingerprint: Fingerprint | None = None
    """Of the text that was read; None where it is in an old format, or has been edited since."""
    files: Mapping[Path, Fingerprint | None] = field(default_factory=dict)
    """The files that were read for it, each with its fingerprint then, None for one that was missing."""
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
        """Those of its cases, by their ids."""
        tags = self.config.tags(self.eval_set_id)
        return {eval_id: tags[eval_id] for eval_id in self.eval_ids if eval_id in tags} if tags else {}

    @property
    def case_ids(self) -> Iterator[CaseId]:
        return (CaseId(self.case_path, eval_id) for eval_id, _ in ids_and_turns(self.cases))

    def only(self, eval_ids: Collection[str]) -> SetPlan:
        """The set with some of its cases, in their order, without making a model of any."""
        if isinstance(self.cases, StoredCases):
            ids = set(eval_ids)
            cases: Sequence[EvalCase] = self.cases.only(ids)
            others = tuple(one for one in self.cases.stored if one.eval_id not in ids)
        else:
            cases = tuple(case for case in self.cases if case.eval_id in eval_ids)
            others = tuple(StoredCase.of(case) for case in self.cases if case.eval_id not in eval_ids)
        is_whole = self.whole and len(cases) == len(self.cases)
        return replace(self, cases=cases, whole=is_whole, others=(*self.others, *others))


@dataclass(frozen=True)
class HeldConversation:
    """What an agent did elsewhere in a case: its events are numbered by the turns of the case."""

    events: tuple[Event, ...]
    error: ErrorInfo | None = None
    """What ended it."""
    seconds: float = 0.0
    final_state: Json | None = None
    """The session state after the last turn; None where it is unknown."""


@dataclass(frozen=True)
class HeldElsewhere:
    """A conversation that is read when it is scored."""

    id: str
    """That of the session in the traces."""
    read: Callable[[], HeldConversation]


HeldConversations = Mapping[CaseId, Sequence[HeldElsewhere]]
"""Of each case its conversations, by repeat."""


@dataclass(frozen=True)
class RunPlan:
    """A run: which cases, how they are run, and what is known of them beforehand."""

    agent: AgentAddress
    sets: tuple[SetPlan, ...]
    settings: RunSettings = field(default_factory=RunSettings)
    known: Mapping[CaseId, Mapping[int, RepeatResult]] = field(default_factory=dict)
    """Results of repeats, counted from 0, that an earlier run has: they are not run again."""
    more: Mapping[CaseId, int] = field(default_factory=dict)
    """How often cases are run that are run more often than the settings say."""
    checks: tuple[MetricCheck, ...] = ()
    """Requirements of the metrics: those that cannot run are not tried (see `metric_facts.checked`)."""
    spent: Amount = field(default_factory=Amount)
    """What earlier parts of the run have spent, with the results in `known`."""
    shared: SharedByGates | None = None
    """Limits and budget of a matrix, with what its earlier runs have spent; None: of this run alone."""
    held: HeldConversations | None = None
    """Conversations that were held elsewhere, to be scored; None runs the agent."""
    held_by: str = ""
    """The agent that held them; "" where nobody knows."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """What hosts on other machines have in their environment besides what there is."""
    seconds: Mapping[CaseId, float] = field(default_factory=dict)
    """How long a run of a case takes, as far as known: what a worker is given at once goes by it."""

    @property
    def agent_dir(self) -> Path:
        """Folder or file of the agent."""
        return self.agent.folder

    @property
    def scheduler(self) -> str:
        """What runs the cases, see `files.run_settings`; "" for hosts on this machine."""
        address = self.settings.scheduler or OFF
        return "" if address == OFF else address

    @property
    def case_count(self) -> int:
        return sum(len(one.cases) for one in self.sets)

    def prices_of(self, one: SetPlan) -> Prices:
        """What models cost in the cases of a set."""
        return Prices({**self.settings.prices, **one.config.evaltui.prices})

    def recordings_path(self, one: SetPlan) -> Path | None:
        """The file of a set's recordings; None for a set that has no file."""
        if one.path is None:
            return None
        variant = self.agent.variant.recordings if self.agent.variant else ""
        return recordings_path(one.path, one.eval_set_id, scored=self.held is not None, variant=variant)

    def prices_of_run(self) -> Prices:
        """What models cost in the run as a whole."""
        of_sets = {name: price for one in self.sets for name, price in one.config.evaltui.prices.items()}
        return Prices({**self.settings.prices, **of_sets})

    def pass_if_of(self, one: SetPlan) -> PassIf:
        """When a case of a set passes whose runs differ."""
        return self.settings.pass_if or one.config.evaltui.repeats.pass_if

    def repeat_rule(self, one: SetPlan, case: CaseId) -> RepeatRule:
        """How often a case of a set is run. Raises ValueError where it could never pass."""
        if self.held is not None:
            return FixedRuns(max(len(self.held.get(case, ())), 1))
        if case in self.more:
            return FixedRuns(self.more[case])
        runs = self.settings.runs or one.config.evaltui.repeats.runs
        return repeat_rule(runs, self.pass_if_of(one), self.settings.confidence)

    def selected(self) -> Iterator[tuple[CaseId, str]]:
        """All cases in order, each with the id of its set."""
        return ((case, one.eval_set_id) for one in self.sets for case in one.case_ids)


@dataclass(frozen=True, slots=True)
class WorkItem:
    """One case to be run once: independent of every other, wherever it runs.

    `turns` is how many the case has, None where a user is simulated; `index` its place in its set, `number`
    its place among all the cases of the plan.
    """

    case: CaseId
    set: SetPlan
    turns: int | None
    index: int
    number: int
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
    """The event as JSON text, as its host told it; "" for what no host told."""


@dataclass(frozen=True)
class Judging:
    """The agent is done with a run of a case, and a judge is asked."""

    case: CaseId


@dataclass(frozen=True)
class RepeatDone:
    """One run of a case is over; `CaseDone` follows the last one."""

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
    """Whether it cannot be made as it was asked for."""


@dataclass(frozen=True)
class SpentWithoutResult:
    """Calls of a run with a budget that no result counts: of cases that were cut off or begun anew, and calls
    that did not tell their tokens. Told at its end, however it ends."""

    amount: Amount


@dataclass(frozen=True)
class Noted:
    """A remark on the run, a sentence."""

    text: str
    at_once: bool = False
    """Whether it is of no use when the run is over."""


@dataclass(frozen=True)
class AtWork:
    """The run begins."""

    kill: Callable[[], Awaitable[None]]
    """Ends all of its processes by force."""
    hosts: int = 1
    """How many processes run agents at once."""
    rate: Callable[[], CallRate | None] = lambda: None
    """Calls per minute against the limit that is nearest; None where they are not limited."""


@dataclass(frozen=True)
class Scaled:
    """Where the run is at work on a cluster now."""

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
        """`31 in flight`, which changes most."""
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


def work_items(plan: RunPlan) -> list[WorkItem]:
    """What is to be run at first, and what is known of it, in order. Raises ValueError where that is nothing,
    or a number makes no sense."""
    settings = plan.settings
    if any(
        number is not None and number < 1 for number in (settings.runs, settings.parallel, settings.workers)
    ):
        raise ValueError("runs, parallel and workers must be at least 1")
    if settings.runs is not None and settings.confidence is not None:
        raise ValueError("runs: a confidence says how often a case is run; leave out one of them")
    for one in plan.sets:
        for path, why in outside_of_range(one.config):
            raise ValueError(f"{one.eval_set_id}: {format_path(path)}: {why}")
    items = list(_items(plan))
    if not items:
        raise ValueError("no case selected")
    return items


def _items(plan: RunPlan) -> Iterable[WorkItem]:
    number = 0
    for one in plan.sets:
        for index, (eval_id, turns) in enumerate(ids_and_turns(one.cases)):
            case = CaseId(one.case_path, eval_id)
            known = plan.known.get(case, {})
            for repeat in sorted({*known, *plan.repeat_rule(one, case).due(known)}):
                yield WorkItem(case, one, turns, index, number, repeat)
            number += 1
