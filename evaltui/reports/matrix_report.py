"""The data that every report of a matrix is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from evaltui.core.compare.matrix import Matrix
from evaltui.core.compare.run_comparison import Comparison


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
