"""Executing a run and storing it as it happens, with ADK's result files at the end."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
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
from evaltui.core.model.stored_cases import StoredCase
from evaltui.core.secrets import Secrets
from evaltui.documents.saving import fingerprint_of
from evaltui.project.agent_address import AgentAddress, files_of_agent
from evaltui.project.agent_files import UNKNOWN, is_source
from evaltui.project.folders import agent_file, app_name, case_path
from evaltui.project.packages import installed_packages, own_version
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
from evaltui.runs.resuming import Resumption, files_changed_during, functions_now, with_opened_files
from evaltui.runs.run_file import Ending, RunFile
from evaltui.runs.run_header import MergedPart, RunHeader, SelectedSet
from evaltui.runs.run_writer import RunWriter, SecretPieces, begin_run, to_json_text
from evaltui.runs.selection import RunRequest, SelectedRun, select
from evaltui.runs.sets import SetSource
from evaltui.runs.store import RunStore
from evaltui.text.figures import counted, short_list

# Seconds.
_COMMIT_SECONDS = 1.0


def logged_files(plan: RunPlan, also: Iterable[str] = ()) -> dict[str, str]:
    """The agent's files with fingerprints; none for an agent behind a network, an object, and scored
    traces."""
    is_unknown = plan.agent.url or plan.agent.in_process or plan.held is not None
    return {} if is_unknown else files_of_agent(plan.agent, also)


def changes_during(plan: RunPlan, header: RunHeader) -> tuple[list[str], list[str]]:
    """The agent's files that changed during a run, and sentences about all files that did."""
    changed = files_changed_during(header, logged_files(plan, header.files))
    return changed, list(_notes_on_changes(plan, header, changed))


def _notes_on_changes(plan: RunPlan, header: RunHeader, changed_of_agent: Sequence[str]) -> Iterator[str]:
    read = {path: before for eval_set in plan.sets for path, before in eval_set.files.items()}
    changed = [path for path, before in read.items() if fingerprint_of(path) != before]
    if changed:
        names = short_list([case_path(plan.agent_dir, path) for path in changed])
        yield f"{names} changed during the run. Verdicts are of the files before the agent started"
    if code := [name for name in changed_of_agent if is_source(name) or name not in header.written]:
        yield f"{short_list(code)} changed during the run. Some cases may have run on the earlier version"
    if prompts := [name for name in changed_of_agent if name not in code]:
        either = "Unless the agent wrote that, some cases may have run on the earlier version"
        yield f"{short_list(prompts)} changed during the run. {either}"


class LoggedRun:
    """Writes the updates of a run to its file; in memory where the file cannot be written."""

    def __init__(
        self, writer: RunWriter, agent: AgentAddress, header: RunHeader, note: Callable[[str], None]
    ) -> None:
        """Starts the log; `note` receives a sentence if the file cannot be completed."""
        self.header = header
        """With the files that were opened so far."""
        self.last_result: int | None = None
        """The number of the case that has the last result in the file; None before there is one."""
        self.seconds: float | None = None
        """Wall time, once the run is over."""
        # The clock of the machine may be set during the run.
        self._started = time.monotonic()
        self._writer = writer
        self._agent = agent
        self._pieces = SecretPieces(writer.secrets)
        self._note = note
        self._is_incomplete = False
        self._agent_of_reused: Mapping[str, Any] = {}
        writer.on_locked = note
        if writer.elsewhere:
            note(writer.elsewhere)

    @classmethod
    def start(
        cls, store: RunStore | None, plan: RunPlan, header: RunHeader, note: Callable[[str], None]
    ) -> LoggedRun:
        """Creates the file; without a store, the run is in memory.

        `header` has the fields that are not in the plan. Raises OSError where the folder of the store is not
        writable.
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
            packages=None if agent.url or agent.in_process else installed_packages(interpreter.path),
            variant=agent.variant.shown if agent.variant else None,
            preflight=plan.checks,
            functions=functions_now(
                (eval_set.config for eval_set in plan.sets), plan.agent_dir, plan.agent.interpreter.executable
            ),
        )
        if store is None:
            writer = RunWriter(None, header, secrets, _texts(plan))
        else:
            writer = begin_run(store, header, _texts(plan))
            writer.may_continue_in_memory = True
        return cls(writer, agent, header, note)

    @property
    def path(self) -> Path | None:
        """The file; None for a run in memory."""
        return None if self._writer.is_in_memory else self._writer.path

    def commit(self) -> None:
        """Commits everything written so far."""
        self._writer.commit()
        self._note_problem()

    def carry_over(self, resumption: Resumption) -> None:
        """Copies the finished repeats of the resumed run, and its other spending.

        Raises the errors of `RunFile`.
        """
        earlier, repeats = RunFile(resumption.path), set(resumption.carried())
        self._set_header(
            replace(
                self.header,
                files={**earlier.header.files, **self.header.files},
                read=earlier.header.read,
                written=earlier.header.written,
                parts=() if resumption.of_other_variant else tuple(self._reused_parts(earlier, resumption)),
            )
        )
        for stored in earlier.repeats:
            if (stored.case, stored.repeat) in repeats:
                self._writer.copy_repeat(earlier, stored)
        self._writer.add_spending(resumption.spent)
        if repeats:
            self._agent_of_reused = {"evaltui": earlier.header.evaltui, **earlier.agent}

    def _reused_parts(self, earlier: RunFile, resumption: Resumption) -> Iterator[MergedPart]:
        """The runs of a resumed run, with the cases of which all results are reused."""
        counts = Counter(case for case, _ in resumption.carried())
        whole = {case.id for case in earlier.cases if counts[case.id] == case.summary.runs}
        numbers = {
            case: number
            for number, (case, _) in enumerate(self.header.selected(), start=1)
            if case in whole and case not in resumption.more
        }
        cases = [case for case, _ in earlier.header.selected()]
        for part in earlier.parts:
            reused = (numbers.get(cases[number - 1]) for number in part.cases)
            yield replace(part, cases=tuple(filter(None, reused)))

    def write(self, update: Update) -> None:
        """Writes an update.

        Raises OSError for a file that can neither be written nor read.
        """
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
                if versions := changed_versions(self._agent_of_reused, {"evaltui": own_version(), **info}):
                    self._note(f"reused results are of other versions: {'; '.join(versions)}")
            case FilesOpened():
                # Of others, the files are not known.
                if self.header.files or self.header.url:
                    self._set_header(with_opened_files(self.header, self._agent, update))
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

    def files_changed(self, names: Sequence[str]) -> None:
        """Notes that it is unknown which cases had which content of these files."""
        if names:
            unknown = dict.fromkeys(names, UNKNOWN)
            self._set_header(replace(self.header, files={**self.header.files, **unknown}))

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
        """Ends the run; without a status, it was interrupted."""
        self._write_events(self._pieces.close())
        self.seconds = round(time.monotonic() - self._started, 3)
        self._writer.end(Ending(status, self.seconds) if status else None, self.seconds)
        self._note_problem()

    def close(self) -> RunFile:
        """Closes the file and opens it for reading."""
        if self.seconds is None:
            self.end()
        file = self._writer.close()
        self._note_problem()
        return file


_VERSIONS = ("evaltui", "python", "version")


def changed_versions(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The differing versions of two runs, as far as they are known: `python 3.11.2 → 3.12.0`.

    `version` is that of the framework, with its name.
    """
    return [
        f"{'' if name == 'version' else f'{name} '}{before[name]} → {now[name]}"
        for name in _VERSIONS
        if before.get(name) and now.get(name) and before[name] != now[name]
    ]


def changes_in_words(agent: AgentAddress, info: Mapping[str, Any]) -> Iterator[str]:
    """The changes that a host made for a variant, as text: `variant pro: root_agent.model a → b`."""
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
        for case in eval_set.stored_cases:
            yield CaseId(eval_set.case_path, case.eval_id), case.eval_case_text


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
        tuple(_print_of(case, secrets) for case in eval_set.others),
    )


def _print_of(case: StoredCase, secrets: Secrets) -> str:
    """The fingerprint of a case as a run's file would have it."""
    text = case.eval_case_text
    masked = secrets.mask_json(text, to_json_text)
    try:
        return case.fingerprint if masked == text else StoredCase(masked).fingerprint
    except ValueError:
        # No run has selected a case that is invalid.
        return fingerprint(masked)


def _conversations(held: HeldConversations, path: str, eval_ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
    by_case = {eval_id: held.get(CaseId(path, eval_id), ()) for eval_id in eval_ids}
    return {
        eval_id: tuple(conversation.id for conversation in some) for eval_id, some in by_case.items() if some
    }


@dataclass(frozen=True)
class LogGrew:
    """The state of the run's file before the next update; None where it can no longer be written.

    Published only where a case starts or ends. `result` is the number of the case with the last result in the
    file, None before the first one.
    """

    log: Path | None
    result: int | None = None


@dataclass(frozen=True)
class RunSelected:
    """The cases of the run are selected, and it starts."""

    run: SelectedRun


RunUpdate = Update | LogGrew | RunSelected
OnRunUpdate = Callable[[RunUpdate], None]


@dataclass(frozen=True)
class ExecutedRun:
    """A finished run; the results of its cases were published while it ran."""

    seconds: float
    """Wall time in seconds, as in the log."""
    status: Status | None
    """The worst status of its cases; None for a cancelled run, and for a run without cases."""
    log: Path | None
    """The log; None where it is missing or incomplete."""
    file: RunFile
    """The whole run; in memory where it could not be stored."""
    stopped: RunStopped | None = None
    """Why cases lack a result although the run was not cancelled; None where all have one."""
    problem: str = ""
    """Why the run ended early, as a sentence; "" for a complete or cancelled run."""


class RunService(Protocol):
    """Selects, executes and stores a run; `run` implements it, and tests have others without processes.

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
    """Selects, executes and stores a run.

    Sets, configs and recordings are read before the agent is imported, which could change them. Without
    `start_host`, no agent is run: the request has recorded conversations to score. A cancelled run keeps its
    finished cases. Raises the errors of `select`, EvalSetError for unreadable recordings, VariantError for a
    variant that does not fit, ValueError for a plan that cannot be run, and the errors of `on_update`, which
    end the run.
    """
    selected = await asyncio.to_thread(select, request, sets)
    on_update(RunSelected(selected))
    execution = _Execution(selected, on_update)
    return await execution.run(start_host) if selected.plan.case_count else execution.run_nothing()


def _recording_fingerprints(plan: RunPlan, recordings: RunRecordings) -> dict[str, str]:
    files = {
        eval_set.case_path: plan.recordings_path(eval_set)
        for eval_set in plan.sets
        if eval_set.path in recordings.sets
    }
    return {path: digest for path, file in files.items() if file and (digest := fingerprint_of(file))}


class _Execution:
    """A run in progress; a log or result file that cannot be written becomes a note, and the run
    continues."""

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
        self._recordings = _recording_fingerprints(plan, recordings)
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
        plan = self._selected.plan
        log = self._begin_log(files)
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
        return ExecutedRun(log.seconds, status, log.path, file, self._stopped, problem)

    async def _finish(self, log: LoggedRun) -> None:
        """Adds notes and writes ADK's result files after the last case."""
        changed, notes = await asyncio.to_thread(changes_during, self._selected.plan, log.header)
        log.files_changed(changed)
        for note in notes:
            self._note(note)
        if log.path is not None:
            in_use = self._selected.request.logs_in_use()
            await asyncio.to_thread(self._delete_older_runs, in_use)
            try:
                await asyncio.to_thread(self._write_adk_results, log.path)
            except OSError as error:
                self._note(f"no result file for adk web: {error}")

    async def _commit_now_and_then(self, log: LoggedRun) -> None:
        """Commits every second, so that the last events are in the file even if no others follow."""
        while True:
            await asyncio.sleep(_COMMIT_SECONDS)
            log.commit()

    def run_nothing(self) -> ExecutedRun:
        """Stores a shard without cases, so that it counts as complete when shards are merged; other runs are
        not stored."""
        is_shard = self._selected.request.shard is not None
        log = self._begin_log(logged_files(self._selected.plan), is_stored=is_shard)
        status = worst_status(()) if is_shard else None
        log.end(status)
        file = log.close()
        return ExecutedRun(0.0, status, log.path, file)

    def _begin_log(self, files: Mapping[str, str], *, is_stored: bool = True) -> LoggedRun:
        selected, started = self._selected, datetime.now(UTC)
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
        """Deletes older runs, in a thread."""
        request = self._selected.request
        try:
            prune(request.store, request.settings.keep_runs, in_use)
        except OSError as error:
            self._note(f"older runs not deleted: {error}")

    def _write_adk_results(self, log: Path) -> None:
        """Writes ADK's result files, in a thread; none for a received session, and none for a single-file
        agent."""
        plan, file = self._selected.plan, RunFile(log)
        if self._selected.request.session or agent_file(plan.agent_dir):
            return
        sets = {eval_set.case_path: eval_set for eval_set in plan.sets}
        app, secrets = app_name(plan.agent_dir), secrets_of(plan.agent_dir)
        for path, cases in groupby(file.cases, key=lambda case: case.id.path):
            results = (result_of(file, case) for case in cases)
            write_adk_result(plan.agent_dir, *adk_result(sets[path], results, app, time.time(), secrets))
