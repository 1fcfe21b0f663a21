"""The data that every report of a matrix is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from evaltui.core.compare.matrix import Matrix
from evaltui.core.compare.run_comparison import Comparison
from evaltui.core.secrets import Secrets
from evaltui.runs.matrices import OpenMatrix


@dataclass(frozen=True)
class MatrixReport:
    """The runs of the variants of an agent over the same cases, and their circumstances."""

    id: str
    """The one in the logs of its runs."""
    matrix: Matrix
    agent: str
    started: datetime
    """UTC."""
    seconds: float | None
    """Wall time of all runs; None where nobody knows."""
    logs: tuple[str | None, ...]
    """By column; None for a run that was not stored."""
    changes: tuple[tuple[Mapping[str, str], ...], ...]
    """By column what its host has changed: `what`, `old` and `new`."""
    comparisons: tuple[Comparison | None, ...] = ()
    """By column, with the run of `--baseline`; empty without one."""
    notes: tuple[str, ...] = ()


def stored_matrix_report(opened: OpenMatrix, secrets: Secrets) -> MatrixReport:
    """Of stored runs. What their hosts have changed is not in the logs: there is what was asked for."""
    runs, matrix = opened.runs, opened.matrix
    seconds = [run.seconds for run in runs if run.seconds is not None]
    names = [run.circumstances.agent for run in matrix.columns if run.circumstances.agent]
    report = MatrixReport(
        id=opened.stored.id,
        matrix=matrix,
        agent=names[0] if names else "",
        started=opened.stored.started,
        seconds=sum(seconds) if len(seconds) == len(runs) else None,
        logs=tuple(str(path) for path in opened.stored.paths),
        changes=((),) * len(runs),
    )
    # Logs of earlier versions may hold secrets.
    return secrets.masked(report)
