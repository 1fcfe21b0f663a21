"""The runs that were kept: finding them, opening them, and what they say of a case over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from evaltui.core.model.outcome import CaseResult, RepeatResult, Status, worst_status
from evaltui.core.model.problems import SelectionError
from evaltui.runs import log_reader as logs
from evaltui.runs.adk_results import SUFFIX as ADK_SUFFIX
from evaltui.runs.adk_results import adk_results, read_adk_result
from evaltui.runs.index_rows import LoggedCase
from evaltui.runs.log_header import RunHeader
from evaltui.runs.store import SUFFIX, RunStore
from evaltui.text.figures import counted, plural, show_number, some_of
from evaltui.text.values import did_you_mean

if TYPE_CHECKING:
    from evaltui.core.model.events import Event

Json = dict[str, Any]

# Missing shards that a note names.
_MOST_SHARDS = 20

# Finding


def find_run(store: RunStore, ref: str) -> Path:
    """The run that `last`, a path, a name, an id or a unique beginning of an id stands for: a run log, or a
    result file of google-adk.

    Raises SelectionError where there is none, and for a beginning that several runs have.
    """
    if ref.endswith((SUFFIX, ADK_SUFFIX)) and Path(ref).is_file():
        return Path(ref)
    if ref == "last":
        last = store.latest()
        if last is None:
            raise SelectionError(f"no runs of {store.title} yet")
        return last
    agent_dir, names = store.agent_dir, store.names()
    known = {run_id(path): path for path in [*adk_results(agent_dir), *store.logs()]}
    wanted = names.get(ref, ref)
    if wanted in known:
        return known[wanted]
    found = [one for one in known if ref and one.startswith(ref)]
    if len(found) > 1:
        first, second, *_ = found
        raise SelectionError(f"{ref!r} matches {counted(len(found), 'run')}: {first}, {second}, …")
    if not found and Path(ref).is_file():
        raise SelectionError(
            f"{ref} is no run: a run log ends in {SUFFIX}, a result file of google-adk in {ADK_SUFFIX}"
        )
    if not found:
        raise SelectionError(
            f"{agent_dir} has no run {ref!r}{did_you_mean(ref, [*names, *known]) or '.'} "
            f"`evaltui runs {agent_dir}` lists the runs; `last` is the newest"
        )
    return known[found[0]]


def run_id(path: Path) -> str:
    return path.name.removesuffix(ADK_SUFFIX).removesuffix(SUFFIX)


def name_run(store: RunStore, ref: str, name: str) -> str:
    """Give a run a name, which another run that had it loses; returns the run's id.

    Raises SelectionError for a run that there is not and for a name that would not be found, OSError.
    """
    path = find_run(store, ref)
    ids = {run_id(one) for one in [*adk_results(store.agent_dir), *store.logs()]}
    if name in ("", "last") or name in ids or name.endswith((SUFFIX, ADK_SUFFIX)):
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
    """What happened in a case, by repeat; nothing in a run of google-adk, which keeps no events."""
    logged: Mapping[CaseId, LoggedCase] | None = None
    """The results in a run log, and where the rest of them is."""

    @property
    def id(self) -> str:
        return self.summary.id


def open_run(path: Path) -> KeptRun:
    """Raises OSError, and ValueError for what is neither a run log of this version nor a result file."""
    return _open_adk_result(path) if path.name.endswith(ADK_SUFFIX) else _open_log(path)


def stored_events(path: Path) -> Callable[[CaseId], dict[int, list[Event]]]:
    """Reads what happened in a case, by repeat, from a log that is opened when it is first asked.

    Raises what `open_run` and `KeptRun.events` do.
    """
    opened = cache(lambda: open_run(path))
    return lambda case: opened().events(case)


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


def _open_log(path: Path) -> KeptRun:
    run = logs.read_run(path)
    cases, summary = {one.id: one for one in run.results}, summary_of(run)

    def case_result(case: CaseId) -> CaseResult:
        if case in cases:
            return case_of(path, cases[case])
        return CaseResult.not_run(case, summary.cases[case].eval_set_id)

    return KeptRun(
        path=path,
        started=run.header.started,
        status=run.footer.status if run.footer else None,
        seconds=run.footer.seconds if run.footer else None,
        summary=summary,
        case=case_result,
        events=lambda case: events_of(path, cases[case]) if case in cases else {},
        logged=cases,
    )


def summary_of(run: logs.StoredRun) -> RunSummary:
    """A log as it is compared. Raises OSError, and ValueError for a log that is damaged."""
    header = run.header
    return RunSummary(
        run.id,
        selected_cases(header.selected(), {one.id: one.summary for one in run.results}),
        frozenset(one.path for one in header.sets if one.whole),
        circumstances_of(header, logs.read_agent(run.path)),
        by_label=header.by_label,
        ambiguous=frozenset(CaseId(*ids) for ids in header.twins),
        matrix=header.matrix,
        variant=header.variant,
    )


def missing_in_words(run: RunSummary, header: RunHeader) -> Iterator[str]:
    """Notes on the selected cases without a result; nothing for a complete run."""
    is_merged = "merged" in header.data
    if is_merged and header.shards and (missing := header.shards.missing):
        names = [f"{number}/{header.shards.count}" for number in missing]
        yield f"{plural(len(names), 'shard')} missing: {some_of(names, _MOST_SHARDS)}"
    if unfinished := run.unfinished:
        if is_merged:
            names = [case.eval_id for case in unfinished]
            yield f"{counted(len(unfinished), 'case')} without a result: {some_of(names)}"
        else:
            done, count = show_number(len(run.results)), counted(len(run.cases), "case")
            yield f"interrupted: {done} of {count} finished"


def circumstances_of(header: RunHeader, agent: Mapping[str, Any]) -> Circumstances:
    """From the header of a log, and what the run found out of its agent."""
    return Circumstances(
        files=header.files,
        agent=str(agent.get("name") or ""),
        model=str(agent.get("model") or ""),
        configs={one.path: form for one in header.sets if (form := one.scored_by) is not None},
        adk_verdicts=bool(header.data.get("adk_verdicts")),
        options=options_of_run(header.data, agent),
    )


def events_of(path: Path, case: LoggedCase) -> dict[int, list[Event]]:
    """What happened in a case, by repeat. Raises OSError, and ValueError for a log that is damaged."""
    if case.events is None:
        return {}
    return logs.events_between(path, case.events, case.id, case.summary.eval_set_id)


def case_of(path: Path, case: LoggedCase) -> CaseResult:
    """The whole result of a case in a log, with what the agent did.

    Raises OSError, and ValueError for a log that is damaged.
    """
    return _case(path, case, events_of(path, case))


def result_of(path: Path, case: LoggedCase) -> CaseResult:
    """The result of a case in a log, without what the agent did; raises what `case_of` does."""
    result = _case(path, case, {})
    return replace(result, repeats=tuple(replace(repeat, actual=()) for repeat in result.repeats))


def _case(path: Path, case: LoggedCase, events: Mapping[int, Sequence[Event]]) -> CaseResult:
    from evaltui.core.compare.repeats import case_over_repeats, pass_if_of

    summary = case.summary
    repeats = [
        stored_repeat(path, result, events.get(number, []))
        for number, result in enumerate(logs.repeats_of(path, case))
    ]
    if not repeats:
        raise ValueError(f"{path} has no result of {summary.eval_id}")
    pass_if = pass_if_of(summary.policy)
    confidence = summary.decision.confidence if summary.decision else None
    return case_over_repeats(summary.eval_set_id, summary.eval_id, repeats, pass_if, case.id.path, confidence)


def stored_repeat(path: Path, result: Json, events: Sequence[Event] = ()) -> RepeatResult:
    """One run of a case as a log has it, with what the agent did. Raises ValueError for anything else."""
    from evaltui.core.conversation.invocations import invocations_from_events
    from evaltui.core.model.stored_results import repeat_from_json

    try:
        return repeat_from_json(result, invocations_from_events(events))
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged: a run of a case cannot be read: {error!r}") from error
    except ValueError as error:
        raise ValueError(f"{path} is damaged: a run of a case cannot be read: {error}") from error


# A case over time


@dataclass(frozen=True)
class CasePoint:
    """A case in one of the runs; `run` is the whole run, with this case only."""

    started: datetime
    summary: CaseSummary
    run: RunSummary
    path: Path
    number: int = 0
    """Number of the run, from 1."""


@dataclass(frozen=True)
class CaseHistory:
    """What came of a case in the last runs that had it, the oldest one first."""

    case: CaseId
    points: tuple[CasePoint, ...]

    @property
    def last_passed(self) -> CasePoint | None:
        return next((point for point in reversed(self.points) if point.summary.passes), None)

    @property
    def changed_since(self) -> tuple[str, ...]:
        """What is different between the newest run and the one in which it last passed; nothing where that is
        the same one, or it never passed."""
        passed = self.last_passed
        return what_changed(passed.run, self.points[-1].run, self.case) if passed else ()

    def values(self, metric: str = "") -> list[float | None]:
        """By run a metric's score, or the share of its evaluated repeats that passed; None without one."""
        cases = [point.summary for point in self.points]
        if metric:
            return [case.scores.get(metric) for case in cases]
        return [case.passed / case.evaluated if case.evaluated else None for case in cases]


class History:
    """An agent's run logs, of which only what is asked for is read; they are not kept in memory.

    Cheap to make. Not for a frame: reading twenty runs of ten thousand cases takes a tenth of a second.
    """

    def __init__(self, store: RunStore, agent_name: str | None = None) -> None:
        self.store = store
        """The runs that it is of."""
        self.agent_name = agent_name
        """The sub-agent that was run as the root; None for the root agent."""
        self._known: dict[Path, tuple[RunHeader, Circumstances]] = {}

    def of(self, case: CaseId, eval_set_id: str, last: int = 20) -> CaseHistory:
        """The last runs that have a result of the case. A log that cannot be read is passed over."""
        points: list[CasePoint] = []
        for place, path in reversed(list(enumerate(self.store.logs(), 1))):
            try:
                point = self._point(path, case, eval_set_id)
            except (OSError, ValueError):
                continue
            if point is not None:
                points.append(point if point.number else replace(point, number=place))
                if len(points) == last:
                    break
        return CaseHistory(case, tuple(reversed(points)))

    def _point(self, path: Path, case: CaseId, eval_set_id: str) -> CasePoint | None:
        header, circumstances = self._run(path)
        if not header.of_traces and header.data.get("agent_name") != self.agent_name:
            return None
        found = logs.result_of(path, header, case, eval_set_id)
        if found is None:
            return None
        run = RunSummary(run_id(path), {case: found.summary}, circumstances=circumstances)
        return CasePoint(header.started, found.summary, run, path, header.number or 0)

    def _run(self, path: Path) -> tuple[RunHeader, Circumstances]:
        known = self._known.get(path)
        if known is None:
            header = logs.read_header(path).without_cases()
            known = header, circumstances_of(header, logs.read_agent(path))
            # In a log that is being written, the agent may come later.
            if known[1].agent:
                self._known[path] = known
        return known
