"""Selection: the cases of a run, their config and the number of repeats."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from evaltui.core.compare.repeats import repeat_rule
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.limits import Amount
from evaltui.core.model.problems import EvalSetError, SelectionError
from evaltui.core.model.variants import Variant
from evaltui.project.agent_address import AgentAddress
from evaltui.project.run_settings import RunSettings
from evaltui.project.settings import environment_of, secrets_of
from evaltui.runner.gate import SharedByGates
from evaltui.runner.metric_checks import checked
from evaltui.runner.plan import RunPlan, SetPlan
from evaltui.runs.matrices import newest_runs, runs_of_kind
from evaltui.runs.resuming import Resumption, notes_on_kept
from evaltui.runs.run_file import RunFile
from evaltui.runs.run_header import RunHeader
from evaltui.runs.run_kind import RunKind
from evaltui.runs.scoring import (
    PairedTraces,
    TracesToScore,
    agent_name,
    changed_conversations,
    pair_traces,
)
from evaltui.runs.sets import SetSource, warnings_of
from evaltui.runs.shards import Shard, ShardsOfRun, divide
from evaltui.runs.store import RunStore
from evaltui.text.figures import counted, short_list


@dataclass(frozen=True)
class RunRequest:
    """A requested run, from the command line or the screen."""

    agent: AgentAddress
    cases: Mapping[Path, Collection[str] | None] = field(default_factory=dict)
    """The ids of the selected cases by file; None for all cases of a file."""
    only_failed: bool = False
    """Whether cases whose last result is a pass are left out."""
    skips_invalid: bool = False
    """Whether an invalid set becomes a note; otherwise it raises EvalSetError."""
    settings: RunSettings = field(default_factory=RunSettings)
    """The settings for running and storing it."""
    shard: Shard | None = None
    """The shard of the cases to run; None for all cases."""
    seconds: Mapping[CaseId, float] = field(default_factory=dict)
    """Known seconds of a run of each case, by which shards are balanced."""
    ship_env: tuple[str, ...] = ()
    """Names of environment variables that are sent to workers on other machines."""
    traces: TracesToScore | None = None
    """Conversations to score instead of running the agent."""
    matrix: str = ""
    """The id of its matrix, "" for none; its variant is in `agent`."""
    variants: tuple[Variant, ...] = ()
    """All variants of the matrix, with masked secrets."""
    shared: SharedByGates | None = None
    """The shared limits and budget of the matrix."""
    session: str = ""
    """The id of the single received session in `traces`, whose run is stored apart; "" for none."""
    resumes: Resumption | None = None
    """The run to resume."""
    number: int | None = None
    """Number of the run, from 1; None for the next number."""
    baseline: str = ""
    """Id of the baseline; "" for none."""
    logs_in_use: Callable[[], Collection[Path]] = frozenset
    """Returns logs of earlier runs that are still read afterwards and must not be deleted."""

    @property
    def agent_dir(self) -> Path:
        """Folder or file of the agent."""
        return self.agent.folder

    @property
    def kind(self) -> RunKind:
        return RunKind.of(
            self.agent, of_traces=self.traces is not None, adk_verdicts=self.settings.adk_verdicts
        )

    @property
    def store(self) -> RunStore:
        """The store of this run and of earlier runs."""
        if self.session:
            return RunStore.of_sessions(self.agent_dir)
        return RunStore.of(self.agent_dir, self.settings, self.agent.module, self.agent.url)


def resume_request(request: RunRequest, resumption: Resumption) -> RunRequest:
    """The request with the selection and settings of the earlier run."""
    header = resumption.header
    then = header.settings
    return replace(
        request,
        cases=resumption.eval_ids,
        agent=replace(request.agent, name=header.agent_name, module=request.agent.module or header.module),
        matrix=header.matrix,
        variants=header.variants,
        settings=replace(
            request.settings,
            runs=then.runs,
            pass_if=then.pass_if,
            confidence=then.confidence,
            adk_verdicts=then.adk_verdicts,
            config_choice=then.config_choice,
            record=then.record,
            tools=then.tools,
        ),
        resumes=resumption,
        baseline="" if resumption.of_other_variant else header.baseline,
    )


@dataclass(frozen=True)
class SelectedRun:
    """A run that is ready to start."""

    request: RunRequest
    plan: RunPlan
    header: RunHeader
    """The header without the fields of the plan."""
    notes: tuple[str, ...] = ()
    """Sentences about ignored parts of the request."""
    undivided: RunPlan | None = None
    """The plan of all shards; None for a run that is no shard."""


def select(request: RunRequest, sets: SetSource) -> SelectedRun:
    """Reads the requested sets and checks the requirements of their metrics.

    The plan has no sets where all requested cases are deleted. Raises EvalSetError for a set with errors,
    SelectionError where every case has passed already.
    """
    plans: list[SetPlan] = []
    notes: list[str] = []
    opened: list[SetPlan] = []
    whole_before = _whole_sets(request.resumes)
    for path, eval_ids in request.cases.items():
        whole_set = _open_set(request, sets, path, notes)
        if whole_set is None:
            continue
        # Cases that came later are no part of the run.
        is_whole = eval_ids is None or whole_set.case_path in whole_before
        if eval_ids is not None and is_whole:
            notes += _notes_on_later_cases(request.resumes, whole_set, eval_ids)
        selected = whole_set if eval_ids is None else replace(whole_set.only(eval_ids), whole=is_whole)
        if selected.cases or eval_ids is None:
            plans.append(selected)
            opened.append(whole_set)
    if request.only_failed:
        plans = _without_passed(request, plans)
        paths = {plan.path for plan in plans}
        opened = [whole_set for whole_set in opened if whole_set.path in paths]
    notes += warnings_of(opened)
    if request.resumes is not None:
        notes += notes_on_kept(request.resumes, request.agent)
    of_traces = _pair_traces(request, sets, plans)
    if of_traces is not None:
        notes += of_traces.notes
    if of_traces is not None and request.traces is not None and request.traces.only_paired:
        plans = _keep_paired(of_traces, plans, notes)
        if not plans:
            raise SelectionError("\n".join(("no conversation in the traces is of a selected case", *notes)))
    all_plans = plans
    shards = request.resumes.header.shards if request.resumes else None
    if request.shard is not None:
        plans, shards = _shard_part(request, request.shard, plans)
        if not any(selected.cases for selected in plans):
            notes.append(f"shard {request.shard} has none of the {counted(shards.case_count, 'case')}")
    plans = [replace(selected, places=_places(sets, selected)) for selected in plans]
    if request.agent.url and request.settings.record != "off":
        # Of the project: nobody has asked for it here.
        notes.append(f"recordings {request.settings.record}: off for an agent behind a network")
        request = replace(request, settings=replace(request.settings, record="off"))
    plan = _with_part_of_limits(_plan(request, plans), shards, notes)
    if of_traces is not None and request.traces is not None:
        plan = replace(plan, held=of_traces.held, held_by=agent_name(request.traces))
    header = _header(request, plan, sets, shards, of_traces.unpaired if of_traces else 0)
    undivided = checked(replace(plan, sets=tuple(all_plans))) if request.shard else None
    return SelectedRun(request, checked(plan), header, tuple(notes), undivided)


def _open_set(request: RunRequest, sets: SetSource, path: Path, notes: list[str]) -> SetPlan | None:
    try:
        return sets.open(path)
    except EvalSetError as error:
        if not request.skips_invalid:
            raise
        note = error.problems[0].stops(path)
        # A config stops all of its sets.
        notes += [] if note in notes else [note]
        return None


def _pair_traces(request: RunRequest, sets: SetSource, plans: Sequence[SetPlan]) -> PairedTraces | None:
    """Conversations paired with cases, including those of unselected cases."""
    if request.traces is None:
        return None
    whole = [sets.open(path) for path in request.cases]
    selected = {case for plan in plans for case in plan.case_ids}
    resumes = request.resumes
    pairing = pair_traces(request.traces, whole, selected, resumes.header.shards if resumes else None)
    if resumes is not None:
        secrets = secrets_of(request.agent_dir)
        if others := list(changed_conversations(pairing.held, resumes, secrets.masked)):
            raise SelectionError(
                f"{short_list(others)} of run {resumes.id} had other conversations: the cases "
                "of its eval sets changed. Score all cases instead"
            )
    return pairing


def _keep_paired(pairing: PairedTraces, plans: Sequence[SetPlan], notes: list[str]) -> list[SetPlan]:
    """The plans without cases that lack a conversation; their number becomes a note."""
    mine = [plan.only([case.eval_id for case in plan.case_ids if case in pairing.held]) for plan in plans]
    before, after = (sum(len(plan.cases) for plan in some) for some in (plans, mine))
    if before > after:
        notes.append(f"{counted(before - after, 'case')} without a conversation left out")
    return [plan for plan in mine if plan.cases]


def _shard_part(
    request: RunRequest, shard: Shard, plans: Sequence[SetPlan]
) -> tuple[list[SetPlan], ShardsOfRun]:
    """The cases of one shard; sets without a case in it are left out."""
    # How often a case is run then is not known.
    runs = 1 if request.settings.confidence else request.settings.runs
    mine, shards = divide(plans, shard, runs, request.seconds)
    return [part for part, plan in zip(mine, plans, strict=True) if part.cases or not plan.cases], shards


def _with_part_of_limits(plan: RunPlan, shards: ShardsOfRun | None, notes: list[str]) -> RunPlan:
    """The plan with its limits divided by the number of shards, which run at the same time, and a note about
    it."""
    if shards is None or shards.count == 1 or len(shards.numbers) > 1 or not plan.settings.limits:
        return plan
    limits = tuple(limit.divided_by(shards.count) for limit in plan.settings.limits)
    notes.append(f"1/{shards.count} of the limits for this shard: {'; '.join(map(str, limits))}")
    return replace(plan, settings=replace(plan.settings, limits=limits))


def _places(sets: SetSource, plan: SetPlan) -> tuple[int, ...] | None:
    if plan.whole or plan.path is None:
        return None
    numbers = {eval_id: number for number, eval_id in enumerate(sets.open(plan.path).eval_ids)}
    return tuple(numbers[eval_id] for eval_id in plan.eval_ids)


def _header(
    request: RunRequest, plan: RunPlan, sets: SetSource, shards: ShardsOfRun | None, unpaired: int
) -> RunHeader:
    traces = request.traces
    resumed = request.resumes if request.resumes and not request.resumes.of_other_variant else None
    header = RunHeader(
        settings=replace(plan.settings, limits=request.settings.limits),
        number=request.number,
        config=str(sets.config.resolve()) if sets.config else "",
        initial_session=str(sets.initial_session.resolve()) if sets.initial_session else "",
        matrix=request.matrix,
        variants=request.variants,
        shards=shards,
        session=request.session,
        resumed=resumed.id if resumed else "",
        baseline=request.baseline,
        unpaired=unpaired,
    )
    if traces is None:
        return header
    return replace(
        header,
        traces=traces.files,
        trace_files=traces.digests,
        case_from=traces.case_from,
        only_paired=traces.only_paired,
        lost=traces.lost,
    )


def _plan(request: RunRequest, plans: list[SetPlan]) -> RunPlan:
    settings, resumes = request.settings, request.resumes
    plan = RunPlan(
        request.agent,
        tuple(plans),
        # A session that is received comes once.
        replace(settings, record="off") if request.session else settings,
        earlier=resumes.finished if resumes else {},
        more=resumes.more if resumes else {},
        spent=resumes.spent + resumes.known_spent if resumes else Amount(),
        shared=request.shared,
        variables=_variables(request),
    )
    _check_confidence(plan)
    return plan


def _check_confidence(plan: RunPlan) -> None:
    """Raises SelectionError for a set whose cases could never pass."""
    for eval_set in plan.sets:
        try:
            repeat_rule(1, plan.pass_if_of(eval_set), plan.settings.confidence)
        except ValueError as error:
            raise SelectionError(f"{eval_set.eval_set_id}: {error}") from error


def _variables(request: RunRequest) -> dict[str, str]:
    """The environment variables to send to workers. Raises SelectionError for a variable that is not set."""
    if not request.ship_env:
        return {}
    environment = environment_of(request.agent_dir)
    if unset := [name for name in request.ship_env if name not in environment]:
        raise SelectionError(f"--ship-env: {', '.join(unset)} is not set, here or in .env")
    return {name: environment[name] for name in request.ship_env}


def _notes_on_later_cases(
    resumption: Resumption | None, plan: SetPlan, eval_ids: Collection[str]
) -> Iterator[str]:
    """Notes about cases that were added to a set after the resumed run started."""
    shards = resumption.header.shards if resumption else None
    divided = shards.sets.get(plan.case_path) if shards else None
    later = dict.fromkeys(plan.eval_ids)
    for eval_id in (*eval_ids, *(divided.eval_ids if divided else ())):
        later.pop(eval_id, None)
    if later:
        yield f"not run, new in {plan.case_path} since the run began: {short_list(list(later))}"


def _whole_sets(resumption: Resumption | None) -> frozenset[str]:
    """The sets of which the resumed run had all cases."""
    sets = resumption.header.sets if resumption else ()
    return frozenset(eval_set.path for eval_set in sets if eval_set.whole)


def _without_passed(request: RunRequest, plans: Sequence[SetPlan]) -> list[SetPlan]:
    passed = _passed_cases(request, [case for plan in plans for case in plan.case_ids])
    failed = (plan.only([case.eval_id for case in plan.case_ids if case not in passed]) for plan in plans)
    if not (left := [plan for plan in failed if plan.cases]):
        raise SelectionError("--failed: every selected case passed in its last run; nothing to run")
    return left


def _passed_cases(request: RunRequest, cases: Collection[CaseId]) -> set[CaseId]:
    """The cases that passed in the newest run with them of this kind outside of this matrix, in every variant
    if it was a matrix.

    Raises SelectionError without a run, and where the newest is unreadable.
    """
    store, kind = request.store, request.kind
    variants = [item.name if item.changes else "" for item in request.variants] or [kind.variant]
    kinds = [kind._replace(variant=variant) for variant in variants]
    if not any(newest_runs(store, variant, request.matrix) for variant in kinds):
        raise SelectionError(f"--failed: no runs of {store.title} yet")
    return set.intersection(
        *(_passed_last(runs_of_kind(store, variant, request.matrix), cases) for variant in kinds)
    )


def _passed_last(runs: Iterable[Sequence[Path]], cases: Collection[CaseId]) -> set[CaseId]:
    """The cases that passed in the newest run that selected them; the newest run is the first."""
    left, passed = set(cases), set[CaseId]()
    for number, paths in enumerate(runs):
        try:
            files = [RunFile(path) for path in paths]
            selected = left.intersection(case for file in files for case, _ in file.header.selected())
            if selected:
                of_each = ({item.id for item in file.cases if item.summary.passes} for file in files)
                passed |= selected.intersection(*of_each)
        except (OSError, ValueError) as error:
            if number == 0:
                raise SelectionError(f"--failed: the last run cannot be read: {error}") from error
            # Which results before it are the last ones is unknown.
            break
        left -= selected
        if not left:
            break
    return passed
