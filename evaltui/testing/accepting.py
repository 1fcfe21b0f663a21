"""What failing cases did becomes what they expect: shown as changes to the files, then written."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from pathlib import Path

from evaltui.core.model.case_id import CaseId
from evaltui.runs.selection import RunRequest
from evaltui.text.figures import counted
from evaltui.text.values import visible
from evaltui.workbench.acceptable import Choice
from evaltui.workbench.accepting import FileChange, Proposal, accept, propose
from evaltui.workbench.workbench import Workbench


def accept_cases(request: RunRequest, config: Path | None, cases: Sequence[CaseId]) -> Iterator[str]:
    """Accept what the cases did in the run that was just kept; yields the lines that say what is changed."""
    many = counted(len(cases), "case")
    choice = Choice("case", f"All {many}", f"accept {many}", tuple(cases))
    proposal, saved = asyncio.run(_accept(request, config, choice))
    for change in proposal.changes:
        yield from _diff(change)
    yield from proposal.remarks
    if proposal.problem:
        yield f"not accepted: {proposal.problem}"
    elif saved:
        yield f"accepted {many}; the next run expects what they did"
    else:
        yield "not accepted: a file has changed meanwhile"


async def _accept(request: RunRequest, config: Path | None, choice: Choice) -> tuple[Proposal, bool]:
    workbench = Workbench(
        request.agent, [*request.cases], {"results_dir": request.settings.results_dir}, config
    )
    try:
        await workbench.open()
        await workbench.outcomes.restore()
        proposal = await propose(workbench.editing, choice)
        done = not proposal.problem and accept(workbench.editing, proposal)
        return proposal, done and await workbench.editing.save_all()
    finally:
        await workbench.close()


def _diff(change: FileChange) -> Iterator[str]:
    before, after = change.before.text.splitlines(), change.after.text.splitlines()
    name = str(change.path)
    yield from map(visible, unified_diff(before, after, name, name, lineterm=""))
