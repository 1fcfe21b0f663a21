"""The runs that were kept, and two of them compared."""

from __future__ import annotations

from functools import partial

from evaltui.workbench.actions.action import Action, Scope, action, not_read

_in_runs = partial(action, where=(Scope.RUNS,))
_in_comparison = partial(action, where=(Scope.COMPARISON,))


RUNS: tuple[Action, ...] = (
    action(
        "runs",
        "Open runs",
        "List earlier runs to open, compare, name or resume them",
        "H",
        refusal=not_read,
        rank=7,
        footer="runs",
    ),
    _in_runs("open_run", "Open run", "Show the results of this run", "enter", rank=0, footer="open"),
    action(
        "compare_runs",
        "Compare runs",
        "Compare this run with the base, or with the previous run",
        "equals_sign",
        where=(Scope.RUNS, Scope.RECENT_RUNS),
        rank=1,
        footer="compare",
    ),
    action(
        "mark_base",
        "Set as base",
        "Compare other runs with this one",
        "space",
        where=(Scope.RUNS, Scope.RECENT_RUNS),
        rank=2,
        footer="base",
    ),
    _in_runs(
        "name_run",
        "Name run…",
        "Name this run; `evaltui compare` and `--baseline` take the name",
        "f2",
        rank=3,
        footer="name",
        acts=True,
    ),
    _in_runs(
        "resume_run",
        "Resume run",
        "Run the missing cases of an interrupted run",
        "r",
        rank=4,
        footer="resume",
        acts=True,
    ),
    _in_runs("reload_runs", "Reload runs", "Read the list of runs again", "f5", footer="reload"),
    _in_runs("close_runs", "Close runs", "Return to the cases", "escape", "q", "H", rank=5, footer="close"),
    _in_comparison(
        "open_changed",
        "Open result",
        "Show the result of this case in the run",
        "enter",
        rank=0,
        footer="open",
    ),
    _in_comparison(
        "fold_kind", "Fold group", "Fold or unfold this group of cases", "space", rank=1, footer="fold"
    ),
    _in_comparison(
        "swap_runs",
        "Swap base and candidate",
        "Compare the runs in the other direction",
        "equals_sign",
        rank=2,
        footer="swap",
    ),
    _in_comparison(
        "copy_comparison", "Copy comparison", "Copy the comparison as text", "y", rank=4, footer="copy"
    ),
    _in_comparison(
        "close_comparison",
        "Close comparison",
        "Return to the list of runs",
        "escape",
        "q",
        rank=3,
        footer="back",
    ),
)
