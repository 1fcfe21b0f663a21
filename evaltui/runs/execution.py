"""A run that is executed and kept: written down while it happens, with ADK's result files at its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

from evaltui.agents.protocol import FilesOpened
from evaltui.core.compare.run_summary import summarize
from evaltui.core.model.case_id import CaseId, fingerprint
from evaltui.core.model.config import DEFAULT_CRITERIA
from evaltui.core.model.outcome import Status, worst_status
from evaltui.core.model.stored_cases import StoredCase, StoredCases
from evaltui.core.secrets import Secrets
from evaltui.documents.saving import fingerprint_of
from evaltui.project.agent_address import AgentAddress, files_of_agent
from evaltui.project.agent_files import is_source
from evaltui.project.folders import agent_file, app_name, case_path
from evaltui.project.settings import secrets_of
from evaltui.runner.execution import follow_plan
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
from evaltui.runner.pool import ExecutorError
from evaltui.runner.run_recordings import RunRecordings, open_recordings
from evaltui.runner.starting import StartedHost, require_variant
from evaltui.runs.adk_document import adk_result
from evaltui.runs.adk_results import write_adk_result
from evaltui.runs.history import prune, result_of
from evaltui.runs.resuming import Resumption, changed_meanwhile, with_opened
from evaltui.runs.run_file import Ending, RunFile
from evaltui.runs.run_header import RunHeader, SelectedSet
from evaltui.runs.run_writer import RunWriter, SecretPieces, begin_run, dumped
from evaltui.runs.selection import RunRequest, SelectedRun, select
from evaltui.runs.sets import SetSource
from evaltui.runs.store import RunStore
from evaltui.text.figures import counted, some_of

# Seconds.
_COMMIT_SECONDS = 1.0


def logged_files(plan: RunPlan, also: Iterable[str] = ()) -> dict[str, str]:
    """The files of the agent with their fingerprints; none for an agent behind a network, an object, and
    conversations that were held elsewhere."""
    is_unknown = plan.agent.url or plan.agent.in_process or plan.held is not None
    return {} if is_unknown else files_of_agent(plan.agent, also)


def notes_on_changes(plan: RunPlan, header: RunHeader) -> Iterator[str]:
    """Sentences that name the files that changed since a run read them; those of the agent are in its
    header."""
    read = {path: before for eval_set in plan.sets for path, before in eval_set.files.items()}
    changed = [path for path, before in read.items() if fingerprint_of(path) != before]
    if changed:
        names = some_of([case_path(plan.agent_dir, path) for path in changed])
        yield f"{names} changed during the run. Verdicts are of the files before the agent started"
    changed_of_agent = changed_meanwhile(header, logged_files(plan, header.files))
    if code := [name for name in changed_of_agent if is_source(name) or name not in header.written]:
        yield f"{some_of(code)} changed during the run. Some cases may have run on the earlier version"
    if prompts := [name for name in changed_of_agent if name not in code]:
        either = "Unless the agent wrote that, some cases may have run on the earlier version"
        yield f"{some_of(prompts)} changed during the run. {either}"


class LoggedRun:
    """Writes what a run tells to its file; in memory, where that cannot be written."""

    def __init__(
        self, writer: RunWriter, agent: AgentAddress, header: RunHeader, note: Callable[[str], None]
    ) -> None:
        """`note` gets a sentence where the file cannot be written to its end."""
        self.header = header
        """With the files that were opened so far."""
        self.last_result: int | None = None
        """The number of the case that has the last result in the file; None before there is one."""
        self.seconds: float | None = None
        """Wall time, once the run is over."""
        self._writer = writer
        self._agent = agent
        self._pieces = SecretPieces(writer.secrets)
        self._note = note
        self._is_incomplete = False
        writer.on_locked = note
        if writer.elsewhere:
            note(writer.elsewhere)

    @classmethod
    def start(
        cls, store: RunStore | None, plan: RunPlan, header: RunHeader, note: Callable[[str], None]
    ) -> LoggedRun:
        """Create the file; without a store the run is in memory.

        `header` says what the plan does not say. Raises OSError where the folder of the store cannot be
        written.
        """
        agent = plan.agent
        is_own = agent.python is None
        interpreter = replace(agent.interpreter, reason="") if is_own else agent.interpreter
        secrets = secrets_of(plan.agent_dir)
        header = replace(
            header,
            sets=tuple(_set(plan, eval_set, secrets) for eval_set in plan.sets),
            agent_dir=str(agent.folder),
            agent_name=agent.name,
            module=agent.module,
            url=agent.url,
            in_process=agent.in_process,
            interpreter=None if agent.url or agent.in_process else interpreter,
            variant=agent.variant.shown if agent.variant else None,
            preflight=plan.checks,
        )
        if store is None:
            writer = RunWriter(None, header, secrets, _texts(plan))
        else:
            writer = begin_run(store, header, _texts(plan))
            writer.may_continue_in_memory = True
        return cls(writer, agent, header, note)

    @property
    def path(self) -> Path | None:
        """Its file; None for a run that is in memory."""
        return None if self._writer.is_in_memory else self._writer.path

    def commit(self) -> None:
        """Put everything that was written so far into the file."""
        self._writer.commit()
        self._note_problem()

    def carry_over(self, resumption: Resumption) -> None:
        """Copy the finished repeats of the run that is resumed, and what was spent besides.

        Raises what `RunFile` raises.
        """
        earlier, repeats = RunFile(resumption.path), set(resumption.carried())
        self._set_header(
            replace(
                self.header,
                files={**earlier.header.files, **self.header.files},
                read=earlier.header.read,
                written=earlier.header.written,
            )
        )
        for stored in earlier.repeats:
            if (stored.case, stored.repeat) in repeats:
                self._writer.copy_repeat(earlier, stored)
        self._writer.add_spending(resumption.spent)

    def write(self, update: Update) -> None:
        """Raises OSError for a file that can neither be written nor read."""
        writer = self._writer
        match update:
            case Happened():
                self._write_events(self._pieces.add(update))
            case CaseStarted(case, eval_set_id, repeat):
                self._write_events(self._pieces.end((*case, repeat)))
                writer.start(case, eval_set_id, repeat)
            case AgentLoaded(info):
                # A run is read on other machines, too.
                writer.set_agent({name: value for name, value in info.items() if name != "places"})
                for text in changes_in_words(self._agent, info):
                    writer.add_note(text)
            case FilesOpened():
                # Of others, the files are not known.
                if self.header.files or self.header.url:
                    self._set_header(with_opened(self.header, self._agent, update))
            case RepeatDone(case, eval_set_id, repeat, result):
                self._write_events(self._pieces.end((*case, repeat)))
                writer.add_repeat(case, eval_set_id, repeat, result)
                # Nothing may follow for long, while another repeat hangs.
                writer.commit()
            case CaseDone(result):
                self.last_result = writer.add_case(summarize(result), result)
                writer.commit()
            case SpentWithoutResult(amount):
                writer.add_spending(amount)
            case Noted(text, at_once=False):
                writer.add_note(text)
            case RunStopped(reason):
                writer.stop(reason)
        self._note_problem()

    def _set_header(self, header: RunHeader) -> None:
        self.header = header
        self._writer.set_header(header)

    def _write_events(self, updates: Iterable[Happened]) -> None:
        for update in updates:
            self._writer.add_event(update.event, update.json)

    def _note_problem(self) -> None:
        if self._writer.problem and not self._is_incomplete:
            self._is_incomplete = True
            self._note(f"Run log incomplete: {self._writer.problem}")

    def end(self, status: Status | None = None) -> None:
        """The run is over; without a status it was interrupted."""
        self._write_events(self._pieces.close())
        self.seconds = round((datetime.now(UTC) - self.header.started).total_seconds(), 3)
        self._writer.end(Ending(status, self.seconds) if status else None, self.seconds)
        self._note_problem()

    def close(self) -> RunFile:
        """Close the file, and open it for reading."""
        if self.seconds is None:
            self.end()
        file = self._writer.close()
        self._note_problem()
        return file


def changes_in_words(agent: AgentAddress, info: Mapping[str, Any]) -> Iterator[str]:
    """The changes that a host made for the variant: `variant pro: root_agent.model a → b`."""
    done = [
        f"{change['what']} {change['old']} → {change['new']}"
        if change["old"]
        else f"{change['what']} {change['new']}"
        for change in info.get("changes", ())
    ]
    if agent.variant is None:
        return
    yield from agent.variant.notes
    if done:
        yield f"variant {agent.variant.variant.name}: {', '.join(done)}"


def _texts(plan: RunPlan) -> Iterator[tuple[CaseId, str]]:
    for eval_set in plan.sets:
        cases = (
            eval_set.cases.stored
            if isinstance(eval_set.cases, StoredCases)
            else map(StoredCase.of, eval_set.cases)
        )
        yield from ((CaseId(eval_set.case_path, case.eval_id), case.eval_case_text) for case in cases)


def _set(plan: RunPlan, eval_set: SetPlan, secrets: Secrets) -> SelectedSet:
    eval_ids, path, config = eval_set.eval_ids, eval_set.case_path, eval_set.config_in_use
    defaulted = tuple(DEFAULT_CRITERIA) if config.defaulted else ()
    more = {eval_id: runs for eval_id in eval_ids if (runs := plan.more.get(CaseId(path, eval_id)))}
    return SelectedSet(
        path,
        eval_set.eval_set_id,
        eval_ids,
        eval_set.config.scoring(),
        eval_set.whole,
        eval_set.places,
        eval_set.tags,
        None if plan.held is None else _conversations(plan.held, path, eval_ids),
        more,
        eval_set.fingerprint,
        None if eval_set.path is None else str(eval_set.path),
        None if config.path is None else str(config.path),
        # Those of a set that is in no file are given with it.
        None if eval_set.path is None or config.is_given else defaulted,
        None if config.passed_over is None else str(config.passed_over),
        tuple(fingerprint(secrets.in_json(case.text, dumped)) for case in eval_set.others),
    )


def _conversations(held: HeldConversations, path: str, eval_ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
    by_case = {eval_id: held.get(CaseId(path, eval_id), ()) for eval_id in eval_ids}
    return {
        eval_id: tuple(conversation.id for conversation in some) for eval_id, some in by_case.items() if some
    }


@dataclass(frozen=True)
class LogGrew:
    """The file of the run before the update that follows; None where it cannot be written any more.

    It is published only where a case begins and ends.

    `result` is the number of the case that has the last result in the file, None before there is one.
    """

    log: Path | None
    result: int | None = None


@dataclass(frozen=True)
class Selected:
    """The cases of the run are selected, and it starts."""

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
    file: RunFile
    """All of it, in memory where it could not be kept."""
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
    execution = _Execution(selected, on_update)
    return await execution.run(start_host) if selected.plan.case_count else execution.run_nothing()


def _prints_of_recordings(plan: RunPlan, recordings: RunRecordings) -> dict[str, str]:
    files = {
        eval_set.case_path: plan.recordings_path(eval_set)
        for eval_set in plan.sets
        if eval_set.path in recordings.sets
    }
    return {path: digest for path, file in files.items() if file and (digest := fingerprint_of(file))}


class _Execution:
    """A log or a result file that cannot be written is worth a note; the run goes on."""

    def __init__(self, selected: SelectedRun, on_update: OnRunUpdate) -> None:
        self._selected = selected
        self._on_update = on_update
        self._log: LoggedRun | None = None
        # Notes before there is a log.
        self._notes: list[str] = []
        self._stopped: RunStopped | None = None
        self._statuses: list[Status] = []
        # Fingerprints before the run, by the paths of the sets.
        self._recordings: Mapping[str, str] = {}
        resumes = selected.request.resumes
        if resumes is not None and not resumes.of_other_variant:
            done = len(list(resumes.carried()))
            self._notes.append(f"resumes run {resumes.id}: {counted(done, 'result')} kept")
        for note in selected.notes:
            self._note(note)

    def _note(self, text: str) -> None:
        if self._log is None:
            self._notes.append(text)
        else:
            self._log.write(Noted(text))
        self._on_update(Noted(text))

    async def run(self, start_host: Callable[[], StartedHost] | None) -> ExecutedRun:
        plan = self._selected.plan
        recordings = await open_recordings(plan, self._note)
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
        recordings: RunRecordings,
        files: Mapping[str, str],
    ) -> ExecutedRun:
        plan, started = self._selected.plan, datetime.now(UTC)
        log = self._begin_log(started, files)
        status: Status | None = None
        problem = ""
        committing = asyncio.create_task(self._commit_now_and_then(log))
        try:
            try:
                status = await follow_plan(plan, self._update, first=host, recordings=recordings)
            except asyncio.CancelledError:
                # Being cancelled is one of the ways in which a run ends. With all its results, it is over.
                if len(self._statuses) == plan.case_count:
                    status = worst_status(self._statuses)
            except ExecutorError as error:
                problem = str(error)
                self._note(problem)
                log.write(RunStopped(problem, is_refusal=False))
            finally:
                committing.cancel()
            # One that was stopped can be resumed as one that was interrupted.
            log.end(None if self._stopped else status)
            await self._finish(log)
        finally:
            file = log.close()
        assert log.seconds is not None
        return ExecutedRun(started, log.seconds, status, log.path, file, self._stopped, problem)

    async def _finish(self, log: LoggedRun) -> None:
        """Adds notes and writes ADK's result files once all cases are over."""
        for note in await asyncio.to_thread(lambda: list(notes_on_changes(self._selected.plan, log.header))):
            self._note(note)
        if log.path is not None:
            in_use = self._selected.request.logs_in_use()
            await asyncio.to_thread(self._delete_older_runs, in_use)
            try:
                await asyncio.to_thread(self._write_adk_results, log.path)
            except OSError as error:
                self._note(f"no result file for adk web: {error}")

    async def _commit_now_and_then(self, log: LoggedRun) -> None:
        """Commits every second, so that the last events are in the file while nothing follows."""
        while True:
            await asyncio.sleep(_COMMIT_SECONDS)
            log.commit()

    def run_nothing(self) -> ExecutedRun:
        """A shard without a case: its log says that nothing of it is missing. Else nothing is stored."""
        plan, started = self._selected.plan, datetime.now(UTC)
        is_shard = self._selected.request.shard is not None
        log = self._begin_log(started, logged_files(plan), is_stored=is_shard)
        status = worst_status(()) if is_shard else None
        log.end(status)
        file = log.close()
        return ExecutedRun(started, 0.0, status, log.path, file)

    def _begin_log(self, started: datetime, files: Mapping[str, str], *, is_stored: bool = True) -> LoggedRun:
        selected = self._selected
        header = replace(selected.header, started=started, files=files, recordings=self._recordings)

        def start(store: RunStore | None) -> LoggedRun:
            return LoggedRun.start(store, selected.plan, header, self._note)

        try:
            log = start(selected.request.store if is_stored else None)
        except OSError as error:
            self._note(f"Run not stored: {error}")
            log = start(None)
        resumes = selected.request.resumes
        for note in dict.fromkeys((*self._notes, *(resumes.notes if resumes else ()))):
            log.write(Noted(note))
        self._log = log
        if resumes:
            log.carry_over(resumes)
        return log

    def _update(self, update: Update) -> None:
        log = self._log
        assert log is not None
        log.write(update)
        match update:
            case CaseStarted():
                self._on_update(LogGrew(log.path, log.last_result))
            case RunStopped():
                self._stopped = update
            case CaseDone(result):
                self._statuses.append(result.status)
                self._on_update(LogGrew(log.path, log.last_result))
        self._on_update(update)

    def _delete_older_runs(self, in_use: Collection[Path]) -> None:
        """In a thread."""
        request = self._selected.request
        try:
            prune(request.store, request.settings.keep_runs, in_use)
        except OSError as error:
            self._note(f"older runs not deleted: {error}")

    def _write_adk_results(self, log: Path) -> None:
        """In a thread. A session that was received is no run of an eval set, and a file beside others is no
        app of google-adk."""
        plan, file = self._selected.plan, RunFile(log)
        if self._selected.request.session or agent_file(plan.agent_dir):
            return
        sets = {eval_set.case_path: eval_set for eval_set in plan.sets}
        app, secrets = app_name(plan.agent_dir), secrets_of(plan.agent_dir)
        for path, cases in groupby(file.cases, key=lambda case: case.id.path):
            results = (result_of(file, case) for case in cases)
            write_adk_result(plan.agent_dir, *adk_result(sets[path], results, app, time.time(), secrets))
