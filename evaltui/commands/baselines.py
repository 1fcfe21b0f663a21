"""The run that another one is compared with, and what a regression from it is."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from evaltui.commands.output import UsageError
from evaltui.core.compare.run_summary import RunSummary
from evaltui.core.model.problems import SelectionError
from evaltui.core.model.variants import Variant
from evaltui.core.statistics.differences import ALPHA
from evaltui.runs.history import find_run, open_run
from evaltui.runs.matrices import StoredMatrix, find_matrix
from evaltui.runs.store import RunStore
from evaltui.text.figures import some_of


def baseline_of(
    options: argparse.Namespace, store: RunStore, variant: Variant | None = None
) -> RunSummary | None:
    """The run to compare with, None where none is named. Raises UsageError, SelectionError."""
    if options.baseline is None:
        for flag in ("fail_on_regression", "alpha"):
            if getattr(options, flag, None):
                raise UsageError(f"--{flag.replace('_', '-')} needs --baseline RUN to compare with")
        return None
    try:
        return open_run(_path(options.baseline, store, variant)).summary
    except (SelectionError, UsageError):
        raise
    except (OSError, ValueError) as error:
        raise UsageError(f"--baseline: {error}") from error


def settled_baseline(ref: str, store: RunStore, variants: Sequence[Variant]) -> str:
    """What a baseline of several runs stands for before the first of them is the last one. Raises UsageError,
    SelectionError."""
    matrix = find_matrix(store, ref)
    ref = matrix.id if matrix else str(find_run(store, ref))
    for variant in variants:
        _path(ref, store, variant)
    return ref


def _path(ref: str, store: RunStore, variant: Variant | None) -> Path:
    """The log of a run; of a matrix that of the same variant, without one that of the agent as it is. Raises
    UsageError, SelectionError."""
    matrix = find_matrix(store, ref)
    return find_run(store, ref) if matrix is None else _of_variant(matrix, variant)


def _of_variant(matrix: StoredMatrix, variant: Variant | None) -> Path:
    """Raises UsageError."""
    same = [log for log in matrix.logs if variant is not None and log.name == variant.name]
    if variant is None or not (same or variant.changes):
        same = [log] if (log := matrix.unchanged) else []
    if not same:
        what = f"variant {variant.name}" if variant else "run of the agent as it is"
        names = some_of([log.name for log in matrix.logs])
        raise UsageError(f"--baseline: matrix {matrix.id} has no {what}. Name one of its runs: {names}")
    return same[0].path


def alpha_of(options: argparse.Namespace) -> float:
    """The highest p that is evidence of a regression."""
    alpha: float | None = options.alpha
    return ALPHA if alpha is None else alpha
