"""Stored matrices of an agent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from evaltui.core.compare.matrix import Matrix, matrix_of
from evaltui.core.compare.run_summary import RunSummary
from evaltui.core.model.problems import SelectionError
from evaltui.runs.history import StoredRun, header_of, last_run, open_run
from evaltui.runs.run_file import RunFile
from evaltui.runs.run_header import RunHeader
from evaltui.runs.run_kind import RunKind
from evaltui.runs.store import SUFFIX, RunStore, run_id


@dataclass(frozen=True)
class VariantLog:
    """The log of a variant's run."""

    path: Path
    header: RunHeader

    @property
    def name(self) -> str:
        return self.header.variant.name if self.header.variant else self.path.stem


@dataclass(frozen=True)
class StoredMatrix:
    """The stored runs of a matrix."""

    id: str
    logs: tuple[VariantLog, ...]
    """The log of each variant, in the order of their first runs."""
    not_run: tuple[str, ...] = ()
    """Names of the variants without a run."""

    @property
    def unchanged(self) -> VariantLog | None:
        """The run of the unchanged agent; None without one."""
        return next((log for log in self.logs if log.header.variant and not log.header.variant.changes), None)

    @property
    def started(self) -> datetime:
        return min(log.header.started for log in self.logs)

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple(log.path for log in self.logs)


@dataclass(frozen=True)
class OpenMatrix:
    """A matrix that was read, with its runs in the order of the columns."""

    stored: StoredMatrix
    runs: tuple[StoredRun, ...]
    matrix: Matrix


def stored_matrices(store: RunStore, agent: RunKind | None = None) -> list[StoredMatrix]:
    """The matrices of an agent, None for any agent, the newest first.

    The last complete run of each variant counts. Unreadable logs are skipped.
    """
    variants: dict[str, dict[str, list[VariantLog]]] = {}
    for path in store.files():
        log = _variant_log(path)
        if log is not None and agent in (None, log.header.kind.agent._replace(variant="")):
            variants.setdefault(log.header.matrix, {}).setdefault(log.name, []).append(log)
    matrices = [_make_matrix(key, tuple(map(_last_log, logs.values()))) for key, logs in variants.items()]
    return sorted(matrices, key=lambda matrix: min(path.name for path in matrix.paths), reverse=True)


def _make_matrix(matrix: str, logs: tuple[VariantLog, ...]) -> StoredMatrix:
    names = {log.name for log in logs}
    others = (variant.name for variant in logs[0].header.variants)
    return StoredMatrix(matrix, logs, tuple(name for name in others if name not in names))


def _last_log(logs: Sequence[VariantLog]) -> VariantLog:
    """The last complete log, else the last one."""
    others = reversed(logs if len(logs) > 1 else ())
    return next((log for log in others if _is_complete(log.path)), logs[-1])


def _is_complete(path: Path) -> bool:
    try:
        return RunFile(path).ending is not None
    except (OSError, ValueError):
        return False


def find_matrix(store: RunStore, ref: str) -> StoredMatrix | None:
    """The matrix for a reference: an id, a unique prefix, or `last` where the newest run belongs to a matrix.

    None for a reference to a run, and for an unknown one. Raises SelectionError for an ambiguous prefix.
    """
    if ref == "last":
        latest = last_run(store)
        newest = _variant_log(latest) if latest else None
        ref = newest.header.matrix if newest else ""
    by_id = {matrix.id: matrix for matrix in stored_matrices(store)} if ref else {}
    if ref in by_id or ref in store.names() or any(run_id(path).startswith(ref) for path in store.files()):
        return by_id.get(ref)
    matches = [matrix for key, matrix in by_id.items() if key.startswith(ref)]
    if len(matches) > 1:
        first, second, *_ = (matrix.id for matrix in matches)
        raise SelectionError(f"{ref!r} matches {len(matches)} matrices: {first}, {second}, …")
    return matches[0] if matches else None


def newest_runs(store: RunStore, kind: RunKind | None = None, besides: str = "") -> tuple[Path, ...]:
    """The file of the newest run of an agent, of one kind if given; for a matrix, the files of all its
    variants.

    Runs that scored traces and runs of the matrix `besides` are skipped.
    """
    return next(runs_of_kind(store, kind, besides), ())


def runs_of_kind(store: RunStore, kind: RunKind | None, besides: str) -> Iterator[tuple[Path, ...]]:
    """The files of each run, the newest first, as of `newest_runs`."""
    seen, matrices = {besides}, dict[str, StoredMatrix]()
    for path in reversed(store.files()):
        if not _is_of_kind(path, kind):
            continue
        log = _variant_log(path)
        if log is None:
            yield (path,)
        elif log.header.matrix not in seen:
            seen.add(log.header.matrix)
            matrices = matrices or {matrix.id: matrix for matrix in stored_matrices(store)}
            yield matrices[log.header.matrix].paths


def _is_of_kind(path: Path, kind: RunKind | None) -> bool:
    """Whether a run is of a kind, or without a kind any run of an agent; True for an unreadable log, which
    its reader reports."""
    header = header_of(path)
    if header is None:
        return True
    return not header.of_traces if kind is None else header.kind == kind


def matrix_of_logs(paths: Sequence[Path]) -> StoredMatrix | None:
    """The matrix of several logs; None where they are not of different variants.

    The runs may come from different matrices, as after merging shards.
    """
    if len(paths) < 2:
        return None
    headers = {path: RunFile(path).header for path in paths if path.suffix == SUFFIX}
    logs = tuple(VariantLog(path, header) for path, header in headers.items() if header.variant)
    if len(logs) < len(paths) or len({log.name for log in logs}) < len(logs):
        return None
    ids = (log.header.matrix for log in logs if log.header.matrix)
    return StoredMatrix(next(ids, run_id(paths[0])), logs)


def _variant_log(path: Path) -> VariantLog | None:
    """The log of a variant; None for a run outside of a matrix."""
    header = header_of(path)
    return VariantLog(path, header) if header and header.matrix else None


def open_matrix(stored: StoredMatrix) -> OpenMatrix:
    """Reads the runs of a matrix. Raises OSError, and ValueError for a damaged log."""
    runs = tuple(open_run(path) for path in stored.paths)
    summaries = [run.summary for run in runs]
    return OpenMatrix(stored, runs, matrix_of(summaries, usual_base(summaries), stored.not_run))


def usual_base(runs: Sequence[RunSummary]) -> int:
    """Index of the first variant without changes, else 0."""
    unchanged = (place for place, run in enumerate(runs) if run.variant and not run.variant.changes)
    return next(unchanged, 0)
