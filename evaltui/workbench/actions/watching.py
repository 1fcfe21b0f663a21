"""Following what is saved."""

from __future__ import annotations

from evaltui.workbench.actions.action import Action
from evaltui.workbench.workbench import Workbench


def _not_read(workbench: Workbench) -> str | None:
    return "the eval sets are still being read" if workbench.sets.workspace is None else None


def _nothing_waits(workbench: Workbench) -> str | None:
    if reason := workbench.runs.refuses_to_run():
        return reason
    if workbench.watch.waiting().keys:
        return None
    return "nothing waits: every result is from the agent as it is now"


def _word(workbench: Workbench) -> str:
    return "watch off" if workbench.watch.on else "watch"


WATCHING = (
    Action(
        "watch",
        "watch",
        "Run again whatever a save concerns, from now on; or stop doing so",
        ("w",),
        do=lambda workbench: workbench.watch.switch(),
        refusal=_not_read,
        rank=7,
        word=_word,
    ),
    Action(
        "run_waiting",
        "the rest",
        "Run the cases whose result is from before the agent was changed",
        ("W",),
        do=lambda workbench: workbench.watch.run_waiting(),
        refusal=_nothing_waits,
        rank=1,
    ),
)
