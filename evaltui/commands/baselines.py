"""The run that another one is compared with, and what a regression from it is."""

from __future__ import annotations

import argparse

from evaltui.commands.output import UsageError
from evaltui.core.compare.run_summary import RunSummary
from evaltui.core.statistics.differences import ALPHA
from evaltui.files.workspace import SelectionError
from evaltui.runs.history import find_run, open_run
from evaltui.runs.store import RunStore


def baseline_of(options: argparse.Namespace, store: RunStore) -> RunSummary | None:
    """The run to compare with, None where none is named. Raises UsageError, SelectionError."""
    if options.baseline is None:
        for flag in ("fail_on_regression", "alpha"):
            if getattr(options, flag, None):
                raise UsageError(f"--{flag.replace('_', '-')} needs --baseline RUN to compare with")
        return None
    try:
        return open_run(find_run(store, options.baseline)).summary
    except SelectionError:
        raise
    except (OSError, ValueError) as error:
        raise UsageError(f"--baseline: {error}") from error


def alpha_of(options: argparse.Namespace) -> float:
    """The highest p that is evidence of a regression."""
    alpha: float | None = options.alpha
    return ALPHA if alpha is None else alpha
