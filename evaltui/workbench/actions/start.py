"""The start pane of an agent without cases; and from anywhere to the source of what is shown."""

from __future__ import annotations

from evaltui.workbench.actions.action import Action, Scope, action
from evaltui.workbench.case.editors import refuses_editor
from evaltui.workbench.workbench import Workbench

_WITH_SOURCE = (
    Scope.START,
    Scope.CASE,
    Scope.RESULT,
    Scope.TRACE,
    Scope.INSPECTOR,
    Scope.CONSOLE,
    Scope.CHAT,
    Scope.DETAILS,
)


def _no_editor(_: Workbench) -> str | None:
    return refuses_editor()


START: tuple[Action, ...] = (
    action(
        "take_step",
        "Run step",
        "Do the selected step",
        "enter",
        where=(Scope.START,),
        rank=0,
        footer="do it",
        acts=True,
    ),
    action(
        "edit_source",
        "Open failing line",
        "Open the failing line in $EDITOR",
        "e",
        where=(Scope.START,),
        refusal=_no_editor,
        footer="open",
        acts=True,
    ),
    action(
        "open_source",
        "Open source",
        "Open the source of a call, a tool, an instruction or a traceback in $EDITOR",
        "E",
        where=_WITH_SOURCE,
        refusal=_no_editor,
        footer="source",
        acts=True,
    ),
)
