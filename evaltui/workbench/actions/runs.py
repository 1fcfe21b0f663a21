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
    action(
        "compare",
        "Compare",
        "Compare this run with the base, else with the previous one; in a matrix the trajectories of a case",
        "equals_sign",
        where=(Scope.RUNS, Scope.RECENT_RUNS, Scope.MATRIX),
        rank=1,
        footer="compare",
    ),
    action(
        "set_base",
        "Set as base",
        "Compare the other runs, or the other variants, with this one",
        "space",
        where=(Scope.RUNS, Scope.RECENT_RUNS, Scope.MATRIX),
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
)
