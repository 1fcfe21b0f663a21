"""The runs that were kept: opening, naming, comparing and resuming them."""

from __future__ import annotations

from evaltui.workbench.actions.action import Action, Scope
from evaltui.workbench.workbench import Workbench


def _not_read(workbench: Workbench) -> str | None:
    return "the eval sets are still being read" if workbench.sets.workspace is None else None


def _in_runs(id: str, title: str, help: str, *keys: str, rank: int | None = None) -> Action:
    return Action(id, title, help, keys, (Scope.RUNS,), rank=rank)


def _in_comparison(id: str, title: str, help: str, *keys: str, rank: int | None = None) -> Action:
    return Action(id, title, help, keys, (Scope.COMPARISON,), rank=rank)


RUNS: tuple[Action, ...] = (
    Action(
        "runs",
        "runs",
        "Show the runs that were kept: open one, compare two, name or resume one",
        ("H",),
        refusal=_not_read,
        rank=7,
    ),
    _in_runs("open_run", "open", "Show the results of this run", "enter", rank=0),
    _in_runs(
        "compare_runs", "compare", "Compare this run with the base, or the one before", "equals_sign", rank=1
    ),
    _in_runs("mark_base", "base", "Make this run the base that others are compared with", "space", rank=2),
    _in_runs("name_run", "name", "Give this run a name", "f2", rank=3),
    _in_runs("resume_run", "resume", "Run what is missing of an interrupted run", "r", rank=4),
    _in_runs("reload_runs", "reload", "Look again which runs there are", "f5"),
    _in_runs("close_runs", "close", "Back to the cases", "escape", "q", "H", rank=5),
    _in_comparison("open_changed", "open", "Show the result of this case in the run", "enter", rank=0),
    _in_comparison("fold_kind", "fold", "Fold or unfold the cases of this kind", "space", rank=1),
    _in_comparison(
        "swap_runs", "swap", "Hold the runs against each other the other way round", "equals_sign", rank=2
    ),
    _in_comparison("copy_comparison", "copy", "Copy the comparison as text", "y", rank=3),
    _in_comparison("close_comparison", "close", "Back to the list of runs", "escape", "q", rank=4),
)
