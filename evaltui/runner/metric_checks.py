"""Checks which metrics of a plan can be computed: modules, keys, recordings and Gemini of this machine."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib.machinery import PathFinder
from pathlib import Path

from evaltui.core.metrics.gemini_access import GeminiAccess
from evaltui.core.metrics.preflight import SetToCheck, preflight
from evaltui.core.metrics.requirements import Facts
from evaltui.core.model.modes import DEFAULT_MODE, RecordMode
from evaltui.core.scoring import config_as_adk
from evaltui.project.folders import agent_folder
from evaltui.project.import_names import import_name
from evaltui.project.modules import folders_above, module_spellings
from evaltui.project.run_settings import is_elsewhere
from evaltui.project.settings import environment_of, gemini_here
from evaltui.runner.plan import RunPlan


def has_module(name: str, agent_folder: Path, python: Path | None = None) -> bool:
    """Whether the files of an agent, and its Python, have a module.

    True in another Python than evaltui's: only that one knows its packages.
    """
    if python is not None:
        return True
    importlib.invalidate_caches()
    folder = agent_folder.resolve()
    return any(
        _is_there(spelling.split("."), places)
        for spelling in module_spellings(name, folder)
        for places in (
            *([str(path)] for path in import_name(folder).folders),
            *([str(path)] for path in folders_above(spelling, folder)),
            None,
        )
    )


def _is_there(parts: Sequence[str], places: Sequence[str] | None) -> bool:
    """`places` are the folders to search in; None for those of Python itself."""
    for number, part in enumerate(parts):
        try:
            if number == 0 and places is None:
                spec = importlib.util.find_spec(part)
            else:
                spec = PathFinder.find_spec(part, places)
        except (ImportError, ValueError):
            # A module without a spec, such as __main__.
            return False
        if spec is None:
            return False
        places = list(spec.submodule_search_locations or ())
    return True


def checked(plan: RunPlan, gemini: GeminiAccess | None = None) -> RunPlan:
    """The plan with a check of each of its metrics.

    `gemini` is the access of judges to their models; None for that of this machine, or where it is unknown.
    """
    sets = [
        SetToCheck(
            eval_set.eval_set_id,
            eval_set.cases,
            config_as_adk(eval_set.config) if plan.settings.adk_verdicts else eval_set.config,
            eval_set.case_path,
        )
        for eval_set in plan.sets
    ]
    recorded = (
        eval_set.case_path
        for eval_set in plan.sets
        if (file := plan.recordings_path(eval_set)) is not None and os.path.isfile(file)  # noqa: PTH113
    )
    facts = facts_of(plan.agent_dir, plan.settings.record, recorded, plan.agent.interpreter.executable)
    if gemini is None and is_elsewhere(plan.scheduler) and not plan.agent.url:
        gemini = GeminiAccess(serves_other_names=facts.gemini.serves_other_names)
    return replace(plan, checks=preflight(sets, replace(facts, gemini=gemini or facts.gemini)))


def facts_of(
    agent_dir: Path,
    record: RecordMode = DEFAULT_MODE,
    recorded: Iterable[str] = (),
    python: Path | None = None,
) -> Facts:
    """Facts of this machine and an agent. `recorded` are paths, as in `CaseId`, of sets with recordings."""
    folder = agent_folder(agent_dir)
    return Facts(
        gemini=gemini_here(environment_of(agent_dir)),
        has_module=cache(partial(has_module, agent_folder=folder, python=python)),
        record=record,
        recorded=frozenset(recorded),
    )
