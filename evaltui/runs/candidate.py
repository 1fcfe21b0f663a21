"""A run as it is compared with others while it is still going on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaltui.core.compare.run_summary import (
    CaseSummary,
    Circumstances,
    RunSummary,
    options_of_run,
    selected_cases,
)
from evaltui.core.metrics.normal_config import normal_config
from evaltui.core.model.case_id import CaseId
from evaltui.files.agent_address import files_of_agent
from evaltui.files.settings import secrets_of
from evaltui.runs.selection import SelectedRun


def summary_of(
    selected: SelectedRun, results: Mapping[CaseId, CaseSummary], agent: Mapping[str, Any], log: Path | None
) -> RunSummary:
    """A run, as far as its cases are over, as it is compared with others.

    `agent` is what is known of the agent since it was loaded.
    """
    plan = selected.plan
    settings = plan.settings
    # As a log has them.
    masked = secrets_of(plan.agent_dir).masked
    return RunSummary(
        id=log.stem if log is not None else "this run",
        cases=selected_cases(plan.selected(), results),
        whole=frozenset(one.case_path for one in plan.sets if one.whole),
        circumstances=Circumstances(
            files={} if plan.agent.url else files_of_agent(plan.agent),
            agent=agent.get("name", ""),
            model=agent.get("model", ""),
            configs={info.known_as: normal_config(masked(info.effective)) for info in selected.sets},
            adk_verdicts=settings.adk_verdicts,
            options=options_of_run(plan.agent.name, plan.agent.url, settings.record, settings.tools, agent),
        ),
        matrix=selected.request.matrix,
        variant=plan.agent.variant.shown if plan.agent.variant else None,
    )
