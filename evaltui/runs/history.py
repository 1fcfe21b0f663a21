"""The runs that were kept: finding them, opening them, and what they say of a case over time."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from evaltui.core.compare.repeats import case_over_repeats, pass_if_of
from evaltui.core.compare.run_comparison import what_changed
from evaltui.core.compare.run_summary import (
    CaseSummary,
    Circumstances,
    RunSummary,
    options_of_run,
    selected_cases,
    summarize,
)
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.events import Event, Json
from evaltui.core.model.outcome import CaseResult, Status, worst_status
from evaltui.core.model.problems import SelectionError
from evaltui.core.secrets import Secrets
from evaltui.runs.adk_results import SUFFIX as ADK_SUFFIX
from evaltui.runs.adk_results import adk_results, read_adk_result
from evaltui.runs.run_file import CaseInRun, RunFile, is_being_written
from evaltui.runs.run_header import RunHeader
from evaltui.runs.run_kind import ROOT_AGENT, RunKind
from evaltui.runs.store import SUFFIX, RunStore
from evaltui.text.figures import counted, plural, show_number, some_of
from evaltui.text.values import did_you_mean

# Missing shards that a note names.
_MOST_SHARDS = 20

# Finding


def find_run(store: RunStore, ref: str) -> Path:
    """The run that `last`, a path, a name, a number, an id or a unique beginning of an id stands for.

    It is the file of a run, or a result file of google-adk.

    Raises SelectionError where there is none, and for a number or a beginning that several runs have.
    """
    if ref.endswith((SUFFIX, ADK_SUFFIX)) and Path(ref).is_file():
        return Path(ref)
    if ref == "last":
        last = last_run(store)
        if last is None:
            raise SelectionError(f"no runs of {store.title} yet")
        return last
    agent_dir, names = store.agent_dir, store.names()
    paths = {run_id(path): path for path in [*adk_results(agent_dir), *store.files()]}
    named = names.get(ref, ref)
    if named in paths:
        return paths[named]
    # A number that no run has is no beginning of an id, though those begin with a digit, too.
    is_number = re.fullmatch(r"[1-9]\d{0,5}", ref) is not None
    by_prefix = [candidate for candidate in paths if ref and candidate.startswith(ref)]
    matches = _numbered(store, int(ref)) if is_number else by_prefix
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
            f"{agent_dir} has no run {ref!r}{did_you_mean(ref, [*names, *paths]) or '.'} "
            f"`evaltui runs {agent_dir}` lists the runs; `last` is the newest"
        )
    return paths[matches[0]]


def _numbered(store: RunStore, number: int) -> list[str]:
    """The ids of the runs with this number."""
    ids = []
    for path in store.files():
        with suppress(OSError, ValueError):
            if RunFile(path).number == number:
                ids.append(run_id(path))
    return ids


def last_run(store: RunStore) -> Path | None:
    """The newest run of the agent that the store is asked for; None without one."""
    if not (store.module or store.url):
        return store.latest()
    agent = store.module, store.url
    headers = ((path, header_of(path)) for path in reversed(store.files()))
    return next((path for path, header in headers if header and (header.module, header.url) == agent), None)


def header_of(path: Path) -> RunHeader | None:
    """The header of a run's file; None where it cannot be read."""
    try:
        return RunFile(path).header
    except (OSError, ValueError):
        return None


def run_id(path: Path) -> str:
    return path.name.removesuffix(ADK_SUFFIX).removesuffix(SUFFIX)


def name_run(store: RunStore, ref: str, name: str) -> str:
    """Give a run a name, which another run that had it loses; returns the run's id.

    Raises SelectionError for a run that there is not and for a name that would not be found, OSError.
    """
    path = find_run(store, ref)
    ids = {run_id(path) for path in [*adk_results(store.agent_dir), *store.files()]}
    if name in ("", "last") or name.isdecimal() or name in ids or name.endswith((SUFFIX, ADK_SUFFIX)):
        raise SelectionError(f"{name!r} is not a valid run name")
    store.name(run_id(path), name)
    return run_id(path)


# Opening


@dataclass(frozen=True)
class KeptRun:
    """A run that is over, or its finished part. `status` is None where it did not come to its end.

    Only what is in `summary` was read; `case` and `events` read more. Both raise OSError, and ValueError for
    a file that is damaged.
    """

    path: Path
    started: datetime
    status: Status | None
    seconds: float | None
    summary: RunSummary
    case: Callable[[CaseId], CaseResult]
    """The whole result of a selected case, with what the agent did. Raises KeyError for another case."""
    events: Callable[[CaseId], dict[int, list[Event]]]
    """The events of a case by repeat; none in a run of google-adk, which stores no events."""
    file: RunFile | None = None
    """The run's file; None for a run of google-adk."""

    @property
    def id(self) -> str:
        return self.summary.id


def open_run(path: Path) -> KeptRun:
    """Raises OSError, and ValueError for what is neither a run of evaltui nor a result file."""
    return _open_adk_result(path) if path.name.endswith(ADK_SUFFIX) else _open_file(path)


def _open_adk_result(path: Path) -> KeptRun:
    run = read_adk_result(path)
    cases = {case.id: case for case in run.cases}
    summary = RunSummary(run_id(path), {key: summarize(case) for key, case in cases.items()}, by_label=True)
    return KeptRun(
        path=path,
        started=run.started,
        status=worst_status(case.status for case in run.cases),
        seconds=None,
        summary=summary,
        case=cases.__getitem__,
        events=lambda _: {},
    )


def _open_file(path: Path) -> KeptRun:
    file = RunFile(path)
    file.require_whole()
    return run_in(file)


def run_in(file: RunFile) -> KeptRun:
    """The run of a file that is open. Raises what `RunFile` does."""
    header, ending, summary = file.header, file.ending, summary_of(file)
    return KeptRun(
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
    """A run as it is compared. Raises what `RunFile` does."""
    header = file.header
    return RunSummary(
        file.id,
        selected_cases(header.selected(), {case.id: case.summary for case in file.cases}),
        frozenset(case.path for case in header.sets if case.whole),
        circumstances_of(header, file.agent),
        matrix=header.matrix,
        variant=header.variant,
        number=header.number,
    )


def missing_in_words(run: RunSummary, file: RunFile) -> Iterator[str]:
    """Notes on cases without a result.

    None for a complete run. Raises what `RunFile` does.
    """
    header = file.header
    is_merged = bool(header.merged)
    if is_merged and header.shards and (missing := header.shards.missing):
        names = [f"{number}/{header.shards.count}" for number in missing]
        yield f"{plural(len(names), 'shard')} missing: {some_of(names, _MOST_SHARDS)}"
    if header.stopped and header.stopped not in file.notes:
        yield header.stopped
    elif unfinished := run.unfinished:
        if is_merged:
            names = [case.eval_id for case in unfinished]
            yield f"{counted(len(unfinished), 'case')} without a result: {some_of(names)}"
        else:
            done, count = show_number(len(run.results)), counted(len(run.cases), "case")
            goes_on = file.seconds is None and is_being_written(file.path)
            how = "still running" if goes_on else "interrupted"
            yield f"{how}: {done} of {count} finished"


def circumstances_of(header: RunHeader, agent: Json) -> Circumstances:
    """From the header of a run, and what it found out of its agent."""
    return Circumstances(
        files=header.files,
        agent=str(agent.get("name") or ""),
        model=str(agent.get("model") or ""),
        configs={eval_set.path: form for eval_set in header.sets if (form := eval_set.scored_by) is not None},
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
    """The whole result of a case, with what the agent did. Raises what `RunFile` does."""
    result = file.case(case)
    return CaseResult.not_run(case, summary.eval_set_id) if result is None else result_of(file, result)


def result_of(
    file: RunFile, case: CaseInRun, secrets: Secrets | None = None, *, with_actual: bool = True
) -> CaseResult:
    """The result of a case that has one, without the secrets; `with_actual` with what the agent did."""
    summary = case.summary
    repeats = file.results(case.number, with_actual=with_actual, secrets=secrets)
    pass_if = pass_if_of(summary.policy)
    confidence = summary.decision.confidence if summary.decision else None
    return case_over_repeats(summary.eval_set_id, summary.eval_id, repeats, pass_if, case.id.path, confidence)


# A case over time


@dataclass(frozen=True)
class CasePoint:
    """A case in one of the runs; `run` is the summary of that run for this case alone."""

    started: datetime
    summary: CaseSummary
    run: RunSummary
    path: Path
    number: int = 0
    """Number of the run, from 1."""
    name: str = ""
    """The run's; "" for none."""
    kind: RunKind = ROOT_AGENT

    @property
    def title(self) -> str:
        """`run 18`, `run 18 baseline`, `run 18 traces`"""
        of_traces = "traces" if self.kind.of_traces else ""
        return " ".join(filter(None, (f"run {self.number}", self.name, of_traces)))


@dataclass(frozen=True)
class CaseHistory:
    """The results of a case in the last runs that had it, the oldest one first."""

    case: CaseId
    points: tuple[CasePoint, ...]

    @property
    def last_passed(self) -> CasePoint | None:
        """The newest run of the kind of the last one in which it passed; None without one."""
        alike = (point for point in reversed(self.points) if point.kind == self.points[-1].kind)
        return next((point for point in alike if point.summary.passes), None)

    @property
    def changed_since(self) -> tuple[str, ...]:
        """The differences between the newest run and the one in which it last passed; none where these are
        the same run, or it never passed."""
        passed = self.last_passed
        return what_changed(passed.run, self.points[-1].run, self.case) if passed else ()

    def until(self, moment: datetime) -> CaseHistory:
        """The runs that were begun by then."""
        return replace(self, points=tuple(point for point in self.points if point.started <= moment))

    def values(self, metric: str = "") -> list[float | None]:
        """By run a metric's score, or the share of its evaluated repeats that passed; None without one."""
        cases = [point.summary for point in self.points]
        if metric:
            return [case.scores.get(metric) for case in cases]
        return [case.passed / case.evaluated if case.evaluated else None for case in cases]


class History:
    """An agent's runs, of which only what is asked for is read; they are not kept in memory.

    Cheap to make. Not for a frame: reading takes tens of milliseconds.
    """

    def __init__(self, store: RunStore, agent: RunKind) -> None:
        self.store = store
        """The runs that it is of."""
        self.agent = agent

    def of(self, case: CaseId, last: int = 20) -> CaseHistory:
        """The last runs that have a result of the case. A file that cannot be read is passed over."""
        points: list[CasePoint] = []
        names = {run: name for name, run in self.store.names().items()}
        for path in reversed(self.store.files()):
            with suppress(OSError, ValueError):
                if point := self._point(path, case, names.get(run_id(path), "")):
                    points.append(point)
            if len(points) == last:
                break
        return CaseHistory(case, tuple(reversed(points)))

    def _point(self, path: Path, case: CaseId, name: str) -> CasePoint | None:
        file = RunFile(path)
        result = file.case(case)
        if result is None:
            return None
        header = file.header
        if not header.is_of(self.agent):
            return None
        circumstances = circumstances_of(header, file.agent)
        run = RunSummary(file.id, {case: result.summary}, circumstances=circumstances)
        number = header.number or 0
        return CasePoint(header.started, result.summary, run, path, number, name, header.kind)


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
        runs = [(log, header_of(log)) for log in store.files()]
        stay = {log for log, _ in runs[-keep:]} | _last_of_sets(runs)
        stay |= {log for log, _ in runs if run_id(log) in named or log in in_use}
        baselines = set(_baselines(runs, stay))
        deleted = []
        for log, _ in runs:
            if log not in stay and run_id(log) not in baselines and _delete(log):
                deleted.append(log)
        return deleted


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
