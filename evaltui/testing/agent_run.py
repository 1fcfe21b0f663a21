"""The run of the selected cases of an agent, in the background of a pytest session."""

from __future__ import annotations

import argparse
import asyncio
import os
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from evaltui.commands.baselines import alpha_of, baseline_of, comparison_with, later_run, require_effect
from evaltui.commands.output import UsageError, agent_to_run, settings_of
from evaltui.commands.repeat_arguments import confidence_of
from evaltui.core.compare.run_comparison import CaseChange, Comparison, compare, compare_case
from evaltui.core.compare.run_summary import CaseSummary, RunSummary, summarize
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.limits import parse_budget
from evaltui.core.model.outcome import CaseResult, Status
from evaltui.core.model.problems import EvalSetError, SelectionError
from evaltui.project.run_settings import ConfigChoice
from evaltui.runner.plan import CaseDone, Happened, Noted, RunStopped
from evaltui.runner.starting import HostSettings, start_host
from evaltui.runs.baselines import stored_run
from evaltui.runs.execution import ExecutedRun, LogGrew, RunSelected, RunUpdate
from evaltui.runs.execution import run as run_and_keep
from evaltui.runs.history import missing_case_notes, open_run, prune, result_of, summary_of
from evaltui.runs.merging import MergeError, merge
from evaltui.runs.run_file import RunFile
from evaltui.runs.run_header import RunHeader
from evaltui.runs.run_writer import RunWriter, begin_run
from evaltui.runs.selection import RunRequest, select
from evaltui.runs.sets import FileSets
from evaltui.runs.shards import Shard
from evaltui.runs.store import RunStore
from evaltui.testing.workers import Shards, run_files
from evaltui.text.figures import show_p

# Of pytest itself, not of the agent.
_OF_TESTS = ("PYTEST_CURRENT_TEST", "PYTEST_XDIST_")
# Seconds between two reads of the shards of other workers.
_POLL_INTERVAL = 0.1
_CANCELLED = "the run was cancelled"


class NoResultError(Exception):
    """A run has ended without a result of a case; the message is the reason."""


@dataclass(frozen=True)
class FinishedCase:
    """A finished case of a run."""

    result: CaseResult
    printed: str
    """The output of the agent during the case, without output of an unknown case."""
    excuse: str = ""
    """The reason why a failure does not count; "" for a failure that counts."""

    @property
    def seconds(self) -> float:
        """Seconds of all its repeats together."""
        return sum(repeat.seconds or 0.0 for repeat in self.result.repeats)


@dataclass(frozen=True)
class FinishedRun:
    """A finished run."""

    agent_dir: Path
    cases: int
    """Number of finished cases."""
    seconds: float
    log: Path | None
    """The run's file; None for a run that is not stored."""
    notes: tuple[str, ...]
    comparison: Comparison | None = None
    """The comparison with the baseline; None without a baseline."""
    problem: str = ""
    """The reason why the run did not finish; "" for a complete run."""
    failed: tuple[CaseId, ...] = ()
    """The cases that failed, in the order of the tests."""
    request: RunRequest | None = None
    """The request of the run; None where it is invalid, and for several shards."""
    config: Path | None = None
    """The config of all its sets; None where each has its own."""


class AgentRun:
    """A run, or this worker's shard of a run, with the results so far."""

    def __init__(
        self,
        options: argparse.Namespace,
        selected: Mapping[Path, Sequence[str] | None],
        cases: Sequence[CaseId],
        shards: Shards | None,
    ) -> None:
        """`options` are those of `evaltui run`; `selected` are the ids of `cases` by set, None for a whole
        set. Hosts get the current folder and environment of this process."""
        self._options, self._selected, self._cases, self._shards = options, selected, cases, shards
        self._folder = Path.cwd()
        self._environ = {name: value for name, value in os.environ.items() if not name.startswith(_OF_TESTS)}
        self._began = time.monotonic()
        self._changed = threading.Condition()
        self._results: dict[CaseId, FinishedCase] = {}
        self._finished: FinishedRun | None = None
        self._notes: dict[str, None] = {}
        # The one of them that is no reason why a case has no result.
        self._of_baseline = ""
        self._printed: defaultdict[CaseId, list[str]] = defaultdict(list)
        self._request: RunRequest | None = None
        self._executed: ExecutedRun | None = None
        self._baseline: RunSummary | None = None
        self._summaries: dict[Path, RunSummary] = {}
        self._files: dict[int, RunFile] = {}
        self._seen: set[CaseId] = set()
        self._undecided: list[FinishedCase] = []
        self._count = self._done = 0
        self._log: Path | None = None
        self._is_asked = self._is_left = False
        if shards is not None:
            shards.start()

    # Called by tests

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Starts the run in an event loop of another thread."""
        self._loop = loop
        loop.call_soon_threadsafe(self._start)

    def result(self, case: CaseId) -> FinishedCase:
        """Waits for a case to finish, and returns it. Raises NoResultError."""
        with self._changed:
            self._is_asked = True
            self._changed.wait_for(lambda: case in self._results or self._finished)
            if case in self._results:
                return self._results[case]
            assert self._finished is not None
            notes = "; ".join(note for note in self._finished.notes if note != self._of_baseline)
            raise NoResultError(self._finished.problem or notes or "the case was not run")

    def end(self, *, is_awaited: bool) -> None:
        """Stops waiting for other workers, and cancels the run unless another worker waits for it."""
        self._is_left = True
        if not is_awaited:
            self._loop.call_soon_threadsafe(self._cancel)

    def wait(self) -> FinishedRun:
        """Waits for the run to finish, and returns it."""
        with self._changed:
            self._changed.wait_for(lambda: self._finished)
            assert self._finished is not None
            return self._finished

    # In the event loop

    def _start(self) -> None:
        self._own = asyncio.create_task(self._execute())
        self._following = asyncio.create_task(self._follow())
        self._work = asyncio.create_task(self._finish())

    def _cancel(self) -> None:
        """Cancels the run; a run whose cases are all finished is still stored."""
        self._following.cancel()
        if not self._count or self._done < self._count:
            self._own.cancel()

    async def _execute(self) -> None:
        options = self._options
        try:
            request, sets = _request(options, self._selected)
            self._request = request = await self._with_baseline(request, sets)
            if self._shards is not None:
                if self._shards.own is None:
                    return
                request = _shard_of(request, self._shards, self._cases)
            settings = HostSettings(
                request.agent, request.settings.timeout, folder=self._folder, environ=self._environ
            )
            self._executed = await run_and_keep(request, sets, self._on_update, lambda: start_host(settings))
        finally:
            if self._shards is not None:
                self._shards.end()

    async def _with_baseline(self, request: RunRequest, sets: FileSets) -> RunRequest:
        """The request with its baseline. Raises UsageError where only regressions fail and none could be
        shown."""
        options = self._options
        baseline = await asyncio.to_thread(baseline_of, options, later_run(request))
        if baseline is None:
            return request
        if options.fail_on_regression:
            try:
                selected = await asyncio.to_thread(select, request, sets)
                require_effect(baseline.run, selected, alpha_of(options))
            except UsageError as error:
                raise UsageError(str(error).replace("--", "--evaltui-")) from error
        self._baseline = baseline.run
        self._of_baseline = baseline.note
        self._note(baseline.note)
        return replace(request, baseline=baseline.run.id)

    def _note(self, text: str) -> None:
        if text:
            self._notes[text] = None

    def _on_update(self, update: RunUpdate) -> None:
        match update:
            case CaseDone(result):
                self._done += 1
                self._on_result(result, "\n".join(self._printed.pop(result.id, ())), self._log)
            case Happened(event):
                if event.kind == "console" and event.case:
                    text = str(event.data.get("text", ""))
                    self._printed[CaseId(event.path, event.case)].append(text)
            case Noted(text) | RunStopped(reason=text):
                self._note(text)
            case LogGrew(log):
                self._log = log
            case RunSelected(selected):
                self._count = selected.plan.case_count

    async def _follow(self) -> None:
        """Reads the results of the other workers until these have finished or no test waits for them."""
        shards = self._shards
        if shards is None:
            return
        numbers = shards.others
        while numbers or not self._own.done():
            if shards.is_session_over:
                self._own.cancel()
                return
            if self._is_left:
                numbers.clear()
            # Before the first test, other workers may not have begun; before the baseline is read, no failure
            # is excused.
            is_prepared = self._request is not None or self._own.done()
            for number in sorted(numbers) if self._is_asked and is_prepared else ():
                if self._has_read(shards, number):
                    numbers.remove(number)
            await asyncio.sleep(_POLL_INTERVAL)

    def _has_read(self, shards: Shards, number: int) -> bool:
        """Reads the new results of another worker; returns whether that worker has finished."""
        is_over, path = shards.is_over(number), shards.file(number)
        has_ended = False
        # While its file is being made, there is nothing to be read.
        with suppress(OSError, ValueError):
            if path is not None:
                file = self._files.get(number) or RunFile(path)
                self._files[number] = file
                for case in file.numbers.keys() - self._seen:
                    if (done := file.case(case)) is not None:
                        self._on_result(result_of(file, done), _printed(file, case), path)
                        self._seen.add(case)
                has_ended = is_over and file.seconds is not None
        if is_over and not has_ended:
            self._note("a worker of pytest-xdist ended before its cases")
        return is_over

    def _on_result(self, result: CaseResult, printed: str, log: Path | None) -> None:
        finished, summary = FinishedCase(result, printed), summarize(result)
        excuses = self._baseline is not None and self._options.fail_on_regression
        if not excuses or not summary.is_judged or summary.passes:
            self._add(finished)
            return
        change = self._change(summary, log)
        if change is not None and change.lacks_verdict:
            self._add(finished)
        elif change is None or (change.may_be_regression and change.may_be_chance(alpha_of(self._options))):
            # All cases together may be the evidence that its own repeats are not.
            self._undecided.append(finished)
        elif change.may_be_regression:
            self._add(finished)
        else:
            assert self._baseline is not None
            self._add(replace(finished, excuse=f"no regression from {self._baseline.id}"))

    def _add(self, finished: FinishedCase) -> None:
        with self._changed:
            self._results[finished.result.id] = finished
            self._changed.notify_all()

    def _change(self, summary: CaseSummary, log: Path | None) -> CaseChange | None:
        """The change of a case since the baseline; None for a run that is in memory until its end.

        `log` is the file of the shard of the case, which has the configs of its sets.
        """
        assert self._baseline is not None
        if log is None:
            return None
        if log not in self._summaries:
            self._summaries[log] = summary_of(RunFile(log))
        run = replace(self._summaries[log], cases={summary.id: summary})
        return compare_case(summary.id, self._baseline, run)

    async def _finish(self) -> None:
        ends = await asyncio.gather(self._own, self._following, return_exceptions=True)
        problem = next((_in_words(end) for end in ends if end is not None), "")
        comparison = None
        try:
            comparison = self._comparison()
        except Exception as error:
            problem = problem or _in_words(error)
        for finished in self._undecided:
            excuse = _excuse(finished.result.id, comparison) if comparison else ""
            self._add(replace(finished, excuse=excuse))
        failed = [
            case
            for case in self._cases
            if case in self._results and self._results[case].result.verdict is Status.FAILED
        ]
        with self._changed:
            self._finished = FinishedRun(
                self._options.agent_dir,
                self._done,
                time.monotonic() - self._began,
                self._executed.log if self._executed else None,
                (*self._notes,),
                comparison,
                problem,
                tuple(failed),
                self._request,
                self._options.config,
            )
            self._changed.notify_all()

    def _comparison(self) -> Comparison | None:
        """The comparison of all shards with the baseline; None without a baseline or a result."""
        if self._shards is not None:
            files = [RunFile(path) for path in run_files(self._shards.folder)]
        else:
            files = [self._executed.file] if self._executed else []
        if self._baseline is None or not files:
            return None
        shards = [summary_of(file) for file in files]
        cases = {case: summary for shard in shards for case, summary in shard.cases.items()}
        configs = {path: form for shard in shards for path, form in shard.circumstances.configs.items()}
        functions = {name: text for shard in shards for name, text in shard.circumstances.functions.items()}
        circumstances = replace(shards[0].circumstances, configs=configs, functions=functions)
        whole = replace(shards[0], cases=cases, circumstances=circumstances)
        return compare(self._baseline, whole, alpha_of(self._options))


def _request(
    options: argparse.Namespace, selected: Mapping[Path, Sequence[str] | None]
) -> tuple[RunRequest, FileSets]:
    """Raises UsageError, and EvalSetError for a config that cannot be read."""
    # As google-adk's AgentEvaluator.
    choice: ConfigChoice = "beside" if options.adk_verdicts else "nearest"
    settings = settings_of(options)
    results_dir = settings.results_dir and settings.results_dir.absolute()
    settings = replace(
        settings, confidence=confidence_of(options), config_choice=choice, results_dir=results_dir
    )
    request = RunRequest(agent_to_run(options), selected, skips_invalid=True, settings=settings)
    return request, FileSets(options.agent_dir, options.config, choice=choice)


def _shard_of(request: RunRequest, shards: Shards, cases: Sequence[CaseId]) -> RunRequest:
    """The request for this worker's shard, with its share of the limits."""
    assert shards.own is not None
    number, count, settings = shards.own, shards.count, request.settings

    def share(most: int) -> int:
        return most // count + (number <= most % count)

    budget = parse_budget(settings.budget) if settings.budget else None
    settings = replace(
        settings,
        parallel=share(settings.parallel),
        workers=settings.workers and share(settings.workers),
        budget=format(budget.amount / count, ".9f") + budget.unit if budget else None,
        results_dir=shards.results_dir(number),
    )
    # As many cases for each.
    seconds = dict.fromkeys(cases, 1.0)
    return replace(request, shard=Shard(number, count), seconds=seconds, settings=settings)


def _printed(file: RunFile, case: CaseId) -> str:
    """The output of the agent during a case of another worker."""
    events = (event for of_repeat in file.events_of(case).values() for event in of_repeat)
    return "\n".join(str(event.data.get("text", "")) for event in events if event.kind == "console")


def _in_words(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError):
        return _CANCELLED
    if isinstance(error, UsageError | SelectionError | EvalSetError):
        return str(error)
    return "".join(traceback.format_exception(error))


def _excuse(case: CaseId, comparison: Comparison) -> str:
    """The reason why the failure of a case is no regression, a clause; "" for a failure that counts."""
    base = comparison.base.id
    change = next((change for change in comparison.cases if change.case == case), None)
    if change is not None and change.lacks_verdict:
        return ""
    if change is not None and not change.may_be_regression:
        return f"no regression from {base}"
    p = next((change.p for change in comparison.without_evidence if change.case == case), None)
    return "" if p is None else f"no evidence of a regression from {base}: {show_p(p)}"


def merged(folder: Path, options_of_agent: Callable[[Path], argparse.Namespace]) -> FinishedRun | None:
    """Stores the shards in a folder as one run of their agent; None for shards without a set.

    Shards of different plans are a problem of the run.
    """
    logs = run_files(folder)
    shards = [RunFile(log) for log in logs]
    headers = [shard.header for shard in shards]
    if not any(header.sets for header in headers):
        return None
    agent_dir = Path(headers[0].agent_dir)
    options = options_of_agent(agent_dir)
    settings = settings_of(options)
    store = RunStore.of(agent_dir, settings)

    def create(header: RunHeader) -> RunWriter:
        of_session = {
            name: getattr(settings, name) for name in ("parallel", "workers", "budget", "results_dir")
        }
        whole = replace(header, shards=None, parts=(), settings=replace(header.settings, **of_session))
        return begin_run(store, whole)

    try:
        baseline = baseline_of(options, stored_run(store, *logs))
        run = merge(logs, create, baseline.run.id if baseline else "")
        prune(store, settings.keep_runs, [run.log])
    except (UsageError, SelectionError, OSError, ValueError) as error:
        problem = str(error) if isinstance(error, MergeError) else ""
        return FinishedRun(agent_dir, 0, 0.0, None, (f"Run not stored: {error}",), problem=problem)
    file, whole = RunFile(run.log), open_run(run.log).summary
    comparison = comparison_with(baseline, whole, options)
    notes = [baseline.note if baseline else "", *file.notes, *missing_case_notes(whole, file)]
    if settings.budget and (parts := headers[0].shards) and parts.count > 1:
        notes.append(f"1/{parts.count} of the budget for each worker")
    return FinishedRun(
        agent_dir,
        len(whole.results),
        max(shard.seconds or 0.0 for shard in shards),
        run.log,
        tuple(filter(None, notes)),
        comparison,
    )
