"""The cases that did not pass, marked at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from evaltui.core.model.outcome import Status
from evaltui.runs.history import open_run
from evaltui.runs.matrices import newest_runs
from evaltui.runs.run_file import RunFile
from evaltui.runs.run_header import RunKind
from evaltui.text.figures import counted
from evaltui.workbench.workbench import Workbench

if TYPE_CHECKING:
    from evaltui.core.model.case_id import CaseId
    from evaltui.workbench.agent.agent_state import AgentState


async def mark_failing(workbench: Workbench) -> None:
    """Marks the cases that did not pass: in any variant where the newest run is a matrix."""
    try:
        variants, failed = await asyncio.to_thread(_failed_in_variants, workbench.agent)
    except (OSError, ValueError) as error:
        workbench.say(f"Run log unreadable: {error}")
        return
    cases = set(workbench.outcomes.results.attention)
    if variants:
        sets = workbench.sets
        cases = {
            case
            for case_in_run, set_id in failed
            if (case := sets.find_case(case_in_run, set_id)) is not None
        }
    count = workbench.navigation.mark(cases)
    where = f" in any of {counted(variants, 'variant')}" if variants else ""
    marked = f"{counted(count, 'case')} marked that failed" if count else "No failing case"
    workbench.say(f"{marked}{where}")


def _failed_in_variants(agent: AgentState) -> tuple[int, list[tuple[CaseId, str]]]:
    """In a thread: the number of variants of the newest run, 0 where it is no matrix, and the cases that did
    not pass in them."""

    paths, kind = newest_runs(agent.store), RunKind.of(agent.address)
    headers = [RunFile(path).header for path in paths]
    # A run without variants may be long: its results are known already.
    if not any(header.matrix and header.kind.agent._replace(variant="") == kind for header in headers):
        return 0, []
    runs = [open_run(path).summary for path in paths]
    cases = [
        summary for run in runs for summary in run.results.values() if summary.status is not Status.PASSED
    ]
    return len(runs), [(summary.id, summary.eval_set_id) for summary in cases]
