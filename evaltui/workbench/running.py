"""From chosen cases to plans, and plans at work. Importing this loads the models: do it in a thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from evaltui.core.metrics.preflight import in_short
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.config import EvalConfig
from evaltui.core.model.outcome import Status
from evaltui.core.model.stored_cases import StoredCase, StoredCases
from evaltui.core.recordings.choices import DEFAULT_MODE, RecordMode, ToolMode
from evaltui.files.case_paths import case_path
from evaltui.runner.parent.metric_facts import checked
from evaltui.runner.parent.pool import StartedHost
from evaltui.runner.plan import OnUpdate, RunPlan, SetPlan, Update, follow_plan
from evaltui.runs.logged_run import LoggedRun
from evaltui.workbench.documents import Documents
from evaltui.workbench.resuming import Resumption
from evaltui.workbench.state import CaseKey, Run


@dataclass(frozen=True)
class Chosen:
    """The cases of one file that are to be run; None means all that are in it now."""

    path: Path
    eval_ids: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Prepared:
    """A plan, which file each of its cases is from, and what it is scored by."""

    plan: RunPlan
    keys: dict[CaseId, CaseKey]
    cases: dict[CaseKey, tuple[StoredCase, EvalConfig]]


def prepare(
    agent_dir: Path,
    chosen: Sequence[Chosen],
    documents: Documents,
    run: Run,
    record: RecordMode = DEFAULT_MODE,
    tools: ToolMode | None = None,
) -> list[Prepared]:
    """Read the chosen sets, and look whether their metrics can be computed here.

    A set that cannot be run is left out with a remark.
    """
    sets: list[tuple[Path, str, StoredCases, EvalConfig]] = []
    for one in chosen:
        opened = documents.open(one.path)
        if opened.eval_set is None or opened.config is None:
            run.remarks.append(f"{one.path.name} cannot be run: {opened.errors[0]}")
            continue
        cases = opened.cases if one.eval_ids is None else opened.cases.only(set(one.eval_ids))
        if cases:
            sets.append((one.path, opened.eval_set.eval_set_id, cases, opened.config.config))
    if not sets:
        return []
    prepared = _prepared(agent_dir, sets, {one.path for one in chosen if one.eval_ids is None})
    runs, pass_if = run.repeated or (None, None)
    plan = replace(prepared.plan, record=record, tools=tools, runs=runs, pass_if=pass_if)
    plan = checked(_resumed(plan, run.resumes) if run.resumes else plan)
    run.checks = plan.checks
    run.unready = in_short(run.checks)
    return [replace(prepared, plan=plan)]


def _resumed(plan: RunPlan, resumption: Resumption) -> RunPlan:
    """As the run was begun."""
    header = resumption.header
    whole = {one.path for one in header.sets if one.whole}
    return replace(
        plan,
        sets=tuple(replace(one, whole=plan.path_of(one) in whole) for one in plan.sets),
        runs=header.data.get("runs"),
        pass_if=header.data.get("pass_if"),
        agent_name=header.data.get("agent_name"),
        adk_verdicts=bool(header.data.get("adk_verdicts")),
        known=resumption.known,
    )


def _prepared(
    agent_dir: Path, sets: Sequence[tuple[Path, str, StoredCases, EvalConfig]], whole: set[Path]
) -> Prepared:
    keys: dict[CaseId, CaseKey] = {}
    cases: dict[CaseKey, tuple[StoredCase, EvalConfig]] = {}
    for path, _, stored, config in sets:
        named = case_path(agent_dir, path)
        for one in stored.stored:
            key = keys[CaseId(named, one.head.eval_id)] = CaseKey(path, one.head.eval_id)
            cases[key] = one, config
    plans = (
        SetPlan(eval_set_id, stored, config, path, whole=path in whole)
        for path, eval_set_id, stored, config in sets
    )
    return Prepared(RunPlan(agent_dir, tuple(plans)), keys, cases)


async def perform(
    prepared: Prepared, run: Run, on_update: OnUpdate, first: StartedHost | None = None
) -> None:
    """Run a plan and keep its log. A log that cannot be written is a remark, and the run goes on.

    `first` is a host that was started for it already.
    """
    log: LoggedRun | None = None
    run.log_size = None
    try:
        begun = {"resumed": run.resumes.id} if run.resumes else {}
        log = LoggedRun.start(prepared.plan, datetime.now(UTC), begun)
        run.log = log.path
        if run.resumes:
            log.carry_over(run.resumes.path, set(run.resumes.carried()))
    except OSError as error:
        run.remarks.append(f"this run is not kept: {error}")

    def take(update: Update) -> None:
        nonlocal log
        if log is not None:
            try:
                log.take(update)
                run.log_size = log.size
            except OSError as error:
                run.remarks.append(f"this run is not kept to its end: {error}")
                log = None
                run.log_size = None
        on_update(update)

    status: Status | None = None
    try:
        status = await follow_plan(prepared.plan, take, first=first)
    finally:
        if log is not None:
            _close(log, status, run)


def _close(log: LoggedRun, status: Status | None, run: Run) -> None:
    try:
        log.close(status)
    except OSError as error:
        run.remarks.append(f"the end of this run is not kept: {error}")
