"""The data that every report of a matrix is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from evaltui.core.compare.matrix import Matrix
from evaltui.core.compare.run_comparison import Comparison
from evaltui.core.secrets import Secrets
from evaltui.runs.matrices import OpenMatrix
from evaltui.runs.run_file import RunFile
from evaltui.text.figures import plural, some_of
from evaltui.views.matrix import changed_between
from evaltui.views.served import other_models


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
    """The report of a matrix of stored runs."""
    runs, matrix = opened.runs, opened.matrix
    seconds = [run.seconds for run in runs if run.seconds is not None]
    names = matrix.not_run
    not_run = [f"no run of {plural(len(names), 'variant')} {some_of(names)}"] if names else []
    agents = [run.circumstances.agent for run in matrix.columns if run.circumstances.agent]
    report = MatrixReport(
        id=opened.stored.id,
        matrix=matrix,
        agent=agents[0] if agents else "",
        started=opened.stored.started,
        seconds=sum(seconds) if len(seconds) == len(runs) else None,
        logs=tuple(str(path) for path in opened.stored.paths),
        changes=tuple(changes_in(run.file) for run in runs),
        notes=(*notes_on_runs(matrix, [notes_in(run.file) for run in runs]), *not_run),
    )
    # Logs of earlier versions may hold secrets.
    return secrets.masked(report)


def changes_in(file: RunFile | None) -> tuple[Mapping[str, str], ...]:
    """The changes that the host of a run has made for its variant."""
    return () if file is None else tuple(file.agent.get("changes", ()))


def notes_in(file: RunFile | None) -> tuple[str, ...]:
    """The notes of a run, why it was stopped, and the models that another one answered for."""
    if file is None:
        return ()
    others = other_models(case.summary for case in file.cases)
    return tuple(filter(None, dict.fromkeys((*file.notes, file.header.stopped, *others))))


def notes_on_runs(matrix: Matrix, notes: Sequence[Sequence[str]]) -> Iterator[str]:
    """The notes of its runs, by column, those of some of them with their names; and what changed between
    them."""
    if changed := changed_between(matrix):
        yield changed
    names: dict[str, list[str]] = {}
    for place, of_run in enumerate(notes):
        name = matrix.name(place)
        for note in of_run:
            # The report lists the changes of a variant.
            if not note.startswith(f"variant {name}: "):
                names.setdefault(note, []).append(name)
    for note, of_note in names.items():
        yield note if len(of_note) == len(notes) else f"{some_of(of_note)}: {note}"
