"""A run that is executed and kept: its log, and the result files that google-adk's tools read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from evaltui.core.model.outcome import Status
from evaltui.files.folders import app_name
from evaltui.files.settings import secrets_of
from evaltui.runner.parent.execution import follow_plan
from evaltui.runner.parent.pool import StartedHost
from evaltui.runner.plan import CaseDone, CaseStarted, Noted, Update
from evaltui.runs.adk_document import AdkResult
from evaltui.runs.adk_results import write_adk_result
from evaltui.runs.logged_run import LoggedRun
from evaltui.runs.selection import RunRequest, SelectedRun, select
from evaltui.runs.sets import SetSource


@dataclass(frozen=True)
class LogGrew:
    """How far the log of the run is, before the update that follows: its file, and the bytes written, None
    where no more can be. Told only where a case begins and ends."""

    log: Path | None
    size: int | None


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
    status: Status | None
    """The worst of its cases; None where it was cancelled, or there was nothing to run."""
    log: Path | None
    """None where it could not be kept, or not to its end."""
    has_secrets: bool
    """Whether there may be secrets in what was told: the log had to mask some, or there is none to know."""


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
    start_host: Callable[[], StartedHost],
) -> ExecutedRun:
    """Select, execute and keep a run. The agent is imported while the sets are read.

    Cancelled, what is finished stays, and is kept. Raises what `select` raises, and ValueError for a plan
    that cannot be run; what `on_update` raises ends the run.
    """
    host = start_host()
    try:
        selected = await asyncio.to_thread(select, request, sets)
        on_update(Selected(selected))
        for note in selected.notes:
            on_update(Noted(note))
        if selected.plan.case_count:
            return await _Execution(selected, on_update).run(host)
        return ExecutedRun(datetime.now(UTC), None, None, has_secrets=False)
    finally:
        await host.end()


class _Execution:
    """A log or a result file that cannot be written is worth a note; the run goes on."""

    def __init__(self, selected: SelectedRun, on_update: OnRunUpdate) -> None:
        self._selected = selected
        self._on_update = on_update
        self._log: LoggedRun | None = None
        secrets = secrets_of(selected.plan.agent_dir)
        self._adk_results = {info.known_as: AdkResult(info, secrets) for info in selected.sets}

    async def run(self, host: StartedHost) -> ExecutedRun:
        started = datetime.now(UTC)
        self._begin_log(started)
        status: Status | None = None
        try:
            status = await follow_plan(self._selected.plan, self._update, first=host)
        except asyncio.CancelledError:
            # Being cancelled is one of the ways in which a run ends.
            pass
        finally:
            self._write_log(lambda log: log.close(status))
        log = self._log
        try:
            await asyncio.to_thread(self._write_adk_results)
        except OSError as error:
            self._on_update(Noted(f"no result file for adk web: {error}"))
        return ExecutedRun(started, status, log.path if log else None, log is None or log.has_masked)

    def _begin_log(self, started: datetime) -> None:
        resumes = self._selected.request.resumes
        try:
            self._log = LoggedRun.start(self._selected.plan, started, self._selected.header)
            if resumes:
                self._log.carry_over(resumes.path, set(resumes.carried()))
        except OSError as error:
            self._on_update(Noted(f"this run is not kept: {error}"))

    def _update(self, update: Update) -> None:
        self._write_log(lambda log: log.write(update))
        match update:
            case CaseStarted():
                self._tell_log()
            case CaseDone(result):
                self._adk_results[result.id.path].add(result)
                self._tell_log()
        self._on_update(update)

    def _tell_log(self) -> None:
        log = self._log
        self._on_update(LogGrew(log.path, log.size) if log else LogGrew(None, None))

    def _write_log(self, write: Callable[[LoggedRun], None]) -> None:
        if self._log is None:
            return
        try:
            write(self._log)
        except OSError as error:
            self._log = None
            self._on_update(Noted(f"Run log incomplete: {error}"))

    def _write_adk_results(self) -> None:
        """In a thread."""
        agent_dir = self._selected.plan.agent_dir
        for result in self._adk_results.values():
            if not result.is_empty:
                write_adk_result(agent_dir, *result.document(app_name(agent_dir), time.time()))
