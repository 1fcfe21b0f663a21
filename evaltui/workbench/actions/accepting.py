"""What is done about a difference: what the agent did is accepted as expected, or allowed to differ."""

from __future__ import annotations

from evaltui.workbench.acceptable import refuses_in_list, refuses_in_result
from evaltui.workbench.actions.action import Action, Scope
from evaltui.workbench.workbench import Workbench


def _refuses_to_relax(workbench: Workbench) -> str | None:
    at = workbench.navigation.difference
    if at is None:
        return "n goes to a difference: what is relaxed is an argument of a call"
    if at.kind != "argument":
        return "only an argument of a call can be relaxed: n goes on to the next difference"
    return workbench.editing.refuses_to_edit(workbench.navigation.file)


ACCEPTING: tuple[Action, ...] = (
    Action(
        "accept",
        "accept",
        "Accept what was done as expected: an argument, a call, an answer, a turn, the case; shown first",
        ("a",),
        (Scope.RESULT,),
        refusal=lambda workbench: refuses_in_result(workbench.editing),
        rank=0,
    ),
    Action(
        "accept_cases",
        "accept",
        "Accept what was done in the case as expected, or in all that are marked or failing; shown first",
        ("a",),
        (Scope.CASES,),
        refusal=lambda workbench: refuses_in_list(workbench.editing),
        rank=4,
    ),
    Action(
        "relax",
        "relax",
        "Let this argument differ: ignore it, or say how far; shows first what that changes",
        ("x",),
        (Scope.RESULT,),
        refusal=_refuses_to_relax,
        rank=0,
    ),
    Action(
        "accept_more", "more", "Choose the next, which accepts more", ("right", "l", "tab"), (Scope.ACCEPT,)
    ),
    Action(
        "accept_less",
        "less",
        "Choose the one before, which accepts less",
        ("left", "h", "shift+tab"),
        (Scope.ACCEPT,),
    ),
    Action("accept_it", "accept", "Accept what is shown; undo takes it back", ("enter",), (Scope.ACCEPT,)),
    Action("leave_it", "leave it", "Leave everything as it is", ("escape", "q"), (Scope.ACCEPT,)),
)
