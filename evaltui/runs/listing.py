"""The list of an agent's stored runs, and their titles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

from evaltui.core.compare.explain import summary
from evaltui.core.compare.run_summary import different_files
from evaltui.core.compare.totals import Totals
from evaltui.core.model.outcome import Status
from evaltui.core.model.variants import Variant
from evaltui.project.agent_address import AgentAddress
from evaltui.project.agent_files import FilesNow
from evaltui.runs.adk_results import adk_results, is_own, open_run_file
from evaltui.runs.history import header_of, result_of
from evaltui.runs.resuming import files_changed_since
from evaltui.runs.run_file import is_being_written
from evaltui.runs.run_header import SelectedSet
from evaltui.runs.run_kind import ROOT_AGENT, RunKind
from evaltui.runs.store import RunStore, is_adk_result, run_id, start_in_name
from evaltui.text.figures import show_local
from evaltui.text.outcomes import NOT_RUN

RunEnding = Literal["over", "interrupted", "going on"]


@dataclass(frozen=True)
class RunRow:
    """A run in a list."""

    path: Path
    started: datetime
    """Start, in UTC."""
    number: int | None = None
    """Number of the run among those of the agent, from 1; None for a result file of google-adk."""
    names: tuple[str, ...] = ()
    """The names that the user gave to the run."""
    ending: RunEnding = "over"
    status: Status | None = None
    """The status; None for an incomplete run."""
    totals: Totals = field(default_factory=Totals)
    """Totals of the cases with a result."""
    selected: int = 0
    """Number of selected cases."""
    sets: tuple[SelectedSet, ...] = ()
    seconds: float | None = None
    """Wall time in seconds; None where it is unknown."""
    model: str = ""
    kind: RunKind = ROOT_AGENT
    files: Mapping[str, str] = field(default_factory=dict)
    """The agent's files with fingerprints; empty where they are unknown."""
    own_data: frozenset[str] = frozenset()
    """Files that the agent wrote itself in the run."""
    changed: tuple[str, ...] | None = None
    """The agent's files that changed since the run, see `files_changed_since`; None where this is
    unknown."""
    matrix: str = ""
    """The id of its matrix; "" for none."""
    variant: Variant | None = None
    """The variant of the agent; None for no variant."""
    problem: str = ""
    """Why the file is unreadable; other fields are empty then."""
    stopped: str = ""
    """Why the run was stopped early, as a sentence; "" where it was not."""

    @property
    def id(self) -> str:
        return run_id(self.path)

    @property
    def name(self) -> str:
        """The newest name; "" for none."""
        return self.names[-1] if self.names else ""

    def is_whole(self, paths: Iterable[str]) -> bool:
        """Whether the run is complete and has all cases of its sets, with these paths among them."""
        has_all = {*paths} <= {eval_set.path for eval_set in self.sets}
        is_complete = self.ending == "over" and not self.not_run
        return is_complete and has_all and all(eval_set.whole for eval_set in self.sets)

    @property
    def not_run(self) -> int:
        """The number of selected cases that the run, which is not going on, has no result of."""
        return 0 if self.ending == "going on" else max(0, self.selected - self.totals.cases)

    @property
    def counts(self) -> Mapping[str, int]:
        """The numbers of selected cases by status, NOT_RUN among them."""
        return {**self.totals.counts, NOT_RUN: self.not_run}

    @property
    def is_of_adk(self) -> bool:
        return is_adk_result(self.path)

    @property
    def title(self) -> str:
        """The title of the run, with its variant unless that is the unchanged agent."""
        return run_title(self.number, self.started, self.name, self.kind)


class FailedCase(NamedTuple):
    """A case of a run that did not pass."""

    eval_id: str
    status: Status
    why: str


def failures(path: Path, most: int) -> tuple[FailedCase, ...]:
    """The first cases of a run that did not pass; none for an unreadable file."""
    with suppress(OSError, ValueError):
        file = open_run_file(path)
        results = (result_of(file, case) for case in file.failing(most))
        return tuple(FailedCase(case.eval_id, case.status, summary(case)) for case in results)
    return ()


def run_differences(before: RunRow, after: RunRow) -> tuple[str, ...]:
    """The differences between two runs besides the agent's responses, in short: files, `model`, `config`."""
    own_data = before.own_data | after.own_data
    changes = different_files(before.files, after.files, own_data) if before.files and after.files else ()
    if before.model and after.model and before.model != after.model:
        changes = (*changes, "model")
    then, now = (
        {eval_set.path: eval_set for eval_set in row.sets if eval_set.config is not None}
        for row in (before, after)
    )
    both = ((then[path], now[path]) for path in then.keys() & now.keys())
    if any(mine.config != theirs.config and mine.scored_by != theirs.scored_by for mine, theirs in both):
        changes = (*changes, "config")
    return changes


def run_title(number: int | None, started: datetime, name: str = "", kind: RunKind = ROOT_AGENT) -> str:
    """The title of a run: `run 18`, or with a name or variant `run 18 baseline`; its start time where it has
    no number."""
    run = f"run {number}" if number else f"run of {show_local(started)}"
    return " ".join(filter(None, (run, name, kind.variant, "traces" if kind.of_traces else "")))


def stored_runs(store: RunStore) -> list[Path]:
    """Run logs and result files of google-adk, the newest first."""
    return newest_first([*store.files(), *results_of_adk(store.agent_dir)])


def results_of_adk(agent_dir: Path) -> list[Path]:
    """Result files written by google-adk itself, the newest first."""
    return [path for path in adk_results(agent_dir)[::-1] if not is_own(path)]


def newest_first(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=_start_time, reverse=True)


def read_row(
    path: Path,
    names: tuple[str, ...] = (),
    files: FilesNow | None = None,
) -> RunRow:
    """The row of a run; an unreadable file becomes a problem of the row. `files` are the agent's current
    files, for finding changes."""
    try:
        return _row(path, names, files)
    except (OSError, ValueError) as error:
        return RunRow(path, _start_time(path), names=names, problem=str(error))


def newest_run(store: RunStore, agent: RunKind) -> RunRow | None:
    """The newest run of an agent, else the newest run that scored traces; None without any."""
    newest: Path | None = None
    for path in reversed(store.files()):
        header = header_of(path)
        if header is None or (not header.of_traces and header.is_of(agent)):
            newest = path
            break
        if header.of_traces:
            newest = newest or path
    return None if newest is None else read_row(newest, store.names_by_run().get(run_id(newest), ()))


def _row(path: Path, names: tuple[str, ...], files: FilesNow | None) -> RunRow:
    file = open_run_file(path)
    # In this order: the run may end meanwhile, and then it is not interrupted, and has all results.
    goes_on = not file.is_in_memory and is_being_written(path)
    header, ended, totals = file.header, file.ending, file.totals
    ending: RunEnding = "over"
    if ended is None:
        ending = "going on" if goes_on else "interrupted"
    return RunRow(
        path,
        header.started,
        header.number,
        names,
        ending,
        ended.status if ended else None,
        totals,
        sum(len(eval_set.eval_ids) for eval_set in header.sets),
        header.sets,
        ended.seconds if ended else None,
        str(file.agent.get("model") or ""),
        header.kind,
        header.files,
        header.own_data,
        None
        if files is None or not header.files
        else files_changed_since(file, AgentAddress(files.agent_dir), files=files),
        header.matrix,
        header.variant,
        stopped=header.stopped,
    )


def _start_time(path: Path) -> datetime:
    """Start time of a run by the name of its log, else by the time of its file."""
    try:
        return start_in_name(path)
    except ValueError:
        pass
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError:
        return datetime.fromtimestamp(0, UTC)
