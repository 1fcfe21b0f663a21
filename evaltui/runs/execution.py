"""A run that is executed and kept: written down while it happens, with ADK's result files at its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from evaltui.core.compare.run_summary import summarize
from evaltui.core.model.case_id import CaseId
from evaltui.core.model.outcome import CaseResult, Status, worst_status
from evaltui.files.agent_address import files_of_agent
from evaltui.files.agent_files import changed_files
from evaltui.files.folders import app_name, case_path
from evaltui.files.saving import fingerprint_of
from evaltui.files.settings import secrets_of
from evaltui.runner.parent.execution import follow_plan
from evaltui.runner.parent.executor import ExecutorError
from evaltui.runner.parent.recordings import RecordingsOfSets, open_recordings
from evaltui.runner.parent.starting import StartedHost, require_variant
from evaltui.runner.plan import (
    AgentLoaded,
    CaseDone,
    CaseStarted,
    Happened,
    HeldConversations,
    Noted,
    RepeatDone,
    RunPlan,
    RunStopped,
    SetPlan,
    SpentWithoutResult,
    Update,
)
from evaltui.runs.adk_document import AdkResult
from evaltui.runs.adk_results import write_adk_result
from evaltui.runs.pruning import prune
from evaltui.runs.resuming import Resumption, is_prompt, is_source
from evaltui.runs.run_file import Ending, RunFile
from evaltui.runs.run_header import RunHeader, SelectedSet
from evaltui.runs.run_writer import RunWriter, begin_run
from evaltui.runs.secret_pieces import SecretPieces
from evaltui.runs.selection import RunRequest, SelectedRun, select
from evaltui.runs.sets import SetSource, tags_of_cases
from evaltui.runs.store import RunStore
from evaltui.text.figures import some_of

# Seconds.
_COMMIT_EVERY = 1.0


def logged_files(plan: RunPlan) -> dict[str, str]:
    """The files of the agent with their fingerprints; none for an agent behind a network, an object, and
    conversations that were held elsewhere."""
    is_unknown = plan.agent.url or plan.agent.in_process or plan.held is not None
    return {} if is_unknown else files_of_agent(plan.agent)


def notes_on_changes(plan: RunPlan, files: Mapping[str, str]) -> Iterator[str]:
    """Sentences that name the files that changed since a run read them; `files` are those of the agent then.

    Data of the agent is left out, but for what may be a prompt: it may write some itself while it works.
    """
    read = {path: before for one in plan.sets for path, before in one.files.items()}
    changed = [path for path, before in read.items() if fingerprint_of(path) != before]
    if changed:
        names = some_of([case_path(plan.agent_dir, path) for path in changed])
        yield f"{names} changed during the run. Verdicts are of the files before the agent started"
    changed_of_agent = changed_files(files, logged_files(plan))
    if code := [name for name in changed_of_agent if is_source(name)]:
        yield f"{some_of(code)} changed during the run. Some cases may have run on the earlier version"
    if prompts := [name for name in changed_of_agent if name in files and is_prompt(name)]:
        either = "Unless the agent wrote that, some cases may have run on the earlier version"
        yield f"{some_of(prompts)} changed during the run. {either}"


class LoggedRun:
    """Writes what a run tells to its file."""

    def __init__(self, writer: RunWriter, started: datetime) -> None:
        self.last_result: int | None = None
        """The number of the case that has the last result in the file; None before there is one."""
        self._writer = writer
        self._pieces = SecretPieces(writer.secrets)
        self._started = started
        self.seconds = 0.0
        """Wall time, once it is closed."""

    @classmethod
    def start(cls, store: RunStore, plan: RunPlan, header: RunHeader) -> LoggedRun:
        """Creates the file. `header` says what the plan does not say.

        Raises OSError where the folder of the store cannot be written.
        """
        agent = plan.agent
        # The process of an agent behind a network is somebody else's.
        python = None if agent.url or agent.in_process else str(agent.interpreter.path)
        header = replace(
            header,
            sets=tuple(_set(plan, one) for one in plan.sets),
            settings=replace(plan.settings, python=python),
            agent_dir=str(agent.folder),
            agent_name=agent.name,
            module=agent.module,
            url=agent.url,
            in_process=agent.in_process,
            variant=agent.variant.shown if agent.variant else None,
        )
        return cls(begin_run(store, header), header.started)

    @property
    def path(self) -> Path:
        return self._writer.path

    @property
    def elsewhere(self) -> str:
        """As `RunWriter.elsewhere`."""
        return self._writer.elsewhere

    def tell_locked(self, tell: Callable[[str], None]) -> None:
        """`tell` gets a sentence where another process locks the file."""
        self._writer.on_locked = tell

    def commit(self) -> None:
        """Put everything that was written so far into the file. Raises OSError."""
        self._writer.commit()

    @property
    def has_masked(self) -> bool:
        """Whether there were secrets in what the run told so far."""
        return self._writer.has_masked or self._pieces.has_masked

    def carry_over(self, resumption: Resumption) -> None:
        """Copy the finished repeats of the run that is resumed, and what was spent besides.

        Raises what `RunFile` raises.
        """
        earlier, repeats = RunFile(resumption.path), set(resumption.carried())
        for stored in earlier.repeats:
            if (stored.case, stored.repeat) in repeats:
                self._writer.copy_repeat(earlier, stored)
        self._writer.add_spending(resumption.spent)

    def write(self, update: Update) -> None:
        match update:
            case Happened():
                self._write_events(self._pieces.add(update))
            case CaseStarted(case, eval_set_id, repeat):
                self._write_events(self._pieces.end((*case, repeat)))
                self._writer.start(case, eval_set_id, repeat)
            case AgentLoaded(info):
                # A run is read on other machines, too.
                self._writer.set_agent({name: value for name, value in info.items() if name != "places"})
            case RepeatDone(case, eval_set_id, repeat, result):
                self._write_events(self._pieces.end((*case, repeat)))
                self._writer.add_repeat(case, eval_set_id, repeat, result)
                # Nothing may follow for long, while another repeat hangs.
                self._writer.commit()
            case CaseDone(result):
                self.last_result = self._writer.add_case(summarize(result))
                self._writer.commit()
            case SpentWithoutResult(amount):
                self._writer.add_spending(amount)

    def _write_events(self, updates: Iterable[Happened]) -> None:
        for update in updates:
            self._writer.add_event(update.event, update.json)

    def close(self, status: Status | None = None, stopped: str = "") -> None:
        """End the file; without a status it stays that of a run that was interrupted, or `stopped` for a
        reason."""
        self._write_events(self._pieces.close())
        self.seconds = round((datetime.now(UTC) - self._started).total_seconds(), 3)
        self._writer.close(Ending(status, self.seconds) if status else None, stopped)


def _set(plan: RunPlan, one: SetPlan) -> SelectedSet:
    eval_ids, path = one.eval_ids, one.case_path
    more = {eval_id: runs for eval_id in eval_ids if (runs := plan.more.get(CaseId(path, eval_id)))}
    return SelectedSet(
        path,
        one.eval_set_id,
        eval_ids,
        one.config.scoring(),
        one.whole,
        one.places,
        tags_of_cases(one.config, one.eval_set_id, eval_ids),
        None if plan.held is None else _conversations(plan.held, path, eval_ids),
        more,
        one.fingerprint,
    )


def _conversations(held: HeldConversations, path: str, eval_ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
    found = {eval_id: held.get(CaseId(path, eval_id), ()) for eval_id in eval_ids}
    return {eval_id: tuple(one.id for one in some) for eval_id, some in found.items() if some}


@dataclass(frozen=True)
class LogGrew:
    """How far the file of the run is, before the update that follows; None where no more can be written. Told
    only where a case begins and ends.

    `result` is the number of the case that has the last result in the file, None before there is one.
    """

    log: Path | None
    result: int | None = None


@dataclass(frozen=True)
class Selected:
    """What the run is made of is known, and it begins."""

    run: SelectedRun


RunUpdate = Update | LogGrew | Selected
OnRunUpdate = Callable[[RunUpdate], None]


@dataclass(frozen=True)
class ExecutedRun:
    """A run that is over. What came of its cases was told while it ran."""

    started: datetime
    """UTC."""
    seconds: float
    """Wall time, as the log has it."""
    status: Status | None
    """The worst of its cases; None where it was cancelled, or there was nothing to run."""
    log: Path | None
    """None where it could not be kept, or not to its end."""
    has_secrets: bool
    """Whether there may be secrets in what was told: the log had to mask some, or there is none to know."""
    stopped: RunStopped | None = None
    """Why cases have no result though it was not cancelled; None where all have one."""
    problem: str = ""
    """Why it ended before its time, a sentence; "" where it did not, or was cancelled."""


class RunService(Protocol):
    """Selects, executes and keeps a run; `run` is the one that does, tests have others without processes.

    `start_host` starts a process that imports the agent.
    """

    def __call__(
        self,
        request: RunRequest,
        sets: SetSource,
        on_update: OnRunUpdate,
        start_host: Callable[[], StartedHost],
    ) -> Awaitable[ExecutedRun]: ...


async def run(
    request: RunRequest,
    sets: SetSource,
    on_update: OnRunUpdate,
    start_host: Callable[[], StartedHost] | None,
) -> ExecutedRun:
    """Select, execute and keep a run.

    Sets, configs and recordings are read before the agent is imported, which could change them. Without
    `start_host`, no agent is run: the request has conversations that are scored.

    Cancelled, what is finished stays, and is kept. Raises what `select` raises, EvalSetError for recordings
    that cannot be read, VariantError for a variant that does not fit, and ValueError for a plan that cannot
    be run; what `on_update` raises ends the run.
    """
    selected = await asyncio.to_thread(select, request, sets)
    on_update(Selected(selected))
    for note in selected.notes:
        on_update(Noted(note))
    if selected.plan.case_count:
        return await _Execution(selected, on_update).run(start_host)
    if request.shard is not None:
        return await _Execution(selected, on_update).run_nothing()
    return ExecutedRun(datetime.now(UTC), 0.0, None, None, has_secrets=False)


def _prints_of_recordings(plan: RunPlan, recordings: RecordingsOfSets) -> dict[str, str]:
    files = {one.case_path: plan.recordings_path(one) for one in plan.sets if one.path in recordings}
    return {path: known for path, file in files.items() if file and (known := fingerprint_of(file))}


class _Execution:
    """A log or a result file that cannot be written is worth a note; the run goes on."""

    def __init__(self, selected: SelectedRun, on_update: OnRunUpdate) -> None:
        self._selected = selected
        self._on_update = on_update
        self._log: LoggedRun | None = None
        self._stopped: RunStopped | None = None
        self._statuses: list[Status] = []
        # Fingerprints before the run, by the paths of the sets.
        self._recordings: Mapping[str, str] = {}
        secrets = secrets_of(selected.plan.agent_dir)
        self._adk_results = {info.known_as: AdkResult(info, secrets) for info in selected.sets}

    async def run(self, start_host: Callable[[], StartedHost] | None) -> ExecutedRun:
        plan = self._selected.plan
        recordings = await open_recordings(plan, lambda text: self._on_update(Noted(text)))
        self._recordings = _prints_of_recordings(plan, recordings)
        files = await asyncio.to_thread(logged_files, plan)
        host = start_host() if start_host else None
        try:
            if host is not None:
                await require_variant(host)
            return await self._run(host, recordings, files)
        finally:
            if host is not None:
                await host.end()

    async def _run(
        self,
        host: StartedHost | None,
        recordings: RecordingsOfSets,
        files: Mapping[str, str],
    ) -> ExecutedRun:
        plan, started = self._selected.plan, datetime.now(UTC)
        self._begin_log(started, files)
        status: Status | None = None
        problem = ""
        committing = asyncio.create_task(self._commit_now_and_then())
        try:
            status = await follow_plan(plan, self._update, first=host, recordings=recordings)
        except asyncio.CancelledError:
            # Being cancelled is one of the ways in which a run ends. With all its results, it is over.
            if len(self._statuses) == plan.case_count:
                status = worst_status(self._statuses)
        except ExecutorError as error:
            problem = str(error)
            self._on_update(Noted(problem))
        finally:
            committing.cancel()
            # One that was stopped can be resumed as one that was interrupted.
            ending = None if self._stopped else status
            seconds = (datetime.now(UTC) - started).total_seconds()
            stopped = self._stopped.reason if self._stopped else problem
            self._write_log(lambda log: log.close(ending, stopped))
        for note in await asyncio.to_thread(lambda: list(notes_on_changes(plan, files))):
            self._on_update(Noted(note))
        log = self._log
        if log is not None:
            in_use = self._selected.request.logs_in_use()
            await asyncio.to_thread(self._delete_older_runs, in_use)
        try:
            await asyncio.to_thread(self._write_adk_results)
        except OSError as error:
            self._on_update(Noted(f"no result file for adk web: {error}"))
        has_secrets = log is None or log.has_masked
        seconds = log.seconds if log else seconds
        path = log.path if log else None
        return ExecutedRun(started, seconds, status, path, has_secrets, self._stopped, problem)

    async def _commit_now_and_then(self) -> None:
        """What happened last is in the file although nothing follows for long."""
        while True:
            await asyncio.sleep(_COMMIT_EVERY)
            self._write_log(LoggedRun.commit)

    async def run_nothing(self) -> ExecutedRun:
        """A shard without a case: its log says that nothing of it is missing."""
        started, status = datetime.now(UTC), worst_status(())
        self._begin_log(started, logged_files(self._selected.plan))
        self._write_log(lambda log: log.close(status))
        return ExecutedRun(started, 0.0, status, self._log.path if self._log else None, has_secrets=False)

    def _begin_log(self, started: datetime, files: Mapping[str, str]) -> None:
        request = self._selected.request
        resumes = request.resumes
        try:
            header = replace(self._selected.header, started=started, files=files, recordings=self._recordings)
            self._log = LoggedRun.start(request.store, self._selected.plan, header)
            self._log.tell_locked(lambda text: self._on_update(Noted(text)))
            if self._log.elsewhere:
                self._on_update(Noted(self._log.elsewhere))
            if resumes:
                self._log.carry_over(resumes)
        except OSError as error:
            self._on_update(Noted(f"Run not stored: {error}"))

    def _update(self, update: Update) -> None:
        self._write_log(lambda log: log.write(update))
        match update:
            case CaseStarted():
                self._tell_log()
            case RunStopped():
                self._stopped = update
            case CaseDone(result):
                self._statuses.append(result.status)
                self._add_adk_result(result)
                self._tell_log()
        self._on_update(update)

    def _tell_log(self) -> None:
        log = self._log
        self._on_update(LogGrew(log.path, log.last_result) if log else LogGrew(None))

    def _write_log(self, write: Callable[[LoggedRun], None]) -> None:
        if self._log is None:
            return
        try:
            write(self._log)
        except OSError as error:
            self._log = None
            self._on_update(Noted(f"Run log incomplete: {error}"))

    def _delete_older_runs(self, in_use: Collection[Path]) -> None:
        """In a thread."""
        request = self._selected.request
        try:
            prune(request.store, request.settings.keep_runs, in_use)
        except OSError as error:
            self._on_update(Noted(f"older runs not deleted: {error}"))

    def _write_adk_results(self) -> None:
        """In a thread. A session that was received is no run of an eval set."""
        if self._selected.request.session:
            return
        agent_dir = self._selected.plan.agent_dir
        for result in self._adk_results.values():
            if not result.is_empty:
                write_adk_result(agent_dir, *result.pieces(app_name(agent_dir), time.time()))
            result.close()

    def _add_adk_result(self, result: CaseResult) -> None:
        try:
            if self._adk_results:
                self._adk_results[result.id.path].add(result)
        except OSError as error:
            self._adk_results.clear()
            self._on_update(Noted(f"no result file for adk web: {error}"))
