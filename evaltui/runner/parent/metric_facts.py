"""A plan with what can be computed of it here: facts from the environment, the agent's folder and files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from evaltui.core.metrics.gemini_access import gemini_access
from evaltui.core.metrics.preflight import SetToCheck, preflight
from evaltui.core.metrics.requirements import Facts
from evaltui.core.metrics.scoring import as_adk_has_it
from evaltui.core.recordings.modes import DEFAULT_MODE, RecordMode
from evaltui.files.folders import agent_folder, env_file
from evaltui.files.recordings import recordings_path
from evaltui.runner.parent.user_modules import has_module
from evaltui.runner.plan import RunPlan


def checked(plan: RunPlan) -> RunPlan:
    """The plan with a check of every metric that it asks for."""
    sets = [
        SetToCheck(
            one.eval_set_id,
            one.cases,
            as_adk_has_it(one.config) if plan.adk_verdicts else one.config,
            plan.path_of(one),
        )
        for one in plan.sets
    ]
    recorded = (
        plan.path_of(one)
        for one in plan.sets
        if one.path is not None and recordings_path(one.path, one.eval_set_id).is_file()
    )
    return replace(plan, checks=preflight(sets, facts_of(plan.agent_dir, plan.record, recorded)))


def facts_of(agent_dir: Path, record: RecordMode = DEFAULT_MODE, recorded: Iterable[str] = ()) -> Facts:
    """What is known of this machine and an agent. `recorded` are the sets with recordings, as in `CaseId`."""
    folder = agent_folder(agent_dir)
    environment = _environment(agent_dir)
    return Facts(
        gemini=gemini_access(environment, default_credentials=_has_default_credentials(environment)),
        has_module=cache(partial(has_module, agent_folder=folder)),
        record=record,
        recorded=frozenset(recorded),
    )


def _environment(agent_dir: Path) -> Mapping[str, str]:
    """What the agent's process has: the environment, and what its .env file adds to that."""
    found = None
    if os.environ.get("ADK_DISABLE_LOAD_DOTENV", "").lower() not in ("1", "true"):
        found = env_file(agent_dir)
    if found is None:
        return os.environ
    from dotenv import dotenv_values

    added = {name: value for name, value in dotenv_values(found).items() if value is not None}
    return added | dict(os.environ)


def _has_default_credentials(environment: Mapping[str, str]) -> bool:
    """Whether Google's own library would find credentials, as far as files and variables tell."""
    if given := environment.get("GOOGLE_APPLICATION_CREDENTIALS"):
        return Path(given).is_file()
    config = environment.get("CLOUDSDK_CONFIG")
    gcloud = Path(config) if config else Path.home() / ".config" / "gcloud"
    if (gcloud / "application_default_credentials.json").is_file():
        return True
    # On Google's own machines, which say so, there is a server for them.
    return "K_SERVICE" in environment or "GCE_METADATA_HOST" in environment or _is_on_compute_engine()


def _is_on_compute_engine() -> bool:
    try:
        name = Path("/sys/class/dmi/id/product_name").read_text(encoding="utf-8")
    except OSError:
        return False
    return name.startswith("Google")
