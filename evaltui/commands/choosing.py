"""Which cases a run is made of, and the config of each set."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evaltui.commands.usage import UsageError
from evaltui.core.outcome import Status
from evaltui.core.show import visible
from evaltui.files.configs import ConfigInUse, find_config
from evaltui.files.eval_sets import load_eval_set
from evaltui.files.runs import latest_run, read_run
from evaltui.files.workspace import open_workspace, select
from evaltui.runner.plan import SetPlan


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
    return _only_failed(options.agent_dir, chosen) if options.failed else chosen


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


def _only_failed(agent_dir: Path, chosen: Sequence[ChosenSet]) -> list[ChosenSet]:
    last = latest_run(agent_dir)
    if last is None:
        raise UsageError(f"--failed: no earlier run of {agent_dir} is known")
    try:
        results = read_run(last).results
    except (OSError, ValueError) as error:
        raise UsageError(f"--failed: the last run cannot be read: {error}") from error
    passed = {(row["eval_set_id"], row["eval_id"]) for row in results if row["status"] == Status.PASSED}
    left = []
    for one in chosen:
        cases = tuple(case for case in one.plan.cases if (one.plan.eval_set_id, case.eval_id) not in passed)
        if cases:
            whole = one.plan.whole and len(cases) == len(one.plan.cases)
            left.append(replace(one, plan=replace(one.plan, cases=cases, whole=whole)))
    if not left:
        raise UsageError(
            "--failed: every selected case succeeded in the last run, so there is nothing to run"
        )
    return left
