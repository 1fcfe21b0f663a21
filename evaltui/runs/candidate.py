"""A run as it is compared with others while it is still going on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaltui.core.compare.run_summary import CaseSummary, Circumstances, RunSummary
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.stored_cases import ids_and_turns
from evaltui.files.agent_address import files_of_agent
from evaltui.runs.selection import SelectedRun


def summary_of(
    selected: SelectedRun, cases: Mapping[CaseId, CaseSummary], agent: Mapping[str, Any], log: Path | None
) -> RunSummary:
    """A run, as far as its cases are over, as it is compared with others.

    `agent` is what is known of the agent since it was loaded.
    """
    plan = selected.plan
    return RunSummary(
        id=log.stem if log is not None else "this run",
        cases=dict(cases),
        unfinished=frozenset(set(cases_of(selected)) - cases.keys()),
        whole=frozenset(plan.path_of(one) for one in plan.sets if one.whole),
        circumstances=Circumstances(
            files={} if plan.agent.url else files_of_agent(plan.agent),
            agent=agent.get("name", ""),
            model=agent.get("model", ""),
            configs={info.known_as: info.effective for info in selected.sets},
            adk_verdicts=plan.adk_verdicts,
        ),
        matrix=plan.matrix,
        variant=plan.agent.variant.shown if plan.agent.variant else None,
    )


def cases_of(selected: SelectedRun) -> list[CaseId]:
    """In the order of the plan."""
    plan = selected.plan
    sets = ((plan.path_of(one), one) for one in plan.sets)
    return [CaseId(path, eval_id) for path, one in sets for eval_id, _ in ids_and_turns(one.cases)]
