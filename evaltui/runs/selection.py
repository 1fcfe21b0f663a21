"""What is to be run: which cases of which eval sets, scored by what, and how often."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evaltui.core.compare.repeat_rules import repeat_rule
from evaltui.core.model.budget import Amount, parse_budget
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.confidence import Confidence
from evaltui.core.model.config import PassIf
from evaltui.core.model.modes import DEFAULT_MODE
from evaltui.core.model.outcome import Status
from evaltui.core.model.problems import EvalSetError, SelectionError
from evaltui.core.model.stored_cases import ids_and_turns
from evaltui.core.model.variants import Variant
from evaltui.files.agent_address import AgentAddress
from evaltui.files.agent_environment import environment_of
from evaltui.files.configs import ConfigChoice
from evaltui.files.folders import case_path
from evaltui.files.run_settings import RunSettings
from evaltui.files.schedulers import OFF
from evaltui.files.settings import secrets_of
from evaltui.runner.parent.gate.shared import SharedByGates
from evaltui.runner.parent.metric_checks import checked
from evaltui.runner.plan import RunPlan, SetPlan
from evaltui.runs.resuming import Resumption, notes_on_kept
from evaltui.runs.run_file import RunFile
from evaltui.runs.run_kind import RunKind
from evaltui.runs.scoring import (
    PairedTraces,
    TracesToScore,
    agent_name,
    paired,
    with_other_conversations,
    without_unheld,
)
from evaltui.runs.sets import CasesById, SetInfo, SetSource, SetToRun, only, warnings_of
from evaltui.runs.shards import Shard, ShardsOfRun, divide
from evaltui.runs.store import RunStore
from evaltui.text.figures import counted, some_of

_MOST_NAMES = 3


@dataclass(frozen=True)
class RunRequest:
    """A run as it is asked for, on the command line or on the screen."""

    agent: AgentAddress
    cases: Mapping[Path, Collection[str] | None] = field(default_factory=dict)
    """Of each file the ids of the cases that are meant, None for all of them."""
    only_failed: bool = False
    """Whether cases that passed in the newest run are left out."""
    skips_invalid: bool = False
    """Whether a set that cannot be run is a note; else it is an EvalSetError."""
    runs: int | None = None
    """How often each case is run; None as each set's config says. The same goes for `pass_if`."""
    pass_if: PassIf | None = None
    confidence: Confidence | None = None
    """How sure the verdict on each case must be, instead of a number of runs."""
    adk_verdicts: bool = False
    config_choice: ConfigChoice = "nearest"
    """How the configs of the sets are found."""
    settings: RunSettings = field(default_factory=RunSettings)
    """How it is run, and where it is stored."""
    shard: Shard | None = None
    """The part of the cases that is run; None for all of them."""
    seconds: Mapping[CaseId, float] = field(default_factory=dict)
    """How long a run of a case takes, as far as known: what shards are divided by."""
    ship_env: tuple[str, ...] = ()
    """Names of variables that workers on other machines get with their values."""
    strict_env: bool = False
    """Whether workers are not used whose Python or packages differ from those of this machine."""
    traces: TracesToScore | None = None
    """Conversations that are scored instead of running the agent."""
    matrix: str = ""
    """The id that all runs of a matrix have; "" where this one is of none. Its variant is in `agent`."""
    variants: tuple[Variant, ...] = ()
    """All of the matrix, without secrets."""
    shared: SharedByGates | None = None
    """The limits and the budget of the matrix."""
    session: str = ""
    """The only one of them, by its id, that a listener received; it is stored apart from runs."""
    resumes: Resumption | None = None
    """The run that this one brings to its end."""
    number: int | None = None
    """Number of the run, from 1; None for the next one."""
    baseline: str = ""
    """Id of the run that it is compared with; "" for none."""
    logs_in_use: Callable[[], Collection[Path]] = frozenset
    """The logs of earlier runs that are still read when this one is over: they stay."""

    @property
    def agent_dir(self) -> Path:
        """Folder or file of the agent."""
        return self.agent.folder

    @property
    def kind(self) -> RunKind:
        return RunKind.of(self.agent, of_traces=self.traces is not None, adk_verdicts=self.adk_verdicts)

    @property
    def store(self) -> RunStore:
        """Where the run is stored, and those before it."""
        if self.session:
            return RunStore.of_sessions(self.agent_dir)
        return RunStore.of(self.agent_dir, self.settings)


def resuming(request: RunRequest, resumption: Resumption) -> RunRequest:
    """The request with all that the earlier run was begun with."""
    data = resumption.header.data
    module = request.agent.module or data.get("module") or ""
    return replace(
        request,
        cases=resumption.eval_ids,
        runs=data.get("runs"),
        pass_if=data.get("pass_if"),
        confidence=resumption.header.confidence,
        agent=replace(request.agent, name=data.get("agent_name"), module=module),
        matrix=resumption.header.matrix,
        variants=resumption.header.variants,
        adk_verdicts=bool(data.get("adk_verdicts")),
        config_choice=data.get("config_choice", "nearest"),
        settings=replace(
            request.settings, record=data.get("record") or DEFAULT_MODE, tools=data.get("tools")
        ),
        resumes=resumption,
        baseline="" if resumption.of_other_variant else data.get("baseline", ""),
    )


@dataclass(frozen=True)
class SelectedRun:
    """A run that can begin."""

    request: RunRequest
    plan: RunPlan
    sets: tuple[SetInfo, ...]
    """The sets of the plan, in its order."""
    header: Mapping[str, Any]
    """What its log says at the top besides what the plan says."""
    notes: tuple[str, ...] = ()
    """Sentences on what of the request is left out."""
    unpaired: int = 0
    """How many of the conversations that were to be scored no case is for."""


def select(request: RunRequest, sets: SetSource) -> SelectedRun:
    """Read the sets that are asked for, and look whether their metrics can be computed here.

    The plan has no set where none of the cases is there any more. Raises EvalSetError for a set with errors,
    SelectionError where every case passed already.
    """
    plans: list[SetPlan] = []
    infos: list[SetInfo] = []
    notes: list[str] = []
    passed = _passed(request) if request.only_failed else frozenset()
    opened: list[SetToRun] = []
    whole_before = _whole_sets(request.resumes)
    for path, eval_ids in request.cases.items():
        found = _opened(request, sets, path, notes)
        if found is None:
            continue
        named = case_path(request.agent_dir, path)
        one = found.plan(eval_ids)
        if named in whole_before:
            # Cases that came later are no part of the run.
            one = replace(one, whole=True)
        if passed:
            one = _without(one, named, passed)
        if one.cases or (eval_ids is None and not request.only_failed):
            plans.append(one)
            infos.append(SetInfo.of(found, one, named))
            opened.append(found)
    if request.only_failed and not plans:
        raise SelectionError("--failed: every selected case passed in the last run; nothing to run")
    notes += warnings_of(opened)
    if request.resumes is not None:
        notes += notes_on_kept(request.resumes, request.agent)
    of_traces = _paired(request, sets, plans, infos)
    if of_traces is not None:
        notes += of_traces.notes
    if of_traces is not None and request.traces is not None and request.traces.only_paired:
        plans, infos = _only_paired(of_traces, plans, infos, notes)
        if not plans:
            raise SelectionError("\n".join(("no conversation in the traces is of a selected case", *notes)))
    shards = request.resumes.header.shards if request.resumes else None
    if request.shard is not None:
        plans, infos, shards = _part(request, request.shard, plans, infos)
        if not any(one.cases for one in plans):
            notes.append(f"shard {request.shard} has none of the {counted(shards.case_count, 'case')}")
    plans = [replace(one, places=_places(sets, one)) for one in plans]
    if request.agent.url and request.settings.record != "off":
        # Of the project: nobody has asked for it here.
        notes.append(f"recordings {request.settings.record}: off for an agent behind a network")
        request = replace(request, settings=replace(request.settings, record="off"))
    plan = _with_part_of_limits(_plan(request, plans), shards, notes)
    if of_traces is not None and request.traces is not None:
        plan = replace(plan, held=of_traces.held, held_by=agent_name(request.traces))
    unpaired = of_traces.unpaired if of_traces else 0
    header = _header(request, sets, shards) | ({"unpaired": unpaired} if unpaired else {})
    return SelectedRun(request, checked(plan), tuple(infos), header, tuple(notes), unpaired)


def _opened(request: RunRequest, sets: SetSource, path: Path, notes: list[str]) -> SetToRun | None:
    try:
        return sets.open(path)
    except EvalSetError as error:
        if not request.skips_invalid:
            raise
        notes.append(f"Cannot run {path.name}: {error.problems[0].beside(path)}")
        return None


def _paired(
    request: RunRequest, sets: SetSource, plans: Sequence[SetPlan], infos: Sequence[SetInfo]
) -> PairedTraces | None:
    """Conversations and cases; a case that is not selected has its conversations as well."""
    if request.traces is None:
        return None
    whole = [(case_path(request.agent_dir, path), sets.open(path).plan()) for path in request.cases]
    selected = {
        CaseId(info.known_as, eval_id)
        for plan, info in zip(plans, infos, strict=True)
        for eval_id, _ in ids_and_turns(plan.cases)
    }
    resumes = request.resumes
    found = paired(request.traces, whole, selected, resumes.header.shards if resumes else None)
    if resumes is not None:
        secrets = secrets_of(request.agent_dir)
        if others := list(with_other_conversations(found.held, resumes, secrets.masked)):
            raise SelectionError(
                f"{some_of(others, _MOST_NAMES)} of run {resumes.id} had other conversations: the cases of "
                "its eval sets changed. Score all cases instead"
            )
    return found


def _only_paired(
    found: PairedTraces, plans: Sequence[SetPlan], infos: Sequence[SetInfo], notes: list[str]
) -> tuple[list[SetPlan], list[SetInfo]]:
    """The cases that a conversation is for; how many are left out is a note."""
    mine = [without_unheld(plan, info.known_as, found.held) for plan, info in zip(plans, infos, strict=True)]
    before, after = (sum(len(one.cases) for one in some) for some in (plans, mine))
    if before > after:
        notes.append(f"{counted(before - after, 'case')} without a conversation left out")
    left = [(plan, info) for plan, info in zip(mine, infos, strict=True) if plan.cases]
    return [plan for plan, _ in left], [replace(info, cases=CasesById(plan.cases)) for plan, info in left]


def _part(
    request: RunRequest, shard: Shard, plans: Sequence[SetPlan], infos: Sequence[SetInfo]
) -> tuple[list[SetPlan], list[SetInfo], ShardsOfRun]:
    """The cases of one shard; a set that has some in other shards only is left out."""
    named = [info.known_as for info in infos]
    # How often a case is run then is not known.
    runs = 1 if request.confidence else request.runs
    mine, shards = divide(list(zip(named, plans, strict=True)), shard, runs, request.seconds)
    left = [
        (part, replace(info, cases=CasesById(part.cases)))
        for part, plan, info in zip(mine, plans, infos, strict=True)
        if part.cases or not plan.cases
    ]
    return [part for part, _ in left], [info for _, info in left], shards


def _with_part_of_limits(plan: RunPlan, shards: ShardsOfRun | None, notes: list[str]) -> RunPlan:
    """Shards run side by side; a resumed one is one of as many as it was."""
    if shards is None or shards.count == 1 or len(shards.numbers) > 1 or not plan.limits:
        return plan
    limits = tuple(one.divided_by(shards.count) for one in plan.limits)
    notes.append(f"1/{shards.count} of the limits for this shard: {'; '.join(map(str, limits))}")
    return replace(plan, limits=limits)


def _places(sets: SetSource, one: SetPlan) -> tuple[int, ...] | None:
    if one.whole or one.path is None:
        return None
    cases = sets.open(one.path).cases
    numbers = {eval_id: number for number, (eval_id, _) in enumerate(ids_and_turns(cases))}
    return tuple(numbers[eval_id] for eval_id, _ in ids_and_turns(one.cases))


def _header(request: RunRequest, sets: SetSource, shards: ShardsOfRun | None) -> dict[str, Any]:
    files = {"config": sets.config, "initial_session": sets.initial_session}
    header: dict[str, Any] = {name: str(path.resolve()) for name, path in files.items() if path}
    header["settings"] = request.settings.to_json()
    if request.config_choice != "nearest":
        header["config_choice"] = request.config_choice
    if request.number is not None:
        header["number"] = request.number
    if request.traces is not None:
        header |= request.traces.to_log()
    if request.session:
        header["session"] = request.session
    if shards is not None:
        header["shards"] = shards.to_json()
    if request.variants:
        header["variants"] = [one.to_json() for one in request.variants]
    resumed = request.resumes if request.resumes and not request.resumes.of_other_variant else None
    named = {"resumed": resumed.id if resumed else "", "baseline": request.baseline}
    return header | {name: run for name, run in named.items() if run}


def _plan(request: RunRequest, plans: list[SetPlan]) -> RunPlan:
    scheduler = request.settings.scheduler or OFF
    scheduler = "" if scheduler == OFF else scheduler
    plan = RunPlan(
        agent=request.agent,
        sets=tuple(plans),
        runs=request.runs,
        pass_if=request.pass_if,
        confidence=request.confidence,
        parallel=request.settings.parallel,
        workers=request.settings.workers,
        timeout=request.settings.timeout,
        adk_verdicts=request.adk_verdicts,
        known=request.resumes.known if request.resumes else {},
        more=request.resumes.more if request.resumes else {},
        # A session that is received comes once.
        record="off" if request.session else request.settings.record,
        tools=request.settings.tools,
        matrix=request.matrix,
        prices=request.settings.prices,
        limits=request.settings.limits,
        budget=parse_budget(request.settings.budget) if request.settings.budget else None,
        spent=request.resumes.spent + request.resumes.known_spent if request.resumes else Amount(),
        shared=request.shared,
        allow_unmetered=request.settings.allow_unmetered,
        scheduler=scheduler,
        variables=_variables(request),
        strict_env=request.strict_env,
        seconds=request.seconds or _recorded_seconds(request.store, scheduler),
    )
    _check_confidence(plan)
    return plan


def _recorded_seconds(store: RunStore, scheduler: str) -> dict[CaseId, float]:
    """What a scheduler orders the cases by."""
    if not scheduler:
        return {}
    from evaltui.runs.matrices import recorded_seconds

    return recorded_seconds(store)


def _check_confidence(plan: RunPlan) -> None:
    """Raises SelectionError where no case of a set could ever pass."""
    for one in plan.sets:
        try:
            repeat_rule(1, plan.pass_if_of(one), plan.confidence)
        except ValueError as error:
            raise SelectionError(f"{one.eval_set_id}: {error}") from error


def _variables(request: RunRequest) -> dict[str, str]:
    """Raises SelectionError for one that is not set."""
    if not request.ship_env:
        return {}
    environment = environment_of(request.agent_dir)
    if unset := [name for name in request.ship_env if name not in environment]:
        raise SelectionError(f"--ship-env: {', '.join(unset)} is not set, here or in .env")
    return {name: environment[name] for name in request.ship_env}


def _whole_sets(resumption: Resumption | None) -> frozenset[str]:
    """Of which sets the earlier run had all cases."""
    sets = resumption.header.sets if resumption else ()
    return frozenset(one.path for one in sets if one.whole)


def _without(plan: SetPlan, path: str, passed: Collection[CaseId]) -> SetPlan:
    left = [eval_id for eval_id, _ in ids_and_turns(plan.cases) if CaseId(path, eval_id) not in passed]
    whole = plan.whole and len(left) == len(plan.cases)
    return replace(plan, cases=only(plan.cases, left), whole=whole)


def _passed(request: RunRequest) -> frozenset[CaseId]:
    """The cases that passed in the newest run of the kind before this matrix; where that is of a matrix
    itself, in all of its variants. Raises SelectionError where it cannot be read."""
    from evaltui.runs.matrices import newest_runs

    store = request.store
    last = newest_runs(store, request.kind, besides=request.matrix)
    if not last:
        raise SelectionError(f"--failed: no runs of {store.title} yet")
    try:
        runs = [RunFile(path) for path in last]
        passed = [{one.id for one in run.cases if one.summary.status is Status.PASSED} for run in runs]
    except (OSError, ValueError) as error:
        raise SelectionError(f"--failed: the last run cannot be read: {error}") from error
    return frozenset.intersection(*map(frozenset, passed))
