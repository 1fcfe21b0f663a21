"""Which runs of an agent stay when one more is over."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from evaltui.runs.history import run_id
from evaltui.runs.run_file import RunFile, is_being_written
from evaltui.runs.run_header import RunHeader
from evaltui.runs.run_kind import RunKind
from evaltui.runs.store import RunStore

# A run that cannot be read is none of any set.
_Read = tuple[Path, RunHeader | None]


def prune(store: RunStore, keep: int, in_use: Collection[Path] = ()) -> list[Path]:
    """Deletes the runs before the newest `keep`; returns their logs.

    Those stay that have a name, that are the last one of a set, or of a set in a matrix, of their kind, with
    which a run that stays was compared, that still go on, in any process, and those `in_use`. Raises OSError.
    """
    if len(store.files()) <= keep:
        return []
    with store.naming() as named:
        runs = [(log, _header(log)) for log in store.files()]
        stay = {log for log, _ in runs[-keep:]} | _last_of_sets(runs)
        stay |= {log for log, _ in runs if run_id(log) in named or log in in_use}
        baselines = set(_baselines(runs, stay))
        deleted = []
        for log, _ in runs:
            if log not in stay and run_id(log) not in baselines and _delete(log):
                deleted.append(log)
        return deleted


def _header(log: Path) -> RunHeader | None:
    try:
        return RunFile(log).header
    except (OSError, ValueError):
        return None


def _last_of_sets(runs: list[_Read]) -> set[Path]:
    last: dict[tuple[RunKind, str], Path] = {}
    for log, header in runs:
        for eval_set in header.sets if header else ():
            if header and eval_set.eval_ids:
                last[header.kind.of_any_deployment, eval_set.path] = log
    matrices = {header.matrix for log, header in runs if header and header.matrix and log in last.values()}
    return {*last.values(), *(log for log, header in runs if header and header.matrix in matrices)}


def _baselines(runs: list[_Read], stay: Collection[Path]) -> Iterator[str]:
    """The ids of the runs with which those that stay were compared."""
    for log, header in runs:
        if log in stay and header is not None:
            yield header.baseline


def _delete(log: Path) -> bool:
    """Whether it was deleted: not where its run goes on, or it is gone already."""
    try:
        if is_being_written(log):
            return False
        log.unlink()
    except FileNotFoundError:
        return False
    # Left beside it by a run that was killed.
    log.with_name(f"{log.name}-journal").unlink(missing_ok=True)
    return True
