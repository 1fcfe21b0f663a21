"""Which cases a run is made of, and the config of each set."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evaltui.commands.usage import UsageError
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import Status
from evaltui.files.case_paths import case_path
from evaltui.files.configs import ConfigInUse, find_config
from evaltui.files.eval_sets import load_eval_set
from evaltui.files.workspace import Workspace, open_workspace, select
from evaltui.runner.plan import SetPlan
from evaltui.runs.log import latest_run
from evaltui.runs.log_reader import LoggedCase, StoredRun, read_run
from evaltui.text.values import visible


@dataclass(frozen=True)
class ChosenSet:
    """A set that is run, and where it and its config came from."""

    path: Path
    plan: SetPlan
    config: ConfigInUse


def choose(options: argparse.Namespace) -> list[ChosenSet]:
    """What the options select. Raises SelectionError, EvalSetError or UsageError for what cannot be run."""
    explicit = find_config(options.agent_dir, options.config) if options.config else None
    workspace = open_workspace(options.agent_dir)
    chosen = [
        load_chosen(entry.path, options.initial_session, explicit, case_ids)
        for entry, case_ids in select(workspace, options.selectors)
    ]
    for problem in (problem for one in chosen if one.config.defaulted for problem in one.config.problems):
        print(f"evaltui run: {visible(problem.file or '')}: {visible(str(problem))}", file=sys.stderr)
    return _only_failed(options.agent_dir, chosen, workspace) if options.failed else chosen


def load_chosen(
    path: Path,
    initial_session: Path | None,
    explicit: ConfigInUse | None,
    case_ids: Collection[str] | None = None,
) -> ChosenSet:
    """A set with all its cases or some of them, in its order. Raises EvalSetError."""
    eval_set = load_eval_set(path, initial_session)
    config = explicit or find_config(path)
    cases = tuple(case for case in eval_set.eval_cases if case_ids is None or case.eval_id in case_ids)
    plan = SetPlan(
        eval_set.eval_set_id,
        cases,
        config.config,
        path,
        whole=case_ids is None,
        config_path=config.path,
    )
    return ChosenSet(path, plan, config)


def _of_known_files(run: StoredRun, workspace: Workspace) -> list[LoggedCase]:
    """The results of a run without those of sets that cannot be told apart in it."""
    files = Counter(entry.eval_set_id for entry in workspace.sets) if run.header.by_label else {}
    return [one for one in run.results if files.get(one.summary.eval_set_id, 0) < 2]


def _only_failed(agent_dir: Path, chosen: Sequence[ChosenSet], workspace: Workspace) -> list[ChosenSet]:
    last = latest_run(agent_dir)
    if last is None:
        raise UsageError(f"--failed: no earlier run of {agent_dir} is known")
    try:
        results = _of_known_files(read_run(last), workspace)
    except (OSError, ValueError) as error:
        raise UsageError(f"--failed: the last run cannot be read: {error}") from error
    passed = {one.id for one in results if one.summary.status is Status.PASSED}
    left = []
    for one in chosen:
        path = case_path(agent_dir, one.path)
        cases = tuple(case for case in one.plan.cases if CaseId(path, case.eval_id) not in passed)
        if cases:
            whole = one.plan.whole and len(cases) == len(one.plan.cases)
            left.append(replace(one, plan=replace(one.plan, cases=cases, whole=whole)))
    if not left:
        raise UsageError(
            "--failed: every selected case succeeded in the last run, so there is nothing to run"
        )
    return left
