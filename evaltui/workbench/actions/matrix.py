"""The matrix of an agent's variants."""

from __future__ import annotations

from functools import partial

from evaltui.workbench.actions.action import Action, Scope, action, not_read

_in_matrix = partial(action, where=(Scope.MATRIX,))

MATRIX: tuple[Action, ...] = (
    action(
        "matrix",
        "Open matrix",
        "Compare the variants of the agent, case by case, with pass rates and costs",
        "V",
        refusal=not_read,
        footer="matrix",
    ),
    _in_matrix("next_variant", "Next variant", "Go to the next variant", "right", "l"),
    _in_matrix("previous_variant", "Previous variant", "Go to the previous variant", "left", "h"),
    _in_matrix(
        "run_more",
        "Run more repeats…",
        "Run the case more often in this variant, on a set all of its cases",
        "r",
        rank=2,
        footer="more repeats",
        acts=True,
    ),
    _in_matrix(
        "sort_matrix",
        "Sort cases",
        "Sort by set, by how much the variants differ, or by the pass rate in this variant",
        "s",
        rank=4,
        footer="sort",
    ),
    _in_matrix(
        "only_differing",
        "Only differing cases",
        "Show only the cases whose results differ, or all again",
        "d",
        rank=5,
        footer="differing",
    ),
    _in_matrix(
        "choose_matrix",
        "Open matrix…",
        "Show an earlier matrix",
        "o",
        rank=7,
        footer="other matrix",
    ),
    _in_matrix(
        "export_matrix",
        "Export matrix…",
        "Write the matrix as HTML, Markdown, JSON or CSV",
        "E",
        rank=6,
        footer="export",
        acts=True,
    ),
)
