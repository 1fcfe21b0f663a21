"""Accepts the behavior of failing cases as expected: shows the changes to the files, then writes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from difflib import unified_diff

from evaltui.core.model.case_id import CaseId
from evaltui.testing.agent_run import FinishedRun
from evaltui.text.figures import counted, show_number
from evaltui.text.values import visible
from evaltui.workbench.result.acceptable import Choice
from evaltui.workbench.result.accepting import FileChange, Proposal, accept, propose
from evaltui.workbench.workbench import Workbench

Say = Callable[[str], None]
Ask = Callable[[str], str]
_QUESTION = "Accept? [y]es, [n]o, [a]ll the rest, [q]uit: "


def accept_cases(run: FinishedRun, say: Say, ask: Ask | None) -> None:
    """Accept what the failing cases of a run did: all of them, or those for which `ask` returns `y`.

    What changes is said before. Nothing is written before every question is answered: `n` leaves a case out,
    `a` accepts all the rest, `q` ends the questions.
    """
    if run.log is None or run.request is None:
        say("not accepted: the run is not stored")
        return
    request, cases = run.request, run.failed
    settings = {"results_dir": request.settings.results_dir}
    # A question is asked while no loop runs: so an interrupt ends it.
    with asyncio.Runner() as runner:
        workbench = Workbench(request.agent, [*request.cases], settings, run.config)
        try:
            runner.run(workbench.open())
            if not runner.run(workbench.outcomes.open_run(run.log, "")):
                say("not accepted: the run cannot be read")
                return
            groups = [cases] if ask is None else [[case] for case in cases]
            accepted = _accept(runner, workbench, groups, say, ask or (lambda _: "a"))
            if accepted and runner.run(_saved(workbench)):
                say(f"accepted {counted(accepted, 'case')}; the next run expects what they did")
            elif accepted:
                say("not accepted: a file has changed meanwhile")
        finally:
            # What was not saved shall not be offered when the workbench is opened next.
            runner.run(workbench.editing.discard())
            runner.run(workbench.close())


def _accept(
    runner: asyncio.Runner, workbench: Workbench, groups: Sequence[Sequence[CaseId]], say: Say, ask: Ask
) -> int:
    """Show what accepting each group of cases changes, and do it; returns how many cases that were."""
    accepted, answer = 0, ""
    for number, group in enumerate(groups, 1):
        if len(groups) > 1:
            say(f"{group[0].eval_id} ({show_number(number)} of {show_number(len(groups))})")
        many = counted(len(group), "case")
        choice = Choice("case", f"All {many}", f"accept {many}", tuple(group))
        proposal = runner.run(propose(workbench.editing, choice))
        _show(proposal, say)
        if proposal.problem:
            say(f"not accepted: {proposal.problem}")
            continue
        answer = "a" if answer == "a" else _answer(ask)
        if answer == "q":
            break
        if answer in ("y", "a") and runner.run(_accepted(workbench, proposal)):
            accepted += sum(change.cases for change in proposal.changes)
    return accepted


def _answer(ask: Ask) -> str:
    while (answer := ask(_QUESTION)) not in ("y", "n", "a", "q"):
        pass
    return answer


async def _accepted(workbench: Workbench, proposal: Proposal) -> bool:
    return accept(workbench.editing, proposal)


async def _saved(workbench: Workbench) -> bool:
    return await workbench.editing.save_all()


def _show(proposal: Proposal, say: Say) -> None:
    for change in proposal.changes:
        _show_diff(change, say)
    for remark in proposal.remarks:
        say(remark)


def _show_diff(change: FileChange, say: Say) -> None:
    before, after = change.before.text.splitlines(), change.after.text.splitlines()
    name = str(change.path)
    for line in unified_diff(before, after, name, name, lineterm=""):
        say(visible(line))
