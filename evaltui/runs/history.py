"""Stored runs: finding and opening them, and the results of a case over time."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from evaltui.core.compare.repeats import case_over_repeats, pass_if_of
from evaltui.core.compare.run_comparison import circumstance_changes
from evaltui.core.compare.run_summary import (
    CaseSummary,
    Circumstances,
    RunSummary,
    options_of_run,
    selected_cases,
)
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import Event, Json
from evaltui.core.model.outcome import CaseResult, Status
from evaltui.core.model.problems import SelectionError
from evaltui.core.secrets import Secrets
from evaltui.runs.adk_results import adk_results, open_run_file
from evaltui.runs.run_file import CaseInRun, RunFile, is_being_written
from evaltui.runs.run_header import RunHeader
from evaltui.runs.run_kind import ROOT_AGENT, RunKind
from evaltui.runs.store import ADK_SUFFIX, SUFFIX, RunStore, is_adk_result, run_id
from evaltui.text.figures import counted, plural, short_list, show_number
from evaltui.text.values import did_you_mean

# Missing shards that a note names.
_MAX_SHARDS = 20

# Finding


def runs_by_id(store: RunStore) -> dict[str, Path]:
    """The files of all runs of an agent by their ids, result files of google-adk first."""
    return {run_id(path): path for path in [*adk_results(store.agent_dir), *store.files()]}


def find_run(store: RunStore, ref: str) -> Path:
    """The file of the run for a reference: `last`, a path, a name, a number, an id or a unique prefix of an
    id.

    It may be a result file of google-adk. Raises SelectionError for a missing run, and for an ambiguous
    number or prefix.
    """
    if ref.endswith((SUFFIX, ADK_SUFFIX)) and Path(ref).is_file():
        return Path(ref)
    if ref == "last":
        last = last_run(store)
        if last is None:
            raise SelectionError(f"no runs of {store.title} yet")
        return last
    names, paths = store.names(), runs_by_id(store)
    named = names.get(ref, ref)
    if named in paths:
        return paths[named]
    if ref in names:
        raise SelectionError(f"run {named}, named {ref!r}, is gone. Name another run")
    # A number that no run has is no beginning of an id, though those begin with a digit, too.
    is_number = re.fullmatch(r"[1-9]\d{0,5}", ref) is not None
    by_prefix = [candidate for candidate in paths if ref and candidate.startswith(ref)]
    matches = _runs_with_number(store, int(ref)) if is_number else by_prefix
    if len(matches) > 1:
        first, second, *_ = matches
        raise SelectionError(f"{ref!r} matches {counted(len(matches), 'run')}: {first}, {second}, …")
    if not matches and Path(ref).is_file():
        raise SelectionError(
            f"{ref} is no run: the file of a run ends in {SUFFIX}, "
            f"a result file of google-adk in {ADK_SUFFIX}"
        )
    if not matches:
        raise SelectionError(
            f"{store.agent_dir} has no run {ref!r}{did_you_mean(ref, [*names, *paths]) or '.'} "
            f"`evaltui runs {store.as_arguments}` lists the runs; `last` is the newest"
        )
    return paths[matches[0]]


def _runs_with_number(store: RunStore, number: int) -> list[str]:
    """The ids of the runs with this number."""
    ids = []
    for path in store.files():
        with suppress(OSError, ValueError):
            if RunFile(path).number == number:
                ids.append(run_id(path))
    return ids


def last_run(store: RunStore) -> Path | None:
    """The newest run of the agent of a store; None without one."""
    if not (store.module or store.url):
        return store.latest()
    agent = store.module, store.url
    headers = ((path, header_of(path)) for path in reversed(store.files()))
    return next((path for path, header in headers if header and (header.module, header.url) == agent), None)


def header_of(path: Path) -> RunHeader | None:
    """The header of a run's file; None for an unreadable file."""
    try:
        return RunFile(path).header
    except (OSError, ValueError):
        return None


def name_run(store: RunStore, ref: str, name: str) -> str:
    """Gives a run a name, which is removed from any other run; returns the run's id.

    Raises SelectionError for a missing run and for an invalid name, OSError.
    """
    path = find_run(store, ref)
    # Of a number, an id or a file another run would be found; of the others nobody sees or types all.
    is_reference = name == "last" or name.isdecimal() or name.endswith((SUFFIX, ADK_SUFFIX))
    is_reference = is_reference or name in runs_by_id(store)
    if is_reference or not name.strip() or name != name.strip() or not name.isprintable():
        raise SelectionError(
            f"{name!r} is not a valid run name. Give a text without control characters or spaces around it, "
            "which is not `last`, a number, an id or a run's file"
        )
    store.name(run_id(path), name)
    return run_id(path)


# Opening


@dataclass(frozen=True)
class StoredRun:
    """A stored run, or the finished part of one.

    `status` is None for an incomplete run. Only `summary` is read at first; `case` and `events` read more,
    and raise OSError, and ValueError for a damaged file.
    """

    path: Path
    started: datetime
    status: Status | None
    seconds: float | None
    summary: RunSummary
    case: Callable[[CaseId], CaseResult]
    """Reads the whole result of a selected case. Raises KeyError for another case."""
    events: Callable[[CaseId], dict[int, list[Event]]]
    """Reads the events of a case by repeat."""
    file: RunFile

    @property
    def id(self) -> str:
        return self.summary.id


def open_run(path: Path) -> StoredRun:
    """Opens a run. Raises OSError, and ValueError for a file that is neither a run nor a result file."""
    file = open_run_file(path)
    file.require_whole()
    return read_run(file)


def read_run(file: RunFile) -> StoredRun:
    """The run in an open file. Raises the errors of `RunFile`."""
    header, ending, summary = file.header, file.ending, summary_of(file)
    return StoredRun(
        path=file.path,
        started=header.started,
        status=ending.status if ending else None,
        seconds=file.seconds,
        summary=summary,
        case=lambda case: case_of(file, case, summary.cases[case]),
        events=file.events_of,
        file=file,
    )


def summary_of(file: RunFile) -> RunSummary:
    """The summary of a run for comparisons. Raises the errors of `RunFile`."""
    header, by_label = file.header, is_adk_result(file.path)
    return RunSummary(
        file.id,
        selected_cases(header.selected(), {case.id: case.summary for case in file.cases}),
        frozenset(case.path for case in header.sets if case.whole),
        Circumstances() if by_label else circumstances_of(header, file.agent),
        by_label=by_label,
        of_adk=header.of_adk,
        matrix=header.matrix,
        variant=header.variant,
        number=header.number,
    )


def missing_case_notes(run: RunSummary, file: RunFile) -> Iterator[str]:
    """Notes about cases without a result; none for a complete run. Raises the errors of `RunFile`."""
    header = file.header
    is_merged = header.is_merged
    if is_merged and header.shards and (missing := header.shards.missing):
        names = [f"{number}/{header.shards.count}" for number in missing]
        yield f"{plural(len(names), 'shard')} missing: {short_list(names, _MAX_SHARDS)}"
    if header.stopped and header.stopped not in file.notes:
        yield header.stopped
    elif unfinished := run.unfinished:
        if is_merged:
            names = [case.eval_id for case in unfinished]
            yield f"{counted(len(unfinished), 'case')} without a result: {short_list(names)}"
        else:
            done, count = show_number(len(run.results)), counted(len(run.cases), "case")
            goes_on = file.seconds is None and is_being_written(file.path)
            how = "still running" if goes_on else "interrupted"
            yield f"{how}: {done} of {count} finished"


def circumstances_of(header: RunHeader, agent: Json) -> Circumstances:
    """The circumstances of a run from its header and the metadata of its agent."""
    return Circumstances(
        files=header.files,
        packages=header.packages or {},
        own_data=header.own_data,
        agent=str(agent.get("name") or ""),
        model=str(agent.get("model") or ""),
        configs={eval_set.path: form for eval_set in header.sets if (form := eval_set.scored_by) is not None},
        functions=header.functions,
        adk_verdicts=header.settings.adk_verdicts,
        options=options_of_run(
            header.agent_name,
            header.module,
            header.url,
            header.settings.record,
            header.settings.tools,
            agent,
        ),
    )


def case_of(file: RunFile, case: CaseId, summary: CaseSummary) -> CaseResult:
    """The whole result of a case, with the actual turns. Raises the errors of `RunFile`."""
    result = file.case(case)
    if result is not None:
        return result_of(file, result)
    return CaseResult.not_run(case, summary.eval_set_id, file.statuses_of(case))


def result_of(
    file: RunFile, case: CaseInRun, secrets: Secrets | None = None, *, with_actual: bool = True
) -> CaseResult:
    """The result of a case in a run's file, with masked secrets; `with_actual` includes the actual turns."""
    summary = case.summary
    repeats = file.results(case.number, with_actual=with_actual, secrets=secrets)
    pass_if = pass_if_of(summary.policy)
    confidence = summary.decision.confidence if summary.decision else None
    return case_over_repeats(summary.eval_set_id, summary.eval_id, repeats, pass_if, case.id.path, confidence)


# A case over time


@dataclass(frozen=True)
class CasePoint:
    """The result of a case in one run; `run` is the summary of that run with this case alone."""

    started: datetime
    summary: CaseSummary
    run: RunSummary
    path: Path
    number: int = 0
    """The number of the run, from 1."""
    name: str = ""
    """The name of the run; "" for none."""
    kind: RunKind = ROOT_AGENT

    @property
    def title(self) -> str:
        """The title of the run: `run 18`, `run 18 baseline`, `run 18 traces`."""
        of_traces = "traces" if self.kind.of_traces else ""
        return " ".join(filter(None, (f"run {self.number}", self.name, of_traces)))


@dataclass(frozen=True)
class CaseHistory:
    """The results of a case in its last runs, the oldest first."""

    case: CaseId
    points: tuple[CasePoint, ...]

    @property
    def last_passed(self) -> CasePoint | None:
        """The newest passing run of the same kind as the last one; None without one."""
        alike = (point for point in reversed(self.points) if point.kind == self.points[-1].kind)
        return next((point for point in alike if point.summary.passes), None)

    @property
    def changed_since(self) -> tuple[str, ...]:
        """The differences between the newest run and its last passing run; none where they are the same run,
        or no run passed."""
        passed = self.last_passed
        return circumstance_changes(passed.run, self.points[-1].run, self.case) if passed else ()

    def until(self, moment: datetime) -> CaseHistory:
        """The history up to a moment."""
        return replace(self, points=tuple(point for point in self.points if point.started <= moment))

    def values(self, metric: str = "") -> list[float | None]:
        """The score of a metric in each run, or without a metric the pass rate of its repeats; None where it
        is unknown."""
        cases = [point.summary for point in self.points]
        if metric:
            return [case.scores.get(metric) for case in cases]
        return [case.passed / case.evaluated if case.evaluated else None for case in cases]


def case_history(store: RunStore, agent: RunKind, case: CaseId, last: int = 20) -> CaseHistory:
    """The last runs of an agent with a result of a case; unreadable files are skipped.

    Reading takes tens of milliseconds, too long for a frame.
    """
    points: list[CasePoint] = []
    names = store.names_by_run()
    for path in reversed(store.files()):
        with suppress(OSError, ValueError):
            if point := _point(path, agent, case, names.get(run_id(path), ("",))[-1]):
                points.append(point)
        if len(points) == last:
            break
    return CaseHistory(case, tuple(reversed(points)))


def _point(path: Path, agent: RunKind, case: CaseId, name: str) -> CasePoint | None:
    file = RunFile(path)
    result = file.case(case)
    if result is None or not file.header.is_of(agent):
        return None
    header, circumstances = file.header, circumstances_of(file.header, file.agent)
    run = RunSummary(file.id, {case: result.summary}, circumstances=circumstances)
    return CasePoint(header.started, result.summary, run, path, header.number or 0, name, header.kind)


# A run that cannot be read is none of any set.
_Read = tuple[Path, RunHeader | None]


def prune(store: RunStore, keep: int, in_use: Collection[Path] = ()) -> list[Path]:
    """Deletes all but the newest `keep` runs and returns the deleted logs.

    Also kept are named runs, the last run of each case and kind (in a matrix, of each variant), baselines of
    kept runs, runs in progress in any process, and those `in_use`. Raises OSError.
    """
    if len(store.files()) <= keep:
        return []
    with store.naming() as named:
        runs = [(log, header_of(log)) for log in store.files()]
        stay = {log for log, _ in runs[-keep:]} | _last_runs_of_cases(runs)
        stay |= {log for log, _ in runs if run_id(log) in named or log in in_use}
        baselines = {header.baseline for log, header in runs if log in stay and header is not None}
        deleted = []
        for log, _ in runs:
            if log not in stay and run_id(log) not in baselines and _delete(log):
                deleted.append(log)
        return deleted


def _last_runs_of_cases(runs: list[_Read]) -> set[Path]:
    last: set[Path] = set()
    in_later: defaultdict[tuple[RunKind, str], set[str]] = defaultdict(set)
    for log, header in reversed(runs):
        if header is None:
            continue
        for eval_set in header.sets:
            later = in_later[header.kind.of_any_deployment, eval_set.path]
            if not later.issuperset(eval_set.eval_ids):
                later.update(eval_set.eval_ids)
                last.add(log)
    matrices = {header.matrix for log, header in runs if header and header.matrix and log in last}
    return last | {log for log, header in runs if header and header.matrix in matrices}


def _delete(log: Path) -> bool:
    """Deletes a log; returns False for a run in progress, and for a missing file."""
    try:
        if is_being_written(log):
            return False
        log.unlink()
    except FileNotFoundError:
        return False
    # Left beside it by a run that was killed.
    log.with_name(f"{log.name}-journal").unlink(missing_ok=True)
    return True
