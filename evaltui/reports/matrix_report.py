"""The data for all reports of a matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from evaltui.core.compare.matrix import Matrix
from evaltui.core.compare.run_comparison import Comparison
from evaltui.core.secrets import Secrets
from evaltui.runs.matrices import OpenMatrix
from evaltui.runs.run_file import RunFile
from evaltui.text.figures import plural, short_list
from evaltui.text.lines import Line
from evaltui.text.values import visible
from evaltui.views.comparison import regressions_text, served_lines
from evaltui.views.matrix import changed_files_text
from evaltui.views.served import other_models


@dataclass(frozen=True)
class MatrixReport:
    """The runs of an agent's variants with the same cases, and their circumstances."""

    id: str
    """The id of the matrix, which is in the logs of its runs."""
    matrix: Matrix
    agent: str
    started: datetime
    """Start, in UTC."""
    seconds: float | None
    """Wall time of all runs, in seconds; None where it is unknown."""
    logs: tuple[str | None, ...]
    """The logs, by column; None for a run that was not stored."""
    changes: tuple[tuple[Mapping[str, str], ...], ...]
    """The changes that hosts have made, by column: `what`, `old` and `new`."""
    comparisons: tuple[Comparison | None, ...] = ()
    """The comparisons with the run of `--baseline`, by column; empty for stored runs."""
    notes: tuple[str, ...] = ()


def stored_matrix_report(opened: OpenMatrix, secrets: Secrets) -> MatrixReport:
    """The report of a matrix from its stored runs."""
    runs, matrix = opened.runs, opened.matrix
    seconds = [run.seconds for run in runs if run.seconds is not None]
    names = matrix.not_run
    not_run = [f"no run of {plural(len(names), 'variant')} {short_list(names)}"] if names else []
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


def baseline_lines(report: MatrixReport) -> Iterator[Line]:
    """The regressions of each variant from the run of `--baseline`, and what another model excuses."""
    for place, comparison in enumerate(report.comparisons):
        if comparison is not None:
            what, base = regressions_text(comparison), visible(comparison.base.title)
            yield [(f"{visible(report.matrix.name(place))}: {what} against {base}", "")]
            yield from ([(f"  {line}", "")] for line in served_lines(comparison))


def changes_in(file: RunFile) -> tuple[Mapping[str, str], ...]:
    """The changes that the host of a run has made for its variant."""
    return tuple(file.agent.get("changes", ()))


def notes_in(file: RunFile) -> tuple[str, ...]:
    """The notes of a run, why it was stopped, and the models that another one answered for."""
    others = other_models(case.summary for case in file.cases)
    return tuple(filter(None, dict.fromkeys((*file.notes, file.header.stopped, *others))))


def notes_on_runs(matrix: Matrix, notes: Sequence[Sequence[str]]) -> Iterator[str]:
    """The notes of the runs, those of single variants with their names, and the files that changed between
    runs."""
    if changed := changed_files_text(matrix):
        yield changed
    names: dict[str, list[str]] = {}
    for place, of_run in enumerate(notes):
        name = matrix.name(place)
        for note in of_run:
            # The report lists the changes of a variant.
            if not note.startswith(f"variant {name}: "):
                names.setdefault(note, []).append(name)
    for note, of_note in names.items():
        yield note if len(of_note) == len(notes) else f"{short_list(of_note)}: {note}"
